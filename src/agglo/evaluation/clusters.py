"""What is in the clusters of a cut: examples, how tight and how far apart they are, and outliers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._validation import check_positive
from agglo.evaluation.terms import terms as terms
from agglo.points.validation import Points, check_labels, check_points
from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MEDOID_METRICS = ("sqeuclidean", "euclidean", "cosine")

_ROWS = 4096  # at a time, so that results in float64 need little memory
_COLUMNS = 16


class Spread(NamedTuple):
    """How tight clusters are, and how far from one another: an entry a cluster in each column."""

    size: Ints
    """The number of points."""
    cohesion: Floats
    """The root of the mean squared distance of the points to the center: 0 for copies of one point."""
    separation: Floats
    """The distance of the center to the nearest other one; infinite if there is no other."""
    nearest: Ints
    """The cluster of that other center; -1 if there is none."""


class Absorbed(NamedTuple):
    """Where each point stopped being alone: an entry a point in each column."""

    node: npt.NDArray[np.int32]
    """The node that took it up."""
    round: npt.NDArray[np.int32]
    """The round of that merge; one more than the number of rounds if it is the root of a forest, so no merge."""
    height: Floats
    """The height of that merge, a distance."""


def centers(X: npt.ArrayLike, labels: npt.ArrayLike) -> Floats:
    """The means of the clusters, a row each, in float64.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The points.
    labels : array-like of shape (n_points,)
        The cluster of each point, 0 to k - 1; -1 for a point of none.

    Examples
    --------
    >>> from agglo.contents import centers
    >>> centers([[0.0, 0.0], [2.0, 4.0], [9.0, 9.0]], [0, 0, 1])
    array([[1., 2.],
           [9., 9.]])
    """
    points, clusters, size = _checked(X, labels)
    return _means(points, clusters, size)


def examples(X: npt.ArrayLike, labels: npt.ArrayLike, n: SupportsIndex = 5) -> Ints:
    """The points nearest the center of their cluster, a row a cluster, the nearest first.

    Rows of smaller clusters end in -1. Of equally near points the first comes first.

    Parameters
    ----------
    X, labels
        As for :func:`centers`.
    n : int
        How many points of each cluster.

    Examples
    --------
    >>> from agglo.contents import examples
    >>> examples([[0.0], [3.0], [4.0], [9.0]], [0, 0, 0, 1], n=2)
    array([[ 1,  2],
           [ 3, -1]])
    """
    points, clusters, size = _checked(X, labels)
    wanted = check_positive("n", n)
    squares = _squares(points, clusters, _means(points, clusters, size))
    order = np.lexsort((squares, clusters))[np.count_nonzero(clusters < 0) :]
    first = np.cumsum(size) - size
    column = np.arange(wanted)
    found = order[np.minimum(first[:, None] + column, len(order) - 1)]
    return np.where(column < size[:, None], found, -1)


def medoids(
    X: npt.ArrayLike, labels: npt.ArrayLike, metric: Literal["sqeuclidean", "euclidean", "cosine"] = "sqeuclidean"
) -> Ints:
    """The point of each cluster that has the least sum of distances to all its points, the first of equals.

    Parameters
    ----------
    X, labels
        As for :func:`centers`.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        What distance is. For squared distances and cosines the mean says which point it is, in one pass over the
        points; plain distances are summed over all pairs within a cluster.

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
    points, clusters, size = _checked(X, labels)
    if metric == "euclidean":
        sums = _distance_sums(points, clusters, size)
    elif metric == "sqeuclidean":
        sums = _squares(points, clusters, _means(points, clusters, size))
    else:
        sums = _minus_cosines(points, clusters, size)
    order = np.lexsort((sums, clusters))[np.count_nonzero(clusters < 0) :]
    return np.asarray(order[np.cumsum(size) - size])


def spread(X: npt.ArrayLike, labels: npt.ArrayLike) -> Spread:
    """Size, cohesion and separation of each cluster, and which other cluster is nearest.

    Where the cohesion is large against the separation, as compared with other clusters, two run into one another.

    Parameters
    ----------
    X, labels
        As for :func:`centers`.

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
    points, clusters, size = _checked(X, labels)
    means = _means(points, clusters, size)
    kept = clusters >= 0
    within = np.bincount(clusters[kept], _squares(points, clusters, means)[kept], len(size))
    nearest = _nearest(means)
    separation = np.full(len(size), np.inf)
    if len(size) > 1:
        separation = np.sqrt(((means - means[nearest]) ** 2).sum(axis=1))
    return Spread(size, np.sqrt(within / size), separation, nearest)


def absorbed(tree: Hierarchy, min_size: SupportsIndex = 2) -> Absorbed:
    """The round and the height at which each point came into a cluster of at least ``min_size`` points.

    Points that are absorbed late are outliers. Those that come in twos or threes show with a larger ``min_size``.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    min_size : int
        How many points make a cluster, from 2.

    Examples
    --------
    >>> import agglo
    >>> from agglo.contents import absorbed
    >>> X = [[0.0], [1.0], [2.0], [50.0], [51.0], [200.0]]
    >>> tree = agglo.hac(agglo.neighbor_graph(X, "all", "euclidean"))
    >>> absorbed(tree).height
    array([  1. ,   1. ,   1.5,   1. ,   1. , 179.2])
    >>> absorbed(tree, min_size=3).height
    array([  1.5,   1.5,   1.5,  49.5,  49.5, 179.2])
    """
    least = check_positive("min_size", min_size)
    if least > tree.n_leaves or (least < 2 and tree.n_leaves > 1):
        raise ValueError(
            f"min_size={least} is no number that a point can come to: pass one from 2 to {tree.n_leaves}, "
            "the number of leaves"
        )
    above = np.where(tree.size < least, tree.parent, np.arange(len(tree.size), dtype=np.int32))
    while (tree.size[above] < least).any():  # steps up become twice as long each time
        above = above[above]
    node = above[: tree.n_leaves]
    return Absorbed(node, tree.round[node], tree.height[node])


def describe(
    tree: Hierarchy,
    labels: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    texts: Iterable[str] | None = None,
) -> Any:
    """A pandas.DataFrame with a row a cluster: what is known of the clusters of a cut, the largest first.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    labels : array-like of shape (n_leaves,)
        A cut of it.
    X : array-like of shape (n_leaves, n_features), optional
        Its points, for the columns ``cohesion``, ``separation`` and ``nearest`` (see :class:`Spread`) and
        ``medoid``, the point of least squared distances.
    texts : iterable of str, optional
        A text a point, for ``terms``, those that set a cluster apart from its siblings.

    Returns
    -------
    pandas.DataFrame
        By cluster: ``size``; ``node``, which it is in the tree; ``height``, at which it was complete, and
        ``until``, the height of the next merge (NaN for the root); and what ``X`` and ``texts`` say.

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


def _checked(X: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Points, Ints, Ints]:
    points = check_points(X, half=True)
    clusters, size = check_labels(labels, len(points), "X")
    return points, clusters, size


def _means(points: Points, clusters: Ints, size: Ints) -> Floats:
    kept = np.flatnonzero(clusters >= 0)
    share = 1.0 / size[clusters[kept]]
    members = sp.csr_array((share, (clusters[kept], kept)), shape=(len(size), len(points)))
    means = np.empty((len(size), points.shape[1]))
    for first in range(0, points.shape[1], _COLUMNS):
        columns = slice(first, first + _COLUMNS)
        means[:, columns] = members @ points[:, columns].astype(np.float64)
    return means


def _squares(points: Points, clusters: Ints, means: Floats) -> Floats:
    """The squared distance of each point to the center of its cluster; of no use for points of none."""
    squares = np.empty(len(points))
    for first in range(0, len(points), _ROWS):
        rows = slice(first, first + _ROWS)
        difference = points[rows].astype(np.float64) - means[clusters[rows]]
        squares[rows] = np.einsum("ij,ij->i", difference, difference)
    return squares


def _minus_cosines(points: Points, clusters: Ints, size: Ints) -> Floats:
    """Less the mean cosine of each point to the points of its cluster."""
    lengths = np.sqrt(_squares(points, np.zeros(len(points), np.int64), np.zeros((1, points.shape[1]))))
    scale = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    kept = np.flatnonzero(clusters >= 0)
    members = sp.csr_array((scale[kept] / size[clusters[kept]], (clusters[kept], kept)), (len(size), len(points)))
    cosines = np.zeros(len(points))
    for first in range(0, points.shape[1], _COLUMNS):
        columns = points[:, first : first + _COLUMNS].astype(np.float64)
        cosines += np.einsum("ij,ij->i", columns, (members @ columns)[clusters])
    return -scale * cosines


def _distance_sums(points: Points, clusters: Ints, size: Ints) -> Floats:
    """The sum of the distances of each point to those of its cluster, by blocks of their products."""
    sums = np.zeros(len(points))
    order = np.argsort(clusters, kind="stable")[np.count_nonzero(clusters < 0) :]
    ends = np.cumsum(size)
    for first, last in zip(ends - size, ends, strict=True):
        members = order[first:last]
        own = points[members].astype(np.float64)
        own -= own.mean(axis=0)  # products of numbers far from the origin would lose their digits
        squares = np.einsum("ij,ij->i", own, own)
        for begin in range(0, len(members), _ROWS):
            rows = slice(begin, begin + _ROWS)
            between = squares[rows, None] + squares - 2 * (own[rows] @ own.T)
            sums[members[rows]] = np.sqrt(np.maximum(between, 0.0)).sum(axis=1)
    return sums


def _nearest(means: Floats) -> Ints:
    """The row nearest each row, the first of equals; -1 for a row alone."""
    if len(means) == 1:
        return np.full(1, -1)
    from agglo.neighbors.search import neighbor_graph

    graph = neighbor_graph(means, 1, "sqeuclidean")
    first = graph.indptr[:-1]
    rows = np.repeat(np.arange(len(means)), np.diff(graph.indptr))
    closest = np.minimum.reduceat(graph.weights, first)
    candidates = np.where(graph.weights == closest[rows], graph.indices, len(means))
    return np.minimum.reduceat(candidates, first).astype(np.int64)
