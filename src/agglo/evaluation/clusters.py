"""Descriptions of the clusters of a cut: centers, examples, cohesion, separation and outliers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._validation import check_labels, check_positive
from agglo.evaluation.terms import terms
from agglo.neighbors.search import neighbor_graph
from agglo.points.points import PointArray, check_points
from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MEDOID_METRICS = ("sqeuclidean", "euclidean", "cosine")

# The number of rows or columns of a block. Points are converted to float64 block by block, to save memory.
_ROWS = 4096
_COLUMNS = 16


class Spread(NamedTuple):
    """The size, cohesion, separation and nearest cluster of each cluster: arrays with one entry per cluster.

    Examples
    --------
    >>> from agglo import contents
    >>> contents.spread([[0.0], [2.0], [5.0], [5.0]], [0, 0, 1, 1])
    Spread(size=array([2, 2]), cohesion=array([1., 0.]), separation=array([4., 4.]), nearest=array([1, 0]))
    """

    size: Ints
    """The number of points of each cluster."""
    cohesion: Floats
    """The root mean square distance of the cluster's points to its center. If all points are equal, it is 0."""
    separation: Floats
    """The distance of the cluster's center to the nearest other center. If there is only one cluster, infinity."""
    nearest: Ints
    """The cluster with the nearest other center. If there is only one cluster, it is -1."""


class FirstMerge(NamedTuple):
    """The first merge of each point into a large enough cluster: arrays with one entry per point.

    Examples
    --------
    >>> import agglo
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> agglo.contents.first_merge(tree).height
    array([1. , 1. , 4.5])
    """

    node: npt.NDArray[np.int32]
    """The tree node of the cluster into which the point is merged."""
    round: npt.NDArray[np.int32]
    """The round of the merge. If the last round leaves several clusters, an added root merges them.

    The round of this added root is ``len(tree.rounds) + 1``.
    """
    height: Floats
    """The height of the merge, as a distance: larger means later."""


def centers(X: npt.ArrayLike, labels: npt.ArrayLike) -> Floats:
    """Compute the center of each cluster, the mean of its points; return one row per cluster.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The points.
    labels : array-like of shape (n_points,)
        The cluster of each point, from 0 to k - 1. Points with the label -1 are in no cluster.

    Examples
    --------
    >>> from agglo.contents import centers
    >>> centers([[0.0, 0.0], [2.0, 4.0], [9.0, 9.0]], [0, 0, 1])
    array([[1., 2.],
           [9., 9.]])
    """
    points, clusters, size = _check_input(X, labels)
    return _compute_means(points, clusters, size)


def examples(X: npt.ArrayLike, labels: npt.ArrayLike, n: SupportsIndex = 5) -> Ints:
    """Find the ``n`` points nearest to each cluster's center; return one row of point indices per cluster.

    Each row is sorted from the nearest point to the farthest. Equally near points are sorted by index. If a
    cluster has fewer than ``n`` points, the rest of its row is filled with -1.

    Parameters
    ----------
    X, labels
        The points and their clusters, as for :func:`centers`.
    n : int
        The number of points per cluster.

    Examples
    --------
    >>> from agglo.contents import examples
    >>> examples([[0.0], [3.0], [4.0], [9.0]], [0, 0, 0, 1], n=2)
    array([[ 1,  2],
           [ 3, -1]])
    """
    points, clusters, size = _check_input(X, labels)
    wanted = check_positive("n", n)
    squares = _squared_distances(points, clusters, _compute_means(points, clusters, size))
    order = np.lexsort((squares, clusters))[np.count_nonzero(clusters < 0) :]
    first = np.cumsum(size) - size
    column = np.arange(wanted)
    found = order[np.minimum(first[:, None] + column, len(order) - 1)]
    return np.where(column < size[:, None], found, -1)


def medoids(
    X: npt.ArrayLike, labels: npt.ArrayLike, metric: Literal["sqeuclidean", "euclidean", "cosine"] = "sqeuclidean"
) -> Ints:
    """Find the medoid of each cluster: the point with the smallest sum of distances to the other points.

    The result has the index of one point per cluster. If several points have the same sum, the smallest index is
    returned.

    Parameters
    ----------
    X, labels
        The points and their clusters, as for :func:`centers`.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        The distance. For squared Euclidean and cosine distances, the medoid is computed from the mean of the
        cluster, in linear time. Euclidean distances are summed over all pairs of points of a cluster. This takes
        time quadratic in the size of the cluster.

    Examples
    --------
    >>> from agglo.contents import medoids
    >>> X = [[0.0], [1.0], [2.0], [30.0]]
    >>> medoids(X, [0, 0, 0, 0])
    array([2])
    >>> medoids(X, [0, 0, 0, 0], metric="euclidean")
    array([1])
    """
    if metric not in MEDOID_METRICS:
        raise ValueError(f"metric={metric!r} is unknown: pass one of {', '.join(map(repr, MEDOID_METRICS))}")
    points, clusters, size = _check_input(X, labels)
    if metric == "euclidean":
        sums = _distance_sums(points, clusters, size)
    elif metric == "sqeuclidean":
        sums = _squared_distances(points, clusters, _compute_means(points, clusters, size))
    else:
        sums = _negative_cosines(points, clusters, size)
    order = np.lexsort((sums, clusters))[np.count_nonzero(clusters < 0) :]
    return np.asarray(order[np.cumsum(size) - size])


def spread(X: npt.ArrayLike, labels: npt.ArrayLike) -> Spread:
    """Compute the size, the cohesion and the separation of each cluster, and its nearest cluster.

    Compare the ratio of cohesion to separation among the clusters. If the ratio of a cluster is large, the cluster
    overlaps with its nearest cluster.

    Parameters
    ----------
    X, labels
        The points and their clusters, as for :func:`centers`.

    Examples
    --------
    >>> from agglo.contents import spread
    >>> found = spread([[0.0], [2.0], [10.0], [10.0], [40.0]], [0, 0, 1, 1, 2])
    >>> found.cohesion
    array([1., 0., 0.])
    >>> found.separation
    array([ 9.,  9., 30.])
    >>> found.nearest
    array([1, 0, 1])
    """
    points, clusters, size = _check_input(X, labels)
    means = _compute_means(points, clusters, size)
    kept = clusters >= 0
    within = np.bincount(clusters[kept], _squared_distances(points, clusters, means)[kept], len(size))
    nearest = _find_nearest_rows(means)
    separation = np.full(len(size), np.inf)
    if len(size) > 1:
        separation = np.sqrt(((means - means[nearest]) ** 2).sum(axis=1))
    return Spread(size, np.sqrt(within / size), separation, nearest)


def first_merge(tree: Hierarchy, min_size: SupportsIndex = 2) -> FirstMerge:
    """Find the first merge of each point into a cluster of at least ``min_size`` points.

    Points whose first merge has a large height are outliers. A larger ``min_size`` also finds small groups of
    outliers.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    min_size : int
        The smallest number of points of a cluster, at least 2.

    Examples
    --------
    >>> import agglo
    >>> from agglo.contents import first_merge
    >>> X = [[0.0], [1.0], [2.0], [50.0], [51.0], [200.0]]
    >>> tree = agglo.hac(agglo.neighbor_graph(X, "all", "euclidean"))
    >>> first_merge(tree).height
    array([  1. ,   1. ,   1.5,   1. ,   1. , 179.2])
    >>> first_merge(tree, min_size=3).height
    array([  1.5,   1.5,   1.5,  49.5,  49.5, 179.2])
    """
    least = check_positive("min_size", min_size)
    if least > tree.n_leaves or (least < 2 and tree.n_leaves > 1):
        raise ValueError(
            f"min_size={least} is out of range: pass a number from 2 to {tree.n_leaves}, the number of leaves"
        )
    ancestor = np.where(tree.size < least, tree.parent, np.arange(len(tree.size), dtype=np.int32))
    while (tree.size[ancestor] < least).any():  # pointer jumping: each pass doubles the length of the pointers
        ancestor = ancestor[ancestor]
    node = ancestor[: tree.n_leaves]
    return FirstMerge(node, tree.round[node], tree.height[node])


def describe(
    tree: Hierarchy,
    labels: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    texts: Iterable[str] | None = None,
) -> Any:
    """Describe each cluster of a cut; return a pandas.DataFrame with one row per cluster, largest first.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    labels : array-like of shape (n_leaves,)
        The labels of a cut of the tree.
    X : array-like of shape (n_leaves, n_features), optional
        The points, for the columns ``cohesion``, ``separation`` and ``nearest`` (see :class:`Spread`) and
        ``medoid`` (see :func:`medoids`).
    texts : iterable of str, optional
        One text per point, for the column ``terms``. It lists the terms that distinguish a cluster from its
        siblings in the tree.

    Returns
    -------
    pandas.DataFrame
        The index is ``cluster``. The columns ``size`` and ``node`` are the number of points and the tree node of
        the cluster. ``height`` is the height of this node. ``until`` is the height of the parent of the node, or
        NaN for the root. ``X`` and ``texts`` add further columns.

    Examples
    --------
    >>> import agglo
    >>> from agglo.contents import describe
    >>> X = [[0.0], [1.0], [50.0], [52.0], [53.0]]
    >>> tree = agglo.hac(agglo.neighbor_graph(X, "all", "euclidean"))
    >>> frame = describe(tree, tree.cut(2), X)
    >>> frame.reset_index()[["cluster", "size", "height", "until", "medoid", "separation"]]
       cluster  size  height      until  medoid  separation
    0        1     3     2.5  51.166667       3   51.166667
    1        0     2     1.0  51.166667       0   51.166667
    """
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("describe needs pandas, which is not installed: pip install pandas") from None

    nodes = tree.nodes(labels)
    until = np.append(tree.height, np.nan)[tree.parent[nodes]]  # the root has parent -1
    columns: dict[str, Any] = {
        "size": tree.size[nodes],
        "node": nodes,
        "height": tree.height[nodes],
        "until": until,
    }
    if X is not None:
        found = spread(X, labels)
        columns |= {"cohesion": found.cohesion, "separation": found.separation, "nearest": found.nearest}
        columns["medoid"] = medoids(X, labels)
    if texts is not None:
        columns["terms"] = terms(texts, labels, tree=tree)
    frame = pd.DataFrame(columns).rename_axis("cluster")
    return frame.sort_values("size", ascending=False, kind="stable")


def _check_input(X: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[PointArray, Ints, Ints]:
    points = check_points(X, half=True)
    clusters, size = check_labels(labels, len(points), "X")
    return points, clusters, size


def _compute_means(points: PointArray, clusters: Ints, size: Ints) -> Floats:
    kept = np.flatnonzero(clusters >= 0)
    share = 1.0 / size[clusters[kept]]
    members = sp.csr_array((share, (clusters[kept], kept)), shape=(len(size), len(points)))
    means = np.empty((len(size), points.shape[1]))
    for first in range(0, points.shape[1], _COLUMNS):
        columns = slice(first, first + _COLUMNS)
        means[:, columns] = members @ points[:, columns].astype(np.float64)
    return means


def _squared_distances(points: PointArray, clusters: Ints, means: Floats) -> Floats:
    """Return the squared distance of each point to the center of its cluster.

    The values of points with the label -1 are meaningless.
    """
    squares = np.empty(len(points))
    for first in range(0, len(points), _ROWS):
        rows = slice(first, first + _ROWS)
        difference = points[rows].astype(np.float64) - means[clusters[rows]]
        squares[rows] = np.einsum("ij,ij->i", difference, difference)
    return squares


def _negative_cosines(points: PointArray, clusters: Ints, size: Ints) -> Floats:
    """Return the negated mean cosine of each point to all points of its cluster."""
    lengths = np.sqrt(_squared_distances(points, np.zeros(len(points), np.int64), np.zeros((1, points.shape[1]))))
    scale = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    kept = np.flatnonzero(clusters >= 0)
    members = sp.csr_array((scale[kept] / size[clusters[kept]], (clusters[kept], kept)), (len(size), len(points)))
    cosines = np.zeros(len(points))
    for first in range(0, points.shape[1], _COLUMNS):
        columns = points[:, first : first + _COLUMNS].astype(np.float64)
        cosines += np.einsum("ij,ij->i", columns, (members @ columns)[clusters])
    return -scale * cosines


def _distance_sums(points: PointArray, clusters: Ints, size: Ints) -> Floats:
    """Return, for each point, the sum of its Euclidean distances to all points of its cluster."""
    sums = np.zeros(len(points))
    order = np.argsort(clusters, kind="stable")[np.count_nonzero(clusters < 0) :]
    ends = np.cumsum(size)
    for first, last in zip(ends - size, ends, strict=True):
        members = order[first:last]
        own = points[members].astype(np.float64)
        own -= own.mean(axis=0)  # avoids cancellation in the products if points are far from the origin
        squares = np.einsum("ij,ij->i", own, own)
        for begin in range(0, len(members), _ROWS):
            rows = slice(begin, begin + _ROWS)
            between = squares[rows, None] + squares - 2 * (own[rows] @ own.T)
            sums[members[rows]] = np.sqrt(np.maximum(between, 0.0)).sum(axis=1)
    return sums


def _find_nearest_rows(means: Floats) -> Ints:
    """Return, for each row of ``means``, the index of the nearest other row.

    Among equally near rows, return the smallest index. If there is only one row, return -1.
    """
    if len(means) == 1:
        return np.full(1, -1)
    graph = neighbor_graph(means, 1, "sqeuclidean", missing=None)
    first = graph.indptr[:-1]
    rows = np.repeat(np.arange(len(means)), np.diff(graph.indptr))
    closest = np.minimum.reduceat(graph.weights, first)
    candidates = np.where(graph.weights == closest[rows], graph.indices, len(means))
    return np.minimum.reduceat(candidates, first).astype(np.int64)
