"""Reproduce the tables and figures of the paper.

    python -m agglo.paper purity|f1|times|rounds|growth|rhc|all --data FOLDER --out FOLDER

The folder --data contains the datasets: .npz archives, and the files of the paper's datasets (see
docs/paper/datasets.md). Every job runs in a separate process with limits on CPU time and memory. A job that
exceeds them gets the status DNF or OOM, as in the paper. Results are appended to results.jsonl in --out. Finished
jobs are not run again, so an interrupted run can be resumed. At the end, tables.md and the figures are written
from all results. DP-means has a separate command: python -m benchmarks.dp_means.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from agglo.paper.experiments.plan import EXPERIMENTS, plan_jobs
from agglo.paper.experiments.report import write_report
from agglo.paper.experiments.runner import Limits, Results, run_job


def main(arguments: list[str] | None = None) -> None:
    """Run the experiments that are given on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m agglo.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("table", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the datasets")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these datasets")
    parser.add_argument("--cpu", type=int, default=Limits.cpu_seconds, help="maximum CPU seconds of a job")
    parser.add_argument(
        "--memory", type=float, default=Limits.gigabytes, help="maximum memory of a job in gigabytes"
    )
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel jobs")
    given = parser.parse_args(arguments)
    if not given.data.is_dir():
        parser.error(f"{given.data} is not a folder: pass the folder of the datasets with --data")
    given.out.mkdir(parents=True, exist_ok=True)
    limits = Limits(given.cpu, given.memory)
    results = Results(given.out / "results.jsonl")
    waiting = [job for job in plan_jobs(given.table, given.data, given.sets) if not results.has(job, limits)]
    with ThreadPoolExecutor(given.jobs) as pool:  # one thread per process
        running = {pool.submit(run_job, job, given.data, limits): job for job in waiting}
        for done in as_completed(running):
            job, rows = running[done], done.result()
            results.add(rows)
            size = "" if job.points is None else f" ({job.points} points)"
            message = rows[0].get("message", "")
            print(f"{job.experiment} {job.set}{size} {job.method}: {rows[0]['status']} {message}", flush=True)
    write_report(results, given.out)
    print(f"{given.out / 'tables.md'} contains the tables and links the figures")


if __name__ == "__main__":
    main()
