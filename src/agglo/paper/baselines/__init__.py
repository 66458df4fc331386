"""The methods that SCC is compared with, as scikit-learn estimators.

``fit(X)`` takes a dense array and sets these attributes:

- ``labels_``: the cluster of each point. All methods except the DP-means solvers have the parameter
  ``n_clusters``. If it is given, there are ``n_clusters`` clusters, or fewer if no cut of the tree has that
  number. By default, the method itself selects the clusters, or the tree is cut at the most persistent round. Only
  HDBSCAN without ``n_clusters`` finds noise, which has the label -1.
- ``tree_``: a :class:`agglo.Hierarchy`, if the method is hierarchical. Every inner node is a separate round,
  ordered by height, so that ``tree_.cut(n_clusters=k)`` works for any k.

Random methods have the parameter ``random_state``.

``METHODS`` maps a short name to a :class:`Method`. Methods without the parameter ``metric`` use Euclidean
distances. To compare points by cosine, normalize the rows with :func:`sklearn.preprocessing.normalize`.

Examples
--------
>>> from agglo.paper.baselines import METHODS
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> METHODS["hac"].estimator(n_clusters=3, metric="euclidean").fit(X).tree_
Hierarchy(150 leaves, 299 nodes, 149 rounds, height 4.063)
>>> [name for name, method in METHODS.items() if not method.hierarchical]
['kmeans', 'bisecting-kmeans', 'serial-dpmeans', 'occ-dpmeans', 'dpmeans++']
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from sklearn.cluster import BisectingKMeans, KMeans

from agglo.paper.baselines.ghhc import GHHC
from agglo.paper.baselines.grinch import Grinch
from agglo.paper.baselines.hkm import HKM
from agglo.paper.baselines.library import HDBSCAN, Birch, DenseHAC
from agglo.paper.baselines.perch import Perch
from agglo.paper.baselines.rhc import RHC
from agglo.paper.dpmeans import DPMeansPlusPlus, OCCDPMeans, SerialDPMeans

__all__ = [
    "GHHC",
    "HDBSCAN",
    "HKM",
    "METHODS",
    "RHC",
    "Birch",
    "BisectingKMeans",
    "DenseHAC",
    "Grinch",
    "KMeans",
    "Method",
    "Perch",
]


class Method(NamedTuple):
    """A baseline estimator, with the properties that a benchmark needs to run it.

    Examples
    --------
    >>> from agglo.paper.baselines import METHODS
    >>> METHODS["perch"].hierarchical, METHODS["perch"].random
    (True, True)
    """

    estimator: type[Any]
    """The class of the estimator."""
    hierarchical: bool
    """Whether ``fit`` sets ``tree_``."""
    random: bool
    """Whether the estimator has the parameter ``random_state``."""
    metric: bool
    """Whether the estimator has the parameter ``metric`` with the values ``"cosine"`` and ``"sqeuclidean"``."""
    max_points: int
    """The maximum number of points for which time and memory are acceptable."""


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "hac": Method(DenseHAC, hierarchical=True, random=False, metric=True, max_points=25_000),
        "birch": Method(Birch, hierarchical=True, random=False, metric=False, max_points=1_000_000),
        "hdbscan": Method(HDBSCAN, hierarchical=True, random=False, metric=False, max_points=100_000),
        "perch": Method(Perch, hierarchical=True, random=True, metric=False, max_points=100_000),
        "grinch": Method(Grinch, hierarchical=True, random=True, metric=True, max_points=100_000),
        "ghhc": Method(GHHC, hierarchical=True, random=True, metric=False, max_points=200_000),
        "hkm": Method(HKM, hierarchical=True, random=True, metric=False, max_points=1_000_000),
        "rhc": Method(RHC, hierarchical=True, random=False, metric=False, max_points=1_000),
        "kmeans": Method(KMeans, hierarchical=False, random=True, metric=False, max_points=1_000_000),
        "bisecting-kmeans": Method(
            BisectingKMeans, hierarchical=False, random=True, metric=False, max_points=1_000_000
        ),
        "serial-dpmeans": Method(
            SerialDPMeans, hierarchical=False, random=True, metric=False, max_points=1_000_000
        ),
        "occ-dpmeans": Method(OCCDPMeans, hierarchical=False, random=True, metric=False, max_points=1_000_000),
        "dpmeans++": Method(DPMeansPlusPlus, hierarchical=False, random=True, metric=False, max_points=1_000_000),
    }
)
"""All baselines by their short names; hierarchical methods come first."""
