"""Summaries of records for the terminal: rows of a heading and a line of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from agglo.neighbors.graph import RecallEstimate
from agglo.tree.hierarchy import Hierarchy

Rows = list[tuple[str, str]]


def summarize_run(record: Mapping[str, Any]) -> Rows:
    """Summarize a run: points, graph, tree, labels and scores, as far as the record has them."""
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
    """Describe the search: method, recall, and the settings that other rows do not have."""
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
    """Summarize the clusters of a cut."""
    (name, value), *_ = about["rule"].items()
    if name == "height":
        how = f"height {value}"
    elif name == "n_clusters":
        how = f"round {about['round']}, closest to {value}"
    else:
        how = f"round {about['round']}" + (f", {value}" if isinstance(value, str) else "")
    text = f"{about['clusters']:,} clusters ({how}); largest "
    text += " ".join(map(str, about["largest"]))
    if about["single_points"]:
        text += f"; {about['single_points']:,} single points"
    return [("labels", text)]


def summarize_scores(scores: Mapping[str, Any]) -> Rows:
    """Summarize the scores of a tree and its labels against known classes."""
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
    """List the number of clusters after at most ``max_rows`` rounds, evenly spaced on a logarithmic scale."""
    counts = np.concatenate(([tree.n_leaves], tree.rounds.after))
    wanted = np.geomspace(counts[0], counts[-1], max_rows)
    shown = sorted({int(np.abs(counts - number).argmin()) for number in wanted})
    rows: Rows = [("rounds", f"{'round':>9}  {'clusters':>13}  {'threshold':>10}")]
    for i in shown:
        threshold = tree.rounds.threshold[i - 1] if i else np.nan
        rows.append(("", f"{i:>9,}  {counts[i]:>13,}  {'' if np.isnan(threshold) else f'{threshold:.4g}':>10}"))
    return rows
