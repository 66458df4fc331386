"""The tree of a run on Spark, stored as tables in a folder."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agglo.rounds.schedule import RoundPlan
from agglo.spark.edges import GraphSummary
from agglo.spark.folder import GRAPH, POINTERS, POINTS, Folder, State
from agglo.spark.round import pointer_jump
from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Hierarchy, Rounds

Ints = npt.NDArray[np.int64]
_MERGES = {
    "round": "int",
    "child": "long",
    "child_size": "long",
    "cluster": "long",
    "size": "long",
    "value": "double",
}


class SparkHierarchy:
    """The tree of a finished run, stored as tables that Spark reads.

    Parameters
    ----------
    spark : SparkSession
        The session that reads the tables.
    path : str
        The folder of a finished run of :func:`agglo.spark.scc`.

    Notes
    -----
    Points have internal ids. If the user's ids are integers, the internal ids are equal to them. If the user's ids
    are strings, the internal ids are integers in the sorted order of the strings. The id of a cluster is the
    smallest internal id of its points.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [("ant", "bee", 0.9), ("bee", "cow", 0.2), ("cow", "dog", 0.8)]
    >>> edges = spark.createDataFrame(rows, "src string, dst string, weight float")
    >>> tree = agglo.spark.scc(edges, "tree-run", kind="similarity")
    >>> tree.merges.count()
    6
    >>> tree.assignment(round=1).count()
    4
    >>> tree.to_hierarchy().cut(n_clusters=2)
    array([0, 0, 1, 1])
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.folder = Folder(spark, path)
        header = self.folder.read_header()
        states = self.folder.read_states()
        if header is None or not states or not states[-1].done:
            raise ValueError(
                f"{path} contains no finished run: "
                + ("call agglo.spark.scc with resume=True first" if header else "check the path")
            )
        self._header: dict[str, Any] = header
        self._states: list[State] = states
        self.graph_summary = GraphSummary(**header["graph"])

    @property
    def path(self) -> str:
        """The folder of the run."""
        return self.folder.path

    @property
    def n_points(self) -> int:
        """The number of points."""
        return self.graph_summary.n_points

    @cached_property
    def rounds(self) -> Rounds:
        """One record per round: threshold, number of clusters before and after the round, duration in seconds."""
        records = [record for state in self._states for record in state.rounds]
        columns = zip(*records, strict=True) if records else ([], [], [], [])
        return Rounds(*(np.array(column) for column in columns))

    @property
    def clusters_per_round(self) -> list[int]:
        """The number of clusters before the first round, followed by the number of clusters after each round."""
        return [self.n_points, *self.rounds.after.tolist()]

    @property
    def points(self) -> DataFrame:
        """The table of points: ``id`` is the internal id, ``name`` is the user's id."""
        return self.folder.read(POINTS)

    @property
    def graph(self) -> DataFrame:
        """The table of cleaned edges: the ids ``lo`` and ``hi`` of two points, with lo < hi, and ``weight``."""
        return self.folder.read(GRAPH)

    @cached_property
    def merges(self) -> DataFrame:
        """The table of merges, with one row per child of each merge.

        ``round`` is the number of the round that merges the child. ``child`` and ``child_size`` are the id and
        the number of points of the child. ``cluster`` and ``size`` are the id and the number of points of the
        merged cluster. ``value`` is the farthest linkage among the merged pairs of clusters. Distances are
        negated, so that larger values are closer.
        """
        tables = [state.merges for state in self._states if state.merges is not None]
        if not tables:
            schema = ", ".join(f"{name} {kind}" for name, kind in _MERGES.items())
            return self.folder.spark.createDataFrame([], schema)
        return self.folder.read(*tables)

    def labels(self, round: SupportsIndex) -> DataFrame:
        """Return the partition after a round as a table with the columns ``id`` and ``cluster``.

        ``id`` is the user's id of a point. ``cluster`` is the user's id of the first point of its cluster. After
        round 0, each point is a cluster. Negative numbers count from the last round: -1 is the last round.
        """
        names = self.points.select("id", "name")
        labels = self.assignment(round).join(names, "id").select(F.col("name").alias("point"), "cluster")
        clusters = names.select(F.col("id").alias("cluster"), F.col("name").alias("first"))
        return labels.join(clusters, "cluster").select(F.col("point").alias("id"), F.col("first").alias("cluster"))

    def assignment(self, round: SupportsIndex) -> DataFrame:
        """Return the partition after a round as a table of internal ids, ``id`` and ``cluster``.

        The first call for a round stores the table in the folder.
        """
        number = self._round_number(round)
        return self.folder.get_or_write(f"labels/{number:05}", lambda: self._compute_assignment(number))

    def _compute_assignment(self, number: int) -> DataFrame:
        # A merge replaces the ids of all its children except the smallest. Each id is replaced at most once.
        gone = self.merges.filter((F.col("round") <= number) & (F.col("child") != F.col("cluster")))
        pointers = self.folder.write(gone.select("child", "cluster"), self.folder.work_table(POINTERS[0]))
        ends = pointer_jump(pointers, self.folder, "child", "cluster").withColumnRenamed("child", "id")
        labels = self.points.select("id").join(ends, "id", "left")
        return labels.select("id", F.coalesce("cluster", "id").alias("cluster"))

    def _round_number(self, round: SupportsIndex) -> int:
        number, last = operator.index(round), len(self.rounds)
        if not -last - 1 <= number <= last:
            raise IndexError(f"round={number} is out of range: pass a round from 0, before the first, to {last}")
        return number + last + 1 if number < 0 else number

    def to_hierarchy(self) -> Hierarchy:
        """Load the tree into memory; leaf ``i`` is the point with the ``i``-th smallest internal id."""
        ids = np.sort(self.points.select("id").toArrow()["id"].to_numpy())
        rows = self.merges.toArrow()
        sign = 1 if self.graph_summary.kind == "similarity" else -1
        round, child, _, cluster, size, value = (rows[name].to_numpy() for name in _MERGES)
        forest = _build_forest(ids, round, child, cluster, size, sign * value, self.rounds)
        plan = plan_from_header(self._header)
        about = {"linkage": plan.linkage, "metric": self.graph_summary.metric, **plan.about}
        origin = max(1.0, self.graph_summary.max_weight)
        return Hierarchy.from_forest(
            forest, kind=self.graph_summary.kind, missing=self.graph_summary.missing, origin=origin, about=about
        )

    def __repr__(self) -> str:
        clusters = self.clusters_per_round
        return f"SparkHierarchy({clusters[0]} points, {len(self.rounds)} rounds, {clusters[-1]} clusters left)"


def plan_from_header(header: dict[str, Any]) -> RoundPlan:
    """Return the parameters of the rounds (linkage, thresholds) from the header of a run."""
    thresholds = None if header["thresholds"] is None else np.array(header["thresholds"])
    until_stable = thresholds is None or header["parameters"]["advance"] == "until-stable"
    return RoundPlan(header["parameters"]["linkage"], thresholds, until_stable, False, header["about"])


def _build_forest(
    ids: Ints, round: Ints, child: Ints, cluster: Ints, size: Ints, value: npt.NDArray[np.float64], rounds: Rounds
) -> Forest:
    """Build a forest from the columns of the table of merges; inner nodes are sorted by round, then by id."""
    n = len(ids)
    child, cluster = np.searchsorted(ids, child), np.searchsorted(ids, cluster)
    own = np.flatnonzero(child == cluster)  # one row per inner node: its child with the same id
    own = own[np.lexsort((cluster[own], round[own]))]
    # Sort nodes by id and round. The child of a merge is the last node with its id that an earlier round created.
    span = len(rounds) + 2
    keys = np.concatenate([np.arange(n) * span, cluster[own] * span + round[own]])
    order = np.argsort(keys)
    child_node = order[np.searchsorted(keys[order], child * span + round) - 1]
    parent_node = order[np.searchsorted(keys[order], cluster * span + round)]
    parent = np.full(n + len(own), -1, np.int32)
    parent[child_node] = parent_node
    return Forest(
        parent,
        np.concatenate([np.full(n, np.nan), value[own]]),
        np.concatenate([np.ones(n), size[own]]).astype(np.int32),
        np.concatenate([np.zeros(n), round[own]]).astype(np.int32),
        rounds.threshold,
        rounds.before,
        rounds.after,
        rounds.seconds,
    )
