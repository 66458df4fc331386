"""The linkages of :mod:`agglo.rounds.linkage` as SQL expressions that give equal values.

A contracted graph has one row per pair of clusters with an edge. Distances are negated, so that larger values are
closer. The columns of a contracted graph are:

    lo, hi            the ids of the two clusters, lo < hi; an id is the smallest id of the cluster's points
    lo_size, hi_size  the numbers of points of the two clusters
    combined          average linkage: the sum of the edge weights in units of 2^-shift, as a long or a decimal;
                      single linkage: the closest edge; complete linkage: the farthest edge
    count             the number of edges between the two clusters
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agglo.neighbors.graph import FixedPoint, Kind, Missing, WeightSummary, smallest_weight
from agglo.rounds.linkage import GraphLinkageName

_DECIMAL = "decimal(38,0)"
_MAX_LIMBS = 2  # Spark's decimal type holds sums of at most this number of 64-bit words (limbs)
_HALF = 2.0**63

# Rounding may make the linkage of two clusters closer than their closest pair of points.
# The relative error is less than this number.
_SLACK = 1e-6


def check_sums(graph: WeightSummary, fixed: FixedPoint) -> None:
    """Raise ``ValueError`` if sums of the weights do not fit Spark's decimal type."""
    if fixed.limbs <= _MAX_LIMBS:
        return
    largest, smallest = max(graph.max_weight, -graph.min_weight), smallest_weight(graph)
    raise ValueError(
        f"the weights are from {smallest:g} to {largest:g} in magnitude, and exact sums of {graph.n_edges} such "
        "weights do not fit the 38 digits of Spark's decimals: set handoff_edges to the number of edges or more, "
        "so that the driver does all rounds, leave out the smallest weights, or use linkage='single' or 'complete'"
    )


class SqlLinkage:
    """A linkage as SQL expressions on the columns of a contracted graph."""

    def __init__(self, linkage: GraphLinkageName, kind: Kind, missing: Missing, grid: FixedPoint) -> None:
        self.linkage = linkage
        self.sign = 1 if kind == "similarity" else -1
        self.missing = None if missing == "ignore" else self.sign * missing
        self.grid = grid

    def from_points(self, graph: DataFrame) -> DataFrame:
        """Convert a graph of points (lo, hi, weight) to a contracted graph in which each point is a cluster."""
        weight = F.col("weight").cast("double")
        # Use 0 - x, because -x would turn zero into negative zero.
        signed = weight if self.sign == 1 else F.lit(0.0) - weight
        if self.linkage == "average":
            signed = self._to_integers(F.rint(signed * F.lit(math.ldexp(1.0, self.grid.shift))))
        one = F.lit(1).cast("long")
        return graph.select(
            "lo", "hi", one.alias("lo_size"), one.alias("hi_size"), signed.alias("combined"), one.alias("count")
        )

    def _to_integers(self, steps: Column) -> Column:
        """Convert doubles with integral values to SQL integers, exactly."""
        if not self.grid.is_long:
            return steps.cast("long")
        # A direct cast to decimal is not exact, because it uses the decimal digits of a double.
        # Casts through two longs are exact.
        # Both casts truncate towards zero, and both results need no more bits than the weight.
        upper = (steps / F.lit(_HALF)).cast("long")
        lower = (steps - upper.cast("double") * F.lit(_HALF)).cast("long")
        half = F.lit(str(2**63)).cast("decimal(19,0)")
        return (upper.cast("decimal(19,0)") * half + lower.cast("decimal(19,0)")).cast(_DECIMAL)

    def aggregates(self) -> list[Column]:
        """Return SQL aggregates that combine several rows of the same pair of clusters into one row."""
        combine = {"average": F.sum, "single": F.max, "complete": F.min}[self.linkage]
        combined = combine("combined")
        if self.linkage == "average" and self.grid.is_long:
            combined = combined.cast(_DECIMAL)
        return [combined.alias("combined"), F.sum("count").alias("count")]

    def value(self) -> Column:
        """Return the SQL expression of the linkage of a pair of clusters.

        The expression computes the same operations in the same order as the C++ core.
        """
        pairs = F.col("lo_size").cast("double") * F.col("hi_size").cast("double")
        combined = F.col("combined").cast("double")
        count = F.col("count").cast("double")
        if self.linkage == "average":
            total = combined * F.lit(math.ldexp(1.0, -self.grid.shift))
            if self.missing is None:
                return total / count
            return (total + F.lit(float(self.missing)) * (pairs - count)) / pairs
        if self.linkage == "complete" and self.missing is not None:
            return F.when(count == pairs, combined).otherwise(F.least(combined, F.lit(float(self.missing))))
        return combined

    # ---- edges that no threshold reaches ----

    def may_matter(self, last: float | None) -> Column | None:
        """Return the SQL condition that an edge can affect a merge; None if all edges must be kept.

        ``last`` is the farthest threshold; larger values are closer. Two clusters farther apart than ``last`` do
        not merge directly. Both clusters may grow by merges with other clusters. The edge between them can be
        dropped if it cannot affect a merge of the grown clusters:

        - single linkage: only the closest edge between the grown clusters matters. If this closest edge is within
          ``last``, it is a different edge.
        - complete linkage: the grown clusters are at least as far apart. If the edge is dropped, the linkage uses
          ``missing`` for this pair. So ``missing`` must also be farther than ``last``.
        - average linkage: the edge contributes to the mean, so it is kept. See :meth:`cannot_get_closer`.
        """
        if last is None or self.linkage == "average":
            return None
        if self.linkage == "complete" and not self._missing_is_unreachable(last):
            return None
        return self.reaches(last)

    def reaches(self, last: float, value: Column | None = None) -> Column:
        """Return the SQL condition that a linkage is within the threshold ``last``, up to rounding errors."""
        value = self.value() if value is None else value
        bound = F.lit(float(self.rounding_bound(last)))
        return (value >= bound) | (value.cast("float") >= bound.cast("float"))

    def rounding_bound(self, threshold: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return a lower bound on the linkages that are within the threshold up to rounding errors."""
        given = np.asarray(threshold, np.float64)
        return np.asarray(given - _SLACK * np.abs(given))

    def cannot_get_closer(self, last: float) -> bool:
        """Return whether two clusters farther apart than ``last`` stay farther apart after other merges.

        The linkage of two clusters is never closer than the closest linkage between their parts. For average
        linkage, parts without an edge have the linkage ``missing``, which must be farther than ``last``.

        If the result is True, a cluster whose nearest neighbour is farther than ``last`` never merges within
        ``last``. If ``last`` is also the farthest threshold, the edges of such a cluster can be dropped.
        """
        return self.linkage != "average" or self.missing is None or self._missing_is_unreachable(last)

    def _missing_is_unreachable(self, last: float) -> bool:
        # If pairs without an edge are ignored, complete linkage would also ignore a dropped edge.
        return self.missing is not None and self.missing < float(self.rounding_bound(last))
