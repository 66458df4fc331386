"""Score the labels without a parameter, and the coarse levels of the tree, against known classes.

    python -m benchmarks.levels FOLDER [--sets NAME ...] [--points 8000] [--seed 0] [--cache FOLDER]

All labelled .npz datasets of a folder are used; larger ones are sampled. Labels are computed for each linkage, and
for average linkage on UMAP's fuzzy graph of 15 neighbours. The benchmark prints their adjusted mutual information
(AMI), their number of clusters, and the means of the rule ``round="persistent"``. It compares the default tree
with the tree for ``connect=None`` by the dendrogram purity, the share of the largest of 10 clusters, and the AMI
with coarser classes at their number. ``--cache`` keeps the results of each dataset.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import adjusted_mutual_info_score

import agglo
from agglo.evaluation import metrics
from agglo.paper.datasets import Dataset
from agglo.paper.experiments.sets import EUCLIDEAN, find_sets
from agglo.rounds.linkage import LinkageName

LINKAGES: tuple[LinkageName, ...] = ("average", "ward", "exact-average", "centroid", "single", "complete")
GRAPHS = (*LINKAGES, "fuzzy")
COARSE = ("parent", "super")  # names of levels of classes that are coarser than y
NEIGHBORS = 15

Floats = npt.NDArray[np.float64]


def build_fuzzy_graph(X: Any, metric: str) -> agglo.NeighborGraph:
    """Build the fuzzy union of the nearest neighbours of all points, as UMAP does.

    The membership of a neighbour falls exponentially beyond the nearest neighbour. The scale of a point is chosen
    such that its memberships sum to log2 of the number of neighbours.
    """
    graph = agglo.neighbor_graph(X, min(NEIGHBORS - 1, len(X) - 1), metric, missing=None)
    distances = sp.csr_array(graph.to_scipy())
    distances.data = np.maximum(1 - distances.data, 0) if graph.kind == "similarity" else distances.data
    rows = np.repeat(np.arange(len(X)), np.diff(distances.indptr))
    # The graph is symmetric: keep the nearest neighbours of each point, in ascending order of distance.
    order = np.lexsort((distances.data, rows))
    rank = np.arange(len(rows)) - distances.indptr[rows]
    kept = order[rank < NEIGHBORS - 1]
    rows, columns, values = rows[kept], distances.indices[kept], distances.data[kept]
    nearest = np.full(len(X), np.inf)
    np.minimum.at(nearest, rows, np.where(values > 0, values, np.inf))
    beyond = np.maximum(values - nearest[rows], 0)
    low, high = np.zeros(len(X)), np.full(len(X), np.inf)
    scale = np.ones(len(X))
    for _ in range(64):
        total = np.bincount(rows, np.exp(-beyond / scale[rows]), len(X))
        is_large = total > np.log2(NEIGHBORS)
        high, low = np.where(is_large, scale, high), np.where(is_large, low, scale)
        scale = np.where(np.isinf(high), scale * 2, (low + high) / 2)
    scale = np.maximum(scale, 1e-3 * values.mean())
    directed = sp.csr_array((np.exp(-beyond / scale[rows]), (rows, columns)), shape=(len(X), len(X)))
    union = directed + directed.T - directed.multiply(directed.T)
    return agglo.NeighborGraph.from_scipy(union, kind="similarity")


def score_labels(y: Any, labels: Any) -> list[float]:
    """Return the AMI of the labels and their number of clusters."""
    return [float(adjusted_mutual_info_score(y, labels)), int(labels.max()) + 1]


def score_tree(tree: agglo.Hierarchy, y: Any, levels: Mapping[str, Any]) -> dict[str, float]:
    """Return the dendrogram purity, the share of the largest of 10 clusters, and the AMI of the coarse levels."""
    largest = np.bincount(tree.cut(n_clusters=min(10, tree.n_leaves))).max()
    scores = {"purity": metrics.dendrogram_purity(tree, y), "largest": float(largest / tree.n_leaves)}
    for name, classes in levels.items():
        if name in COARSE:
            coarse = tree.cut(n_clusters=len(np.unique(classes)))
            scores[name] = float(adjusted_mutual_info_score(classes, coarse))
    return scores


def load(folder: Path, name: str, points: int, seed: int) -> Dataset | None:
    """Load a sample of a dataset without duplicates; None if it has no classes."""
    data = find_sets(folder)[name]()
    if data.y is None:
        return None
    data = data.sample(points, seed)
    assert data.y is not None
    first = np.sort(np.unique(data.X, axis=0, return_index=True)[1])
    return replace(
        data,
        X=np.asarray(data.X[first], np.float32),
        y=data.y[first],
        levels={level: values[first] for level, values in data.levels.items()},
        texts=None,
        metric="sqeuclidean" if name.startswith(EUCLIDEAN) else "cosine",
    )


def measure_set(data: Dataset) -> dict[str, Any]:
    """Return all scores of a dataset."""
    found: dict[str, Any] = {"points": len(data.X), "classes": data.n_classes, "labels": {}, "trees": {}}
    models: dict[str, agglo.SCC] = {
        name: agglo.SCC(metric=data.metric, linkage=name).fit(data.X) for name in LINKAGES
    }
    models["fuzzy"] = agglo.SCC(metric="precomputed").fit(build_fuzzy_graph(data.X, data.metric))
    for name, model in models.items():
        old = model.tree_.cut(round="persistent")
        found["labels"][name] = score_labels(data.y, model.labels_) + score_labels(data.y, old)
    model = models["average"]
    unconnected = agglo.scc(model.graph_, X=data.X, connect=None)
    trees = {"auto": model.tree_, "none": unconnected}
    found["trees"] = {name: score_tree(tree, data.y, data.levels) for name, tree in trees.items()}
    return found


def print_labels(scores: dict[str, Any]) -> None:
    print(f"\nAMI of labels without a parameter / number of clusters\n{'':24} {'classes':>7}", end="")
    print("".join(f"{name:>15}" for name in GRAPHS))
    for name, one in scores.items():
        cells = (one["labels"][graph] for graph in GRAPHS)
        print(f"{name[:24]:24} {one['classes']:7}" + "".join(f"{ami:9.3f} /{k:4}" for ami, k, *_ in cells))
    for title, first in (("mean", 0), ("mean, persistent round", 2)):
        print(f"{title:32}", end="")
        for graph in GRAPHS:
            rows = [[*one["labels"][graph][first : first + 2], one["classes"]] for one in scores.values()]
            is_near = np.mean([1 / 3 <= k / classes <= 3 for _, k, classes in rows])
            print(f"{np.mean([ami for ami, *_ in rows]):9.3f} /{is_near:4.0%}", end="")
        print()
    print(
        "In the last two lines, the second number is the share of sets with 1/3 to 3 times the number of classes."
    )


def print_trees(scores: dict[str, Any]) -> None:
    print("\nDendrogram purity, largest of 10 clusters, AMI with coarse classes: connect='auto', connect=None")
    for name, one in scores.items():
        cells = ("  ".join(f"{key} {value:.3f}" for key, value in tree.items()) for tree in one["trees"].values())
        print(f"{name[:24]:24} " + "   |   ".join(cells))
    for key in ("purity", "largest"):
        means = [np.mean([one["trees"][tree][key] for one in scores.values()]) for tree in ("auto", "none")]
        print(f"mean {key}: {means[0]:.4f}, {means[1]:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--points", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    scores: dict[str, Any] = {}
    for name in arguments.sets or find_sets(arguments.folder):
        saved = arguments.cache and arguments.cache / f"{name}-{arguments.points}-{arguments.seed}.json"
        if saved and saved.exists():
            scores[name] = json.loads(saved.read_text())
            continue
        data = load(arguments.folder, name, arguments.points, arguments.seed)
        if data is None:
            continue
        scores[name] = measure_set(data)
        if saved:
            saved.parent.mkdir(parents=True, exist_ok=True)
            saved.write_text(json.dumps(scores[name]))
    print_labels(scores)
    print_trees(scores)


if __name__ == "__main__":
    main()
