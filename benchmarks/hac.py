"""CPU seconds of HAC on graphs with hubs, and how they grow with the number of points.

Usage: python benchmarks/hac.py [--sizes 5000 20000 80000]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np

import agglo
from agglo import NeighborGraph
from agglo.neighbors.graph import Kind


def star(n: int) -> NeighborGraph:
    """Return one hub with random weights to all other points."""
    weights = np.random.default_rng(0).random(n - 1)
    return NeighborGraph.from_edges(np.zeros(n - 1, int), np.arange(1, n), weights, kind="similarity")


def tied_star(n: int) -> NeighborGraph:
    """Return one hub that is as close to all other points."""
    return NeighborGraph.from_edges(np.zeros(n - 1, int), np.arange(1, n), np.ones(n - 1), kind="similarity")


def tied_grid(n: int, kind: Kind = "similarity") -> NeighborGraph:
    """Return a square grid of points in random order, with all weights alike."""
    side = math.isqrt(n)
    ids = np.random.default_rng(0).permutation(side * side).reshape(side, side)
    ends = (np.r_[ids[:, :-1].ravel(), ids[:-1].ravel()], np.r_[ids[:, 1:].ravel(), ids[1:].ravel()])
    return NeighborGraph.from_edges(*ends, np.ones(len(ends[0])), kind=kind)


def far_grid(n: int) -> NeighborGraph:
    """Return a square grid of distances that all exceed `missing`."""
    tied = tied_grid(n, "distance").to_scipy().tocoo()
    upper = tied.row < tied.col
    weights = 1 + np.random.default_rng(0).random(int(upper.sum()))
    return NeighborGraph.from_edges(tied.row[upper], tied.col[upper], weights, kind="distance", missing=1)


def caterpillar(n: int) -> NeighborGraph:
    """Return a path that merges from its end, with a leg at each of its points."""
    spine = np.arange(n // 2)
    ends = np.r_[spine[:-1], spine], np.r_[spine[1:], spine + len(spine)]
    weights = np.r_[1 + spine[1:] / n, np.random.default_rng(0).random(len(spine))]
    return NeighborGraph.from_edges(*ends, weights, kind="similarity")


GRAPHS: dict[str, Callable[[int], NeighborGraph]] = {
    "star": star,
    "tied star": tied_star,
    "tied grid": tied_grid,
    "tied distances": lambda n: tied_grid(n, "distance"),
    "far distances": far_grid,
    "caterpillar": caterpillar,
}


def main() -> None:
    """Print one row per graph and linkage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 20_000, 80_000])
    sizes = parser.parse_args().sizes
    print(f"{'CPU s, 1 thread':24}" + "".join(f"{n:>12,}" for n in sizes) + "      growth")
    for name, make in GRAPHS.items():
        for linkage in ("single", "average", "complete"):
            seconds = []
            for n in sizes:
                graph = make(n)
                start = time.process_time()
                agglo.hac(graph, linkage=linkage, n_jobs=1)
                seconds.append(time.process_time() - start)
            row = f"{name + ', ' + linkage:24}" + "".join(f"{s:>12.3f}" for s in seconds)
            if len(sizes) > 1:
                row += f"      N^{math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2]):.2f}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
