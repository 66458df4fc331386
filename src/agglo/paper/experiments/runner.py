"""Jobs in processes of their own, within limits of time and memory, and the file of their results."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agglo.paper.experiments.job import Job, Row

_PATIENCE = 10  # seconds of the clock for each second of CPU that a job may take


@dataclass(frozen=True)
class Limits:
    """What a job may use: beyond the first it is (DNF), beyond the second it is out of memory (OOM)."""

    cpu_seconds: int = 60
    gigabytes: float = 4.0


Task = Callable[[Job, Path], list[Row]]


def run(job: Job, folder: Path, limits: Limits, task: Task | None = None) -> list[Row]:
    """The rows of a job, each with the job's own fields and a ``status``: ok, DNF, OOM or error.

    The job runs in a process of its own, forked from one that has imported what jobs need. ``task`` stands in for
    :func:`agglo.paper.experiments.measures.rows`.
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
            if receiver.poll(_PATIENCE * limits.cpu_seconds + 60):
                found = receiver.recv()
        except EOFError:  # the process ended without a word
            process.join()
            if process.exitcode not in (-signal.SIGXCPU, -signal.SIGKILL):
                found = [{"status": "error", "message": f"exit code {process.exitcode}"}]
    process.kill()
    process.join()
    return [_row(job, limits, row) for row in found]


def _work(sender: Any, job: Job, folder: Path, limits: Limits, task: Task | None) -> None:
    """Send the rows of a job, within limits that the system enforces; what is beyond them is no row."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 5))
    most = int(limits.gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    warnings.simplefilter("ignore")
    try:
        if task is None:
            from agglo.paper.experiments.measures import rows

            task = rows
        sender.send([{"status": "ok", **row} for row in task(job, folder)])
    except MemoryError:
        sender.send([{"status": "OOM"}])
    except Exception as error:
        sender.send([{"status": "error", "message": f"{type(error).__name__}: {error}"}])


def _row(job: Job, limits: Limits, found: Row) -> Row:
    short = {key: round(value, 6) if isinstance(value, float) else value for key, value in found.items()}
    return {**asdict(job), "job": job.method, **short, "limits": asdict(limits)}


class Results:
    """A file of rows in JSON, one a line, to which finished jobs are added; those in it are not run again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.is_file():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                try:
                    self.rows.append(json.loads(line))
                except json.JSONDecodeError as error:
                    raise ValueError(
                        f"{path}, line {number} is no row of results: delete it, and run again"
                    ) from error

    def has(self, job: Job, limits: Limits) -> bool:
        """Whether the job is done, or came to its end within limits that were no tighter."""
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
        """Add the rows of one job, all at once, in place of what an earlier try at it left."""
        new = list(rows)
        name = ("experiment", "set", "job", "points")
        tried = {tuple(row[key] for key in name) for row in new}
        kept = [row for row in self.rows if tuple(row[key] for key in name) not in tried]
        again = len(kept) < len(self.rows)
        self.rows = [*kept, *new]
        with self.path.open("w" if again else "a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in (self.rows if again else new))
            file.flush()
            os.fsync(file.fileno())

    def of(self, experiment: str, **fields: Any) -> Iterator[Row]:
        """The rows of an experiment whose fields are as given."""
        for row in self.rows:
            if row["experiment"] == experiment and all(row.get(key) == value for key, value in fields.items()):
                yield row
