"""Slow reference implementation that builds the tree from the partition after each round."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph
from agglo.rounds.schedule import RoundPlan
from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Hierarchy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
RoundRecord = tuple[float, Ints, Floats]
"""A round's threshold, and after the round: cluster id per point, linkage value per cluster id (NaN: no merge)."""


def plan_thresholds(plan: RoundPlan, sign: int) -> tuple[Floats, npt.NDArray[np.float32]]:
    """Return the thresholds, and the smallest float32 similarity that reaches each threshold.

    ``sign`` is 1 for similarities and -1 for distances. If ``plan`` has no thresholds, return one threshold, NaN,
    which every similarity reaches.
    """
    thresholds = np.array([np.nan]) if plan.thresholds is None else plan.thresholds
    return thresholds, np.where(np.isnan(thresholds), -np.inf, sign * thresholds).astype(np.float32)


def farthest_merge(source: Ints, similarity: Floats, new: Ints) -> Floats:
    """Return, for each cluster id, the smallest similarity of the pairs that merged into it, or NaN if none."""
    farthest = np.full(len(new), np.nan)
    np.fmin.at(farthest, new[source], similarity)
    return farthest


def build_forest(n: int, rounds: Iterable[RoundRecord]) -> Forest:
    """Build the forest with one node per merged cluster; nodes are sorted by round, then by smallest point."""
    parent, value, size, made_in = [-1] * n, [np.nan] * n, [1] * n, [0] * n
    node, old = list(range(n)), np.arange(n)
    records: list[tuple[float, int, int]] = []
    for threshold, new, values in rounds:
        for cluster in np.flatnonzero(~np.isnan(values)):
            for child in np.unique(old[new == cluster]):
                parent[node[child]] = len(parent)
            node[cluster] = len(parent)
            parent.append(-1)
            value.append(values[cluster])
            size.append(int((new == cluster).sum()))
            made_in.append(len(records) + 1)
        records.append((threshold, len(np.unique(old)), len(np.unique(new))))
        old = new
    return _to_forest(parent, value, size, made_in, records)


def sort_merges(forest: Forest, kind: str) -> Forest:
    """Sort the merges of HAC by height; return a forest with one merge per round.

    If a parent is lower than a child, the height of the child determines the parent's position.
    """
    n = int((forest.round == 0).sum())
    height = -forest.value if kind == "similarity" else forest.value.copy()
    for node, parent in enumerate(forest.parent):  # children come before their parents
        if node >= n and parent >= 0:
            height[parent] = max(height[parent], height[node])
    order = [*range(n), *sorted(range(n, len(height)), key=lambda node: height[node])]
    place = {old: new for new, old in enumerate(order)} | {-1: -1}
    parent = [place[int(forest.parent[node])] for node in order]
    merges = range(len(height) - n)
    records = [(np.nan, n - merge, n - merge - 1) for merge in merges]
    made_in = [0] * n + [1 + merge for merge in merges]
    return _to_forest(parent, forest.value[order], forest.size[order], made_in, records)


def _to_forest(
    parent: list[int],
    value: npt.ArrayLike,
    size: npt.ArrayLike,
    made_in: list[int],
    records: list[tuple[float, int, int]],
) -> Forest:
    threshold, before, after = np.array(records, np.float64).reshape(-1, 3).T
    parents, sizes, rounds = (np.array(column, np.int32) for column in (parent, size, made_in))
    counts = before.astype(np.int64), after.astype(np.int64)
    return Forest(parents, np.array(value), sizes, rounds, threshold, *counts, np.zeros(len(records)))


def build_tree(graph: NeighborGraph, plan: RoundPlan, rounds: Iterable[RoundRecord]) -> Hierarchy:
    """Build the tree from the rounds: convert linkage values to heights, and add a root above several roots."""
    forest = build_forest(graph.n_points, rounds)
    if isinstance(plan.linkage, str):
        kind, missing, name = graph.kind, graph.missing, str(plan.linkage)
        origin = graph.weights.max(initial=1.0)
    else:
        kind, missing, name = plan.linkage.kind, "ignore", type(plan.linkage).__name__
        origin = forest.value[~np.isnan(forest.value)].max(initial=1.0)
    if plan.mutual:
        forest = sort_merges(forest, kind)
    about = {"linkage": name, "metric": graph.metric, **plan.about}
    assert missing is not None
    return Hierarchy.from_forest(forest, kind=kind, missing=missing, origin=float(origin), about=about)
