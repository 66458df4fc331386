"""The base class of all estimators in this package."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from sklearn.base import BaseEstimator, ClusterMixin

from agglo.points.points import PointArray, check_points, validate_points


class PaperEstimator(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of the baselines and DP-means solvers.

    Subclasses are data classes: their fields are the parameters of the estimator.
    """

    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster the rows of ``X``, and set the attributes of the estimator.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            The points.
        y : object
            Ignored; present for scikit-learn's conventions.
        """
        self._check()
        self._fit(check_points(validate_points(self, X)))
        return self

    def _check(self) -> None:
        """Raise an error if a parameter of the estimator is invalid."""

    @abstractmethod
    def _fit(self, points: PointArray) -> None:
        """Cluster the points, and set the attributes of the estimator."""
