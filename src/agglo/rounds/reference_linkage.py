"""Slow reference implementations of the linkages, used by :mod:`agglo.rounds.reference`."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph, fixed_point_for
from agglo.rounds.linkage import GRAPH_LINKAGES, EdgeStatistics, Linkage, check_linkage
from agglo.rounds.vector_linkage import VectorLinkage

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_LANES = 8  # number of running sums of a dot product, as in the core
Table = TypeVar("Table", bound=tuple[Any, ...])


def bind_points(graph: NeighborGraph, linkage: Any, X: Any) -> Any:
    """Convert the name of a vector linkage to a linkage on the points ``X``; return other linkages unchanged."""
    check_linkage(linkage)
    is_vector_linkage = isinstance(linkage, str) and linkage not in GRAPH_LINKAGES
    return VectorLinkage(graph, linkage, X) if is_vector_linkage else linkage


def make_linkage(
    graph: NeighborGraph, linkage: str | Linkage | VectorLinkage, weights: Floats | None = None
) -> Linkage:
    """Return the reference implementation of a graph or vector linkage; return custom linkages unchanged."""
    if isinstance(linkage, VectorLinkage):
        return ReferenceVectorLinkage(linkage)
    return GraphLinkage(graph, linkage, weights) if isinstance(linkage, str) else linkage


def point_pairs(graph: NeighborGraph) -> tuple[Ints, npt.NDArray[np.float32]]:
    """Return each edge of the graph once, as a pair (smaller point, larger point), and the edge weights."""
    source = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))
    once = source < graph.indices
    return np.column_stack([source[once], graph.indices[once]]).astype(np.int64), graph.weights[once]


def select(statistics: Table, index: npt.NDArray[Any]) -> Table:
    """Select the rows ``index`` of a table of statistics; return a copy."""
    return type(statistics)._make(column[index] for column in statistics)  # type: ignore[attr-defined, no-any-return]


def starts(groups: npt.NDArray[Any]) -> Ints:
    """Return the index of the first row of each block of equal consecutive rows in ``groups``."""
    is_first = [i == 0 or (groups[i] != groups[i - 1]).any() for i in range(len(groups))]
    return np.flatnonzero(is_first)


def merge_clusters(linkage: Linkage, statistics: Any, members: Ints, new: Ints) -> Any:
    """Return the statistics of all clusters after a round.

    ``members`` are the clusters that merge. ``new`` is the id of each cluster after the round.
    """
    members = members[np.argsort(new[members], kind="stable")]
    first = starts(new[members])
    merged = linkage.merged_clusters(select(statistics, members), first)
    statistics = select(statistics, np.arange(len(new)))  # a copy
    for column, values in zip(statistics, merged, strict=True):
        column[new[members][first]] = values
    return statistics


def evaluate_pairs(linkage: Linkage, statistics: Any, pairs: Ints, edges: Any) -> Floats:
    """Return the linkage of each pair of clusters."""
    a, b = (select(statistics, pairs[:, end]) for end in (0, 1))
    return linkage.value(a, b, edges)


def contract(linkage: Linkage, pairs: Ints, edges: Any, new: Ints) -> tuple[Ints, Any]:
    """Return the pairs of new clusters with edges between them, and the merged statistics of each pair's edges."""
    ends = np.sort(new[pairs], axis=1)
    between = np.flatnonzero(ends[:, 0] != ends[:, 1])
    between = between[np.lexsort((ends[between, 1], ends[between, 0]))]
    first = starts(ends[between])
    return ends[between][first], linkage.merged_edges(select(edges, between), first)


class ClusterWeights(NamedTuple):
    """Statistics of clusters: the number of points in each cluster, or the total weight of its points."""

    weight: Floats


class GraphLinkage:
    """A linkage that is computed from the edges of one graph.

    ``average`` is the mean over all pairs of points of the two clusters. ``complete`` is the value of the farthest
    pair. ``single`` is the weight of the closest edge. A pair without an edge has the value ``missing`` of the
    graph. If ``missing`` is ``"ignore"``, such pairs are left out. If points have weights, the weight of a pair in
    an average is the product of the weights of its two points.

    Averages are computed from integer sums, in multiples of 2^-shift; see
    :func:`agglo.neighbors.graph.fixed_point_for`. Integer sums are exact, so averages do not depend on the order
    of the edges.
    """

    farthest: float | None = None

    def __init__(self, graph: NeighborGraph, linkage: str, weights: Floats | None = None) -> None:
        check_linkage(linkage, GRAPH_LINKAGES)
        self.weights = weights if linkage == "average" else None
        self.linkage = linkage
        self.kind = graph.kind
        self.sign = 1 if graph.kind == "similarity" else -1
        self.missing = None if graph.missing == "ignore" else self.sign * float(graph.missing or 0.0)
        self.grid = fixed_point_for(graph, self.weights)
        # If pairs without an edge are closer than edges, an average may become closer when clusters merge.
        farthest_edge = graph.min_weight if self.sign == 1 else -graph.max_weight
        self.reducible = linkage != "average" or self.missing is None or self.missing <= farthest_edge

    def of_points(self, weights: Floats) -> ClusterWeights:
        """Return the weight of each point, or 1 if no weights were given."""
        return ClusterWeights(np.ones(len(weights)) if self.weights is None else self.weights)

    def of_edges(self, sources: Ints, targets: Ints, weights: npt.NDArray[np.float32]) -> EdgeStatistics:
        """Return the statistics of single edges, as similarities: a larger value is closer."""
        similarity = self.sign * weights.astype(np.float64)
        if self.linkage != "average":
            return EdgeStatistics(similarity, np.ones(len(weights), np.int64))
        counts = np.ones(len(weights)) if self.weights is None else self.weights[sources] * self.weights[targets]
        sums = np.rint(np.ldexp(similarity * counts, self.grid.shift))
        number = np.rint(np.ldexp(counts, self.grid.count_shift)).astype(np.int64)
        return EdgeStatistics(np.array([int(value) for value in sums], object), number)

    def merged_clusters(self, clusters: ClusterWeights, first: Ints) -> ClusterWeights:
        """Return the weight of each merged cluster: the sum over its parts."""
        return ClusterWeights(np.add.reduceat(clusters.weight, first))

    def merged_edges(self, edges: EdgeStatistics, first: Ints) -> EdgeStatistics:
        """Combine the edges between two clusters: sum, closest or farthest value, and the number of edges."""
        combine = {"average": np.add, "single": np.maximum, "complete": np.minimum}[self.linkage]
        return EdgeStatistics(combine.reduceat(edges.combined, first), np.add.reduceat(edges.number, first))

    def value(self, a: ClusterWeights, b: ClusterWeights, edges: EdgeStatistics) -> Floats:
        """Return the linkage of each pair of clusters: the mean, closest or farthest value of its point pairs."""
        pairs, similarity = a.weight * b.weight, edges.combined
        if self.linkage == "average":
            total = np.ldexp(edges.combined.astype(np.float64), -self.grid.shift)
            number = np.ldexp(edges.number.astype(np.float64), -self.grid.count_shift)
            if self.missing is None:
                similarity = total / number
            else:
                similarity = (total + self.missing * (pairs - number)) / pairs
        if self.linkage == "complete" and self.missing is not None:
            similarity = np.where(edges.number == pairs, similarity, np.minimum(similarity, self.missing))
        return np.asarray(self.sign * similarity)


# ---- vector linkages ----


class Moments(NamedTuple):
    """Statistics of clusters for vector linkages, one row per cluster."""

    weight: Floats  # total weight of the points
    mean: npt.NDArray[np.float32]  # one row per cluster
    squared_norm: Floats  # squared length of the mean
    spread: Floats  # sum of squared distances of the points to the mean
    point: npt.NDArray[np.bool_]  # whether the cluster is a single point


class EdgeWeights(NamedTuple):
    """Statistics of edges: the weight of each edge, which is the linkage of two single points."""

    weight: npt.NDArray[np.float32]


class ReferenceVectorLinkage:
    """Slow reference implementation of a vector linkage, on the points that a ``VectorLinkage`` has prepared.

    Sums are added in the same order as in the C++ core, so the results are equal to the last bit.
    """

    # A merged cluster may be closer to a third cluster than the part that had an edge to the third cluster.
    reducible = False

    def __init__(self, prepared: VectorLinkage) -> None:
        self.linkage, self.metric, self.kind = prepared.linkage, prepared.metric, prepared.kind
        self.points, self.spreads, self.farthest = prepared.points, prepared.spreads, prepared.farthest

    def of_points(self, weights: Floats) -> Moments:
        """Return the weight, mean and spread of each point, as a cluster of one point."""
        n = len(self.points)
        single = self.spreads is None
        spreads = np.zeros(n) if self.spreads is None else self.spreads
        return Moments(weights, self.points, row_products(self.points, self.points), spreads, np.full(n, single))

    def of_edges(self, sources: Ints, targets: Ints, weights: npt.NDArray[np.float32]) -> EdgeWeights:
        """Return the statistics of single edges: their weights, unchanged."""
        return EdgeWeights(weights)

    def merged_clusters(self, clusters: Moments, first: Ints) -> Moments:
        """Return the weight, mean and spread of each merged cluster."""
        weight = sum_segments(clusters.weight, first)
        weighted = clusters.weight[:, None] * clusters.mean
        mean = (sum_segments(weighted, first) / weight[:, None]).astype(np.float32)
        squared_norm = row_products(mean, mean)
        union = np.repeat(np.arange(len(first)), np.diff(first, append=len(clusters.weight)))
        moved = _squared_distances(
            clusters.squared_norm, squared_norm[union], row_products(clusters.mean, mean[union])
        )
        spread = sum_segments(clusters.spread + clusters.weight * moved, first)
        return Moments(weight, mean, squared_norm, spread, np.zeros(len(first), bool))

    def merged_edges(self, edges: EdgeWeights, first: Ints) -> EdgeWeights:
        """Return one edge weight per pair of clusters. Only the weights of pairs of single points are used."""
        return EdgeWeights(edges.weight[first])

    def value(self, a: Moments, b: Moments, edges: EdgeWeights) -> Floats:
        """Return the linkage of each pair of clusters."""
        points = a.point & b.point
        weight = edges.weight.astype(np.float64)
        inner = row_products(a.mean, b.mean)
        if self.kind == "similarity":
            if self.linkage == "centroid":
                lengths = np.sqrt(a.squared_norm * b.squared_norm)
                inner = np.divide(inner, lengths, out=np.zeros_like(inner), where=lengths > 0)
            return np.where(points, weight, inner)
        given = {"cosine": 2 - 2 * weight, "sqeuclidean": weight, "euclidean": weight * weight}[self.metric]
        square = np.where(points, given, _squared_distances(a.squared_norm, b.squared_norm, inner))
        if self.linkage == "exact-average":
            return np.asarray(square + (a.spread / a.weight + b.spread / b.weight))
        if self.linkage == "ward":
            square = 2 * (a.weight * b.weight / (a.weight + b.weight)) * square
        return np.sqrt(square) if self.metric == "euclidean" else square


def row_products(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32]) -> Floats:
    """Compute the dot products of rows ``x[i]`` and ``y[i]`` in float64, with 8 running sums, as the core does."""
    lane = np.zeros((len(x), _LANES))
    for j in range(0, x.shape[1], _LANES):
        terms = x[:, j : j + _LANES].astype(np.float64) * y[:, j : j + _LANES]
        lane[:, : terms.shape[1]] += terms
    lane = lane[:, :4] + lane[:, 4:]
    lane = lane[:, :2] + lane[:, 2:]
    return np.asarray(lane[:, 0] + lane[:, 1])


def sum_segments(values: npt.NDArray[Any], first: Ints) -> Floats:
    """Sum the rows of each segment in float64, from first to last. ``first`` contains the segments' starts."""
    length = np.diff(first, append=len(values))
    total = values[first].astype(np.float64)
    for place in range(1, length.max(initial=0)):
        longer = np.flatnonzero(length > place)
        total[longer] += values[first[longer] + place]
    return total


def _squared_distances(a: Floats, b: Floats, inner: Floats) -> Floats:
    """Compute squared distances from squared lengths ``a`` and ``b`` and dot products ``inner``."""
    return np.maximum(a + b - 2 * inner, 0.0)
