"""Run the rounds in NumPy for any linkage; evaluate only pairs of clusters that a merge changes.

The result is the same tree as that of :mod:`agglo.rounds.reference`, with less work. If a pair of clusters cannot
reach the threshold of the round, its linkage is not evaluated. A merge changes only the pairs of the merged
clusters. All other pairs keep their linkage values.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from agglo.neighbors.graph import NeighborGraph
from agglo.progress import Progress
from agglo.rounds.constraints import Constraints
from agglo.rounds.linkage import Linkage, rows
from agglo.tree.forest import Forest

if TYPE_CHECKING:
    from agglo.rounds.schedule import RoundPlan

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class ForestBuilder:
    """The current clusters, their statistics for ``linkage``, and the forest of all merges so far.

    The id of a cluster is its smallest point.
    """

    def __init__(self, linkage: Linkage, n_points: int, weights: Floats | None = None) -> None:
        self.linkage = linkage
        self.sign = 1 if linkage.kind == "similarity" else -1
        point_statistics = linkage.of_points(np.ones(n_points) if weights is None else weights)
        self.statistics = rows(point_statistics, np.arange(n_points))  # a copy, updated in place
        self.n_clusters = self.n_nodes = n_points
        self.node = np.arange(n_points)  # the tree node of each current cluster
        # A forest over n points has fewer than 2n nodes.
        self.parent = np.full(2 * n_points, -1, np.int32)
        self.value = np.full(2 * n_points, np.nan)
        self.size = np.ones(2 * n_points, np.int32)
        self.round = np.zeros(2 * n_points, np.int32)
        self.records: list[tuple[float, int, int, float]] = []
        self.clock = time.perf_counter()

    def merge(self, source: Ints, target: Ints, similarity: Floats, new_id: Ints, threshold: float) -> Ints:
        """Merge pairs of clusters in one round; return the ids that the merged clusters had before the round.

        ``similarity`` is the linkage value of each pair, where larger is closer. Distances are negated. For every
        cluster, ``new_id`` is the id of the cluster that contains it after the round.
        """
        members = np.unique(np.concatenate([source, target]))
        new, new_index = np.unique(new_id[members], return_inverse=True)
        # A stable sort keeps the merged clusters in order of id, so that sums always add in the same order.
        order = np.argsort(new_index, kind="stable")
        unions = self.linkage.merged_clusters(
            rows(self.statistics, members[order]), segment_starts(new_index[order])
        )
        for column, merged in zip(self.statistics, unions, strict=True):
            column[new] = merged
        new_nodes = self.n_nodes + np.arange(len(new))
        self.parent[self.node[members]] = new_nodes[new_index]
        self.size[new_nodes] = np.bincount(new_index, self.size[self.node[members]])
        lowest = np.full(len(new), np.inf)
        np.minimum.at(lowest, np.searchsorted(new, new_id[source]), similarity)
        self.value[new_nodes] = self.sign * lowest
        self.round[new_nodes] = len(self.records) + 1
        self.node[new] = new_nodes
        self.n_nodes += len(new)
        before, self.n_clusters = self.n_clusters, self.n_clusters - len(members) + len(new)
        now = time.perf_counter()
        self.records.append((threshold, before, self.n_clusters, now - self.clock))
        self.clock = now
        return members

    def forest(self) -> Forest:
        """Return the forest built so far."""
        nodes = slice(self.n_nodes)
        columns = zip(*self.records, strict=True) if self.records else ([], [], [], [])
        rounds = (np.array(c, d) for c, d in zip(columns, (float, np.int64, np.int64, float), strict=True))
        return Forest(self.parent[nodes], self.value[nodes], self.size[nodes], self.round[nodes], *rounds)


def segment_starts(groups: npt.NDArray[Any]) -> Ints:
    """Return the index of the first row of each block of equal consecutive rows in ``groups``."""
    changes = groups[1:] != groups[:-1]
    changed = changes if changes.ndim == 1 else changes.any(axis=1)
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(groups)), bool), changed]))


_MAX_EMPTY = 1024  # compact the pairs only if more than this number of slots are empty


def run(
    graph: NeighborGraph, plan: RoundPlan, constraints: Constraints | None = None, progress: Progress | None = None
) -> Forest:
    """Run the rounds with a :class:`Linkage` object; return the forest. ``plan`` has the rounds' parameters."""
    n = graph.n_points
    linkage = plan.linkage
    assert isinstance(linkage, Linkage)
    builder = ForestBuilder(linkage, n, None if constraints is None else constraints.weights)
    restricted = constraints is not None and constraints.restricts_merges
    allowed = AllowedMerges(n, constraints) if constraints is not None and restricted else None
    pairs = ClusterPairs(graph, builder, allowed)

    def merge_pairs(source: Ints, target: Ints, similarity: Floats, threshold: float) -> None:
        new_id = components(source, target, n) if allowed is None else allowed.merge(source, target, similarity)
        merged = new_id[source] == new_id[target]
        members = builder.merge(source[merged], target[merged], similarity[merged], new_id, threshold)
        pairs.contract(members, new_id)
        if progress is not None:
            progress("rounds", n - builder.n_clusters, n)

    if constraints is not None and len(constraints.must):
        links = constraints.must.astype(np.int64)
        merge_pairs(links[:, 0], links[:, 1], np.full(len(links), np.inf), np.nan)
    thresholds = np.array([-np.inf]) if plan.thresholds is None else builder.sign * plan.thresholds
    keeps_threshold = plan.until_stable or plan.thresholds is None
    step = 0
    while step < len(thresholds):
        slots = pairs.reach(np.float32(thresholds[step]))
        if len(slots) == 0:  # no pair reaches this threshold: skip to the first threshold that a pair may reach
            closest = np.float32(pairs.similarity.max(initial=-np.inf))
            step = max(step + 1, int((thresholds.astype(np.float32) > closest).sum()))
            continue
        source, target, similarity = nearest_neighbors(pairs.ends[slots].astype(np.int64), pairs.similarity[slots])
        if plan.mutual:
            merges = is_mutual(source, target, n)
            source, target, similarity = source[merges], target[merges], similarity[merges]
        threshold = np.nan if plan.thresholds is None else float(plan.thresholds[step])
        merge_pairs(source, target, similarity, threshold)
        step += not keeps_threshold
    return builder.forest()


class ClusterPairs:
    """The pairs of clusters with an edge between them, and the similarity of each pair (larger is closer).

    Each pair has a slot, which is its row in the arrays. If merges turn several pairs into one, the new pair keeps
    one of their slots. The other slots become empty, with similarity -inf. If the linkage is reducible, a new pair
    is evaluated only when it may reach a threshold. Until then its similarity is an upper bound: the largest
    similarity of the old pairs.
    """

    def __init__(self, graph: NeighborGraph, builder: ForestBuilder, allowed: AllowedMerges | None) -> None:
        self.builder = builder
        self.allowed = allowed
        source = np.repeat(np.arange(graph.n_points, dtype=np.int32), np.diff(graph.indptr))
        once = source < graph.indices
        if allowed is not None:
            once &= allowed.check(np.column_stack([source, graph.indices]).astype(np.int64))
        self.ends = np.column_stack([source[once], graph.indices[once]])
        edges = builder.linkage.of_edges(
            self.ends[:, 0].astype(np.int64), self.ends[:, 1].astype(np.int64), graph.weights[once]
        )
        self.edges = rows(edges, np.arange(len(self.ends)))  # a copy, updated in place
        self.similarity = np.full(len(self.ends), np.inf)
        self.is_evaluated = np.zeros(len(self.ends), bool)
        self.n_empty = 0

    def reach(self, threshold: np.float32) -> Ints:
        """Evaluate the pairs that may reach ``threshold``; return the rows (slots) of the pairs that reach it."""
        slots = np.flatnonzero(self.similarity > np.nextafter(threshold, np.float32(-np.inf)))
        self._evaluate(slots[~self.is_evaluated[slots]])
        return slots[self.similarity[slots].astype(np.float32) >= threshold]

    def contract(self, members: Ints, new_id: Ints) -> None:
        """Update the pairs after a round that merged the clusters ``members``; combine pairs that became equal."""
        is_member = np.zeros(len(new_id), bool)
        is_member[members] = True
        slots = np.flatnonzero(is_member[self.ends[:, 0]] | is_member[self.ends[:, 1]])
        slots = slots[self.similarity[slots] > -np.inf]
        old = self.ends[slots]
        new = np.sort(new_id[old], axis=1)
        remains = new[:, 0] != new[:, 1]
        if self.allowed is not None:
            remains &= self.allowed.check(new)
        # Sort by new pair, then by old pair. rounds/reference.py merges the statistics in the same order.
        order = np.lexsort((old[:, 1], old[:, 0], new[:, 1], new[:, 0], ~remains))[: remains.sum()]
        first = segment_starts(new[order])
        kept, emptied = np.split(slots, [len(first)])
        if len(kept):
            parts = slots[order]
            merged = self.builder.linkage.merged_edges(rows(self.edges, parts), first)
            self.similarity[kept] = np.maximum.reduceat(self.similarity[parts], first)
            for column, values in zip(self.edges, merged, strict=True):
                column[kept] = values
            self.ends[kept], self.is_evaluated[kept] = new[order][first], False
            if not self.builder.linkage.reducible:
                self._evaluate(kept)
        self.similarity[emptied] = -np.inf
        self.n_empty += len(emptied)
        if self.n_empty > max(_MAX_EMPTY, len(self.ends) // 2):
            self._compact()

    def _evaluate(self, slots: Ints) -> None:
        """Compute the similarity of the pairs in ``slots``."""
        if len(slots) == 0:
            return
        a, b = (rows(self.builder.statistics, self.ends[slots, end]) for end in (0, 1))
        value = np.asarray(self.builder.linkage.value(a, b, rows(self.edges, slots)), np.float64)
        is_wrong = ~np.isfinite(value)
        if is_wrong.any():
            first, second = self.ends[slots[is_wrong.argmax()]]
            raise ValueError(
                f"linkage {type(self.builder.linkage).__name__} has the value {value[is_wrong.argmax()]} for the "
                f"clusters of points {first} and {second}, but values must be finite: give clusters that must not "
                "merge a value beyond the last threshold"
            )
        self.similarity[slots] = self.builder.sign * value
        self.is_evaluated[slots] = True

    def _compact(self) -> None:
        """Remove the empty slots, whose pairs no longer exist."""
        slots = np.flatnonzero(self.similarity > -np.inf)
        self.ends, self.similarity = self.ends[slots], self.similarity[slots]
        self.is_evaluated = self.is_evaluated[slots]
        self.edges = rows(self.edges, slots)
        self.n_empty = 0


def components(source: Ints, target: Ints, n: int) -> Ints:
    """Merge the clusters that the pairs (source, target) connect; return the new id of each of ``n`` clusters.

    The new id of a cluster is the smallest id in its connected component.
    """
    members, index = np.unique(np.concatenate([source, target]), return_inverse=True)
    a, b = np.split(index, 2)
    links = coo_array((np.ones(len(source), bool), (a, b)), shape=(len(members), len(members)))
    component = connected_components(links, directed=False)[1]
    _, first, inverse = np.unique(component, return_index=True, return_inverse=True)
    new_id = np.arange(n)
    new_id[members] = members[first[inverse]]
    return new_id


def nearest_neighbors(pairs: Ints, similarity: Floats) -> tuple[Ints, Ints, Floats]:
    """Return the clusters in ``pairs``, their nearest neighbours, and the similarities. Ties go to smaller ids."""
    source = np.concatenate([pairs[:, 0], pairs[:, 1]])
    target = np.concatenate([pairs[:, 1], pairs[:, 0]])
    similarity = np.concatenate([similarity, similarity])
    order = np.lexsort((target, -similarity, source))
    source, first = np.unique(source[order], return_index=True)
    return source, target[order][first], similarity[order][first]


def is_mutual(source: Ints, target: Ints, n: int) -> npt.NDArray[np.bool_]:
    """Return whether each ``source`` and its nearest neighbour ``target`` are mutual nearest neighbours."""
    nearest = np.full(n, -1)
    nearest[source] = target
    return np.asarray(nearest[target] == source)


class AllowedMerges:
    """Decides which clusters may merge, by the weights of clusters and the pairs that must not merge."""

    def __init__(self, n: int, constraints: Constraints) -> None:
        self.max_weight = constraints.most
        self.weight = np.ones(n) if constraints.weights is None else constraints.weights.copy()
        self.cannot = np.sort(constraints.cannot_pairs(), axis=1)  # pairs of cluster ids

    def check(self, pairs: Ints) -> npt.NDArray[np.bool_]:
        """Return whether the two clusters of each pair (smaller id, larger id) may merge."""
        n = len(self.weight)
        is_apart = np.isin(pairs @ [n, 1], self.cannot @ [n, 1])
        return np.asarray(~is_apart & (self.weight[pairs].sum(axis=1) <= self.max_weight))

    def merge(self, source: Ints, target: Ints, similarity: Floats) -> Ints:
        """Merge all allowed pairs, from the closest to the farthest; return the new id of each cluster."""
        parent = np.arange(len(self.weight))  # union-find: each id points to a smaller id in the same cluster

        def find(cluster: int) -> int:
            while parent[cluster] != cluster:
                cluster = int(parent[cluster])
            return cluster

        pairs = np.sort(np.column_stack([source, target]), axis=1)
        for x, y in pairs[np.lexsort((pairs[:, 1], pairs[:, 0], -similarity))].tolist():
            a, b = sorted((find(x), find(y)))
            if a != b and self.check(np.array([[a, b]])).all():
                parent[b] = a
                self.weight[a] += self.weight[b]
                self.cannot = np.sort(np.where(self.cannot == b, a, self.cannot), axis=1)
        while (parent != parent[parent]).any():
            parent = parent[parent]
        return parent
