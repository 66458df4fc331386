"""Compare agglo with GraphGrove, the SCC authors' own implementation: every level, and CPU seconds.

    python3.8 -m venv /tmp/graphgrove && /tmp/graphgrove/bin/pip install graphgrove==0.0.11
    python -m benchmarks.authors /tmp/graphgrove/bin/python [--points 20000]

The wheels of GraphGrove end at Python 3.8, so GraphGrove runs in an interpreter of its own. Both get the same
edges and the same 200 thresholds, and use one thread. A level is equal if both put the same points together. The
sets are iris, wine and digits of scikit-learn, and generated points in 1,000 groups. CPU seconds are those of the
rounds in single runs; searching for neighbours is not included.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

import agglo
from benchmarks.predict import draw_groups

THRESHOLDS = np.geomspace(0.9999, 0.001, 200).astype(np.float32)

# Runs on Python 3.8. A node of a level has children on the level before. Level 0 has the points and one more node.
THEIRS = """
import sys, time
import numpy as np
from graphgrove.scc import SCC
given = np.load(sys.argv[1])
n = int(given["n"])
model = SCC.init(given["thresholds"], 1, 0)
begin = time.process_time()
model.fit_on_large_batch(n, given["row"], given["col"], given["sim"])
seconds = time.process_time() - begin
labels, below = [], {}
for level in model.levels:
    points = {}
    for node in level.nodes:
        children = node.children
        points[node.this] = [point for child in children for point in below[child.this]] if below else [node.uid]
    found = np.full(n + 1, -1)
    for cluster, members in enumerate(points.values()):
        found[members] = cluster
    labels.append(found[:n])
    below = points
np.savez(sys.argv[2], labels=np.array(labels), seconds=seconds)
"""


def number_by_appearance(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Renumber the clusters in order of their first points."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def compare(name: str, X: npt.NDArray[np.float64], python: str, folder: Path) -> None:
    """Print the number of equal levels and the CPU seconds of both implementations."""
    graph = agglo.neighbor_graph(X, 10, "cosine", "exact", missing=0)
    edges = graph.to_scipy().tocoo()
    arrays = {"row": edges.row.astype(np.uint32), "col": edges.col.astype(np.uint32)}
    sims = edges.data.astype(np.float32)
    np.savez(folder / "given.npz", n=len(X), thresholds=THRESHOLDS, sim=sims, **arrays)
    script = folder / "theirs.py"
    script.write_text(THEIRS, encoding="utf-8")
    command = [python, "-W", "ignore", str(script), str(folder / "given.npz"), str(folder / "theirs.npz")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={})
    begin = time.process_time()
    tree = agglo.scc(graph, thresholds=THRESHOLDS, connect=None, n_jobs=1)
    seconds = time.process_time() - begin
    with np.load(folder / "theirs.npz") as file:
        theirs, their_seconds = file["labels"], float(file["seconds"])
    rounds = [0, *((tree.rounds.threshold >= threshold).sum() for threshold in THRESHOLDS)]
    equal = sum(
        bool((number_by_appearance(labels) == tree.cut(round=int(done))).all())
        for labels, done in zip(theirs, rounds, strict=True)
    )
    print(f"{name:<10}{len(X):>8,} points: {equal} of {len(theirs)} levels are equal", end="; ")
    times = f"CPU seconds: GraphGrove {their_seconds:.3f}, agglo {seconds:.3f}"
    print(f"{times}, ratio {their_seconds / seconds:.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter that can import graphgrove")
    parser.add_argument("--points", type=int, default=20_000, help="number of generated points")
    given = parser.parse_args()
    sets = {
        "iris": load_iris().data,
        "wine": scale(load_wine().data),
        "digits": load_digits().data,
        "generated": draw_groups(given.points, 64, 1000, seed=0)[0],
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, X in sets.items():
            compare(name, X, given.python, Path(folder))


if __name__ == "__main__":
    main()
