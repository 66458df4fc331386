"""The linkages between the points of clusters themselves, not only between those that have an edge.

A cluster is kept as its size, its mean in float32 and the sum of squared distances to it: all that the mean over
all pairs of points of two clusters, the distance of their centres and Ward's criterion are made of. The graph
proposes which clusters are compared. The native core does the same, in the same order of additions.
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

# What the points are compared by, for each linkage: where its value is a function of sizes, means and spreads.
VECTOR_LINKAGES: dict[str, tuple[str, ...]] = {
    "exact-average": ("cosine", "dot", "sqeuclidean"),
    "centroid": ("cosine", "sqeuclidean", "euclidean"),
    "ward": ("cosine", "sqeuclidean", "euclidean"),
}

_LANES = 8  # of running sums, as in the core
_ROUNDING = 1 + 1e-5  # by how much float32 may take a mean beyond the points
EPSILON = float(np.finfo(np.float32).eps)  # twice the rounding of a point, relative to its length
CLEAR = 10  # a distance is preserved if it is at least so many times the rounding of its two points
FEW = 0.05  # the share of edges that may be shorter without a warning, such as those of near duplicates
_EDGES = 1 << 20  # about how many edges are compared at a time


class Moments(NamedTuple):
    """What is kept of clusters."""

    weight: Float  # of its points
    mean: npt.NDArray[np.float32]  # a row each
    square: Float  # of the length of the mean
    spread: Float  # sum of squared distances of its points to the mean
    point: npt.NDArray[np.bool_]  # whether it is a single one


class EdgeWeights(NamedTuple):
    """What is kept of edges: the weight, which for two points is how close they are."""

    weight: npt.NDArray[np.float32]


class MetricSpec(NamedTuple):
    """What of a graph says how its points are compared, where there is no graph."""

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
    """A linkage of the points of clusters, for pairs of clusters that a graph proposes.

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
        Which.
    X : array-like of shape (n_points, n_features)
        The points.
    weights : ndarray of float64 of shape (n_points,), optional
        What they count as.

    Notes
    -----
    Two single points are as close as their edge says. A mean is kept in float32 and computed in float64 from those
    of the parts, in order of name. Distances do not depend on where the origin is, so it is moved to the mean of
    all points first, and is where float32 is finest. Where neighbours are much closer to each other than to that
    mean, float32 does not tell them apart: :meth:`warn_of_rounding` reports it.
    """

    reducible = False  # a part without an edge may be the closest, and nobody knew

    def __init__(
        self, graph: NeighborGraph | MetricSpec, linkage: str, X: Any, weights: Float | None = None
    ) -> None:
        check_vector_linkage(linkage, graph.metric, X)
        assert graph.metric is not None
        self.linkage = linkage
        self.metric: str = graph.metric
        given = _dense(X, self.metric)
        self.center = _center(given, self.metric)
        self.points = _moved(given, self.metric, self.center)
        self.spreads: Float | None = None
        self.lost = 0.0  # the share of edges that float32 is too coarse for
        self.rounding = 0.0  # its largest rounding of the points of such edges
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
        # Their order of summation, unlike that of einsum, does not depend on the processor.
        squares = np.concatenate(
            [np.square(rows, dtype=np.float64).sum(axis=1) for _, rows in iter_blocks(self.points)]
        )
        if similar:
            self.farthest = -float(squares.max()) * _ROUNDING
        else:
            # No mean is farther from the origin than a point, and no merge increases the sum of squares by more
            # than all of them together.
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
        """The points, for an engine to write to; the linkage has none after that, and cannot be run again."""
        points, self.points = self.points, self.points[:0]
        return points

    def prepare_queries(self, X: Any) -> npt.NDArray[np.float32]:
        """Other points, as the linkage takes them."""
        # A new point may be as close to the others as it likes: distances need no scale.
        given = _dense(X, self.metric if self.metric in ("cosine", "dot") else None)
        if given.shape[1] != len(self.center):
            raise ValueError(
                f"the new points have {given.shape[1]} columns, but those of the tree {len(self.center)}: pass "
                "points of the same columns"
            )
        return _moved(given, self.metric, self.center)

    def with_clusters(self, means: npt.NDArray[np.float32], spreads: Float) -> VectorLinkage:
        """The same linkage for clusters to start from: their means, and sums of squared distances to these."""
        other = copy.copy(self)
        other.points, other.spreads = means, spreads
        return other

    def __str__(self) -> str:
        return self.linkage

    def edge_linkages(self, graph: NeighborGraph) -> EdgeLinkages:
        """What named thresholds look at; see :func:`agglo.rounds.linkage.edge_linkages`."""
        values = graph.weights
        if self.linkage == "ward" and self.metric == "cosine":
            values = 2 - 2 * values
        ends = [float(values.min(initial=self.farthest)), float(values.max(initial=self.farthest))]
        return EdgeLinkages(self.kind, graph.metric, graph.n_points, values, *ends)

    def of_points(self, weights: Float) -> Moments:
        """The points themselves."""
        n = len(self.points)
        single = self.spreads is None
        spreads = np.zeros(n) if self.spreads is None else self.spreads
        return Moments(weights, self.points, row_products(self.points, self.points), spreads, np.full(n, single))

    def of_edges(self, sources: Int, targets: Int, weights: npt.NDArray[np.float32]) -> EdgeWeights:
        """Their weights."""
        return EdgeWeights(weights)

    def merged_clusters(self, clusters: Moments, first: Int) -> Moments:
        """Weights, means and spreads of unions."""
        weight = sum_segments(clusters.weight, first)
        weighted = clusters.weight[:, None] * clusters.mean
        mean = (sum_segments(weighted, first) / weight[:, None]).astype(np.float32)
        square = row_products(mean, mean)
        union = np.repeat(np.arange(len(first)), np.diff(first, append=len(clusters.weight)))
        moved = _squares(clusters.square, square[union], row_products(clusters.mean, mean[union]))
        spread = sum_segments(clusters.spread + clusters.weight * moved, first)
        return Moments(weight, mean, square, spread, np.zeros(len(first), bool))

    def merged_edges(self, edges: EdgeWeights, first: Int) -> EdgeWeights:
        """Any of the weights, for they are not looked at again."""
        return EdgeWeights(edges.weight[first])

    def value(self, a: Moments, b: Moments, edges: EdgeWeights) -> Float:
        """How close clusters are."""
        points = a.point & b.point
        weight = edges.weight.astype(np.float64)
        inner = row_products(a.mean, b.mean)
        if self.kind == "similarity":
            if self.linkage == "centroid":
                lengths = np.sqrt(a.square * b.square)
                inner = np.divide(inner, lengths, out=np.zeros_like(inner), where=lengths > 0)
            return np.where(points, weight, inner)
        given = {"cosine": 2 - 2 * weight, "sqeuclidean": weight, "euclidean": weight * weight}[self.metric]
        square = np.where(points, given, _squares(a.square, b.square, inner))
        if self.linkage == "exact-average":
            return np.asarray(square + (a.spread / a.weight + b.spread / b.weight))
        if self.linkage == "ward":
            square = 2 * (a.weight * b.weight / (a.weight + b.weight)) * square
        return np.sqrt(square) if self.metric == "euclidean" else square


def row_products(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> Float:
    """Products of rows in float64: 8 running sums, added up in the order of the core."""
    lane = np.zeros((len(x), _LANES))
    for j in range(0, x.shape[1], _LANES):
        terms = x[:, j : j + _LANES].astype(np.float64) * y[:, j : j + _LANES]
        lane[:, : terms.shape[1]] += terms
    lane = lane[:, :4] + lane[:, 4:]
    lane = lane[:, :2] + lane[:, 2:]
    return np.asarray(lane[:, 0] + lane[:, 1])


def sum_segments(values: npt.NDArray[Any], first: Int) -> Float:
    """Sums in float64 over the rows from each of ``first`` to the next, one row after the other."""
    length = np.diff(first, append=len(values))
    total = values[first].astype(np.float64)
    for place in range(1, length.max(initial=0)):
        longer = np.flatnonzero(length > place)
        total[longer] += values[first[longer] + place]
    return total


def _squares(a: Float, b: Float, inner: Float) -> Float:
    """Squared distances of vectors of squared lengths ``a`` and ``b``."""
    return np.maximum(a + b - 2 * inner, 0.0)


def _dense(X: Any, metric: str | None) -> Points:
    """Points that have a mean."""
    check_is_dense(X)
    return check_points(X, half=True, metric=metric)


def _center(points: Points, metric: str) -> Float:
    """The new origin: the mean of the points, if all that matters is how far they are from each other."""
    center = np.zeros(points.shape[1])
    if metric in ("sqeuclidean", "euclidean"):
        for _, rows in iter_blocks(points):
            center += rows.sum(axis=0, dtype=np.float64) / len(points)
    return center


def _moved(points: Points, metric: str, center: Float) -> npt.NDArray[np.float32]:
    """The points as the linkages take them: of length 1 for cosines, around the origin for distances."""
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
