"""What is measured: for each experiment, the rows of one of its jobs."""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import StandardScaler, minmax_scale, normalize

import agglo
from agglo.evaluation import metrics
from agglo.paper.baselines import METHODS
from agglo.paper.datasets import Dataset, dp_mixture
from agglo.paper.experiments.job import Job, Row
from agglo.paper.experiments.sets import load
from agglo.tree.hierarchy import Hierarchy

NEIGHBORS = 25  # of the paper's graphs
GRAPH_METHODS: dict[str, Callable[[agglo.NeighborGraph, Any], Hierarchy]] = {
    "scc": lambda graph, X: agglo.scc(graph, X=X, connect="auto"),
    "scc-paper": lambda graph, X: agglo.scc(
        replace(graph, missing=None), thresholds="geometric", n_thresholds=200
    ),
    "affinity": lambda graph, X: agglo.affinity(graph, X=X, connect="auto"),
    "hac-graph": lambda graph, X: agglo.hac(graph, X=X, connect="auto"),
}
FLAT = ("kmeans", "bisecting-kmeans")
KINDS = ("odds", "geometric", "linear")
NUMBERS = (5, 10, 25, 50, 100, 200, 400, 800)


def rows(job: Job, folder: Path) -> list[Row]:
    """The rows of a job."""
    return {"trees": trees, "rounds": rounds, "growth": growth, "grid": grid}[job.experiment](job, folder)


def trees(job: Job, folder: Path) -> list[Row]:
    """Purity and F1 of a method's tree, or F1 of its clusters, and what they took."""
    return _fitted(load(folder, job.set, job.points), job.method)


def growth(job: Job, folder: Path) -> list[Row]:
    """The same for so many points of a Dirichlet-process mixture."""
    assert job.points is not None
    return _fitted(dp_mixture(job.points), job.method)


def rounds(job: Job, folder: Path) -> list[Row]:
    """Purity and F1 for each kind and number of thresholds."""
    data = load(folder, job.set, job.points)
    graph = replace(_graph(data), missing=None)  # as in the paper, which these schedules are made for
    found = [
        {"kind": kind, "number": number, **scores(agglo.scc(graph, thresholds=kind, n_thresholds=number), data.y)}
        for kind, number in itertools.product(KINDS, NUMBERS)
    ]
    affinity = agglo.affinity(graph)
    return [*found, {"kind": "affinity", "number": len(affinity.rounds), **scores(affinity, data.y)}]


def grid(job: Job, folder: Path) -> list[Row]:
    """The best purity over a grid of parameters: of all, for each way to scale the columns."""
    raw = {"iris": agglo.paper.datasets.load_iris, "wine": agglo.paper.datasets.load_wine}[job.set]()
    scaled = {
        "as they are": raw.X,
        "standardised": StandardScaler().fit_transform(raw.X),
        "to 0..1": minmax_scale(raw.X),
    }
    search = {"scc": _scc_grid, "rhc": _rhc_grid}[job.method]
    found = []
    for columns, X in scaled.items():
        tried = search(X, raw.y)
        best = max(tried, key=lambda row: row["purity"])
        found.append({"columns": columns, "tried": len(tried), **best})
    return found


def _scc_grid(X: npt.NDArray[Any], y: Any) -> list[Row]:
    tried = []
    for metric, neighbors in itertools.product(("cosine", "euclidean", "sqeuclidean"), range(3, 61)):
        graph = agglo.neighbor_graph(X, neighbors, metric, missing=None)
        for kind, number in itertools.product(KINDS, (10, 25, 50, 75, 100, 150, 200, 300, 400, 800)):
            purity = metrics.dendrogram_purity(agglo.scc(graph, thresholds=kind, n_thresholds=number, n_jobs=1), y)
            tried.append(
                {"metric": metric, "n_neighbors": neighbors, "kind": kind, "number": number, "purity": purity}
            )
    return tried


def _rhc_grid(X: npt.NDArray[Any], y: Any) -> list[Row]:
    tried = []
    # The method asks for 6 (α + ν) < 1, and the paper names their sum as the parameter.
    for metric, noise in itertools.product(
        ("cosine", "euclidean"), (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16)
    ):
        alpha = nu = noise / 2
        points = normalize(X) if metric == "cosine" else X
        tree = METHODS["rhc"].estimator(alpha=alpha, nu=nu).fit(points).tree_
        purity = metrics.dendrogram_purity(tree, y)
        tried.append({"metric": metric, "alpha": alpha, "nu": nu, "purity": purity})
    return tried


def _fitted(data: Dataset, method: str) -> list[Row]:
    assert data.y is not None
    about = {"n": len(data.X), "d": data.X.shape[1], "classes": data.n_classes}
    if method == "on-graph":
        graph, seconds = timed(lambda: _graph(data))
        found = []
        for name, make in GRAPH_METHODS.items():
            tree, more = timed(lambda make=make: make(graph, data.X))  # type: ignore[misc]
            cost = {"graph_seconds": seconds, "seconds": more, "edges": graph.n_edges}
            found.append({**about, "method": name, **cost, **scores(tree, data.y)})
        return found
    known = METHODS[method]
    parameters: dict[str, Any] = {"random_state": 0} if known.random else {}
    if known.metric:
        parameters["metric"] = data.metric
        if method == "grinch" and data.metric == "euclidean":
            parameters["metric"] = "sqeuclidean"  # of distances it averages the squares, from sums of vectors
    if not known.hierarchical:
        parameters["n_clusters"] = data.n_classes
    model, seconds = timed(lambda: known.estimator(**parameters).fit(data.X))
    found_scores = (
        scores(model.tree_, data.y)
        if known.hierarchical
        else {"f1": metrics.pairwise_f1(data.y, model.labels_).f1}
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [{**about, "seconds": seconds, "peak_gigabytes": peak, **found_scores}]


def scores(tree: Hierarchy, y: Any) -> Row:
    """Dendrogram purity; F1 of the round closest to the true number of clusters, and of the best round.

    All points together are a partition of every tree, whether or not a round came to it.
    """
    f1 = metrics.pairwise_f1_by_round(tree, y).f1
    counts = np.concatenate([[tree.n_leaves], tree.rounds.after])
    if counts[-1] > 1:
        f1 = np.append(f1, metrics.pairwise_f1(y, np.zeros(len(y), int)).f1)
        counts = np.append(counts, 1)
    closest = int(np.abs(counts - len(np.unique(y))).argmin())
    return {
        "purity": metrics.dendrogram_purity(tree, y),
        "f1": float(f1[closest]),
        "best_f1": float(f1.max()),
        "clusters": int(counts[closest]),
        "rounds": len(tree.rounds),
        "left": int(tree.rounds.after[-1]) if len(tree.rounds) else tree.n_leaves,
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What ``work`` returns, and the CPU seconds of all threads that it took."""
    started = time.process_time()
    return work(), time.process_time() - started


def _graph(data: Dataset) -> agglo.NeighborGraph:
    """As the clusterers make it."""
    return agglo.neighbor_graph(data.X, min(NEIGHBORS, len(data.X) - 1), data.metric, missing="mean")
