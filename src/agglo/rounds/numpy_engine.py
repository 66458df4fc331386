"""The rounds for any linkage, in NumPy, with no more work than changes ask for.

It returns what :mod:`agglo.reference` does, and is faster for two reasons. A cluster joins its nearest neighbour
only if that reaches the threshold of the round, so that no pair is looked at that does not reach it. And merges
change only the pairs of clusters that take part in them, so that all others stay as they are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from agglo.neighbors.graph import NeighborGraph
from agglo.progress import Progress
from agglo.rounds.constraints import Constraints, check_constraints
from agglo.rounds.forest_builder import ForestBuilder, segment_starts
from agglo.rounds.linkage import rows
from agglo.rounds.plan import RoundPlan
from agglo.tree.forest import Forest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_TIDY = 1024  # empty places of pairs that are not worth being cleared away


def run(
    graph: NeighborGraph, plan: RoundPlan, constraints: Constraints | None = None, progress: Progress | None = None
) -> Forest:
    """The forest that a plan with a linkage of one's own makes of ``graph``."""
    n = graph.n_points
    linkage = plan.linkage
    assert not isinstance(linkage, str)
    builder = ForestBuilder(linkage, n, None if constraints is None else constraints.weights)
    limits = Limits(n, constraints) if constraints is not None and constraints.limited else None
    pairs = Pairs(graph, builder, limits)

    def join(source: Ints, target: Ints, close: Floats, threshold: float) -> None:
        joined = components(source, target, n) if limits is None else limits.united(source, target, close)
        kept = joined[source] == joined[target]
        members = builder.merge(source[kept], target[kept], close[kept], joined, threshold)
        pairs.merge(members, joined)
        if progress is not None:
            progress("rounds", n - builder.n_clusters, n)

    if constraints is not None and len(constraints.must):
        links = constraints.must.astype(np.int64)
        join(links[:, 0], links[:, 1], np.full(len(links), np.inf), np.nan)
    thresholds = np.array([-np.inf]) if plan.thresholds is None else builder.sign * plan.thresholds
    stay = plan.until_stable or plan.thresholds is None
    step = 0
    while step < len(thresholds):
        reach = pairs.reaching(np.float32(thresholds[step]))
        if len(reach) == 0:  # on to the first threshold that some pair may reach
            most = np.float32(pairs.close.max(initial=-np.inf))
            step = max(step + 1, int((thresholds.astype(np.float32) > most).sum()))
            continue
        source, target, close = nearest_neighbors(pairs.ends[reach].astype(np.int64), pairs.close[reach])
        if plan.mutual:
            joins = mutual(source, target, n)
            source, target, close = source[joins], target[joins], close[joins]
        join(source, target, close, np.nan if plan.thresholds is None else float(plan.thresholds[step]))
        step += not stay
    return builder.forest()


class Pairs:
    """The pairs of clusters with an edge between them, and how close they are, larger being closer.

    Where pairs become one, all places but one are left empty, with a closeness of -inf. With a reducible linkage a
    new pair is not evaluated before it has to be: until then it counts as no closer than the closest of its parts.
    """

    def __init__(self, graph: NeighborGraph, builder: ForestBuilder, limits: Limits | None) -> None:
        self.builder = builder
        self.limits = limits
        source = np.repeat(np.arange(graph.n_points, dtype=np.int32), np.diff(graph.indptr))
        once = source < graph.indices
        if limits is not None:
            once &= limits.may(np.column_stack([source, graph.indices]).astype(np.int64))
        self.ends = np.column_stack([source[once], graph.indices[once]])
        edges = builder.linkage.of_edges(
            self.ends[:, 0].astype(np.int64), self.ends[:, 1].astype(np.int64), graph.weights[once]
        )
        self.edges = rows(edges, np.arange(len(self.ends)))  # copies
        self.close = np.full(len(self.ends), np.inf)
        self.evaluated = np.zeros(len(self.ends), bool)
        self.empty = 0  # places

    def reaching(self, threshold: np.float32) -> Ints:
        """The places of the pairs that reach a threshold."""
        may = np.flatnonzero(self.close > np.nextafter(threshold, np.float32(-np.inf)))
        self._evaluate(may[~self.evaluated[may]])
        return may[self.close[may].astype(np.float32) >= threshold]

    def merge(self, members: Ints, joined: Ints) -> None:
        """Contract the pairs of clusters that took part in a round."""
        changed = np.zeros(len(joined), bool)
        changed[members] = True
        place = np.flatnonzero(changed[self.ends[:, 0]] | changed[self.ends[:, 1]])
        place = place[self.close[place] > -np.inf]
        old = self.ends[place]
        new = np.sort(joined[old], axis=1)
        apart = new[:, 0] != new[:, 1]
        if self.limits is not None:
            apart &= self.limits.may(new)
        # In order of the new pairs, and those that become one in the order of the old ones.
        order = np.lexsort((old[:, 1], old[:, 0], new[:, 1], new[:, 0], ~apart))[: apart.sum()]
        first = segment_starts(new[order])
        kept, left = np.split(place, [len(first)])
        if len(kept):
            parts = place[order]
            merged = self.builder.linkage.merged_edges(rows(self.edges, parts), first)
            self.close[kept] = np.maximum.reduceat(self.close[parts], first)
            for column, values in zip(self.edges, merged, strict=True):
                column[kept] = values
            self.ends[kept], self.evaluated[kept] = new[order][first], False
            if not self.builder.linkage.reducible:
                self._evaluate(kept)
        self.close[left] = -np.inf
        self.empty += len(left)
        if self.empty > max(_TIDY, len(self.ends) // 2):
            self._tidy()

    def _evaluate(self, place: Ints) -> None:
        if len(place) == 0:
            return
        a, b = (rows(self.builder.statistics, self.ends[place, end]) for end in (0, 1))
        value = np.asarray(self.builder.linkage.value(a, b, rows(self.edges, place)), np.float64)
        wrong = ~np.isfinite(value)
        if wrong.any():
            first, second = self.ends[place[wrong.argmax()]]
            raise ValueError(
                f"linkage {type(self.builder.linkage).__name__} has the value {value[wrong.argmax()]} for the "
                f"clusters of points {first} and {second}, but values must be finite: give clusters that are not "
                "to be joined a value beyond the last threshold"
            )
        self.close[place] = self.builder.sign * value
        self.evaluated[place] = True

    def _tidy(self) -> None:
        there = np.flatnonzero(self.close > -np.inf)
        self.ends, self.close, self.evaluated = self.ends[there], self.close[there], self.evaluated[there]
        self.edges = rows(self.edges, there)
        self.empty = 0


def components(source: Ints, target: Ints, n: int) -> Ints:
    """The new name of each cluster, its component's smallest, if clusters are joined by these pairs."""
    members, place = np.unique(np.concatenate([source, target]), return_inverse=True)
    ends = np.split(place, 2)
    links = coo_array((np.ones(len(source), bool), (ends[0], ends[1])), shape=(len(members), len(members)))
    _, first, which = np.unique(
        connected_components(links, directed=False)[1], return_index=True, return_inverse=True
    )
    joined = np.arange(n)
    joined[members] = members[first[which]]
    return joined


class Limits:
    """The clusters of a run, as far as it matters which of them may be joined."""

    def __init__(self, n: int, constraints: Constraints | None) -> None:
        given = constraints or check_constraints(n)
        self.most = given.most
        self.weight = np.ones(n) if given.weights is None else given.weights.copy()
        self.cannot = np.sort(given.all_cannot(), axis=1)  # pairs of clusters, by name

    def may(self, pairs: Ints) -> npt.NDArray[np.bool_]:
        """Which pairs of clusters may be joined; the smaller name is the first of a pair."""
        n = len(self.weight)
        allowed = ~np.isin(pairs @ [n, 1], self.cannot @ [n, 1])
        return np.asarray(allowed & (self.weight[pairs].sum(axis=1) <= self.most))

    def united(self, source: Ints, target: Ints, close: Floats) -> Ints:
        """The new name of every cluster, once the pairs are joined from close to far, as far as they may be."""
        up = np.arange(len(self.weight))  # a smaller name of the same cluster, in the end the smallest

        def root(i: int) -> int:
            while up[i] != i:
                i = int(up[i])
            return i

        pairs = np.sort(np.column_stack([source, target]), axis=1)
        for x, y in pairs[np.lexsort((pairs[:, 1], pairs[:, 0], -close))].tolist():
            a, b = sorted((root(x), root(y)))
            if a != b and self.may(np.array([[a, b]])).all():
                up[b] = a
                self.weight[a] += self.weight[b]
                self.cannot = np.sort(np.where(self.cannot == b, a, self.cannot), axis=1)
        while (up != up[up]).any():
            up = up[up]
        return up


def nearest_neighbors(pairs: Ints, close: Floats) -> tuple[Ints, Ints, Floats]:
    """For each cluster with a neighbour: itself, its nearest neighbour and how close; ties to the smaller name."""
    source = np.concatenate([pairs[:, 0], pairs[:, 1]])
    target = np.concatenate([pairs[:, 1], pairs[:, 0]])
    close = np.concatenate([close, close])
    order = np.lexsort((target, -close, source))
    source, first = np.unique(source[order], return_index=True)
    return source, target[order][first], close[order][first]


def mutual(source: Ints, target: Ints, n: int) -> npt.NDArray[np.bool_]:
    """Which clusters are the nearest neighbour of their own."""
    back = np.full(n, -1)
    back[source] = target
    return np.asarray(back[target] == source)
