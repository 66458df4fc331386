"""Graphs of what is not a dense table of numbers: sparse features, sets and bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo.search.checks import check_finite, warn_of_zero_rows
from agglo.search.found import Found, Report
from agglo.search.minhash import is_dear, minhash
from agglo.search.sets import (
    all_pairs_of_bits,
    all_pairs_of_sets,
    check_bits,
    check_sets,
    nearest_bits,
    nearest_sets,
)
from agglo.search.sparse import Lists, all_pairs, check_sparse, nearest

BINARY = ("hamming", "jaccard")
"""The metrics that compare zeros and ones; both are distances, and 1 at most."""

SPARSE = ("cosine", "dot", *BINARY)
"""The metrics that sparse points can be compared by."""


class Features:
    """Points that are searched without a table of all their numbers.

    Raises if they, the metric and the method do not go together.
    """

    def __init__(self, X: Any, metric: str, method: str) -> None:
        what = f"a SciPy sparse {type(X).__name__}" if sp.issparse(X) else "a table of zeros and ones"
        if metric not in SPARSE:
            raise TypeError(
                f"X is {what}, but metric={metric!r} needs dense points: pass metric='cosine', 'dot', 'jaccard' "
                "or 'hamming', or X.toarray(), or a low-dimensional projection of it "
                "(sklearn.decomposition.TruncatedSVD)"
            )
        methods = ("auto", "exact", "minhash") if metric == "jaccard" else ("auto", "exact")
        if method not in methods:
            other = "metric='jaccard'" if method == "minhash" else "dense points of other metrics"
            raise ValueError(
                f"method={method!r} is for {other}, and X is {what} by metric={metric!r}: pass method="
                + " or ".join(map(repr, methods[::-1]))
            )
        self.X = X
        self.points: Any
        self._nearest: Callable[..., Lists]
        self._pairs: Callable[..., npt.NDArray[np.float32]]
        if metric == "hamming":
            self.points = check_bits(X)
            self._nearest, self._pairs = nearest_bits, all_pairs_of_bits
        elif metric == "jaccard":
            self.points = check_sets(X)
            self._nearest, self._pairs = nearest_sets, all_pairs_of_sets
        else:
            self.points = check_sparse(X, metric)
            self._nearest, self._pairs = partial(nearest, metric=metric), partial(all_pairs, metric=metric)
            if metric == "cosine":
                warn_of_zero_rows(self.points.empty(), len(self.points), stacklevel=4)
        self._sets = metric == "jaccard"

    def __len__(self) -> int:
        return len(self.points)

    def choice(self, recall: float) -> str:
        """The method that is expected to cost least."""
        return "minhash" if self._sets and recall < 1 and is_dear(self.points) else "exact"

    def search(
        self, n_neighbors: int, workers: int, report: Report | None, method: str = "exact", **wish: Any
    ) -> Found:
        """The nearest neighbours of all points."""
        if method == "minhash":
            return minhash(self.points, n_neighbors, workers, report, **wish)
        indices, values = self._nearest(self.points, n_neighbors, workers=workers, report=report)
        check_finite(values, self.X)
        shape = (len(self), n_neighbors)
        return Found(indices.reshape(shape), values.reshape(shape), None, {})

    def all_pairs(self, workers: int, report: Report | None) -> npt.NDArray[np.float32]:
        """The values of all pairs, row by row."""
        values: npt.NDArray[np.float32] = self._pairs(self.points, workers=workers, report=report)
        check_finite(values, self.X)
        return values
