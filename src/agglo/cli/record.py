"""Build the record of a run, which is the content of ``run.json``, and summarize it as text."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo import __version__, _core
from agglo._validation import effective_n_threads
from agglo.cli.data import Data
from agglo.evaluation import metrics
from agglo.neighbors.graph import NeighborGraph, RecallEstimate
from agglo.tree.cut import check_rule, select_round
from agglo.tree.hierarchy import Hierarchy

Rows = list[tuple[str, str]]
_N_LARGEST = 10  # maximum number of clusters in a list of the largest


def summarize_run(record: Mapping[str, Any]) -> Rows:
    """Summarize the content of ``run.json`` as text: points, graph, tree, labels and scores."""
    rows: Rows = []
    if "data" in record:
        data = record["data"]
        distinct = data.get("distinct", data["points"])
        duplicates = f", {distinct:,} of them different" if distinct < data["points"] else ""
        shape = f"{data['points']:,} × {data['features']:,} ({data['dtype']})"
        rows.append(("points", f"{shape} from {data['path']}{duplicates}"))
    if "graph" in record:
        graph, parameters = record["graph"], record["parameters"]
        span = "" if graph["smallest"] is None else f", {graph['smallest']:.3g} to {graph['largest']:.3g}"
        how = f"{parameters['n_neighbors']} neighbours per point ({parameters['metric']})"
        rows.append(("graph", f"{how}: {graph['edges']:,} edges{span}; {record['seconds']['search']:.2f} s"))
        if "method" in graph:
            rows.append(("search", _search(graph, parameters)))
    rows.append(("tree", _tree(record)))
    if record.get("labels"):
        rows += summarize_labels(record["labels"])
    if record.get("scores"):
        rows += summarize_scores(record["scores"])
    return rows


def _search(graph: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Describe the neighbour search: method, recall, and settings that no other row of the summary shows."""
    estimate = graph["recall_estimate"]
    found = "all neighbours" if estimate is None else f"recall {RecallEstimate(**estimate)}, measured"
    chosen = f" (chosen by {parameters['method']})" if parameters["method"] != graph["method"] else ""
    elsewhere = ("n_neighbors", "recall", "random_state")
    settings = ", ".join(f"{name} {value}" for name, value in graph["parameters"].items() if name not in elsewhere)
    return f"{graph['method']}{chosen}: {found}{'; ' + settings if settings else ''}"


def _tree(record: Mapping[str, Any]) -> str:
    tree = record["tree"]
    method = f"{tree.get('method', 'tree')}, {tree.get('linkage', 'unknown')} linkage"
    fewest = tree["fewest_clusters"]
    end = f"{tree['nodes']:,} nodes, {tree['points']:,} points to {fewest:,} cluster{'s' if fewest > 1 else ''}"
    seconds = f"; {record['seconds']['rounds']:.2f} s" if "seconds" in record else ""
    return f"{method}: {tree['rounds']:,} rounds, {end}{seconds}"


def summarize_labels(about: Mapping[str, Any]) -> Rows:
    """Summarize the clusters of a cut as text."""
    (name, value), *_ = about["rule"].items()
    if name == "height":
        how = f"height {value}"
    elif name == "resolution":
        how = f"resolution {float(about['resolution']):.4g}" + (f", {value}" if isinstance(value, str) else "")
    elif name == "n_clusters":
        how = f"round {about['round']}, closest to {value}"
    else:
        how = f"round {about['round']}" + (f", {value}" if isinstance(value, str) else "")
    text = f"{about['clusters']:,} clusters ({how}); largest "
    text += " ".join(map(str, about["largest"]))
    if about["single_points"]:
        text += f"; {about['single_points']:,} single points"
    return [("labels", text)]


def summarize_largest(sizes: Sequence[int], names: Sequence[str]) -> Rows:
    """List the sizes and names of the largest clusters as text."""
    largest = np.argsort(-np.asarray(sizes, np.int64), kind="stable")[:_N_LARGEST].tolist()
    return [("" if i else "largest", f"{sizes[k]:>9,}  {names[k]}") for i, k in enumerate(largest)]


def summarize_scores(scores: Mapping[str, Any]) -> Rows:
    """Return a text that summarizes how well a tree and its labels agree with known classes."""
    best = scores["best_round"]
    return [
        (
            "purity",
            f"{scores['dendrogram_purity']:.3f} dendrogram purity, against {scores['classes']:,} known classes",
        ),
        ("F1", f"{_f1(scores['labels'])} of the labels"),
        ("", f"{_f1(best)} of the best round, {best['round']}, with {best['clusters']:,} clusters"),
    ]


def _f1(scores: Mapping[str, float]) -> str:
    return f"{scores['f1']:.3f} (precision {scores['precision']:.3f}, recall {scores['recall']:.3f})"


def summarize_rounds(tree: Hierarchy, max_rows: int = 12) -> Rows:
    """List at most ``max_rows`` rounds; their cluster counts are about evenly spaced on a logarithmic scale."""
    counts = np.concatenate(([tree.n_leaves], tree.rounds.after))
    wanted = np.geomspace(counts[0], counts[-1], max_rows)
    shown = sorted({int(np.abs(counts - number).argmin()) for number in wanted})
    rows: Rows = [("rounds", f"{'round':>9}  {'clusters':>13}  {'threshold':>10}")]
    for i in shown:
        threshold = tree.rounds.threshold[i - 1] if i else np.nan
        rows.append(("", f"{i:>9,}  {counts[i]:>13,}  {'' if np.isnan(threshold) else f'{threshold:.4g}':>10}"))
    return rows


_MAX_ROUNDS = 1000  # maximum number of rounds in run.json; the tree file has all rounds


def describe_run(model: Any, data: Data, rule: Mapping[str, Any], schedule: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a fitted model, which is the content of ``run.json``.

    ``rule`` is the cut that the user passed. ``schedule`` describes the thresholds that the user passed.
    """
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
        "labels": describe_labels(model.labels_, rule, model.round_, model.resolution_),
        "scores": None if data.y is None else compute_scores(model.tree_, model.labels_, data.y),
        "seconds": {name: round(seconds, 3) for name, seconds in model._seconds.items()},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "pyarrow")},
            "instructions": _core.simd_level(),
        },
    }


def describe_graph(graph: NeighborGraph) -> dict[str, Any]:
    """Return the part of ``run.json`` that describes the neighbour graph."""
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
    """Return the parts of ``run.json`` that describe a tree and its rounds.

    If the tree has more than 1,000 rounds, the rounds are omitted.
    """
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
    """Cut a tree by a rule, such as a number of clusters. Return the labels and a summary for ``run.json``."""
    full = {"n_clusters": None, "round": None, "height": None, **rule}
    check_rule(tree.n_leaves, **full)
    selected = None
    if full["height"] is None:
        selected = select_round(tree, full["n_clusters"], full["round"])
    labels = tree.cut(round=selected, height=full["height"])
    return labels, describe_labels(labels, rule, selected)


def describe_labels(
    labels: npt.NDArray[np.int64], rule: Mapping[str, Any], round: int | None, resolution: float | None = None
) -> dict[str, Any]:
    """Return the part of ``run.json`` that describes the clusters of a cut."""
    sizes = np.sort(np.bincount(labels))[::-1]
    return {
        "rule": {name: str(value) if value in (np.inf, -np.inf) else value for name, value in rule.items()},
        "round": round,
        "resolution": str(resolution) if resolution == np.inf else resolution,
        "clusters": len(sizes),
        "largest": sizes[:10].tolist(),
        "single_points": int((sizes == 1).sum()),
    }


def compute_scores(tree: Hierarchy, labels: npt.NDArray[np.int64], y: npt.NDArray[np.int32]) -> dict[str, Any]:
    """Score a tree, a cut of the tree, and the best round of the tree against known classes."""
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
