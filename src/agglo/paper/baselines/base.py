"""What the baselines share: how they are fitted, and how any kind of tree becomes a Hierarchy."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self, SupportsIndex

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin

from agglo import _core
from agglo.points.validation import Points, check_points, validate_points
from agglo.tree.cut import check_rule
from agglo.tree.forest import Rounds
from agglo.tree.hierarchy import Hierarchy


class TreeBaseline(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """A clusterer that makes a tree of points; what its parameters have in common is ``n_clusters``."""

    n_clusters: SupportsIndex | None
    tree_: Hierarchy
    labels_: npt.NDArray[np.int64]
    n_features_in_: int

    def fit(self, X: Any, y: object = None) -> Self:
        """The baseline with ``tree_`` and ``labels_`` of the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            The points.
        y : object
            Not used; for pipelines.
        """
        self._check()
        points = check_points(validate_points(self, X))
        if self.n_clusters is not None:
            check_rule(len(points), self.n_clusters, None, None)
        self.tree_ = self._tree(points)
        self.labels_ = self._labels(points)
        return self

    def _check(self) -> None:
        """Raise if a parameter is wrong."""

    @abstractmethod
    def _tree(self, points: Points) -> Hierarchy:
        """The tree of the points."""

    def _labels(self, points: Points) -> npt.NDArray[np.int64]:
        """The finest partition of at most ``n_clusters`` clusters; by default that of the persistent round."""
        if self.n_clusters is None:
            return self.tree_.cut(round="persistent")
        counts = np.concatenate([[self.tree_.n_leaves], self.tree_.rounds.after])
        return self.tree_.labels(round=int((counts <= operator.index(self.n_clusters)).argmax()))


def in_order(labels: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Labels renamed 0, 1, ... in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def assembled(
    parent: npt.ArrayLike,
    n_leaves: int,
    height: npt.ArrayLike | Points,
    about: Mapping[str, Any],
) -> Hierarchy:
    """The Hierarchy of a tree whose nodes are in any order that has children before their parents.

    Parameters
    ----------
    parent : array-like of int
        The parent of each node, of a larger id; the last node is the root and has -1. The first ``n_leaves``
        nodes are the points. Others may have any number of children; those with one or none are left out.
    n_leaves : int
        The number of points.
    height : array-like of shape (n_nodes,) or (n_leaves, n_features)
        The height of each node, raised where a child is higher; or the points, and then a node is as high as the
        squared distances of its points to their mean sum up to.
    about : mapping
        What to put on record.

    Returns
    -------
    Hierarchy
        Every node is a round of its own, from low to high, so that ``cut(n_clusters=k)`` splits the highest
        nodes first.

    Examples
    --------
    >>> from agglo.paper.baselines.base import assembled
    >>> assembled([3, 3, 5, 5, 5, -1], 3, [0, 0, 0, 0.5, 9, 2], {"method": "by hand"})
    Hierarchy(3 leaves, 5 nodes, 2 rounds, height 2)
    """
    up, kept = _without_idle(np.asarray(parent, np.int32), n_leaves)
    is_leaf = np.arange(len(up)) < n_leaves
    size = _core.sums_below(up, is_leaf.astype(np.int64)).astype(np.int32)
    given = np.asarray(height)
    if given.ndim == 2:
        raised, _ = _core.node_costs(height, up, size, False, 1, None)
    else:
        raised = np.where(is_leaf, 0.0, given[kept])
    settled = _core.tree_settled(up, np.asarray(raised, np.float64)) + 0.0  # -0.0 becomes 0.0
    inner = np.arange(n_leaves, len(up))
    order = np.concatenate([np.arange(n_leaves), inner[np.lexsort((size[inner], settled[inner]))]])
    place = np.empty(len(up), np.int32)
    place[order] = np.arange(len(up), dtype=np.int32)
    moved = np.where(up[order] < 0, -1, place[up[order]]).astype(np.int32)
    left = n_leaves - np.concatenate([[0], np.cumsum(np.bincount(moved[:-1], minlength=len(up))[n_leaves:] - 1)])
    unknown = np.full(len(inner), np.nan)
    return Hierarchy(
        moved,
        settled[order],
        size[order],
        np.maximum(np.arange(len(up)) - n_leaves + 1, 0).astype(np.int32),
        Rounds(unknown, left[:-1], left[1:], unknown),
        about,
    )


def _without_idle(
    parent: npt.NDArray[np.int32], n_leaves: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The parents once inner nodes with fewer than two children are gone, and the nodes that stay."""
    ids = np.arange(len(parent))
    filled = _core.sums_below(parent, (ids < n_leaves).astype(np.int64)) > 0
    children = np.bincount(parent[:-1][filled[:-1]], minlength=len(parent))
    stays = (children > 1) | (ids < n_leaves)
    above = parent.copy()
    for node in ids[~stays & filled][::-1].tolist():  # from the root down, so that a parent's own way is known
        over = above[node]
        above[node] = over if over < 0 or stays[over] else above[over]
    over = above[stays]
    over = np.where((over >= 0) & ~stays[over], above[over], over)
    kept = ids[stays]
    name = np.cumsum(stays) - 1
    return np.where(over < 0, -1, name[over]).astype(np.int32), kept
