"""Compare linkages, and linkages that connect the roots, with dense average HAC: dendrogram purity and F1.

    python -m benchmarks.linkages FOLDER [--points 2000] [--neighbors 25 5] [--seeds 3] [--json FILE]

All datasets of a folder are used; larger ones are sampled, once per seed. Dense HAC is average linkage on the
complete graph, as in SciPy. F1 is the pairwise F1 of the best round.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import agglo
from agglo.evaluation import metrics
from agglo.paper.experiments.sets import find_sets, load_set
from agglo.rounds.linkage import LinkageName
from agglo.rounds.vector_linkage import VectorLinkageName

LINKAGES: tuple[LinkageName, ...] = ("average", "exact-average", "centroid", "ward")
CONNECT: tuple[VectorLinkageName, ...] = ("exact-average", "centroid", "ward")


def score_tree(tree: agglo.Hierarchy, y: Any) -> tuple[float, float]:
    """Return dendrogram purity, and the best F1 of all rounds."""
    return metrics.dendrogram_purity(tree, y), float(metrics.pairwise_f1_by_round(tree, y).f1.max())


def build_trees(X: Any, metric: str, neighbors: int) -> dict[str, tuple[agglo.Hierarchy, int]]:
    """Build a tree per linkage and root linkage; return it with the number of clusters left by the graph."""
    graph = agglo.neighbor_graph(X, min(neighbors, len(X) - 1), metric, missing="mean")
    found: dict[str, tuple[agglo.Hierarchy, int]] = {}
    for linkage in LINKAGES:
        tree = agglo.scc(graph, linkage=linkage, X=X)
        left = int(tree.rounds.after[-1])
        found[linkage] = (tree, left)
        for connect in CONNECT:
            connected = agglo.scc(graph, linkage=linkage, X=X, connect=connect) if left > 1 else tree
            found[f"{linkage} + {connect}"] = (connected, left)
    return found


def measure_set(folder: Path, name: str, points: int, neighbors: list[int], seed: int) -> dict[str, Any] | None:
    data = load_set(folder, name)
    if data.y is None:
        return None
    X: Any = data.X
    y = data.y
    if X.shape[0] > points:
        chosen = np.sort(np.random.default_rng(seed).choice(X.shape[0], points, replace=False))
        X, y = X[chosen], y[chosen]
    X = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, np.float32)
    metric = "sqeuclidean" if data.metric == "euclidean" else data.metric
    row: dict[str, Any] = {"set": name, "seed": seed, "points": len(X), "classes": len(np.unique(y))}
    row["dense"] = score_tree(agglo.hac(agglo.neighbor_graph(X, "all", metric)), y)
    for k in neighbors:
        row[str(k)] = {
            which: [*score_tree(tree, y), left] for which, (tree, left) in build_trees(X, metric, k).items()
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--neighbors", type=int, nargs="+", default=[25, 5])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for name in find_sets(arguments.folder):
        for seed in range(arguments.seeds):
            row = measure_set(arguments.folder, name, arguments.points, arguments.neighbors, seed)
            if row is None:
                break
            rows.append(row)
            first = row[str(arguments.neighbors[0])]
            values = " ".join(f"{first[linkage][0]:.3f}" for linkage in LINKAGES)
            print(f"{name:26} {row['points']:6} dense {row['dense'][0]:.3f} | {values}", flush=True)
            if row["points"] < arguments.points:
                break  # not sampled: another seed gives the same result
        if arguments.json:
            arguments.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
