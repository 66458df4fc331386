"""Specification of SCC, Affinity and HAC in plain NumPy: slow, short, and the tree that every engine must build.

:func:`scc_partitions` is Algorithm 1 of the paper. The id of a cluster is its smallest point. Ties go to
smaller ids. Constraints and weights are in :mod:`agglo.rounds.reference_constraints`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph
from agglo.rounds.linkage import Linkage
from agglo.rounds.plan import RoundPlan, affinity_plan, hac_plan, scc_plan
from agglo.rounds.reference_linkage import bind_points, make_linkage, point_pairs, select, starts
from agglo.rounds.reference_tree import Floats, Ints, RoundRecord, build_tree, farthest_merge
from agglo.tree.hierarchy import Hierarchy


def scc(
    graph: NeighborGraph,
    *,
    linkage: Any = "average",
    thresholds: Any = "odds",
    n_thresholds: int | None = None,
    advance: Any = "every-round",
    X: Any = None,
) -> Hierarchy:
    """Build the tree of the Sub-Cluster Component algorithm, see :func:`agglo.scc`."""
    plan = scc_plan(graph, thresholds, n_thresholds, bind_points(graph, linkage, X), advance)
    return build_tree(graph, plan, scc_partitions(graph, plan))


def affinity(graph: NeighborGraph, *, linkage: Any = "average", X: Any = None) -> Hierarchy:
    """Build the tree of Affinity clustering, see :func:`agglo.affinity`."""
    plan = affinity_plan(bind_points(graph, linkage, X))
    return build_tree(graph, plan, scc_partitions(graph, plan))


def hac(graph: NeighborGraph, *, linkage: Any = "average", X: Any = None) -> Hierarchy:
    """Build the tree of hierarchical agglomerative clustering, see :func:`agglo.hac`."""
    plan = hac_plan(bind_points(graph, linkage, X))
    return build_tree(graph, plan, scc_partitions(graph, plan))


def scc_partitions(graph: NeighborGraph, plan: RoundPlan) -> Iterator[RoundRecord]:
    """Yield the partition of the points after each round that merges clusters."""
    n, linkage = graph.n_points, make_linkage(graph, plan.linkage)
    sign = 1 if linkage.kind == "similarity" else -1
    thresholds = np.array([np.nan]) if plan.thresholds is None else plan.thresholds
    levels = np.where(np.isnan(thresholds), -np.inf, sign * thresholds).astype(np.float32)
    cluster, step = np.arange(n), 0
    pairs, weights = point_pairs(graph)
    statistics = linkage.of_points(np.ones(n))
    edges = linkage.of_edges(pairs[:, 0], pairs[:, 1], weights)
    while len(pairs):
        a, b = (select(statistics, pairs[:, end]) for end in (0, 1))
        source, target, similarity = nearest_neighbors(pairs, sign * linkage.value(a, b, edges))
        reached = np.flatnonzero(np.float32(similarity.max()) >= levels[step:])
        if len(reached) == 0:
            return
        step += int(reached[0])  # no pair reaches the thresholds before this one
        merges = np.float32(similarity) >= levels[step]
        if plan.mutual:
            merges &= is_mutual(source, target, n)
        source, target, similarity = source[merges], target[merges], similarity[merges]
        new = components(source, target, n)
        statistics = merge_clusters(linkage, statistics, np.union1d(source, target), new)
        pairs, edges = contract(linkage, pairs, edges, new)
        cluster = new[cluster]
        yield float(thresholds[step]), cluster, sign * farthest_merge(source, similarity, new)
        step += plan.thresholds is not None and not plan.until_stable


def nearest_neighbors(pairs: Ints, similarity: Floats) -> tuple[Ints, Ints, Floats]:
    """Return each cluster that has a neighbour, its nearest neighbour, and their similarity."""
    source, target = np.concatenate([pairs, pairs[:, ::-1]]).T
    similarity = np.tile(similarity, 2)
    order = np.lexsort((target, -similarity, source))
    source, first = np.unique(source[order], return_index=True)
    return source, target[order][first], similarity[order][first]


def is_mutual(source: Ints, target: Ints, n: int) -> npt.NDArray[np.bool_]:
    """Return whether each cluster is the nearest neighbour of its nearest neighbour."""
    nearest = np.full(n, -1)
    nearest[source] = target
    return np.asarray(nearest[target] == source)


def components(source: Ints, target: Ints, n: int) -> Ints:
    """Return the smallest id of the connected component of each cluster."""
    new = np.arange(n)
    while (new[source] != new[target]).any():
        smaller = np.minimum(new[source], new[target])
        np.minimum.at(new, source, smaller)
        np.minimum.at(new, target, smaller)
    return new


def merge_clusters(linkage: Linkage, statistics: Any, members: Ints, new: Ints) -> Any:
    """Return the statistics after ``members``, the clusters that merge, have become their components."""
    members = members[np.argsort(new[members], kind="stable")]
    first = starts(new[members])
    merged = linkage.merged_clusters(select(statistics, members), first)
    statistics = select(statistics, np.arange(len(new)))  # a copy
    for column, values in zip(statistics, merged, strict=True):
        column[new[members][first]] = values
    return statistics


def contract(linkage: Linkage, pairs: Ints, edges: Any, new: Ints) -> tuple[Ints, Any]:
    """Return the pairs of new clusters with edges between them, and the merged statistics of these edges."""
    ends = np.sort(new[pairs], axis=1)
    between = np.flatnonzero(ends[:, 0] != ends[:, 1])
    between = between[np.lexsort((ends[between, 1], ends[between, 0]))]
    first = starts(ends[between])
    return ends[between][first], linkage.merged_edges(select(edges, between), first)
