"""The folder of a run: tables in Parquet, and a log of states that says which of them count.

Everything is read and written by Spark itself, so the folder may be on any file system that the cluster has, and
nothing of it passes through the driver but the log, which has a line a round.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agglo.spark.owner import Ownership
from agglo.tree.forest import Round

POINTS = "points"  # id: the number of a point; name: what the user calls it, the same if that is a number
GRAPH = "graph"  # lo < hi: ids; weight: of the closest edge between them
MERGES = "merges"  # a table for each round, see agglo.spark.round.merges
# The others are in `work`, in a folder for each driver.
EDGES = ("edges-0", "edges-1")  # the contracted graph, in turns: one is read while the other is written
NEAREST = "nearest"  # of clusters, see agglo.spark.round.nearest
MOVES = "moves"  # what the core merged, see agglo.spark.handoff.HandedOff.moves
POINTERS = ("pointers-0", "pointers-1")  # from each cluster to one nearer to its root, in turns

_LIST = 10_000  # rows that are sent as one, and
_BATCH = 100  # how many of these are sent at a time, so that no message is larger than Spark allows


class State(NamedTuple):
    """Where a run is: a line of the log, valid once it is there, because all that it names was written before."""

    number: int
    """How many states came before."""
    edges: str
    """The table of the contracted graph; `GRAPH` before the first round."""
    n_edges: int
    """Its number of rows."""
    best: float | None
    """The closest linkage in it, larger being closer."""
    clusters: int
    """How many clusters there are."""
    step: int
    """The first threshold that has not been dealt with."""
    n_rounds: int = 0
    """How many rounds have merged anything so far."""
    merges: str | None = None
    """The table of what was merged since the state before, if anything was."""
    rounds: list[Round] = []  # noqa: RUF012  # a tuple's default, never changed
    """The records of the rounds since the state before."""
    beyond: int = 0
    """How many edges of the graph are beyond the last threshold."""
    spared: int = 0
    """How many of them there were when clusters that are beyond it from all others were last left out."""
    done: bool = False
    """Whether no threshold is left that anything reaches."""


class Folder:
    """A run's tables and its log."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.path = spark, str(path).rstrip("/")
        self.owner = Ownership(self.path, lambda: self._lines("owners"), lambda line: self._append("owners", line))

    def own(self, table: str) -> str:
        """The name of a table that no other driver writes."""
        return f"work/{self.owner.token}/{table}"

    def read(self, *tables: str) -> DataFrame:
        """The rows of tables that were written before."""
        return self.spark.read.parquet(*(f"{self.path}/{table}" for table in tables))

    def write(self, frame: DataFrame, table: str) -> DataFrame:
        """The same rows, read back: what they were computed from can be forgotten."""
        frame.write.mode("overwrite").parquet(f"{self.path}/{table}")
        return self.spark.read.schema(frame.schema).parquet(f"{self.path}/{table}")

    def sent(self, table: pa.Table) -> DataFrame:
        """Rows of the driver, on the cluster.

        Spark makes objects of rows that it is given, at several times the cost of writing them. So columns are
        sent as lists, a few rows of thousands of values, and made into rows where they are written.
        """
        batches = []
        for first in range(0, max(1, table.num_rows), _LIST * _BATCH):
            part = table.slice(first, _LIST * _BATCH)
            offsets = np.minimum(np.arange(0, part.num_rows + _LIST, _LIST), part.num_rows).astype(np.int32)
            columns = [pa.ListArray.from_arrays(offsets, column.combine_chunks()) for column in part.columns]
            batches.append(pa.RecordBatch.from_arrays(columns, table.column_names))
        first, *others = table.column_names
        lists = self.spark.createDataFrame(pa.Table.from_batches(batches))
        rows = lists.select(F.posexplode(first).alias("place", first), *others)
        return rows.select(first, *(F.col(name)[F.col("place")].alias(name) for name in others))

    def once(self, table: str, make: Callable[[], DataFrame]) -> DataFrame:
        """A table that is made when it is first asked for."""
        if table not in self._lines("tables"):
            self.write(make(), table)
            self._append("tables", table)
        return self.read(table)

    # ---- the log ----

    def head(self) -> dict[str, Any] | None:
        """What the run was started with, if it was."""
        lines = self._lines("head")
        return json.loads(lines[0]) if lines else None

    def start(self, head: dict[str, Any]) -> None:
        """Note what a run is started with."""
        self._append("head", json.dumps(head))

    def states(self) -> list[State]:
        """All states of the run, the last one last."""
        found = (State(**json.loads(line)) for line in self._lines("log"))
        states = sorted(found, key=lambda state: state.number)
        return [state._replace(rounds=[Round(*record) for record in state.rounds]) for state in states]

    def append(self, state: State) -> None:
        """Note a state. From here on a run goes on from it, whatever happens; raises if the run is another's."""
        self.owner.check()
        self._append("log", json.dumps(state._asdict()))

    def _lines(self, log: str) -> list[str]:
        try:
            # By a pattern: Spark logs a warning for a folder that is not there yet, but none for no match.
            return [row.value for row in self.spark.read.text(f"{self.path}/{log}/part-*").collect()]
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return []
            raise

    def _append(self, log: str, line: str) -> None:
        # One file, which appears whole or not at all: that is what makes a state durable.
        frame = self.spark.range(1, numPartitions=1).select(F.lit(line).alias("value"))
        frame.write.mode("append").text(f"{self.path}/{log}")
