"""Add points to a neighbour graph: find neighbours of the new points, and closer neighbours of old points."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo._validation import effective_n_threads
from agglo.neighbors.dense import SAMPLE, DensePoints, Lists, Report, SearchParams
from agglo.neighbors.graph import NeighborGraph, RecallEstimate
from agglo.neighbors.index import NeighborIndex
from agglo.neighbors.missing import MissingRule, farthest_value, set_missing
from agglo.neighbors.search import METRICS
from agglo.neighbors.sparse import SparsePoints
from agglo.neighbors.validation import warn_low_recall, warn_zero_rows
from agglo.points.validation import as_core_array, check_points
from agglo.progress import Progress

_REVERSE_FACTOR = 2  # with cells, each new point is a candidate for this factor times n_neighbors old points

Edges = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
"""Directed edges: sources, targets and values."""


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

    The candidates of a point are its neighbours in ``graph`` and the results of three searches: new points among
    old points, old among new, and new among new. Each point gets edges to its ``n_neighbors`` closest candidates.
    If the searches are exact, the result equals the graph of all points. With cells, old points are compared only
    with close new points. Then recall is measured, and a low recall gives a warning.

    Parameters
    ----------
    index, graph
        The old points, and their graph.
    new : array or sparse matrix
        New points, as :meth:`agglo.neighbors.index.NeighborIndex.convert_queries` returns them.
    n_neighbors : int
        The number of neighbours of each point, less than the number of all points.
    missing, n_jobs, progress
        As in :func:`agglo.neighbor_graph`.
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
    edges.clear()  # free the memory of the separate edges
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
    """Convert the neighbour lists of ``sources`` to edges; add ``first_target`` to the indices in the lists."""
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
            warn_zero_rows(rows.zero_rows(), len(rows), stacklevel=6)
        return rows.search("exact", params)[:2]
    points = DensePoints(new, index.metric)
    method = points.choose_method(index.recall) if index.method == "cells" else index.method
    return points.search(method, params)[:2]


def _estimate_recall(index: NeighborIndex, lists: npt.NDArray[np.int32], n_threads: int) -> RecallEstimate:
    """Measure recall, the share of the true neighbours that ``lists`` contains, on a sample of the points."""
    with one_blas_thread():
        recall = _core.measure_recall(
            *(as_core_array(index.X), lists, index.metric, SAMPLE, index.seed, sgemm(), n_threads)
        )
    return RecallEstimate(*recall)
