"""Run jobs in separate processes with limits on time and memory; store their results in a file."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from agglo.paper.experiments.job import Job, Row

_WALL_PER_CPU = 10  # allowed seconds of wall-clock time per allowed CPU second


@dataclass(frozen=True)
class Limits:
    """The limits of a job on CPU time and memory.

    If a job exceeds the CPU time, it gets the status DNF (did not finish). If it exceeds the memory, it gets the
    status OOM (out of memory).
    """

    cpu_seconds: int = 60
    gigabytes: float = 4.0


Task = Callable[[Job, Path], list[Row]]


def run_job(job: Job, folder: Path, limits: Limits, task: Task | None = None) -> list[Row]:
    """Run a job in a separate process; return its rows of results, with the fields of the job and a ``status``.

    The status is ok, DNF, OOM or error. The process is forked from a server that has already imported all modules.
    In tests, ``task`` replaces :func:`agglo.paper.experiments.measures.measure`.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["agglo.paper.experiments.measures"])
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=_work, args=(sender, job, folder, limits, task), daemon=True)
    process.start()
    sender.close()
    found: list[Row] = [{"status": "DNF"}]
    with receiver:
        try:
            if receiver.poll(_WALL_PER_CPU * limits.cpu_seconds + 60):
                found = receiver.recv()
        except EOFError:  # the process ended without a result
            process.join()
            if process.exitcode not in (-signal.SIGXCPU, -signal.SIGKILL):
                found = [{"status": "error", "message": f"exit code {process.exitcode}"}]
    process.kill()
    process.join()
    return [_complete_row(job, limits, row) for row in found]


def _work(sender: Any, job: Job, folder: Path, limits: Limits, task: Task | None) -> None:
    """Run a job and send its rows to ``sender``; the operating system enforces the limits."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 5))
    max_bytes = int(limits.gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
    warnings.simplefilter("ignore")
    try:
        if task is None:
            from agglo.paper.experiments.measures import measure

            task = measure
        sender.send([{"status": "ok", **row} for row in task(job, folder)])
    except MemoryError:
        sender.send([{"status": "OOM"}])
    except Exception as error:
        sender.send([{"status": "error", "message": f"{type(error).__name__}: {error}"}])


def _complete_row(job: Job, limits: Limits, found: Row) -> Row:
    short = {key: round(value, 6) if isinstance(value, float) else value for key, value in found.items()}
    return {**asdict(job), "job": job.method, **short, "limits": asdict(limits)}


class Results:
    """A file of results, with one JSON row per line. It records which jobs have finished."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.is_file():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                try:
                    self.rows.append(json.loads(line))
                except json.JSONDecodeError as error:
                    raise ValueError(
                        f"{path}, line {number} is not a row of results: delete it, and run again"
                    ) from error

    def has(self, job: Job, limits: Limits) -> bool:
        """Return whether the job has finished, or has exceeded limits at least as large as ``limits``."""
        for row in self.rows:
            if (row["experiment"], row["set"], row["job"], row["points"]) == (
                job.experiment,
                job.set,
                job.method,
                job.points,
            ):
                before = Limits(**row["limits"])
                looser = before.cpu_seconds >= limits.cpu_seconds and before.gigabytes >= limits.gigabytes
                if row["status"] == "ok" or (row["status"] in ("DNF", "OOM") and looser):
                    return True
        return False

    def add(self, rows: Iterable[Row]) -> None:
        """Add the rows of a job; they replace the rows of an earlier attempt at the same job."""
        new = list(rows)
        key = itemgetter("experiment", "set", "job", "points")
        attempted = {key(row) for row in new}
        kept = [row for row in self.rows if key(row) not in attempted]
        rewrite = len(kept) < len(self.rows)
        self.rows = [*kept, *new]
        with self.path.open("w" if rewrite else "a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in (self.rows if rewrite else new))
            file.flush()
            os.fsync(file.fileno())

    def select(self, experiment: str, **fields: Any) -> Iterator[Row]:
        """Select the rows of an experiment whose fields have the given values."""
        for row in self.rows:
            if row["experiment"] == experiment and all(row.get(key) == value for key, value in fields.items()):
                yield row
