"""Compare the tree with the solvers of DP-means: cost and F1 for all datasets of a folder.

    python -m benchmarks.dp_means --data FOLDER                  # measure all cells that have no result yet
    python -m benchmarks.dp_means --render                       # only write the page and the figure again

Each NAME.npz of the folder has points X (or data, indices, indptr and shape of a sparse matrix) and, for F1,
classes y. Rows are normalized. Datasets with more than ``--most`` points are sampled (seed 0), and rows with more
than 256 columns are projected to their first 256 principal directions, so that every solver can run.

A cell is a method, a dataset and a lambda. Trees are built once per dataset. SCC as in the paper (25 neighbours by
squared distance, missing pairs at 4, 200 geometric thresholds from 0.001 to 4) gives the best round, the paper's
rule, and the best cut. SCC with Ward's linkage on the same graph gives the best cut, and the cut refined by passes
(seed 0), as in TreeDPMeans. Rivals run with seeds 0 to 4 and a limit of CPU seconds per cell; a cell that exceeds
it is "DNF". Every finished cell is appended to the file at once, so that the benchmark can be interrupted and
resumed.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import resource
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import agglo
from agglo.paper import dpmeans
from agglo.paper.dpmeans.passes import refine_clusters

LAMBDAS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
TREES = ("scc round", "scc cut", "ward cut", "ward refined")
RIVALS = {
    "serial": dpmeans.SerialDPMeans,
    "dp-means++": dpmeans.DPMeansPlusPlus,
    "occ": dpmeans.OCCDPMeans,
    "albcd": dpmeans.LowRankALBCD,
}
SEEDS = 5
COLUMNS = ("set", "points", "method", "lam", "seed", "cost", "clusters", "f1", "cpu")
HOME = Path(__file__).parent.parent / "docs" / "paper" / "results"

Array = npt.NDArray[Any]
Row = dict[str, Any]
Cell = tuple[str, float]  # a rival and a lambda


def load(path: Path, most: int) -> tuple[Array, Array | None]:
    """Load and normalize points; return them and their classes, if known."""
    with np.load(path, allow_pickle=True) as file:
        y = np.asarray(file["y"]) if "y" in file else None
        if "X" in file:
            X = np.asarray(file["X"], np.float32)
        else:
            parts = (file["data"], file["indices"], file["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(file["shape"])).toarray().astype(np.float32)
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:most])
    X, y = X[chosen], None if y is None else y[chosen]
    if X.shape[1] > 256:
        sample = X[: min(len(X), 4000)]
        X = X @ np.linalg.svd(sample, full_matrices=False)[2][:256].T
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return np.ascontiguousarray(X / np.where(length > 0, length, 1), np.float32), y


def score(X: Array, y: Array | None, labels: Array, lam: float) -> Row:
    f1 = "" if y is None else f"{agglo.metrics.pairwise_f1(y, labels).f1:.4f}"
    cost = agglo.metrics.dp_means_cost(X, labels, lam)
    return {"lam": lam, "cost": f"{cost:.6g}", "clusters": int(labels.max()) + 1, "f1": f1}


def run_trees(X: Array, y: Array | None) -> Iterator[Row]:
    """Yield the rows of all trees and lambdas; CPU seconds include graph, tree and path of all lambdas."""
    started = time.process_time()
    graph = agglo.neighbor_graph(X, min(25, len(X) - 1), "sqeuclidean")
    search = time.process_time() - started
    for name in ("scc", "ward"):
        started = time.process_time()
        if name == "scc":
            tree = agglo.scc(graph, thresholds=np.geomspace(0.001, 4, 200))
        else:
            tree = agglo.scc(graph, linkage="ward", X=X)
        path = agglo.dp_means_path(tree, X)
        cpu = f"{search + time.process_time() - started:.2f}"
        for lam in LAMBDAS:
            labels = path.cut(lam)
            yield {"method": f"{name} cut", "seed": "", "cpu": cpu} | score(X, y, labels, lam)
            if name == "scc":
                labels = tree.labels(round=path.best_round(lam))
                yield {"method": "scc round", "seed": "", "cpu": cpu} | score(X, y, labels, lam)
            else:
                rng = np.random.RandomState(0)
                found = refine_clusters(X, labels.astype(np.int32), path.cost(lam), lam, rng, 1, 300, 0.0)
                yield {"method": "ward refined", "seed": "", "cpu": cpu} | score(X, y, found.labels, lam)


def work(X: Array, y: Array | None, cells: list[Cell], limit: int, answer: Any) -> None:
    """Run cells one after the other in a separate process, which the system kills if one takes too long."""
    warnings.simplefilter("ignore")  # results that have not converged are scored, too
    for name, lam in cells:
        end = int(time.process_time()) + limit + 1
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        for seed in range(SEEDS):
            started = time.process_time()
            labels = RIVALS[name](lam, random_state=seed, n_jobs=1).fit_predict(X)
            cpu = time.process_time() - started
            answer.send({"method": name, "seed": seed, "cpu": f"{cpu:.3f}"} | score(X, y, labels, lam))
    answer.close()


def run_rivals(X: Array, y: Array | None, cells: list[Cell], limit: int) -> Iterator[list[Row]]:
    """Yield the rows of one cell after the other; the last row of an unfinished cell is DNF."""
    context = multiprocessing.get_context("fork")  # shares the points and the imported modules
    while cells:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(X, y, cells, limit, sender))
        process.start()
        sender.close()
        rows: list[Row] = []
        try:
            while cells:
                rows.append(receiver.recv())
                if len(rows) == SEEDS:
                    yield rows
                    rows, cells = [], cells[1:]
        except EOFError:
            (name, lam), cells = cells[0], cells[1:]
            unfinished = {
                "method": name,
                "lam": lam,
                "seed": "DNF",
                "cpu": limit,
                "cost": "",
                "clusters": "",
                "f1": "",
            }
            yield [*rows, unfinished]
        process.join()


def measure(arguments: argparse.Namespace) -> None:
    started = time.monotonic()
    done = {(row["set"], row["method"], float(row["lam"])) for row in read(arguments.results)}
    files = sorted(arguments.data.glob("*.npz"), key=lambda path: path.stat().st_size)
    for names in ((), ("serial", "dp-means++", "occ"), ("albcd",)):  # the fast ones first, for all datasets
        for path in files:
            cells = [(name, lam) for name in names for lam in LAMBDAS if (path.stem, name, lam) not in done]
            wanted = names or (None if (path.stem, TREES[-1], LAMBDAS[-1]) in done else TREES)
            if not wanted or (names and not cells):
                continue
            X, y = load(path, arguments.most)
            if not names:
                append(arguments.results, path.stem, len(X), list(run_trees(X, y)))
            for rows in run_rivals(X, y, cells, arguments.limit):
                append(arguments.results, path.stem, len(X), rows)
                if time.monotonic() - started > arguments.stop_after:
                    return


def append(file: Path, name: str, points: int, rows: list[Row]) -> None:
    fresh = not file.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerows({"set": name, "points": points} | row for row in rows)


def read(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of .npz files")
    parser.add_argument(
        "--most", type=int, default=2000, help="maximum number of points of a dataset; larger ones are sampled"
    )
    parser.add_argument("--limit", type=int, default=60, help="CPU seconds of a cell with five seeds")
    parser.add_argument(
        "--stop-after", type=float, default=float("inf"), help="seconds after which to stop; run again to resume"
    )
    parser.add_argument("--results", type=Path, default=HOME / "dp_means.csv")
    parser.add_argument("--render", action="store_true", help="only write the page and the figure")
    arguments = parser.parse_args()
    if not arguments.render:
        if arguments.data is None:
            parser.error("--data is missing: pass the folder of the datasets")
        measure(arguments)
    from benchmarks.dp_means_page import render

    render(read(arguments.results), arguments.results.parent)


if __name__ == "__main__":
    main()
