"""Specification of the attachment of new points to a tree, one point and one round at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.rounds.attach import Attached, Rows, checked, limits, placed
from agglo.rounds.linkage import ROW_LIMBS, Grid, fixed_point
from agglo.rounds.reference_linkage import Floats, select
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, Between, Compared, Moments, VectorLinkage, dots
from agglo.tree.hierarchy import Hierarchy


def attach(
    tree: Hierarchy, rows: Rows, leaf_weights: Floats | None = None, X: Any = None, X_new: Any = None
) -> Attached:
    """Where new points would have joined ``tree``, see :func:`agglo.attach`."""
    (rows, leaf_weights), reach = checked(tree, rows, leaf_weights), limits(tree)
    sign = 1 if tree.about["kind"] == "similarity" else -1
    linkage = tree.about["linkage"]
    if linkage in VECTOR_LINKAGES:
        rule = VectorLinkage(Compared(tree.about.get("metric"), tree.n_leaves), linkage, X, leaf_weights)
        nodes, points = node_moments(tree, rule, leaf_weights), rule.like(X_new)
    joined = []
    for i, (begin, end) in enumerate(zip(rows.indptr, rows.indptr[1:], strict=False)):
        there = rows.targets[begin:end] >= 0
        cluster, weights = rows.targets[begin:end][there], rows.weights[begin:end][there]
        if linkage in VECTOR_LINKAGES:
            new = Moments(np.ones(1), points[[i]], dots(points[[i]], points[[i]]), np.zeros(1), np.ones(1, bool))
            values_of = partial(_by_means, rule, nodes, new, weights)
        else:
            values_of = partial(_by_edges, tree, leaf_weights, rows.weights[begin:end], cluster, weights)
        found = (-1, -1, np.nan)
        for step in range(1, len(reach) + 1):
            # Before a round clusters are those of earlier ones, the largest that a neighbour is in.
            while (grown := (parent := tree.parent[cluster]) >= 0).any():
                grown &= tree.round[parent] < step
                if not grown.any():
                    break
                cluster = np.where(grown, parent, cluster)
            names = sorted(set(cluster.tolist()), key=lambda node: tree.leaves(node)[0])
            values = [sign * values_of(cluster == name, name) for name in names]
            if names and np.float32(max(values)) >= reach[step - 1]:
                best = int(np.argmax(values))
                found = (names[best], step, values[best])
                break
        joined.append(found)
    node, round, value = np.array(joined, np.float64).reshape(-1, 3).T
    return placed(tree, node.astype(np.int32), round.astype(np.int32), sign * value, None)


def _by_edges(
    tree: Hierarchy,
    leaf_weights: Floats | None,
    row: npt.NDArray[np.float32],
    leaves: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    inside: npt.NDArray[np.bool_],
    node: int,
) -> float:
    """How close a new point is to a cluster, by its edges to the leaves in it."""
    missing, own = tree.about["missing"], weights[inside].astype(np.float64)
    size = float(tree.size[node] if leaf_weights is None else leaf_weights[tree.leaves(node)].sum())
    if tree.about["linkage"] == "average":
        fixed, counts = row_grid(row, leaves, leaf_weights)
        steps = np.rint(np.ldexp(own * counts[inside], fixed.shift))
        total = np.ldexp(float(sum(int(step) for step in steps)), -fixed.shift)
        steps = np.rint(np.ldexp(counts[inside], fixed.count_shift)).astype(np.int64).sum()
        pairs = np.ldexp(float(steps), -fixed.count_shift)
        return float(total / pairs if missing == "ignore" else (total + missing * (size - pairs)) / size)
    similarity, all_there = tree.about["kind"] == "similarity", missing == "ignore" or len(own) == size
    if tree.about["linkage"] == "single":
        return float(own.max() if similarity else own.min())
    farthest = own if all_there else np.append(own, missing)
    return float(farthest.min() if similarity else farthest.max())


def row_grid(
    row: npt.NDArray[np.float32], leaves: npt.NDArray[np.int32], leaf_weights: Floats | None
) -> tuple[Grid, Floats]:
    """Choose the grid for the edges of one new point, and return how much each of them counts."""
    sizes = np.abs(row.astype(np.float64))
    total, one, counts = len(row).bit_length(), 0, np.ones(len(leaves))
    if leaf_weights is not None:
        counts = leaf_weights[leaves]
        total = int(np.frexp(counts.sum())[1])
        one = int(np.frexp(counts.min())[1]) - 1
    count_shift = 0 if leaf_weights is None else 62 - total
    smallest = sizes.min(initial=np.inf, where=sizes > 0)
    return fixed_point(sizes.max(initial=0.0), smallest, total, one, count_shift, ROW_LIMBS), counts


def _by_means(
    rule: VectorLinkage,
    nodes: list[Moments],
    new: Moments,
    weights: npt.NDArray[np.float32],
    inside: npt.NDArray[np.bool_],
    node: int,
) -> float:
    """The same by a linkage of the points themselves; a leaf that is named twice is as its closest edge."""
    values = [float(rule.value(new, nodes[node], Between(weights[[e]]))[0]) for e in np.flatnonzero(inside)]
    return max(values) if rule.kind == "similarity" else min(values)


def node_moments(tree: Hierarchy, rule: VectorLinkage, leaf_weights: Floats | None) -> list[Moments]:
    """Of every node what ``rule`` keeps of it: of leaves, and of others by those of their children."""
    points = rule.of_points(np.ones(tree.n_leaves) if leaf_weights is None else leaf_weights)
    found = [select(points, np.array([leaf])) for leaf in range(tree.n_leaves)]
    for node in range(tree.n_leaves, tree.n_nodes):
        children = sorted(np.flatnonzero(tree.parent == node), key=lambda child: tree.leaves(child).min())
        parts = Moments(*(np.concatenate(column) for column in zip(*(found[c] for c in children), strict=True)))
        found.append(rule.merged_clusters(parts, np.array([0])))
    return found
