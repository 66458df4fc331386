"""HKM: k-means from the top down, until what is left is small."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from agglo.paper.baselines.base import TreeBaseline, assembled
from agglo.paper.baselines.online import Rows, centered
from agglo.paper.dpmeans.base import check_count
from agglo.points.validation import Points
from agglo.tree.hierarchy import Hierarchy

Ints = npt.NDArray[np.int64]

_BLOCK = 16384  # points whose differences from their centres are in memory at a time


class HKM(TreeBaseline):
    """Clusterer that splits all points by k-means, then each part, and so on.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters of ``labels_``; by default those of the persistent round.
    branching : int, default=2
        The number of parts that a node is split into, at least 2.
    leaf_size : int, default=1
        Nodes of that many points or fewer are not split: the points are their children.
    max_iter : int, default=20
        The most rounds of k-means for a split.
    random_state : int, RandomState or None, default=None
        Where the seeds of k-means come from. An integer makes results repeatable.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree; the height of a node is the sum of squared distances of its points to their mean.
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point.
    n_iter_ : int
        The most rounds of k-means that a level of the tree took.
    n_features_in_ : int
        Number of columns of ``X``.

    Examples
    --------
    >>> from agglo.paper.baselines import HKM
    >>> HKM(2, random_state=0).fit_predict([[0.0], [10.0], [1.0], [12.0]])
    array([0, 1, 0, 1])
    """

    def __init__(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        branching: int = 2,
        leaf_size: int = 1,
        max_iter: int = 20,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.branching = branching
        self.leaf_size = leaf_size
        self.max_iter = max_iter
        self.random_state = random_state

    def _check(self) -> None:
        if check_count("branching", self.branching) < 2:
            raise ValueError("branching=1 splits nothing: pass at least 2")
        check_count("leaf_size", self.leaf_size)
        check_count("max_iter", self.max_iter)

    def _tree(self, points: Points) -> Hierarchy:
        rows, _ = centered(points)
        above, node, self.n_iter_ = split_down(
            rows, self.branching, self.leaf_size, self.max_iter, check_random_state(self.random_state)
        )
        about: dict[str, Any] = {
            "method": "hkm",
            "branching": int(self.branching),
            "leaf_size": int(self.leaf_size),
            "max_iter": int(self.max_iter),
        }
        return assembled(upside_down(above, node), len(points), points, about)


def upside_down(above: npt.ArrayLike, node: npt.ArrayLike) -> Ints:
    """Parents, children first, of nodes that were numbered from the root (0) down, and of points below them."""
    over, below = np.asarray(above), np.asarray(node)
    last = len(below) + len(over) - 1
    return np.concatenate([last - below, last - over[:0:-1], [-1]])


def split_down(
    rows: Rows, branching: int, leaf_size: int, max_iter: int, chance: np.random.RandomState
) -> tuple[Ints, Ints, int]:
    """The parent of each node, numbered from the root down; the lowest node of each point; rounds of k-means.

    All nodes of a level are split together.
    """
    above = [np.array([-1])]
    n_nodes, most = 1, 0
    node = np.zeros(len(rows), np.int64)
    active = np.arange(len(rows))
    while True:
        _, group, size = np.unique(node[active], return_inverse=True, return_counts=True)
        active = active[size[group] > leaf_size]
        if not len(active):
            return np.concatenate(above), node, most
        active = active[np.argsort(node[active], kind="stable")]
        names, group = np.unique(node[active], return_inverse=True)
        part, rounds = _split(rows[active], group, branching, max_iter, chance)
        most = max(most, rounds)
        parts, child = np.unique(group * branching + part, return_inverse=True)
        over = parts // branching
        whole = np.bincount(over)[over] == 1  # points that k-means cannot tell apart stay together
        active, child = active[~whole[child]], child[~whole[child]]
        kept, child = np.unique(child, return_inverse=True)
        node[active] = n_nodes + child
        above.append(names[over[kept]])
        n_nodes += len(kept)


def _split(rows: Rows, group: Ints, k: int, max_iter: int, chance: np.random.RandomState) -> tuple[Ints, int]:
    """A part, 0..k-1, for each row, by k-means inside each group, 0, 1, ... in order; and how many rounds."""
    centers = k_means_seeds(rows, group, k, chance)
    part, rounds = np.full(len(rows), -1), 0
    while rounds < max_iter:
        rounds += 1
        before, part = part, np.stack([_squares(rows, centers[j], group) for j in range(k)]).argmin(axis=0)
        if np.array_equal(part, before):
            break
        for j in range(k):
            mine = np.flatnonzero(part == j)
            sums = sp.csr_array(
                (np.ones(len(mine), np.float32), (group[mine], mine)), shape=(len(centers[j]), len(rows))
            )
            count = np.bincount(group[mine], minlength=len(centers[j]))
            centers[j][count > 0] = (sums @ rows)[count > 0] / count[count > 0, None]
    return part, rounds


def k_means_seeds(rows: Rows, group: Ints, k: int, chance: np.random.RandomState) -> list[Rows]:
    """The first centres of each group, drawn as k-means++ does: far from those before."""
    start = np.searchsorted(group, np.arange(group[-1] + 2))
    nearest = np.ones(len(rows))
    centers: list[Rows] = []
    for _ in range(k):
        below = np.concatenate([[0.0], np.cumsum(nearest)])
        low, high = below[start[:-1]], below[start[1:]]
        drawn = np.searchsorted(below, low + chance.random_sample(len(low)) * (high - low), side="right") - 1
        drawn = np.clip(drawn, start[:-1], start[1:] - 1)
        centers.append(rows[drawn].copy())
        squares = _squares(rows, centers[-1], group)
        nearest = squares if len(centers) == 1 else np.minimum(nearest, squares)
    return centers


def _squares(rows: Rows, centers: Rows, group: Ints) -> npt.NDArray[np.float64]:
    """Of each row the squared distance to the centre of its group."""
    found = np.empty(len(rows))
    for first in range(0, len(rows), _BLOCK):
        block = slice(first, first + _BLOCK)
        difference = rows[block] - centers[group[block]]
        found[block] = np.einsum("ij,ij->i", difference, difference)
    return found
