"""The neighbours of new points among those that were fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._native import dgemm, one_blas_thread, sgemm
from agglo.neighbors.lists import Report
from agglo.neighbors.sparse import BINARY, Lists, check_bits, check_sets, check_sparse
from agglo.neighbors.validation import check_finite
from agglo.points.projection import main_directions
from agglo.points.validation import Points, blocks, check_points, for_core

QUERIED = {
    "exact": "exact",
    "kdtree": "kdtree",
    "cells": "cells",
    "minhash": "exact",  # of sets: the exact index answers them one by one
}
"""By the method that found the neighbours of the fitted points, the one that finds those of new ones."""

Candidates = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Directed edges in compressed rows: where each row begins, targets and values."""


class Fitted:
    """Points that were fitted, and what is needed to find the neighbours of others among them.

    Parameters
    ----------
    X : array or sparse matrix
        The points, as the search that fitted them took them; kept as they are, without a copy if possible.
    metric, method : str
        How points are compared, and how the neighbours of the fitted ones were found.
    effort : mapping
        The settings of that search.
    recall, random_state
        As of :func:`agglo.neighbor_graph`.
    cells : ndarray of int32, optional
        The cells that the points were in, if by cells.

    Notes
    -----
    What is found for a new point does not depend on the others that are asked for with it. What is kept of cells
    is made when first needed; it is not pickled, and made anew where that is needed.
    """

    def __init__(
        self,
        X: Any,
        metric: str,
        method: str,
        effort: Mapping[str, Any],
        recall: float,
        random_state: int,
        cells: npt.NDArray[np.int32] | None = None,
    ) -> None:
        self.features = sp.issparse(X) or metric in BINARY
        self.X = X if self.features else check_points(X, compact=True)
        self.metric = metric
        self.method = QUERIED[method]
        self.recall = recall
        self.random_state = random_state
        self.effort = {name: int(effort.get(name, 0)) for name in ("cell_size", "visits", "candidates")}
        self._cells = np.empty(0, np.int32) if cells is None else cells
        self.moments: Any = None  # what linkages of the points keep of a tree's nodes, and of which tree
        self._indexes: dict[int, Any] = {}
        self._hashes: tuple[npt.NDArray[np.uint64], npt.NDArray[np.intp]] | None = None
        self._as_floats: Fitted | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"moments": None, "_indexes": {}, "_hashes": None, "_as_floats": None}

    def match(self, X: Any) -> tuple[Fitted, Any]:
        """Return fitted and new points of one type, and new points sparse if the fitted ones are.

        Floats are rounded to the type of the fitted points. If those are integers and new ones are not, the fitted
        points are returned as float32; these points themselves do not change.
        """
        if self.features:
            if sp.issparse(self.X):
                return self, sp.csr_array(X)
            return self, X.toarray() if sp.issparse(X) else np.asarray(X)
        # A query may be as close to a fitted point, or to another query, as it likes: distances need no scale.
        by_size = self.metric if self.metric in ("cosine", "dot") else None
        new = check_points(X, compact=True, metric=by_size)
        if new.dtype == self.X.dtype:
            return self, new
        if self.X.dtype.kind != "f" and not np.array_equal(new.astype(self.X.dtype), new):
            if self._as_floats is None:
                settings = (self.metric, self.method, self.effort, self.recall, self.random_state, self._cells)
                self._as_floats = Fitted(self.X.astype(np.float32), *settings)
            return self._as_floats.match(new)
        if self.metric == "cosine" and self.X.dtype.kind == "f":
            _check_rounded_lengths(new, self.X.dtype)
        with np.errstate(over="ignore"):
            return self, check_points(new.astype(self.X.dtype), compact=True, metric=by_size)

    def with_more(self, new: Any) -> Any:
        """The fitted points and, after them, new ones that are alike."""
        if sp.issparse(self.X):
            return sp.vstack([sp.csr_array(self.X), new], format="csr")
        return np.concatenate([self.X, new])

    def nearest(self, new: Any, n_neighbors: int, workers: int, report: Report | None) -> Lists:
        """The closest fitted points of each new one, and their values; -1 where there are no more.

        ``new`` are points that are :meth:`match`, and ``n_neighbors`` is at most as many as there are fitted.
        """
        if self.features:
            lists = nearest_features(self.X, new, n_neighbors, self.metric, workers, report)
        else:
            with one_blas_thread():
                lists = self._nearest_points(new, n_neighbors, workers, report)
        indices, values = lists
        check_finite(values, self.X, new)
        shape = (new.shape[0], n_neighbors)
        return indices.reshape(shape), values.reshape(shape)

    def _nearest_points(self, new: Points, k: int, workers: int, report: Report | None) -> Lists:
        points, queries = for_core(self.X), for_core(new)
        lists: Lists
        if self.method == "kdtree":
            lists = _core.nearest_to_by_tree(queries, points, k, self.metric, workers, report)
        elif self.method == "exact":
            lists = _core.nearest_to(queries, points, k, self.metric, sgemm(), workers, report)
        else:
            if k not in self._indexes:
                basis = main_directions(self.X, self.metric)
                self._indexes[k] = _core.cell_index(
                    *(points, k, self.metric, self.recall, *self.effort.values(), self._cells, basis),
                    *(self.random_state, sgemm(), dgemm(), workers, report),
                )
            lists = self._indexes[k].nearest_to(queries, workers, report)
        return lists

    def select_closest(self, candidates: Candidates, n_neighbors: int, workers: int) -> Lists:
        """Select the closest candidates of every fitted point, in the order of a search; -1 if there are fewer.

        ``candidates`` are rows of edges between the fitted points: ``indptr``, ``indices`` and float32 values.
        Values that are equal in float32 are compared in float64, as searches do.
        """
        lists: Lists
        given = (*candidates, n_neighbors, workers)
        if not self.features:
            lists = _core.select_closest(for_core(self.X), self.metric, *given)
        elif self.metric == "hamming":
            lists = _core.select_closest_bits(*check_bits(self.X), *given)
        elif self.metric == "jaccard":
            rows = check_sets(self.X)
            lists = _core.select_closest_sets(rows.indptr, rows.indices, rows.columns, *given)
        else:
            rows = check_sparse(self.X, self.metric)
            lists = _core.select_closest_sparse(*rows, self.metric == "cosine", *given)
        indices, values = lists
        return indices.reshape(-1, n_neighbors), values.reshape(-1, n_neighbors)

    def copies(self, new: Any, workers: int) -> npt.NDArray[np.int64]:
        """The first fitted point that is the same as each new one; -1 where there is none."""
        if self._hashes is None:
            hashes = self._row_hashes(self.X, workers)
            order = np.argsort(hashes, kind="stable")
            self._hashes = hashes[order], order
        known, order = self._hashes
        wanted = self._row_hashes(new, workers)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found = order[place].astype(np.int64)
        maybe = np.flatnonzero(known[place] == wanted)
        same = _same_rows(self.X[found[maybe]], new[maybe])
        copies = np.full(len(wanted), -1, np.int64)
        copies[maybe[same]] = found[maybe[same]]
        return copies

    def _row_hashes(self, X: Any, workers: int) -> npt.NDArray[np.uint64]:
        if sp.issparse(X):
            return _sparse_hashes(X)
        rows = np.ascontiguousarray(X)
        hashes: npt.NDArray[np.uint64] = _core.row_hashes(rows.view(np.uint8).reshape(len(rows), -1), workers)
        return hashes


def nearest_features(
    X: Any, new: Any, n_neighbors: int, metric: str, workers: int, report: Report | None
) -> Lists:
    """The closest rows of ``X`` for each of ``new``, where these are sparse, sets or bits."""
    both = sp.vstack([sp.csr_array(X), new], format="csr") if sp.issparse(X) else np.concatenate([X, new])
    given = (X.shape[0], n_neighbors)
    lists: Lists
    if metric == "hamming":
        words, bits = check_bits(both)
        lists = _core.nearest_bits_to(words, bits, *given, workers, report)
    elif metric == "jaccard":
        rows = check_sets(both)
        lists = _core.nearest_sets_to(rows.indptr, rows.indices, rows.columns, *given, workers, report)
    else:
        lists = _core.sparse_nearest_to(*check_sparse(both, metric), *given, metric == "cosine", workers, report)
    return lists


def _check_rounded_lengths(new: Points, dtype: np.dtype[Any]) -> None:
    """Raise if a row is not zero but too short to keep its direction when it is rounded to ``dtype``."""
    least = float(np.finfo(dtype).tiny)
    for first, rows in blocks(new):
        largest = np.abs(rows).max(axis=1)
        short = (largest > 0) & (largest < least)
        if short.any():
            row = int(short.argmax())
            raise ValueError(
                f"the largest magnitude in row {first + row} of X is {largest[row]:g}, below the {least:.2g} that "
                f"{dtype}, the type of the fitted points, holds with full precision: scale X up"
            )


def _same_rows(left: Any, right: Any) -> npt.NDArray[np.bool_]:
    if not sp.issparse(left):
        return np.asarray((left == right).all(axis=1))
    return np.asarray(np.diff(sp.csr_array(left != right).indptr) == 0)


def _sparse_hashes(X: Any) -> npt.NDArray[np.uint64]:
    """A hash of each sparse row, whatever the order of its entries: the sum of theirs."""
    rows = sp.csr_array(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    with np.errstate(over="ignore"):
        words = rows.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        words ^= rows.data.astype(np.float64).view(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(words ^ (words >> np.uint64(32)), dtype=np.uint64)])
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
