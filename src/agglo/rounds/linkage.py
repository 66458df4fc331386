"""The protocol that every linkage implements, and the statistics of edges for graph linkages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.neighbors.graph import Kind, Missing, NeighborGraph

GraphLinkageName = Literal["average", "single", "complete"]
LinkageName = Literal["average", "single", "complete", "exact-average", "centroid", "ward"]
GRAPH_LINKAGES: tuple[GraphLinkageName, ...] = ("average", "single", "complete")
LINKAGES: tuple[LinkageName, ...] = (*GRAPH_LINKAGES, "exact-average", "centroid", "ward")

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


def check_linkage(linkage: object, known: tuple[str, ...] = LINKAGES) -> None:
    """Raise if ``linkage`` is neither a name in ``known`` nor an object with the methods of a linkage."""
    if not isinstance(linkage, str):
        if not isinstance(linkage, Linkage):
            lacks = [name for name in _PARTS if not hasattr(linkage, name)]
            raise TypeError(
                f"linkage is a {type(linkage).__name__} without {', '.join(lacks)}: pass one of "
                f"{', '.join(known)}, or an object with the methods of agglo.Linkage"
            )
    elif linkage not in known:
        what = "not possible here" if linkage in LINKAGES else "unknown"
        raise ValueError(f"linkage={linkage!r} is {what}: pass one of {', '.join(known)}")


@runtime_checkable
class Linkage(Protocol):
    """The protocol of a linkage: the attributes and methods that an object passed as ``linkage=`` must have.

    A linkage computes statistics of clusters, and statistics of pairs of clusters with an edge between them. Each
    kind of statistics is a :class:`typing.NamedTuple` of arrays, with one row per cluster or per pair. At the
    start, each point is a cluster and each edge of the graph is a pair. When clusters merge, the linkage merges
    their statistics. If several pairs become the same pair, the linkage merges the statistics of these pairs.
    Clusters without an edge between them are never compared.

    Notes
    -----
    1. Except for rounding, the statistics do not depend on whether clusters merge in one round or in several.
    2. ``value`` is finite and symmetric in the two clusters. It depends only on the statistics.
    3. Linkage values are compared with thresholds in float32.

    Examples
    --------
    A linkage that is the weighted mean of the edges between two clusters. Each point has a trust as its weight:

    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> import agglo
    >>> class Nothing(NamedTuple):
    ...     weight: np.ndarray
    >>> class Trusted(NamedTuple):
    ...     total: np.ndarray
    ...     trust: np.ndarray
    >>> class TrustedAverage:
    ...     kind, farthest, reducible = "similarity", None, True
    ...
    ...     def __init__(self, trust):
    ...         self.trust = np.asarray(trust)
    ...
    ...     def of_points(self, weights):
    ...         return Nothing(weights)
    ...
    ...     def of_edges(self, sources, targets, weights):
    ...         trust = self.trust[sources] * self.trust[targets]
    ...         return Trusted(trust * weights, trust)
    ...
    ...     def merged_clusters(self, clusters, first):
    ...         return Nothing(np.add.reduceat(clusters.weight, first))
    ...
    ...     def merged_edges(self, edges, first):
    ...         return Trusted(np.add.reduceat(edges.total, first), np.add.reduceat(edges.trust, first))
    ...
    ...     def value(self, a, b, edges):
    ...         return edges.total / edges.trust
    >>> graph = agglo.NeighborGraph.from_edges([0, 0, 1, 2], [1, 2, 2, 3], [0.9, 0.2, 0.8, 0.7], kind="similarity")
    >>> agglo.hac(graph, linkage=TrustedAverage([1, 0.1, 1, 1])).cut(n_clusters=2)
    array([0, 0, 1, 1])
    """

    @property
    def kind(self) -> Kind:
        """``"similarity"`` if clusters with larger values are closer, otherwise ``"distance"``."""

    @property
    def farthest(self) -> float | None:
        """The farthest possible linkage of two clusters, at which named schedules of thresholds end.

        If it is None, named schedules end at the farthest edge.
        """

    @property
    def reducible(self) -> bool:
        """Whether merging A and B never brings them closer to a cluster C than the closer of A and B was.

        If True, fewer pairs of clusters are evaluated. False is always correct, but slower.
        """

    def of_points(self, weights: Float) -> Any:
        """Return the statistics of single points, given the weight of each point."""

    def of_edges(self, sources: Int, targets: Int, weights: npt.NDArray[np.float32]) -> Any:
        """Return the statistics of edges between single points. Each source id is smaller than its target id."""

    def merged_clusters(self, clusters: Any, first: Int) -> Any:
        """Return the statistics of merged clusters, one row per merged cluster.

        Merged cluster ``i`` consists of the rows ``first[i]`` to ``first[i + 1] - 1`` of ``clusters``, in order of
        their ids. The id of a cluster is its smallest point.
        """

    def merged_edges(self, edges: Any, first: Int) -> Any:
        """Merge the statistics of edges between the same two clusters; ``first`` is as in ``merged_clusters``."""

    def value(self, a: Any, b: Any, edges: Any) -> Float:
        """Return the linkage of clusters ``a[i]`` and ``b[i]`` for each ``i``, given the edges between them."""


_PARTS = ("kind", "farthest", "reducible", "of_points", "of_edges", "merged_clusters", "merged_edges", "value")

Rows = TypeVar("Rows", bound=tuple[Any, ...])


def rows(statistics: Rows, index: npt.NDArray[Any]) -> Rows:
    """Select rows of the statistics of clusters or edges, by a mask or by indices."""
    return type(statistics)._make(column[index] for column in statistics)  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True, eq=False)
class EdgeLinkages:
    """Summary of the linkages of all pairs of points with an edge, from which schedules choose thresholds."""

    kind: Kind
    metric: str | None
    n_points: int
    values: npt.NDArray[np.float32]
    min_weight: float
    max_weight: float
    missing: Missing = "ignore"

    @property
    def n_edges(self) -> int:
        """The number of undirected edges."""
        return len(self.values)

    def quantile_above(self, bound: float, up: bool, share: float) -> float | None:
        """Return the quantile ``share`` of the linkages beyond ``bound``; see :class:`WeightSummary`."""
        found: float = _core.weight_quantile(self.values, bound, up, share)
        return None if np.isnan(found) else found


def edge_linkages(graph: NeighborGraph, linkage: Linkage, weights: Float | None = None) -> EdgeLinkages:
    """Compute the linkage of the two points of every edge; return a summary for named schedules."""
    points = linkage.of_points(np.ones(graph.n_points) if weights is None else weights)
    source = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))
    once = source < graph.indices
    source, target = source[once], graph.indices[once].astype(np.int64)
    edges = linkage.of_edges(source, target, graph.weights[once])
    values = linkage.value(rows(points, source), rows(points, target), edges).astype(np.float32)
    ends = [float(end(values)) for end in (np.min, np.max) if len(values)]
    ends = ends if linkage.farthest is None else [*ends, linkage.farthest]
    return EdgeLinkages(
        linkage.kind, graph.metric, graph.n_points, values, min(ends, default=0.0), max(ends, default=0.0)
    )


class EdgeStatistics(NamedTuple):
    """Statistics of the edges between two clusters, as similarities: one row per pair of clusters."""

    combined: npt.NDArray[Any]  # average: fixed-point sum; single: closest edge; complete: farthest edge
    number: npt.NDArray[np.int64]
