"""RHC: agglomeration by shared neighbours, which some noise cannot mislead."""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from agglo.paper.baselines.base import TreeBaseline, assembled
from agglo.paper.dpmeans.base import check_share
from agglo.points.validation import Points
from agglo.tree.hierarchy import Hierarchy

Members = npt.NDArray[np.int64]
Table = npt.NDArray[np.float32]


class RHC(TreeBaseline):
    """Robust hierarchical clustering, which merges by how many neighbours points have in common.

    The algorithm of Balcan, Liang and Gupta [1]_. For a growing number t of nearest neighbours, two points are
    joined that share nearly all of them. Two points merge that have enough of those they are joined with in
    common, and two clusters if that holds for the median over their pairs of points, counted inside the two. If
    all but a share ``nu`` of the points have, but for a share ``alpha`` of all points, nobody but their own class
    among as many nearest neighbours as the class has points, and classes have more than ``6 * (alpha + nu)`` of
    all points, then some cut of the tree differs from the classes in the share ``nu`` at most.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters of ``labels_``; by default those of the persistent round.
    alpha : float, default=0.01
        The share of points that may be wrong among a point's neighbours.
    nu : float, default=0.01
        The share of points that may be noise. Together they must be less than 1/6.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree, of any number of children; the height of a node is the number t of neighbours that made it.
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point.
    n_features_in_ : int
        Number of columns of ``X``.

    Notes
    -----
    Takes O(n³) time for each of up to n values of t, as matrix products, and about 30·n² bytes: meant for a
    thousand points.

    References
    ----------
    .. [1] M.-F. Balcan, Y. Liang and P. Gupta, "Robust Hierarchical Clustering", JMLR 15, 2014.

    Examples
    --------
    >>> from agglo.paper.baselines import RHC
    >>> RHC(2).fit_predict([[0.0], [10.0], [1.0], [12.0], [2.0], [11.0]])
    array([0, 1, 0, 1, 0, 1])
    """

    def __init__(self, n_clusters: SupportsIndex | None = None, *, alpha: float = 0.01, nu: float = 0.01) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.nu = nu

    def _check(self) -> None:
        noise = check_share("alpha", self.alpha) + check_share("nu", self.nu)
        if 6 * noise >= 1:
            raise ValueError(
                f"alpha + nu is {noise:.3g}, but classes must have more than 6 * (alpha + nu) of all points: "
                "pass shares whose sum is less than 1/6"
            )

    def _tree(self, points: Points) -> Hierarchy:
        n = len(points)
        noise = (float(self.alpha) + float(self.nu)) * n
        clusters: list[Members] = [np.array([i]) for i in range(n)]
        names = list(range(n))  # the nodes that the clusters are
        parent, height = [-1] * n, [0.0] * n
        shared = _SharedNeighbors(points)
        for t in range(math.floor(6 * noise) + 1, n + 1):
            if len(clusters) == 1:
                break
            joined = (shared.among(t) >= t - 2 * noise).astype(np.float32)
            part = connected_components(_close(joined, clusters, noise), directed=False)[1]
            merged: list[tuple[Members, int]] = []
            for group in np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part))[:-1]):
                members = np.concatenate([clusters[c] for c in group])
                if len(group) == 1 or len(members) < 4 * noise:
                    merged += [(clusters[c], names[c]) for c in group]
                    continue
                for c in group:
                    parent[names[c]] = len(parent)
                merged.append((members, len(parent)))
                parent.append(-1)
                height.append(float(t))
            clusters, names = [members for members, _ in merged], [name for _, name in merged]
        about = {"method": "rhc", "alpha": float(self.alpha), "nu": float(self.nu)}
        return assembled(parent, n, height, about)


class _SharedNeighbors:
    """How many of their t nearest neighbours two points share, for t that grows; a point is its own nearest."""

    def __init__(self, points: Points) -> None:
        distance = cdist(points, points)
        np.fill_diagonal(distance, -1.0)
        self.order = np.argsort(distance, axis=1, kind="stable").astype(np.int32)
        self.rank = np.empty_like(self.order)
        np.put_along_axis(self.rank, self.order, np.arange(len(points), dtype=np.int32)[None], axis=1)
        self.common = np.zeros(distance.shape, np.int32)
        self.t = 0

    def among(self, t: int) -> npt.NDArray[np.int32]:
        """The numbers for ``t``, which is no smaller than any before."""
        for last in range(self.t, t):
            newest = self.order[:, last]
            known = self.rank[:, newest] <= last  # [y, x]: whether y has the newest neighbour of x
            self.common += known.astype(np.int32) + known.T - (newest[:, None] == newest)
        self.t = max(self.t, t)
        return self.common


def _close(joined: Table, clusters: list[Members], noise: float) -> npt.NDArray[np.bool_]:
    """Which clusters are to merge: pairs of points, of a point and a cluster, and of clusters."""
    close = np.zeros((len(clusters), len(clusters)), np.bool_)
    size = np.array([len(members) for members in clusters])
    single, large = np.flatnonzero(size == 1), np.flatnonzero(size > 1)
    if len(single):
        alone = np.array([clusters[c][0] for c in single])
        close[np.ix_(single, single)] = joined[alone] @ joined[:, alone] > noise
    inside = {c: joined[:, clusters[c]] @ joined[np.ix_(clusters[c], clusters[c])] for c in large.tolist()}
    for place, v in enumerate(large.tolist()):
        if len(single):  # the neighbours that both have in the cluster, and the point itself
            common = inside[v][alone] + joined[np.ix_(alone, clusters[v])]
            close[single, v] = np.median(common, axis=1) > (1 + size[v]) / 4
        for u in large[:place].tolist():
            common = inside[v][clusters[u]] + inside[u][clusters[v]].T
            close[u, v] = np.median(common) > (size[u] + size[v]) / 4
    return close
