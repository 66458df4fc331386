"""Linkages: what is kept of clusters and of the edges between them, and how close it makes two clusters.

This is the definition in NumPy that the reference engine runs; the native core has the named ones in C++.
"""

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

_MOST_BITS = 60  # by which an edge may count for less than all together
_ROOM = 62  # bits of the highest limb of a sum, without its sign and one to spare
_FLOAT_BITS = 24  # significant bits of a float32
_LIMBS = (1, 2, 6)  # numbers of 64-bit limbs that a sum of the rounds may have
ROW_LIMBS = (1, 6)  # the same for a sum over the edges of one new point

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


def check_linkage(linkage: object, known: tuple[str, ...] = LINKAGES) -> None:
    """Raise if there is no such linkage, or none that is ``known`` where it is to be used."""
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
    """How close two clusters are: what a class has to have to be used as ``linkage=``.

    Statistics are a :class:`typing.NamedTuple` of arrays with a row for each cluster, or for each edge between two
    clusters. There are those of points and of the graph's edges to begin with. As clusters merge, theirs are
    merged, and so are those of edges that come to lie between the same two clusters. Only clusters with an edge
    between them are ever compared.

    Attributes
    ----------
    kind : {"similarity", "distance"}
        Whether a larger value is closer, or a smaller one.
    farthest : float or None
        A value that no two clusters are beyond, where thresholds that are named are to end. None: the farthest
        pair of points with an edge between them will do.
    reducible : bool
        Whether a merged cluster is never closer to a third than the closest of its parts with an edge to it was.
        An engine may then look at few clusters in each round. If in doubt, say False: it costs time, no more.

    Notes
    -----
    1. Merging must not depend on how it is grouped: in one round or in several, but for rounding.
    2. ``value`` is symmetric in the two clusters, finite, and a function of the statistics alone.
    3. Values are compared with thresholds in float32.

    Examples
    --------
    The average over the edges that there are, each counting as often as its source says:

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
        """Whether a larger value is closer, or a smaller one."""

    @property
    def farthest(self) -> float | None:
        """A value that no two clusters are beyond."""

    @property
    def reducible(self) -> bool:
        """Whether a merged cluster is never closer to a third than its parts were."""

    def of_points(self, weights: Float) -> Any:
        """Statistics of the points, each a cluster of its own; ``weights`` says how many it stands for."""

    def of_edges(self, sources: Int, targets: Int, weights: npt.NDArray[np.float32]) -> Any:
        """Statistics of single edges: between which points, the smaller index first, and their weights."""

    def merged_clusters(self, clusters: Any, first: Int) -> Any:
        """Statistics of unions: of rows ``first[0]`` to ``first[1]``, of ``first[1]`` to ``first[2]``, and so on.

        The parts of a union come in the order of their names, a name being the smallest point of a cluster.
        """

    def merged_edges(self, edges: Any, first: Int) -> Any:
        """Statistics of edges that now lie between the same two clusters, grouped in the same way."""

    def value(self, a: Any, b: Any, edges: Any) -> Float:
        """How close clusters are: of each row of ``a`` to the same row of ``b``, given the edges between them."""


_PARTS = ("kind", "farthest", "reducible", "of_points", "of_edges", "merged_clusters", "merged_edges", "value")

Rows = TypeVar("Rows", bound=tuple[Any, ...])


def rows(statistics: Rows, index: npt.NDArray[Any]) -> Rows:
    """The statistics of some clusters or edges: those that a mask or an array of places picks."""
    return type(statistics)._make(column[index] for column in statistics)  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True, eq=False)
class Valued:
    """A graph whose weights are the linkages of its points, as thresholds look at it."""

    kind: Kind
    metric: str | None
    n_points: int
    values: npt.NDArray[np.float32]
    min_weight: float
    max_weight: float
    missing: Missing = "ignore"

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.values)

    def quantile_above(self, bound: float, up: bool, share: float) -> float | None:
        """Return the quantile ``share`` of the values above ``bound``; see :class:`WeightSummary`."""
        found: float = _core.weight_quantile(self.values, bound, up, share)
        return None if np.isnan(found) else found


def valued(graph: NeighborGraph, linkage: Linkage, weights: Float | None = None) -> Valued:
    """What named thresholds look at: the linkages of points with an edge between them, and the farthest of all."""
    points = linkage.of_points(np.ones(graph.n_points) if weights is None else weights)
    source = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))
    once = source < graph.indices
    source, target = source[once], graph.indices[once].astype(np.int64)
    edges = linkage.of_edges(source, target, graph.weights[once])
    values = linkage.value(rows(points, source), rows(points, target), edges).astype(np.float32)
    ends = [float(end(values)) for end in (np.min, np.max) if len(values)]
    ends = ends if linkage.farthest is None else [*ends, linkage.farthest]
    return Valued(
        linkage.kind, graph.metric, graph.n_points, values, min(ends, default=0.0), max(ends, default=0.0)
    )


class Statistics(NamedTuple):
    """What is kept of the edges between pairs of clusters, an entry a pair; larger is closer."""

    combined: npt.NDArray[Any]  # average: fixed-point sum; single: closest; complete: farthest
    number: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """Fixed-point numbers for the weights of a graph: multiples of 2^-shift.

    Weights summed as integers have exact sums, whatever their order or grouping, and that is what makes all
    engines agree to the last bit. The integers have ``limbs`` of 64 bits: 1, 2 or 6.
    """

    shift: int
    limbs: int
    count_shift: int = 0
    """Pairs of points with an edge are counted in multiples of 2^-count_shift, if points have weights."""

    @property
    def is_long(self) -> bool:
        """Whether sums do not fit into int64."""
        return self.limbs > 1


def grid(graph: WeightSummary, weights: Float | None = None) -> Grid:
    """Choose the shortest integers for which sums of the graph's weights are exact, and the finest grid for them.

    64 bits hold the weights of most graphs, 128 bits those of nearly all others, and 384 bits all of float32.

    With ``weights`` of the points, an edge counts as often as the product of those of its ends says. Even between
    the lightest points, each weight of an edge then keeps the bits that float32 has.
    """
    largest, smallest = max(graph.max_weight, -graph.min_weight, 0.0), smallest_weight(graph)
    total, one = graph.n_edges.bit_length(), 0  # the edges count as less than 2^total, and each as 2^one or more
    if weights is not None:
        assert isinstance(graph, NeighborGraph)
        # A product is at most the mean of the squares.
        total = int(np.frexp((weights**2 * np.diff(graph.indptr)).sum() / 2)[1])
        one = int(np.frexp(weights.min() ** 2)[1]) - 1
        if graph.n_edges and total - one > _MOST_BITS:
            raise ValueError(
                f"sample_weight goes from {weights.min():g} to {weights.max():g}, and sums over {graph.n_edges} "
                "edges of so different weights lose the lightest: lower the largest weights or raise the smallest"
            )
    return fixed_point(largest, smallest, total, one, 0 if weights is None else _ROOM - total)


def fixed_point(
    largest: float, smallest: float, total: int, one: int, count_shift: int, choices: tuple[int, ...] = _LIMBS
) -> Grid:
    """Choose the grid for weights from ``smallest`` to ``largest``, which count 2^one times or more each.

    Together they count less than 2^total times. Both are magnitudes; ``smallest`` is that of no zero. ``choices``
    are the numbers of limbs that a sum may have, ascending.
    """
    shift = _ROOM - total - int(np.frexp(largest)[1])
    needed = 0 if largest == 0 else _FLOAT_BITS - int(np.frexp(smallest)[1]) - one  # bits after the point
    limbs = next(limbs for limbs in choices if needed <= shift + 64 * (limbs - 1))
    return Grid(shift + 64 * (limbs - 1), limbs, count_shift)


def smallest_weight(graph: WeightSummary) -> float:
    """Return the smallest magnitude among the weights that are not zero; infinity if there are none."""
    if graph.min_weight > 0:
        return graph.min_weight
    if graph.max_weight < 0:
        return -graph.max_weight
    found = [graph.quantile_above(0.0, up, 0.0) for up in (True, False)]
    return min((abs(weight) for weight in found if weight is not None), default=np.inf)
