"""Neighbour graphs of points: which points are close to each other, and how close."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.blas import dgemm, one_blas_thread, sgemm
from agglo.graph import Kind, NeighborGraph, RecallEstimate
from agglo.inputs import Points, check_points, threads
from agglo.progress import Progress, phase
from agglo.search.cells import cells
from agglo.sketch import sketch_basis

METRICS: dict[str, Kind] = {
    "cosine": "similarity",
    "dot": "similarity",
    "euclidean": "distance",
    "sqeuclidean": "distance",
}
"""The metrics that points can be compared by, and the kind of graph that each gives."""

METHODS = ("exact", "auto", "cells")
"""The ways to find neighbours."""

_log = logging.getLogger(__name__)

_CHEAP = 20_000  # points up to which an exact search costs no more than any other
_UNIT = 1e-3  # how far from 1 the squared length of "unit-length" points may be: float16 is that coarse


def neighbor_graph(
    X: Any,
    n_neighbors: int | Literal["all"] = 25,
    metric: str = "cosine",
    method: str = "exact",
    n_jobs: int | None = None,
    *,
    recall: float = 0.95,
    random_state: int = 0,
    progress: Progress | None = None,
) -> NeighborGraph:
    """Graph that joins every point with its nearest neighbours.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        The points: float32, float64, float16, integers or booleans, in an array, a list, or a pandas, polars
        or Arrow table.
    n_neighbors : int or "all", default=25
        Neighbours to find for each point, the point itself not counted; at most ``n_points - 1``. The graph
        is the union of both directions, so a point that is a neighbour of many has more edges. ``"all"``
        gives the complete graph, for small data: it takes ``8 * n_points**2`` bytes.
    metric : {"cosine", "dot", "sqeuclidean", "euclidean"}, default="cosine"
        ``cosine`` and ``dot`` (the dot product) give a graph of similarities, ``euclidean`` and
        ``sqeuclidean`` (its square) one of distances. A point whose numbers are all zero has no direction:
        its cosine to every point is taken to be 0, with a warning.
    method : {"exact", "auto", "cells"}, default="exact"
        ``exact`` finds the true neighbours, of all points. ``cells`` finds nearly all of them, much faster where
        points are many: it compares points only with those in cells that are close to them, and with the
        neighbours of their neighbours. ``auto`` is ``exact`` while that is cheap, else ``cells``, and ``exact``
        again if cells do not reach the wished-for recall; the graph's ``method`` says which it was.
    n_jobs : int, optional
        Threads; None or -1 for all cores. The graph does not depend on it.
    recall : float, default=0.95
        The share of the true neighbours that ``cells`` is to find, in (0, 1]. It is measured, on a random sample
        of the points, and effort is added until it holds: see ``recall_estimate`` of the graph.
    random_state : int, default=0
        Where chance begins in ``cells``. The same number gives the same graph, whatever the number of threads.
    progress : callable, optional
        Called as ``progress(phase, done, total)`` from time to time.

    Returns
    -------
    NeighborGraph
        Its ``missing`` (the value of a pair without an edge) is 0 for similarities; for distances 4
        (``sqeuclidean``) or 2 (``euclidean``) if the points are of unit length, no two being farther apart,
        and the largest edge otherwise.

    Notes
    -----
    Of equally close points the one with the smaller index is the nearer neighbour. Values are summed in
    float64 from the numbers as given, then rounded to float32: copies of a point are at distance 0 exactly.

    The exact search multiplies blocks of points with SciPy's BLAS, each pair once, and spares what bounds
    exclude: leaves of points that are too far apart, and pairs that are so by their coordinates in a few main
    directions. So points that lie close to a plane, or in groups, are searched several times faster than points
    without structure; the result is the same. Beside the graph it needs about ``18 * n_neighbors + 250`` bytes a
    point, at most half as much as the points themselves for their main coordinates, and 10 MB a thread. While it
    runs, BLAS is limited to one thread in the whole process.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 7.0]]
    >>> graph = agglo.neighbor_graph(X, n_neighbors=1, metric="euclidean")
    >>> graph
    NeighborGraph(4 points, 2 edges, distance from 1 to 2, missing=2)
    >>> graph.to_scipy().toarray()[2]
    array([0., 0., 0., 2.], dtype=float32)
    """
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is unknown: pass one of {', '.join(map(repr, METRICS))}")
    if method not in METHODS:
        raise ValueError(f"method={method!r} is unknown: pass one of {', '.join(map(repr, METHODS))}")
    _check_wish(recall, random_state)
    workers = threads(n_jobs)
    points = check_points(X)
    n = len(points)
    _check_n_neighbors(n_neighbors, n)
    if metric == "cosine":
        _warn_of_zeros(points)
    report = phase(progress, "neighbours")
    about: dict[str, Any] = {
        "kind": METRICS[metric],
        "missing": _missing(points, metric),
        "metric": metric,
        "method": "exact",
        "parameters": {"n_neighbors": n_neighbors},
    }
    if n_neighbors == "all":
        if method == "cells":
            raise ValueError("n_neighbors='all' compares all pairs, which is method='exact': pass that, or 'auto'")
        values = _core.all_pairs(points, metric, workers, report)
        _check_finite(values)
        columns = np.broadcast_to(np.arange(n, dtype=np.int32), (n, n))
        return NeighborGraph(
            np.arange(n + 1, dtype=np.int64) * (n - 1), columns[~np.eye(n, dtype=bool)], values, **about
        )
    if method == "cells" or (method == "auto" and n > _CHEAP and recall < 1):
        indices, values, estimate, effort = cells(
            points, int(n_neighbors), metric, workers, report, recall=recall, random_state=random_state
        )
        effort = {"recall": recall, "random_state": random_state, **effort}
        _log.info("%d neighbours of %d points by cells, recall %s: %s", n_neighbors, n, estimate, effort)
        if estimate.value >= recall or method == "cells":
            _check_finite(values)
            if estimate.value < recall:
                _warn_of_recall(estimate, recall)
            about |= {"method": "cells", "recall_estimate": estimate}
            about["parameters"] |= effort
            return NeighborGraph.from_neighbors(indices, values, n_jobs=workers, **about)
        _log.info("recall %s falls short of %g: searching exactly", estimate, recall)
    indices, values = _exact(points, int(n_neighbors), metric, workers, report)
    _check_finite(values)
    return NeighborGraph.from_neighbors(indices, values, n_jobs=workers, **about)


Lists = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Neighbour lists: indices and values, both of shape (n_points, n_neighbors), the closest first."""


def _exact(
    points: Points, n_neighbors: int, metric: str, workers: int, report: Callable[[int, int], None] | None
) -> Lists:
    with one_blas_thread():
        basis = sketch_basis(points, metric, n_neighbors)
        indices, values = _core.nearest(points, n_neighbors, metric, basis, sgemm(), dgemm(), workers, report)
    shape = (len(points), n_neighbors)
    return indices.reshape(shape), values.reshape(shape)


def _check_wish(recall: float, random_state: int) -> None:
    if not 0 < recall <= 1:
        raise ValueError(f"recall={recall!r} is not a share of the neighbours: pass a number above 0, at most 1")
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)):
        raise TypeError(f"random_state={random_state!r} is not a number: pass a non-negative integer")
    if not 0 <= random_state < 2**64:
        raise ValueError(f"random_state={random_state} is out of range: pass an integer from 0 to 2^64 - 1")


def _warn_of_recall(estimate: RecallEstimate, recall: float) -> None:
    warnings.warn(
        f"only {estimate} of the neighbours were found, less than recall={recall:g}: these points have too little "
        "structure for cells. Pass method='auto', which then searches exactly, or be content with less",
        stacklevel=3,
    )


def _check_n_neighbors(n_neighbors: int | str, n: int) -> None:
    if isinstance(n_neighbors, str):
        if n_neighbors != "all":
            raise ValueError(f"n_neighbors={n_neighbors!r} is unknown: pass a positive integer or 'all'")
        needed, most = 8 * n * (n - 1), _memory() // 2
        if needed > most:
            raise ValueError(
                f"n_neighbors='all' makes a complete graph of {n} points, which takes {needed / 1e9:.1f} GB, "
                f"more than half of this machine's memory ({most / 1e9:.1f} GB): pass a number of "
                "neighbours, such as 25"
            )
        return
    if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, (int, np.integer)):
        raise TypeError(f"n_neighbors={n_neighbors!r} is not a number: pass a positive integer or 'all'")
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors={n_neighbors} must be at least 1: pass a positive integer or 'all'")
    if n_neighbors >= n:
        remedy = "pass n_neighbors='all'" if n == 1 else f"pass at most {n - 1}, or 'all'"
        raise ValueError(
            f"n_neighbors={n_neighbors} is too many for {n} point{'s' if n > 1 else ''}, "
            f"for a point is not its own neighbour: {remedy}"
        )


def _memory() -> int:
    """Bytes of physical memory, or 8 GiB where the system does not say."""
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 2**33


def _warn_of_zeros(points: Points) -> None:
    zeros = np.flatnonzero(~points.any(axis=1))
    if len(zeros):
        warnings.warn(
            f"{len(zeros)} of {len(points)} points are all zero (the first is row {zeros[0]}) and have no "
            "direction: their cosine to every point is taken to be 0. Leave them out, or use another metric",
            stacklevel=3,
        )


def _missing(points: Points, metric: str) -> float | None:
    """The value of a pair without an edge, where the metric or the points say it."""
    if METRICS[metric] == "similarity":
        return 0.0
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", points, points)
    if np.all(np.abs(squares - 1) <= _UNIT):
        return 4.0 if metric == "sqeuclidean" else 2.0
    return None


def _check_finite(values: npt.NDArray[np.float32]) -> None:
    if not np.isfinite(values).all():
        raise ValueError("the points are so far apart that their values exceed float32: scale X down")
