"""Index of the fitted points: find the nearest neighbours of queries, or add new points to the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo._validation import effective_n_threads
from agglo.neighbors.dense import (
    SAMPLE,
    Candidates,
    DensePoints,
    Lists,
    Report,
    SearchParams,
    check_finite,
    find_main_directions,
    to_rows,
)
from agglo.neighbors.graph import NeighborGraph, RecallEstimate
from agglo.neighbors.search import (
    METRICS,
    MissingRule,
    farthest_value,
    set_missing,
    warn_low_recall,
    warn_zero_rows,
)
from agglo.neighbors.sparse import BINARY_METRICS, SparsePoints
from agglo.points.points import PointArray, as_core_array, canonical_rows, check_lengths, check_points, iter_blocks
from agglo.progress import Progress

QUERY_METHODS = {
    "exact": "exact",
    "kdtree": "kdtree",
    "cells": "cells",
    "minhash": "exact",  # an exact search is fast for a few queries
}
"""Maps the search method of the fitted points to the search method of queries."""

_CELL_PARAMETERS = ("cell_size", "visits", "candidates")
_REVERSE_FACTOR = 2  # with cells, a new point is a candidate for this number times n_neighbors old points

Edges = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
"""Directed edges: sources, targets and values."""


@dataclass(eq=False)
class NeighborIndex:
    """Index that finds the nearest neighbours of queries among the fitted points.

    The result for a query does not depend on the other queries. The first search by cells builds an inverted file
    index. This inverted file index is not pickled.
    """

    X: Any
    metric: str
    fit_method: str  # the search method of the fitted points
    fit_parameters: Mapping[str, Any]  # the parameters of that search; only those of cells are used
    recall: float  # the share of the true neighbours to find
    seed: int
    cells: npt.NDArray[np.int32] | None = None  # the cell (inverted list) of each fitted point
    moments: Any = field(default=None, init=False)  # cache for vector linkages: a tree and its moments
    _cell_indexes: dict[int, Any] = field(default_factory=dict, init=False)  # built indexes, by n_neighbors
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
        # Distances of queries may be arbitrarily small, so only cosine and dot need a minimum scale.
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
    """Hash each sparse row by the sum of the hashes of its entries, which does not depend on their order."""
    rows = canonical_rows(X)
    with np.errstate(over="ignore"):
        words = rows.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        words ^= rows.data.astype(np.float64).view(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(words ^ (words >> np.uint64(32)), dtype=np.uint64)])
        return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])


# ---- new points in the graph ----


def add_points(
    index: NeighborIndex,
    graph: NeighborGraph,
    new: Any,
    n_neighbors: int,
    missing: MissingRule,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[NeighborIndex, NeighborGraph]:
    """Add new points to an index and its graph; return the index and the graph of all points.

    Three searches find the neighbours of new points among old points, of old points among new points, and of new
    points among new points. The candidates of a point are its neighbours in ``graph`` and the results of these
    searches. Each point gets edges to its ``n_neighbors`` closest candidates. If the searches are exact, the
    result equals the graph of a search over all points. With cells, old points are compared only with close new
    points. The recall is then measured, and a low recall gives a warning.
    """
    n_threads, report = effective_n_threads(n_jobs), progress and partial(progress, "neighbours")
    n_old, n_new = len(index), new.shape[0]
    settings: Any = (index.metric, index.method, {}, index.recall, index.seed)
    X = index.concatenate(new)
    both = NeighborIndex(X if index.is_sparse else check_points(X, compact=True, metric=index.metric), *settings)

    new_ids = np.arange(n_old, n_old + n_new, dtype=np.int32)
    sources = np.repeat(np.arange(n_old, dtype=np.int32), np.diff(graph.indptr))
    edges: list[Edges] = [(sources, graph.indices, graph.weights)]
    if index.method == "cells":
        lists = index.search(new, min(_REVERSE_FACTOR * n_neighbors, n_old), n_threads, report)
        heads, targets, values = _to_edges(new_ids, lists, 0)
        edges += [(heads, targets, values), (targets, heads, values)]
    else:
        edges.append(_to_edges(new_ids, index.search(new, min(n_neighbors, n_old), n_threads, report), 0))
        reverse = NeighborIndex(new, *settings).search(index.X, min(n_neighbors, n_new), n_threads, report)
        edges.append(_to_edges(np.arange(n_old, dtype=np.int32), reverse, n_old))
    if n_new > 1:
        lists = _search_among_new(index, new, min(n_neighbors, n_new - 1), n_threads, report)
        edges.append(_to_edges(new_ids, lists, n_old))

    columns = (np.concatenate(column) for column in zip(*edges, strict=True))
    candidates = _core.edges_to_csr(
        n_old + n_new, *(np.ascontiguousarray(c, dtype) for c, dtype in zip(columns, "iif", strict=True))
    )
    edges.clear()  # free the memory of the edges of the single searches
    indices, values = both.select_closest(candidates, n_neighbors, n_threads)
    estimate = _estimate_recall(both, indices, n_threads) if index.method == "cells" else None
    if estimate is not None and estimate.value < index.recall:
        warn_low_recall("partial_fit by cells", estimate, index.recall, stacklevel=5)
    both_graph = NeighborGraph.from_neighbors(
        indices,
        values,
        kind=METRICS[index.metric],
        metric=index.metric,
        method=graph.method,
        parameters={**graph.parameters, "n_neighbors": n_neighbors},
        recall_estimate=estimate,
        n_jobs=n_jobs,
    )
    farthest = farthest_value(both.X, index.metric)
    return both, set_missing(both_graph, both.X, missing, farthest, index.seed, n_threads)


def _to_edges(sources: npt.NDArray[Any], lists: Lists, first_target: int) -> Edges:
    """Convert the neighbour lists of ``sources`` to edges; add ``first_target`` to the neighbour indices."""
    targets, values = lists
    is_edge = targets >= 0
    heads = np.repeat(sources, targets.shape[1])
    return heads[is_edge.ravel()], targets[is_edge] + first_target, values[is_edge]


def _search_among_new(
    index: NeighborIndex, new: Any, n_neighbors: int, n_threads: int, report: Report | None
) -> Lists:
    """Find the neighbours of each new point among the other new points."""
    params = SearchParams(n_neighbors, index.metric, n_threads, report, index.recall, index.seed)
    if index.is_sparse:
        rows = SparsePoints(new, index.metric)
        if index.metric == "cosine":
            warn_zero_rows(rows.zero_rows, len(rows), stacklevel=6)
        return rows.search("exact", params)[:2]
    points = DensePoints(new, index.metric)
    method = points.choose_method(index.recall) if index.method == "cells" else index.method
    return points.search(method, params)[:2]


def _estimate_recall(index: NeighborIndex, lists: npt.NDArray[np.int32], n_threads: int) -> RecallEstimate:
    """Measure the share of the true neighbours that ``lists`` contains (recall), on a sample of the points."""
    with one_blas_thread():
        recall = _core.measure_recall(
            *(as_core_array(index.X), lists, index.metric, SAMPLE, index.seed, sgemm(), n_threads)
        )
    return RecallEstimate(*recall)
