"""Evaluation: how well a tree or a flat clustering fits known classes, or its points."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.evaluation.coherence import Coherence as Coherence
from agglo.evaluation.coherence import coherence as coherence
from agglo.points.frames import to_array
from agglo.tree.hierarchy import Hierarchy


class PairwiseScores(NamedTuple):
    """How well the pairs of points that a clustering puts together match those of one class."""

    f1: float
    precision: float
    recall: float


class RoundScores(NamedTuple):
    """The same for the partition after every round: entry ``i`` is that of ``tree.labels(round=i)``."""

    f1: npt.NDArray[np.float64]
    precision: npt.NDArray[np.float64]
    recall: npt.NDArray[np.float64]


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
    >>> from agglo.tree.hierarchy import Rounds
    >>> rounds = Rounds(threshold=[0.5, 1.0], before=[4, 3], after=[3, 1], seconds=[0.0, 0.0])
    >>> parent, height = [4, 4, 5, 5, 5, -1], [0, 0, 0, 0, 0.4, 0.9]
    >>> tree = Hierarchy(parent, height, size=[1, 1, 1, 1, 2, 4], round=[0, 0, 0, 0, 1, 2], rounds=rounds)
    >>> metrics.dendrogram_purity(tree, ["a", "a", "b", "b"])  # 1 for the pair of a, 2/4 for that of b
    0.75
    """
    classes = _classes(tree, y)
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
    classes, clusters = label_codes("y", y), label_codes("labels", labels)
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


def pairwise_f1_by_round(tree: Hierarchy, y: npt.ArrayLike) -> RoundScores:
    """F1, precision and recall of the partition after every round, as :func:`pairwise_f1` defines them.

    All rounds together take O(N log N) for N leaves, however many rounds there are.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    y : array-like of shape (n_leaves,)
        The class of each point, as for :func:`dendrogram_purity`.

    Returns
    -------
    RoundScores
        A named tuple of arrays ``(f1, precision, recall)`` with ``len(tree.rounds) + 1`` entries.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.9, 0.2, 0.8], kind="similarity")
    >>> scores = agglo.metrics.pairwise_f1_by_round(agglo.hac(graph), ["a", "a", "b", "b"])
    >>> scores.f1
    array([0.        , 0.66666667, 1.        , 0.5       ])
    >>> int(scores.f1.argmax())
    2
    """
    classes = _classes(tree, y)
    rounds = len(tree.rounds)
    met = _core.pairs_met(tree.parent, tree.size, classes, int(classes.max()) + 1)
    sizes = tree.size.astype(np.int64)
    pairs = sizes * (sizes - 1) // 2
    joined = pairs.copy()  # pairs that a node brings together: its own without its children's
    np.subtract.at(joined, tree.parent[:-1], pairs[:-1])
    together, of_cluster = (_by_round(tree, column) for column in (met, joined))
    of_class = np.full(rounds + 1, _pairs(np.bincount(classes)))
    return RoundScores(
        f1=_share(2 * together, of_class + of_cluster),
        precision=_share(together, of_cluster),
        recall=_share(together, of_class),
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

    points = np.ascontiguousarray(check_array(to_array(X), dtype=[np.float64, np.float32], input_name="X"))
    clusters = label_codes("labels", labels)
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


def _by_round(tree: Hierarchy, column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The sums of a column over the nodes of each round and all before; a forest's root is of none."""
    sums = np.zeros(len(tree.rounds) + 2, np.int64)
    np.add.at(sums, tree.round, column)
    return np.cumsum(sums[:-1])


def _share(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.divide(part, whole, out=np.ones(len(whole)), where=whole > 0)


def _classes(tree: Hierarchy, y: npt.ArrayLike) -> npt.NDArray[np.int32]:
    if not isinstance(tree, Hierarchy):
        raise TypeError(f"expected a Hierarchy, got {type(tree).__name__}")
    classes = label_codes("y", y)
    if len(classes) != tree.n_leaves:
        raise ValueError(f"y has {len(classes)} labels, but the tree has {tree.n_leaves} leaves: pass one a leaf")
    return classes


def label_codes(name: str, labels: npt.ArrayLike) -> npt.NDArray[np.int32]:
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
