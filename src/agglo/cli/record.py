"""Records of runs: the content of ``run.json`` as dictionaries."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo import __version__, _core
from agglo._validation import effective_n_threads
from agglo.cli.data import Data
from agglo.evaluation import metrics
from agglo.neighbors.graph import NeighborGraph
from agglo.tree.cut import check_rule, select_round
from agglo.tree.hierarchy import Hierarchy

_MAX_ROUNDS = 1000  # rounds in a record. HAC has one per merge, and the file of the tree has them all.


def describe_run(model: Any, data: Data, rule: Mapping[str, Any], schedule: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a fitted model; ``rule`` and ``schedule`` are the options that the user gave."""
    names = ("metric", "n_neighbors", "method", "recall", "missing")
    return {
        "agglo": __version__,
        "data": {
            **data.source,
            "points": data.X.shape[0],
            "distinct": model.graph_.n_points,
            "features": data.X.shape[1],
            "dtype": str(data.X.dtype),
        },
        "parameters": {
            **{name: getattr(model, name) for name in names},
            "seed": model.random_state,
            "algorithm": type(model).__name__.lower(),
            "linkage": model.linkage,
            "connect": model.connect,
            "max_cluster_size": model.max_cluster_size,
            **schedule,
            "threads": effective_n_threads(model.n_jobs),
        },
        "graph": describe_graph(model.graph_),
        **describe_tree(model.tree_),
        "labels": describe_labels(model.labels_, rule, model.round_),
        "scores": None if data.y is None else compute_scores(model.tree_, model.labels_, data.y),
        "seconds": {name: round(seconds, 3) for name, seconds in model._seconds.items()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "pyarrow")},
            "instructions": _core.simd_level(),
        },
    }


def describe_graph(graph: NeighborGraph) -> dict[str, Any]:
    """Return the part of a record that describes the neighbour graph."""
    return {
        "method": graph.method,
        "parameters": dict(graph.parameters),
        "recall_estimate": None if graph.recall_estimate is None else graph.recall_estimate._asdict(),
        "kind": graph.kind,
        "edges": graph.n_edges,
        "missing": graph.missing,
        "smallest": float(graph.weights.min()) if graph.n_edges else None,
        "largest": float(graph.weights.max()) if graph.n_edges else None,
        "bytes": graph.nbytes,
    }


def describe_tree(tree: Hierarchy) -> dict[str, Any]:
    """Return the parts of a record that describe a tree and its rounds; no rounds if there are very many."""
    rounds = [
        {
            "threshold": _nan_to_none(step.threshold),
            "before": step.before,
            "after": step.after,
            "seconds": _nan_to_none(step.seconds),
        }
        for step in tree.rounds[:_MAX_ROUNDS]
    ]
    return {
        "tree": {
            "points": tree.n_leaves,
            "nodes": tree.n_nodes,
            "rounds": len(tree.rounds),
            "fewest_clusters": int(tree.rounds.after[-1]) if len(tree.rounds) else tree.n_leaves,
            "height": float(tree.height[-1]),
            **tree.about,
        },
        "rounds": rounds if len(tree.rounds) <= _MAX_ROUNDS else None,
    }


def cut_tree(tree: Hierarchy, rule: Mapping[str, Any]) -> tuple[npt.NDArray[np.int64], dict[str, Any]]:
    """Return the labels that a rule selects, and their description."""
    full = {"n_clusters": None, "round": None, "height": None, **rule}
    check_rule(tree.n_leaves, **full)
    selected = None
    if full["height"] is None:
        selected = select_round(tree, full["n_clusters"], full["round"])
    labels = tree.cut(round=selected, height=full["height"])
    return labels, describe_labels(labels, rule, selected)


def describe_labels(labels: npt.NDArray[np.int64], rule: Mapping[str, Any], round: int | None) -> dict[str, Any]:
    """Return the part of a record that describes the clusters of a cut."""
    sizes = np.sort(np.bincount(labels))[::-1]
    return {
        "rule": {name: str(value) if value in (np.inf, -np.inf) else value for name, value in rule.items()},
        "round": round,
        "clusters": len(sizes),
        "largest": sizes[:10].tolist(),
        "single_points": int((sizes == 1).sum()),
    }


def compute_scores(tree: Hierarchy, labels: npt.NDArray[np.int64], y: npt.NDArray[np.int32]) -> dict[str, Any]:
    """Score a tree, its labels and its best round against known classes."""
    by_round = metrics.pairwise_f1_by_round(tree, y)
    best = int(by_round.f1.argmax())
    return {
        "classes": int(y.max()) + 1,
        "dendrogram_purity": metrics.dendrogram_purity(tree, y),
        "labels": metrics.pairwise_f1(y, labels)._asdict(),
        "best_round": {
            "round": best,
            "clusters": int(tree.rounds.after[best - 1]) if best else tree.n_leaves,
            **{name: float(column[best]) for name, column in by_round._asdict().items()},
        },
    }


def _nan_to_none(number: float) -> float | None:
    return None if np.isnan(number) else number
