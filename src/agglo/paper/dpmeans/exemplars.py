"""DP-means whose cluster centers are points (exemplars): facility location, solved by a convex relaxation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo.paper.dpmeans.base import DPMeansSolver, Solution
from agglo.points.points import PointArray

_BLOCK = 4096  # number of rows that are processed at a time, to limit memory


@dataclass(eq=False, repr=False, kw_only=True)
class LowRankALBCD(DPMeansSolver):
    """Exemplar clustering by a convex relaxation, with a lower bound on the cost.

    Exemplar clustering is facility location in which every point is a possible facility. The cost is the sum of
    squared distances to the nearest exemplar plus ``lam`` per exemplar. The method [1]_ allows fractional
    assignments of points to exemplars, which makes the problem convex. It solves this problem by block coordinate
    descent on an augmented Lagrangian. A block is one column: the assignments of all points to one exemplar.
    Column generation adds columns with negative reduced cost. The distance matrix is computed in blocks, so it is
    never in memory as a whole.

    Parameters
    ----------
    lam : float, default=1.0
        The cost of a cluster. With 0, each distinct point is a cluster. With infinity, there is a single cluster.
    n_init : int, default=1
        The number of starts, each from seeds of :class:`DPMeansPlusPlus`. The start with the smallest ``cost_`` is
        kept.
    max_iter : int, default=100
        The maximum number of iterations per start. An iteration consists of several sweeps over the columns,
        followed by column generation.
    tol : float, default=0.01
        A start has converged if the cost of the relaxation or of the exemplars is within this relative gap of the
        lower bound. Otherwise ``fit`` warns.
    random_state, n_jobs
        As for :class:`SerialDPMeans`.

    Attributes
    ----------
    labels_, cluster_centers_, n_clusters_, cost_, costs_, converged_, n_features_in_
        As for :class:`SerialDPMeans`. The centers are the means of the clusters, not the exemplars. The costs are
        computed with these means.
    exemplar_indices_ : ndarray of int64 of shape (n_clusters,)
        The exemplar of each cluster, as a row number of ``X``.
    facility_cost_ : float
        The sum of squared distances to the exemplars plus ``lam`` per exemplar.
    lower_bound_ : float
        A lower bound on the facility cost of any set of exemplars.
    gap_ : float
        The relative gap between the value of the relaxation and the lower bound.
    cost_history_ : ndarray of float64 of shape (n_iter,)
        The smallest facility cost found so far, after each iteration of the best start.
    n_iter_ : int
        The number of iterations of the best start.

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

    max_iter: int = 100
    tol: float = 0.01

    def _solve(self, points: PointArray, lam: float, rng: np.random.RandomState, n_threads: int) -> Solution:
        seed = int(rng.randint(np.iinfo(np.int64).max, dtype=np.int64))
        # Replace duplicates by one point with the sum of their weights.
        rows, first, inverse, counts = np.unique(
            points + points.dtype.type(0), axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        labels = inverse.reshape(-1).astype(np.int32)
        if lam == 0 or len(rows) == 1:
            return _solution(labels, first, np.array([lam * len(rows)]), lam * len(rows), lam * len(rows))
        medoid, within = _find_medoid(points, n_threads)
        if lam >= within:  # a second exemplar would cost more than it saves
            cost = lam + within
            return _solution(np.zeros(len(points), np.int32), np.array([medoid]), np.array([cost]), cost, cost)
        with one_blas_thread():
            seeds, start, _ = _core.draw_dp_seeds(rows, lam, "cost", seed, sgemm(), n_threads, None)
            exemplars, nearest, history, _, relaxed, bound, converged = _core.solve_exemplars(
                rows,
                counts.astype(np.float64),
                seeds,
                start,
                lam,
                int(self.max_iter),
                float(self.tol),
                sgemm(),
                n_threads,
                None,
            )
        if not converged:
            warnings.warn(
                f"max_iter={self.max_iter} iterations left a gap of {1 - bound / relaxed:.2g} to the lower bound, "
                f"more than tol={self.tol}: pass a larger max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        return _solution(nearest[labels], first[exemplars], history, relaxed, bound, converged)


def _solution(
    labels: npt.NDArray[np.int32],
    exemplars: npt.NDArray[Any],
    history: npt.NDArray[np.float64],
    relaxed: float,
    bound: float,
    converged: bool = True,
) -> Solution:
    attributes = {
        "exemplar_indices_": exemplars.astype(np.int64),
        "facility_cost_": float(history[-1]),
        "lower_bound_": float(bound),
        "gap_": 1 - float(bound) / float(relaxed) if 0 < relaxed < np.inf else 0.0,
    }
    return Solution(labels, history, converged, attributes)


def _find_medoid(points: PointArray, n_threads: int) -> tuple[int, float]:
    """Find the point with the smallest sum of squared distances to all points; return its index and the sum."""
    mean = _core.compute_cluster_means(points, np.zeros(len(points), np.int32), 1, n_threads)
    squares = np.empty(len(points))
    for begin in range(0, len(points), _BLOCK):
        squares[begin : begin + _BLOCK] = np.square(points[begin : begin + _BLOCK] - mean).sum(axis=1)
    medoid = int(squares.argmin())
    return medoid, float(squares.sum() + len(points) * squares[medoid])
