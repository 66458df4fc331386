"""DP-means by a tree: the best of its partitions for the price, and passes from there."""

from __future__ import annotations

import numpy as np

from agglo.evaluation.metrics import dp_means_cost
from agglo.neighbors.search import neighbor_graph
from agglo.neighbors.validation import clip_n_neighbors
from agglo.paper.dpmeans.base import DPMeansSolver, Found, check_choice, check_count
from agglo.paper.dpmeans.passes import refined
from agglo.points.validation import Points
from agglo.rounds.algorithms import scc
from agglo.tree.dp_means import dp_means_path


class TreeDPMeans(DPMeansSolver):
    """Clusterer that cuts the tree of SCC under Ward's linkage where the price says, and refines the clusters.

    Ward's linkage merges the clusters that raise the sum of squared distances least, which is what DP-means pays
    for. Of all partitions that the tree has, the cheapest is taken, :func:`agglo.dp_means_path`, and
    then points go to closer centres, in the passes of :class:`SerialDPMeans`. For many prices one tree will do:
    make it by hand, and take the path.

    Parameters
    ----------
    lam : float, default=1.0
        The price of a cluster. 0 gives a cluster to every distinct point, infinity one to all.
    n_neighbors : int, default=25
        Neighbours of each point in the graph that the tree is made of; all others where there are not so many.
    refine : bool, default=True
        Go on from the clusters of the tree with passes. They cost less then, but are not those of the tree.
    n_init, max_iter, tol, random_state, n_jobs
        As for :class:`SerialDPMeans`. Chance has a part in the passes alone.

    Attributes
    ----------
    labels_, cluster_centers_, n_clusters_, cost_, costs_, converged_, n_features_in_
        As for :class:`SerialDPMeans`.
    cost_history_ : ndarray of float64 of shape (n_iter_,)
        Of the best start, the cost of the tree's partition, and with ``refine`` after each pass.
    n_iter_ : int
        1 for the tree, plus the passes.

    Examples
    --------
    >>> from agglo.paper.dpmeans import TreeDPMeans
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> solver = TreeDPMeans(lam=4.0, random_state=0).fit(X)
    >>> solver.labels_, solver.cost_
    (array([0, 0, 1, 1]), 9.0)
    """

    def __init__(
        self,
        lam: float = 1.0,
        *,
        n_neighbors: int = 25,
        refine: bool = True,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(lam, n_init=n_init, max_iter=max_iter, tol=tol, random_state=random_state, n_jobs=n_jobs)
        self.n_neighbors = n_neighbors
        self.refine = refine

    def _check(self) -> None:
        check_count("n_neighbors", self.n_neighbors)
        check_choice("refine", self.refine)

    def _search(self, points: Points, price: float, chance: np.random.RandomState, workers: int) -> Found:
        graph = neighbor_graph(
            points, clip_n_neighbors(self.n_neighbors, len(points)), "euclidean", n_jobs=workers
        )
        tree = scc(graph, linkage="ward", X=points, n_jobs=workers)
        labels = dp_means_path(tree, points).cut(price).astype(np.int32)
        cost = dp_means_cost(points, labels, price) if np.isfinite(price) else np.inf
        if not self.refine:
            return Found(labels, np.array([cost]), True, {})
        return refined(points, labels, cost, price, chance, workers, int(self.max_iter), float(self.tol))
