"""DP-means solvers that make passes over the points, serially or in parallel epochs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo.paper.dpmeans.base import DPMeansSolver, Solution
from agglo.paper.validation import check_count
from agglo.points.points import PointArray


def run_passes(
    points: PointArray,
    start: npt.NDArray[np.float64],
    lam: float,
    rng: np.random.RandomState,
    n_threads: int,
    *,
    epoch: int,
    max_iter: int,
    tol: float,
) -> Solution:
    """Run passes of DP-means over the points in random order, starting from the centers ``start``."""
    order = rng.permutation(len(points)).astype(np.int32)
    with one_blas_thread():
        labels, _, history, converged = _core.solve_dp_means(
            points, order, start, lam, epoch, max_iter, tol, sgemm(), n_threads, None
        )
    return Solution(labels, history, converged, {})


def refine_clusters(
    points: PointArray,
    labels: npt.NDArray[np.int32],
    cost: float,
    lam: float,
    rng: np.random.RandomState,
    n_threads: int,
    max_iter: int,
    tol: float,
) -> Solution:
    """Run passes of DP-means over the points, starting from the means of the clusters ``labels``.

    ``cost`` is the cost of these clusters. It becomes the first entry of the cost history.
    """
    k = int(labels.max()) + 1
    means = _core.compute_cluster_means(points, labels, k, n_threads).reshape(k, -1)
    solution = run_passes(points, means, lam, rng, n_threads, epoch=1, max_iter=max_iter, tol=tol)
    return Solution(solution.labels, np.concatenate(([cost], solution.history)), solution.converged, {})


@dataclass(eq=False, repr=False, kw_only=True)
class SerialDPMeans(DPMeansSolver):
    """DP-means by serial passes: a point farther than ``lam`` from all centers opens a new cluster.

    This is the original algorithm for DP-means [1]_. It starts with one center, the mean of all points. A pass
    visits the points in a random order, which is the same in all passes. The pass assigns each point to the
    nearest center. If the squared distance to that center is above ``lam``, the point becomes the center of a new
    cluster instead. After a pass, centers move to the means of their clusters, and empty clusters are removed.
    No pass increases the cost. The algorithm stops after a pass that changes no assignment.

    Parameters
    ----------
    lam : float, default=1.0
        The cost of a cluster, and the squared distance above which a point opens a new cluster. With 0, each
        distinct point is a cluster. With infinity, there is a single cluster.
    n_init : int, default=1
        The number of starts, each with its own random order. The start with the smallest cost is kept.
    max_iter : int, default=300
        The maximum number of passes per start.
    tol : float, default=0.0
        Stop after a pass that lowers the cost by no more than this relative amount.
    random_state : int, RandomState or None, default=None
        The random seed of the orders. Pass an integer for reproducible results.
    n_jobs : int, optional
        The number of threads. None or -1 uses all cores. The result does not depend on the number of threads.

    Attributes
    ----------
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point, numbered from 0 in order of first appearance.
    cluster_centers_ : ndarray of float64 of shape (n_clusters, n_features)
        The mean of each cluster.
    n_clusters_ : int
        Number of clusters.
    cost_ : float
        The value of ``agglo.metrics.dp_means_cost(X, labels_, lam)``. If ``lam`` is infinite, it is infinite.
    costs_ : ndarray of float64 of shape (n_init,)
        The cost of each start.
    cost_history_ : ndarray of float64 of shape (n_iter,)
        The cost after each pass of the best start; it never increases.
    n_iter_ : int
        The number of passes of the best start.
    converged_ : bool
        Whether the best start stopped before ``max_iter`` passes.
    n_features_in_ : int
        Number of columns of ``X``.

    See Also
    --------
    agglo.metrics.dp_means_cost : The cost that the solvers minimize.

    References
    ----------
    .. [1] B. Kulis and M. I. Jordan, "Revisiting k-means: New Algorithms via Bayesian Nonparametrics", ICML 2012.

    Examples
    --------
    >>> from agglo.paper.dpmeans import SerialDPMeans
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> solver = SerialDPMeans(lam=4.0, random_state=0).fit(X)
    >>> solver.labels_, solver.cost_
    (array([0, 0, 1, 1]), 9.0)
    >>> solver.cluster_centers_.ravel()
    array([ 0.5, 10.5])
    """

    def _solve(self, points: PointArray, lam: float, rng: np.random.RandomState, n_threads: int) -> Solution:
        mean = _core.compute_cluster_means(points, np.zeros(len(points), np.int32), 1, n_threads).reshape(1, -1)
        return run_passes(
            points, mean, lam, rng, n_threads, epoch=1, max_iter=int(self.max_iter), tol=float(self.tol)
        )


@dataclass(eq=False, repr=False, kw_only=True)
class OCCDPMeans(DPMeansSolver):
    """DP-means by passes that process the points in parallel epochs.

    This is DP-means with optimistic concurrency control [1]_. An epoch is a group of consecutive points. The
    points of an epoch are compared in parallel with the centers at the start of the epoch. A point farther than
    ``lam`` from all centers proposes a new cluster. Then the proposals are processed serially. If a proposal is
    within ``lam`` of an accepted proposal, the point is assigned to that accepted proposal. Otherwise the proposal
    is accepted. The first epoch starts without centers. In all other respects, the algorithm and its attributes
    are the same as for :class:`SerialDPMeans`.

    Parameters
    ----------
    lam : float, default=1.0
        The cost of a cluster, and the squared distance above which a point proposes a new cluster.
    epoch_size : int, default=4096
        The number of points in an epoch. The result depends on this number, but not on the number of threads.
    n_init, max_iter, tol, random_state, n_jobs
        As for :class:`SerialDPMeans`.

    References
    ----------
    .. [1] X. Pan, J. E. Gonzalez, S. Jegelka, T. Broderick and M. I. Jordan, "Optimistic Concurrency Control for
       Distributed Unsupervised Learning", NIPS 2013.

    Examples
    --------
    >>> from agglo.paper.dpmeans import OCCDPMeans
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> OCCDPMeans(lam=4.0, random_state=0, n_jobs=2).fit_predict(X)
    array([0, 0, 1, 1])
    """

    epoch_size: int = 4096

    def _check(self) -> None:
        super()._check()
        check_count("epoch_size", self.epoch_size)

    def _solve(self, points: PointArray, lam: float, rng: np.random.RandomState, n_threads: int) -> Solution:
        no_centers = np.empty((0, points.shape[1]))
        return run_passes(
            points,
            no_centers,
            lam,
            rng,
            n_threads,
            epoch=int(self.epoch_size),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )
