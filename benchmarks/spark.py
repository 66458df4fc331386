"""Measure SCC on Spark: CPU seconds, shuffled rows and bytes per edge and round, growth, and the core alone.

    python -m benchmarks.spark [--edges 100000 1000000 10000000] [--rounds 6] [--memory 3g] [--json results.json]

The points of a graph are in nested blocks of 8, 64, 512, ... points. Each has about ten edges to points of its
blocks; smaller blocks have more and closer edges. Everything runs on local[2]. Each part runs in a separate
process; memory and CPU seconds include all its child processes:

- idle: twenty edges, to measure the fixed cost of a round on Spark.
- rounds: --rounds rounds without a hand-off, with their cost from Spark's event log.
- handoff: the whole run with default thresholds and an immediate hand-off. Two runs on three points before it
  measure the fixed cost, the first with Java's compilation, the second without. For comparison the core alone
  reads the same file, numbers its points, builds the graph and runs the rounds.
- cleaned: the same, but the table has more rows than the driver accepts, so that Spark cleans it.
- stretches: the same with handoff_edges of a fifth of the edges, so that Spark and the core take turns.
- alike: all linkages and both advance rules, without a hand-off (only if named in --parts).

The last four parts check that the tree is identical to that of the core.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import agglo
import agglo.spark
from agglo.rounds.linkage import LINKAGES
from agglo.rounds.schedule import ADVANCES
from agglo.spark.edges import load_driver_graph
from agglo.testing import assert_same_hierarchy
from benchmarks.process_tree import cpu_seconds, run_measured

DEGREE = 10  # edges per point


def make_edges(n_edges: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    n = n_edges // DEGREE
    levels = np.minimum(rng.geometric(0.5, n_edges), max(1, int(math.log(n, 8))))
    sources = rng.integers(0, n, n_edges)
    targets = np.minimum(sources ^ (rng.random(n_edges) * 8.0**levels).astype(np.int64), n - 1)
    weights = (0.95 - 0.12 * (levels - 1) - 0.1 * rng.random(n_edges)).astype(np.float32)
    return pa.table({"src": sources, "dst": targets, "weight": np.maximum(weights, 0.001)})


def spent(log: Path, since: float) -> dict[str, float]:
    """Sum the metrics of the tasks in an event log that started after ``since``, and count the jobs."""
    total = dict.fromkeys(("jobs", "CPU s", "shuffled bytes", "shuffled rows", "written bytes"), 0.0)
    for file in log.rglob("*"):
        if not file.is_file() or file.name.startswith("appstatus"):
            continue
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                total["jobs"] += event["Submission Time"] > 1000 * since
            if event["Event"] != "SparkListenerTaskEnd" or event["Task Info"]["Launch Time"] <= 1000 * since:
                continue
            metrics = event["Task Metrics"]
            total["CPU s"] += metrics["Executor CPU Time"] / 1e9
            total["shuffled bytes"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            total["shuffled rows"] += metrics["Shuffle Write Metrics"]["Shuffle Records Written"]
            total["written bytes"] += metrics["Output Metrics"]["Bytes Written"]
    return total


def session(memory: str, log: Path) -> Any:
    log.mkdir()
    return agglo.spark.session(
        spark_master="local[2]",
        spark_driver_memory=memory,
        spark_sql_shuffle_partitions=8,
        spark_eventLog_enabled="true",
        spark_eventLog_dir=log.as_uri(),
        spark_eventLog_compress="false",
        spark_eventLog_rolling_enabled="false",
        spark_log_level="ERROR",
        spark_local_dir=str(log.parent),
        spark_ui_showConsoleProgress="false",
    )


def fit(spark: Any, folder: Path, name: str = "run", **options: Any) -> agglo.spark.SparkHierarchy:
    edges = spark.read.parquet(str(folder / "edges.parquet"))
    return agglo.spark.scc(edges, str(folder / name), kind="similarity", **options)


class Clock:
    """Wall-clock seconds, and CPU seconds of this process and all its child processes, including Java."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), cpu_seconds(os.getpid())

    def since(self, what: str) -> dict[str, float]:
        """Return both since the creation of the clock."""
        cpu = cpu_seconds(os.getpid()) - self.cpu
        return {f"{what}: wall s": time.perf_counter() - self.wall, f"{what}: CPU s": cpu}


def idle(folder: Path, memory: str) -> dict[str, float]:
    """Measure the fixed cost of a round."""
    chain = np.arange(20)
    edges = pa.table({"src": chain, "dst": chain + 1, "weight": 0.9 - chain / 40})
    pq.write_table(edges, folder / "edges.parquet")
    spark = session(memory, folder / "events")
    fit(spark, folder, thresholds=0.9 - chain[:8] / 40 - 0.001, handoff_edges=0)  # for Java to compile
    clock = Clock()
    tree = fit(spark, folder, "again", thresholds=0.9 - chain / 40 - 0.001, handoff_edges=0)
    spent = clock.since("idle, a round")
    spark.stop()
    return {name: value / len(tree.rounds) for name, value in spent.items()}


def rounds_alone(folder: Path, memory: str, rounds: int) -> dict[str, float]:
    """Measure rounds on Spark, without a hand-off."""
    spark = session(memory, folder / "events")
    started = time.perf_counter()
    tree = fit(spark, folder, thresholds=np.linspace(0.9, 0.4, rounds), handoff_edges=0)
    wall = time.perf_counter() - started
    states = tree.folder.read_states()
    edge_rounds = sum(state.n_edges for state in states[: len(tree.rounds)])
    spark.stop()
    begun = min(file.stat().st_mtime for file in (folder / "run" / "log").glob("part-*"))
    cost, whole = spent(folder / "events", begun), spent(folder / "events", 0)
    return {
        "points": tree.n_points,
        "edges": states[0].n_edges,
        "rounds": len(tree.rounds),
        "edges left": states[-1].n_edges,
        "rounds: wall s": wall,
        "jobs / round": cost["jobs"] / len(tree.rounds),
        "preparing: CPU µs / edge": 1e6 * (whole["CPU s"] - cost["CPU s"]) / states[0].n_edges,
        "preparing: bytes shuffled / edge": (whole["shuffled bytes"] - cost["shuffled bytes"]) / states[0].n_edges,
        "CPU µs / edge and round": 1e6 * cost["CPU s"] / edge_rounds,
        "rows shuffled / edge and round": cost["shuffled rows"] / edge_rounds,
        "bytes shuffled / edge and round": cost["shuffled bytes"] / edge_rounds,
        "bytes written / edge and round": cost["written bytes"] / edge_rounds,
    }


def load_graph(folder: Path) -> agglo.NeighborGraph:
    rows = pq.read_table(folder / "edges.parquet").rename_columns(["lo", "hi", "weight"])
    return load_driver_graph(rows, kind="similarity").graph


def compare_with_core(folder: Path, memory: str, share: float, part: str) -> dict[str, float]:
    """Measure the whole run with a hand-off of a share of the edges, and the core alone on the same table."""
    edges = pq.read_metadata(folder / "edges.parquet").num_rows
    spark = session(memory, folder / "events")
    tiny, found = folder / "tiny", dict[str, float]()
    tiny.mkdir()
    pq.write_table(pa.table({"src": [0, 1], "dst": [1, 2], "weight": [0.9, 0.5]}), tiny / "edges.parquet")
    for which in ("first", "second"):
        clock = Clock()
        fit(spark, tiny, which)
        found |= clock.since(f"{part}: fixed, {which}")
    clock = Clock()
    tree = fit(spark, folder, handoff_edges=int(share * edges))
    found |= clock.since(part)
    mine, states = tree.to_hierarchy(), len(tree.folder.read_states())
    spark.stop()
    clock = Clock()
    theirs = agglo.scc(load_graph(folder), n_jobs=2)
    found |= clock.since(f"{part}: core")
    assert_same_hierarchy(mine, theirs)
    for unit in ("wall s", "CPU s"):
        more = found[f"{part}: {unit}"] - found[f"{part}: fixed, second: {unit}"]
        found[f"{part}: beyond what is fixed, times the core's {unit}"] = more / found[f"{part}: core: {unit}"]
    return found | {f"{part}: rounds": len(theirs.rounds), f"{part}: states": states}


def compare_trees(folder: Path, memory: str) -> dict[str, float]:
    """Check that all linkages and advance rules give the tree of the core; return their number."""
    spark = session(memory, folder / "events")
    graph = load_graph(folder)
    done = 0
    for linkage, advance in product(LINKAGES, ADVANCES):
        options: dict[str, Any] = {"thresholds": np.linspace(0.9, 0.3, 3), "linkage": linkage, "advance": advance}
        mine = fit(spark, folder, f"{linkage}-{advance}", handoff_edges=0, **options)
        assert_same_hierarchy(mine.to_hierarchy(), agglo.scc(graph, **options))
        print(f"{linkage}, {advance}: {len(mine.rounds)} rounds, the same tree", file=sys.stderr, flush=True)
        done += 1
    spark.stop()
    return {"alike: same trees": done}


def run_part(part: str, edges: int, memory: str, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if part == "idle":
            return idle(folder, memory)
        pq.write_table(make_edges(edges), folder / "edges.parquet")
        if part == "rounds":
            return rounds_alone(folder, memory, rounds)
        if part == "alike":
            return compare_trees(folder, memory)
        shares = {"handoff": 1.0, "cleaned": 0.8, "stretches": 0.2}
        return compare_with_core(folder, memory, shares[part], part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--parts", nargs="+", default=["idle", "rounds", "handoff", "stretches"])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run_part(arguments.parts[0], arguments.edges[0], arguments.memory, arguments.rounds)))
        return
    rows: list[dict[str, float]] = []
    for edges in arguments.edges:
        row: dict[str, float] = {}
        for part in arguments.parts:
            command = [sys.executable, "-m", "benchmarks.spark", "--one", "--parts", part, "--edges", str(edges)]
            command += ["--rounds", str(arguments.rounds), "--memory", arguments.memory]
            taken = run_measured(command)
            row |= json.loads(taken.output.splitlines()[-1])
            row |= {f"{part}: peak memory, GB": taken.memory / 1e9, f"{part}: CPU s of all processes": taken.cpu}
            if arguments.json:
                arguments.json.write_text(json.dumps([*rows, row], indent=2, ensure_ascii=False))
        rows.append(row)
    for name in rows[0]:
        print(f"{name:56}" + "".join(f"{row[name]:>14,.{0 if row[name] > 1000 else 3}f}" for row in rows))
    cost = "CPU µs / edge and round"
    for first, last in pairwise(rows if "rounds" in arguments.parts else []):
        growth = math.log(last[cost] / first[cost]) / math.log(last["edges"] / first["edges"])
        print(f"cost of all edges in a round from {first['edges']:,} to {last['edges']:,}: N^{1 + growth:.2f}")


if __name__ == "__main__":
    main()
