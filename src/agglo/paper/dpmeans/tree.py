"""DP-means by cutting an SCC tree at the smallest cost, and refining the clusters by passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agglo.neighbors.search import clip_n_neighbors, neighbor_graph
from agglo.paper.dpmeans.base import DPMeansSolver, Solution, finite_cost
from agglo.paper.dpmeans.passes import refine_clusters
from agglo.paper.validation import check_bool, check_count
from agglo.points.points import PointArray
from agglo.rounds.algorithms import scc
from agglo.tree.dp_means_path import dp_means_path


@dataclass(eq=False, repr=False, kw_only=True)
class TreeDPMeans(DPMeansSolver):
    """DP-means by SCC with Ward's linkage: cut the tree at the smallest cost, then refine the clusters.

    Ward's linkage merges the clusters that least increase the sum of squared distances to the cluster means.
    :func:`agglo.dp_means_path` finds the cut of the tree with the smallest DP-means cost. The passes of
    :class:`SerialDPMeans` refine this cut. To solve for several values of ``lam``, build one tree and call
    ``dp_means_path``.

    Parameters
    ----------
    lam : float, default=1.0
        The cost of a cluster. With 0, each distinct point is a cluster. With infinity, there is a single cluster.
    n_neighbors : int, default=25
        The number of neighbours per point in the neighbour graph. A number that exceeds the number of other points
        is reduced to it.
    refine : bool, default=True
        Whether to refine the clusters by passes. This lowers the cost, but the clusters are no longer nodes of the
        tree.
    n_init, max_iter, tol, random_state, n_jobs
        As for :class:`SerialDPMeans`. Only the passes use the random seed.

    Attributes
    ----------
    labels_, cluster_centers_, n_clusters_, cost_, costs_, converged_, n_features_in_
        As for :class:`SerialDPMeans`.
    cost_history_ : ndarray of float64 of shape (n_iter,)
        The cost of the cut of the tree and, with ``refine``, the cost after each pass of the best start.
    n_iter_ : int
        The number of passes, plus 1 for the tree.

    Examples
    --------
    >>> from agglo.paper.dpmeans import TreeDPMeans
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> solver = TreeDPMeans(lam=4.0, random_state=0).fit(X)
    >>> solver.labels_, solver.cost_
    (array([0, 0, 1, 1]), 9.0)
    """

    n_neighbors: int = 25
    refine: bool = True

    def _check(self) -> None:
        super()._check()
        check_count("n_neighbors", self.n_neighbors)
        check_bool("refine", self.refine)

    def _solve(self, points: PointArray, lam: float, rng: np.random.RandomState, n_threads: int) -> Solution:
        n_neighbors = clip_n_neighbors(self.n_neighbors, len(points))
        graph = neighbor_graph(points, n_neighbors, "euclidean", n_jobs=n_threads, missing=None)
        tree = scc(graph, linkage="ward", X=points, n_jobs=n_threads)
        labels = dp_means_path(tree, points).cut(lam).astype(np.int32)
        cost = finite_cost(points, labels, lam)
        if not self.refine:
            return Solution(labels, np.array([cost]), True, {})
        return refine_clusters(points, labels, cost, lam, rng, n_threads, int(self.max_iter), float(self.tol))
