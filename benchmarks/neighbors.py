"""Compare all-points neighbour search with faiss, hnswlib, pynndescent and ScaNN: recall, CPU seconds, memory.

    python benchmarks/neighbors.py                                 # synthetic clusters, 100,000 x 128
    python benchmarks/neighbors.py --size 1000000x128 --beside "faiss IVF" pynndescent
    python benchmarks/neighbors.py --data folder --sets mnist      # and the array X of folder/mnist.npz
    python benchmarks/neighbors.py --save runs.json --picture curves.png

Every library finds the 25 nearest neighbours of all points by Euclidean distance. Embeddings of texts are
normalized first, so that these are also the neighbours by cosine. One process builds one index and searches it
with several settings. CPU seconds are those of all threads for build and search together, after a warm-up on few
points. Memory is the peak minus the memory before, including the result. Recall is the share of a sample's
neighbours that are as close as the true 25th, computed in float64. Curves show the Pareto front of each library. A
library is stopped once a setting takes --most times the maximum CPU seconds of agglo, because further settings are
slower.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import queue
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

K = 25
SAMPLE = 1000  # points whose neighbours are checked
RECALLS = (0.95, 0.99)  # recalls at which libraries are compared
MAX_RECALL = 0.997  # above which no larger effort is tried
UNIT = ("clinc150", "newsgroups20", "stackoverflow20k", "web_queries_A", "reddit_titles_60k", "minilm")

Floats = npt.NDArray[np.float32]
Lists = npt.NDArray[np.integer[Any]]


@dataclass
class Run:
    """The cost and the recall of one search."""

    points: str
    library: str
    setting: str
    cpu: float
    memory: float
    recall: float


@dataclass(frozen=True)
class Library:
    """The functions of a library to build and to search an index, and the settings of both."""

    build: Callable[[Floats, int, Any], Any]
    search: Callable[[Any, Floats, Any], Lists]
    builds: Callable[[int], Iterable[Any]]
    searches: Sequence[Any]


def agglo_search(recall: float, X: Floats, _: Any) -> Lists:
    from agglo._validation import effective_n_threads
    from agglo.neighbors.dense import SearchParams, search_cells
    from agglo.points.points import check_points

    params = SearchParams(K, "sqeuclidean", effective_n_threads(None), recall=recall)
    return search_cells(check_points(X), params).indices


def faiss_index(factory: Callable[[int], str]) -> Callable[[Floats, int, Any], Any]:
    def build(X: Floats, threads: int, setting: Any) -> Any:
        import faiss

        faiss.omp_set_num_threads(threads)
        index = faiss.index_factory(X.shape[1], factory(setting))
        if hasattr(index, "hnsw"):
            index.hnsw.efConstruction = 5 * setting
        index.train(X)
        index.add(X)
        return index

    return build


def faiss_search(index: Any, X: Floats, effort: int) -> Lists:
    if hasattr(index, "nprobe"):
        index.nprobe = effort
    if hasattr(index, "hnsw"):
        index.hnsw.efSearch = effort
    lists: Lists = index.search(X, K + 1)[1]
    return lists


def faiss_descent(X: Floats, threads: int, degree: int) -> Any:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexNNDescentFlat(X.shape[1], degree)
    index.nndescent.search_L = degree
    index.add(X)
    return index


def faiss_descent_search(index: Any, X: Floats, _: Any) -> Lists:
    import faiss

    graph = faiss.vector_to_array(index.nndescent.final_graph)  # it contains the neighbours of all points
    lists: Lists = graph.reshape(len(X), -1)
    return lists


def hnswlib_index(X: Floats, threads: int, links: int) -> Any:
    import hnswlib

    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), M=links, ef_construction=5 * links)
    index.set_num_threads(threads)
    index.add_items(X)
    return index


def hnswlib_search(index: Any, X: Floats, effort: int) -> Lists:
    index.set_ef(effort)
    lists: Lists = index.knn_query(X, K + 1)[0]
    return lists


def pynndescent_index(X: Floats, threads: int, n_neighbors: int) -> Any:
    from pynndescent import NNDescent

    return NNDescent(X, n_neighbors=n_neighbors, metric="euclidean", n_jobs=threads, random_state=0)


def pynndescent_search(index: Any, X: Floats, _: Any) -> Lists:
    lists: Lists = index.neighbor_graph[0]
    return lists


def scann_index(X: Floats, threads: int, leaves: int) -> Any:
    import scann

    builder = scann.scann_ops_pybind.builder(X, K + 1, "squared_l2")
    tree = builder.tree(num_leaves=leaves, num_leaves_to_search=16, training_sample_size=min(len(X), 100 * leaves))
    return tree.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(300).build()


def scann_search(index: Any, X: Floats, leaves: int) -> Lists:
    lists: Lists = np.asarray(
        index.search_batched_parallel(
            X, final_num_neighbors=K + 1, leaves_to_search=leaves, pre_reorder_num_neighbors=300
        )[0]
    )
    return lists


def list_counts(n: int) -> tuple[int, ...]:
    """Return numbers of inverted lists, from few large to many small ones."""
    root = n**0.5
    return tuple(int(times * root) for times in (0.5, 1, 2, 4))


def constant(*settings: Any) -> Callable[[int], Iterable[Any]]:
    return lambda n: settings


LIBRARIES = {
    "agglo": Library(
        lambda X, threads, recall: recall, agglo_search, constant(0.9, 0.95, 0.98, 0.99, 0.995), ("",)
    ),
    "faiss flat": Library(faiss_index(lambda _: "Flat"), faiss_search, constant(""), ("",)),
    "faiss IVF": Library(
        faiss_index(lambda lists: f"IVF{lists},Flat"), faiss_search, list_counts, (1, 2, 4, 8, 16, 32, 64, 128)
    ),
    "faiss HNSW": Library(
        faiss_index(lambda links: f"HNSW{links}"), faiss_search, constant(8, 16), (32, 64, 128, 256)
    ),
    "faiss NN-descent": Library(faiss_descent, faiss_descent_search, constant(40, 64, 96), ("",)),
    "hnswlib": Library(hnswlib_index, hnswlib_search, constant(8, 16), (32, 64, 128, 256)),
    "pynndescent": Library(pynndescent_index, pynndescent_search, constant(26, 32, 40, 50, 60, 80), ("",)),
    "scann": Library(scann_index, scann_search, list_counts, (8, 16, 32, 64, 128)),
}


class Truth:
    """The distance of the true 25th neighbour of each point of a sample."""

    def __init__(self, X: Floats) -> None:
        self.rows = np.random.default_rng(1).choice(len(X), min(len(X), SAMPLE), replace=False)
        queries = X[self.rows].astype(np.float64)
        best = np.full((len(queries), K), np.inf)
        for first in range(0, len(X), 20_000):
            block = X[first : first + 20_000].astype(np.float64)
            distances = (block**2).sum(axis=1) - 2 * queries @ block.T + (queries**2).sum(axis=1)[:, None]
            inside = (self.rows >= first) & (self.rows < first + len(block))
            distances[inside, self.rows[inside] - first] = np.inf
            best = np.partition(np.hstack([best, distances]), K - 1, axis=1)[:, :K]
        self.last = best.max(axis=1)

    def recall(self, X: Floats, lists: Lists) -> float:
        """Return the recall on the sample."""
        right = 0
        for row, last in zip(self.rows, self.last, strict=True):
            found = [j for j in lists[row] if j not in (row, -1)][:K]
            distances = ((X[found].astype(np.float64) - X[row]) ** 2).sum(axis=1)
            right += int((distances <= last * (1 + 1e-6) + 1e-9).sum())
        return right / (K * len(self.rows))


def peak_memory(*, reset: bool = False) -> int:
    """Return the peak memory of this process in bytes; with ``reset``, start a new peak first."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    return 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])


def measure(name: str, setting: Any, file: str, truth: Truth, threads: int, max_cpu: float, answer: Any) -> None:
    """Measure one index in a separate process, to separate memory and threads."""
    X: Floats = np.load(file)
    library = LIBRARIES[name]
    efforts = list(library.searches)
    few = X[np.linspace(0, len(X) - 1, min(len(X), 4000)).astype(int)]
    if name not in ("faiss IVF", "scann"):  # they warn about few points per list, and compile nothing
        library.search(library.build(few, threads, setting), few, efforts[0])
    before = peak_memory(reset=True)
    cpu = time.process_time()
    index = library.build(X, threads, setting)
    built = time.process_time() - cpu
    for effort in efforts:
        cpu = time.process_time()
        lists = library.search(index, X, effort)
        searched = time.process_time() - cpu
        memory = peak_memory() - before
        recall = truth.recall(X, lists)
        last = effort == efforts[-1] or recall > MAX_RECALL or built + searched > max_cpu
        answer.put((f"{setting} {effort}".strip(), built + searched, memory, recall, last))
        if last:
            break


def compare(title: str, X: Floats, threads: int, names: Iterable[str], most: float) -> list[Run]:
    context = multiprocessing.get_context("spawn")
    truth = Truth(X)
    runs: list[Run] = []
    print(f"\n{title}\n{'':20}{'setting':>12}{'CPU s':>9}{'memory MB':>11}{'recall':>9}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "points.npy")
        np.save(file, X)
        for name in names:
            ours = [run.cpu for run in runs if run.library == "agglo"]
            max_cpu = math.inf if name == "agglo" else most * max(ours)
            for setting in LIBRARIES[name].builds(len(X)):
                first = len(runs)
                answer = context.Queue()
                process = context.Process(
                    target=measure, args=(name, setting, file, truth, threads, max_cpu, answer)
                )
                process.start()
                last = False
                while not last:
                    try:
                        label, cpu, memory, recall, last = answer.get(timeout=5)
                    except queue.Empty:
                        if process.is_alive():
                            continue
                        raise RuntimeError(f"{name} failed at setting {setting!r}: see its error above") from None
                    run = Run(title, name, label, cpu, memory, recall)
                    runs.append(run)
                    print(f"{name:20}{label:>12}{cpu:9.2f}{memory / 1e6:11.0f}{recall:9.4f}", flush=True)
                process.join()
                # Later builds take longer, and can only increase the recall.
                if runs[first].cpu > max_cpu or (
                    runs[-1].recall > MAX_RECALL and len(LIBRARIES[name].searches) == 1
                ):
                    break
    return runs


def best(runs: Iterable[Run], library: str, recall: float) -> Run | None:
    """Return the fastest run of a library that reaches a recall."""
    enough = [run for run in runs if run.library == library and run.recall >= recall]
    return min(enough, key=lambda run: run.cpu, default=None)


def print_ratios(runs: list[Run]) -> None:
    """Print the CPU seconds of the best other library relative to agglo, at equal recall."""
    print(f"\n{'points':26}{'recall':>8}{'agglo s':>9}{'best other':>18}{'s':>9}{'CPU':>7}{'memory':>8}")
    ratios = []
    for points in dict.fromkeys(run.points for run in runs):
        here = [run for run in runs if run.points == points]
        for recall in RECALLS:
            ours = best(here, "agglo", recall)
            others = [best(here, name, recall) for name in LIBRARIES if name != "agglo"]
            other = min((run for run in others if run), key=lambda run: run.cpu, default=None)
            if not ours or not other:
                continue
            ratios.append(other.cpu / ours.cpu)
            memory = other.memory / max(ours.memory, 1)
            print(
                f"{points:26}{recall:8.2f}{ours.cpu:9.2f}{other.library:>18}{other.cpu:9.2f}"
                f"{ratios[-1]:6.1f}x{memory:7.1f}x"
            )
    if ratios:
        print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.1f}x, least {min(ratios):.1f}x")


def draw(runs: list[Run], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    titles = list(dict.fromkeys(run.points for run in runs))
    figure, axes = plt.subplots(1, len(titles), figsize=(3.6 * len(titles), 3.4), squeeze=False)
    for ax, title in zip(axes[0], titles, strict=True):
        for number, name in enumerate(LIBRARIES):
            front: list[Run] = []
            for run in sorted((r for r in runs if r.points == title and r.library == name), key=lambda r: r.cpu):
                if not front or run.recall > front[-1].recall:
                    front.append(run)
            style = {"color": "black", "linewidth": 2.2} if name == "agglo" else {"color": f"C{number}"}
            missed = [max(1 - run.recall, 1e-4) for run in front]
            if front:
                ax.plot([run.cpu for run in front], missed, "o-", markersize=3, label=name, **style)
        ax.set(xscale="log", yscale="log", title=title, xlabel="CPU seconds")
        ax.set_ylim(0.3, 8e-5)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_yticks([0.1, 0.05, 0.01, 1e-3], ["0.9", "0.95", "0.99", "0.999"])
        ax.grid(alpha=0.3)
    axes[0][0].set_ylabel("recall@25")
    shown = [pair for ax in axes[0] for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    handles = {label: handle for handle, label in shown}
    place: dict[str, Any] = {"loc": "lower center", "ncols": len(handles), "frameon": False, "fontsize": 8}
    figure.legend(handles.values(), handles.keys(), **place)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(file, dpi=80)


def draw_clusters(n: int, d: int) -> Floats:
    """Draw clusters of about 500 points with different widths, whose centers are clustered, too."""
    rng = np.random.default_rng(0)
    coarse = rng.standard_normal((max(n // 20_000, 5), d), dtype=np.float32)
    fine = coarse[rng.integers(len(coarse), size=n // 500)] + rng.standard_normal((n // 500, d), dtype=np.float32)
    widths = rng.uniform(0.5, 1.0, len(fine)).astype(np.float32)
    which = rng.integers(len(fine), size=n)
    X = rng.standard_normal((n, d), dtype=np.float32)
    X *= widths[which, None]
    X += fine[which]
    return X


def load_points(file: Path) -> Floats:
    X: Floats = np.load(file)["X"].astype(np.float32)
    if file.stem in UNIT:
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-30)
    return X


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", help="points x columns of synthetic points; may be repeated")
    parser.add_argument("--data", type=Path, help="folder of .npz files with an array X each")
    parser.add_argument("--sets", nargs="*", default=["mnist", "clinc150"], help="names of the files")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--beside", nargs="*", choices=list(LIBRARIES)[1:], default=list(LIBRARIES)[1:])
    parser.add_argument(
        "--most", type=float, default=10, help="stop a library at this multiple of the CPU seconds of agglo"
    )
    parser.add_argument("--with", type=Path, nargs="*", default=[], dest="earlier", help="saved runs to include")
    parser.add_argument("--alone", action="store_true", help="no synthetic points")
    parser.add_argument("--save", type=Path, help="JSON file for all runs")
    parser.add_argument("--picture", type=Path, help="PNG file for the curves")
    arguments = parser.parse_args()
    # Waiting threads must not spin, which would count as CPU time.
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
    runs = [Run(**run) for file in arguments.earlier for run in json.loads(file.read_text())]
    names = ["agglo", *arguments.beside]
    for size in [] if arguments.alone else arguments.size or ["100000x128"]:
        n, d = map(int, size.split("x"))
        runs += compare(f"synthetic, {n:.0e} x {d}", draw_clusters(n, d), arguments.threads, names, arguments.most)
    for name in arguments.sets if arguments.data else []:
        X = load_points(arguments.data / f"{name}.npz")
        runs += compare(f"{name}, {X.shape[0]} x {X.shape[1]}", X, arguments.threads, names, arguments.most)
    print_ratios(runs)
    if arguments.save:
        arguments.save.write_text(json.dumps([asdict(run) for run in runs], indent=0))
    if arguments.picture:
        draw(runs, arguments.picture)


if __name__ == "__main__":
    main()
