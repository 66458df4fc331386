"""What new points cost beside a fit: CPU seconds of predict and partial_fit, and how good they are.

    python -m benchmarks.predict --points 200000 --new 100000

Points are drawn from groups around random centres. One process fits them, predicts others, adds some of them and,
to compare, fits all; every figure is of CPU seconds in the same run, and printed as a ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import adjusted_rand_score

from agglo import SCC


def groups(n: int, d: int, number: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Points of so many groups, and the group of each."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(number, d)).astype(np.float32)
    y = rng.integers(number, size=n)
    X = centers[y]
    for first in range(0, n, 65_536):
        rows = X[first : first + 65_536]
        rows += 0.6 * rng.normal(size=rows.shape).astype(np.float32)
    return X, y


def timed(what: str, work: Callable[[], Any]) -> tuple[Any, float]:
    """What comes out, and the CPU seconds that it took, which are printed."""
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

    X, y = groups(given.points + given.new, given.columns, given.groups, seed=0)
    old, new = X[: given.points], X[given.points :]
    settings = {"n_clusters": given.groups, "metric": given.metric, "method": given.method}
    model, fit = timed(f"fit of {given.points:,} points", lambda: SCC(**settings).fit(old))
    print(f"searched by {model.graph_.method}, recall {model.graph_.recall_estimate}")
    rounds = sum(record.seconds for record in model.tree_.rounds)
    print(f"of which rounds took {rounds:.2f} s by the clock, before heights and labels")

    _, first = timed("predict of 1 point, which makes the cells", lambda: model.predict(new[:1]))
    labels, spent = timed(f"predict of {given.new:,} points", lambda: model.predict(new))
    known = labels >= 0
    print(f"in clusters: {known.mean():.3f}, adjusted Rand index of these {score(y, labels, given.points):.3f}")
    search = (fit - rounds) / given.points * given.new  # at most: some of it is neither
    print(f"a fit's search would take {search / spent:.2f} × as long for so many points")
    if given.batch:
        batch = new[: given.batch]
        _, added = timed(f"partial_fit of {given.batch:,} more points", lambda: model.partial_fit(batch))
        print(f"recall {model.graph_.recall_estimate}")
        both = X[: given.points + given.batch]
        whole, again = timed("fit of all of them", lambda: SCC(**settings).fit(both))
        print(f"a fit takes {again / added:.2f} × as long as partial_fit")
        part = y[: given.points + given.batch]
        print(
            f"adjusted Rand index {adjusted_rand_score(part, model.labels_):.4f} by partial_fit, "
            f"{adjusted_rand_score(part, whole.labels_):.4f} by fit"
        )
    else:
        whole, again = timed("fit of old and new points", lambda: SCC(**settings).fit(X))
        found = score(y, whole.labels_[given.points :], given.points)
        print(f"adjusted Rand index of new points in that {found:.3f}")
    print(
        f"a fit takes {again / (spent + first):.1f} × as long as predict with its cells, "
        f"{again / spent:.1f} × without"
    )


def score(y: npt.NDArray[np.int64], labels: npt.NDArray[np.int64], first: int) -> float:
    """The adjusted Rand index of the points from ``first`` on that have a cluster."""
    known = labels >= 0
    return float(adjusted_rand_score(y[first:][known], labels[known]))


if __name__ == "__main__":
    main()
