"""HKM: top-down hierarchical k-means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from agglo.paper.baselines.base import TreeBaseline, hierarchy_from_parents
from agglo.paper.baselines.online import Rows, center_and_scale
from agglo.paper.validation import check_count
from agglo.points.points import PointArray
from agglo.tree.hierarchy import Hierarchy

Ints = npt.NDArray[np.int64]

_BLOCK = 16384  # number of points processed at a time, to limit memory


@dataclass(eq=False, repr=False, kw_only=True)
class HKM(TreeBaseline):
    """Top-down hierarchical k-means: split the points by k-means, then split each part recursively.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters in ``labels_``. By default the tree is cut at the most persistent round.
    branching : int, default=2
        The number of parts that a node is split into, at least 2.
    leaf_size : int, default=1
        A node with at most this number of points is not split further. Its points become its children.
    max_iter : int, default=20
        The maximum number of k-means iterations per split.
    random_state : int, RandomState or None, default=None
        The random seed of the k-means++ seeding. Pass an integer for reproducible results.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree; the height of a node is the sum of squared distances of its points to their mean.
    n_iter_ : int
        The number of k-means iterations of the level of the tree that needed most.

    Examples
    --------
    >>> from agglo.paper.baselines import HKM
    >>> HKM(2, random_state=0).fit_predict([[0.0], [10.0], [1.0], [12.0]])
    array([0, 1, 0, 1])
    """

    branching: int = 2
    leaf_size: int = 1
    max_iter: int = 20
    random_state: int | np.random.RandomState | None = None

    def _check(self) -> None:
        if check_count("branching", self.branching) < 2:
            raise ValueError("branching=1 splits nothing: pass at least 2")
        check_count("leaf_size", self.leaf_size)
        check_count("max_iter", self.max_iter)

    def _build_tree(self, points: PointArray) -> Hierarchy:
        rows, _ = center_and_scale(points)
        above, node, self.n_iter_ = split_recursively(
            rows, self.branching, self.leaf_size, self.max_iter, check_random_state(self.random_state)
        )
        about: dict[str, Any] = {
            "method": "hkm",
            "branching": int(self.branching),
            "leaf_size": int(self.leaf_size),
            "max_iter": int(self.max_iter),
        }
        return hierarchy_from_parents(parents_from_top_down(above, node), len(points), points, about)


def parents_from_top_down(above: npt.ArrayLike, node: npt.ArrayLike) -> Ints:
    """Renumber nodes so that children come before parents; return the parent of each point and node.

    ``above`` is the parent of each node. In ``above``, the root is node 0, and parents come before children.
    ``node`` is the parent of each point.
    """
    over, below = np.asarray(above), np.asarray(node)
    last = len(below) + len(over) - 1
    return np.concatenate([last - below, last - over[:0:-1], [-1]])


def split_recursively(
    rows: Rows, branching: int, leaf_size: int, max_iter: int, rng: np.random.RandomState
) -> tuple[Ints, Ints, int]:
    """Split the points recursively by k-means; all nodes of a level are split together.

    Returns the parent of each node, the lowest node that contains each point, and the largest number of k-means
    iterations of a level.
    """
    above = [np.array([-1])]
    n_nodes, n_iter = 1, 0
    node = np.zeros(len(rows), np.int64)
    active = np.arange(len(rows))
    while True:
        _, group, size = np.unique(node[active], return_inverse=True, return_counts=True)
        active = active[size[group] > leaf_size]
        if not len(active):
            return np.concatenate(above), node, n_iter
        active = active[np.argsort(node[active], kind="stable")]
        nodes, group = np.unique(node[active], return_inverse=True)
        part, iterations = _k_means(rows[active], group, branching, max_iter, rng)
        n_iter = max(n_iter, iterations)
        parts, child = np.unique(group * branching + part, return_inverse=True)
        over = parts // branching
        unsplit = np.bincount(over)[over] == 1  # the only part of a node: k-means cannot split equal points
        active, child = active[~unsplit[child]], child[~unsplit[child]]
        kept, child = np.unique(child, return_inverse=True)
        node[active] = n_nodes + child
        above.append(nodes[over[kept]])
        n_nodes += len(kept)


def _k_means(rows: Rows, group: Ints, k: int, max_iter: int, rng: np.random.RandomState) -> tuple[Ints, int]:
    """Run k-means within each group; return the part (0 to k-1) of each row, and the number of iterations."""
    centers = draw_seeds(rows, group, k, rng)
    part, iterations = np.full(len(rows), -1), 0
    while iterations < max_iter:
        iterations += 1
        before = part
        part = np.stack([_squared_distances(rows, centers[j], group) for j in range(k)]).argmin(axis=0)
        if np.array_equal(part, before):
            break
        for j in range(k):
            members = np.flatnonzero(part == j)
            sums = sp.csr_array(
                (np.ones(len(members), np.float32), (group[members], members)), shape=(len(centers[j]), len(rows))
            )
            count = np.bincount(group[members], minlength=len(centers[j]))
            centers[j][count > 0] = (sums @ rows)[count > 0] / count[count > 0, None]
    return part, iterations


def draw_seeds(rows: Rows, group: Ints, k: int, rng: np.random.RandomState) -> list[Rows]:
    """Draw k initial centers for each group by k-means++; return k arrays with one row per group."""
    start = np.searchsorted(group, np.arange(group[-1] + 2))
    nearest = np.ones(len(rows))  # squared distance to the nearest center
    centers: list[Rows] = []
    for _ in range(k):
        cumulative = np.concatenate([[0.0], np.cumsum(nearest)])
        low, high = cumulative[start[:-1]], cumulative[start[1:]]
        drawn = np.searchsorted(cumulative, low + rng.random_sample(len(low)) * (high - low), side="right") - 1
        drawn = np.clip(drawn, start[:-1], start[1:] - 1)
        centers.append(rows[drawn].copy())
        squares = _squared_distances(rows, centers[-1], group)
        nearest = squares if len(centers) == 1 else np.minimum(nearest, squares)
    return centers


def _squared_distances(rows: Rows, centers: Rows, group: Ints) -> npt.NDArray[np.float64]:
    """Return the squared distance of each row to the center of its group."""
    found = np.empty(len(rows))
    for first in range(0, len(rows), _BLOCK):
        block = slice(first, first + _BLOCK)
        difference = rows[block] - centers[group[block]]
        found[block] = np.einsum("ij,ij->i", difference, difference)
    return found
