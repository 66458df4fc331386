"""Compare exact neighbour search with faiss (IndexFlat) and scikit-learn (brute force) on the same points.

    python benchmarks/neighbors_exact.py                         # the two standard sizes
    python benchmarks/neighbors_exact.py --size 20000x64         # another size
    python benchmarks/neighbors_exact.py --data points.npz       # real points, the array X of the file

Synthetic points are isotropic Gaussian, the worst case for agglo, which is faster on points with structure. Each
search runs in a separate process. CPU seconds are those of all threads, memory is the peak minus the memory
before, and "right" is the share of a sample's neighbours that are as close as the true ones, computed in float64.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

K = 25
SIZES = ("100000x128", "70000x784")
SAMPLE = 200  # points whose neighbours are checked

Floats = npt.NDArray[np.floating]
Result = Callable[[int], npt.NDArray[np.integer]]  # the neighbours of a point, the closest first
Search = Callable[[], Result]


@dataclass
class Run:
    """The cost of one search, and the share of correct neighbours."""

    name: str
    cpu: float
    wall: float
    memory: float
    right: float


def unit(X: Floats) -> Floats:
    scaled: Floats = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-30)
    return scaled


def ours(X: Floats, metric: str, threads: int) -> Search:
    from agglo import neighbor_graph

    def search() -> Result:
        graph = neighbor_graph(X, K, metric, n_jobs=threads)  # the other libraries do not build a graph

        def neighbors(i: int) -> npt.NDArray[np.integer]:
            row = slice(graph.indptr[i], graph.indptr[i + 1])
            weights = graph.weights[row]
            return graph.indices[row][np.argsort(weights if graph.kind == "distance" else -weights)]

        return neighbors

    return search


def faiss_flat(X: Floats, metric: str, threads: int) -> Search:
    import faiss

    faiss.omp_set_num_threads(threads)

    def search() -> Result:
        points = unit(X) if metric == "cosine" else X
        index = (faiss.IndexFlatIP if metric == "cosine" else faiss.IndexFlatL2)(X.shape[1])
        index.add(points)
        lists = np.asarray(index.search(points, K + 1)[1])
        return lambda i: lists[i]

    return search


def sklearn_brute(X: Floats, metric: str, threads: int) -> Search:
    from sklearn.neighbors import NearestNeighbors

    def search() -> Result:
        points = unit(X) if metric == "cosine" else X
        # Normalized points have the same neighbours by distance, at which scikit-learn is faster.
        model = NearestNeighbors(n_neighbors=K, algorithm="brute", n_jobs=threads).fit(points)
        lists = np.asarray(model.kneighbors(return_distance=False))
        return lambda i: lists[i]

    return search


SEARCHES = {"agglo": ours, "faiss flat": faiss_flat, "scikit-learn brute": sklearn_brute}


def share_right(X: Floats, metric: str, neighbors: Result) -> float:
    """Return the share of a sample's neighbours that are no farther than the true k-th, up to rounding."""
    rows = np.random.default_rng(1).choice(len(X), min(len(X), SAMPLE), replace=False)
    wide: Floats = X.astype(np.float64)
    if metric == "cosine":
        wide = unit(wide)
    right = 0
    for row in rows:
        distance = ((wide - wide[row]) ** 2).sum(axis=1)
        distance[row] = np.inf
        last = np.partition(distance, K - 1)[K - 1]
        found = [j for j in neighbors(row) if j != row][:K]
        right += int((distance[found] <= last * (1 + 1e-6) + 1e-12).sum())
    return right / (K * len(rows))


def measure(name: str, file: str, metric: str, threads: int, answer: multiprocessing.Queue[Run]) -> None:
    """Measure one search in a separate process, to separate memory and threads."""
    X = np.load(file)
    search = SEARCHES[name](X, metric, threads)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = time.process_time(), time.perf_counter()
    neighbors = search()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    unit_of_rss = 1 if sys.platform == "darwin" else 1024
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit_of_rss
    answer.put(Run(name, cpu, wall, memory, share_right(X, metric, neighbors)))


def compare(X: Floats, metric: str, threads: int, names: Iterable[str]) -> list[Run]:
    context = multiprocessing.get_context("spawn")
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "points.npy")
        np.save(file, X)
        for name in names:
            answer = context.Queue()
            process = context.Process(target=measure, args=(name, file, metric, threads, answer))
            process.start()
            runs.append(answer.get())
            process.join()
    return runs


def show(title: str, runs: list[Run]) -> None:
    print(f"\n{title}")
    print(f"{'':20}{'CPU s':>9}{'wall s':>9}{'memory MB':>11}{'right':>9}{'CPU/agglo':>11}")
    for run in runs:
        ratio = run.cpu / runs[0].cpu
        print(
            f"{run.name:20}{run.cpu:9.2f}{run.wall:9.2f}{run.memory / 1e6:11.0f}{run.right:9.4f}{ratio:10.1f}x",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", help="points x columns of synthetic points; may be repeated")
    parser.add_argument("--data", type=Path, action="append", help=".npz file with an array X; may be repeated")
    parser.add_argument("--metric", choices=["euclidean", "cosine"], default="euclidean")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--beside", nargs="*", choices=list(SEARCHES)[1:], default=list(SEARCHES)[1:])
    arguments = parser.parse_args()
    names = ["agglo", *arguments.beside]
    sizes = arguments.size or ([] if arguments.data else SIZES)
    for size in sizes:
        n, d = map(int, size.split("x"))
        X = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
        show(f"{n} x {d} Gaussian, {arguments.metric}", compare(X, arguments.metric, arguments.threads, names))
    for file in arguments.data or []:
        X = np.load(file)["X"].astype(np.float32)
        title = f"{X.shape[0]} x {X.shape[1]} {file.stem}, {arguments.metric}"
        show(title, compare(X, arguments.metric, arguments.threads, names))


if __name__ == "__main__":
    main()
