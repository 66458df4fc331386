"""Measure the cost of constraints and weights in the rounds of SCC, and of duplicates in a fit.

    python -m benchmarks.constraints [--points 1000000] [--links 100000] [--repeat 2]

The graph is that of benchmarks/rounds.py. Half of the links are must-links between neighbours, half are
cannot-links between random points. Ratios compare the minimum CPU seconds of repeated runs with one thread.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import agglo
from benchmarks.rounds import make_graph, measure_seconds


def make_constraints(graph: agglo.NeighborGraph, links: int) -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(1)
    n = graph.n_points
    half = links // 2
    source = rng.choice(n, half, replace=False)
    neighbour = graph.indices[graph.indptr[source]]
    must = np.column_stack([source, neighbour])
    # Cannot-links are between points without must-links.
    free = np.setdiff1d(np.arange(n), must)
    cannot = rng.choice(free, (2 * links, 2))
    cannot = cannot[cannot[:, 0] != cannot[:, 1]]
    near = rng.choice(free, 2 * links)
    beside = np.column_stack([near, graph.indices[graph.indptr[near]]])
    beside = beside[~np.isin(beside[:, 1], must)]
    return {
        "must and cannot": {"must_link": must, "cannot_link": cannot[:half]},
        "cannot, of neighbours": {"cannot_link": beside[:links]},
        "cannot, in 50 groups": {"cannot_link": list(rng.permutation(n)[:links].reshape(50, -1))},
        "size of 100": {"max_cluster_size": 100},
        "weights": {"sample_weight": rng.integers(1, 10, n)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=2)
    arguments = parser.parse_args()
    graph = make_graph(arguments.points)

    def cpu(**constraints: Any) -> float:
        return measure_seconds(
            lambda: agglo.scc(graph, thresholds="geometric", n_thresholds=200, n_jobs=1, **constraints),
            arguments.repeat,
        )[0]

    plain = cpu()
    print(f"{arguments.points:,} points, {arguments.links:,} links; without them {plain:.2f} CPU s")
    for name, constraints in make_constraints(graph, arguments.links).items():
        print(f"{name:24}{cpu(**constraints) / plain:6.2f} times as much")

    rng = np.random.default_rng(0)
    X = rng.normal(size=(arguments.points // 20, 32)).astype(np.float32)
    crowd = np.concatenate([X, np.repeat(X[:1], len(X), axis=0)])

    def fit(points: Any) -> float:
        return measure_seconds(lambda: agglo.SCC(n_jobs=1).fit(points), 2)[0]

    ratio = fit(crowd) / fit(X)
    print(f"{'as many duplicates of one':24}{ratio:6.2f} times as much, of a fit of {len(X):,} points")


if __name__ == "__main__":
    main()
