"""DP-means by exemplars: facility location, by a convex relaxation of it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo.paper.dpmeans.base import DPMeansSolver, Found
from agglo.points.validation import Points

_ROWS = 4096  # looked at together, so that they need little memory


class LowRankALBCD(DPMeansSolver):
    """Clusterer around exemplars, which comes with a bound on how much better others could be.

    Exemplar clustering, or facility location with every point a possible facility: squared distances to the
    nearest exemplar plus ``lam`` for each exemplar. The method [1]_ relaxes "which exemplar" to shares of
    exemplars and solves that convex problem by block coordinate descent on an augmented Lagrangian, a column of
    shares at a time. Columns are made when prices of the points say that they pay. The matrix of distances is
    never formed: what is needed of it comes from blocks of products of the points.

    Parameters
    ----------
    lam : float, default=1.0
        The price of a cluster. 0 gives a cluster to every distinct point, infinity one to all.
    n_init : int, default=1
        Starts, each from seeds as :class:`DPMeansPlusPlus` draws them; the one of least ``cost_`` counts.
    max_iter : int, default=100
        The most rounds of a start: some sweeps over the columns, then a look at all points for further ones.
    tol : float, default=0.01
        A start has converged when the relaxation, or the exemplars, are within this share of the lower bound.
        Otherwise ``fit`` warns.
    random_state : int, RandomState or None, default=None
        Where the seeds come from. An integer makes results repeatable.
    n_jobs : int, optional
        Threads; None or -1 for all cores. The result does not depend on it.

    Attributes
    ----------
    labels_, cluster_centers_, n_clusters_, cost_, costs_, converged_, n_features_in_
        As for :class:`SerialDPMeans`; centres and costs are those of means.
    exemplar_indices_ : ndarray of int64 of shape (n_clusters_,)
        The exemplar of each cluster, as a row of ``X``.
    facility_cost_ : float
        Squared distances to the exemplars plus ``lam`` for each.
    lower_bound_ : float
        No exemplars have a lower facility cost.
    gap_ : float
        The share of the relaxation's value that lies above the bound: how far it is solved, at most.
    cost_history_ : ndarray of float64 of shape (n_iter_,)
        Of the best start, the least facility cost found so far, after each round.
    n_iter_ : int
        Rounds of the best start.

    References
    ----------
    .. [1] I. E.-H. Yen, D. Malioutov and A. Kumar, "Scalable Exemplar Clustering and Facility Location via
       Augmented Block Coordinate Descent with Column Generation", AISTATS 2016.

    Examples
    --------
    >>> from agglo.paper.dpmeans import LowRankALBCD
    >>> X = [[0.0], [1.0], [2.0], [10.0], [11.0]]
    >>> solver = LowRankALBCD(lam=4.0, random_state=0).fit(X)
    >>> solver.labels_, solver.exemplar_indices_
    (array([0, 0, 0, 1, 1]), array([1, 3]))
    >>> solver.cost_, solver.facility_cost_, round(solver.lower_bound_, 6)
    (10.5, 11.0, 11.0)
    """

    exemplar_indices_: npt.NDArray[np.int64]
    facility_cost_: float
    lower_bound_: float
    gap_: float

    def __init__(
        self,
        lam: float = 1.0,
        *,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 0.01,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(lam, n_init=n_init, max_iter=max_iter, tol=tol, random_state=random_state, n_jobs=n_jobs)

    def _search(self, points: Points, price: float, chance: np.random.RandomState, workers: int) -> Found:
        seed = int(chance.randint(np.iinfo(np.int64).max, dtype=np.int64))
        # Copies of a point are one point of larger weight.
        rows, first, copies, counts = np.unique(
            points + points.dtype.type(0), axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        labels = copies.reshape(-1).astype(np.int32)
        if price == 0 or len(rows) == 1:
            return _found(labels, first, np.array([price * len(rows)]), price * len(rows), price * len(rows))
        middle, within = _medoid(points, workers)
        if price >= within:  # a second exemplar alone costs more than all that it could save
            cost = price + within
            return _found(np.zeros(len(points), np.int32), np.array([middle]), np.array([cost]), cost, cost)
        with one_blas_thread():
            seeds, start, _ = _core.dp_seeds(rows, price, False, seed, sgemm(), workers, None)
            exemplars, nearest, history, _, relaxed, bound, converged = _core.exemplars(
                rows,
                counts.astype(np.float64),
                seeds,
                start,
                price,
                int(self.max_iter),
                float(self.tol),
                sgemm(),
                workers,
                None,
            )
        if not converged:
            warnings.warn(
                f"max_iter={self.max_iter} rounds left {1 - bound / relaxed:.2g} of the relaxation's value above "
                f"the bound, more than tol={self.tol}: pass a larger max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        return _found(nearest[labels], first[exemplars], history, relaxed, bound, converged)


def _found(
    labels: npt.NDArray[np.int32],
    exemplars: npt.NDArray[Any],
    history: npt.NDArray[np.float64],
    relaxed: float,
    bound: float,
    converged: bool = True,
) -> Found:
    about = {
        "exemplar_indices_": exemplars.astype(np.int64),
        "facility_cost_": float(history[-1]),
        "lower_bound_": float(bound),
        "gap_": 1 - float(bound) / float(relaxed) if 0 < relaxed < np.inf else 0.0,
    }
    return Found(labels, history, converged, about)


def _medoid(points: Points, workers: int) -> tuple[int, float]:
    """The point with the least sum of squared distances to all, and that sum."""
    mean = _core.cluster_means(points, np.zeros(len(points), np.int32), 1, workers)
    squares = np.empty(len(points))
    for begin in range(0, len(points), _ROWS):
        squares[begin : begin + _ROWS] = np.square(points[begin : begin + _ROWS] - mean).sum(axis=1)
    middle = int(squares.argmin())
    return middle, float(squares.sum() + len(points) * squares[middle])
