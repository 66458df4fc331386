"""Search index over the fitted points, which finds the nearest neighbours of new points (queries)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo.neighbors.dense import (
    Candidates,
    DensePoints,
    Lists,
    Report,
    check_finite,
    find_main_directions,
    to_rows,
)
from agglo.neighbors.sparse import BINARY_METRICS, SparsePoints
from agglo.points.points import PointArray, as_core_array, canonical_rows, check_lengths, check_points, iter_blocks

QUERY_METHODS = {
    "exact": "exact",
    "kdtree": "kdtree",
    "cells": "cells",
    "minhash": "exact",  # an exact search is fast for a few queries
}
"""Maps the search method of the fitted points to the search method of queries."""

_CELL_PARAMETERS = ("cell_size", "visits", "candidates")


@dataclass(eq=False)
class NeighborIndex:
    """Index that finds the nearest neighbours of queries among the fitted points.

    The result for a query does not depend on the other queries. The first search by cells builds an inverted file
    index. This inverted file index is not pickled.
    """

    X: Any
    metric: str
    fit_method: str  # the search method of the fitted points
    fit_parameters: Mapping[str, Any]  # the parameters of that search; only used if the method is cells
    recall: float  # the share of the true neighbours to find
    seed: int
    cells: npt.NDArray[np.int32] | None = None  # the cell (inverted list) of each fitted point
    moments: Any = field(default=None, init=False)  # cache for vector linkages: a tree, and the means of its nodes
    # Inverted file indexes built so far, by n_neighbors.
    _cell_indexes: dict[int, Any] = field(default_factory=dict, init=False)
    _hashes: tuple[npt.NDArray[np.uint64], npt.NDArray[np.intp]] | None = field(default=None, init=False)
    _as_floats: NeighborIndex | None = field(default=None, init=False)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"moments": None, "_cell_indexes": {}, "_hashes": None, "_as_floats": None}

    @property
    def is_sparse(self) -> bool:
        """Whether the points are searched as sparse rows, sets or bits, and not as dense rows."""
        return sp.issparse(self.X) or self.metric in BINARY_METRICS

    @property
    def method(self) -> str:
        """The search method of queries."""
        return QUERY_METHODS[self.fit_method]

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters of a search by cells. For other methods, they are 0."""
        return {name: int(self.fit_parameters.get(name, 0)) for name in _CELL_PARAMETERS}

    def convert_queries(self, X: Any) -> tuple[NeighborIndex, Any]:
        """Convert queries to the type of the fitted points; return an index and the converted queries.

        Floats are rounded to the dtype of the fitted points. If the fitted points are integers and the queries are
        not, return a new index whose fitted points are float32. Otherwise return this index.
        """
        if self.is_sparse:
            if sp.issparse(self.X):
                return self, sp.csr_array(X)
            return self, X.toarray() if sp.issparse(X) else np.asarray(X)
        # Distances of queries may be arbitrarily small. So queries can be too small only for cosine and dot.
        scaled_metric = self.metric if self.metric in ("cosine", "dot") else None
        queries = check_points(X, compact=True, metric=scaled_metric)
        if queries.dtype == self.X.dtype:
            return self, queries
        if self.X.dtype.kind != "f" and not np.array_equal(queries.astype(self.X.dtype), queries):
            if self._as_floats is None:
                self._as_floats = replace(self, X=self.X.astype(np.float32))
            return self._as_floats.convert_queries(queries)
        if self.metric == "cosine" and self.X.dtype.kind == "f":
            # Rounding must not change the direction of a short row.
            least = float(np.finfo(self.X.dtype).tiny)
            for start, rows in iter_blocks(queries):
                where = f" in {self.X.dtype}, the type of the fitted points"
                check_lengths(np.abs(rows).max(axis=1), start, least, where)
        with np.errstate(over="ignore"):
            return self, check_points(queries.astype(self.X.dtype), compact=True, metric=scaled_metric)

    def concatenate(self, queries: Any) -> Any:
        """Return the fitted points followed by the converted queries."""
        if sp.issparse(self.X):
            return sp.vstack([sp.csr_array(self.X), queries], format="csr")
        return np.concatenate([self.X, queries])

    def search(self, queries: Any, n_neighbors: int, n_threads: int, report: Report | None) -> Lists:
        """Find the ``n_neighbors`` closest fitted points of each converted query. If there are fewer, find all."""
        if self.is_sparse:
            rows = SparsePoints(self.concatenate(queries), self.metric)
            lists = rows.search_queries(len(self), n_neighbors, n_threads, report)
        else:
            with one_blas_thread():
                lists = self._search_dense(queries, n_neighbors, n_threads, report)
        check_finite(lists[1], self.X, queries)
        return to_rows(lists, n_neighbors)

    def _search_dense(self, queries: PointArray, n_neighbors: int, n_threads: int, report: Report | None) -> Lists:
        points, rows = as_core_array(self.X), as_core_array(queries)
        lists: Lists
        if self.method == "kdtree":
            lists = _core.query_kdtree(rows, points, n_neighbors, self.metric, n_threads, report)
        elif self.method == "exact":
            lists = _core.query_exact(rows, points, n_neighbors, self.metric, sgemm(), n_threads, report)
        else:
            if n_neighbors not in self._cell_indexes:
                effort, basis = self.parameters, find_main_directions(self.X, self.metric)
                self._cell_indexes[n_neighbors] = _core.IvfIndex(
                    points,
                    k=n_neighbors,
                    metric=self.metric,
                    params=_core.IvfParams(
                        list_size=effort["cell_size"],
                        n_probes=effort["visits"],
                        n_candidates=effort["candidates"],
                    ),
                    recall=self.recall,
                    lists=np.empty(0, np.int32) if self.cells is None else self.cells,
                    basis=basis,
                    seed=self.seed,
                    sgemm=sgemm(),
                    n_threads=n_threads,
                    progress=report,
                )
            lists = self._cell_indexes[n_neighbors].query(rows, n_threads, report)
        return lists

    def select_closest(self, candidates: Candidates, n_neighbors: int, n_threads: int) -> Lists:
        """Select the closest candidates of each fitted point; see :meth:`DensePoints.select_closest`."""
        points = (SparsePoints if self.is_sparse else DensePoints)(self.X, self.metric)
        return points.select_closest(candidates, n_neighbors, n_threads)

    def find_equal(self, queries: Any, n_threads: int) -> npt.NDArray[np.int64]:
        """Return, for each converted query, the index of the first equal fitted point, or -1 if there is none."""
        if self._hashes is None:
            hashes = _hash_rows(self.X, n_threads)
            order = np.argsort(hashes, kind="stable")
            self._hashes = hashes[order], order
        fitted_hashes, order = self._hashes
        query_hashes = _hash_rows(queries, n_threads)
        position = np.minimum(np.searchsorted(fitted_hashes, query_hashes), len(fitted_hashes) - 1)
        first = order[position].astype(np.int64)
        maybe = np.flatnonzero(fitted_hashes[position] == query_hashes)
        is_equal = _equal_rows(self.X[first[maybe]], queries[maybe])
        matches = np.full(len(query_hashes), -1, np.int64)
        matches[maybe[is_equal]] = first[maybe[is_equal]]
        return matches


def _equal_rows(left: Any, right: Any) -> npt.NDArray[np.bool_]:
    """Return, for each ``i``, whether row ``i`` of ``left`` equals row ``i`` of ``right``."""
    if not sp.issparse(left):
        return np.asarray((left == right).all(axis=1))
    return np.asarray(np.diff(sp.csr_array(left != right).indptr) == 0)


def _hash_rows(X: Any, n_threads: int) -> npt.NDArray[np.uint64]:
    """Hash each row of a dense or sparse matrix."""
    if sp.issparse(X):
        return _hash_sparse_rows(X)
    rows = np.ascontiguousarray(X)
    hashes: npt.NDArray[np.uint64] = _core.hash_rows(rows.view(np.uint8).reshape(len(rows), -1), n_threads)
    return hashes


def _hash_sparse_rows(X: Any) -> npt.NDArray[np.uint64]:
    """Hash each sparse row by the sum of the hashes of its entries. The order of the entries has no effect."""
    rows = canonical_rows(X)
    with np.errstate(over="ignore"):
        words = rows.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        words ^= rows.data.astype(np.float64).view(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(words ^ (words >> np.uint64(32)), dtype=np.uint64)])
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])
