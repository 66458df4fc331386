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
from agglo.rounds.algorithms import Plan
from agglo.rounds.constraints import Constraints
from agglo.rounds.linkage import rows
from agglo.rounds.reference import Limits, mutual, nearest_neighbors
from agglo.tree.builder import Growth, starts
from agglo.tree.hierarchy import Forest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_TIDY = 1024  # empty places of pairs that are not worth being cleared away


def run(
    graph: NeighborGraph, plan: Plan, constraints: Constraints | None = None, progress: Progress | None = None
) -> Forest:
    """The forest that a plan with a linkage of one's own makes of ``graph``."""
    n = graph.n_points
    linkage = plan.linkage
    assert not isinstance(linkage, str)
    growth = Growth(linkage, n, None if constraints is None else constraints.weights)
    limits = Limits(n, constraints) if constraints is not None and constraints.limited else None
    pairs = Pairs(graph, growth, limits)

    def join(source: Ints, target: Ints, close: Floats, threshold: float) -> None:
        joined = components(source, target, n) if limits is None else limits.united(source, target, close)
        kept = joined[source] == joined[target]
        members = growth.join(source[kept], target[kept], close[kept], joined, threshold)
        pairs.merge(members, joined)
        if progress is not None:
            progress("rounds", n - growth.left, n)

    if constraints is not None and len(constraints.must):
        links = constraints.must.astype(np.int64)
        join(links[:, 0], links[:, 1], np.full(len(links), np.inf), np.nan)
    thresholds = np.array([-np.inf]) if plan.thresholds is None else growth.sign * plan.thresholds
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
    return growth.forest()


class Pairs:
    """The pairs of clusters with an edge between them, and how close they are, larger being closer.

    Where pairs become one, all places but one are left empty, with a closeness of -inf. With a reducible linkage a
    new pair is not evaluated before it has to be: until then it counts as no closer than the closest of its parts.
    """

    def __init__(self, graph: NeighborGraph, growth: Growth, limits: Limits | None) -> None:
        self.growth = growth
        self.limits = limits
        source = np.repeat(np.arange(graph.n_points, dtype=np.int32), np.diff(graph.indptr))
        once = source < graph.indices
        if limits is not None:
            once &= limits.may(np.column_stack([source, graph.indices]).astype(np.int64))
        self.ends = np.column_stack([source[once], graph.indices[once]])
        edges = growth.linkage.of_edges(
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
        first = starts(new[order])
        kept, left = np.split(place, [len(first)])
        if len(kept):
            parts = place[order]
            merged = self.growth.linkage.merged_edges(rows(self.edges, parts), first)
            self.close[kept] = np.maximum.reduceat(self.close[parts], first)
            for column, values in zip(self.edges, merged, strict=True):
                column[kept] = values
            self.ends[kept], self.evaluated[kept] = new[order][first], False
            if not self.growth.linkage.reducible:
                self._evaluate(kept)
        self.close[left] = -np.inf
        self.empty += len(left)
        if self.empty > max(_TIDY, len(self.ends) // 2):
            self._tidy()

    def _evaluate(self, place: Ints) -> None:
        if len(place) == 0:
            return
        a, b = (rows(self.growth.statistics, self.ends[place, end]) for end in (0, 1))
        value = np.asarray(self.growth.linkage.value(a, b, rows(self.edges, place)), np.float64)
        wrong = ~np.isfinite(value)
        if wrong.any():
            first, second = self.ends[place[wrong.argmax()]]
            raise ValueError(
                f"linkage {type(self.growth.linkage).__name__} has the value {value[wrong.argmax()]} for the "
                f"clusters of points {first} and {second}, but values must be finite: give clusters that are not "
                "to be joined a value beyond the last threshold"
            )
        self.close[place] = self.growth.sign * value
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
