"""Scores that compare a tree or a flat clustering with known classes, and the DP-means cost."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._validation import is_missing_label, to_label_array
from agglo.points.frames import to_array
from agglo.tree.hierarchy import Hierarchy


class PairwiseScores(NamedTuple):
    """Pairwise F1, precision and recall; see :func:`pairwise_f1`.

    Examples
    --------
    >>> from agglo import metrics
    >>> metrics.pairwise_f1([0, 0, 1, 1], ["a", "a", "a", "b"]).precision
    0.3333333333333333
    """

    f1: float
    precision: float
    recall: float

    @classmethod
    def from_pairs(cls, together: float, of_class: float, of_cluster: float) -> PairwiseScores:
        """Compute the scores from the numbers of pairs of points that share a class, a cluster, or both.

        ``of_class`` counts the pairs with the same class. ``of_cluster`` counts the pairs in the same cluster.
        ``together`` counts the pairs with the same class and the same cluster.

        Examples
        --------
        >>> from agglo.metrics import PairwiseScores
        >>> PairwiseScores.from_pairs(together=1, of_class=2, of_cluster=2)
        PairwiseScores(f1=0.5, precision=0.5, recall=0.5)
        """
        # Python integers are exact, so each ratio is rounded only once.
        return cls(
            f1=2 * together / (of_class + of_cluster) if of_class + of_cluster else 1.0,
            precision=together / of_cluster if of_cluster else 1.0,
            recall=together / of_class if of_class else 1.0,
        )


class RoundScores(NamedTuple):
    """Pairwise F1, precision and recall of every round: entry ``i`` scores ``tree.labels(round=i)``.

    Examples
    --------
    >>> import agglo
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> agglo.metrics.pairwise_f1_by_round(tree, ["a", "a", "b"]).f1
    array([0. , 1. , 0.5])
    """

    f1: npt.NDArray[np.float64]
    precision: npt.NDArray[np.float64]
    recall: npt.NDArray[np.float64]

    @classmethod
    def from_pairs(cls, together: npt.NDArray[Any], of_class: float, of_cluster: npt.NDArray[Any]) -> RoundScores:
        """Compute the scores of each round from numbers of pairs of points; see :meth:`PairwiseScores.from_pairs`.

        Examples
        --------
        >>> import numpy as np
        >>> from agglo.metrics import RoundScores
        >>> RoundScores.from_pairs(np.array([0, 1]), of_class=2, of_cluster=np.array([0, 2])).f1
        array([0. , 0.5])
        """

        def divide(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
            return np.asarray(np.divide(part, whole, out=np.ones(len(whole)), where=whole > 0), np.float64)

        same_class = np.full(len(together), of_class)
        return cls(
            f1=divide(2 * together, same_class + of_cluster),
            precision=divide(together, of_cluster),
            recall=divide(together, same_class),
        )


def dendrogram_purity(tree: Hierarchy, y: npt.ArrayLike) -> float:
    """Compute the dendrogram purity of a tree against known classes.

    Each pair of points with the same class has a least common ancestor in the tree. The purity of the pair is the
    share of this ancestor's leaves that have the class of the pair. Dendrogram purity is the mean over all such
    pairs, computed without sampling. A perfect tree has purity 1. For N leaves and any shape of tree, the
    computation takes O(N log N) time.

    Parameters
    ----------
    tree : Hierarchy
        The tree; its nodes may have any number of children.
    y : array-like of shape (n_leaves,)
        The class of each point: integers, strings or other hashable values. Every point needs a class. The value
        -1 is a class like any other.

    Returns
    -------
    float
        The dendrogram purity, larger than 0 and at most 1.

    Raises
    ------
    ValueError
        If no two points have the same class, because then there is no pair to average over.

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
    classes = _encode_classes(tree, y)
    purity: float = _core.dendrogram_purity(tree.parent, tree.size, classes, int(classes.max()) + 1)
    if math.isnan(purity):
        raise ValueError(
            f"dendrogram purity is undefined: no two of the {len(classes)} points have the same class, "
            "and it is a mean over such pairs. Pass a y with fewer classes"
        )
    return purity


def pairwise_f1(y: npt.ArrayLike, labels: npt.ArrayLike) -> PairwiseScores:
    """Compute pairwise F1, precision and recall of a clustering against known classes.

    Precision is the share of same-cluster pairs of points that also have the same class. Recall is the share of
    same-class pairs that are also in the same cluster. F1 is the harmonic mean of precision and recall. If there
    are no such pairs, a share is defined as 1.

    Parameters
    ----------
    y, labels : array-like of shape (n_points,)
        The class and the cluster of each point: integers, strings or other hashable values. -1 is a class or a
        cluster like any other.

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
    classes, clusters = encode_labels("y", y), encode_labels("labels", labels)
    if len(classes) != len(clusters):
        raise ValueError(f"y has {len(classes)} labels and labels has {len(clusters)}: pass one of each per point")
    both = classes.astype(np.int64) * (int(clusters.max()) + 1) + clusters
    together = _count_pairs(np.unique(both, return_counts=True)[1])
    of_class, of_cluster = _count_pairs(np.bincount(classes)), _count_pairs(np.bincount(clusters))
    return PairwiseScores.from_pairs(together, of_class, of_cluster)


def pairwise_f1_by_round(tree: Hierarchy, y: npt.ArrayLike) -> RoundScores:
    """Compute pairwise F1, precision and recall after every round of a tree; see :func:`pairwise_f1`.

    All rounds together take O(N log N) time for N leaves.

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
    classes = _encode_classes(tree, y)
    met = _core.count_pairs_by_lca(tree.parent, tree.size, classes, int(classes.max()) + 1)
    sizes = tree.size.astype(np.int64)
    pairs = sizes * (sizes - 1) // 2
    new_pairs = pairs.copy()  # number of pairs of points in each node that are in no child of the node
    np.subtract.at(new_pairs, tree.parent[:-1], pairs[:-1])
    together, of_cluster = (_sum_by_round(tree, column) for column in (met, new_pairs))
    return RoundScores.from_pairs(together, _count_pairs(np.bincount(classes)), of_cluster)


def dp_means_cost(X: npt.ArrayLike, labels: npt.ArrayLike, lam: SupportsFloat) -> float:
    """Compute the DP-means cost: the squared distance of each point to its cluster mean, plus ``lam`` per cluster.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The points, as a dense array. Sums are computed in float64 for any dtype of ``X``.
    labels : array-like of shape (n_points,)
        The cluster of each point. The value -1 is a cluster like any other.
    lam : float
        The cost per cluster (λ), 0 or larger.

    Returns
    -------
    float
        The DP-means cost.

    Examples
    --------
    >>> from agglo import metrics
    >>> metrics.dp_means_cost([[0.0], [2.0], [9.0]], [0, 0, 1], lam=0.5)
    3.0
    """
    from sklearn.utils import check_array  # slow to import

    points = np.ascontiguousarray(check_array(to_array(X), dtype=[np.float64, np.float32], input_name="X"))
    clusters = encode_labels("labels", labels)
    if len(clusters) != len(points):
        raise ValueError(f"labels has {len(clusters)} entries, but X has {len(points)} points: pass one per point")
    cluster_cost = float(lam) if isinstance(lam, int | float | np.number) else math.nan
    if not (math.isfinite(cluster_cost) and cluster_cost >= 0):
        raise ValueError(f"lam={lam!r} is not allowed: pass a finite number that is not negative")
    counts = np.bincount(clusters)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    order = np.argsort(clusters, kind="stable")
    within: float = _core.sum_within_clusters(points, order, bounds)
    return within + cluster_cost * len(counts)


def _count_pairs(counts: npt.NDArray[np.int64]) -> int:
    """Return the total number of pairs of points within groups, given the size of each group."""
    return int((counts * (counts - 1) // 2).sum())  # fits 64 bits: less than 2^61 for up to 2^31 points


def _sum_by_round(tree: Hierarchy, column: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return, for each round from 0, the sum of ``column`` over all nodes created up to this round."""
    sums = np.zeros(len(tree.rounds) + 2, np.int64)
    np.add.at(sums, tree.round, column)
    return np.cumsum(sums[:-1])  # leave out the added root of a forest, which no round created


def _encode_classes(tree: Hierarchy, y: npt.ArrayLike) -> npt.NDArray[np.int32]:
    if not isinstance(tree, Hierarchy):
        raise TypeError(f"expected a Hierarchy, got {type(tree).__name__}")
    classes = encode_labels("y", y)
    if len(classes) != tree.n_leaves:
        raise ValueError(
            f"y has {len(classes)} labels, but the tree has {tree.n_leaves} leaves: pass one label per leaf"
        )
    return classes


def encode_labels(name: str, labels: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Encode labels of any type as integers from 0 to k - 1; equal labels get the same integer.

    Error messages call the labels ``name``.
    """
    given = to_label_array(labels)
    if given.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one label per point, got shape {given.shape}")
    if not len(given):
        raise ValueError(f"{name} is empty: pass at least one label")
    if given.dtype.kind in "biufcmM":
        is_missing = np.isnat(given) if given.dtype.kind in "mM" else np.isnan(given)
        if is_missing.any():
            raise _missing_label_error(name, int(is_missing.argmax()), given[is_missing.argmax()])
        return np.unique(given, return_inverse=True)[1].astype(np.int32)
    code_of: dict[Any, int] = {}
    values = given.tolist()
    try:
        codes = np.fromiter((code_of.setdefault(value, len(code_of)) for value in values), np.int32, len(values))
    except TypeError as error:
        raise TypeError(f"{name} has a value that cannot be a label ({error}): pass integers or strings") from None
    for value, code in code_of.items():
        if is_missing_label(value):
            raise _missing_label_error(name, int((codes == code).argmax()), value)
    return codes


def _missing_label_error(name: str, index: int, value: object) -> ValueError:
    return ValueError(f"{name}[{index}] is {value}: every point needs a label; leave out the points without one")
