"""DP-means by passes over the points, serial and by epochs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo.paper.dpmeans.base import DPMeansSolver, Found, check_count
from agglo.points.validation import Points


def passes(
    points: Points,
    start: npt.NDArray[np.float64],
    price: float,
    chance: np.random.RandomState,
    workers: int,
    *,
    epoch: int,
    max_iter: int,
    tol: float,
) -> Found:
    """What passes in a random order find, from the given centres on."""
    order = chance.permutation(len(points)).astype(np.int32)
    with one_blas_thread():
        labels, _, history, converged = _core.dp_means(
            points, order, start, price, epoch, max_iter, tol, sgemm(), workers, None
        )
    return Found(labels, history, converged, {})


def refined(
    points: Points,
    labels: npt.NDArray[np.int32],
    cost: float,
    price: float,
    chance: np.random.RandomState,
    workers: int,
    max_iter: int,
    tol: float,
) -> Found:
    """What passes find from clusters of a known cost on."""
    k = int(labels.max()) + 1
    means = _core.cluster_means(points, labels, k, workers).reshape(k, -1)
    found = passes(points, means, price, chance, workers, epoch=1, max_iter=max_iter, tol=tol)
    return Found(found.labels, np.concatenate(([cost], found.history)), found.converged, {})


class SerialDPMeans(DPMeansSolver):
    """Clusterer that passes over the points, one opening a cluster where all centres are farther than ``lam``.

    The classic algorithm for DP-means [1]_. It begins with one centre, the mean of all points. In a pass each
    point, in an order drawn once, goes to the nearest centre, unless that is at a squared distance above
    ``lam``: then the point is the centre of a new cluster, which the points after it see. After the pass centres
    move to the means of their clusters, and empty clusters go. Every pass lowers the cost; the last is the first
    one in which no point changes its cluster.

    Parameters
    ----------
    lam : float, default=1.0
        The price of a cluster, and the squared distance beyond which a point opens one. 0 gives a cluster to
        every distinct point, infinity one to all.
    n_init : int, default=1
        Starts, each with its own order; the one of least cost counts.
    max_iter : int, default=300
        The most passes of a start.
    tol : float, default=0.0
        A pass that lowers the cost by no more than this share of it is the last.
    random_state : int, RandomState or None, default=None
        Where the orders come from. An integer makes results repeatable.
    n_jobs : int, optional
        Threads; None or -1 for all cores. The result does not depend on it.

    Attributes
    ----------
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point, 0, 1, ... in order of first appearance.
    cluster_centers_ : ndarray of float64 of shape (n_clusters_, n_features)
        The mean of each cluster.
    n_clusters_ : int
        Number of clusters.
    cost_ : float
        ``agglo.metrics.dp_means_cost(X, labels_, lam)``; infinite if ``lam`` is.
    costs_ : ndarray of float64 of shape (n_init,)
        The cost of each start, for their minimum, mean and maximum.
    cost_history_ : ndarray of float64 of shape (n_iter_,)
        Of the best start, the cost after each pass; it never rises.
    n_iter_ : int
        Passes of the best start.
    converged_ : bool
        Whether the last pass of the best start changed nothing (or less than ``tol``); False if ``max_iter`` ended
        it.
    n_features_in_ : int
        Number of columns of ``X``.

    See Also
    --------
    agglo.metrics.dp_means_cost : The cost.

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

    def _search(self, points: Points, price: float, chance: np.random.RandomState, workers: int) -> Found:
        mean = _core.cluster_means(points, np.zeros(len(points), np.int32), 1, workers).reshape(1, -1)
        return passes(
            points, mean, price, chance, workers, epoch=1, max_iter=int(self.max_iter), tol=float(self.tol)
        )


class OCCDPMeans(DPMeansSolver):
    """Clusterer that passes over the points in epochs, whose points do not wait for each other.

    DP-means under optimistic concurrency control [1]_. The points of an epoch are all compared with the centres
    that stand at its beginning, in parallel. Those farther than ``lam`` from all of them are proposals for new
    clusters, and these are looked at one after the other: a proposal within ``lam`` of one accepted before it in
    its epoch joins that, any other is accepted. It begins without centres; all else is as in
    :class:`SerialDPMeans`, whose parameters and attributes it has.

    Parameters
    ----------
    lam : float, default=1.0
        The price of a cluster, and the squared distance beyond which a point proposes one.
    epoch_size : int, default=4096
        Points in an epoch. The result depends on it, but not on the number of threads.
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

    def __init__(
        self,
        lam: float = 1.0,
        *,
        epoch_size: int = 4096,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(lam, n_init=n_init, max_iter=max_iter, tol=tol, random_state=random_state, n_jobs=n_jobs)
        self.epoch_size = epoch_size

    def _check(self) -> None:
        check_count("epoch_size", self.epoch_size)

    def _search(self, points: Points, price: float, chance: np.random.RandomState, workers: int) -> Found:
        nobody = np.empty((0, points.shape[1]))
        return passes(
            points,
            nobody,
            price,
            chance,
            workers,
            epoch=int(self.epoch_size),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
        )
