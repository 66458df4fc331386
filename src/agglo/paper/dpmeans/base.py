"""The base class of the DP-means solvers. It runs a solver from several starts and keeps the cheapest solution."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state

from agglo import _core
from agglo._validation import effective_n_threads
from agglo.evaluation.metrics import dp_means_cost
from agglo.paper.validation import check_count, check_lam, check_nonnegative, relabel_by_appearance
from agglo.points.points import PointArray, check_points, validate_points


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of one start of a solver."""

    labels: npt.NDArray[np.int32]  # the cluster of each point, from 0 to k-1; no cluster is empty
    history: npt.NDArray[np.float64]  # the cost after each pass
    converged: bool
    attributes: dict[str, Any]  # further attributes of the fitted solver


class DPMeansSolver(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of estimators that minimize the DP-means cost, from one or several random starts."""

    labels_: npt.NDArray[np.int64]
    cluster_centers_: npt.NDArray[np.float64]
    n_clusters_: int
    cost_: float
    costs_: npt.NDArray[np.float64]
    cost_history_: npt.NDArray[np.float64]
    n_iter_: int
    converged_: bool
    n_features_in_: int

    def __init__(
        self,
        lam: float = 1.0,
        *,
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.lam = lam
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: object = None) -> Self:
        """Run all starts, and keep the solution with the smallest cost.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            The points.
        y : object
            Ignored; present for scikit-learn's conventions.
        """
        lam = check_lam(self.lam)
        n_init = check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_nonnegative("tol", self.tol)
        self._check()
        n_threads = effective_n_threads(self.n_jobs)
        points = check_points(validate_points(self, X))
        rng = check_random_state(self.random_state)
        costs = np.empty(n_init)
        best: Solution | None = None
        for start, seed in enumerate(rng.randint(np.iinfo(np.int32).max, size=n_init)):
            solution = self._solve(points, lam, np.random.RandomState(seed), n_threads)
            labels, old_labels = relabel_by_appearance(solution.labels)
            costs[start] = finite_cost(points, labels, lam)
            if best is None or costs[start] < self.cost_:
                best, order = solution, old_labels
                self.cost_, self.labels_ = float(costs[start]), labels
        assert best is not None
        self.costs_ = costs
        self.n_clusters_ = len(order)
        means = _core.compute_cluster_means(points, self.labels_.astype(np.int32), len(order), n_threads)
        self.cluster_centers_ = means.reshape(len(order), points.shape[1])
        self.cost_history_ = best.history
        self.n_iter_ = len(best.history)
        self.converged_ = best.converged
        for name, value in best.attributes.items():
            setattr(self, name, value[order] if name in _BY_CLUSTER else value)
        return self

    def _check(self) -> None:
        """Raise an error if a parameter that only this solver has is invalid."""

    @abstractmethod
    def _solve(self, points: PointArray, lam: float, rng: np.random.RandomState, n_threads: int) -> Solution:
        """Run the solver from one random start; return its solution. ``lam`` has been validated."""


_BY_CLUSTER = {"seed_indices_", "exemplar_indices_"}  # attributes with one entry per cluster


def finite_cost(points: PointArray, labels: npt.NDArray[Any], lam: float) -> float:
    """Return the DP-means cost of the labels. If ``lam`` is infinite, return infinity."""
    return dp_means_cost(points, labels, lam) if math.isfinite(lam) else math.inf
