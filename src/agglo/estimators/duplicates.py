"""Cluster duplicates (equal rows) as one point: map constraints to groups of duplicates, and expand the tree.

A group of duplicates behaves like points with must-links between them, except that the whole group has the edges
of one point; see :mod:`agglo.rounds.constraints`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.points.points import Duplicates, Ids, group_by
from agglo.rounds.constraints import Constraints
from agglo.tree.hierarchy import Hierarchy, Rounds


def separate_constrained_points(duplicates: Duplicates, constraints: Constraints) -> Duplicates:
    """Split groups of duplicates that cannot be clustered as one point; return the new groups.

    A point with a must-link or a cannot-link forms its own group. The weight of a group does not exceed the
    maximum weight of a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from agglo.estimators.duplicates import separate_constrained_points
    >>> from agglo.points.points import find_duplicates
    >>> from agglo.rounds.constraints import check_constraints
    >>> duplicates = find_duplicates(np.array([[1.0], [3.0], [1.0], [1.0]]))
    >>> separate_constrained_points(duplicates, check_constraints(4, cannot_link=[[1, 3]])).inverse
    array([0, 1, 0, 2])
    """
    group, n = duplicates.inverse.copy(), len(duplicates.inverse)
    group[constraints.constrained_points()] = n + constraints.constrained_points()  # a group id that is unique
    if np.isfinite(constraints.most):
        weights = np.ones(n) if constraints.weights is None else constraints.weights
        group = _split_heavy_groups(group, weights, constraints.most)
    return group_by(group)


def sum_weights(duplicates: Duplicates, constraints: Constraints) -> npt.NDArray[np.float64] | None:
    """Return the total weight of each group of duplicates, or None if all weights are 1."""
    if not duplicates.n_duplicates:
        return constraints.weights
    return np.bincount(duplicates.inverse, constraints.weights).astype(np.float64)


def map_constraints(duplicates: Duplicates, constraints: Constraints) -> Constraints:
    """Convert constraints on points to constraints on groups of duplicates."""
    inverse = duplicates.inverse.astype(np.int32)
    groups = np.column_stack([inverse[constraints.groups[:, 0]], constraints.groups[:, 1]])
    return replace(
        constraints,
        must=inverse[constraints.must],
        cannot=inverse[constraints.cannot],
        groups=groups,
        weights=sum_weights(duplicates, constraints),
    )


def map_nodes(tree: Hierarchy, duplicates: Duplicates) -> Ids:
    """Return, for each node of ``tree``, its id in the tree that :func:`expand_duplicates` returns.

    If a leaf represents several duplicates, it is mapped to the node whose children are these duplicates.
    """
    n, count = len(duplicates.inverse), np.bincount(duplicates.inverse)
    linked = _is_link_node(tree)
    node = np.full(tree.n_nodes, n)
    node[: len(count)] = duplicates.first
    # For each parent of leaves, the smallest point below it. Only nodes that must-links created use this value.
    np.minimum.at(node, tree.parent[: len(count)], duplicates.first)
    early = np.flatnonzero(linked | np.append(count > 1, np.zeros(tree.n_nodes - len(count), bool)))
    early = early[np.argsort(node[early])]  # nodes of the first round, in order of their smallest point id
    node[early] = n + np.arange(len(early))
    later = (tree.round > 0) & ~linked
    node[later] = n + len(early) + np.arange(later.sum())
    return node


def expand_duplicates(tree: Hierarchy, duplicates: Duplicates, constraints: Constraints) -> Hierarchy:
    """Convert a tree whose leaves are groups of duplicates to a tree whose leaves are all points.

    Each group of several points becomes a node of height 0. These nodes form a first round without a threshold.
    If ``tree`` already has a first round that merges must-link points, the nodes are added to that round.
    """
    if not duplicates.n_duplicates:
        return tree
    n, inverse, count = len(duplicates.inverse), duplicates.inverse, np.bincount(duplicates.inverse)
    has_links = bool(_is_link_node(tree).any())
    node = map_nodes(tree, duplicates)
    n_nodes = int(node.max()) + 1
    parent = np.full(n_nodes, -1, np.int32)
    parent[node[:-1]] = node[tree.parent[:-1]]
    is_duplicate = count[inverse] > 1
    parent[:n][is_duplicate] = node[inverse[is_duplicate]]
    leaf_sizes = np.zeros(tree.n_nodes, np.int64)
    leaf_sizes[: len(count)] = count
    size, height, round = np.ones(n_nodes, np.int32), np.zeros(n_nodes), np.zeros(n_nodes, np.int32)
    is_inner = node >= n
    size[node] = _core.sum_descendants(tree.parent, leaf_sizes)
    height[node] = tree.height
    round[node[is_inner]] = np.where(tree.round[is_inner] == 0, 1, tree.round[is_inner] + (not has_links))
    link_round = tree.rounds[0] if has_links else None
    first_round = {
        "threshold": np.nan,
        "before": n,
        "after": len(count) if link_round is None else link_round.after,
        "seconds": np.nan if link_round is None else link_round.seconds,
    }
    columns = {key: np.append(value, getattr(tree.rounds, key)[has_links:]) for key, value in first_round.items()}
    about = {**tree.about, "copies": duplicates.n_duplicates}
    about.pop("weight")
    return Hierarchy(parent, height, size, round, Rounds(**columns), about | constraints.about())


def _is_link_node(tree: Hierarchy) -> npt.NDArray[np.bool_]:
    """Return, for each node, whether it was created by merging must-link points."""
    return np.asarray((tree.round == 1) & ("must_link" in tree.about))


def _split_heavy_groups(group: Ids, weights: npt.NDArray[np.float64], max_weight: float) -> Ids:
    """Split groups whose total weight exceeds ``max_weight``; return the new group of each point.

    All parts of a group have the same number of points, except that the last part may have fewer. A part with this
    number of points would not exceed ``max_weight`` even if all its points had the weight of the heaviest point.
    """
    _, inverse, count = np.unique(group, return_inverse=True, return_counts=True)
    heaviest = np.zeros(len(count))
    np.maximum.at(heaviest, inverse, weights)
    order = np.argsort(inverse, kind="stable")
    rank = np.empty_like(order)  # the position of each point in its group
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    is_heavy = np.bincount(inverse, weights) > max_weight
    part = np.where(is_heavy[inverse], rank // np.floor(max_weight / heaviest)[inverse].astype(np.int64), 0)
    return np.unique(np.column_stack([inverse, part]), axis=0, return_inverse=True)[1].ravel()
