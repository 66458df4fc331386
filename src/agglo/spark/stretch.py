"""A stretch of rounds for the core: what takes part in them fits one machine, though the graph does not.

Schedules are fine, and most rounds merge little. A cluster takes part in the rounds up to a threshold only if its
nearest neighbour reaches that threshold before them: see :meth:`agglo.spark.linkage.SqlLinkage.only_gets_farther`.
The clusters that do, and the edges between these, are all that decides these rounds.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agglo.neighbors.graph import WeightSummary
from agglo.rounds.plan import RoundPlan
from agglo.spark.linkage import SqlLinkage

_SAMPLE = 100_000  # clusters that tell well enough how many take part
_MANY = 200  # rounds on Spark that take too long to be done without a word; the paper's schedules have as many
_PASSES = 2  # over the graph, for each share of it that the driver has room for; see docs/scale.md
_NEARLY = 0.95  # of the room is used by what a sample tells, for it may be wrong a little


def stretch(
    nearest: DataFrame,
    clusters: int,
    linkage: SqlLinkage,
    thresholds: npt.NDArray[np.float64],
    step: int,
    n_edges: int,
) -> int:
    """The threshold up to which, from ``step`` on, the rounds are for the core; ``step`` if none is.

    Parameters
    ----------
    nearest : DataFrame
        The nearest neighbours of all clusters, see :func:`agglo.spark.round.nearest`.
    clusters : int
        How many there are at most.
    linkage : SqlLinkage
        How close they are.
    thresholds : array
        From near to far, larger being closer.
    step : int
        The next threshold.
    n_edges : int
        How many edges there may be between the clusters that take part.
    """
    # From some threshold on linkages may get closer, and stay so.
    number = range(len(thresholds))
    end = bisect_left(number, True, lo=step, key=lambda i: not linkage.only_gets_farther(float(thresholds[i])))
    share = min(1.0, _SAMPLE / clusters)
    sample = nearest.sample(share, 0) if share < 1 else nearest
    rows = sample.select("value", "degree").toArrow().sort_by([("value", "descending")])
    value, degree = (rows[name].to_numpy() for name in ("value", "degree"))
    # Each edge between two that take part counts for both, each other one that these have for one.
    ends = np.concatenate([[0], np.cumsum(degree)]) / share / 2
    needed = ends[np.searchsorted(-value, -linkage.bar(thresholds[step:end]), side="right")]
    many = int((needed <= (n_edges if share == 1 else _NEARLY * n_edges)).sum())
    while many:
        joins = linkage.reaches(float(thresholds[step + many - 1]), F.col("value"))
        if nearest.agg(F.sum(F.when(joins, F.col("degree")))).collect()[0][0] <= 2 * n_edges:
            break
        many //= 2  # the sample has told too few
    return step + many


def between(edges: DataFrame, clusters: DataFrame) -> DataFrame:
    """The edges of which both ends are among ``clusters``."""
    for end in ("lo", "hi"):
        edges = edges.join(clusters.select(F.col("cluster").alias(end)), end, "semi")
    return edges


def warn_of_many_rounds(plan: RoundPlan, graph: WeightSummary, handoff_edges: int) -> None:
    """Warn if rounds on Spark may be too many. Thresholds are not: those that nothing reaches are no rounds."""
    if plan.thresholds is None:
        return
    most = graph.n_points - 1
    if not plan.until_stable:
        most = min(most, len(plan.thresholds))
    if handoff_edges:
        most = min(most, _PASSES * graph.n_edges // handoff_edges)
    if most > _MANY:
        warnings.warn(
            f"up to some {most:,} rounds may be done on Spark, each of which passes over the graph and takes "
            f"seconds even if it merges little: pass n_thresholds={_MANY} or fewer, or more handoff_edges than "
            f"{handoff_edges:,}, as many as the driver has room for",
            stacklevel=5,
        )
