"""Measure the neighbour graph of a large file: CPU time, peak memory, recall.

    python benchmarks/neighbors_large.py                      # 10^6 points, 128 columns in float16
    python benchmarks/neighbors_large.py --points 10000000    # a file of 2.6 GB

Clustered points are written block by block to a temporary file, which is memory-mapped and searched. Memory is the
peak of the process, with and without the mapped pages of the file, which the system can reclaim.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 65_536


def write_points(path: Path, points: int, columns: int, seed: int) -> None:
    """Write normalized points in clusters of about 300 points."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((max(1, points // 300), columns), dtype=np.float32)
    file = np.lib.format.open_memmap(path, "w+", np.float16, (points, columns))
    for first in range(0, points, BLOCK):
        rows = min(BLOCK, points - first)
        block = centers[rng.integers(len(centers), size=rows)]
        block += 0.6 * rng.standard_normal((rows, columns), dtype=np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        file[first : first + rows] = block
    file.flush()


class Peak:
    """The peak anonymous memory of this process in bytes, sampled every 50 ms; Linux only."""

    def __init__(self) -> None:
        self.anonymous = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            status = Path("/proc/self/status").read_text()
            own = next(line for line in status.splitlines() if line.startswith("RssAnon"))
            self.anonymous = max(self.anonymous, 1024 * int(own.split()[1]))


def search(path: str, neighbors: int, recall: float, method: str, n_jobs: int | None, out: Any) -> None:
    """Search in a separate process, and send the measurements."""
    import agglo

    before, start = time.process_time(), time.perf_counter()
    with Peak() as peak:
        points = np.load(path, mmap_mode="r")
        graph = agglo.neighbor_graph(points, neighbors, "cosine", method, n_jobs, recall=recall)
    estimate = graph.recall_estimate
    out.send(
        {
            "points": graph.n_points,
            "file_gb": points.nbytes / 1e9,
            "graph_gb": graph.nbytes / 1e9,
            "edges": graph.n_edges,
            "method": graph.method,
            "parameters": dict(graph.parameters),
            "recall": "all" if estimate is None else str(estimate),
            "cpu_seconds": round(time.process_time() - before, 1),
            "wall_seconds": round(time.perf_counter() - start, 1),
            "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
            "peak_without_file_gb": peak.anonymous / 1e9,
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10**6)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--neighbors", type=int, default=25)
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, help="limit of the peak in GB; default 0.8 per million points")
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        write_points(path, given.points, given.columns, given.seed)
        here, there = context.Pipe(duplex=False)
        arguments = (str(path), given.neighbors, given.recall, given.method, given.jobs, there)
        process = context.Process(target=search, args=arguments)
        process.start()
        there.close()
        result = here.recv()
        process.join()
    limit = 0.8e-6 * given.points if given.limit is None else given.limit
    result["limit_gb"] = limit
    print(json.dumps(result, indent=2))
    verdict = "within" if result["peak_gb"] <= limit else "beyond"
    print(f"{result['peak_gb']:.2f} GB at its peak, {verdict} the limit of {limit:.2f} GB")


if __name__ == "__main__":
    main()
