"""RHC: robust hierarchical clustering by shared nearest neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from agglo.paper.baselines.base import TreeBaseline, hierarchy_from_parents
from agglo.paper.validation import check_nonnegative
from agglo.points.points import PointArray
from agglo.tree.hierarchy import Hierarchy

Members = npt.NDArray[np.int64]
Table = npt.NDArray[np.float32]


@dataclass(eq=False, repr=False, kw_only=True)
class RHC(TreeBaseline):
    """Robust hierarchical clustering by the number of shared nearest neighbours.

    This is the algorithm of Balcan, Liang and Gupta [1]_. It runs for an increasing number t of nearest
    neighbours. Two points are linked if they share nearly all of their t nearest neighbours. Two single points
    merge if enough points are linked to both. For two clusters, take each pair of a point of one and a point of
    the other. Count the points of the two clusters that are linked to both points of the pair. The two clusters
    merge if the median of these numbers is large enough.

    Guarantee: call a point of a class with m points good if nearly all of its m nearest neighbours belong to the
    class. The number of exceptions is at most ``alpha`` times the number of all points. Assume that a share of at
    most ``nu`` of the points is not good. Assume also that every class has more than the share
    ``6 * (alpha + nu)`` of all points. Then some cut of the tree has an error of at most ``nu``.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters in ``labels_``. By default the tree is cut at the most persistent round.
    alpha : float, default=0.01
        The allowed number of neighbours from other classes, as a share of the number of all points.
    nu : float, default=0.01
        The allowed share of points that are not good. ``alpha + nu`` must be less than 1/6.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree, whose nodes may have any number of children. The height of a node is the number t of neighbours
        at which its children merged.

    Notes
    -----
    For each of up to n values of t, matrix products take O(n³) time. The memory is about 30·n² bytes. So the
    method is practical for about a thousand points.

    References
    ----------
    .. [1] M.-F. Balcan, Y. Liang and P. Gupta, "Robust Hierarchical Clustering", JMLR 15, 2014.

    Examples
    --------
    >>> from agglo.paper.baselines import RHC
    >>> RHC(2).fit_predict([[0.0], [10.0], [1.0], [12.0], [2.0], [11.0]])
    array([0, 1, 0, 1, 0, 1])
    """

    alpha: float = 0.01
    nu: float = 0.01

    def _check(self) -> None:
        noise = check_nonnegative("alpha", self.alpha) + check_nonnegative("nu", self.nu)
        if 6 * noise >= 1:
            raise ValueError(
                f"alpha + nu is {noise:.3g}, but classes must have more than 6 * (alpha + nu) of all points: "
                "pass shares whose sum is less than 1/6"
            )

    def _build_tree(self, points: PointArray) -> Hierarchy:
        n = len(points)
        noise = (float(self.alpha) + float(self.nu)) * n
        clusters: list[Members] = [np.array([i]) for i in range(n)]
        nodes = list(range(n))  # the tree node of each current cluster
        parent, height = [-1] * n, [0.0] * n
        shared = _SharedNeighbors(points)
        for t in range(math.floor(6 * noise) + 1, n + 1):
            if len(clusters) == 1:
                break
            linked = (shared.count(t) >= t - 2 * noise).astype(np.float32)
            part = connected_components(_find_merges(linked, clusters, noise), directed=False)[1]
            merged: list[tuple[Members, int]] = []
            for group in np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part))[:-1]):
                members = np.concatenate([clusters[c] for c in group])
                if len(group) == 1 or len(members) < 4 * noise:
                    merged += [(clusters[c], nodes[c]) for c in group]
                    continue
                for c in group:
                    parent[nodes[c]] = len(parent)
                merged.append((members, len(parent)))
                parent.append(-1)
                height.append(float(t))
            clusters, nodes = [members for members, _ in merged], [node for _, node in merged]
        about = {"method": "rhc", "alpha": float(self.alpha), "nu": float(self.nu)}
        return hierarchy_from_parents(parent, n, height, about)


class _SharedNeighbors:
    """Count, for each pair of points, the points that both have among their t nearest neighbours.

    The number t can only increase. A point is its own nearest neighbour.
    """

    def __init__(self, points: PointArray) -> None:
        distance = cdist(points, points)
        np.fill_diagonal(distance, -1.0)
        self.order = np.argsort(distance, axis=1, kind="stable").astype(np.int32)
        self.rank = np.empty_like(self.order)
        np.put_along_axis(self.rank, self.order, np.arange(len(points), dtype=np.int32)[None], axis=1)
        self.common = np.zeros(distance.shape, np.int32)
        self.t = 0

    def count(self, t: int) -> npt.NDArray[np.int32]:
        """Return the matrix of counts for ``t`` neighbours; ``t`` must not decrease between calls."""
        for last in range(self.t, t):
            newest = self.order[:, last]
            known = self.rank[:, newest] <= last  # [y, x]: is the newest neighbour of x a neighbour of y?
            self.common += known.astype(np.int32) + known.T - (newest[:, None] == newest)
        self.t = max(self.t, t)
        return self.common


def _find_merges(linked: Table, clusters: list[Members], noise: float) -> npt.NDArray[np.bool_]:
    """Return a boolean matrix that states, for each pair of clusters, whether the two clusters merge.

    A cluster may be a single point.
    """
    close = np.zeros((len(clusters), len(clusters)), np.bool_)
    size = np.array([len(members) for members in clusters])
    single, large = np.flatnonzero(size == 1), np.flatnonzero(size > 1)
    if len(single):
        alone = np.array([clusters[c][0] for c in single])
        close[np.ix_(single, single)] = linked[alone] @ linked[:, alone] > noise
    inside = {c: linked[:, clusters[c]] @ linked[np.ix_(clusters[c], clusters[c])] for c in large.tolist()}
    for position, v in enumerate(large.tolist()):
        if len(single):  # count the common linked points among the points of the cluster and the single point
            common = inside[v][alone] + linked[np.ix_(alone, clusters[v])]
            close[single, v] = np.median(common, axis=1) > (1 + size[v]) / 4
        for u in large[:position].tolist():
            common = inside[v][clusters[u]] + inside[u][clusters[v]].T
            close[u, v] = np.median(common) > (size[u] + size[v]) / 4
    return close
