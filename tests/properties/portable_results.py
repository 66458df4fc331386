"""Print digests of results, one per name, as JSON.

The digests in ``digests.json`` pin the results of the public API. They must hold on every processor and for every
supported version of NumPy, SciPy and scikit-learn. ``test_portability.py`` compares them with the results of this
script at each SIMD level. After an intended change of results, write the file again::

    python tests/properties/portable_results.py > tests/properties/digests.json

Every parameter that can change a result is passed explicitly, so that the digests do not depend on defaults. If a
parameter of the public API is renamed, change the calls below. If a value is renamed, change the names of
the digests that contain it too. The digests themselves stay as they are.
"""

import hashlib
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1]))
from cli_runs import run

import agglo
from agglo import contents, metrics
from agglo.paper import baselines, dpmeans

DENSE_METRICS = ("cosine", "dot", "sqeuclidean", "euclidean")
LINKAGES = {
    "average": DENSE_METRICS,
    "single": DENSE_METRICS,
    "complete": DENSE_METRICS,
    "exact-average": ("cosine", "dot", "sqeuclidean"),
    "centroid": ("cosine", "sqeuclidean", "euclidean"),
    "ward": ("cosine", "sqeuclidean", "euclidean"),
}
SCHEDULES = {"odds": 60, "geometric": 40, "linear": 30, "doubling": None}
ADVANCES = ("every-round", "until-stable")
ALGORITHMS = {"scc": agglo.scc, "affinity": agglo.affinity, "hac": agglo.hac}
ESTIMATORS = {"SCC": agglo.SCC, "Affinity": agglo.Affinity, "HAC": agglo.HAC}


# Digests


def digest(*values):
    """Compute one digest of numbers and texts, by kind, shape and value; the width of a dtype does not matter."""
    state = hashlib.sha256()
    for value in values:
        array = np.asarray(value)
        if array.dtype.kind in "USO":
            data = json.dumps(array.tolist()).encode()
        else:
            array = np.ascontiguousarray(array, np.float64 if array.dtype.kind == "f" else np.int64)
            data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        state.update(f"{array.dtype.kind}{array.shape}".encode() + data)
    return state.hexdigest()[:16]


def digest_rounded(*values, digits=12):
    """Compute a digest of floats rounded to significant digits: libraries may sum in another order."""
    return digest(*([f"{number:.{digits}g}" for number in np.ravel(value).tolist()] for value in values))


def digest_graph(graph):
    """Compute the digest of a graph."""
    return digest(graph.indptr, graph.indices, graph.weights, graph.kind, str(graph.missing))


def digest_tree(tree):
    """Compute the digest of a tree and its rounds."""
    rounds = (tree.rounds.threshold, tree.rounds.before, tree.rounds.after)
    return digest(tree.parent, tree.height, tree.size, tree.round, *rounds)


def digest_model(model):
    """Compute the digest of a fitted estimator."""
    return digest(digest_tree(model.tree_), digest_graph(model.graph_), model.labels_, model.graph_index_)


# Inputs: integers of PCG64 and exact or correctly rounded operations on them


def draw_integers(seed, low, high, shape):
    """Draw integers from ``low`` to ``high - 1``."""
    return np.random.Generator(np.random.PCG64(seed)).integers(low, high, shape)


def make_points(n, d, seed, width=300):
    """Make points around 12 centers, and the center of each; groups of a large ``width`` overlap."""
    rng = np.random.Generator(np.random.PCG64(seed))
    centers = rng.integers(-600, 600, (12, d))
    noise = rng.integers(-width, width, (n, d))
    y = rng.integers(0, 12, n)
    return (centers[y] + noise) / 1000.0, y


def convert_points(points, dtype):
    """Convert points to a type of numbers; integers are scaled to its range."""
    if np.dtype(dtype).kind == "f":
        return points.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(points * 120 + (128 if limits.min == 0 else 0), limits.min, limits.max).astype(dtype)


def make_sets(n, d, seed):
    """Make rows of small integers that are mostly 0, with features in common for each of 8 groups."""
    rng = np.random.Generator(np.random.PCG64(seed))
    common = rng.integers(0, 100, (8, d)) < 20
    rows = common[rng.integers(0, 8, n)] & (rng.integers(0, 100, (n, d)) < 70)
    rows |= rng.integers(0, 100, (n, d)) < 3
    return np.where(rows, rng.integers(1, 9, (n, d)), 0)


# Calls with all parameters


def build_graph(X, metric, n_neighbors=6, method="exact", *, recall=0.95, missing=None):
    """Build a neighbour graph."""
    return agglo.neighbor_graph(X, n_neighbors, metric, method, recall=recall, missing=missing, random_state=0)


def build_tree(
    graph, X=None, *, thresholds="odds", n_thresholds=2000, linkage="average", advance="every-round", **others
):
    """Build the tree of the Sub-Cluster Component algorithm."""
    others = {"connect": None} | others
    return agglo.scc(
        graph, thresholds=thresholds, n_thresholds=n_thresholds, linkage=linkage, advance=advance, X=X, **others
    )


def make_estimator(name, metric, **changes):
    """Make an estimator by name."""
    settings = {
        "n_clusters": None,
        "metric": metric,
        "n_neighbors": 8,
        "method": "exact",
        "recall": 0.95,
        "missing": "mean",
        "linkage": "average",
        "connect": "auto",
        "round": "persistent",
        "height": None,
        "kind": None,
        "max_cluster_size": None,
        "random_state": 0,
    }
    if name == "SCC":
        settings |= {"thresholds": "odds", "n_thresholds": 2000, "advance": "every-round"}
    return ESTIMATORS[name](**(settings | changes))


class PointStatistics(NamedTuple):
    """What a linkage keeps of a cluster."""

    weight: np.ndarray


class EdgeStatistics(NamedTuple):
    """What a linkage keeps of the edges between two clusters."""

    total: np.ndarray
    number: np.ndarray


class EdgeAverage:
    """A user-defined linkage: the average distance over the edges between two clusters."""

    kind, farthest, reducible = "distance", None, True

    def of_points(self, weights):
        return PointStatistics(weights)

    def of_edges(self, sources, targets, weights):
        return EdgeStatistics(weights.astype(np.float64), np.ones(len(weights)))

    def merged_clusters(self, clusters, first):
        return PointStatistics(np.add.reduceat(clusters.weight, first))

    def merged_edges(self, edges, first):
        return EdgeStatistics(np.add.reduceat(edges.total, first), np.add.reduceat(edges.number, first))

    def value(self, a, b, edges):
        return edges.total / edges.number


# Results, stage by stage


def graph_results():
    """Yield the digests of neighbour graphs."""
    points, narrow = make_points(400, 37, 1)[0], make_points(400, 3, 2)[0]
    for dtype in ("float64", "float32", "float16", "int8", "uint8"):
        for metric in DENSE_METRICS:
            X = convert_points(points, dtype)
            yield f"graph exact {dtype} {metric}", digest_graph(build_graph(X, metric))
        for metric in ("euclidean", "sqeuclidean", "cosine"):
            X = convert_points(narrow, dtype)
            yield f"graph kdtree {dtype} {metric}", digest_graph(build_graph(X, metric, method="kdtree"))
    X = points[:100].astype(np.float32)
    for metric in DENSE_METRICS:
        yield f"graph all {metric}", digest_graph(build_graph(X, metric, "all"))
        for missing in (0.25, "mean", "ignore"):
            yield f"graph missing {missing} {metric}", digest_graph(build_graph(X, metric, missing=missing))
        yield f"graph duplicates {metric}", digest_graph(build_graph(X[np.arange(150) % 60], metric))

    # Points without groups, of which cells miss many neighbours: which ones, rounding errors could decide.
    noise = draw_integers(3, -999, 1000, (3000, 176)) / 999.0
    many, wide = noise[:, :24].astype(np.float32), noise.astype(np.float32)
    wide[:, 40:] *= np.float32(0.015625)  # so that few directions are enough
    for metric in ("cosine", "dot", "sqeuclidean", "euclidean"):
        for name, X in (("narrow", many), ("wide", wide)):
            if name == "narrow" or metric != "euclidean":
                graph = build_graph(X, metric, 5, "cells", recall=0.6)
                yield f"graph cells {name} {metric}", digest(digest_graph(graph), graph.cells)
                yield f"recall cells {name} {metric}", digest(f"{graph.recall_estimate.value:.9g}")

    sparse = np.where(many > 0.8, many, 0)
    for metric in ("cosine", "dot"):
        yield f"graph sparse {metric}", digest_graph(build_graph(sp.csr_array(sparse[:1500]), metric, 5))
    sets = make_sets(600, 80, 4)
    for metric in ("jaccard", "hamming"):
        binary = sets > 0
        yield f"graph dense {metric}", digest_graph(build_graph(binary, metric, 5))
        yield f"graph sparse {metric}", digest_graph(build_graph(sp.csr_array(binary.astype(np.int8)), metric, 5))
        for missing in (0.75, "mean", "ignore"):
            yield (
                f"graph missing {missing} {metric}",
                digest_graph(build_graph(binary, metric, 5, missing=missing)),
            )
    yield "graph minhash", digest_graph(build_graph(sp.csr_array(sparse), "jaccard", 5, "minhash"))
    yield "graph minhash sets", digest_graph(build_graph(sp.csr_array(sets), "jaccard", 5, "minhash", recall=0.7))

    sources, targets = draw_integers(5, 0, 80, (2, 300))
    weights = draw_integers(6, 1, 64, 300) / 64
    for kind in ("distance", "similarity"):
        given = {"n_points": 82, "kind": kind, "missing": None, "metric": None}
        graph = agglo.NeighborGraph.from_edges(sources, targets, weights, **given)
        yield f"graph from edges {kind}", digest_graph(graph)
        del given["n_points"]
        matrix = graph.to_scipy()
        yield f"graph to scipy {kind}", digest(matrix.indptr, matrix.indices, matrix.data)
        one_way = agglo.NeighborGraph.from_scipy(sp.triu(matrix), **given)
        yield f"graph from scipy {kind}", digest_graph(one_way)
        lists = draw_integers(7, -1, 90, (90, 5))
        graph = agglo.NeighborGraph.from_neighbors(lists, draw_integers(8, 1, 64, (90, 5)) / 64, **given)
        yield f"graph from neighbors {kind}", digest_graph(graph)


def tree_results():
    """Yield the digests of trees by linkages, schedules, advance rules, constraints and weights."""
    points = make_points(400, 37, 1, width=800)[0].astype(np.float32)
    rng_pairs = draw_integers(9, 0, 400, (12, 2))
    pairs = rng_pairs[rng_pairs[:, 0] != rng_pairs[:, 1]].tolist()
    constraints = {
        "must": {"must_link": pairs[:6]},
        "groups": {"must_link": [[1, 2, 3], [50, 60]], "cannot_link": [[0, 100, 200, 300], [1, 50]]},
        "cannot": {"cannot_link": pairs[6:]},
        "largest": {"max_cluster_size": 20},
        "weights": {"sample_weight": 1 + np.arange(400) % 3},
        "fractions": {"sample_weight": (1 + np.arange(400) % 7) / 8, "max_cluster_size": 15.5},
    }
    for metric in DENSE_METRICS:
        graph = build_graph(points, metric, 8)
        for linkage, known in LINKAGES.items():
            if metric not in known:
                continue
            for name, algorithm in ALGORITHMS.items():
                tree = (
                    build_tree(graph, points, linkage=linkage)
                    if name == "scc"
                    else algorithm(graph, linkage=linkage, X=points, connect=None)
                )
                yield f"tree {name} {metric} {linkage}", digest_tree(tree)
            tree = build_tree(graph, points, n_thresholds=50, linkage=linkage, advance="until-stable")
            yield f"tree until-stable {metric} {linkage}", digest_tree(tree)
        for name, number in SCHEDULES.items():
            for advance in ADVANCES:
                tree = build_tree(graph, thresholds=name, n_thresholds=number, advance=advance)
                yield f"tree {metric} {name} {advance}", digest_tree(tree)
        for linkage in ("single", "complete"):
            tree = build_tree(graph, thresholds="geometric", n_thresholds=30, linkage=linkage)
            yield f"tree {metric} geometric {linkage}", digest_tree(tree)
        order = 1 if graph.kind == "distance" else -1
        given = np.sort(draw_integers(10, 0, 64, 20))
        given = np.unique(given)[::order] * (float(graph.weights.max()) / 64)
        tree = build_tree(graph, thresholds=given, n_thresholds=None)
        yield f"tree {metric} given", digest_tree(tree)
        yield f"tree {metric} odds, usual number", digest_tree(build_tree(graph, n_thresholds=None))
        for missing in (0.25, "mean", "ignore"):
            other = build_graph(points, metric, 8, missing=missing)
            yield f"tree {metric} missing {missing}", digest_tree(build_tree(other))

    for metric in ("cosine", "sqeuclidean"):
        graph = build_graph(points, metric, 8)
        for name, known in constraints.items():
            for linkage in ("average", "single", "exact-average", "ward"):
                tree = build_tree(graph, points, linkage=linkage, **known)
                yield f"tree scc {metric} {linkage} {name}", digest_tree(tree)
            for algorithm in ("affinity", "hac"):
                tree = ALGORITHMS[algorithm](graph, linkage="average", X=None, connect=None, **known)
                yield f"tree {algorithm} {metric} {name}", digest_tree(tree)
    for metric, tops in {
        "cosine": (None, "auto", "exact-average", "centroid", "ward"),
        "dot": ("auto", "exact-average"),
        "sqeuclidean": (None, "auto", "exact-average", "centroid", "ward"),
        "euclidean": (None, "auto", "centroid", "ward"),
    }.items():
        graph = build_graph(points, metric, 1)  # of several components
        for top in tops:
            yield f"tree {metric} top {top}", digest_tree(build_tree(graph, points, connect=top))
            yield (
                f"tree hac {metric} top {top}",
                digest_tree(agglo.hac(graph, linkage="single", X=points, connect=top)),
            )
        tree = build_tree(graph, points, connect="auto", **constraints["groups"])
        yield f"tree {metric} top auto groups", digest_tree(tree)

    whole = convert_points(make_points(200, 7, 11)[0], "int8").astype(np.float64)
    graph = build_graph(whole, "sqeuclidean", 8)
    for name, number in SCHEDULES.items():
        tree = build_tree(graph, thresholds=name, n_thresholds=number, linkage=EdgeAverage())
        yield f"tree user-defined linkage {name}", digest_tree(tree)
    yield (
        "tree hac user-defined linkage",
        digest_tree(agglo.hac(graph, linkage=EdgeAverage(), X=None, connect=None)),
    )
    tree = build_tree(graph, whole, linkage=EdgeAverage(), must_link=[[0, 1]], cannot_link=[[0, 9]], connect=None)
    yield "tree user-defined linkage constraints", digest_tree(tree)
    tied = draw_integers(12, 0, 5, (200, 4)).astype(np.float32)  # many equal distances and equal points
    for metric in ("sqeuclidean", "dot"):
        graph = build_graph(tied, metric, 8)
        for linkage in ("average", "single", "complete", "exact-average"):
            yield f"tree ties {metric} {linkage}", digest_tree(build_tree(graph, tied, linkage=linkage))
            yield (
                f"tree hac ties {metric} {linkage}",
                digest_tree(agglo.hac(graph, linkage=linkage, X=tied, connect=None)),
            )


def estimator_results():
    """Yield the digests of fitted estimators."""
    points = make_points(400, 37, 1, width=800)[0].astype(np.float32)
    X, new = points[:-60], points[-60:]
    for name in ESTIMATORS:
        for metric in DENSE_METRICS:
            model = make_estimator(name, metric).fit(X)
            yield f"{name} {metric}", digest_model(model)
            yield f"{name} {metric} predict", digest(model.predict(new), model.predict(new, n_clusters=30))
            attached = model.attach(new)
            yield f"{name} {metric} attach", digest(attached.node, attached.round, attached.height)
            yield f"{name} {metric} partial_fit", digest_model(model.partial_fit(new))
        model = make_estimator(name, "cosine", n_clusters=9, round=None).fit(X)
        yield f"{name} n_clusters", digest(model.labels_)
        model = make_estimator(name, "cosine", height=0.5, round=None).fit(X)
        yield f"{name} height", digest(model.labels_)
        yield f"{name} height predict", digest(model.predict(new))
        model = make_estimator(name, "cosine", round="silhouette").fit(X)
        yield f"{name} silhouette", digest(model.labels_, model.predict(new, round=-1))
        for dtype in ("float16", "float64"):
            model = make_estimator(name, "sqeuclidean").fit(X.astype(dtype))
            yield f"{name} {dtype}", digest_model(model)
        model = make_estimator(name, "cosine", n_neighbors="all").fit(X[:120])
        yield f"{name} all", digest_model(model)
        sets = sp.csr_array(make_sets(300, 80, 13))
        for metric in ("cosine", "dot", "jaccard", "hamming"):
            rows = sets if metric in ("cosine", "dot") else (sets > 0).astype(np.int8)
            model = make_estimator(name, metric).fit(rows[:-40])
            yield f"{name} sparse {metric}", digest_model(model)
            yield f"{name} sparse {metric} predict", digest(model.predict(rows[-40:]))
            if metric in ("jaccard", "hamming"):
                model = make_estimator(name, metric).fit(rows.toarray()[:-40] > 0)
                yield f"{name} dense {metric}", digest_model(model)
                yield f"{name} dense {metric} predict", digest(model.predict(rows.toarray()[-40:] > 0))
                yield (
                    f"{name} dense {metric} partial_fit",
                    digest_model(model.partial_fit(rows.toarray()[-40:] > 0)),
                )

        matrix = draw_integers(14, 1, 4096, (60, 60)) / 4096
        matrix = (matrix + matrix.T) / 2
        far = draw_integers(15, 1, 4096, (9, 60)) / 4096
        for kind in ("distance", "similarity"):
            model = make_estimator(name, "precomputed", kind=kind).fit(matrix)
            yield f"{name} precomputed {kind}", digest_model(model)
            yield f"{name} precomputed {kind} predict", digest(model.predict(far))
            given = sp.csr_array(
                np.where(matrix < 0.4, matrix, 0) if kind == "distance" else matrix * (matrix > 0.6)
            )
            for missing in ("mean", 0.5, "ignore"):
                model = make_estimator(name, "precomputed", kind=kind, missing=missing).fit(given)
                yield f"{name} precomputed sparse {kind} missing {missing}", digest_model(model)

        copies = X[np.arange(500) % 290]
        known = {"must_link": [[0, 5], [7, 8]], "cannot_link": [[1, 2], [10, 300]]}
        weights = np.arange(500) % 4
        for metric in ("cosine", "sqeuclidean"):
            yield f"{name} duplicates {metric}", digest_model(make_estimator(name, metric).fit(copies))
            model = make_estimator(name, metric, max_cluster_size=40).fit(copies, **known)
            yield f"{name} duplicates {metric} constraints", digest_model(model)
            model = make_estimator(name, metric).fit(copies, sample_weight=weights)
            yield f"{name} duplicates {metric} zero weights", digest_model(model)
            yield f"{name} zero weights {metric} predict", digest(model.predict(new))
            model.partial_fit(new, sample_weight=np.arange(60) % 3)
            yield f"{name} zero weights {metric} partial_fit", digest_model(model)
            for linkage in ("single", "complete", "exact-average", "centroid", "ward"):
                model = make_estimator(name, metric, linkage=linkage).fit(X)
                yield f"{name} {metric} {linkage}", digest(digest_model(model), model.predict(new))
        for top in (None, "exact-average", "centroid", "ward"):
            model = make_estimator(name, "sqeuclidean", connect=top, n_neighbors=1).fit(X)
            yield f"{name} top {top}", digest_model(model)

    for metric in DENSE_METRICS:
        model = make_estimator("SCC", metric, method="cells", recall=0.9).fit(X)
        yield f"SCC {metric} cells", digest(digest_model(model), model.predict(new))
        yield f"SCC {metric} cells partial_fit", digest_model(model.partial_fit(new))
    model = make_estimator("SCC", "euclidean", method="kdtree").fit(X[:, :3])
    yield "SCC kdtree", digest(digest_model(model), model.predict(new[:, :3]))
    for name, number in SCHEDULES.items():
        for advance in ADVANCES:
            model = make_estimator("SCC", "euclidean", thresholds=name, n_thresholds=number, advance=advance)
            yield f"SCC {name} {advance}", digest(digest_model(model.fit(X)), model.predict(new))
    for seed in (1, 2):
        model = make_estimator("SCC", "cosine", method="cells", recall=0.5, random_state=seed).fit(X)
        yield f"SCC seed {seed}", digest_model(model)


def cut_results():
    """Yield the digests of cuts, layers, evaluations and other uses of a tree."""
    points, y = make_points(400, 37, 1, width=800)
    points = points.astype(np.float32)
    known = np.where(np.arange(400) % 5 == 0, y, -1)
    for metric in ("cosine", "euclidean"):
        graph = build_graph(points, metric, 8)
        trees = {
            "scc": build_tree(graph, points, connect="auto"),
            "forest": build_tree(build_graph(points, metric, 1), points),
            "affinity": agglo.affinity(graph, linkage="average", X=None, connect=None),
            "hac": agglo.hac(graph, linkage="average", X=points, connect="auto"),
        }
        for name, tree in trees.items():
            start = f"{name} {metric}"
            for number in (1, 2, 7, 12, 50, 399):
                yield f"cut {start} n_clusters {number}", digest(tree.cut(n_clusters=number))
            for number in (0, 1, -1, "persistent"):
                yield f"cut {start} round {number}", digest(tree.cut(round=number))
            own_graph = build_graph(points, metric, 1) if name == "forest" else graph
            labels = tree.cut(round="silhouette", graph=own_graph, random_state=0)
            yield f"cut {start} round silhouette", digest(labels)
            for number in (0.5, 2, "persistent"):
                labels = tree.cut(resolution=number, graph=own_graph)
                yield f"cut {start} resolution {number}", digest(labels)
            for share in (0.6, 0.8, 0.95):
                height = float(tree.height[int(share * tree.n_nodes)])
                yield f"cut {start} height {share}", digest(tree.cut(height=height))
            for price in (0.0, 10.0, 40.0, 160.0):
                for centers in ("means", "points"):
                    labels = tree.cut(dp_means=price, X=points, centers=centers)
                    yield f"cut {start} dp_means {price} {centers}", digest(labels)
            for least, most in ((5, None), (20, None), (None, 30), (1, 60)):
                labels = tree.cut(min_size=least, max_size=most, noise="merge")
                yield f"cut {start} sizes from {least} to {most}", digest(labels)
            for least in (5, 20):
                labels = tree.cut(min_size=least, noise="label")
                yield f"cut {start} min_size {least} leave", digest(labels)
            yield f"cut {start} known", digest(tree.cut(known_classes=known))
            yield (
                f"cut {start} known points",
                digest(tree.cut(known_classes={0: "a", 17: "b", 30: "a", 31: "c", 32: "b"})),
            )
            for number in (1, 4):
                yield f"layers {start} {number}", digest(tree.layers(number))
            condensed = tree.condense(branching=3)
            yield f"condense {start}", digest(condensed.parent, condensed.height)
            yield f"taxonomy {start}", digest(tree.taxonomy([2, 5, 20], min_children=3, max_size=30).labels)
            yield f"to_scipy {start}", digest(tree.to_scipy())
            yield f"to_newick {start}", digest(tree.to_newick())
            yield f"order {start}", digest(tree.order, tree.start, tree.leaves(tree.n_nodes - 1))
            yield f"nodes {start}", digest(tree.nodes(tree.cut(n_clusters=9)))

            labels = tree.cut(n_clusters=12)
            yield f"purity {start}", digest_rounded(metrics.dendrogram_purity(tree, y))
            yield f"pairwise F1 {start}", digest_rounded(*metrics.pairwise_f1(y, labels))
            yield f"pairwise F1 by round {start}", digest_rounded(*metrics.pairwise_f1_by_round(tree, y))
            yield f"DP-means cost {start}", digest_rounded(metrics.dp_means_cost(points, labels, 1.5))
            shares = metrics.coherence(
                labels, y=y, sample="clusters", n_pairs=100, quantiles=(0.95, 0.999), random_state=0
            )
            yield f"coherence {start}", digest(shares.pairs, shares.ratings)
            first = contents.first_merge(tree, min_size=4)
            yield f"absorbed {start}", digest(first.node, first.round, first.height)

            for centers in ("means", "points"):
                path = agglo.dp_means_path(tree, points, centers=centers)
                yield f"path {start} {centers} n_clusters", digest(path.n_clusters)
                yield f"path {start} {centers} costs", digest_rounded(path.lambdas, path.within, path.costs)
                yield f"path {start} {centers} nodes", digest_rounded(path.node_cost, path.critical)
                yield f"path {start} {centers} cut", digest(path.cut(30.0), path.best_round(30.0))
                if centers == "points":
                    yield f"path {start} node centers", digest(path.node_center)
            if name == "hac":
                for number in (1, 2, 13, 40, 399):
                    for centers in ("means", "points"):
                        labels = tree.cut(number, exact=True, X=points, centers=centers)
                        yield f"cut {start} exactly {number} {centers}", digest(labels)
    labels = trees["scc"].cut(n_clusters=12)
    yield "centers", digest_rounded(contents.centers(points, labels))
    yield "examples", digest(contents.examples(points, labels, n=3))
    for metric in ("sqeuclidean", "euclidean", "cosine"):
        yield f"medoids {metric}", digest(contents.medoids(points, labels, metric=metric))
    spread = contents.spread(points, labels)
    yield "spread", digest_rounded(*spread)


def attach_results():
    """Yield the digests of new points attached to trees by their neighbours."""
    points = make_points(300, 16, 16)[0].astype(np.float32)
    X, new = points[:-50], points[-50:]
    indices = draw_integers(17, -1, 250, (50, 6))
    copies = np.where(np.arange(50) % 10 == 0, indices[:, 0], -1)
    weights = 1 + np.arange(250) % 3
    for metric in ("cosine", "sqeuclidean"):
        graph = build_graph(X, metric, 8)
        low, high = (int(1024 * value) for value in (graph.weights.min(), graph.weights.max()))
        values = draw_integers(18, low, high, (50, 6)) / 1024
        for linkage in LINKAGES:
            for name, algorithm in ALGORITHMS.items():
                tree = (
                    build_tree(graph, X, linkage=linkage)
                    if name == "scc"
                    else algorithm(graph, linkage=linkage, X=X, connect=None)
                )
                given = {"X": X, "X_new": new} if linkage in ("exact-average", "centroid", "ward") else {}
                attached = agglo.attach(tree, indices, values, copies=copies, sample_weight=None, **given)
                labels = (
                    attached.labels(n_clusters=8),
                    attached.labels(round="persistent"),
                    attached.labels(height=float(tree.height[300])),
                    attached.labels(labels=tree.cut(max_size=20)),
                )
                found = digest(attached.node, attached.round, attached.height, *labels)
                yield f"attach {name} {metric} {linkage}", found
        tree = build_tree(graph, sample_weight=weights)
        attached = agglo.attach(tree, indices, values, copies=None, sample_weight=weights)
        yield f"attach {metric} weights", digest(attached.node, attached.round, attached.height)


TEXTS = [
    f"{color} {animal}{ending}"
    for color, animals in {
        "red": ("frog", "panda", "squirrel in the old tree"),
        "green": ("frog", "snake", "lizard on a stone wall"),
        "blue": ("whale", "jay", "butterfly over the meadow"),
        "grey": ("wolf", "heron", "whale near the harbour"),
    }.items()
    for animal in animals
    for ending in ("", "s", " at night", " and its young", " seen from far away")
]


def file_results():
    """Yield the digests of what files and commands give."""
    points = make_points(200, 12, 19)[0].astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        for metric in ("cosine", "euclidean"):
            model = make_estimator("SCC", metric).fit(points[:160], sample_weight=np.arange(160) % 4)
            model.save(home / metric)
            loaded = agglo.load(home / metric)
            yield f"loaded {metric}", digest_model(loaded)
            yield f"loaded {metric} predict", digest(loaded.predict(points[160:]))
            yield f"loaded {metric} partial_fit", digest_model(loaded.partial_fit(points[160:]))
            model.tree_.save(home / "tree.parquet")
            yield f"loaded tree {metric}", digest_tree(agglo.Hierarchy.load(home / "tree.parquet"))

        np.save(home / "points.npy", points)
        words = ["fit", home / "points.npy", "--metric", "sqeuclidean", "-k", 8, "--method", "exact", "-q"]
        words += [
            "--missing",
            "mean",
            "--linkage",
            "average",
            "--connect",
            "auto",
            "--n-clusters",
            12,
            "--seed",
            0,
        ]
        for algorithm in ALGORITHMS:
            out = home / algorithm
            schedule = ("--thresholds", "odds", "--n-thresholds", 2000, "--advance", "every-round")
            run(*words, "--algorithm", algorithm, *(schedule if algorithm == "scc" else ()), "-o", out)
            yield f"agglo fit {algorithm}", digest(*read_run(out))

        (home / "texts.txt").write_text("\n".join([*TEXTS, *TEXTS[:7], ""]), encoding="utf-8")
        for rule in (("--n-clusters", 4), ("--round", "persistent")):
            run("text", home / "texts.txt", "-k", 8, *rule, "-o", home / rule[0], "-q")
            yield f"agglo text {rule[0]}", digest(*read_run(home / rule[0], digits=5))
        with pa.memory_map(str(home / "--n-clusters" / "names.arrow")) as file:
            names = pa.ipc.open_file(file).read_all().to_pydict()
        # Nodes of two texts are left out: both texts are equally central, and keep their order in the tree.
        tree = agglo.Hierarchy.load(home / "--n-clusters" / "tree.parquet")
        large = np.flatnonzero(tree.size[tree.n_leaves :] > 2)
        yield "agglo text terms", digest(json.dumps(names["terms"]))
        yield "agglo text names", digest([names["name"][node] for node in large])
        yield "agglo text examples", digest(json.dumps([names["examples"][node] for node in large]))


def read_run(folder, digits=12):
    """Read the tree and the labels of a run; heights are rounded."""
    tree = agglo.Hierarchy.load(folder / "tree.parquet")
    heights = digest_rounded(tree.height, digits=digits)
    return (
        tree.parent,
        tree.size,
        tree.round,
        heights,
        pq.read_table(folder / "labels.parquet")["label"].to_numpy(),
    )


def baseline_results():
    """Yield the digests of baselines and DP-means solvers."""
    points, _ = make_points(120, 8, 20)
    models = {
        "Perch": baselines.Perch(
            search="exact", beam_width=10, masking="exact", balance=True, shuffle=True, random_state=0
        ),
        "Perch beam": baselines.Perch(
            search="beam", beam_width=5, masking="boxes", balance=True, max_leaves=60, shuffle=True, random_state=0
        ),
        "Grinch": baselines.Grinch(
            linkage="average", metric="cosine", n_neighbors=25, graft=True, shuffle=True, random_state=0
        ),
        "HKM": baselines.HKM(branching=2, leaf_size=1, max_iter=20, random_state=0),
        "RHC": baselines.RHC(alpha=0.01, nu=0.01),
        "GHHC": baselines.GHHC(
            n_nodes=20, max_iter=10, batch_size=50, learning_rate=0.005, margin=0.1, random_state=0
        ),
        "Birch": baselines.Birch(threshold=0.5, branching_factor=20),
        "HDBSCAN": baselines.HDBSCAN(min_cluster_size=5, min_samples=5, cluster_selection_method="eom"),
    }
    for linkage in ("average", "single", "complete", "centroid", "ward"):
        models[f"DenseHAC {linkage}"] = baselines.DenseHAC(linkage=linkage, metric="euclidean")
    for name, model in models.items():
        tree = model.fit(points).tree_
        yield f"{name} tree", digest(tree.parent, tree.size, tree.round)
        yield f"{name} heights", digest_rounded(tree.height, digits=9)
        if name != "HDBSCAN":  # the labels of scikit-learn depend on the processor
            yield f"{name} labels", digest(model.labels_, tree.cut(n_clusters=12))
    shared = {"n_init": 2, "random_state": 0}
    for price in (0.4, 2.0):
        solvers = {
            "SerialDPMeans": dpmeans.SerialDPMeans(price, max_iter=300, tol=0.0, **shared),
            "OCCDPMeans": dpmeans.OCCDPMeans(price, epoch_size=64, max_iter=300, tol=0.0, **shared),
            "DPMeansPlusPlus": dpmeans.DPMeansPlusPlus(
                price, stop="cost", refine=False, max_iter=300, tol=0.0, **shared
            ),
            "DPMeansPlusPlus refined": dpmeans.DPMeansPlusPlus(
                price, stop="cost", refine=True, max_iter=300, tol=0.0, **shared
            ),
            "LowRankALBCD": dpmeans.LowRankALBCD(price, max_iter=100, tol=0.01, **shared),
            "TreeDPMeans": dpmeans.TreeDPMeans(
                price, n_neighbors=25, refine=True, max_iter=300, tol=0.0, **shared
            ),
        }
        for name, solver in solvers.items():
            solver.fit(points.astype(np.float32))
            yield f"{name} {price} labels", digest(solver.labels_)
            costs = (solver.cost_, solver.costs_, solver.cluster_centers_)
            yield f"{name} {price} costs", digest_rounded(*costs, digits=9)


STAGES = (
    graph_results,
    tree_results,
    estimator_results,
    cut_results,
    attach_results,
    file_results,
    baseline_results,
)


def compute_results():
    """Compute all digests, by name."""
    results = {}
    for stage in STAGES:
        for name, value in stage():
            assert name not in results, name
            results[name] = value
    return results


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        json.dump(compute_results(), sys.stdout, indent=0)
        sys.stdout.write("\n")
