"""The methods that SCC is compared with, all behind one interface.

Each is an estimator class as scikit-learn has them: parameters in the constructor, all with defaults; then
``fit(X)``, for the rows of a dense array. A fitted one has

- ``labels_``, an integer a point. With the parameter ``n_clusters``, which all but DP-means solvers have, it is
  a clustering of so many clusters, or of the next smaller number that a tree has. Without, it is what the method
  itself says, or for trees that say nothing the cut of :func:`agglo.tree.persistence.persistent_round`. -1 is
  noise, and only HDBSCAN without ``n_clusters`` has it;
- ``tree_``, a :class:`agglo.Hierarchy`, if the method is hierarchical: every inner node is a round of its own,
  from low to high, so that ``tree_.cut(n_clusters=k)`` works for any k.

A method that draws random numbers has ``random_state``: an integer makes its result repeatable.

``METHODS`` maps a short name to a :class:`Method`: the class, whether it is ``hierarchical``, whether it is
``random``, whether it takes a ``metric`` (all others are Euclidean: give them rows of length 1 to compare by
cosine, with :func:`sklearn.preprocessing.normalize`), and up to about how many ``points`` it is meant for.

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
    """A baseline, and what a benchmark must know to run it."""

    estimator: type[Any]
    """The class."""
    hierarchical: bool
    """Whether ``fit`` sets ``tree_``."""
    random: bool
    """Whether it has the parameter ``random_state``."""
    metric: bool
    """Whether it has the parameter ``metric``, ``"cosine"`` or ``"sqeuclidean"``; otherwise it is Euclidean."""
    points: int
    """About how many points it can be asked to cluster, by its time and memory."""


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "hac": Method(DenseHAC, hierarchical=True, random=False, metric=True, points=25_000),
        "birch": Method(Birch, hierarchical=True, random=False, metric=False, points=1_000_000),
        "hdbscan": Method(HDBSCAN, hierarchical=True, random=False, metric=False, points=100_000),
        "perch": Method(Perch, hierarchical=True, random=True, metric=False, points=100_000),
        "grinch": Method(Grinch, hierarchical=True, random=True, metric=True, points=100_000),
        "ghhc": Method(GHHC, hierarchical=True, random=True, metric=False, points=200_000),
        "hkm": Method(HKM, hierarchical=True, random=True, metric=False, points=1_000_000),
        "rhc": Method(RHC, hierarchical=True, random=False, metric=False, points=1_000),
        "kmeans": Method(KMeans, hierarchical=False, random=True, metric=False, points=1_000_000),
        "bisecting-kmeans": Method(
            BisectingKMeans, hierarchical=False, random=True, metric=False, points=1_000_000
        ),
        "serial-dpmeans": Method(SerialDPMeans, hierarchical=False, random=True, metric=False, points=1_000_000),
        "occ-dpmeans": Method(OCCDPMeans, hierarchical=False, random=True, metric=False, points=1_000_000),
        "dpmeans++": Method(DPMeansPlusPlus, hierarchical=False, random=True, metric=False, points=1_000_000),
    }
)
"""Every baseline by a short name, the hierarchical ones first."""
