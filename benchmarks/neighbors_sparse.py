"""Compare exact neighbour search of sparse points with sparse_dot_topn on the same matrix.

    python benchmarks/neighbors_sparse.py                       # synthetic short texts
    python benchmarks/neighbors_sparse.py --size 100000         # more of them
    python benchmarks/neighbors_sparse.py --data points.npz     # a matrix of scipy.sparse.save_npz

Synthetic texts consist of random words with Zipf frequencies; their features are TF-IDF of character 3-grams. Each
search runs in a separate process. CPU seconds are those of all threads, memory is the peak minus the memory
before, and "right" is the share of a sample's neighbours that are as close as the true ones. sparse_dot_topn
returns each point as its own neighbour, so it searches for one more.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

K = 25
SAMPLE = 100

Similarities = Callable[[int], Any]  # of a point's neighbours, the closest first


class Run(NamedTuple):
    """The cost of one search, and the share of correct neighbours."""

    name: str
    cpu: float
    memory: float
    right: float


def texts(n: int, words: int = 9) -> list[str]:
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwyp"))
    weights = 1 / np.arange(1, len(letters) + 1)
    letters_of = rng.choice(letters, (30_000, 9), p=weights / weights.sum())
    vocabulary = [
        "".join(row[:length]) for row, length in zip(letters_of, rng.integers(2, 10, 30_000), strict=True)
    ]
    ranks = np.minimum(rng.zipf(1.25, (n, words)) - 1 + rng.integers(0, 40, (n, words)), 29_999)
    return [" ".join(vocabulary[rank] for rank in row[: rng.integers(4, words + 1)]) for row in ranks]


def features(n: int) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), dtype=np.float32).fit_transform(texts(n))


def ours(X: Any, threads: int) -> Similarities:
    from agglo import neighbor_graph

    graph = neighbor_graph(X, K, n_jobs=threads)  # sparse_dot_topn does not build a graph
    return lambda i: -np.sort(-graph.weights[graph.indptr[i] : graph.indptr[i + 1]])[:K]


def dot_topn(X: Any, threads: int) -> Similarities:
    from sparse_dot_topn import sp_matmul_topn

    found = sp_matmul_topn(X, X.T.tocsr(), top_n=K + 1, sort=True, n_threads=threads)

    def similarities(i: int) -> Any:
        row = slice(found.indptr[i], found.indptr[i + 1])
        return found.data[row][found.indices[row] != i][:K]

    return similarities


SEARCHES = {"agglo": ours, "sparse_dot_topn": dot_topn}


def share_right(X: Any, similarities: Similarities) -> float:
    """Return the share of a sample's neighbours that are no farther than the true k-th, up to rounding."""
    rows = np.random.default_rng(1).choice(X.shape[0], min(X.shape[0], SAMPLE), replace=False)
    wide = X.astype(np.float64)
    right = wanted = 0
    for row in rows:
        all_of_row = (wide @ wide[[row]].T).toarray().ravel()
        all_of_row[row] = -1
        best = -np.sort(-all_of_row)[:K]
        best = best[best > 0]
        found = similarities(row)[: len(best)]
        right += int((found >= best[: len(found)] - 1e-6).sum())
        wanted += len(best)
    return right / wanted


def measure(name: str, file: str, threads: int, answer: multiprocessing.Queue[Run]) -> None:
    """Measure one search in a separate process, to separate memory and threads."""
    X = sp.load_npz(file).tocsr()
    SEARCHES[name](X[:200], threads)  # imports and compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu = time.process_time()
    similarities = SEARCHES[name](X, threads)
    cpu = time.process_time() - cpu
    unit = 1 if sys.platform == "darwin" else 1024
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit
    answer.put(Run(name, cpu, memory, share_right(X, similarities)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=20_000, help="number of synthetic texts")
    parser.add_argument("--data", type=Path, help=".npz file of a sparse matrix, of unit-length rows")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--alone", action="store_true", help="do not run sparse_dot_topn")
    arguments = parser.parse_args()
    X = features(arguments.size) if arguments.data is None else sp.load_npz(arguments.data)
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz / X.shape[0]:.0f} features per point")
    print(f"{'':20}{'CPU s':>9}{'memory MB':>11}{'right':>9}{'CPU/agglo':>11}")
    context = multiprocessing.get_context("spawn")
    first = 0.0
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "points.npz")
        sp.save_npz(file, X, compressed=False)
        for name in list(SEARCHES)[: 1 if arguments.alone else None]:
            answer = context.Queue()
            process = context.Process(target=measure, args=(name, file, arguments.threads, answer))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(f"{name} failed: is it installed?")
            run = answer.get()
            first = first or run.cpu
            print(
                f"{name:20}{run.cpu:9.2f}{run.memory / 1e6:11.0f}{run.right:9.4f}{run.cpu / first:10.1f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
