"""Condense a tree: keep the few inner nodes that describe it best, and drop all other inner nodes."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import exp, log
from agglo._validation import check_cluster_size
from agglo.tree.persistent_round import rescale_heights

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]

_ROUND_FACTS = (
    "graph_clusters",
    "copies",
    "must_link",
)  # entries of `about` that describe the rounds of the full tree


def condense(tree: Hierarchy, branching: SupportsFloat = 2.0, min_size: SupportsIndex | None = None) -> Hierarchy:
    """Return a smaller tree with all leaves and the main inner nodes; see :meth:`agglo.Hierarchy.condense`."""
    ratio = check_branching(branching)
    smallest = default_min_size(tree.n_leaves)
    if min_size is not None:
        smallest = check_cluster_size("min_size", min_size)
    nodes = select_nodes(tree, ratio, smallest)
    return keep_nodes(tree, nodes, {"condensed": {"branching": ratio, "min_size": smallest}})


def default_min_size(n_leaves: int) -> int:
    """Return the default of ``min_size``: an eighth of the cube root of the number of points, at least 2.

    This is 3 for 10,000 points and 13 for a million. Real classes get larger with more points, but slowly. With
    this size, even classes of five points remain visible in a tree of 5,000 points.
    """
    cube_root: float = exp(log(n_leaves) / 3)
    return max(2, math.ceil(cube_root / 8))


def select_nodes(tree: Hierarchy, branching: float, min_size: int) -> npt.NDArray[np.int64]:
    """Return the inner nodes to keep, in ascending order, so that the condensed tree has the lowest cost.

    The result is exact. The root is always kept. Nodes of fewer than ``min_size`` points are never kept. The cost
    has two parts:

    1. Dropping a merge costs its information times a difference of two levels: the level of its lowest kept
       ancestor minus its own level. A reader sees the merge at that ancestor.
    2. A kept node costs ``log(branching) ** 2 / 2`` for each of its points.

    The information of a merge is the entropy of its children's shares times its number of points. It is large if
    the children are of similar size, and small if a cluster absorbs single points.

    The level of a node is the mean of three measures of its position. Each measure is 0 for a leaf and log(n) for
    the root:

    - the logarithm of its size: it grows little while the node only absorbs single points;
    - the mean over all points of the logarithm of their cluster's size after the round of the node: it grows while
      other clusters merge and the node persists;
    - its height as a share of the height of the root, times log(n). Heights are rescaled as for
      :func:`agglo.tree.persistent_round.persistent_round`, so that their unit does not matter.

    So a node is kept if its parts have many points and if it persists for long. If all clusters grow
    equally, a difference of levels of g costs about g² / 2 for each point. The best difference is then
    ``log(branching)``, so a kept node has ``branching`` children.

    The core solves this in O(n log n) time. For a given node, the least cost of its descendants is a concave,
    piecewise linear function of the level of its lowest kept ancestor.
    """
    if tree.n_leaves == 1:
        return np.empty(0, np.int64)
    information, level = _measure_merges(tree)
    size = tree.size.astype(np.float64)
    allowed = (tree.size >= min_size) & (tree.round > 0)
    price = size * (log(branching) ** 2 / 2)
    kept = _core.select_kept_nodes(tree.parent, (level, information, price, allowed.view(np.uint8)))
    return np.flatnonzero(kept)


def _measure_merges(tree: Hierarchy) -> tuple[Floats, Floats]:
    """Return the information and the level of every node; see :func:`select_nodes`."""
    size = tree.size.astype(np.float64)
    log_size = log(size)
    total = size * log_size
    parts = np.bincount(tree.parent[:-1], total[:-1], tree.n_nodes)
    information = np.maximum(total - parts, 0.0)  # negative only by rounding
    by_round = np.cumsum(np.bincount(tree.round, information)) / tree.n_leaves
    height = rescale_heights(tree, tree.height)
    share = height / height[-1] if height[-1] > 0 else height
    return information, (log_size + by_round[tree.round] + log(tree.n_leaves) * share) / 3


def keep_nodes(tree: Hierarchy, nodes: npt.NDArray[np.int64], about: dict[str, Any]) -> Hierarchy:
    """Return a tree of the leaves and of the inner nodes ``nodes``, which are ascending and include the root.

    Node ``n_leaves + i`` of the result is ``nodes[i]``. The children of dropped nodes become children of their
    lowest kept ancestor. ``about`` contains further entries for the attribute ``about``.
    """
    n = tree.n_leaves
    if n == 1:
        return dataclasses.replace(tree, about=_describe(tree, about))
    old = np.concatenate([np.arange(n), nodes])
    parent = contract(tree, nodes)
    old_rounds, round = np.unique(tree.round[old], return_inverse=True)
    # Without 0, which means leaves, and without the explicit root.
    old_rounds = old_rounds[(old_rounds > 0) & (old_rounds <= len(tree.rounds))]
    # Per round: children of the round's nodes, minus these nodes.
    n_merged = np.bincount(round[parent[:-1]]) - np.bincount(round)
    after = n - np.cumsum(n_merged[1:])[: len(old_rounds)]
    before = np.append(n, after)[: len(old_rounds)]
    threshold, seconds = tree.rounds.threshold[old_rounds - 1], np.full(len(old_rounds), np.nan)
    rounds = dataclasses.replace(tree.rounds, threshold=threshold, before=before, after=after, seconds=seconds)
    return dataclasses.replace(
        tree,
        parent=parent,
        height=tree.height[old],
        size=tree.size[old],
        round=round.astype(np.int32),
        rounds=rounds,
        about=_describe(tree, about),
    )


def contract(tree: Hierarchy, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return the parent of each leaf and of each of ``nodes``, as ids of the tree of :func:`keep_nodes`."""
    ids = np.full(tree.n_nodes, np.inf)
    ids[nodes] = tree.n_leaves + np.arange(len(nodes))
    lowest_kept = _core.min_over_ancestors(tree.parent, ids)  # ids grow towards the root
    children = np.concatenate([np.arange(tree.n_leaves), nodes[:-1]])
    return np.append(lowest_kept[tree.parent[children]], -1.0).astype(np.int32)


def _describe(tree: Hierarchy, about: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.about.items() if name not in _ROUND_FACTS} | about


def check_branching(branching: SupportsFloat) -> float:
    """Return ``branching`` as a float; raise unless it is a finite number above 1."""
    try:
        ratio = float(branching)
    except (TypeError, ValueError):
        raise TypeError(f"branching={branching!r} is not a number: pass a number above 1") from None
    if not (1 < ratio < math.inf):
        raise ValueError(f"branching={ratio:g} is not a typical number of children: pass a finite number above 1")
    return ratio
