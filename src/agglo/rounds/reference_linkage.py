"""Specification of the linkages on a graph, for :mod:`agglo.rounds.reference`."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph
from agglo.rounds.linkage import GRAPH_LINKAGES, EdgeStatistics, Linkage, check_linkage, fixed_point_for
from agglo.rounds.vector_linkage import VectorLinkage

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Table = TypeVar("Table", bound=tuple[Any, ...])


def bind_points(graph: NeighborGraph, linkage: Any, X: Any) -> Any:
    """Return the linkage of the points ``X`` for one of its names, and any other linkage as it is."""
    check_linkage(linkage)
    is_vector_linkage = isinstance(linkage, str) and linkage not in GRAPH_LINKAGES
    return VectorLinkage(graph, linkage, X) if is_vector_linkage else linkage


def make_linkage(graph: NeighborGraph, linkage: str | Linkage, weights: Floats | None = None) -> Linkage:
    """Return the linkage on the graph for one of its names, and any other linkage as it is."""
    return GraphLinkage(graph, linkage, weights) if isinstance(linkage, str) else linkage


def point_pairs(graph: NeighborGraph) -> tuple[Ints, npt.NDArray[np.float32]]:
    """Return the edges of the graph, each once as a pair of points with the smaller first, and their weights."""
    source = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))
    once = source < graph.indices
    return np.column_stack([source[once], graph.indices[once]]).astype(np.int64), graph.weights[once]


def select(statistics: Table, index: npt.NDArray[Any]) -> Table:
    """Return the statistics of some clusters or edges, as a copy."""
    return type(statistics)._make(column[index] for column in statistics)  # type: ignore[attr-defined, no-any-return]


def starts(groups: npt.NDArray[Any]) -> Ints:
    """Return the index of the first row of each run of equal rows."""
    is_first = [i == 0 or (groups[i] != groups[i - 1]).any() for i in range(len(groups))]
    return np.flatnonzero(is_first)


class ClusterWeights(NamedTuple):
    """The statistics of clusters: the number of their points, or their total weight."""

    weight: Floats


class GraphLinkage:
    """A linkage over the edges of one graph.

    ``average`` is the mean over all pairs of points, ``complete`` the farthest pair, ``single`` the closest edge.
    A pair without an edge has the value ``missing`` of the graph; with ``"ignore"`` it does not count. With
    weights of the points, an edge counts in an average as often as the product of the weights of its ends.

    Averages are sums of integers, multiples of 2^-shift (:func:`agglo.rounds.linkage.fixed_point_for`). They are
    exact, so they do not depend on the order of the edges.
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
        # If pairs without an edge are closer than edges, averages may get closer as clusters grow.
        farthest_edge = graph.min_weight if self.sign == 1 else -graph.max_weight
        self.reducible = linkage != "average" or self.missing is None or self.missing <= farthest_edge

    def of_points(self, weights: Floats) -> ClusterWeights:
        """Return the weight of each point, 1 unless weights are given."""
        return ClusterWeights(np.ones(len(weights)) if self.weights is None else self.weights)

    def of_edges(self, sources: Ints, targets: Ints, weights: npt.NDArray[np.float32]) -> EdgeStatistics:
        """Return the statistics of single edges; larger is closer."""
        similarity = self.sign * weights.astype(np.float64)
        if self.linkage != "average":
            return EdgeStatistics(similarity, np.ones(len(weights), np.int64))
        counts = np.ones(len(weights)) if self.weights is None else self.weights[sources] * self.weights[targets]
        sums = np.rint(np.ldexp(similarity * counts, self.grid.shift))
        number = np.rint(np.ldexp(counts, self.grid.count_shift)).astype(np.int64)
        return EdgeStatistics(np.array([int(value) for value in sums], object), number)

    def merged_clusters(self, clusters: ClusterWeights, first: Ints) -> ClusterWeights:
        """Return the weights of unions."""
        return ClusterWeights(np.add.reduceat(clusters.weight, first))

    def merged_edges(self, edges: EdgeStatistics, first: Ints) -> EdgeStatistics:
        """Return the sum, the closest or the farthest of the edges between two clusters, and their number."""
        combine = {"average": np.add, "single": np.maximum, "complete": np.minimum}[self.linkage]
        return EdgeStatistics(combine.reduceat(edges.combined, first), np.add.reduceat(edges.number, first))

    def value(self, a: ClusterWeights, b: ClusterWeights, edges: EdgeStatistics) -> Floats:
        """Return the mean, the closest or the farthest of the pairs of points."""
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
