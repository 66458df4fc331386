"""Compare the DP-means path of a large tree with one pass that sums the points of all nodes: time and memory.

    python benchmarks/path.py [--points 1000000] [--columns 128] [--repeat 3]

Points are Gaussian in float32. The tree is random, so that no search is needed. The pass sums vectors from the
leaves to the root in float64 in the core, one column at a time: a lower bound for any method that needs the means
of all nodes. Both use one thread. Times are the minimum CPU seconds of repeated runs; memory is the peak above
points and tree. Linux only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import agglo
from agglo import _core
from agglo.testing import random_forest
from agglo.tree.dp_means_path import Centers

Array = npt.NDArray[Any]


def node_sums(tree: agglo.Hierarchy, X: Array) -> None:
    """Compute the sum of the points below every node, column by column."""
    column = np.zeros(tree.n_nodes)
    for j in range(X.shape[1]):
        column[: tree.n_leaves] = X[:, j]
        _core.sum_descendants(tree.parent, column)


def cpu_seconds(work: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def measure_peak(work: Callable[[], object]) -> int:
    """Return the peak memory of ``work`` in bytes, minus the memory before."""
    status = Path("/proc/self/status")

    def kilobytes(field: str) -> int:
        return int(next(line for line in status.read_text().splitlines() if line.startswith(field)).split()[1])

    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = kilobytes("VmRSS:")
    work()
    return 1024 * (kilobytes("VmHWM:") - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((arguments.points, arguments.columns), dtype=np.float32)
    forest = random_forest(rng, arguments.points, shrink=0.8)
    tree = agglo.Hierarchy.from_forest(forest, kind="distance", missing="ignore")
    print(tree)
    sums = cpu_seconds(lambda: node_sums(tree, X), arguments.repeat)
    print(f"all node sums      {sums:8.2f} CPU s")
    choices: tuple[Centers, ...] = ("means", "points")
    for centers in choices:
        work = partial(agglo.dp_means_path, tree, X, centers=centers, n_jobs=1)
        extra = measure_peak(work)
        cpu = cpu_seconds(work, arguments.repeat)
        print(
            f"path, {centers:6}       {cpu:8.2f} CPU s, {cpu / sums:.2f} of the sums; {extra / 1e6:.0f} MB more, "
            f"with the points {1 + extra / X.nbytes:.2f} of the data"
        )


if __name__ == "__main__":
    main()
