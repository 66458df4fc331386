"""The tree of a run on Spark: tables in a folder, and what can be asked of them without moving the points."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agglo.rounds.plan import RoundPlan
from agglo.spark.edges import Numbers
from agglo.spark.folder import GRAPH, POINTERS, POINTS, Folder, State
from agglo.spark.round import followed
from agglo.tree.forest import Forest, Rounds
from agglo.tree.hierarchy import Hierarchy

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
    """A tree over points in tables.

    Parameters
    ----------
    spark : SparkSession
        The session to read them with.
    path : str
        The folder of a run of :func:`agglo.spark.scc` that came to its end.

    Notes
    -----
    A cluster is named by the smallest id of its points: that of the point itself for numbers, its place in the
    order of all names for strings. In a round that merges clusters, the one with the smallest name keeps it.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.folder = Folder(spark, path)
        head = self.folder.head()
        states = self.folder.states()
        if head is None or not states or not states[-1].done:
            raise ValueError(
                f"{path} holds no run that came to its end: "
                + ("call agglo.spark.scc with resume=True first" if head else "check the path")
            )
        self._head: dict[str, Any] = head
        self._states: list[State] = states
        self.numbers = Numbers(**head["graph"])

    @property
    def path(self) -> str:
        """The folder."""
        return self.folder.path

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.numbers.n_points

    @cached_property
    def rounds(self) -> Rounds:
        """A record for each round that merged: ``threshold``, clusters ``before`` and ``after``, ``seconds``."""
        records = [record for state in self._states for record in state.rounds]
        columns = zip(*records, strict=True) if records else ([], [], [], [])
        return Rounds(*(np.array(column) for column in columns))

    @property
    def clusters_per_round(self) -> list[int]:
        """The number of clusters before the first round, and after each."""
        return [self.n_points, *self.rounds.after.tolist()]

    @property
    def points(self) -> DataFrame:
        """The points: ``id``, by which the other tables know them, and ``name``, by which the user does."""
        return self.folder.read(POINTS)

    @property
    def graph(self) -> DataFrame:
        """The edges that the run started from, cleaned: ``lo``, ``hi``, ``weight``; by ids, lo < hi."""
        return self.folder.read(GRAPH)

    @cached_property
    def merges(self) -> DataFrame:
        """The tree, a row for each part of each merge.

        In that ``round`` the cluster ``child`` of ``child_size`` points became part of ``cluster``, then of
        ``size`` points; ``value`` is the farthest linkage that was joined to make it, larger being closer and a
        distance with its sign turned.
        """
        tables = [state.merges for state in self._states if state.merges is not None]
        if not tables:
            schema = ", ".join(f"{name} {kind}" for name, kind in _MERGES.items())
            return self.folder.spark.createDataFrame([], schema)
        return self.folder.read(*tables)

    def labels(self, round: SupportsIndex) -> DataFrame:
        """The partition after a round: ``id``, the user's name of a point, and ``cluster``, that of its smallest.

        Round 0 is before the first, every point being its own cluster; negative rounds count from the end.
        """
        named = self.points.select("id", "name")
        found = self.assignment(round).join(named, "id").select(F.col("name").alias("point"), "cluster")
        clusters = named.select(F.col("id").alias("cluster"), F.col("name").alias("smallest"))
        return found.join(clusters, "cluster").select(
            F.col("point").alias("id"), F.col("smallest").alias("cluster")
        )

    def assignment(self, round: SupportsIndex) -> DataFrame:
        """The same by ids: ``id``, ``cluster``. It is computed once, and kept in the folder."""
        number = self._round_number(round)
        return self.folder.once(f"labels/{number:05}", lambda: self._assigned(number))

    def _assigned(self, number: int) -> DataFrame:
        # A name that is not kept goes once and for all: these rows are pointers, a single one from each name,
        # to names that go later or not at all. Following them doubles their reach with each join.
        gone = self.merges.filter((F.col("round") <= number) & (F.col("child") != F.col("cluster")))
        pointers = self.folder.write(gone.select("child", "cluster"), self.folder.own(POINTERS[0]))
        ends = followed(pointers, self.folder, "child", "cluster").withColumnRenamed("child", "id")
        found = self.points.select("id").join(ends, "id", "left")
        return found.select("id", F.coalesce("cluster", "id").alias("cluster"))

    def _round_number(self, round: SupportsIndex) -> int:
        number, last = operator.index(round), len(self.rounds)
        if not -last - 1 <= number <= last:
            raise IndexError(
                f"round={number} is out of range: the tree has {last} rounds, and 0 is before the first"
            )
        return number + last + 1 if number < 0 else number

    def to_hierarchy(self) -> Hierarchy:
        """The tree in memory, for as many points as fit there; leaf ``i`` is the point with the ``i``-th id."""
        ids = np.sort(self.points.select("id").toArrow()["id"].to_numpy())
        rows = self.merges.toArrow()
        sign = 1 if self.numbers.kind == "similarity" else -1
        round, child, _, cluster, size, value = (rows[name].to_numpy() for name in _MERGES)
        forest = _forest(ids, round, child, cluster, size, sign * value, self.rounds)
        plan = plan_of(self._head)
        about = {"linkage": plan.linkage, "metric": self.numbers.metric, **plan.about}
        origin = max(1.0, self.numbers.most)
        return Hierarchy.from_forest(
            forest, kind=self.numbers.kind, missing=self.numbers.missing, origin=origin, about=about
        )

    def __repr__(self) -> str:
        clusters = self.clusters_per_round
        return f"SparkHierarchy({clusters[0]} points, {len(self.rounds)} rounds, {clusters[-1]} clusters left)"


def plan_of(head: dict[str, Any]) -> RoundPlan:
    """What a run does, from what was noted at its start."""
    thresholds = None if head["thresholds"] is None else np.array(head["thresholds"])
    stay = thresholds is None or head["parameters"]["advance"] == "until-stable"
    return RoundPlan(head["parameters"]["linkage"], thresholds, stay, False, head["about"])


def _forest(
    ids: Ints, round: Ints, child: Ints, cluster: Ints, size: Ints, value: npt.NDArray[np.float64], rounds: Rounds
) -> Forest:
    """The columns of a forest from rows of merges: nodes are numbered by round, then by name."""
    n = len(ids)
    child, cluster = np.searchsorted(ids, child), np.searchsorted(ids, cluster)
    own = np.flatnonzero(child == cluster)  # a row for each node: that of the part that keeps its name
    own = own[np.lexsort((cluster[own], round[own]))]
    # Where a name's nodes are, and by which round they were made: a part is the last one made before its merge.
    span = len(rounds) + 2
    keys = np.concatenate([np.arange(n) * span, cluster[own] * span + round[own]])
    order = np.argsort(keys)
    part = order[np.searchsorted(keys[order], child * span + round) - 1]
    node = order[np.searchsorted(keys[order], cluster * span + round)]
    parent = np.full(n + len(own), -1, np.int32)
    parent[part] = node
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
