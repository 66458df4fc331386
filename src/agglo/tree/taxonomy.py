"""Taxonomies: nested cuts of a tree, with about the wanted numbers of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import exp, log
from agglo._validation import check_cluster_size, check_integer
from agglo.tree.condense import contract, keep_nodes
from agglo.tree.persistent_round import persistent_round, rescale_heights

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_COARSEST = 2.5  # layers that are coarser than the persistent round have more clusters than this


class Taxonomy(NamedTuple):
    """Nested levels of clusters, from coarse to fine.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [5.0], [6.0], [20.0]]
    >>> taxonomy = agglo.hac(agglo.neighbor_graph(X, 4, "euclidean")).taxonomy([2, 3])
    >>> taxonomy
    Taxonomy(labels=array([[0, 0, 0, 0, 1],
           [0, 0, 1, 1, 2]]), tree=Hierarchy(5 leaves, 9 nodes, 4 rounds, height 17))
    """

    labels: Ints
    """The label of each point, one row per level. Labels are numbered in order of first appearance."""
    tree: Hierarchy
    """A tree of the clusters of all levels and the root. The points are the children of the finest clusters."""


def taxonomy(
    tree: Hierarchy,
    n_clusters: Sequence[SupportsIndex],
    min_children: SupportsIndex = 2,
    max_size: SupportsIndex | None = None,
) -> Taxonomy:
    """Cut the tree into nested levels; see :meth:`agglo.Hierarchy.taxonomy`."""
    wanted = _check_numbers(n_clusters, tree.n_leaves)
    fewest = check_integer("min_children", min_children, "a number of children")
    if fewest < 2:
        raise ValueError(f"min_children={fewest} is not a number of parts: pass 2 or more")
    largest = tree.n_leaves if max_size is None else check_cluster_size("max_size", max_size)
    levels = _cut_levels(tree, wanted[::-1], fewest, largest)[::-1]
    is_kept = np.zeros(tree.n_nodes, np.bool_)
    is_kept[-1] = True
    for labels in levels:
        is_kept[tree.nodes(labels)] = True
    is_kept[: tree.n_leaves] = False
    about = {"taxonomy": {"n_clusters": wanted, "min_children": fewest, "max_size": largest}}
    return Taxonomy(np.stack(levels), keep_nodes(tree, np.flatnonzero(is_kept), about))


def layers(tree: Hierarchy, n: SupportsIndex) -> Ints:
    """Return the labels of up to ``n`` levels, from fine to coarse; see :meth:`agglo.Hierarchy.layers`."""
    n_layers = check_integer("n", n, "a number of layers")
    if n_layers < 1:
        raise ValueError(f"n={n_layers} is not a number of layers: pass 1 or more")
    persistent = tree.labels(round=persistent_round(tree))
    shares = np.bincount(persistent) / tree.n_leaves
    number = exp(-(shares * log(shares)).sum())  # the effective number of clusters
    ratio = max(2.0, exp(log(max(number / _COARSEST, 1.0)) / n_layers))
    wanted = [number]
    while len(wanted) < n_layers and wanted[-1] / ratio > _COARSEST:
        wanted.append(wanted[-1] / ratio)
    while len(wanted) < n_layers:
        wanted.insert(0, wanted[0] * ratio)
    levels = _cut_levels(tree, [k for k in wanted if k < tree.n_leaves], 2, tree.n_leaves)
    counts = [int(labels.max()) + 1 for labels in levels]
    is_layer = [1 < k < tree.n_leaves and k not in counts[:i] for i, k in enumerate(counts)]
    chosen = [labels for labels, is_chosen in zip(levels, is_layer, strict=True) if is_chosen]
    return np.stack(chosen or [persistent])


def _cut_levels(tree: Hierarchy, wanted: Sequence[float], min_children: int, max_size: int) -> list[Ints]:
    """Return the labels of nested cuts, from fine to coarse. ``wanted`` contains decreasing cluster counts."""
    if tree.n_leaves == 1:
        return [np.zeros(1, np.int64) for _ in wanted]
    costs = compute_cophenetic_costs(tree)
    is_allowed = (tree.size <= max_size) & (tree.round > 0)
    levels: list[Ints] = []
    for number in wanted:
        is_allowed[-1] = True
        nodes = np.flatnonzero(is_allowed)
        levels.append(_cut_best(tree, nodes, costs[nodes], number))
        # A cluster of the next level is a cluster of this level, or a union of at least min_children clusters.
        clusters = tree.nodes(levels[-1])
        is_cluster = np.zeros(tree.n_nodes, np.int64)
        is_cluster[clusters] = 1
        n_parts = _core.sum_descendants(tree.parent, is_cluster)
        is_allowed = (is_cluster == 1) | (n_parts >= min_children)
        is_allowed[: tree.n_leaves] = False
        # The clusters of this level are never split, so they cost nothing.
        costs = costs - _core.sum_descendants(tree.parent, np.where(is_cluster == 1, costs, 0.0))
    return levels


def _cut_best(tree: Hierarchy, nodes: Ints, costs: Floats, number: float) -> Ints:
    """Return the labels of the best cut into about ``number`` clusters. Each cluster is in ``nodes`` or a point.

    The root is the last of ``nodes``. A partition into one cluster is returned only if ``number`` is 1.
    """
    parent = contract(tree, nodes)
    node_costs = np.concatenate([np.zeros(tree.n_leaves), np.maximum(costs, 0.0)])  # negative only by rounding
    critical, lams, _, counts = _core.compute_price_path(parent, node_costs, tree.n_leaves)
    candidates = np.flatnonzero(counts > 1) if number > 1 and counts[0] > 1 else np.arange(len(counts))
    piece = candidates[np.abs(log(counts[candidates] / number)).argmin()]
    merged = np.zeros(tree.n_nodes, np.bool_)
    merged[nodes] = critical[tree.n_leaves :] <= lams[piece]
    return tree.partition(merged)


def compute_cophenetic_costs(tree: Hierarchy) -> Floats:
    """Return the k-means cost of the leaves of each node. Heights are used as squared distances of leaves.

    The squared distance of two points is the height of their lowest common ancestor, rescaled as for
    :func:`agglo.tree.persistent_round.persistent_round`. The cost of n points is the sum over their pairs, divided
    by n. For vectors, this is the sum of squared distances to their mean.
    """
    size = tree.size.astype(np.float64)
    squares = np.bincount(tree.parent[:-1], size[:-1] ** 2, tree.n_nodes)
    n_pairs = np.where(tree.round > 0, (size**2 - squares) / 2, 0.0)  # pairs that the node merges
    costs: Floats = _core.sum_descendants(tree.parent, n_pairs * rescale_heights(tree, tree.height)) / size
    return costs


def compute_split_limits(tree: Hierarchy) -> Floats:
    """Return the split limit of each node: the largest price per cluster at which the best cut splits the node.

    So taxonomies with more and more clusters split the nodes with larger limits first. No child has a larger limit
    than its parent. Limits of leaves are 0.
    """
    if tree.n_leaves == 1:
        return np.zeros(1)
    critical = _core.compute_price_path(tree.parent, compute_cophenetic_costs(tree), tree.n_leaves)[0]
    limits: Floats = _core.min_over_ancestors(tree.parent, critical)
    return limits


def _check_numbers(n_clusters: Sequence[SupportsIndex], n_leaves: int) -> list[int]:
    """Return ``n_clusters`` as ints; raise unless they increase and are between 1 and ``n_leaves``."""
    numbers = [check_integer("n_clusters", number, "a number of clusters") for number in n_clusters]
    if not numbers or numbers != sorted(set(numbers)):
        raise ValueError(f"n_clusters={numbers} must increase: pass one or more numbers, from coarse to fine")
    if numbers[0] < 1 or numbers[-1] > n_leaves:
        raise ValueError(
            f"n_clusters={numbers} is impossible: the tree has {n_leaves} leaves, "
            f"so pass numbers from 1 to {n_leaves}"
        )
    return numbers
