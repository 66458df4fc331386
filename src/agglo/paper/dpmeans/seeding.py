"""DP-means by seeding alone: points far from all seeds are the likeliest next one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo.evaluation.metrics import dp_means_cost
from agglo.paper.dpmeans.base import DPMeansSolver, Found, check_choice
from agglo.paper.dpmeans.passes import refined
from agglo.points.validation import Points

StopRule = Literal["cost", "bound"]
STOPS = ("cost", "bound")


class DPMeansPlusPlus(DPMeansSolver):
    """Clusterer that draws seeds as k-means++ does, as many as pay, and gives every point to the nearest.

    The first seed is any point; each further one is drawn with a chance in proportion to its squared distance
    from the nearest seed so far. How many there are is for ``stop`` to say. Seeds are where clusters begin:
    ``cluster_centers_`` are the means of the points that went to each.

    Parameters
    ----------
    lam : float, default=1.0
        The price of a cluster. 0 gives a cluster to every distinct point, infinity one to all.
    stop : {"cost", "bound"}, default="cost"
        ``"cost"``: of the sequence of seeds, the first k for which squared distances to the seeds plus ``lam * k``
        are least. Drawing goes on until ``lam * k`` alone is more than the least cost so far, or the least is a
        quarter of its seeds (at least 100) behind. ``"bound"``: as many as are needed for the sum of squared
        distances to be at most ``16 * lam * k * (log2(k) + 2)``, the rule behind the guarantee of [1]_; these are
        fewer, and cost more.
    refine : bool, default=False
        Go on from the means of these clusters with the passes of :class:`SerialDPMeans`.
    n_init : int, default=1
        Starts; the one of least cost counts.
    max_iter : int, default=300
        The most passes of a start, with ``refine``.
    tol : float, default=0.0
        With ``refine``, a pass that lowers the cost by no more than this share of it is the last.
    random_state : int, RandomState or None, default=None
        Where the draws come from. An integer makes results repeatable.
    n_jobs : int, optional
        Threads; None or -1 for all cores. The result does not depend on it.

    Attributes
    ----------
    labels_, cluster_centers_, n_clusters_, cost_, costs_, converged_, n_features_in_
        As for :class:`SerialDPMeans`.
    seed_indices_ : ndarray of int64
        The seed of each cluster, as a row of ``X``; not there with ``refine``, which may drop and open clusters.
    cost_history_ : ndarray of float64 of shape (n_iter_,)
        Of the best start, the cost after the seeding, and with ``refine`` after each pass.
    n_iter_ : int
        1 for the seeding, plus the passes.

    References
    ----------
    .. [1] O. Bachem, M. Lucic and A. Krause, "Coresets for Nonparametric Estimation - the Case of DP-Means",
       ICML 2015.

    Examples
    --------
    >>> from agglo.paper.dpmeans import DPMeansPlusPlus
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> solver = DPMeansPlusPlus(lam=4.0, n_init=3, random_state=0).fit(X)
    >>> solver.labels_, solver.costs_
    (array([0, 0, 1, 1]), array([9., 9., 9.]))
    """

    def __init__(
        self,
        lam: float = 1.0,
        *,
        stop: StopRule = "cost",
        refine: bool = False,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(lam, n_init=n_init, max_iter=max_iter, tol=tol, random_state=random_state, n_jobs=n_jobs)
        self.stop = stop
        self.refine = refine

    def _check(self) -> None:
        if self.stop not in STOPS:
            raise ValueError(f"stop={self.stop!r} is unknown: pass one of {', '.join(map(repr, STOPS))}")
        check_choice("refine", self.refine)

    def _search(self, points: Points, price: float, chance: np.random.RandomState, workers: int) -> Found:
        seed = chance.randint(np.iinfo(np.int64).max, dtype=np.int64)
        with one_blas_thread():
            seeds, labels, _ = _core.dp_seeds(
                points, price, self.stop == "bound", int(seed), sgemm(), workers, None
            )
        cost = dp_means_cost(points, labels, price) if np.isfinite(price) else np.inf
        if not self.refine:
            return Found(labels, np.array([cost]), True, {"seed_indices_": seeds.astype(np.int64)})
        return refined(points, labels, cost, price, chance, workers, int(self.max_iter), float(self.tol))
