"""Print digests of results that must not depend on the processor, as JSON: run by test_portability.py."""

import hashlib
import json
import sys
import warnings

import numpy as np
import scipy.sparse as sp

import agglo
from agglo import _core, dpmeans
from agglo.cut import layer_rounds, persistent_round


def digest(*values):
    """One digest of arrays, by type, shape and bytes."""
    state = hashlib.sha256()
    for value in values:
        array = np.ascontiguousarray(value)
        state.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return state.hexdigest()[:16]


def of_graph(graph):
    """The digest of a graph."""
    return digest(graph.indptr, graph.indices, graph.weights, np.float64(graph.missing))


def of_tree(tree):
    """The digest of a tree, its thresholds and its cuts by rules."""
    cuts = [persistent_round(tree), *layer_rounds(tree, 4)]
    return digest(tree.parent, tree.height, tree.size, tree.round, tree.rounds.threshold, cuts)


def some_points(n, d, seed):
    """Points around centres, by integer arithmetic, so that they are the same everywhere."""
    rng = np.random.Generator(np.random.PCG64(seed))
    centers = rng.integers(-600, 600, (12, d))
    noise = rng.integers(-300, 300, (n, d))
    return (centers[rng.integers(0, 12, n)] + noise) / 1000.0


def of_type(points, dtype):
    """The points as numbers of a type."""
    if np.dtype(dtype).kind == "f":
        return points.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(points * 120 + (128 if limits.min == 0 else 0), limits.min, limits.max).astype(dtype)


def results():
    """All digests, by name."""
    found = {}
    points, narrow = some_points(400, 37, 1), some_points(400, 3, 2)
    for dtype in ("float64", "float32", "float16", "int8", "uint8"):
        for metric in ("cosine", "dot", "sqeuclidean", "euclidean"):
            X = of_type(points, dtype)
            found[f"exact {dtype} {metric}"] = of_graph(agglo.neighbor_graph(X, 6, metric, "exact"))
        found[f"kdtree {dtype}"] = of_graph(agglo.neighbor_graph(of_type(narrow, dtype), 6, "euclidean", "kdtree"))
    # Points without groups, of which cells miss many neighbours: which ones, rounding errors could decide.
    noise = np.random.Generator(np.random.PCG64(3)).integers(-999, 1000, (3000, 176)) / 999.0
    many, wide = noise[:, :24].astype(np.float32), noise.astype(np.float32)
    wide[:, 40:] *= 0.02  # so that few directions are enough
    for metric in ("cosine", "dot", "sqeuclidean"):
        for name, X in (("narrow", many), ("wide", wide)):
            graph = agglo.neighbor_graph(X, 5, metric, "cells", recall=0.6)
            found[f"cells {name} {metric}"] = of_graph(graph)
    X = np.where(many > 0.8, many, 0)
    found["sparse"] = of_graph(agglo.neighbor_graph(sp.csr_array(X), 5, "cosine"))
    found["minhash"] = of_graph(agglo.neighbor_graph(sp.csr_array(X), 5, "jaccard", "minhash"))
    found["hamming"] = of_graph(agglo.neighbor_graph(X > 0, 5, "hamming"))

    small = points.astype(np.float32)
    for metric in ("cosine", "sqeuclidean"):
        graph = agglo.neighbor_graph(small, 8, metric)
        for linkage in ("average", "single", "complete", "exact-average", "centroid", "ward"):
            tree = agglo.scc(graph, linkage=linkage, X=small)
            found[f"tree {metric} {linkage}"] = of_tree(tree)
        for thresholds in ("geometric", "linear", "doubling"):
            found[f"tree {metric} {thresholds}"] = of_tree(agglo.scc(graph, thresholds))
        weights = 1 + np.arange(len(small)) % 3
        found[f"tree {metric} weights"] = of_tree(agglo.scc(graph, sample_weight=weights))
        for method in ("auto", "cells"):
            model = agglo.SCC(metric=metric, method=method).fit(small[:-60])
            found[f"labels {metric} {method}"] = digest(model.labels_, model.tree_.height)
            found[f"predict {metric} {method}"] = digest(model.predict(small[-60:]))
        found[f"hac {metric}"] = of_tree(agglo.hac(graph))
    for solver in (dpmeans.SerialDPMeans, dpmeans.DPMeansPlusPlus, dpmeans.OCCDPMeans, dpmeans.LowRankALBCD):
        model = solver(2.0, random_state=0).fit(small)
        found[solver.__name__] = digest(model.labels_)
    return found


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        json.dump({"level": _core.simd_level(), "results": results()}, sys.stdout)
