"""DP-means++: a DP-means solver that draws cluster seeds as k-means++ does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo._validation import check_choice
from agglo.paper.dpmeans.base import DPMeansSolver, Solution, finite_cost
from agglo.paper.dpmeans.passes import refine_clusters
from agglo.paper.validation import check_bool
from agglo.points.points import PointArray

StopRule = Literal["cost", "bound"]
STOPS = ("cost", "bound")


@dataclass(eq=False, repr=False, kw_only=True)
class DPMeansPlusPlus(DPMeansSolver):
    """DP-means by k-means++ seeding: draw seeds, and assign each point to the nearest seed.

    The first seed is drawn uniformly. Each further seed is drawn with a probability proportional to the squared
    distance to the nearest seed. ``stop`` determines the number of seeds. ``cluster_centers_`` are the means of
    the resulting clusters.

    Parameters
    ----------
    lam : float, default=1.0
        The cost of a cluster. With 0, each distinct point is a cluster. With infinity, there is a single cluster.
    stop : {"cost", "bound"}, default="cost"
        The rule that determines the number of seeds. ``"cost"`` keeps the first k seeds, for the k with the
        smallest cost. The cost is the sum of squared distances to the nearest seeds plus ``lam * k``. Drawing
        stops if ``lam`` times the number of seeds alone exceeds the smallest cost so far. It also stops after
        ``max(100, k / 4)`` seeds without a new minimum. ``"bound"`` draws seeds until the sum of squared distances
        is at most ``16 * lam * k * (log2(k) + 2)``, as the guarantee in [1]_ requires. Compared with ``"cost"``,
        it gives fewer seeds and a higher cost.
    refine : bool, default=False
        Whether to refine the clusters by the passes of :class:`SerialDPMeans`.
    n_init : int, default=1
        The number of starts. The start with the smallest cost is kept.
    max_iter : int, default=300
        The maximum number of passes per start. It is used only with ``refine=True``.
    tol : float, default=0.0
        Stop after a pass that lowers the cost by no more than this relative amount. It is used only with
        ``refine=True``.
    random_state, n_jobs
        As for :class:`SerialDPMeans`. The random seed also determines the draws.

    Attributes
    ----------
    labels_, cluster_centers_, n_clusters_, cost_, costs_, converged_, n_features_in_
        As for :class:`SerialDPMeans`.
    seed_indices_ : ndarray of int64
        The seed of each cluster, as a row number of ``X``. If ``refine`` is True, this attribute is not set,
        because the passes change the clusters.
    cost_history_ : ndarray of float64 of shape (n_iter,)
        The cost of the best start after the seeding and, with ``refine``, after each pass.
    n_iter_ : int
        The number of passes, plus 1 for the seeding.

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

    stop: StopRule = "cost"
    refine: bool = False

    def _check(self) -> None:
        super()._check()
        check_choice("stop", self.stop, STOPS)
        check_bool("refine", self.refine)

    def _solve(self, points: PointArray, lam: float, rng: np.random.RandomState, n_threads: int) -> Solution:
        seed = rng.randint(np.iinfo(np.int64).max, dtype=np.int64)
        with one_blas_thread():
            seeds, labels, _ = _core.draw_dp_seeds(points, lam, self.stop, int(seed), sgemm(), n_threads, None)
        cost = finite_cost(points, labels, lam)
        if not self.refine:
            return Solution(labels, np.array([cost]), True, {"seed_indices_": seeds.astype(np.int64)})
        return refine_clusters(points, labels, cost, lam, rng, n_threads, int(self.max_iter), float(self.tol))
