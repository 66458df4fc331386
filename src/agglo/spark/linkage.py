"""The linkages of :mod:`agglo.rounds.linkage` as SQL expressions, so that both come to the same numbers.

Columns of a contracted graph, a row a pair of clusters with an edge between them; larger is closer, a distance
being used with its sign turned:

    lo, hi            the names of the clusters, lo < hi; a name is the smallest id of a cluster's points
    lo_size, hi_size  how many points they are of
    combined          average: the sum of the edges' weights in steps of 2^-shift, a long, or a decimal where 64
                      bits are too few; single: the closest edge; complete: the farthest
    count             the number of the edges
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agglo.neighbors.graph import Kind, Missing, WeightSummary
from agglo.rounds.linkage import GraphLinkageName, Grid, smallest_weight

WIDE = "decimal(38,0)"
_MOST_LIMBS = 2  # of a sum that fits it
_HALF = 2.0**63

# Rounding may lift a linkage above the closest pair that it is made of, by less than this share of it.
_SLACK = 1e-6


def check_sums(graph: WeightSummary, fixed: Grid) -> None:
    """Raise if sums of the weights do not fit decimals."""
    if fixed.limbs <= _MOST_LIMBS:
        return
    largest, smallest = max(graph.max_weight, -graph.min_weight), smallest_weight(graph)
    raise ValueError(
        f"the weights are from {smallest:g} to {largest:g} in magnitude, and exact sums of {graph.n_edges} such "
        "weights do not fit the 38 digits of Spark's decimals: set handoff_edges to the number of edges or more, "
        "so that the driver does all rounds, leave out the smallest weights, or use linkage='single' or 'complete'"
    )


class SqlLinkage:
    """A linkage over the edges of one graph."""

    def __init__(self, linkage: GraphLinkageName, kind: Kind, missing: Missing, grid: Grid) -> None:
        self.linkage = linkage
        self.sign = 1 if kind == "similarity" else -1
        self.missing = None if missing == "ignore" else self.sign * missing
        self.grid = grid

    def of_edges(self, graph: DataFrame) -> DataFrame:
        """A graph of points (lo, hi, weight) as one of clusters."""
        weight = F.col("weight").cast("double")
        # 0 - x, because -x would make a negative zero of zero.
        signed = weight if self.sign == 1 else F.lit(0.0) - weight
        if self.linkage == "average":
            signed = self._steps(F.rint(signed * F.lit(math.ldexp(1.0, self.grid.shift))))
        one = F.lit(1).cast("long")
        return graph.select(
            "lo", "hi", one.alias("lo_size"), one.alias("hi_size"), signed.alias("combined"), one.alias("count")
        )

    def _steps(self, steps: Column) -> Column:
        """Whole doubles as exact integers."""
        if not self.grid.is_long:
            return steps.cast("long")
        # A decimal is made of a double's digits, not of its bits; through two longs it is exact. Both halves
        # are truncated towards zero, so that they have no more bits than the weight.
        upper = (steps / F.lit(_HALF)).cast("long")
        lower = (steps - upper.cast("double") * F.lit(_HALF)).cast("long")
        half = F.lit(str(2**63)).cast("decimal(19,0)")
        return (upper.cast("decimal(19,0)") * half + lower.cast("decimal(19,0)")).cast(WIDE)

    def merged(self) -> list[Column]:
        """Aggregates that combine the statistics of rows that have become one pair."""
        combine = {"average": F.sum, "single": F.max, "complete": F.min}[self.linkage]
        combined = combine("combined")
        if self.linkage == "average" and self.grid.is_long:
            combined = combined.cast(WIDE)
        return [combined.alias("combined"), F.sum("count").alias("count")]

    def value(self) -> Column:
        """How close the two clusters of a row are, by the operations of the other engines, in their order."""
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

    # ---- what no threshold can reach ----

    def may_reach(self, last: float | None) -> Column | None:
        """Whether a pair can still matter, for rows to be kept by; None if all have to be kept.

        ``last`` is the farthest threshold, larger being closer. A pair below it is never joined itself. It may
        go if no larger pair that it is part of misses it:

        - single: such a pair is as close as its closest edge, and this edge is closer to nothing than ``last``;
        - complete: such a pair is at least as far as this one. Without this one's edges, some of its pairs of
          points have no edge, so it is at least as far as ``missing``: exact if that is beyond ``last`` too;
        - average: the pair still counts in the mean. See :meth:`only_gets_farther`.
        """
        if last is None or self.linkage == "average":
            return None
        if self.linkage == "complete" and not self._missing_beyond(last):
            return None
        return self.reaches(last)

    def reaches(self, last: float, value: Column | None = None) -> Column:
        """Whether a linkage reaches a threshold, or misses it by no more than rounding can make up for."""
        value = self.value() if value is None else value
        bar = F.lit(float(self.bar(last)))
        return (value >= bar) | (value.cast("float") >= bar.cast("float"))

    def bar(self, threshold: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """What is farther than that does not reach a threshold, however it is rounded."""
        given = np.asarray(threshold, np.float64)
        return np.asarray(given - _SLACK * np.abs(given))

    def only_gets_farther(self, last: float) -> bool:
        """Whether clusters that are farther from each other than ``last`` stay so, whatever they merge with.

        The linkage of a pair of clusters is never closer than the closest one between parts of them; but in an
        average, parts without an edge between them are as close as ``missing``, which has to be beyond ``last``.
        So a cluster whose nearest neighbour is beyond ``last`` joins nothing up to there, and if that is the last
        threshold, its edges may go: no mean that reaches a threshold has them in it.
        """
        return self.linkage != "average" or self.missing is None or self._missing_beyond(last)

    def _missing_beyond(self, last: float) -> bool:
        # Where absent pairs are ignored, an edge left out of `complete` would be one ignored.
        return self.missing is not None and self.missing < float(self.bar(last))
