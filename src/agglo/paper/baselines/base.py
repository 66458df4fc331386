"""The base class of the baselines, and the conversion of their trees to a Hierarchy."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.paper.estimator import PaperEstimator
from agglo.points.points import PointArray
from agglo.tree.cut import check_rule
from agglo.tree.hierarchy import Hierarchy, Rounds


@dataclass(eq=False, repr=False)
class TreeBaseline(PaperEstimator):
    """Base class of the hierarchical baselines.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters in ``labels_``. By default the tree is cut at the most persistent round.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree, whose leaves are the points.
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point.
    n_features_in_ : int
        The number of columns of ``X``.
    """

    n_clusters: SupportsIndex | None = None

    def _fit(self, points: PointArray) -> None:
        if self.n_clusters is not None:
            check_rule(len(points), self.n_clusters, None, None)
        self.tree_ = self._build_tree(points)
        self.labels_ = self._build_labels(points)

    @abstractmethod
    def _build_tree(self, points: PointArray) -> Hierarchy:
        """Build a tree whose leaves are the points."""

    def _build_labels(self, points: PointArray) -> npt.NDArray[np.int64]:
        """Cut the tree into at most ``n_clusters`` clusters; return the labels.

        If ``n_clusters`` is None, cut the tree at the most persistent round.
        """
        if self.n_clusters is None:
            return self.tree_.cut(round="persistent")
        counts = np.concatenate([[self.tree_.n_leaves], self.tree_.rounds.after])
        return self.tree_.labels(round=int((counts <= operator.index(self.n_clusters)).argmax()))


def hierarchy_from_parents(
    parent: npt.ArrayLike,
    n_leaves: int,
    height: npt.ArrayLike | PointArray,
    about: Mapping[str, Any],
) -> Hierarchy:
    """Build a Hierarchy from the parent of each node.

    Parameters
    ----------
    parent : array-like of int
        The parent of each node. Parents have larger ids than their children. The root is the last node, and its
        parent is -1. The first ``n_leaves`` nodes are the points. Inner nodes with fewer than two children are
        removed.
    n_leaves : int
        The number of points.
    height : array-like of shape (n_nodes,) or (n_leaves, n_features)
        Either the height of each node, or the points. If the points are given, the height of a node is the sum of
        squared distances of its points to their mean. If a node is lower than a child, it is raised to the height
        of the child.
    about : mapping
        The name of the method and its parameters, to be stored in the Hierarchy.

    Returns
    -------
    Hierarchy
        Every inner node is a separate round, ordered by height, so that ``cut(n_clusters=k)`` works for any k.

    Examples
    --------
    >>> from agglo.paper.baselines.base import hierarchy_from_parents
    >>> hierarchy_from_parents([3, 3, 5, 5, 5, -1], 3, [0, 0, 0, 0.5, 9, 2], {"method": "by hand"})
    Hierarchy(3 leaves, 5 nodes, 2 rounds, height 2)
    """
    up, kept = _remove_unary_nodes(np.asarray(parent, np.int32), n_leaves)
    is_leaf = np.arange(len(up)) < n_leaves
    size = _core.sum_descendants(up, is_leaf.astype(np.int64)).astype(np.int32)
    given = np.asarray(height)
    if given.ndim == 2:
        heights, _ = _core.compute_node_costs(given, up, size, "means", 1, None)
    else:
        heights = np.where(is_leaf, 0.0, given[kept])
    monotone = _core.make_heights_monotone(up, np.asarray(heights, np.float64)) + 0.0  # turns -0.0 into 0.0
    inner = np.arange(n_leaves, len(up))
    order = np.concatenate([np.arange(n_leaves), inner[np.lexsort((size[inner], monotone[inner]))]])
    position = np.empty(len(up), np.int32)
    position[order] = np.arange(len(up), dtype=np.int32)
    new_parent = np.where(up[order] < 0, -1, position[up[order]]).astype(np.int32)
    n_children = np.bincount(new_parent[:-1], minlength=len(up))[n_leaves:]
    n_clusters = n_leaves - np.concatenate([[0], np.cumsum(n_children - 1)])
    unknown = np.full(len(inner), np.nan)
    return Hierarchy(
        new_parent,
        monotone[order],
        size[order],
        np.maximum(np.arange(len(up)) - n_leaves + 1, 0).astype(np.int32),
        Rounds(unknown, n_clusters[:-1], n_clusters[1:], unknown),
        about,
    )


def _remove_unary_nodes(
    parent: npt.NDArray[np.int32], n_leaves: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Remove inner nodes with fewer than two children; return the new parents and the ids of the kept nodes."""
    ids = np.arange(len(parent))
    nonempty = _core.sum_descendants(parent, (ids < n_leaves).astype(np.int64)) > 0
    children = np.bincount(parent[:-1][nonempty[:-1]], minlength=len(parent))
    is_kept = (children > 1) | (ids < n_leaves)
    above = parent.copy()
    # Go from the root down, because the new parent of a node depends on the new parent of its old parent.
    for node in ids[~is_kept & nonempty][::-1].tolist():
        over = above[node]
        above[node] = over if over < 0 or is_kept[over] else above[over]
    over = above[is_kept]
    over = np.where((over >= 0) & ~is_kept[over], above[over], over)
    kept = ids[is_kept]
    new_id = np.cumsum(is_kept) - 1
    return np.where(over < 0, -1, new_id[over]).astype(np.int32), kept
