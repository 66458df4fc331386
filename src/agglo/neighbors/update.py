"""A neighbour graph that grows: new points find their neighbours, and old ones may find new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo._validation import effective_n_threads
from agglo.neighbors.graph import NeighborGraph, RecallEstimate
from agglo.neighbors.index import Fitted
from agglo.neighbors.missing import MissingRule, farthest_of, with_missing
from agglo.neighbors.search import METRICS, SEARCHES, cheapest
from agglo.neighbors.sparse import Features
from agglo.neighbors.validation import warn_of_recall
from agglo.points.validation import check_points, for_core
from agglo.progress import Progress, phase

SAMPLE = 256  # points that recall is measured on, as for cells
WIDER = 2  # times as many old points as neighbours that a new one is offered to, by cells


def grown(
    fitted: Fitted,
    graph: NeighborGraph,
    new: Any,
    n_neighbors: int,
    missing: MissingRule,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Fitted, NeighborGraph]:
    """Old points and new ones, and the graph of both.

    Every point has an edge to its ``n_neighbors`` closest points, as far as they are known: those among the edges
    of ``graph``, and those that a search of new among old, old among new and new among new points finds. Where all
    searches are exact, that is the graph of all points. By cells, old points are only compared with new ones that
    they are close to: then recall is measured, with a warning if it is less than what was asked for.

    Parameters
    ----------
    fitted, graph
        The old points, and their graph.
    new : array or sparse matrix
        New points, as :meth:`agglo.neighbors.index.Fitted.match` makes them.
    n_neighbors : int
        Less than the number of old and new points together.
    missing, n_jobs, progress
        As of :func:`agglo.neighbor_graph`.
    """
    workers, report = effective_n_threads(n_jobs), phase(progress, "neighbours")
    n, more = len(fitted), new.shape[0]
    settings: Any = (fitted.metric, fitted.method, {}, fitted.recall, fitted.random_state)
    points = fitted.with_more(new)
    both = Fitted(
        points if fitted.features else check_points(points, compact=True, metric=fitted.metric), *settings
    )
    edges = [_edges_of(graph)]

    def add(sources: npt.NDArray[Any], lists: tuple[npt.NDArray[Any], npt.NDArray[Any]], first: int) -> None:
        targets, values = lists
        heads = np.repeat(sources, targets.shape[1])
        edges.append((heads[targets.ravel() >= 0], targets[targets >= 0] + first, values[targets >= 0]))

    old, late = np.arange(n, dtype=np.int32), np.arange(n, n + more, dtype=np.int32)
    if fitted.method == "cells":
        found = fitted.nearest(new, min(WIDER * n_neighbors, n), workers, report)
        add(late, found, 0)
        heads, targets, values = edges[-1]
        edges.append((targets, heads, values))
    else:
        add(late, fitted.nearest(new, min(n_neighbors, n), workers, report), 0)
        add(old, Fitted(new, *settings).nearest(fitted.X, min(n_neighbors, more), workers, report), n)
    if more > 1:
        add(late, _among(fitted, new, min(n_neighbors, more - 1), workers, report), n)

    kind = METRICS[fitted.metric]
    columns = (np.concatenate(column) for column in zip(*edges, strict=True))
    rows = _core.grouped(n + more, *(np.ascontiguousarray(c, t) for c, t in zip(columns, "iif", strict=True)))
    edges.clear()
    indices, values = both.select_closest(rows, n_neighbors, workers)
    estimate = _estimate(both, indices, workers) if fitted.method == "cells" else None
    if estimate is not None and estimate.value < fitted.recall:
        warn_of_recall("partial_fit by cells", estimate, fitted.recall, stacklevel=4)
    both_graph = NeighborGraph.from_neighbors(
        indices,
        values,
        kind=kind,
        metric=fitted.metric,
        method=graph.method,
        parameters={**graph.parameters, "n_neighbors": n_neighbors},
        recall_estimate=estimate,
        n_jobs=n_jobs,
    )
    farthest = farthest_of(both.X, fitted.metric)
    return both, with_missing(both_graph, both.X, missing, farthest, fitted.random_state, workers)


def _edges_of(graph: NeighborGraph) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    rows = np.repeat(np.arange(graph.n_points, dtype=np.int32), np.diff(graph.indptr))
    return rows, graph.indices, graph.weights


def _among(fitted: Fitted, new: Any, k: int, workers: int, report: Any) -> Any:
    """The neighbours of new points among each other."""
    if fitted.features:
        found = Features(new, fitted.metric, "exact").search(k, workers, report)
    else:
        name = cheapest(new, fitted.metric, fitted.recall) if fitted.method == "cells" else fitted.method
        wish: dict[str, Any] = {"recall": fitted.recall, "random_state": fitted.random_state}
        found = SEARCHES[name](new, k, fitted.metric, workers, report, **wish)
    return found.indices, found.values


def _estimate(points: Fitted, lists: npt.NDArray[np.int32], workers: int) -> RecallEstimate:
    """The share of the true neighbours that is in lists, on a sample."""
    with one_blas_thread():
        *_, reached = _core.rescored(
            *(for_core(points.X), lists, lists.shape[1], points.metric, SAMPLE, points.random_state, sgemm()),
            *(workers, None),
        )
    return RecallEstimate(*reached)
