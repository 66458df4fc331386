"""SCC on Spark: CPU seconds, rows and bytes shuffled for each edge and round, growth, and the core beside it.

    python benchmarks/spark.py [--edges 100000 1000000 10000000] [--rounds 6] [--memory 3g] [--json results.json]

Each graph is of points in nested blocks of 8, 64, 512, ... points; about ten edges a point join it with others
of its blocks, the more the smaller they are, and are the closer. A size runs in a process of its own, a driver
and its executor in one, on local[2]. Without a hand-off it does --rounds rounds, and what these cost is read from
Spark's event log. Then the whole run is done with a hand-off right away, beside the core on the same graph in
memory, and the trees of both are compared to the last bit.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import agglo
from agglo.testing import assert_same_hierarchy

DEGREE = 10  # edges a point


def make_edges(n_edges: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    n = n_edges // DEGREE
    levels = np.minimum(rng.geometric(0.5, n_edges), max(1, int(math.log(n, 8))))
    sources = rng.integers(0, n, n_edges)
    targets = np.minimum(sources ^ (rng.random(n_edges) * 8.0**levels).astype(np.int64), n - 1)
    weights = (0.95 - 0.12 * (levels - 1) - 0.1 * rng.random(n_edges)).astype(np.float32)
    return pa.table({"src": sources, "dst": targets, "weight": np.maximum(weights, 0.001)})


def spent(log: Path) -> dict[str, float]:
    """Sums over the tasks of an event log."""
    total = {"CPU s": 0.0, "shuffled bytes": 0.0, "shuffled rows": 0.0, "read bytes": 0.0, "written bytes": 0.0}
    for file in log.rglob("*"):
        if not file.is_file() or file.name.startswith("appstatus"):
            continue
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] != "SparkListenerTaskEnd" or "Task Metrics" not in event:
                continue
            metrics = event["Task Metrics"]
            total["CPU s"] += metrics["Executor CPU Time"] / 1e9
            total["shuffled bytes"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            total["shuffled rows"] += metrics["Shuffle Write Metrics"]["Shuffle Records Written"]
            total["read bytes"] += metrics["Input Metrics"]["Bytes Read"]
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


def rounds_alone(folder: Path, edges: str, rounds: int, memory: str) -> dict[str, float]:
    """What rounds on Spark cost, without any hand-off."""
    spark = session(memory, folder / "events")
    thresholds = np.linspace(0.9, 0.4, rounds)
    started = time.perf_counter()
    tree = agglo.spark.scc(
        spark.read.parquet(edges), str(folder / "run"), kind="similarity", thresholds=thresholds, handoff_edges=0
    )
    wall = time.perf_counter() - started
    states = tree.folder.states()
    edge_rounds = sum(state.n_edges for state in states[: len(tree.rounds)])
    slowest = float(tree.rounds.seconds.max())
    spark.stop()
    cost = spent(folder / "events")
    return {
        "points": tree.n_points,
        "edges": states[0].n_edges,
        "rounds": len(tree.rounds),
        "wall s": wall,
        "wall s, slowest round": slowest,
        "CPU s of tasks": cost["CPU s"],
        "CPU µs / edge and round": 1e6 * cost["CPU s"] / edge_rounds,
        "rows shuffled / edge and round": cost["shuffled rows"] / edge_rounds,
        "bytes shuffled / edge and round": cost["shuffled bytes"] / edge_rounds,
        "bytes written / edge and round": cost["written bytes"] / edge_rounds,
        "edges left": states[-1].n_edges,
    }


def handed_off(folder: Path, edges: str, memory: str) -> dict[str, float]:
    """The whole run with a hand-off, and the core alone on the same graph."""
    table = pq.read_table(edges)
    spark = session(memory, folder / "events")
    started = time.perf_counter()
    tree = agglo.spark.scc(spark.read.parquet(edges), str(folder / "run"), kind="similarity", handoff_edges=10**9)
    wall = time.perf_counter() - started
    mine = tree.to_hierarchy()
    spark.stop()
    ids, places = np.unique(np.concatenate([table["src"], table["dst"]]), return_inverse=True)
    src, dst = np.split(places, 2)
    started = time.perf_counter()
    graph = agglo.NeighborGraph.from_edges(src, dst, table["weight"], kind="similarity", n_points=len(ids))
    built = time.perf_counter() - started
    started = time.perf_counter()
    theirs = agglo.scc(graph)
    core = time.perf_counter() - started
    assert_same_hierarchy(mine, theirs)
    return {
        "with hand-off, wall s": wall,
        "core, wall s": core,
        "core, graph from edges, wall s": built,
        "same tree": 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", choices=["rounds", "handoff"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            pq.write_table(make_edges(arguments.edges[0]), folder / "edges.parquet")
            path = str(folder / "edges.parquet")
            if arguments.one == "rounds":
                row = rounds_alone(folder, path, arguments.rounds, arguments.memory)
            else:
                row = handed_off(folder, path, arguments.memory)
        row["peak memory, GB"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        print(json.dumps(row))
        return
    rows = []
    for edges in arguments.edges:
        row = {}
        for part in ("rounds", "handoff"):
            command = [sys.executable, __file__, "--one", part, "--edges", str(edges)]
            command += ["--rounds", str(arguments.rounds), "--memory", arguments.memory]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            row |= json.loads(done.stdout.splitlines()[-1])
        rows.append(row)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=2))
    for name in rows[0]:
        print(f"{name:34}" + "".join(f"{row[name]:>14,.{0 if row[name] > 1000 else 3}f}" for row in rows))
    for first, last in pairwise(rows):
        cost = "CPU µs / edge and round"
        growth = math.log(last[cost] / first[cost]) / math.log(last["edges"] / first["edges"])
        print(f"cost of all edges in a round from {first['edges']:,} to {last['edges']:,}: N^{1 + growth:.2f}")


if __name__ == "__main__":
    main()
