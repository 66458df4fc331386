"""A dataset: points with their true classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import normalize

Preparation = Literal["unit", "standard"]
PREPARATIONS = ("unit", "standard")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Points with their classes, and the metric that compares them.

    Notes
    -----
    Invariants, which the constructor checks:

    1. ``X`` is dense and finite, with one row per point and at least one row and column;
    2. ``y``, if given, and each of ``levels`` has one integer per point;
    3. ``texts``, if given, has one text per point.

    Examples
    --------
    >>> import numpy as np
    >>> from agglo.paper.datasets import Dataset
    >>> Dataset("pair", np.eye(2), y=np.array([0, 1]))
    Dataset(pair: 2 points, 2 columns, 2 classes, cosine)
    """

    name: str
    X: npt.NDArray[Any]
    y: npt.NDArray[np.int64] | None = None
    """The class of each point, numbered from 0. If the classes are unknown, it is None."""
    metric: str = "cosine"
    """The metric to pass to :func:`agglo.neighbor_graph`."""
    levels: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """Further classifications of the points by name, for example into coarser classes."""
    texts: tuple[str, ...] | None = None
    """The text of each point."""

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or 0 in self.X.shape:
            raise ValueError(
                f"{self.name} has points of shape {self.X.shape}: expected at least one row and one column"
            )
        if self.X.dtype.kind == "f" and not np.isfinite(self.X).all():
            row = int((~np.isfinite(self.X)).any(axis=1).argmax())
            raise ValueError(f"{self.name} has a number that is not finite in row {row}: remove that point")
        for what, values in [("y", self.y), *self.levels.items(), ("texts", self.texts)]:
            if values is not None and len(values) != len(self.X):
                raise ValueError(f"{self.name} has {len(self.X)} points, but {what} has {len(values)} entries")

    @property
    def n_classes(self) -> int:
        """The number of classes in ``y``; 0 if ``y`` is None."""
        return 0 if self.y is None else len(np.unique(self.y))

    def prepare(self, how: Preparation = "unit") -> Dataset:
        """Return a copy of the dataset with scaled points, in float32.

        ``"unit"`` normalizes every row to unit length, so that cosine and Euclidean methods can use the same
        points. ``"standard"`` first scales every column to mean 0 and standard deviation 1, for columns with
        different units. Constant columns become 0. Zero rows stay zero.

        Examples
        --------
        >>> import numpy as np
        >>> from agglo.paper.datasets import Dataset
        >>> Dataset("pair", np.array([[3.0, 4.0], [0.0, 2.0]])).prepare().X
        array([[0.6, 0.8],
               [0. , 1. ]], dtype=float32)
        """
        if how not in PREPARATIONS:
            raise ValueError(f"how={how!r} is unknown: pass one of {', '.join(map(repr, PREPARATIONS))}")
        X = np.asarray(self.X, np.float32)
        if how == "standard":
            scale = self.X.std(axis=0, dtype=np.float64)
            scale[scale == 0] = 1.0
            X = ((X - self.X.mean(axis=0, dtype=np.float64)) / scale).astype(np.float32)
        return replace(self, X=normalize(X, copy=True))

    def sample(self, n_points: int, random_state: int = 0) -> Dataset:
        """Sample at most ``n_points`` points without replacement; the sampled points keep their order.

        Examples
        --------
        >>> from agglo.paper.datasets import load_iris
        >>> load_iris().sample(50)
        Dataset(iris: 50 points, 4 columns, 3 classes, euclidean)
        """
        if n_points < 1:
            raise ValueError(f"n_points={n_points} must be at least 1")
        if n_points >= len(self.X):
            return self
        chosen = np.sort(np.random.default_rng(random_state).choice(len(self.X), n_points, replace=False))
        return replace(
            self,
            X=self.X[chosen],
            y=None if self.y is None else self.y[chosen],
            levels={name: values[chosen] for name, values in self.levels.items()},
            texts=None if self.texts is None else tuple(self.texts[i] for i in chosen),
        )

    def __repr__(self) -> str:
        n, d = self.X.shape
        classes = "no classes" if self.y is None else f"{self.n_classes} classes"
        return f"Dataset({self.name}: {n} points, {d} columns, {classes}, {self.metric})"


def encode_classes(y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Encode classes as integers from 0, in the sorted order of the classes."""
    return np.asarray(np.unique(y, return_inverse=True)[1], np.int64)
