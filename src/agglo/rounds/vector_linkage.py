"""Vector linkages: exact-average, centroid and ward, which compare the vectors of the points, not their edges.

A cluster is kept as its weight, its mean in float32 and the sum of squared distances to the mean. All three
linkages are functions of these. Only clusters with an edge between them are compared. The native core computes the
same numbers, in the same order of additions.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo.neighbors.graph import Kind, NeighborGraph
from agglo.points.validation import Points, check_points, iter_blocks
from agglo.rounds.linkage import EdgeLinkages, Float, Int

VectorLinkageName = Literal["exact-average", "centroid", "ward"]
ConnectName = VectorLinkageName | Literal["auto"]

# The metrics of each linkage: those for which its value is a function of weights, means and spreads.
VECTOR_LINKAGES: dict[str, tuple[str, ...]] = {
    "exact-average": ("cosine", "dot", "sqeuclidean"),
    "centroid": ("cosine", "sqeuclidean", "euclidean"),
    "ward": ("cosine", "sqeuclidean", "euclidean"),
}

_LANES = 8  # running sums of a product, as in the core
_ROUNDING = 1 + 1e-5  # factor by which a mean in float32 may be farther than all points
EPSILON = float(np.finfo(np.float32).eps)  # twice the rounding of a point, relative to its length
CLEAR = 10  # a distance is preserved if it is at least this many times the rounding of its two points
FEW = 0.05  # the share of edges that may be shorter without a warning, such as those of near duplicates
_EDGES = 1 << 20  # approximate number of edges per block


class Moments(NamedTuple):
    """The statistics of clusters, one row per cluster."""

    weight: Float  # total weight of the points
    mean: npt.NDArray[np.float32]  # one row per cluster
    square: Float  # squared length of the mean
    spread: Float  # sum of squared distances of the points to the mean
    point: npt.NDArray[np.bool_]  # whether the cluster is a single point


class EdgeWeights(NamedTuple):
    """The statistics of edges: their weight, which is the linkage of two single points."""

    weight: npt.NDArray[np.float32]


class MetricSpec(NamedTuple):
    """The metric and the number of points of a graph, if there is no graph."""

    metric: str | None
    n_points: int


def check_vector_linkage(linkage: str, metric: str | None, X: Any) -> None:
    """Raise if a linkage of the points cannot be computed from ``X`` by ``metric``."""
    metrics = VECTOR_LINKAGES[linkage]
    if X is None:
        raise ValueError(
            f"linkage={linkage!r} compares the points themselves, and a graph has none: pass X, the points "
            "that the graph was made of"
        )
    if metric not in metrics:
        raise ValueError(
            f"linkage={linkage!r} is not known for a graph with metric={metric!r}: make the graph with "
            f"one of {', '.join(metrics)}, or take linkage='average', which asks for nothing but a graph"
        )
    check_is_dense(X)


def check_is_dense(X: Any) -> None:
    """Raise if points are sparse: their means would be dense."""
    if sp.issparse(X):
        raise TypeError(
            f"X is a SciPy sparse {type(X).__name__}, but the mean of sparse points is dense: pass X.toarray(), "
            "or take linkage='average', which asks for nothing but the graph"
        )


def vector_linkage_kind(linkage: str, metric: str) -> Kind:
    """Return whether the values of a linkage of the points are similarities or distances."""
    return "similarity" if metric in ("cosine", "dot") and linkage != "ward" else "distance"


class VectorLinkage:
    """A linkage that compares the vectors of the points of two clusters.

    ``exact-average`` is the mean over all pairs of points, of their squared distance, cosine or product;
    ``centroid`` the (squared) distance or the cosine of the means; ``ward`` twice the increase of the sum of
    squared distances to the means when two clusters merge, which for two points is their squared distance. With
    metric ``euclidean`` the last two are square roots, as in SciPy. For ``ward`` with cosines, the points are
    those of length 1, and values are distances.

    Parameters
    ----------
    graph : NeighborGraph or MetricSpec
        A graph of the points by one of the metrics cosine, dot, sqeuclidean and euclidean.
    linkage : {"exact-average", "centroid", "ward"}
        The name of the linkage.
    X : array-like of shape (n_points, n_features)
        The points.
    weights : ndarray of float64 of shape (n_points,), optional
        The weights of the points.

    Notes
    -----
    The linkage of two single points is the weight of their edge. A mean is computed in float64 from the means of
    the parts, in order of their ids, and kept in float32. For distances, the mean of all points is subtracted
    first, because float32 is most precise near the origin. If neighbours are much closer to each other than to
    that mean, float32 cannot separate them: :meth:`warn_of_rounding` warns of it.
    """

    reducible = False  # a part without an edge to the third cluster may be the closest one

    def __init__(
        self, graph: NeighborGraph | MetricSpec, linkage: str, X: Any, weights: Float | None = None
    ) -> None:
        check_vector_linkage(linkage, graph.metric, X)
        assert graph.metric is not None
        self.linkage = linkage
        self.metric: str = graph.metric
        given = _dense(X, self.metric)
        self.center = _center(given, self.metric)
        self.points = _normalize_or_center(given, self.metric, self.center)
        self.spreads: Float | None = None
        self.lost = 0.0  # the share of edges that are shorter than CLEAR times the rounding
        self.rounding = 0.0  # the largest rounding of the points of these edges
        if len(self.points) != graph.n_points:
            raise ValueError(
                f"X has {len(self.points)} rows, but the graph {graph.n_points} points: pass the points that it "
                "was made of, in the same order"
            )
        self.kind: Kind = vector_linkage_kind(linkage, self.metric)
        similar = self.kind == "similarity"
        if self.metric == "cosine" and similar:
            self.farthest = -_ROUNDING
            return
        # Unlike einsum, sum(axis=1) adds in an order that does not depend on the processor.
        squares = np.concatenate(
            [np.square(rows, dtype=np.float64).sum(axis=1) for _, rows in iter_blocks(self.points)]
        )
        if similar:
            self.farthest = -float(squares.max()) * _ROUNDING
        else:
            # No mean is farther from the origin than the farthest point. No merge increases the sum of squared
            # distances to the means by more than the sum of all squares.
            weighed = squares if weights is None else weights * squares
            most = 2 * weighed.sum() if linkage == "ward" else 4 * squares.max()
            self.farthest = float(np.sqrt(most) if self.metric == "euclidean" else most) * _ROUNDING
        if self.metric in ("sqeuclidean", "euclidean") and isinstance(graph, NeighborGraph):
            self.lost, self.rounding = _lost_edges(graph, EPSILON * np.sqrt(squares))

    def warn_of_rounding(self, stacklevel: int) -> None:
        """Warn if float32 rounds points by too much for the distances between neighbours."""
        if self.lost > FEW:
            warnings.warn(
                f"linkage={self.linkage!r} keeps means in float32, but {self.lost:.0%} of the edges are shorter "
                f"than {CLEAR} times its rounding: it rounds their points by up to {self.rounding:.2g}, because "
                f"these are up to {self.rounding / EPSILON:.2g} from the mean of all. Clusters may be wrong: "
                "move groups of points that are far apart closer together, cluster each of them alone, or pass "
                "linkage='average', which compares points by the weights of the graph alone",
                stacklevel=stacklevel + 1,
            )

    def release_points(self) -> npt.NDArray[np.float32]:
        """Return the points and give them up: the engine overwrites them, so the linkage cannot run again."""
        points, self.points = self.points, self.points[:0]
        return points

    def prepare_queries(self, X: Any) -> npt.NDArray[np.float32]:
        """Return new points, normalized or centered as the points of the linkage are."""
        # The scale of distances is checked for the points of a graph only, not for new points.
        given = _dense(X, self.metric if self.metric in ("cosine", "dot") else None)
        if given.shape[1] != len(self.center):
            raise ValueError(
                f"the new points have {given.shape[1]} columns, but those of the tree {len(self.center)}: pass "
                "points of the same columns"
            )
        return _normalize_or_center(given, self.metric, self.center)

    def with_clusters(self, means: npt.NDArray[np.float32], spreads: Float) -> VectorLinkage:
        """Return the same linkage for clusters instead of points: their means and sums of squared distances."""
        other = copy.copy(self)
        other.points, other.spreads = means, spreads
        return other

    def __str__(self) -> str:
        return self.linkage

    def edge_linkages(self, graph: NeighborGraph) -> EdgeLinkages:
        """Return the linkages of all points with an edge; see :func:`agglo.rounds.linkage.edge_linkages`."""
        values = graph.weights
        if self.linkage == "ward" and self.metric == "cosine":
            values = 2 - 2 * values
        ends = [float(values.min(initial=self.farthest)), float(values.max(initial=self.farthest))]
        return EdgeLinkages(self.kind, graph.metric, graph.n_points, values, *ends)

    def of_points(self, weights: Float) -> Moments:
        """Return the moments of the points."""
        n = len(self.points)
        single = self.spreads is None
        spreads = np.zeros(n) if self.spreads is None else self.spreads
        return Moments(weights, self.points, row_products(self.points, self.points), spreads, np.full(n, single))

    def of_edges(self, sources: Int, targets: Int, weights: npt.NDArray[np.float32]) -> EdgeWeights:
        """Return the weights of the edges."""
        return EdgeWeights(weights)

    def merged_clusters(self, clusters: Moments, first: Int) -> Moments:
        """Return weights, means and spreads of merged clusters."""
        weight = sum_segments(clusters.weight, first)
        weighted = clusters.weight[:, None] * clusters.mean
        mean = (sum_segments(weighted, first) / weight[:, None]).astype(np.float32)
        square = row_products(mean, mean)
        union = np.repeat(np.arange(len(first)), np.diff(first, append=len(clusters.weight)))
        moved = _squared_distances(clusters.square, square[union], row_products(clusters.mean, mean[union]))
        spread = sum_segments(clusters.spread + clusters.weight * moved, first)
        return Moments(weight, mean, square, spread, np.zeros(len(first), bool))

    def merged_edges(self, edges: EdgeWeights, first: Int) -> EdgeWeights:
        """Return one weight per pair; only two single points are compared by it, and these have one edge."""
        return EdgeWeights(edges.weight[first])

    def value(self, a: Moments, b: Moments, edges: EdgeWeights) -> Float:
        """Return the linkage of each pair of clusters."""
        points = a.point & b.point
        weight = edges.weight.astype(np.float64)
        inner = row_products(a.mean, b.mean)
        if self.kind == "similarity":
            if self.linkage == "centroid":
                lengths = np.sqrt(a.square * b.square)
                inner = np.divide(inner, lengths, out=np.zeros_like(inner), where=lengths > 0)
            return np.where(points, weight, inner)
        given = {"cosine": 2 - 2 * weight, "sqeuclidean": weight, "euclidean": weight * weight}[self.metric]
        square = np.where(points, given, _squared_distances(a.square, b.square, inner))
        if self.linkage == "exact-average":
            return np.asarray(square + (a.spread / a.weight + b.spread / b.weight))
        if self.linkage == "ward":
            square = 2 * (a.weight * b.weight / (a.weight + b.weight)) * square
        return np.sqrt(square) if self.metric == "euclidean" else square


def row_products(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> Float:
    """Compute dot products of rows in float64: 8 running sums, added in the order of the core."""
    lane = np.zeros((len(x), _LANES))
    for j in range(0, x.shape[1], _LANES):
        terms = x[:, j : j + _LANES].astype(np.float64) * y[:, j : j + _LANES]
        lane[:, : terms.shape[1]] += terms
    lane = lane[:, :4] + lane[:, 4:]
    lane = lane[:, :2] + lane[:, 2:]
    return np.asarray(lane[:, 0] + lane[:, 1])


def sum_segments(values: npt.NDArray[Any], first: Int) -> Float:
    """Sum the rows of each segment in float64, one row after the other; ``first`` has the starts."""
    length = np.diff(first, append=len(values))
    total = values[first].astype(np.float64)
    for place in range(1, length.max(initial=0)):
        longer = np.flatnonzero(length > place)
        total[longer] += values[first[longer] + place]
    return total


def _squared_distances(a: Float, b: Float, inner: Float) -> Float:
    """Compute squared distances from squared lengths and inner products."""
    return np.maximum(a + b - 2 * inner, 0.0)


def _dense(X: Any, metric: str | None) -> Points:
    """Check that the points are dense."""
    check_is_dense(X)
    return check_points(X, half=True, metric=metric)


def _center(points: Points, metric: str) -> Float:
    """Return the mean of the points for distances, and zeros for other metrics."""
    center = np.zeros(points.shape[1])
    if metric in ("sqeuclidean", "euclidean"):
        for _, rows in iter_blocks(points):
            center += rows.sum(axis=0, dtype=np.float64) / len(points)
    return center


def _normalize_or_center(points: Points, metric: str, center: Float) -> npt.NDArray[np.float32]:
    """Normalize the points for cosines, or center them for distances; return them in float32."""
    prepared = np.empty(points.shape, np.float32)
    for first, rows in iter_blocks(points):
        moved = rows - center
        if metric == "cosine":
            length = np.linalg.norm(moved, axis=1, keepdims=True)
            moved /= np.where(length > 0, length, 1.0)
        largest = np.abs(moved).max(initial=0.0)
        if largest > 1e18:
            raise ValueError(
                f"X holds numbers beyond 1e18, up to {largest:g}, too large for means in float32: scale X down"
            )
        prepared[first : first + len(rows)] = moved
    return prepared


def _lost_edges(graph: NeighborGraph, rounding: Float) -> tuple[float, float]:
    """Return the share of edges that are lost in rounding, and the largest rounding of their points.

    ``rounding`` has one number per point. A positive edge is lost if it is shorter than ``CLEAR`` times that of
    its point. Both results are 0 if the largest rounding shows that the share is at most ``FEW``.
    """
    squared = graph.metric == "sqeuclidean"
    bounds = np.square(CLEAR * rounding) if squared else CLEAR * rounding
    short = graph.quantile_above(0.0, True, FEW)
    if short is None or short >= bounds.max():
        return 0.0, 0.0
    lost = positive = 0
    largest = 0.0
    step = max(1, _EDGES * graph.n_points // len(graph.weights))
    for first in range(0, graph.n_points, step):
        starts = graph.indptr[first : first + step + 1]
        weights = graph.weights[starts[0] : starts[-1]]
        point = np.repeat(np.arange(first, first + len(starts) - 1), np.diff(starts))
        is_lost = (weights > 0) & (weights < bounds[point])
        positive += int(np.count_nonzero(weights > 0))
        lost += int(np.count_nonzero(is_lost))
        largest = max(largest, float(rounding[point[is_lost]].max(initial=0.0)))
    return lost / positive, largest
