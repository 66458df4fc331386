"""The base class of the DP-means solvers. It runs a solver from several starts and keeps the cheapest solution."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from agglo import _core
from agglo._validation import effective_n_threads
from agglo.evaluation.metrics import dp_means_cost
from agglo.paper.estimator import PaperEstimator
from agglo.paper.validation import check_count, check_lam, check_nonnegative, relabel_by_appearance
from agglo.points.points import PointArray


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of one start of a solver."""

    labels: npt.NDArray[np.int32]  # the cluster of each point, from 0 to k-1; no cluster is empty
    history: npt.NDArray[np.float64]  # the cost after each pass
    converged: bool
    attributes: dict[str, Any]  # further attributes of the fitted solver


@dataclass(eq=False, repr=False)
class DPMeansSolver(PaperEstimator):
    """Base class of estimators that minimize the DP-means cost, from one or several random starts."""

    lam: float = 1.0
    _: KW_ONLY
    n_init: int = 1
    max_iter: int = 300
    tol: float = 0.0
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    def _check(self) -> None:
        check_lam(self.lam)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_nonnegative("tol", self.tol)

    def _fit(self, points: PointArray) -> None:
        """Run all starts, and keep the solution with the smallest cost."""
        lam, n_init = float(self.lam), int(self.n_init)
        n_threads = effective_n_threads(self.n_jobs)
        rng = check_random_state(self.random_state)
        costs = np.empty(n_init)
        best: Solution | None = None
        for start, seed in enumerate(rng.randint(np.iinfo(np.int32).max, size=n_init)):
            solution = self._solve(points, lam, np.random.RandomState(seed), n_threads)
            labels, old_labels = relabel_by_appearance(solution.labels)
            costs[start] = finite_cost(points, labels, lam)
            if best is None or costs[start] < costs[:start].min():
                best, order = solution, old_labels
                self.labels_ = labels
        assert best is not None
        self.costs_ = costs
        self.cost_ = float(costs.min())
        self.n_clusters_ = len(order)
        means = _core.compute_cluster_means(points, self.labels_.astype(np.int32), len(order), n_threads)
        self.cluster_centers_ = means.reshape(len(order), points.shape[1])
        self.cost_history_ = best.history
        self.n_iter_ = len(best.history)
        self.converged_ = best.converged
        for name, value in best.attributes.items():
            setattr(self, name, value[order] if name in _BY_CLUSTER else value)

    @abstractmethod
    def _solve(self, points: PointArray, lam: float, rng: np.random.RandomState, n_threads: int) -> Solution:
        """Run the solver from one random start; return its solution."""


_BY_CLUSTER = {"seed_indices_", "exemplar_indices_"}  # attributes with one entry per cluster


def finite_cost(points: PointArray, labels: npt.NDArray[Any], lam: float) -> float:
    """Return the DP-means cost of the labels. If ``lam`` is infinite, return infinity."""
    return dp_means_cost(points, labels, lam) if math.isfinite(lam) else math.inf
