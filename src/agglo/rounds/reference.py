"""The algorithms in plain NumPy: slow, short, and the specification of what every other engine must return."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph
from agglo.rounds.algorithms import build_hierarchy
from agglo.rounds.attach import Attached, Rows, checked, limits, placed
from agglo.rounds.constraints import Constraints, check_constraints
from agglo.rounds.forest_builder import ForestBuilder, segment_starts
from agglo.rounds.linkage import (
    ROW_LIMBS,
    GraphLinkage,
    GraphLinkageName,
    Grid,
    Linkage,
    LinkageName,
    fixed_point,
    rows,
)
from agglo.rounds.numpy_engine import Limits, mutual, nearest_neighbors
from agglo.rounds.plan import Advance, RoundPlan, affinity_plan, hac_plan, scc_plan
from agglo.rounds.schedule import ScheduleName
from agglo.rounds.vector_linkage import (
    VECTOR_LINKAGES,
    Between,
    Compared,
    ConnectName,
    Moments,
    VectorLinkage,
    dots,
)
from agglo.tree.hierarchy import Forest, Hierarchy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def scc(
    graph: NeighborGraph,
    *,
    thresholds: ScheduleName | npt.ArrayLike = "odds",
    n_thresholds: int | None = None,
    linkage: LinkageName | Linkage = "average",
    advance: Advance = "every-round",
    X: Any = None,
    connect: ConnectName | None = "auto",
    **constraints: Any,
) -> Hierarchy:
    """Build the tree of the Sub-Cluster Component algorithm, see :func:`agglo.scc`."""

    def plan(rule: GraphLinkageName | Linkage, weights: Floats | None) -> RoundPlan:
        return scc_plan(graph, thresholds, n_thresholds, rule, advance, weights)

    checked = check_constraints(graph.n_points, **constraints) if constraints else None
    return build_hierarchy(run, plan, graph, linkage, X, connect, checked)


def affinity(
    graph: NeighborGraph,
    *,
    linkage: LinkageName | Linkage = "average",
    X: Any = None,
    connect: ConnectName | None = "auto",
    **constraints: Any,
) -> Hierarchy:
    """Build the tree of Affinity clustering, see :func:`agglo.affinity`."""
    checked = check_constraints(graph.n_points, **constraints) if constraints else None
    return build_hierarchy(run, lambda rule, _: affinity_plan(rule), graph, linkage, X, connect, checked)


def hac(
    graph: NeighborGraph,
    *,
    linkage: LinkageName | Linkage = "average",
    X: Any = None,
    connect: ConnectName | None = "auto",
    **constraints: Any,
) -> Hierarchy:
    """Build the tree of hierarchical agglomerative clustering, see :func:`agglo.hac`."""
    checked = check_constraints(graph.n_points, **constraints) if constraints else None
    return build_hierarchy(run, lambda rule, _: hac_plan(rule), graph, linkage, X, connect, checked)


def run(graph: NeighborGraph, plan: RoundPlan, constraints: Constraints | None = None) -> Forest:
    """The forest that ``plan`` makes of ``graph``."""
    n = graph.n_points
    weights = None if constraints is None else constraints.weights
    linkage = GraphLinkage(graph, plan.linkage, weights) if isinstance(plan.linkage, str) else plan.linkage
    sign = 1 if linkage.kind == "similarity" else -1

    # A cluster is named by its smallest point. `pairs` are the pairs of clusters with an edge between them.
    builder = ForestBuilder(linkage, n, weights)
    allowed = Limits(n, constraints)
    source = np.repeat(np.arange(n), np.diff(graph.indptr))
    once = (source < graph.indices) & allowed.may(np.column_stack([source, graph.indices]))
    pairs = np.column_stack([source[once], graph.indices[once]]).astype(np.int64)
    edges = linkage.of_edges(pairs[:, 0], pairs[:, 1], graph.weights[once])

    # Without thresholds there is one that everything reaches, kept until nothing merges.
    thresholds = [-sign * np.inf] if plan.thresholds is None else plan.thresholds
    stay = plan.until_stable or plan.thresholds is None

    step = 0
    found = None  # nearest neighbours, until something merges
    # What must be linked is merged before the first round, closer than anything.
    links = np.empty((0, 2), np.int64) if constraints is None else constraints.must.astype(np.int64)
    while len(links) or (step < len(thresholds) and len(pairs)):
        linking, threshold = len(links) > 0, np.nan
        if linking:
            source, target, nearest, links = links[:, 0], links[:, 1], np.full(len(links), np.inf), links[:0]
        else:
            if found is None:
                a, b = (rows(builder.statistics, pairs[:, end]) for end in (0, 1))
                found = nearest_neighbors(pairs, sign * linkage.value(a, b, edges))
            source, target, nearest = found
            joins = nearest.astype(np.float32) >= np.float32(sign * thresholds[step])
            if plan.mutual:
                joins &= mutual(source, target, n)
            if not joins.any():  # then on to the first threshold that somebody reaches
                passed = np.float32(sign * np.asarray(thresholds)) > np.float32(nearest.max())
                step = max(step + 1, int(passed.sum()))
                continue
            source, target, nearest, found = source[joins], target[joins], nearest[joins], None
            threshold = np.nan if plan.thresholds is None else float(thresholds[step])

        # Components of the joining pairs; the smallest point of a component names the new cluster.
        joined = allowed.united(source, target, nearest)  # of each old cluster: the new one
        together = joined[source] == joined[target]
        builder.merge(source[together], target[together], nearest[together], joined, threshold)

        # Contract the edges to the new clusters, but for those that may not be joined, now or ever.
        ends = np.sort(joined[pairs], axis=1)
        apart = np.flatnonzero((ends[:, 0] != ends[:, 1]) & allowed.may(ends))
        apart = apart[np.lexsort((ends[apart, 1], ends[apart, 0]))]
        pairs = ends[apart][segment_starts(ends[apart])]
        edges = linkage.merged_edges(rows(edges, apart), segment_starts(ends[apart]))
        step += not (stay or linking)
    return builder.forest()


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
    found = [rows(points, np.array([leaf])) for leaf in range(tree.n_leaves)]
    for node in range(tree.n_leaves, tree.n_nodes):
        children = sorted(np.flatnonzero(tree.parent == node), key=lambda child: tree.leaves(child).min())
        parts = Moments(*(np.concatenate(column) for column in zip(*(found[c] for c in children), strict=True)))
        found.append(rule.merged_clusters(parts, np.array([0])))
    return found
