"""Measure clustering methods: each function runs the job of an experiment and returns rows of results."""

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
from agglo.paper.experiments.sets import load_set
from agglo.tree.hierarchy import Hierarchy

N_NEIGHBORS = 25  # number of neighbours per point, as in the paper
GRAPH_METHODS: dict[str, Callable[[agglo.NeighborGraph, Any], Hierarchy]] = {
    "scc": lambda graph, X: agglo.scc(graph, X=X, connect="auto"),
    "scc-paper": lambda graph, X: agglo.scc(
        replace(graph, missing=None), thresholds="geometric", n_thresholds=200
    ),
    "affinity": lambda graph, X: agglo.affinity(graph, X=X, connect="auto"),
    "hac-graph": lambda graph, X: agglo.hac(graph, X=X, connect="auto"),
}
FLAT_METHODS = ("kmeans", "bisecting-kmeans")
SCHEDULES = ("odds", "geometric", "linear")
N_THRESHOLDS = (5, 10, 25, 50, 100, 200, 400, 800)


def measure(job: Job, folder: Path) -> list[Row]:
    """Run a job in this process; return its rows of results."""
    return EXPERIMENTS[job.experiment](job, folder)


def measure_trees(job: Job, folder: Path) -> list[Row]:
    """Measure dendrogram purity, F1 and CPU time of a method.

    If the method builds no tree, measure only F1 and CPU time.
    """
    return _measure_method(load_set(folder, job.set, job.points), job.method)


def measure_growth(job: Job, folder: Path) -> list[Row]:
    """Measure a method on a Dirichlet-process mixture of ``job.points`` points."""
    assert job.points is not None
    return _measure_method(dp_mixture(job.points), job.method)


def measure_schedules(job: Job, folder: Path) -> list[Row]:
    """Measure dendrogram purity and F1 of SCC for each schedule and number of thresholds."""
    data = load_set(folder, job.set, job.points)
    graph = replace(_build_graph(data), missing=None)  # as in the paper
    found = [
        {
            "kind": kind,
            "number": number,
            **score_tree(agglo.scc(graph, thresholds=kind, n_thresholds=number), data.y),
        }
        for kind, number in itertools.product(SCHEDULES, N_THRESHOLDS)
    ]
    affinity = agglo.affinity(graph)
    return [*found, {"kind": "affinity", "number": len(affinity.rounds), **score_tree(affinity, data.y)}]


def search_grid(job: Job, folder: Path) -> list[Row]:
    """Find the best dendrogram purity over a grid of parameters, for each scaling of the columns."""
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
        for kind, number in itertools.product(SCHEDULES, (10, 25, 50, 75, 100, 150, 200, 300, 400, 800)):
            purity = metrics.dendrogram_purity(agglo.scc(graph, thresholds=kind, n_thresholds=number, n_jobs=1), y)
            tried.append(
                {"metric": metric, "n_neighbors": neighbors, "kind": kind, "number": number, "purity": purity}
            )
    return tried


def _rhc_grid(X: npt.NDArray[Any], y: Any) -> list[Row]:
    tried = []
    # The method requires 6 (α + ν) < 1. The paper reports the sum α + ν as the parameter.
    for metric, noise in itertools.product(
        ("cosine", "euclidean"), (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16)
    ):
        alpha = nu = noise / 2
        points = normalize(X) if metric == "cosine" else X
        tree = METHODS["rhc"].estimator(alpha=alpha, nu=nu).fit(points).tree_
        purity = metrics.dendrogram_purity(tree, y)
        tried.append({"metric": metric, "alpha": alpha, "nu": nu, "purity": purity})
    return tried


def _measure_method(data: Dataset, method: str) -> list[Row]:
    assert data.y is not None
    about = {"n": len(data.X), "d": data.X.shape[1], "classes": data.n_classes}
    if method == "on-graph":
        graph, seconds = measure_cpu(lambda: _build_graph(data))
        found = []
        for name, fit in GRAPH_METHODS.items():
            tree, more = measure_cpu(lambda fit=fit: fit(graph, data.X))  # type: ignore[misc]
            cost = {"graph_seconds": seconds, "seconds": more, "edges": graph.n_edges}
            found.append({**about, "method": name, **cost, **score_tree(tree, data.y)})
        return found
    known = METHODS[method]
    parameters: dict[str, Any] = {"random_state": 0} if known.random else {}
    if known.metric:
        parameters["metric"] = data.metric
        if method == "grinch" and data.metric == "euclidean":
            parameters["metric"] = "sqeuclidean"  # Grinch averages squared distances
    if not known.hierarchical:
        parameters["n_clusters"] = data.n_classes
    model, seconds = measure_cpu(lambda: known.estimator(**parameters).fit(data.X))
    found_scores = (
        score_tree(model.tree_, data.y)
        if known.hierarchical
        else {"f1": metrics.pairwise_f1(data.y, model.labels_).f1}
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [{**about, "seconds": seconds, "peak_gigabytes": peak, **found_scores}]


def score_tree(tree: Hierarchy, y: Any) -> Row:
    """Compute dendrogram purity, the F1 of the round closest to the true number of classes, and the largest F1.

    The partition into a single cluster is also scored, even if no round reached it.
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


def measure_cpu(work: Callable[[], Any]) -> tuple[Any, float]:
    """Call ``work``; return its result and the CPU seconds of all threads."""
    started = time.process_time()
    return work(), time.process_time() - started


def _build_graph(data: Dataset) -> agglo.NeighborGraph:
    """Build the neighbour graph in the same way as the estimators do."""
    return agglo.neighbor_graph(data.X, min(N_NEIGHBORS, len(data.X) - 1), data.metric, missing="mean")


EXPERIMENTS: dict[str, Callable[[Job, Path], list[Row]]] = {
    "trees": measure_trees,
    "rounds": measure_schedules,
    "growth": measure_growth,
    "grid": search_grid,
}
