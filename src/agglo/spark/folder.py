"""The folder of a run: tables in Parquet, a log of states that says which tables are valid, and a lock.

Spark reads and writes everything, so the folder may be on any file system of the cluster. Only the log passes
through the driver; it has one line per state.
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

from agglo.tree.forest import Round

_ACTIVE_TOKENS: set[str] = set()  # of the drivers in this process


class Owner(NamedTuple):
    """The record of a driver."""

    number: int
    """One more than that of the previous owner."""
    token: str
    """A unique id."""
    host: str
    process: int
    ended: bool = False
    """Whether the driver has released the folder."""

    @property
    def is_alive(self) -> bool:
        """Whether the driver is known to run, which can only be checked on the same machine."""
        if self.ended or self.host != socket.gethostname():
            return False
        if self.process == os.getpid():
            return self.token in _ACTIVE_TOKENS
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # a process of another user
            return True
        return True


class FolderLock:
    """The claim of one driver to a folder.

    Parameters
    ----------
    path : str
        The folder, for messages.
    read : callable
        Returns the records so far, as lines.
    append : callable
        Appends a line.
    """

    def __init__(self, path: str, read: Callable[[], list[str]], append: Callable[[str], None]) -> None:
        self.path, self._read, self._append = path, read, append
        self.token = uuid.uuid4().hex[:12]

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Own the folder during a ``with`` block; raise ``FileExistsError`` if its owner is alive."""
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
        """Raise ``FileExistsError`` if the folder has another owner by now."""
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
        # Two drivers that start at the same time agree on the last one. A record of an end follows that of its
        # start.
        return max(records, key=lambda record: (record.number, record.token, record.ended), default=None)


POINTS = "points"  # id: the number of a point; name: the user's id, the same if that is a number
GRAPH = "graph"  # lo < hi: ids; weight: that of the closest edge between them
MERGES = "merges"  # one table per round or hand-off, see agglo.spark.round.build_merges
# The following tables are in `work`, in one folder per driver. Two names: one is read while the other is written.
EDGES = ("edges-0", "edges-1")  # the contracted graph
NEAREST = "nearest"  # see agglo.spark.round.find_nearest
MOVES = "moves"  # the merges of the core, see agglo.spark.handoff.CoreResult.moves
POINTERS = ("pointers-0", "pointers-1")  # from each cluster towards its root

FORMAT = 3  # of header and log
_LIST_ROWS = 10_000  # rows that are sent as one list, and
_BATCH_LISTS = 100  # lists that are sent at a time, so that no message exceeds Spark's limit


class State(NamedTuple):
    """The state of a run after a step: a line of the log, which is written after all tables that it names."""

    number: int
    """The number of earlier states."""
    edges: str
    """The table of the contracted graph; `GRAPH` before the first round."""
    n_edges: int
    """The number of its rows."""
    best: float | None
    """The closest linkage in it, larger being closer."""
    clusters: int
    """The number of clusters."""
    step: int
    """The first threshold that is left."""
    n_rounds: int = 0
    """The number of rounds that have merged clusters so far."""
    merges: str | None = None
    """The table of the merges since the previous state, if there are any."""
    rounds: list[Round] = []  # noqa: RUF012  # the default of a tuple, never changed
    """The records of the rounds since the previous state."""
    n_unreachable: int = 0
    """The number of edges that are farther than the last threshold."""
    n_unreachable_kept: int = 0
    """The value of ``n_unreachable`` when isolated clusters were last dropped."""
    done: bool = False
    """Whether no threshold is left that any pair reaches."""


class Folder:
    """The tables and the log of a run."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.path = spark, str(path).rstrip("/")
        self.lock = FolderLock(self.path, lambda: self._lines("owners"), lambda line: self._append("owners", line))

    def work_table(self, table: str) -> str:
        """Return the name of a temporary table of this driver."""
        return f"work/{self.lock.token}/{table}"

    def read(self, *tables: str) -> DataFrame:
        """Return the rows of tables that were written before."""
        return self.spark.read.parquet(*(f"{self.path}/{table}" for table in tables))

    def write(self, frame: DataFrame, table: str) -> DataFrame:
        """Write a table; return it as read back, so that its query plan is cut."""
        frame.write.mode("overwrite").parquet(f"{self.path}/{table}")
        return self.spark.read.schema(frame.schema).parquet(f"{self.path}/{table}")

    def upload(self, table: pa.Table) -> DataFrame:
        """Send a table of the driver to the cluster.

        Spark converts the rows that it is given to objects, at several times the cost of writing them. So columns
        are sent as a few rows of long lists, and the cluster explodes them.
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
        """Return a table; build and write it at the first call."""
        if table not in self._lines("tables"):
            self.write(build(), table)
            self._append("tables", table)
        return self.read(table)

    # ---- header and log ----

    def read_header(self) -> dict[str, Any] | None:
        """Return the header of the run: parameters, fingerprint of the input, graph; None if there is no run.

        Raises
        ------
        ValueError
            If another version of agglo has written the run.
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
        """Return all states of the run, in order."""
        states = sorted((State(**json.loads(line)) for line in self._lines("log")), key=lambda state: state.number)
        return [state._replace(rounds=[Round(*record) for record in state.rounds]) for state in states]

    def append_state(self, state: State) -> None:
        """Append a state, from which the run can be resumed; raise if another driver owns the folder."""
        self.lock.check()
        self._append("log", json.dumps(state._asdict()))

    def _lines(self, log: str) -> list[str]:
        try:
            # A pattern, because Spark logs a warning if a folder does not exist, but not if a pattern has no
            # match.
            return [row.value for row in self.spark.read.text(f"{self.path}/{log}/part-*").collect()]
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return []
            raise

    def _append(self, log: str, line: str) -> None:
        # A single file appears atomically, which makes a state durable.
        frame = self.spark.range(1, numPartitions=1).select(F.lit(line).alias("value"))
        frame.write.mode("append").text(f"{self.path}/{log}")
