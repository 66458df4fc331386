"""What the solvers share: parameters and their checks, several starts, and what comes out of the best."""

from __future__ import annotations

import math
import numbers
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
from agglo.points.validation import Points, check_points, validate_points


@dataclass(frozen=True, eq=False)
class Found:
    """What one start of a solver has found."""

    labels: npt.NDArray[np.int32]  # 0..k-1, none empty
    history: npt.NDArray[np.float64]  # cost after each pass
    converged: bool
    about: dict[str, Any]  # further attributes of the fitted solver


class DPMeansSolver(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """A clusterer that seeks the partition of least DP-means cost, from one or several starts."""

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
        """The solver with ``labels_``, ``cluster_centers_`` and ``cost_`` of the best of its starts.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            The points.
        y : object
            Not used; for pipelines.
        """
        price = check_lam(self.lam)
        n_init = check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_share("tol", self.tol)
        self._check()
        workers = effective_n_threads(self.n_jobs)
        points = check_points(validate_points(self, X))
        chance = check_random_state(self.random_state)
        costs = np.empty(n_init)
        best: Found | None = None
        for start, seed in enumerate(chance.randint(np.iinfo(np.int32).max, size=n_init)):
            found = self._search(points, price, np.random.RandomState(seed), workers)
            labels, names = in_order(found.labels)
            # Where a cluster has no finite price, one for all points is the best, and its cost is not finite.
            costs[start] = dp_means_cost(points, labels, price) if math.isfinite(price) else math.inf
            if best is None or costs[start] < self.cost_:
                best, order = found, names
                self.cost_, self.labels_ = float(costs[start]), labels
        assert best is not None
        self.costs_ = costs
        self.n_clusters_ = len(order)
        means = _core.cluster_means(points, self.labels_.astype(np.int32), len(order), workers)
        self.cluster_centers_ = means.reshape(len(order), points.shape[1])
        self.cost_history_ = best.history
        self.n_iter_ = len(best.history)
        self.converged_ = best.converged
        for name, value in best.about.items():
            setattr(self, name, value[order] if name in _BY_CLUSTER else value)
        return self

    def _check(self) -> None:
        """Raise if a parameter that only this solver has is wrong."""

    @abstractmethod
    def _search(self, points: Points, price: float, chance: np.random.RandomState, workers: int) -> Found:
        """What one start finds; ``price`` is ``lam``, checked."""


_BY_CLUSTER = {"seed_indices_", "exemplar_indices_"}  # attributes with an entry a cluster


def in_order(labels: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Labels renamed in order of first appearance, and the old name of each."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[inverse].astype(np.int64), labels[np.sort(first)].astype(np.int64)


def check_lam(lam: object) -> float:
    """``lam`` as a number that may be infinite."""
    if isinstance(lam, bool) or not isinstance(lam, numbers.Real):
        raise TypeError(f"lam={lam!r} is no price of a cluster: pass a number that is not negative")
    price = float(lam)
    if not price >= 0:  # so not for NaN
        raise ValueError(f"lam={lam!r} is no price of a cluster: pass a number that is not negative")
    return price


def check_count(name: str, value: object) -> int:
    """``value`` as a number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is not a whole number: pass a positive integer")
    if int(value) < 1:
        raise ValueError(f"{name}={value} must be at least 1: pass a positive integer")
    return int(value)


def check_choice(name: str, value: object) -> None:
    """Raise if ``value`` is neither true nor false."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} is not a choice: pass True or False")


def check_share(name: str, value: object) -> float:
    """``value`` as a finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} is not a number: pass one that is not negative, such as 1e-4")
    share = float(value)
    if not 0 <= share < math.inf:
        raise ValueError(f"{name}={value!r} must be finite and not negative: pass 0 or a small share, say 1e-4")
    return share
