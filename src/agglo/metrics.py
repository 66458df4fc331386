"""Evaluation: how well a tree or a flat clustering fits known classes, or its points."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.tree import Hierarchy


class PairwiseScores(NamedTuple):
    """How well the pairs of points that a clustering puts together match those of one class."""

    f1: float
    precision: float
    recall: float


def dendrogram_purity(tree: Hierarchy, y: npt.ArrayLike) -> float:
    """Mean purity of the least common ancestors of all pairs of points of one class: 1 for a perfect tree.

    The purity of an ancestor is the share of the pair's class among its leaves. All pairs count, by exact
    counting and not by sampling, in O(N log N) for N leaves and any shape of tree.

    Parameters
    ----------
    tree : Hierarchy
        The tree; its nodes may have any number of children.
    y : array-like of shape (n_leaves,)
        The class of each point: integers, strings or anything else that can be told apart. There is no label
        for "no class": -1 is a class like any other.

    Returns
    -------
    float
        In (0, 1].

    Raises
    ------
    ValueError
        If no two points share a class: there is no pair to take the mean over.

    Examples
    --------
    >>> from agglo import Hierarchy, metrics
    >>> from agglo.tree import Rounds
    >>> rounds = Rounds(threshold=[0.5, 1.0], before=[4, 3], after=[3, 1], seconds=[0.0, 0.0])
    >>> parent, height = [4, 4, 5, 5, 5, -1], [0, 0, 0, 0, 0.4, 0.9]
    >>> tree = Hierarchy(parent, height, size=[1, 1, 1, 1, 2, 4], round=[0, 0, 0, 0, 1, 2], rounds=rounds)
    >>> metrics.dendrogram_purity(tree, ["a", "a", "b", "b"])  # 1 for the pair of a, 2/4 for that of b
    0.75
    """
    if not isinstance(tree, Hierarchy):
        raise TypeError(f"expected a Hierarchy, got {type(tree).__name__}")
    classes = _codes("y", y)
    if len(classes) != tree.n_leaves:
        raise ValueError(f"y has {len(classes)} labels, but the tree has {tree.n_leaves} leaves: pass one a leaf")
    purity: float = _core.dendrogram_purity(tree.parent, tree.size, classes, int(classes.max()) + 1)
    if math.isnan(purity):
        raise ValueError(
            f"dendrogram purity is undefined: no two of the {len(classes)} points share a class in y, "
            "and it is a mean over such pairs"
        )
    return purity


def pairwise_f1(y: npt.ArrayLike, labels: npt.ArrayLike) -> PairwiseScores:
    """F1, precision and recall of the pairs that ``labels`` puts together, against those that share a class.

    Precision is the share of pairs in one cluster that are of one class, recall the share of pairs of one
    class that are in one cluster, F1 their harmonic mean. Where there is no pair to take a share of, it is 1:
    nothing was wrongly joined, or nothing was missed.

    Parameters
    ----------
    y, labels : array-like of shape (n_points,)
        The class and the cluster of each point, as integers, strings or anything else that can be told apart.
        -1 is a class or a cluster like any other.

    Returns
    -------
    PairwiseScores
        A named tuple ``(f1, precision, recall)``.

    Examples
    --------
    >>> from agglo import metrics
    >>> metrics.pairwise_f1(["a", "a", "b", "b"], [0, 0, 0, 1])
    PairwiseScores(f1=0.4, precision=0.3333333333333333, recall=0.5)
    """
    classes, clusters = _codes("y", y), _codes("labels", labels)
    if len(classes) != len(clusters):
        raise ValueError(f"y has {len(classes)} labels and labels has {len(clusters)}: pass one a point in both")
    both = classes.astype(np.int64) * (int(clusters.max()) + 1) + clusters
    together = _pairs(np.unique(both, return_counts=True)[1])
    of_class, of_cluster = _pairs(np.bincount(classes)), _pairs(np.bincount(clusters))
    # Integers of any size, so that each share is rounded only once.
    return PairwiseScores(
        f1=2 * together / (of_class + of_cluster) if of_class + of_cluster else 1.0,
        precision=together / of_cluster if of_cluster else 1.0,
        recall=together / of_class if of_class else 1.0,
    )


def dp_means_cost(X: npt.ArrayLike, labels: npt.ArrayLike, lam: SupportsFloat) -> float:
    """Cost of a flat clustering: squared distances of points to their cluster's mean, plus ``lam`` a cluster.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The points, dense. Sums are in float64, whatever the type of ``X``.
    labels : array-like of shape (n_points,)
        The cluster of each point; -1 is a cluster like any other.
    lam : float
        The price of a cluster, not negative.

    Returns
    -------
    float
        The DP-means objective.

    Examples
    --------
    >>> from agglo import metrics
    >>> metrics.dp_means_cost([[0.0], [2.0], [9.0]], [0, 0, 1], lam=0.5)
    3.0
    """
    from sklearn.utils import check_array  # takes long to import, and nothing else here needs it

    points = np.ascontiguousarray(check_array(X, dtype=[np.float64, np.float32], input_name="X"))
    clusters = _codes("labels", labels)
    if len(clusters) != len(points):
        raise ValueError(f"labels has {len(clusters)} entries, but X has {len(points)} points: pass one a point")
    price = float(lam) if isinstance(lam, int | float | np.number) else math.nan
    if not (math.isfinite(price) and price >= 0):
        raise ValueError(f"lam={lam!r} is no price of a cluster: pass a finite number that is not negative")
    counts = np.bincount(clusters)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    order = np.argsort(clusters, kind="stable")
    within: float = _core.within_sum(points, order, bounds)
    return within + price * len(counts)


def _pairs(counts: npt.NDArray[np.int64]) -> int:
    return int((counts * (counts - 1) // 2).sum())  # below 2^61 for up to 2^31 points


def _codes(name: str, labels: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """``labels`` as numbers 0..k-1, equal where they are equal."""
    given = np.asarray(labels)
    if given.dtype.kind in "US" and not hasattr(labels, "dtype"):
        given = np.asarray(labels, object)  # or a list's NaN would by now be the string "nan"
    if given.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, a label a point, got shape {given.shape}")
    if not len(given):
        raise ValueError(f"{name} is empty: pass at least one label")
    if given.dtype.kind in "biufcmM":
        absent = np.isnat(given) if given.dtype.kind in "mM" else np.isnan(given)
        if absent.any():
            raise _absent(name, int(absent.argmax()), given[absent.argmax()])
        return np.unique(given, return_inverse=True)[1].astype(np.int32)
    found: dict[Any, int] = {}
    values = given.tolist()
    try:
        codes = np.fromiter((found.setdefault(value, len(found)) for value in values), np.int32, len(values))
    except TypeError as error:
        raise TypeError(f"{name} holds what cannot be a label ({error}): pass integers or strings") from None
    for value, code in found.items():
        if value is None or not _equals_itself(value):
            raise _absent(name, int((codes == code).argmax()), value)
    return codes


def _equals_itself(value: Any) -> bool:
    try:
        return bool(value == value)  # not so for NaN
    except TypeError:  # pandas.NA equals nothing and differs from nothing
        return False


def _absent(name: str, where: int, value: object) -> ValueError:
    return ValueError(f"{name}[{where}] is {value}: every point needs a label; leave out those without one")
