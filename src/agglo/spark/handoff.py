"""The hand-off from Spark to the C++ core: load a graph into the driver's memory, and run rounds on it there.

There are two cases. If the whole contracted graph fits the driver's memory, the core runs all remaining rounds.
Otherwise :func:`plan_handoff` selects the next few rounds whose participants fit the driver's memory. The
participants are the clusters that can merge in these rounds, with the edges between them. The core runs these
rounds, and then Spark contracts the graph once for all of them.

A cluster can merge within a threshold only if its nearest neighbour is within that threshold before these rounds.
:meth:`agglo.spark.linkage.SqlLinkage.cannot_get_closer` states when this holds.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agglo import _core
from agglo._validation import effective_n_threads
from agglo.neighbors.graph import FixedPoint, Kind, Missing, WeightSummary
from agglo.rounds.linkage import EdgeStatistics
from agglo.rounds.schedule import RoundPlan, convert_plan
from agglo.spark.linkage import SqlLinkage
from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Round

Ints = npt.NDArray[np.int64]

_SAMPLE = 100_000  # number of clusters that are sampled to estimate the number of edges
# An estimate may be too low, so it must not exceed this share of the maximum number of edges.
_SAMPLE_MARGIN = 0.95
_MAX_SILENT_ROUNDS = 200  # if more rounds than this may run on Spark, warn
# Estimated number of Spark rounds per `handoff_edges` edges of the graph; see docs/guide/scale.md.
_STEPS_PER_SHARE = 2


class CoreResult(NamedTuple):
    """The merges that the C++ core found on a collected graph, as a forest over the clusters of the graph."""

    ids: Ints
    """The sorted ids of the clusters. Clusters without edges are not collected, because they do not merge."""
    sizes: Ints
    """The number of points of each cluster."""
    forest: Forest
    """The forest whose leaves are these clusters."""

    def rounds(self, n_clusters: int) -> list[Round]:
        """Return one record per round that the core ran.

        ``n_clusters`` is the number of all clusters before these rounds, including clusters without edges.
        """
        isolated = n_clusters - len(self.ids)
        forest = self.forest
        records = zip(
            forest.threshold, forest.before + isolated, forest.after + isolated, forest.seconds, strict=True
        )
        return [Round(*(value.item() for value in record)) for record in records]

    def merges(self, sign: int, n_rounds: int) -> pa.Table:
        """Return the table of merges, with the columns of :func:`agglo.spark.round.build_merges`.

        ``sign`` is -1 for distances, whose values are negated. ``n_rounds`` is the number of earlier rounds.
        """
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
        """Return a table with one row per cluster that merged.

        ``child`` is the id of the cluster before these rounds. ``cluster`` and ``size`` are the id and the number
        of points of the cluster that contains it after these rounds.
        """
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
        # Process the rounds in order, because a node needs the final ids and sizes of its children.
        order = np.argsort(forest.round[parent], kind="stable")
        bounds = np.searchsorted(forest.round[parent][order], np.arange(1, n_rounds + 2))
        for first, end in pairwise(bounds):
            merged = order[first:end]
            np.minimum.at(ids, parent[merged], ids[child[merged]])
            np.add.at(sizes, parent[merged], sizes[child[merged]])
        return ids, sizes


class ContractedGraph(NamedTuple):
    """The clusters after some rounds, and statistics of the edges between each pair of clusters.

    Clusters are numbered in the order of their smallest point ids, so that ties are broken as in the input graph.
    """

    sizes: Ints
    """The number of points of each cluster; the total must be less than 2^53."""
    rows: Ints
    """The smaller cluster id of each pair of clusters with an edge."""
    columns: Ints
    """The larger cluster id of each pair of clusters with an edge."""
    edges: EdgeStatistics
    """The statistics of the edges of each pair. For average linkage, weights are summed in fixed point."""


def run_remaining_rounds(
    graph: ContractedGraph,
    plan: RoundPlan,
    thresholds: npt.ArrayLike,
    fixed: FixedPoint,
    *,
    kind: Kind,
    missing: Missing,
    n_jobs: int | None = None,
) -> Forest:
    """Run rounds with the remaining ``thresholds`` in the C++ core; return the forest over the clusters.

    If the plan has no thresholds, ``thresholds`` is empty. ``fixed`` is the fixed-point format of the sums of
    weights. ``kind`` and ``missing`` describe the weights of the input graph. The leaves of the forest are the
    clusters of ``graph``.
    """
    n, m = len(graph.sizes), len(graph.rows)
    sign = 1 if kind == "similarity" else -1
    # Each pair of clusters has two entries in the CSR matrix, one per direction.
    # `pair` maps each entry to the index of its pair.
    ends = np.concatenate([graph.rows, graph.columns]), np.concatenate([graph.columns, graph.rows])
    matrix = sp.csr_array((np.tile(np.arange(m), 2), ends), shape=(n, n))
    matrix.sort_indices()
    pair = matrix.data
    combined = graph.edges.combined
    is_average = plan.linkage == "average"
    weights = np.zeros(2 * m, np.float32) if is_average else (sign * combined).astype(np.float32)[pair]
    sums = _limbs(combined, fixed.limbs)[pair].ravel() if is_average else np.empty(0, np.int64)
    given = None if missing == "ignore" else missing
    linkage = _core.LinkageSpec(kind, str(plan.linkage), missing=given, shift=fixed.shift, limbs=fixed.limbs)
    return Forest(
        *_core.run_cluster_rounds(
            (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), weights),
            (graph.sizes.astype(np.float64), graph.edges.number[pair], sums),
            convert_plan(replace(plan, thresholds=np.asarray(thresholds, np.float64)), linkage),
            effective_n_threads(n_jobs),
            None,
        )
    )


def _limbs(sums: npt.NDArray[Any], number: int) -> Ints:
    """Split each integer into ``number`` words of 64 bits, lowest first; return one row of words per integer."""
    if number == 1:
        return sums.astype(np.int64)[:, None]
    wrapped = [int(value) % 2 ** (64 * number) for value in sums]
    columns = [[value >> 64 * limb & (2**64 - 1) for value in wrapped] for limb in range(number)]
    return np.array(columns, np.uint64).view(np.int64).T


def run_core(
    edges: DataFrame, plan: RoundPlan, steps: slice, fixed: FixedPoint, kind: Kind, missing: Missing
) -> CoreResult:
    """Load a contracted graph into the driver's memory, and run rounds on it in the C++ core.

    The rounds use the thresholds ``plan.thresholds[steps]``.
    """
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
    """Return ``end`` such that the core can run the rounds with the thresholds from ``step`` to ``end - 1``.

    These are indices of ``thresholds``, which is sorted from near to far; larger values are closer. If the next
    round does not fit the driver's memory, ``end`` is ``step``. ``nearest`` is the result of
    :func:`agglo.spark.round.find_nearest` without a threshold. ``n_clusters`` is an upper bound on the number of
    rows of ``nearest``.
    """
    # At thresholds nearer than `thresholds[end]`, merges never bring farther clusters within the threshold.
    positions = range(len(thresholds))
    end = bisect_left(positions, True, lo=step, key=lambda i: not linkage.cannot_get_closer(float(thresholds[i])))
    share = min(1.0, _SAMPLE / n_clusters)
    sample = nearest.sample(share, 0) if share < 1 else nearest
    rows = sample.select("value", "degree").toArrow().sort_by([("value", "descending")])
    value, degree = (rows[name].to_numpy() for name in ("value", "degree"))
    # The degrees count an edge between two participants twice, and an edge to another cluster once.
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
    """Return the edges whose ends are both listed in the column ``cluster`` of ``clusters``."""
    for end in ("lo", "hi"):
        edges = edges.join(clusters.select(F.col("cluster").alias(end)), end, "semi")
    return edges


def warn_many_rounds(plan: RoundPlan, graph: WeightSummary, handoff_edges: int) -> None:
    """Warn if many rounds may run on Spark, each of which reads the whole graph."""
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
