"""The hand-off to the core: collect a graph that fits the driver, and run rounds on it in one process.

There are two kinds. At the end the whole contracted graph fits the driver, and the core does all rounds that are
left. Before, most rounds merge little: if the clusters that take part in the next rounds fit the driver, with the
edges between them, the core does these rounds (:func:`plan_handoff`), and Spark contracts the graph once.

A cluster takes part in the rounds up to a threshold only if its nearest neighbour is within that threshold before
them; see :meth:`agglo.spark.linkage.SqlLinkage.cannot_get_closer`.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agglo.neighbors.graph import Kind, Missing, WeightSummary
from agglo.rounds.linkage import EdgeStatistics, FixedPoint
from agglo.rounds.plan import RoundPlan
from agglo.spark.contracted_graph import ContractedGraph, run_remaining_rounds
from agglo.spark.linkage import SqlLinkage
from agglo.tree.forest import Forest, Round

Ints = npt.NDArray[np.int64]

_SAMPLE = 100_000  # clusters that are sampled to estimate the number of edges
_SAMPLE_MARGIN = 0.95  # share of the allowed edges that an estimate may reach, because it may be too low
_MAX_SILENT_ROUNDS = 200  # on Spark; more of them take long enough for a warning
_STEPS_PER_SHARE = 2  # on Spark, for each share of the graph that fits the driver; see docs/scale.md


class CoreResult(NamedTuple):
    """The forest that the core built over the clusters of a collected graph."""

    ids: Ints
    """The clusters with edges, sorted; clusters without edges are not collected, and do not merge."""
    sizes: Ints
    """Their numbers of points."""
    forest: Forest
    """The forest whose leaves are these clusters."""

    def rounds(self, n_clusters: int) -> list[Round]:
        """Return the records of the rounds, as of a run with ``n_clusters`` clusters."""
        isolated = n_clusters - len(self.ids)
        forest = self.forest
        records = zip(
            forest.threshold, forest.before + isolated, forest.after + isolated, forest.seconds, strict=True
        )
        return [Round(*(value.item() for value in record)) for record in records]

    def merges(self, sign: int, n_rounds: int) -> pa.Table:
        """Return the rows of :func:`agglo.spark.round.build_merges`, after ``n_rounds`` earlier rounds."""
        forest = self.forest
        ids, sizes = self._node_ids_and_sizes()
        child = np.flatnonzero(forest.parent >= 0)
        parent = forest.parent[child]
        return pa.table(
            {
                "round": (n_rounds + forest.round[parent]).astype(np.int32),
                "child": ids[child],
                "child_size": sizes[child],
                "cluster": ids[parent],
                "size": sizes[parent],
                "value": sign * forest.value[parent],
            }
        )

    def moves(self) -> pa.Table:
        """Return each merged cluster as ``child``, with its final ``cluster`` and that one's ``size``."""
        ids, sizes = self._node_ids_and_sizes()
        n, parent = len(self.ids), self.forest.parent
        root = np.where(parent < 0, np.arange(len(parent)), parent)
        while (root[root] != root).any():
            root = root[root]
        moved = np.flatnonzero(parent[:n] >= 0)
        return pa.table({"child": ids[moved], "cluster": ids[root[moved]], "size": sizes[root[moved]]})

    def _node_ids_and_sizes(self) -> tuple[Ints, Ints]:
        """Return the id and the number of points of each node of the forest."""
        forest, n, n_rounds = self.forest, len(self.ids), len(self.forest.threshold)
        n_inner = len(forest.parent) - n
        ids = np.concatenate([self.ids, np.full(n_inner, np.iinfo(np.int64).max)])
        sizes = np.concatenate([self.sizes, np.zeros(n_inner, np.int64)])
        child = np.flatnonzero(forest.parent >= 0)
        parent = forest.parent[child]
        # Round by round, because the children of a node must be complete before the node.
        order = np.argsort(forest.round[parent], kind="stable")
        bounds = np.searchsorted(forest.round[parent][order], np.arange(1, n_rounds + 2))
        for first, end in pairwise(bounds):
            merged = order[first:end]
            np.minimum.at(ids, parent[merged], ids[child[merged]])
            np.add.at(sizes, parent[merged], sizes[child[merged]])
        return ids, sizes


def run_core(
    edges: DataFrame, plan: RoundPlan, steps: slice, fixed: FixedPoint, kind: Kind, missing: Missing
) -> CoreResult:
    """Collect a contracted graph, and run the rounds of the thresholds ``steps`` on it in the core."""
    table = edges.toArrow()
    ends = [table[end].to_numpy() for end in ("lo", "hi")]
    ids, codes = np.unique(np.concatenate(ends), return_inverse=True)
    rows, columns = np.split(codes, 2)
    sizes = np.empty(len(ids), np.int64)
    sizes[rows], sizes[columns] = table["lo_size"].to_numpy(), table["hi_size"].to_numpy()
    combined = table["combined"]
    # Decimals are 128-bit integers, for which NumPy has no type.
    is_decimal = pa.types.is_decimal(combined.type)
    values = (
        np.array([int(value) for value in combined.to_pylist()], object) if is_decimal else combined.to_numpy()
    )
    statistics = EdgeStatistics(values, table["count"].to_numpy())
    del table
    thresholds = np.empty(0) if plan.thresholds is None else plan.thresholds[steps]
    graph = ContractedGraph(sizes, rows, columns, statistics)
    forest = run_remaining_rounds(graph, plan, thresholds, fixed, kind=kind, missing=missing)
    return CoreResult(ids, sizes, forest)


def plan_handoff(
    nearest: DataFrame,
    n_clusters: int,
    linkage: SqlLinkage,
    thresholds: npt.NDArray[np.float64],
    step: int,
    max_edges: int,
) -> int:
    """Return the end of the range of thresholds, from ``step`` on, whose rounds fit the core; ``step`` if none.

    Parameters
    ----------
    nearest : DataFrame
        The nearest neighbours of all clusters, without a threshold; see :func:`agglo.spark.round.find_nearest`.
    n_clusters : int
        An upper bound of their number.
    linkage : SqlLinkage
        The linkage.
    thresholds : array
        From near to far, larger being closer.
    step : int
        The next threshold.
    max_edges : int
        The number of edges that fit the driver.
    """
    # Up to `end` clusters cannot get closer by merging; from there on they can.
    positions = range(len(thresholds))
    end = bisect_left(positions, True, lo=step, key=lambda i: not linkage.cannot_get_closer(float(thresholds[i])))
    share = min(1.0, _SAMPLE / n_clusters)
    sample = nearest.sample(share, 0) if share < 1 else nearest
    rows = sample.select("value", "degree").toArrow().sort_by([("value", "descending")])
    value, degree = (rows[name].to_numpy() for name in ("value", "degree"))
    # An edge between two participants is counted at both ends, any other edge of a participant at one.
    n_edges = np.concatenate([[0], np.cumsum(degree)]) / share / 2
    needed = n_edges[np.searchsorted(-value, -linkage.rounding_bound(thresholds[step:end]), side="right")]
    n_steps = int((needed <= (max_edges if share == 1 else _SAMPLE_MARGIN * max_edges)).sum())
    while n_steps:
        participates = linkage.reaches(float(thresholds[step + n_steps - 1]), F.col("value"))
        if nearest.agg(F.sum(F.when(participates, F.col("degree")))).collect()[0][0] <= 2 * max_edges:
            break
        n_steps //= 2  # the sample underestimated the number of edges
    return step + n_steps


def edges_between(edges: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return the edges whose ends are both in the column ``cluster`` of ``clusters``."""
    for end in ("lo", "hi"):
        edges = edges.join(clusters.select(F.col("cluster").alias(end)), end, "semi")
    return edges


def warn_many_rounds(plan: RoundPlan, graph: WeightSummary, handoff_edges: int) -> None:
    """Warn if Spark may have to do many rounds; thresholds that no pair reaches are not counted."""
    if plan.thresholds is None:
        return
    n_rounds = graph.n_points - 1
    if not plan.until_stable:
        n_rounds = min(n_rounds, len(plan.thresholds))
    if handoff_edges:
        n_rounds = min(n_rounds, _STEPS_PER_SHARE * graph.n_edges // handoff_edges)
    if n_rounds > _MAX_SILENT_ROUNDS:
        warnings.warn(
            f"up to {n_rounds:,} rounds may run on Spark, and each reads the whole graph, which takes seconds: "
            f"pass n_thresholds={_MAX_SILENT_ROUNDS} or fewer, or handoff_edges greater than {handoff_edges:,}, "
            "up to what the driver's memory allows",
            stacklevel=5,
        )
