"""Compare predict and partial_fit of new points with a fit: CPU seconds and quality.

    python -m benchmarks.predict --points 200000 --new 100000

Points are drawn from groups around random centers. One process fits some points, predicts others, adds a batch by
partial_fit and, for comparison, fits all of them. CPU seconds of the same run are compared as ratios.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import adjusted_rand_score

from agglo import SCC, neighbor_graph


def draw_groups(n: int, d: int, number: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Draw points of ``number`` groups; return them and the group of each."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(number, d)).astype(np.float32)
    y = rng.integers(number, size=n)
    X = centers[y]
    for first in range(0, n, 65_536):
        rows = X[first : first + 65_536]
        rows += 0.6 * rng.normal(size=rows.shape).astype(np.float32)
    return X, y


def measure_cpu(what: str, work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of ``work`` and its CPU seconds, and print them."""
    begin = time.process_time()
    result = work()
    spent = time.process_time() - begin
    print(f"{what:<44}{spent:10.2f} CPU s", flush=True)
    return result, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--new", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--metric", default="cosine")
    parser.add_argument("--batch", type=int, default=0, help="points to add by partial_fit; 0: none")
    given = parser.parse_args()

    X, y = draw_groups(given.points + given.new, given.columns, given.groups, seed=0)
    old, new = X[: given.points], X[given.points :]
    settings = {"n_clusters": given.groups, "metric": given.metric, "method": given.method}
    searched = f"search of {given.points:,} points"
    graph, search = measure_cpu(searched, lambda: neighbor_graph(old, 25, given.metric, given.method))
    model, fit = measure_cpu("fit of them, search and rounds", lambda: SCC(**settings).fit(old))
    print(f"searched by {graph.method}, recall {graph.recall_estimate}")

    _, first = measure_cpu("predict of 1 point, which gets ready", lambda: model.predict(new[:1]))
    labels, spent = measure_cpu(f"predict of {given.new:,} points", lambda: model.predict(new))
    found = score(y, labels, given.points)
    print(f"in clusters: {(labels >= 0).mean():.3f}, adjusted Rand index of these {found:.3f}")
    print(f"the fit's search takes {search / given.points * given.new / spent:.2f} × as long for so many points")
    times = f"{fit / (spent + first):.1f} × as long as predict, {fit / spent:.1f} × once that is ready"
    print(f"a fit of the old points takes {times}")
    if given.batch:
        batch = new[: given.batch]
        _, added = measure_cpu(f"partial_fit of {given.batch:,} more points", lambda: model.partial_fit(batch))
        print(f"recall {model.graph_.recall_estimate}")
        both = X[: given.points + given.batch]
        whole, again = measure_cpu("fit of all of them", lambda: SCC(**settings).fit(both))
        print(f"a fit takes {again / added:.2f} × as long as partial_fit")
        part = y[: given.points + given.batch]
        print(
            f"adjusted Rand index {adjusted_rand_score(part, model.labels_):.4f} by partial_fit, "
            f"{adjusted_rand_score(part, whole.labels_):.4f} by fit"
        )


def score(y: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], first: int) -> float:
    """Return the adjusted Rand index of the points from ``first`` on that have a cluster."""
    known = labels >= 0
    return float(adjusted_rand_score(y[first:][known], labels[known]))


if __name__ == "__main__":
    main()
