"""The protocol that every linkage implements, and the fixed-point sums of graph linkages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.neighbors.graph import Kind, Missing, NeighborGraph, WeightSummary

GraphLinkageName = Literal["average", "single", "complete"]
LinkageName = Literal["average", "single", "complete", "exact-average", "centroid", "ward"]
GRAPH_LINKAGES: tuple[GraphLinkageName, ...] = ("average", "single", "complete")
LINKAGES: tuple[LinkageName, ...] = (*GRAPH_LINKAGES, "exact-average", "centroid", "ward")

_MAX_BITS = 60  # each edge must have at least 2^-60 of the total weight of all edges
_LIMB_BITS = 62  # usable bits of the highest 64-bit limb: one bit is the sign, one is spare
_FLOAT_BITS = 24  # significant bits of a float32
_LIMBS = (1, 2, 6)  # allowed numbers of 64-bit limbs of a sum in the rounds
ROW_LIMBS = (1, 6)  # allowed numbers of limbs of a sum over the edges of one new point

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


def check_linkage(linkage: object, known: tuple[str, ...] = LINKAGES) -> None:
    """Raise if ``linkage`` is neither a name in ``known`` nor an object with the methods of a linkage."""
    if not isinstance(linkage, str):
        if not isinstance(linkage, Linkage):
            lacks = [name for name in _PARTS if not hasattr(linkage, name)]
            raise TypeError(
                f"linkage is a {type(linkage).__name__} without {', '.join(lacks)}: pass one of "
                f"{', '.join(known)}, or what agglo.Linkage describes"
            )
    elif linkage not in known:
        what = "not possible here" if linkage in LINKAGES else "unknown"
        raise ValueError(f"linkage={linkage!r} is {what}: pass one of {', '.join(known)}")


@runtime_checkable
class Linkage(Protocol):
    """The protocol of a linkage: the attributes and methods that an object passed as ``linkage=`` must have.

    A linkage computes statistics of clusters, and statistics of pairs of clusters with an edge between them. Both
    are a :class:`typing.NamedTuple` of arrays with one row per cluster or per pair. At the start, each point is a
    cluster and each edge of the graph is a pair. When clusters merge, the linkage merges their statistics. It also
    merges the statistics of pairs that become the same pair. Clusters without an edge are never compared.

    Attributes
    ----------
    kind : {"similarity", "distance"}
        ``"similarity"`` if larger values are closer, ``"distance"`` if smaller values are closer.
    farthest : float or None
        A bound on the value of any two clusters. Named schedules of thresholds end at this bound. If it is None,
        they end at the farthest pair of points with an edge.
    reducible : bool
        Whether a merged cluster is never closer to a third cluster than the closest of its parts, among the parts
        with an edge to the third cluster. If True, the engine evaluates fewer pairs. False is always correct, but
        slower.

    Notes
    -----
    1. Except for rounding, the statistics do not depend on whether clusters merge in one round or in several.
    2. ``value`` is symmetric in the two clusters, finite, and a function of the statistics alone.
    3. Values are compared with thresholds in float32.

    Examples
    --------
    The mean weight of the edges between two clusters, in which each point has a trust as its weight:

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
        """``"similarity"`` if larger values are closer, ``"distance"`` if smaller values are closer."""

    @property
    def farthest(self) -> float | None:
        """A bound on the linkage of any two clusters; None if unknown."""

    @property
    def reducible(self) -> bool:
        """Whether a merged cluster is never closer to a third cluster than its closest part."""

    def of_points(self, weights: Float) -> Any:
        """Return the statistics of single points, given the weight of each point."""

    def of_edges(self, sources: Int, targets: Int, weights: npt.NDArray[np.float32]) -> Any:
        """Return the statistics of the edges between single points; each source is smaller than its target."""

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
    """Summary of the linkage of every edge's two points, from which a schedule chooses its thresholds."""

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
        """Return the quantile ``share`` of the linkages above ``bound``; see :class:`WeightSummary`."""
        found: float = _core.weight_quantile(self.values, bound, up, share)
        return None if np.isnan(found) else found


def edge_linkages(graph: NeighborGraph, linkage: Linkage, weights: Float | None = None) -> EdgeLinkages:
    """Compute the linkage of every edge's two points, from which a named schedule chooses its thresholds."""
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

    combined: npt.NDArray[Any]  # linkage average: fixed-point sum; single: closest edge; complete: farthest edge
    number: npt.NDArray[np.int64]


@dataclass(frozen=True)
class FixedPoint:
    """Fixed-point format for sums of edge weights: each sum is an integer times 2^-shift.

    Integer sums are exact in any order, so all engines agree to the last bit. An integer consists of ``limbs``
    words of 64 bits: 1, 2 or 6.
    """

    shift: int
    limbs: int
    count_shift: int = 0
    """If points have weights, edge counts are integer multiples of 2^-count_shift."""

    @property
    def is_long(self) -> bool:
        """Whether sums need more than 64 bits."""
        return self.limbs > 1


def fixed_point_for(graph: WeightSummary, weights: Float | None = None) -> FixedPoint:
    """Choose the shortest fixed-point format in which sums of the graph's edge weights are exact.

    For most graphs, 64 bits are enough, and for nearly all others 128 bits. 384 bits hold any float32 weights.

    If points have ``weights``, an edge counts with the product of its two points' weights. The format keeps all 24
    bits of each edge weight, even between the lightest points.
    """
    largest, smallest = max(graph.max_weight, -graph.min_weight, 0.0), smallest_weight(graph)
    total, one = graph.n_edges.bit_length(), 0  # log2 of the count of all edges, and of one edge
    if weights is not None:
        assert isinstance(graph, NeighborGraph)
        # The product of two weights is at most the mean of their squares.
        total = int(np.frexp((weights**2 * np.diff(graph.indptr)).sum() / 2)[1])
        one = int(np.frexp(weights.min() ** 2)[1]) - 1
        if graph.n_edges and total - one > _MAX_BITS:
            raise ValueError(
                f"sample_weight goes from {weights.min():g} to {weights.max():g}, and sums over {graph.n_edges} "
                "edges of so different weights lose the lightest: lower the largest weights or raise the smallest"
            )
    return choose_fixed_point(largest, smallest, total, one, 0 if weights is None else _LIMB_BITS - total)


def choose_fixed_point(
    largest: float, smallest: float, total: int, one: int, count_shift: int, choices: tuple[int, ...] = _LIMBS
) -> FixedPoint:
    """Choose the fixed-point format for sums of weights with magnitudes from ``smallest`` to ``largest``.

    Zero weights are ignored. Each weight counts at least 2^one times, and all weights together less than 2^total
    times. ``choices`` are the allowed numbers of limbs, in ascending order.
    """
    shift = _LIMB_BITS - total - int(np.frexp(largest)[1])
    needed = 0 if largest == 0 else _FLOAT_BITS - int(np.frexp(smallest)[1]) - one  # bits after the binary point
    limbs = next(limbs for limbs in choices if needed <= shift + 64 * (limbs - 1))
    return FixedPoint(shift + 64 * (limbs - 1), limbs, count_shift)


def smallest_weight(graph: WeightSummary) -> float:
    """Return the smallest magnitude of the nonzero edge weights; infinity if all are zero."""
    if graph.min_weight > 0:
        return graph.min_weight
    if graph.max_weight < 0:
        return -graph.max_weight
    found = [graph.quantile_above(0.0, up, 0.0) for up in (True, False)]
    return min((abs(weight) for weight in found if weight is not None), default=np.inf)
