"""The tables and figures of the paper, each by one command.

    python -m agglo.paper purity|f1|times|rounds|growth|rhc|all --data FOLDER --out FOLDER

Sets are read from --data: .npz archives, and the files of the paper's own sets (see docs/datasets.md). Every job
runs in a process of its own within limits of CPU time and memory; a method that does not finish is DNF or OOM, as
in the paper. Rows go to results.jsonl in --out as they come, and what is there is not run again, so that an
interrupted run goes on where it was. At the end tables.md and the pictures are made of all rows that are there.
DP-means has a command of its own: python -m benchmarks.dp_means.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from agglo.paper.experiments.plan import EXPERIMENTS, jobs
from agglo.paper.experiments.report import write
from agglo.paper.experiments.runner import Limits, Results, run


def main(arguments: list[str] | None = None) -> None:
    """Run the experiments that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m agglo.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("table", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these sets")
    parser.add_argument("--cpu", type=int, default=Limits.cpu_seconds, help="CPU seconds a job may take")
    parser.add_argument("--memory", type=float, default=Limits.gigabytes, help="gigabytes a job may take")
    parser.add_argument("--jobs", type=int, default=1, help="jobs at a time")
    given = parser.parse_args(arguments)
    if not given.data.is_dir():
        parser.error(f"{given.data} is no folder: pass the one of the sets with --data")
    given.out.mkdir(parents=True, exist_ok=True)
    limits = Limits(given.cpu, given.memory)
    results = Results(given.out / "results.jsonl")
    waiting = [job for job in jobs(given.table, given.data, given.sets) if not results.has(job, limits)]
    with ThreadPoolExecutor(given.jobs) as pool:  # a thread waits for each process
        running = {pool.submit(run, job, given.data, limits): job for job in waiting}
        for done in as_completed(running):
            job, rows = running[done], done.result()
            results.add(rows)
            size = "" if job.points is None else f" ({job.points} points)"
            message = rows[0].get("message", "")
            print(f"{job.experiment} {job.set}{size} {job.method}: {rows[0]['status']} {message}", flush=True)
    write(results, given.out)
    print(f"{given.out / 'tables.md'} has the tables and names the pictures")


if __name__ == "__main__":
    main()
