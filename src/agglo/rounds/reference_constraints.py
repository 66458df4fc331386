"""Slow reference implementation of rounds with constraints and point weights; tests compare the fast code with it.

These rounds differ from :mod:`agglo.rounds.reference` in three places. Must-link points merge before the first
round. Two clusters that must not merge are never neighbours. The pairs of a round merge one by one, from the
closest to the farthest. If earlier merges of the same round make the merge of a pair invalid, the pair is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph
from agglo.rounds.connect import Planner, build_hierarchy, check_round_options
from agglo.rounds.constraints import Constraints, check_constraints
from agglo.rounds.reference import find_merges
from agglo.rounds.reference_linkage import (
    contract,
    evaluate_pairs,
    make_linkage,
    merge_clusters,
    point_pairs,
    select,
)
from agglo.rounds.reference_tree import Floats, Ints, RoundRecord, build_forest, farthest_merge, plan_thresholds
from agglo.rounds.schedule import RoundPlan, affinity_plan, hac_plan, scc_plan
from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Hierarchy


def scc(
    graph: NeighborGraph,
    *,
    thresholds: Any = "odds",
    n_thresholds: int | None = None,
    advance: Any = "every-round",
    **options: Any,
) -> Hierarchy:
    """Build the tree of the Sub-Cluster Component algorithm with this slow reference; see :func:`agglo.scc`."""

    def plan(rule: Any, weights: Floats | None) -> RoundPlan:
        return scc_plan(graph, thresholds, n_thresholds, rule, advance, weights)

    return build(plan, graph, **options)


def affinity(graph: NeighborGraph, **options: Any) -> Hierarchy:
    """Build the tree of Affinity clustering with this slow reference; see :func:`agglo.affinity`."""
    return build(lambda rule, _: affinity_plan(rule), graph, **options)


def hac(graph: NeighborGraph, **options: Any) -> Hierarchy:
    """Build the tree of hierarchical agglomerative clustering with this slow reference; see :func:`agglo.hac`."""
    return build(lambda rule, _: hac_plan(rule), graph, **options)


def build(
    plan: Planner,
    graph: NeighborGraph,
    *,
    linkage: Any = "average",
    X: Any = None,
    connect: Any = "auto",
    **constraints: Any,
) -> Hierarchy:
    """Check the arguments, run the rounds of this module, and return the tree."""
    check_round_options(linkage, connect)
    checked = check_constraints(graph.n_points, **constraints)
    return build_hierarchy(run, plan, graph, linkage, X, connect, checked)


def run(graph: NeighborGraph, plan: RoundPlan, constraints: Constraints | None) -> Forest:
    """Run the rounds with the parameters ``plan``; return all merges as a forest."""
    obeyed = check_constraints(graph.n_points) if constraints is None else constraints
    return build_forest(graph.n_points, constrained_partitions(graph, plan, obeyed))


def constrained_partitions(
    graph: NeighborGraph, plan: RoundPlan, constraints: Constraints
) -> Iterator[RoundRecord]:
    """Run the rounds; yield threshold, partition and linkage values (``RoundRecord``) of each round."""
    n, weights = graph.n_points, constraints.weights
    linkage = make_linkage(graph, plan.linkage, weights)
    sign = 1 if linkage.kind == "similarity" else -1
    thresholds, levels = plan_thresholds(plan, sign)
    allowed = AllowedMerges(n, constraints)
    cluster, step = np.arange(n), 0
    pairs, edge_weights = point_pairs(graph)
    is_allowed = allowed.check(pairs)
    pairs, edge_weights = pairs[is_allowed], edge_weights[is_allowed]
    statistics = linkage.of_points(np.ones(n) if weights is None else weights)
    edges = linkage.of_edges(pairs[:, 0], pairs[:, 1], edge_weights)
    must_link = constraints.must.astype(np.int64)
    while len(pairs) or len(must_link):
        threshold, is_linking = np.nan, len(must_link) > 0
        if is_linking:
            source, target, must_link = must_link[:, 0], must_link[:, 1], must_link[:0]
            similarity = np.full(len(source), np.inf)
        else:
            similarity = sign * evaluate_pairs(linkage, statistics, pairs, edges)
            step, source, target, similarity = find_merges(pairs, similarity, levels, step, plan.mutual)
            if not len(source):
                return
            threshold = float(thresholds[step])
        new = allowed.merge(source, target, similarity)
        merged = new[source] == new[target]
        source, target, similarity = source[merged], target[merged], similarity[merged]
        statistics = merge_clusters(linkage, statistics, np.union1d(source, target), new)
        pairs, edges = contract(linkage, pairs, edges, new)
        is_allowed = allowed.check(pairs)
        pairs, edges = pairs[is_allowed], select(edges, is_allowed)
        cluster = new[cluster]
        yield threshold, cluster, sign * farthest_merge(source, similarity, new)
        step += plan.thresholds is not None and not plan.until_stable and not is_linking


class AllowedMerges:
    """The total weight of each cluster, and the pairs of clusters that must not merge."""

    def __init__(self, n: int, constraints: Constraints) -> None:
        self.max_weight = constraints.most
        self.weight = np.ones(n) if constraints.weights is None else constraints.weights.copy()
        self.cannot = {frozenset(pair) for pair in constraints.cannot_pairs().tolist()}

    def allows(self, a: int, b: int) -> bool:
        """Return whether two clusters may merge."""
        return {a, b} not in self.cannot and self.weight[a] + self.weight[b] <= self.max_weight

    def check(self, pairs: Ints) -> npt.NDArray[np.bool_]:
        """Return whether the two clusters of each pair may merge."""
        return np.array([self.allows(a, b) for a, b in pairs.tolist()], bool)

    def merge(self, source: Ints, target: Ints, similarity: Floats) -> Ints:
        """Merge all allowed pairs, from the closest to the farthest; return the new id of each cluster."""
        new = np.arange(len(self.weight))
        pairs = np.sort(np.column_stack([source, target]), axis=1)
        for pair in pairs[np.lexsort((pairs[:, 1], pairs[:, 0], -similarity))]:
            a, b = sorted(new[pair].tolist())
            if a != b and self.allows(a, b):
                new[new == b] = a
                self.weight[a] += self.weight[b]
                self.cannot = {frozenset(a if end == b else end for end in pair) for pair in self.cannot}
        return new
