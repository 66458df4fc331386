"""The linkages on a neighbour graph: what is kept of the edges between two clusters, and how close it makes them.

This is the definition in NumPy that the reference engine runs; the native core has the same in C++. Inside the
engines larger is closer: a distance is used with its sign turned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agglo.graph import NeighborGraph, WeighedGraph
from agglo.schedule import threshold_range

LinkageName = Literal["average", "single", "complete"]
LINKAGES = ("average", "single", "complete")

Float = npt.NDArray[np.float64]


def check_linkage(linkage: str) -> None:
    """Raise if there is no such linkage."""
    if linkage not in LINKAGES:
        raise ValueError(f"linkage={linkage!r} is unknown: pass one of {', '.join(LINKAGES)}")


@dataclass(frozen=True)
class Statistics:
    """What is kept of the edges between pairs of clusters, an entry a pair."""

    combined: npt.NDArray[Any]  # average: fixed-point sum; single: closest; complete: farthest
    count: npt.NDArray[np.int64]

    def where(self, mask: npt.NDArray[np.bool_]) -> Statistics:
        """The entries that ``mask`` keeps."""
        return Statistics(self.combined[mask], self.count[mask])

    def merged(self, pair: npt.NDArray[np.intp], n_pairs: int, linkage: str) -> Statistics:
        """The statistics of ``n_pairs`` larger pairs, ``pair`` saying which one each entry becomes part of."""
        ufunc = {"average": np.add, "single": np.maximum, "complete": np.minimum}[linkage]
        order = np.argsort(pair, kind="stable")
        first = np.searchsorted(pair[order], np.arange(n_pairs))
        if n_pairs == 0:
            return Statistics(self.combined[:0], self.count[:0])
        return Statistics(ufunc.reduceat(self.combined[order], first), np.add.reduceat(self.count[order], first))


@dataclass(frozen=True)
class Grid:
    """Fixed-point numbers for the weights of a graph: multiples of 2^-shift.

    Weights rounded to it and summed as integers have exact sums, whatever their order or grouping, and that is
    what makes all engines agree to the last bit. ``wide`` asks for integers of 128 bits instead of 64.
    """

    shift: int
    wide: bool


def grid(graph: WeighedGraph) -> Grid:
    """The finest grid on which no sum of the graph's weights overflows.

    64 bits are enough unless the smallest threshold that :func:`agglo.schedule.threshold_range` would use is so
    much smaller than the largest weight that it would keep less than 16 significant bits.
    """
    largest = max(graph.most, -graph.least, 0.0)
    exponent = int(np.frexp(largest)[1])  # largest < 2^exponent
    room = 62 - graph.n_edges.bit_length()  # bits for one weight
    smallest = min(map(abs, threshold_range(graph)))
    wide = 0 < smallest < largest and exponent - int(np.frexp(smallest)[1]) + 16 > room
    return Grid(room + 64 * wide - exponent, wide)


class GraphLinkage:
    """A linkage over the edges of one graph.

    ``average`` is the mean over all pairs, ``complete`` the farthest pair, a pair without an edge counting as
    the graph's ``missing`` (with ``"ignore"`` it does not count at all); ``single`` is the closest edge. Weights
    are averaged on the :func:`grid` of the graph.
    """

    def __init__(self, graph: NeighborGraph, linkage: str) -> None:
        check_linkage(linkage)
        self.linkage = linkage
        self.sign = 1 if graph.kind == "similarity" else -1
        self.missing = None if graph.missing == "ignore" else self.sign * float(graph.missing or 0.0)
        self.grid = grid(graph)

    def of_edges(self, weights: npt.NDArray[np.float32]) -> Statistics:
        """The statistics of single edges."""
        signed = self.sign * weights.astype(np.float64)
        count = np.ones(len(weights), np.int64)
        if self.linkage != "average":
            return Statistics(signed, count)
        steps = np.rint(np.ldexp(signed, self.grid.shift))
        if not self.grid.wide:
            return Statistics(steps.astype(np.int64), count)
        return Statistics(np.array([int(step) for step in steps], object), count)

    def value(self, edges: Statistics, a: Float, b: Float) -> Float:
        """How close clusters of sizes ``a`` and ``b`` with these edges between them are."""
        pairs = a * b
        if self.linkage == "average":
            total = np.ldexp(edges.combined.astype(np.float64), -self.grid.shift)
            if self.missing is None:
                return np.asarray(total / edges.count)
            return np.asarray((total + self.missing * (pairs - edges.count)) / pairs)
        if self.linkage == "complete" and self.missing is not None:
            return np.where(edges.count == pairs, edges.combined, np.minimum(edges.combined, self.missing))
        return edges.combined
