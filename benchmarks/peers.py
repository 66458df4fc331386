"""Compare agglo with other clustering libraries: CPU seconds, memory, quality and repeated runs.

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install . hdbscan evoc umap-learn pynndescent igraph leidenalg
    /tmp/peers/bin/python -m benchmarks.peers docs/paper/results/peers.jsonl [--labelled FOLDER]
    python -m benchmarks.peers docs/paper/results/peers.jsonl --tables README.md docs/comparison.md

``benchmarks.peers FILE`` measures. Each method clusters generated points, 12,500 at first and then twice as
many each time, until a run takes more than 60 CPU seconds. Each run is a process of its own with one thread. A
run first clusters 5,000 points, so that the compilation of numba is not measured. Memory is the peak of the
process. Runs of 12,500 points are repeated: if both runs give the same labels, the method gives the "same
answer". With ``--labelled``, the adjusted mutual information (AMI) of the labels with the classes of labelled
sets is measured, too, on at most 8,000 points of each. Every method runs with its defaults, except where
``METHODS`` says otherwise.

``--tables`` writes the tables of the results into pages, between the lines ``<!-- peers: TABLE -->`` and
``<!-- end -->``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

SIZES = tuple(12_500 * 2**i for i in range(8))  # 12,500 to 1,600,000
WARM_UP = 5_000
MINUTE = 60.0
CPU_LIMIT = 240  # seconds of a process
MEMORY_LIMIT = 12 << 30  # bytes of address space of a process
COLUMNS = 128
N_CLASSES = 500
SETS = (
    "digits1797",
    "pendigits",
    "letter",
    "clinc150",
    "stackoverflow20k",
    "newsgroups20",
    "tinyimagenet_A_effnet",
    "ilsvrc5k_effnet",
    "scrna_worm_neurons",
)
SET_POINTS = 8_000

Points = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def draw_embeddings(n: int, seed: int = 0) -> tuple[Points, Labels]:
    """Draw unit vectors of 500 classes in 20 topics, of unequal sizes, with 30 relevant directions per class."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(20, COLUMNS))
    centers = topics[rng.integers(20, size=N_CLASSES)] + 0.8 * rng.normal(size=(N_CLASSES, COLUMNS))
    share = rng.pareto(1.5, N_CLASSES) + 0.3
    y = rng.choice(N_CLASSES, n, p=share / share.sum())
    scale = 0.3 * rng.normal(size=COLUMNS) ** 2 + 0.3
    X = centers.astype(np.float32)[y]
    for first in range(0, n, 65_536):
        rows = X[first : first + 65_536]
        rows += (scale * rng.normal(size=rows.shape)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return X, y


def run_agglo(X: Points) -> Any:
    from agglo import SCC

    return SCC(n_jobs=1).fit_predict(X)


def run_hdbscan(X: Points) -> Any:
    import hdbscan

    return hdbscan.HDBSCAN(core_dist_n_jobs=1).fit_predict(X)


def run_evoc(X: Points) -> Any:
    import evoc

    return evoc.EVoC().fit_predict(X)


def run_bertopic(X: Points) -> Any:
    """Reduce the points by UMAP and cluster them by HDBSCAN, with the parameters of BERTopic."""
    import hdbscan
    import umap

    reduced = umap.UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine").fit_transform(X)
    model = hdbscan.HDBSCAN(min_cluster_size=10, prediction_data=True, core_dist_n_jobs=1)
    return model.fit_predict(reduced)


def run_leiden(X: Points) -> Any:
    """Cluster a graph of 25 nearest neighbours by Leiden with modularity, as is usual for single cells."""
    import igraph
    import leidenalg
    from pynndescent import NNDescent

    neighbors, _ = NNDescent(X, metric="cosine", n_neighbors=26).neighbor_graph
    sources = np.repeat(np.arange(len(X)), neighbors.shape[1] - 1)
    graph = igraph.Graph(n=len(X), edges=np.column_stack([sources, neighbors[:, 1:].ravel()]).tolist()).simplify()
    return np.array(leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition).membership)


def run_agglomerative(X: Points, n_clusters: int = N_CLASSES) -> Any:
    """Cluster by average linkage; scikit-learn must be given the number of clusters."""
    from sklearn.cluster import AgglomerativeClustering

    return AgglomerativeClustering(n_clusters, metric="cosine", linkage="average").fit_predict(X)


def run_kmeans(X: Points, n_clusters: int = N_CLASSES) -> Any:
    """Cluster by k-means; it must be given the number of clusters."""
    from sklearn.cluster import KMeans

    return KMeans(n_clusters).fit_predict(X)


METHODS: dict[str, Callable[..., Any]] = {
    "agglo": run_agglo,
    "HDBSCAN": run_hdbscan,
    "EVoC": run_evoc,
    "BERTopic": run_bertopic,
    "Leiden": run_leiden,
    "Agglomerative": run_agglomerative,
    "KMeans": run_kmeans,
}
NEEDS_NUMBER = ("Agglomerative", "KMeans")


def read_set(path: Path) -> tuple[Points, Labels]:
    """Read a labelled set, at most 8,000 points of it, with rows of unit length."""
    with np.load(path, allow_pickle=True) as file:
        X, y = file["X"].astype(np.float32), file["y"].ravel()
    if len(X) > SET_POINTS:
        chosen = np.sort(np.random.default_rng(0).choice(len(X), SET_POINTS, replace=False))
        X, y = X[chosen], y[chosen]
    if path.stem.startswith("scrna"):
        X = X - X.mean(axis=0)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1), np.unique(y, return_inverse=True)[1]


def measure(method: str, n: int, file: Path | None) -> dict[str, Any]:
    """Run one method in this process and return what was measured."""
    from sklearn.metrics import adjusted_mutual_info_score

    run = METHODS[method]
    X, y = draw_embeddings(n) if file is None else read_set(file)
    # By its own rule, a method may not be given the number of classes: only methods that require it are.
    options = {"n_clusters": int(y.max()) + 1} if file is not None and method in NEEDS_NUMBER else {}
    if file is None:  # times of labelled sets are not reported
        run(draw_embeddings(WARM_UP)[0], **options)
    begin = time.process_time()
    labels = np.asarray(run(X, **options)).astype(np.int64)
    seconds = time.process_time() - begin
    return {
        "method": method,
        "points": len(X),
        "set": None if file is None else file.stem,
        "cpu": round(seconds, 2),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "clusters": len(np.unique(labels[labels >= 0])),
        "noise": round(float((labels < 0).mean()), 3),
        "ami": round(float(adjusted_mutual_info_score(y, labels)), 3) if file or n <= 100_000 else None,
        "digest": hashlib.sha256(labels.tobytes()).hexdigest()[:16],
    }


def run_child(method: str, n: int, file: Path | None = None) -> dict[str, Any]:
    """Measure in a process of its own; a failed run has the key ``error``."""
    environment = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [
        sys.executable,
        "-m",
        "benchmarks.peers",
        "--one",
        method,
        str(n),
        "" if file is None else str(file),
    ]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))

    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, preexec_fn=limit, check=False
    )
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    cause = (
        "time"
        if done.returncode < 0
        else "memory"
        if "Memory" in done.stderr
        else done.stderr.strip().splitlines()[-1]
    )
    return {"method": method, "points": n, "set": None if file is None else file.stem, "error": cause}


def measure_all(out: Path, methods: Iterable[str], folder: Path | None) -> None:
    """Measure the methods and append each result to a file as soon as it is known."""

    def record(result: dict[str, Any]) -> dict[str, Any]:
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)
        return result

    for method in methods:
        record(run_child(method, SIZES[0]))
        for n in SIZES:
            result = record(run_child(method, n))
            if result.get("cpu", CPU_LIMIT) > MINUTE:
                break
    for name in SETS if folder else ():
        for method in methods:
            record(run_child(method, SET_POINTS, Path(str(folder)) / f"{name}.npz"))


def points_in_a_minute(runs: list[dict[str, Any]]) -> str:
    """Interpolate between the last run below 60 CPU seconds and the first one above, on logarithmic scales.

    Round down to two digits. If there is no run above, return a lower bound.
    """
    times = sorted({run["points"]: run["cpu"] for run in runs if "cpu" in run}.items())
    below = [pair for pair in times if pair[1] <= MINUTE]
    above = [pair for pair in times if pair[1] > MINUTE]
    if not below:
        return f"fewer than {SIZES[0]:,}"
    if not above:
        return f"at least {below[-1][0]:,}"
    (n0, t0), (n1, t1) = below[-1], above[0]
    n = n0 * (n1 / n0) ** (np.log(MINUTE / t0) / np.log(t1 / t0))
    unit = 10 ** (int(np.log10(n)) - 1)
    return f"{int(n // unit * unit):,}"


def format_table(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]]
    return "\n".join(lines)


def cost_table(results: list[dict[str, Any]]) -> str:
    """Return the table of time, memory and repeated runs on generated points."""
    rows = []
    for method in METHODS:
        runs = [run for run in results if run["method"] == method and run["set"] is None]
        by_size = {run["points"]: run for run in runs if "cpu" in run}
        if not by_size:
            continue
        digests = [run["digest"] for run in runs if run["points"] == SIZES[0] and "digest" in run]
        row = [method, points_in_a_minute(runs)]
        for n in (12_500, 50_000):
            row.append(f"{by_size[n]['cpu']:.1f} s" if n in by_size else "–")
            row.append(f"{by_size[n]['memory'] / 2**30:.1f} GB" if n in by_size else "–")
        rows.append([*row, "yes" if len(digests) > 1 and len(set(digests)) == 1 else "no"])
    header = [
        "method",
        "points in a CPU minute",
        "12,500 points",
        "memory",
        "50,000 points",
        "memory",
        "same answer",
    ]
    return format_table(header, rows)


def quality_table(results: list[dict[str, Any]]) -> str:
    """Return the table of the AMI with known classes, for the sets that all methods clustered."""
    found = {(run["method"], run["set"]): run for run in results if "ami" in run}
    sets = [name for name in SETS if all((method, name) in found for method in METHODS)]
    rows = []
    for name in sets:
        runs = [found[method, name] for method in METHODS]
        rows.append(
            [name, *(f"{run['ami']:.2f}" + (f" ({run['noise']:.0%})" if run["noise"] else "") for run in runs)]
        )
    means = [np.mean([found[method, name]["ami"] for name in sets]) for method in METHODS]
    return format_table(["set", *METHODS], [*rows, ["mean", *(f"{mean:.2f}" for mean in means)]])


# What the libraries offer, by their documentation: hierarchy, new points, constraints, several machines.
FEATURES = {
    "agglo": ("tree", "yes", "pairs and sizes", "Spark"),
    "HDBSCAN": ("tree", "yes", "sizes", "no"),
    "EVoC": ("layers", "no", "no", "no"),
    "BERTopic": ("merged topics", "yes", "known classes", "no"),
    "Leiden": ("no", "no", "sizes", "no"),
    "Agglomerative": ("binary tree", "no", "graph", "no"),
    "KMeans": ("no", "yes", "no", "no"),
}
TITLES = {
    "agglo": "**agglo** `SCC`",
    "BERTopic": "BERTopic's default (UMAP + HDBSCAN)",
    "Agglomerative": "scikit-learn `AgglomerativeClustering`",
    "KMeans": "scikit-learn `KMeans`",
}


def overview_table(results: list[dict[str, Any]]) -> str:
    """Return the table of the README: what was measured, and what the libraries offer."""
    rows = []
    for method in METHODS:
        runs = [run for run in results if run["method"] == method and run["set"] is None and "cpu" in run]
        if not runs:
            continue
        small = [run for run in runs if run["points"] == SIZES[0]]
        memory = f"{small[-1]['memory'] / 2**30:.1f} GB"
        same = "yes" if len(small) > 1 and len({run["digest"] for run in small}) == 1 else "no"
        minute, noise = points_in_a_minute(runs), f"{small[-1]['noise']:.0%}"
        rows.append([TITLES.get(method, method), minute, memory, same, noise, *FEATURES[method]])
    return format_table(
        [
            *("method", "points in one CPU minute", "memory, 12,500 points", "same labels twice", "noise"),
            *("hierarchy", "new points", "constraints", "several machines"),
        ],
        rows,
    )


TABLES = {"overview": overview_table, "cost": cost_table, "quality": quality_table}


def read_results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def insert_tables(text: str, results: list[dict[str, Any]]) -> str:
    """Replace the tables between the marks of a page."""
    for name, table in TABLES.items():
        mark = f"<!-- peers: {name} -->"
        block = f"{mark}\n{table(results)}\n<!-- end -->"
        text = re.sub(f"{mark}.*?<!-- end -->", block.replace("\\", r"\\"), text, flags=re.DOTALL)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--labelled", type=Path, help="a folder of .npz files with X and y")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--tables", type=Path, nargs="+", help="pages to write tables into")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        method, n, file = given.one
        print(json.dumps(measure(method, int(n), Path(file) if file else None)))
    elif given.tables:
        for page in given.tables:
            text = page.read_text(encoding="utf-8")
            page.write_text(insert_tables(text, read_results(given.results)), encoding="utf-8")
    else:
        measure_all(given.results, given.methods, given.labelled)


if __name__ == "__main__":
    main()
