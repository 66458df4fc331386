"""Slow reference implementation of :func:`agglo.attach`: attach new points to a tree, one at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import ROW_LIMBS, FixedPoint, choose_fixed_point
from agglo.rounds import reference_linkage as vectors
from agglo.rounds.attach import Attached, Rows, check_rows, round_thresholds, to_attachments
from agglo.rounds.reference_linkage import Floats, select
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, MetricSpec, VectorLinkage
from agglo.tree.hierarchy import Hierarchy


def attach(
    tree: Hierarchy, rows: Rows, leaf_weights: Floats | None = None, X: Any = None, X_new: Any = None
) -> Attached:
    """Attach new points to ``tree`` by their neighbours among its leaves; see :func:`agglo.attach`."""
    rows, leaf_weights = check_rows(tree, rows, leaf_weights)
    thresholds = round_thresholds(tree)
    sign = 1 if tree.about["kind"] == "similarity" else -1
    compares_vectors = tree.about["linkage"] in VECTOR_LINKAGES
    if compares_vectors:
        metric = MetricSpec(tree.about.get("metric"), tree.n_leaves)
        prepared = VectorLinkage(metric, tree.about["linkage"], X, leaf_weights)
        rule, queries = vectors.ReferenceVectorLinkage(prepared), prepared.prepare_queries(X_new)
        nodes = node_moments(tree, rule, leaf_weights)
    attached = []
    for i, (begin, end) in enumerate(zip(rows.indptr, rows.indptr[1:], strict=False)):
        is_neighbor = rows.targets[begin:end] >= 0
        leaves, weights = rows.targets[begin:end][is_neighbor], rows.weights[begin:end][is_neighbor]
        if compares_vectors:
            value_of = partial(value_by_moments, rule, nodes, point_moments(queries[[i]]), weights)
        else:
            value_of = partial(value_by_edges, tree, leaf_weights, rows.weights[begin:end], leaves, weights)
        attached.append(first_merge(tree, thresholds, leaves, value_of, sign))
    node, round, value = np.array(attached, np.float64).reshape(-1, 3).T
    return to_attachments(tree, node.astype(np.int32), round.astype(np.int32), sign * value, None)


def first_merge(
    tree: Hierarchy, thresholds: npt.NDArray[np.float32], leaves: npt.NDArray[np.int32], value_of: Any, sign: int
) -> tuple[int, int, float]:
    """Find the first merge of a new point; return the cluster, the round and the similarity.

    If the point does not merge, the cluster is -1.
    """
    cluster = leaves
    for round in range(1, len(thresholds) + 1):
        # Find the cluster of each neighbour before this round: its highest ancestor that earlier rounds built.
        while True:
            parent = tree.parent[cluster]
            is_merged = (parent >= 0) & (tree.round[parent] < round)
            if not is_merged.any():
                break
            cluster = np.where(is_merged, parent, cluster)
        clusters = sorted(set(cluster.tolist()), key=lambda node: tree.leaves(node)[0])
        similarities = [sign * value_of(cluster == node, node) for node in clusters]
        if clusters and np.float32(max(similarities)) >= thresholds[round - 1]:
            nearest = int(np.argmax(similarities))
            return clusters[nearest], round, similarities[nearest]
    return -1, -1, np.nan


def value_by_edges(
    tree: Hierarchy,
    leaf_weights: Floats | None,
    row: npt.NDArray[np.float32],
    leaves: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    inside: npt.NDArray[np.bool_],
    node: int,
) -> float:
    """Return the linkage of a new point and a cluster. ``inside`` marks the edges between the two."""
    missing, own = tree.about["missing"], weights[inside].astype(np.float64)
    size = float(tree.size[node] if leaf_weights is None else leaf_weights[tree.leaves(node)].sum())
    if tree.about["linkage"] == "average":
        fixed, counts = row_fixed_point(row, leaves, leaf_weights)
        steps = np.rint(np.ldexp(own * counts[inside], fixed.shift))
        total = np.ldexp(float(sum(int(step) for step in steps)), -fixed.shift)
        count_steps = np.rint(np.ldexp(counts[inside], fixed.count_shift)).astype(np.int64).sum()
        count = np.ldexp(float(count_steps), -fixed.count_shift)
        return float(total / count if missing == "ignore" else (total + missing * (size - count)) / size)
    is_similarity = tree.about["kind"] == "similarity"
    if tree.about["linkage"] == "single":
        return float(own.max() if is_similarity else own.min())
    is_complete = missing == "ignore" or len(own) == size
    values = own if is_complete else np.append(own, missing)
    return float(values.min() if is_similarity else values.max())


def row_fixed_point(
    row: npt.NDArray[np.float32], leaves: npt.NDArray[np.int32], leaf_weights: Floats | None
) -> tuple[FixedPoint, Floats]:
    """Return the fixed-point format for sums over a new point's edges, and the weight of each edge in a sum."""
    magnitudes = np.abs(row.astype(np.float64))
    total, one, counts = len(row).bit_length(), 0, np.ones(len(leaves))
    if leaf_weights is not None:
        counts = leaf_weights[leaves]
        total = int(np.frexp(counts.sum())[1])
        one = int(np.frexp(counts.min())[1]) - 1
    count_shift = 0 if leaf_weights is None else 62 - total
    smallest = magnitudes.min(initial=np.inf, where=magnitudes > 0)
    return choose_fixed_point(magnitudes.max(initial=0.0), smallest, total, one, count_shift, ROW_LIMBS), counts


def value_by_moments(
    rule: vectors.ReferenceVectorLinkage,
    nodes: list[vectors.Moments],
    new: vectors.Moments,
    weights: npt.NDArray[np.float32],
    inside: npt.NDArray[np.bool_],
    node: int,
) -> float:
    """Return the vector linkage of a new point and a cluster.

    If the cluster is a leaf with several edges to the point, the closest edge is used.
    """
    edges = [vectors.EdgeWeights(weights[[edge]]) for edge in np.flatnonzero(inside)]
    values = [float(rule.value(new, nodes[node], edge)[0]) for edge in edges]
    return max(values) if rule.kind == "similarity" else min(values)


def point_moments(point: npt.NDArray[np.float32]) -> vectors.Moments:
    """Return weight, mean and spread (moments) of one new point, as a table with one row."""
    square = vectors.row_products(point, point)
    return vectors.Moments(np.ones(1), point, square, np.zeros(1), np.ones(1, bool))


def node_moments(
    tree: Hierarchy, rule: vectors.ReferenceVectorLinkage, leaf_weights: Floats | None
) -> list[vectors.Moments]:
    """Return weight, mean and spread of every node. The values of an inner node come from its children."""
    points = rule.of_points(np.ones(tree.n_leaves) if leaf_weights is None else leaf_weights)
    moments = [select(points, np.array([leaf])) for leaf in range(tree.n_leaves)]
    for node in range(tree.n_leaves, tree.n_nodes):
        children = sorted(np.flatnonzero(tree.parent == node), key=lambda child: tree.leaves(child).min())
        columns = zip(*(moments[child] for child in children), strict=True)
        parts = vectors.Moments(*(np.concatenate(column) for column in columns))
        moments.append(rule.merged_clusters(parts, np.array([0])))
    return moments
