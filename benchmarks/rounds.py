"""Compare the rounds of SCC with SciPy's minimum spanning tree of the same graph: time, memory, growth.

    python benchmarks/rounds.py [--sizes 10000 100000 1000000] [--repeat 3]

The graph has 25 nearest neighbours per point, for a mixture of Gaussians on a sphere in random order. Each size
runs in a separate process, to separate the peaks of memory; times are the minimum of repeated runs. The last lines
show ratios, also of vector linkages of 128-dimensional points to average linkage on the graph, and the growth
exponent, which is more robust on a busy machine than seconds.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import cKDTree

import agglo
from agglo.rounds.vector_linkage import VECTOR_LINKAGES

NEIGHBORS, THRESHOLDS, DIMENSIONS, VECTORS = 25, 200, 6, 128


def make_points(n: int) -> Any:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(n // 100 + 2, DIMENSIONS))
    points = centers[rng.integers(len(centers), size=n)] + 0.1 * rng.normal(size=(n, DIMENSIONS))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def make_graph(n: int) -> agglo.NeighborGraph:
    points = make_points(n)
    distances, indices = cKDTree(points).query(points, NEIGHBORS + 1, workers=-1)
    others = indices != np.arange(n)[:, None]
    others[others.all(axis=1), -1] = False  # a duplicate of the point came first
    shape = (n, NEIGHBORS)
    similarities = 1 - distances[others].reshape(shape) ** 2 / 2
    return agglo.NeighborGraph.from_neighbors(
        indices[others].reshape(shape), similarities, kind="similarity", metric="cosine"
    )


def rotate(points: Any) -> Any:
    """Embed the points in more dimensions with the same distances."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(VECTORS, DIMENSIONS)))[0].T
    return (points @ turn).astype(np.float32)


def measure_seconds(work: Callable[[], Any], repeat: int) -> tuple[float, float]:
    """Return the minimum CPU and wall seconds of several runs."""
    cpu = wall = math.inf
    for _ in range(repeat):
        started = time.process_time(), time.perf_counter()
        work()
        cpu = min(cpu, time.process_time() - started[0])
        wall = min(wall, time.perf_counter() - started[1])
    return cpu, wall


def measure_peak(work: Callable[[], Any]) -> int:
    """Return the peak memory of ``work`` in bytes, minus the memory before; Linux only."""
    status = Path("/proc/self/status")

    def kilobytes(field: str) -> int:
        return int(next(line for line in status.read_text().splitlines() if line.startswith(field)).split()[1])

    ctypes.CDLL(None).malloc_trim(0)  # return free memory, so that reusing it counts
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = kilobytes("VmRSS:")
    work()
    return 1024 * (kilobytes("VmHWM:") - before)


def measure_size(n: int, repeat: int) -> dict[str, float]:
    graph, X = make_graph(n), rotate(make_points(n))
    matrix = graph.to_scipy().astype(np.float64)
    matrix.data = 1.001 - matrix.data  # SciPy treats a weight of 0 as no edge
    extra = measure_peak(lambda: agglo.scc(graph, thresholds="geometric", n_thresholds=THRESHOLDS, n_jobs=1))
    cpu1, wall1 = measure_seconds(
        lambda: agglo.scc(graph, thresholds="geometric", n_thresholds=THRESHOLDS, n_jobs=1), repeat
    )
    cpu2, wall2 = measure_seconds(
        lambda: agglo.scc(graph, thresholds="geometric", n_thresholds=THRESHOLDS, n_jobs=2), repeat
    )
    full, _ = measure_seconds(lambda: agglo.scc(graph, n_jobs=1), repeat)
    tree_cpu, _ = measure_seconds(lambda: minimum_spanning_tree(matrix), max(1, repeat - 1))
    ratios = {}
    for linkage in VECTOR_LINKAGES:
        for thresholds, number, base in (("geometric", THRESHOLDS, cpu1), ("odds", None, full)):

            def run(linkage: Any = linkage, thresholds: Any = thresholds, number: int | None = number) -> None:
                agglo.scc(graph, thresholds=thresholds, n_thresholds=number, linkage=linkage, X=X, n_jobs=1)

            ratios[f"{linkage} / average, {thresholds}"] = measure_seconds(run, repeat)[0] / base
    return {
        "points": n,
        "edges": graph.n_edges,
        "CPU s, 1 thread": cpu1,
        "wall s, 1 thread": wall1,
        "CPU s, 2 threads": cpu2,
        "wall s, 2 threads": wall2,
        "SciPy MST, CPU s": tree_cpu,
        "CPU / MST": cpu1 / tree_cpu,
        "wall 2 / wall 1": wall2 / wall1,
        "extra memory / graph": extra / graph.nbytes,
        **ratios,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure_size(arguments.one, arguments.repeat)))
        return
    rows = []
    for n in arguments.sizes:
        command = [sys.executable, __file__, "--one", str(n), "--repeat", str(arguments.repeat)]
        rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    for name in rows[0]:
        print(f"{name:36}" + "".join(f"{row[name]:>12,.{0 if row[name] > 1000 else 3}f}" for row in rows))
    if len(rows) > 1:
        first, last = rows[-2], rows[-1]
        growth = math.log(last["CPU s, 1 thread"] / first["CPU s, 1 thread"]) / math.log(
            last["points"] / first["points"]
        )
        print(f"growth from {first['points']:,} to {last['points']:,} points: N^{growth:.2f}")


if __name__ == "__main__":
    main()
