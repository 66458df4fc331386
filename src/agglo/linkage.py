"""The linkages on a neighbour graph: what is kept of the edges between two clusters, and how close it makes them.

This is the definition in NumPy that the reference engine runs; the native core has the same in C++. Inside the
engines larger is closer: a distance is used with its sign turned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agglo.graph import Missing, NeighborGraph

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


class GraphLinkage:
    """A linkage over the edges of one graph.

    ``average`` is the mean over all pairs, ``complete`` the farthest pair, a pair without an edge counting as
    the graph's ``missing`` (with ``"ignore"`` it does not count at all); ``single`` is the closest edge.

    For ``average`` the weights are rounded to a fixed-point grid of 2^(61 - log2 m) steps up to the largest
    weight, m being the number of edges, and summed as integers. A sum is then exact, whatever its order or
    grouping, and that is what makes all engines agree to the last bit.
    """

    def __init__(self, graph: NeighborGraph, linkage: str) -> None:
        check_linkage(linkage)
        missing: Missing | None = graph.missing
        self.linkage = linkage
        self.sign = 1 if graph.kind == "similarity" else -1
        self.absent: float | None = None if missing == "ignore" else self.sign * float(missing or 0.0)
        if linkage == "average":
            largest = max(float(np.abs(graph.weights).max(initial=0)), abs(self.absent or 0.0))
            shift = 61 - int(np.frexp(largest)[1]) - graph.n_edges.bit_length()
            self.up, self.unit = 2.0**shift, 2.0**-shift
            self.base = int(np.rint((self.absent or 0.0) * self.up))

    def of_edges(self, weights: npt.NDArray[np.float32]) -> Statistics:
        """The statistics of single edges."""
        signed = self.sign * weights.astype(np.float64)
        count = np.ones(len(weights), np.int64)
        if self.linkage != "average":
            return Statistics(signed, count)
        return Statistics(np.rint(signed * self.up).astype(np.int64) - self.base, count)

    def value(self, edges: Statistics, a: Float, b: Float) -> Float:
        """How close clusters of sizes ``a`` and ``b`` with these edges between them are."""
        values: Float
        if self.linkage == "average":
            pairs = edges.count.astype(np.float64) if self.absent is None else a * b
            values = self.base * self.unit + edges.combined.astype(np.float64) / pairs * self.unit
        elif self.linkage == "complete" and self.absent is not None:
            values = np.where(edges.count == a * b, edges.combined, np.minimum(edges.combined, self.absent))
        else:
            values = edges.combined
        return values
