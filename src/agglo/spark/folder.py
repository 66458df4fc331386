"""The folder of a clustering run: Parquet tables, a log of states that names the valid tables, and a lock.

Spark reads and writes all files, so the folder may be on any file system that the cluster supports. The driver
itself reads only the log, which has one line per state.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agglo.tree.hierarchy import Round

_ACTIVE_TOKENS: set[str] = set()  # the tokens (unique ids) of the drivers that run in this process


class Owner(NamedTuple):
    """An entry of the log of owners: a driver process that has, or had, the lock of a run folder."""

    number: int  # one more than the number of the previous owner
    token: str  # a unique id of the driver
    host: str
    process: int
    ended: bool = False  # whether the driver has released the folder

    @property
    def is_alive(self) -> bool:
        """Whether the driver's process is running; False if it runs on another machine."""
        if self.ended or self.host != socket.gethostname():
            return False
        if self.process == os.getpid():
            return self.token in _ACTIVE_TOKENS
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # the process runs, but belongs to another user
            return True
        return True


class FolderLock:
    """A lock that lets only one driver at a time write to a run folder.

    Each driver that locks the folder appends a record to the log of owners. ``read`` returns the lines of this
    log, and ``append`` appends a line to it.
    """

    def __init__(self, path: str, read: Callable[[], list[str]], append: Callable[[str], None]) -> None:
        self.path, self._read, self._append = path, read, append
        self.token = uuid.uuid4().hex[:12]

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Lock the folder during a ``with`` block; raise ``FileExistsError`` if another driver is running."""
        last = self._last_owner()
        if last is not None and last.is_alive:
            raise FileExistsError(
                f"process {last.process} on {last.host} is working on the run in {self.path}: wait for it or stop "
                f"it, or pass another path; if that process is not a run of agglo, delete {self.path}/owners"
            )
        record = Owner(last.number + 1 if last else 1, self.token, socket.gethostname(), os.getpid())
        _ACTIVE_TOKENS.add(self.token)
        self._append(json.dumps(record._asdict()))
        try:
            self.check()
            yield
        except BaseException as error:
            try:
                self._release(record)
            except Exception as failure:
                error.add_note(f"the end of the run could not be recorded in {self.path}/owners: {failure}")
            raise
        self._release(record)

    def check(self) -> None:
        """Raise ``FileExistsError`` if another driver has taken over the lock of the folder."""
        last = self._last_owner()
        if last is None or last.token != self.token:
            owner = f"process {last.process} on {last.host}" if last else "nobody"
            raise FileExistsError(
                f"the run in {self.path} has been taken over by {owner}: this process stops; no data is lost"
            )

    def _release(self, record: Owner) -> None:
        _ACTIVE_TOKENS.discard(self.token)
        self._append(json.dumps(record._replace(ended=True)._asdict()))

    def _last_owner(self) -> Owner | None:
        records = [Owner(**json.loads(line)) for line in self._read()]
        # If two drivers start at the same time, this order makes both select the same owner.
        # `ended` is the last key, so the record of a driver's end follows the record of its start.
        return max(records, key=lambda record: (record.number, record.token, record.ended), default=None)


POINTS = "points"  # columns id (internal) and name (the user's id); both are equal if the user's ids are integers
GRAPH = "graph"  # columns lo < hi (ids of two points) and weight (of the closest edge between them)
MERGES = "merges"  # one table per round or hand-off, see agglo.spark.round.build_merges
# The following tables are temporary. Each driver stores them in its own folder inside `work`.
# If a table has two names, one copy is read while the other is written.
EDGES = ("edges-0", "edges-1")  # the contracted graph
NEAREST = "nearest"  # see agglo.spark.round.find_nearest
MOVES = "moves"  # the final cluster of each cluster that the core merged, see CoreResult.moves
POINTERS = ("pointers-0", "pointers-1")  # pointers from each cluster towards the root of its component

FORMAT = 3  # version of the format of header and log
_LIST_ROWS = 10_000  # number of rows that `upload` packs into one list
_BATCH_LISTS = 100  # number of lists per message to Spark, so that no message exceeds Spark's size limit


class State(NamedTuple):
    """The state of a run after a step, such as a round. The log has one line per state."""

    number: int  # the number of earlier states
    edges: str  # the name of the table of the contracted graph; before the first round, `GRAPH`
    n_edges: int  # the number of edges of the contracted graph
    best: float | None  # the linkage of the closest two clusters; larger values are closer
    clusters: int  # the number of clusters after the step
    step: int  # the index of the next threshold
    n_rounds: int = 0  # the number of rounds that have merged clusters so far
    merges: str | None = None  # the name of the table of merges since the previous state; None if nothing merged
    rounds: list[Round] = []  # noqa: RUF012  # the records of the rounds since the previous state; never changed
    n_unreachable: int = 0  # the number of edges that are farther than the last threshold
    n_unreachable_kept: int = 0  # the value of `n_unreachable` after isolated clusters were last dropped
    done: bool = False  # whether no pair of clusters reaches any remaining threshold


class Folder:
    """The folder of a run: reads and writes its tables, its header and its log of states."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.path = spark, str(path).rstrip("/")
        self.lock = FolderLock(self.path, lambda: self._lines("owners"), lambda line: self._append("owners", line))

    def work_table(self, table: str) -> str:
        """Return the path of a temporary table in this driver's own folder."""
        return f"work/{self.lock.token}/{table}"

    def read(self, *tables: str) -> DataFrame:
        """Return the rows of one or more stored tables as one Spark table."""
        return self.spark.read.parquet(*(f"{self.path}/{table}" for table in tables))

    def write(self, frame: DataFrame, table: str) -> DataFrame:
        """Write a Spark table to the folder; return the stored copy, which Spark does not compute again."""
        frame.write.mode("overwrite").parquet(f"{self.path}/{table}")
        return self.spark.read.schema(frame.schema).parquet(f"{self.path}/{table}")

    def upload(self, table: pa.Table) -> DataFrame:
        """Convert an Arrow table in the driver's memory to a Spark table.

        Spark converts each row that it receives to an object, which takes longer than writing the row. So each
        column is sent as a few rows of long lists. Spark expands the lists with ``posexplode``.
        """
        batches = []
        for first in range(0, max(1, table.num_rows), _LIST_ROWS * _BATCH_LISTS):
            part = table.slice(first, _LIST_ROWS * _BATCH_LISTS)
            offsets = np.minimum(np.arange(0, part.num_rows + _LIST_ROWS, _LIST_ROWS), part.num_rows)
            lists = [pa.ListArray.from_arrays(offsets.astype(np.int32), c.combine_chunks()) for c in part.columns]
            batches.append(pa.RecordBatch.from_arrays(lists, table.column_names))
        first, *others = table.column_names
        frame = self.spark.createDataFrame(pa.Table.from_batches(batches))
        rows = frame.select(F.posexplode(first).alias("position", first), *others)
        return rows.select(first, *(F.col(name)[F.col("position")].alias(name) for name in others))

    def get_or_write(self, table: str, build: Callable[[], DataFrame]) -> DataFrame:
        """Return a stored table. A table that is not stored yet is built and written first."""
        if table not in self._lines("tables"):
            self.write(build(), table)
            self._append("tables", table)
        return self.read(table)

    # ---- header and log ----

    def read_header(self) -> dict[str, Any] | None:
        """Return the header of the run (parameters and thresholds), or None if the folder contains no run.

        The header records the parameters, the fingerprint of the input, the summary of the graph, and the
        thresholds.
        """
        lines = self._lines("head")
        if not lines:
            return None
        header: dict[str, Any] = json.loads(lines[0])
        if header["format"] != FORMAT:
            raise ValueError(
                f"the run in {self.path} has format {header['format']}, but this version of agglo reads {FORMAT}: "
                "use the version that wrote it, or pass another path to start again"
            )
        return header

    def write_header(self, header: dict[str, Any]) -> None:
        """Write the header of a new run."""
        self._append("head", json.dumps({"format": FORMAT, **header}))

    def read_states(self) -> list[State]:
        """Return all states of the run, from first to last."""
        states = sorted((State(**json.loads(line)) for line in self._lines("log")), key=lambda state: state.number)
        return [state._replace(rounds=[Round(*record) for record in state.rounds]) for state in states]

    def append_state(self, state: State) -> None:
        """Append a state to the log; raise ``FileExistsError`` if another driver has locked the folder."""
        self.lock.check()
        self._append("log", json.dumps(state._asdict()))

    def _lines(self, log: str) -> list[str]:
        try:
            # Read a glob pattern, because Spark logs a warning if a path does not exist.
            return [row.value for row in self.spark.read.text(f"{self.path}/{log}/part-*").collect()]
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return []
            raise

    def _append(self, log: str, line: str) -> None:
        # Each line is a separate file, which appears atomically.
        frame = self.spark.range(1, numPartitions=1).select(F.lit(line).alias("value"))
        frame.write.mode("append").text(f"{self.path}/{log}")
