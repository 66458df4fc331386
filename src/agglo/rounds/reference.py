"""Slow reference implementations of SCC, Affinity and HAC in NumPy; the fast ones must give equal trees.

:func:`scc_partitions` is Algorithm 1 of the SCC paper. The id of a cluster is its smallest point. If two
neighbours are equally close, the neighbour with the smaller id is the nearest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from agglo.neighbors.graph import NeighborGraph
from agglo.rounds import reference_linkage as linkages
from agglo.rounds.reference_tree import Floats, Ints, RoundRecord, build_tree, farthest_merge, plan_thresholds
from agglo.rounds.schedule import RoundPlan, affinity_plan, hac_plan, scc_plan
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
    """Build the tree of the Sub-Cluster Component algorithm with this slow reference; see :func:`agglo.scc`."""
    plan = scc_plan(graph, thresholds, n_thresholds, linkages.bind_points(graph, linkage, X), advance)
    return build_tree(graph, plan, scc_partitions(graph, plan))


def affinity(graph: NeighborGraph, *, linkage: Any = "average", X: Any = None) -> Hierarchy:
    """Build the tree of Affinity clustering with this slow reference; see :func:`agglo.affinity`."""
    plan = affinity_plan(linkages.bind_points(graph, linkage, X))
    return build_tree(graph, plan, scc_partitions(graph, plan))


def hac(graph: NeighborGraph, *, linkage: Any = "average", X: Any = None) -> Hierarchy:
    """Build the tree of hierarchical agglomerative clustering with this slow reference; see :func:`agglo.hac`."""
    plan = hac_plan(linkages.bind_points(graph, linkage, X))
    return build_tree(graph, plan, scc_partitions(graph, plan))


def scc_partitions(graph: NeighborGraph, plan: RoundPlan) -> Iterator[RoundRecord]:
    """Run the rounds; yield threshold, partition and linkage values (``RoundRecord``) of each round."""
    n, linkage = graph.n_points, linkages.make_linkage(graph, plan.linkage)
    sign = 1 if linkage.kind == "similarity" else -1
    thresholds, levels = plan_thresholds(plan, sign)
    cluster, step = np.arange(n), 0
    pairs, weights = linkages.point_pairs(graph)
    statistics = linkage.of_points(np.ones(n))
    edges = linkage.of_edges(pairs[:, 0], pairs[:, 1], weights)
    while len(pairs):
        similarity = sign * linkages.evaluate_pairs(linkage, statistics, pairs, edges)
        step, source, target, similarity = find_merges(pairs, similarity, levels, step, plan.mutual)
        if not len(source):
            return
        new = components(source, target, n)
        statistics = linkages.merge_clusters(linkage, statistics, np.union1d(source, target), new)
        pairs, edges = linkages.contract(linkage, pairs, edges, new)
        cluster = new[cluster]
        yield float(thresholds[step]), cluster, sign * farthest_merge(source, similarity, new)
        step += plan.thresholds is not None and not plan.until_stable


def find_merges(
    pairs: Ints, similarity: Floats, levels: Any, step: int, mutual: bool
) -> tuple[int, Ints, Ints, Floats]:
    """Find the next threshold that a pair reaches, and the pairs that merge; none if no threshold is reached."""
    source, target, similarity = nearest_neighbors(pairs, similarity)
    reached = np.flatnonzero(np.float32(similarity.max()) >= levels[step:])
    step += int(reached[0]) if len(reached) else 0  # skip the thresholds that no pair reaches
    merges = np.float32(similarity) >= (levels[step] if len(reached) else np.inf)
    if mutual:
        merges &= target[np.searchsorted(source, target)] == source  # keep mutual nearest neighbours
    return step, source[merges], target[merges], similarity[merges]


def nearest_neighbors(pairs: Ints, similarity: Floats) -> tuple[Ints, Ints, Floats]:
    """Return the clusters that have neighbours, ascending, and the nearest neighbour and similarity of each."""
    source, target = np.concatenate([pairs, pairs[:, ::-1]]).T
    similarity = np.tile(similarity, 2)
    order = np.lexsort((target, -similarity, source))
    source, first = np.unique(source[order], return_index=True)
    return source, target[order][first], similarity[order][first]


def components(source: Ints, target: Ints, n: int) -> Ints:
    """Return the new id of each cluster: the smallest cluster id in its connected component."""
    new = np.arange(n)
    while (new[source] != new[target]).any():
        smaller = np.minimum(new[source], new[target])
        np.minimum.at(new, source, smaller)
        np.minimum.at(new, target, smaller)
    return new
