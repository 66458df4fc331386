"""Points with the truth about them."""

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
    """Points, their classes, and how the points are meant to be compared.

    Notes
    -----
    Invariants, checked when a set is made:

    1. ``X`` has a row a point and at least one; it is dense, and its numbers are finite;
    2. ``y``, if there is one, has an integer a point, and so has each of ``levels``;
    3. ``texts``, if there are any, are as many as the points.

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
    """The class of each point, 0, 1, ...; None if it is not known."""
    metric: str = "cosine"
    """The metric of :func:`agglo.neighbor_graph` by which the points are compared."""
    levels: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """Other classes of the points, such as coarser ones, by name."""
    texts: tuple[str, ...] | None = None
    """What the points stand for, in words."""

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or 0 in self.X.shape:
            raise ValueError(
                f"{self.name} has points of shape {self.X.shape}: expected a row a point, and a column"
            )
        if self.X.dtype.kind == "f" and not np.isfinite(self.X).all():
            row = int((~np.isfinite(self.X)).any(axis=1).argmax())
            raise ValueError(f"{self.name} has a number that is not finite in row {row}: leave that point out")
        for what, values in [("y", self.y), *self.levels.items(), ("texts", self.texts)]:
            if values is not None and len(values) != len(self.X):
                raise ValueError(f"{self.name} has {len(self.X)} points, but {what} has {len(values)} entries")

    @property
    def n_classes(self) -> int:
        """Number of classes of ``y``; 0 if that is not known."""
        return 0 if self.y is None else len(np.unique(self.y))

    def prepared(self, how: Preparation = "unit") -> Dataset:
        """The set with its points scaled, in float32.

        ``"unit"``: every row is divided by its length, so that squared Euclidean distances are 2 - 2 cosines and
        all methods can be given the same points, whether they compare by cosine or by distance. ``"standard"``:
        first, every column is shifted to mean 0 and divided by its standard deviation (a constant column becomes
        0), for columns whose units differ. A row of zeros stays so.
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
        """At most ``n_points`` of the points, drawn without replacement and kept in order."""
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
