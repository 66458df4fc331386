"""Steps of ``partial_fit``: add new points to the graph, to the groups of duplicates and to the weights."""

from __future__ import annotations

from dataclasses import replace
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
from agglo.neighbors.search import (
    METRICS,
    MissingRule,
    farthest_value,
    set_missing,
    warn_low_recall,
    warn_zero_rows,
)
from agglo.neighbors.sparse import SparsePoints
from agglo.points.points import Duplicates, Ids, as_core_array, check_points, find_duplicates, no_duplicates
from agglo.progress import Progress
from agglo.rounds.constraints import Constraints, check_weights

_REVERSE_FACTOR = 2  # method="cells": compare each new point with this number times n_neighbors old points

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
    """Add new points to a search index and to its neighbour graph; return the index and the graph of all points.

    Three searches find the neighbours of new points among old points, of old points among new points, and of new
    points among new points. The candidates of a point are its neighbours in ``graph`` and the results of these
    searches. Each point gets edges to its ``n_neighbors`` closest candidates. If the searches are exact, the
    result equals the graph of a search over all points. With the method ``"cells"``, old points are compared only
    with close new points. The recall is then measured, and a low recall gives a warning.
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


def extend_duplicates(
    duplicates: Duplicates, matches: Ids, new: Any, constraints: Constraints, n_jobs: int | None
) -> tuple[Duplicates, Ids]:
    """Add new points to the groups of duplicates; return all groups, and the new points that start a new group.

    ``matches`` contains, for each new point, the group of old points with an equal row. If no old point is equal,
    it contains -1.
    """
    n_old, inverse = len(duplicates.inverse), matches.copy()
    limited = np.isfinite(constraints.most)  # if cluster sizes are limited, every new point forms its own group
    inverse[np.isin(inverse, duplicates.inverse[constraints.constrained_points()]) | limited] = -1
    rest = np.flatnonzero(inverse < 0)
    among = no_duplicates(len(rest)) if limited or not len(rest) else find_duplicates(new[rest], n_jobs)
    inverse[rest] = len(duplicates.first) + among.inverse
    fresh = rest[among.first]
    first = np.concatenate([duplicates.first, n_old + fresh])
    return Duplicates(first, np.concatenate([duplicates.inverse, inverse])), fresh


def add_weights(
    constraints: Constraints, n_old: int, n_new: int, sample_weight: npt.ArrayLike | None
) -> Constraints:
    """Return ``constraints`` with the weights of the new points appended to the weights of the old points."""
    new = None if sample_weight is None else check_weights(n_new, sample_weight)
    if constraints.weights is None and new is None:
        return constraints
    old = np.ones(n_old) if constraints.weights is None else constraints.weights
    both = np.concatenate([old, np.ones(n_new) if new is None else new])
    return replace(constraints, weights=check_weights(n_old + n_new, both))
