"""The public function :func:`neighbor_graph`, and the choice of its search method."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._native import physical_memory
from agglo._validation import RandomStateLike, check_choice, check_seed, effective_n_threads
from agglo.neighbors.dense import DENSE_METHODS, DensePoints, SearchParams
from agglo.neighbors.graph import TRUSTED, Kind, Missing, NeighborGraph, RecallEstimate
from agglo.neighbors.sparse import BINARY_METRICS, SPARSE_METRICS, SparsePoints
from agglo.points.frames import to_array
from agglo.points.points import PointArray, Points, iter_blocks, release_pages
from agglo.progress import Progress

METRICS: dict[str, Kind] = {
    "cosine": "similarity",
    "dot": "similarity",
    "euclidean": "distance",
    "sqeuclidean": "distance",
    "jaccard": "distance",
    "hamming": "distance",
}
"""Maps each metric to the kind of its graph: similarity or distance."""

METHODS = ("auto", *DENSE_METHODS, "minhash")
"""The search methods."""

MissingRule = Missing | Literal["mean"] | None

_SAMPLE = 1000  # the mean similarity or distance of all pairs is estimated on this number of points
_UNIT_TOLERANCE = 1e-3  # allowed deviation of squared lengths from 1, for unit vectors in float16

_log = logging.getLogger(__name__)


def neighbor_graph(
    X: Any,
    n_neighbors: int | Literal["all"] = 25,
    metric: str = "cosine",
    method: str = "auto",
    n_jobs: int | None = None,
    *,
    recall: float = 0.95,
    missing: MissingRule = "mean",
    random_state: RandomStateLike = 0,
    progress: Progress | None = None,
) -> NeighborGraph:
    """Build the graph that connects each point of ``X`` with its nearest neighbours.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_points, n_features)
        The points, as floats, integers or booleans. ``X`` is an array, a list, a table of pandas, polars or Arrow,
        or a table with one column of vectors. Arrays of float64, float32, float16, int8, uint8 and booleans are
        searched without a copy if their rows are contiguous. This includes memory-mapped files
        (``numpy.load(..., mmap_mode="r")``). SciPy sparse matrices of any format work with the metrics ``cosine``,
        ``dot``, ``jaccard`` and ``hamming``.
    n_neighbors : int or "all", default=25
        The number of neighbours of each point, at most ``n_points - 1``. The point itself is not a neighbour.
        Edges are undirected, so a point that is a neighbour of many points has more edges. ``"all"`` builds the
        complete graph, which takes ``8 * n_points**2`` bytes.
    metric : {"cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming"}, default="cosine"
        ``cosine`` and ``dot`` (the dot product) are similarities. The other metrics are distances.
        ``sqeuclidean`` is the squared Euclidean distance. If a point is all zero, its cosines
        are defined as 0, and a warning is shown. ``jaccard`` and ``hamming`` compare zeros and ones, as in SciPy.
        ``jaccard`` is the share of different features among the features that are 1 in at least one of the two
        points. ``hamming`` is the share of different features among all features. For ``jaccard``, every nonzero
        of a sparse matrix is a 1.
    method : {"auto", "exact", "kdtree", "cells", "minhash"}, default="auto"
        ``exact`` and ``kdtree`` find all true neighbours. ``kdtree`` is the fastest method for few columns, and
        slow for many columns. ``cells`` (an inverted file index) compares each point only with the points in close
        cells. It finds nearly all true neighbours, and is much faster for many points. ``minhash`` is the
        approximate method for ``jaccard``.
        ``auto`` chooses ``kdtree`` for up to 5 columns. For more columns it chooses ``exact`` if that takes at
        most about 2 CPU seconds (45,000 points with 128 columns), and ``cells`` otherwise. If ``cells`` does not
        reach ``recall``, or is estimated to take longer than ``exact``, ``auto`` searches exactly. For sparse
        points, ``auto`` searches exactly, except that it chooses ``minhash`` for ``jaccard`` with many points. The
        graph's attribute ``method`` is the method that was used.
    n_jobs : int, optional
        The number of threads. None or -1 uses all cores. The graph does not depend on it.
    recall : float, default=0.95
        The share of the true neighbours that ``cells`` and ``minhash`` must find, in (0, 1]. The search measures
        its recall on a random sample of the points, and continues until ``recall`` is reached. The graph's
        attribute ``recall_estimate`` is the measured recall. If ``recall`` is 1, ``auto`` searches exactly.
    missing : float, "mean", "ignore" or None, default="mean"
        The similarity or distance that linkages use for a pair without an edge. ``"mean"`` is the mean over all
        pairs of a sample of 1,000 points. If the farthest edge is farther, its weight is used instead. With
        ``"ignore"``, linkages ignore such pairs. None is the farthest possible value, as in the paper. It is 0
        for similarities, and 1 for ``jaccard`` and ``hamming``. For points of unit length, it is 4 with
        ``sqeuclidean`` and 2 with ``euclidean``. For other points, it is the weight of the farthest edge.
    random_state : int, RandomState instance or None, default=0
        The random seed. The same integer gives the same graph for any number of threads. With None, a seed is
        drawn from NumPy's global random state. With a ``RandomState`` instance, a seed is drawn from it.
    progress : callable, optional
        Called as ``progress(phase, done, total)`` from time to time.

    Returns
    -------
    NeighborGraph
        The graph. Its attributes ``method``, ``parameters``, ``recall_estimate`` and ``missing`` describe the
        search.

    Notes
    -----
    If points are equally close, the point with the smaller index is the nearer neighbour. Values are computed in
    float64 and rounded to float32. The distance of duplicates is exactly 0.

    The exact search multiplies blocks of points with SciPy's BLAS, and compares each pair of points once. It skips
    pairs of blocks whose points are too far apart to be neighbours. It also skips pairs of points that are too far
    apart in a few main directions. If the points form groups or lie close to a plane, the search is several times
    faster. The result is exact in all cases. The search needs about ``18 * n_neighbors + 250`` bytes per point in
    addition to the graph, and 10 MB per thread. The coordinates of the points in the main directions take at most
    half the memory of the points. During the search, BLAS is limited to one thread in the whole process.

    Some data have only large cosines, for example above 0.8 for images of faces. With ``missing=0``, the average
    linkage of two clusters then depends mostly on the number of edges between them. With ``missing="mean"``, it
    also depends on how close these edges are.

    For sparse points, only pairs with similarities above 0 become edges, and for ``jaccard`` only pairs with
    distances below 1. So a point may have fewer than ``n_neighbors`` neighbours, or none, unless
    ``n_neighbors="all"``.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 7.0]]
    >>> graph = agglo.neighbor_graph(X, n_neighbors=1, metric="euclidean")
    >>> graph
    NeighborGraph(4 points, 2 edges, distance from 1 to 2, missing=5.481)
    >>> graph.to_scipy().toarray()[2]
    array([0., 0., 0., 2.], dtype=float32)
    """
    check_choice("metric", metric, METRICS)
    check_search_options(method, recall, missing)
    seed, n_threads = check_seed(random_state), effective_n_threads(n_jobs)
    points = _validate(X, metric, method)
    check_n_neighbors(n_neighbors, len(points))
    if metric == "cosine":
        warn_zero_rows(points.zero_rows, len(points), stacklevel=3)
    # Computed now, because the search releases the pages of mapped files.
    farthest = farthest_value(points.X, metric)
    report = progress and partial(progress, "neighbours")
    if n_neighbors == "all":
        if method not in ("auto", "exact"):
            raise ValueError("n_neighbors='all' compares all pairs, which is method='exact': pass that, or 'auto'")
        graph = _build_complete_graph(points, SearchParams(len(points) - 1, metric, n_threads, report))
    else:
        stop_early = method == "auto"  # if recall is unreachable, "auto" searches exactly
        params = SearchParams(int(n_neighbors), metric, n_threads, report, recall, seed, stop_early)
        graph = _search(points, method, params)
    graph = set_missing(graph, points.X, missing, farthest, seed, n_threads)
    release_pages(points.X)  # set_missing has read a sample of the points
    return graph


def check_search_options(method: str, recall: float, missing: MissingRule) -> None:
    """Raise if ``method``, ``recall`` or ``missing`` is invalid for any points; see :func:`neighbor_graph`."""
    check_choice("method", method, METHODS)
    if not 0 < recall <= 1:
        raise ValueError(f"recall={recall!r} is not a share of the neighbours: pass a number above 0, at most 1")
    if missing is None or (isinstance(missing, str) and missing in ("mean", "ignore")):
        return
    if isinstance(missing, bool) or not isinstance(missing, int | float | np.number) or not np.isfinite(missing):
        raise ValueError(f"missing={missing!r} is neither a finite number nor 'mean', 'ignore' or None: pass one")


def _validate(X: Any, metric: str, method: str) -> DensePoints | SparsePoints:
    """Validate points and check that ``method`` supports them; do not validate ``DensePoints`` again."""
    if not isinstance(X, DensePoints):
        X = X.X if isinstance(X, Points) else to_array(X)
        if sp.issparse(X) or metric in BINARY_METRICS:
            _check_sparse_method(X, metric, method)
            return SparsePoints(X, metric)
    if method == "minhash":
        raise ValueError(
            f"method='minhash' compares sets, but metric={metric!r}: pass metric='jaccard', or method='auto'"
        )
    return X if isinstance(X, DensePoints) else DensePoints.validate(X, metric)


def _search(points: DensePoints | SparsePoints, method: str, params: SearchParams) -> NeighborGraph:
    """Search by ``method`` and build the graph. If ``auto`` gives up or misses the recall, search exactly."""
    used = points.choose_method(params.recall) if method == "auto" else method
    lists = points.search(used, params)
    estimate = lists.recall_estimate
    gave_up = len(lists.indices) < len(points)
    if estimate is not None and (gave_up or estimate.value < params.recall):
        if method != "auto":
            warn_low_recall(method, estimate, params.recall, stacklevel=4)
        else:
            reason = "costs more than an exact search or is unreachable" if gave_up else "is missed"
            _log.info("recall %g %s (%s: %s): searching exactly", params.recall, reason, used, estimate)
            used, lists = "exact", points.search("exact", params)
    release_pages(points.X)  # the points are not needed any more, so free memory for the graph
    how = "" if lists.recall_estimate is None else f", recall {lists.recall_estimate}"
    _log.info(
        "%d neighbours of %d points by %s%s: %s", params.n_neighbors, len(points), used, how, lists.parameters
    )
    return NeighborGraph.from_neighbors(
        lists.indices,
        lists.values,
        kind=METRICS[params.metric],
        metric=params.metric,
        method=used,
        parameters={"n_neighbors": params.n_neighbors, **lists.parameters},
        recall_estimate=lists.recall_estimate,
        cells=lists.cells,
        n_jobs=params.n_threads,
    )


def _build_complete_graph(points: DensePoints | SparsePoints, params: SearchParams) -> NeighborGraph:
    """Build the complete graph: an edge between every two points."""
    n = len(points)
    columns = np.broadcast_to(np.arange(n, dtype=np.int32), (n, n))
    return NeighborGraph(
        np.arange(n + 1, dtype=np.int64) * (n - 1),
        columns[~np.eye(n, dtype=bool)],
        points.all_pairs(params.n_threads, params.report),
        kind=METRICS[params.metric],
        metric=params.metric,
        method="exact",
        parameters={"n_neighbors": "all"},
    )


def _check_sparse_method(X: Any, metric: str, method: str) -> None:
    """Raise if the metric or the method does not support ``X``, which is sparse or has only zeros and ones."""
    what = f"a SciPy sparse {type(X).__name__}" if sp.issparse(X) else "a table of zeros and ones"
    if metric not in SPARSE_METRICS:
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


def clip_n_neighbors(n_neighbors: Any, n: int) -> Any:
    """Reduce ``n_neighbors`` to at most ``n - 1``. If there is a single point, return ``"all"``."""
    if isinstance(n_neighbors, int | np.integer) and n_neighbors >= n:
        return n - 1 if n > 1 else "all"
    return n_neighbors


def check_n_neighbors(n_neighbors: int | str, n: int) -> None:
    """Raise unless ``n_neighbors`` is below ``n``, or ``"all"`` and the complete graph fits half of the memory."""
    if isinstance(n_neighbors, str):
        if n_neighbors != "all":
            raise ValueError(f"n_neighbors={n_neighbors!r} is unknown: pass a positive integer or 'all'")
        needed, available = 8 * n * (n - 1), physical_memory() // 2
        if needed > available:
            raise ValueError(
                f"n_neighbors='all' makes a complete graph of {n} points, which takes {needed / 1e9:.1f} GB, "
                f"more than half of this machine's memory ({available / 1e9:.1f} GB): pass a number of "
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
            f"because a point is not its own neighbour: {remedy}"
        )


def warn_zero_rows(rows: npt.NDArray[np.intp], n: int, stacklevel: int) -> None:
    """Warn about points that are all zero, given the indices ``rows`` of such points."""
    if len(rows):
        warnings.warn(
            f"{len(rows)} of {n} points are all zero (the first is row {rows[0]}) and have no "
            "direction: their cosine to every point is taken to be 0. Leave them out, or use another metric",
            stacklevel=stacklevel,
        )


def warn_low_recall(method: str, estimate: RecallEstimate, recall: float, stacklevel: int) -> None:
    """Warn that the measured recall of a search is below the requested recall."""
    warnings.warn(
        f"only {estimate} of the neighbours were found, less than recall={recall:g}: these points do not have the "
        f"structure that {method} needs. Pass method='auto', which then searches exactly, or a lower recall",
        stacklevel=stacklevel,
    )


# ---- the value of a pair without an edge ----


def farthest_value(X: Any, metric: str) -> float | None:
    """Return the farthest possible value of the metric on ``X``, or None if distances have no bound."""
    if metric in ("cosine", "dot"):
        return 0.0
    if metric in BINARY_METRICS:
        return 1.0
    if are_unit(X):
        return 4.0 if metric == "sqeuclidean" else 2.0
    return None


def are_unit(points: PointArray) -> bool:
    """Return whether all points have unit length, up to the precision of float16."""
    with np.errstate(over="ignore"):
        return all(
            np.all(np.abs(np.square(rows).sum(axis=1) - 1) <= _UNIT_TOLERANCE) for _, rows in iter_blocks(points)
        )


def set_missing(
    graph: NeighborGraph, X: Any, missing: MissingRule, farthest: float | None, seed: int, n_threads: int
) -> NeighborGraph:
    """Return a copy of ``graph`` whose attribute ``missing`` follows from the rule ``missing``.

    The attribute is the value of a pair without an edge.

    ``"mean"`` is the mean over all pairs of points, or over all pairs of a sample of 1,000 points. If the farthest
    edge is farther, its weight is used instead, because pairs without an edge are farther than neighbours. None
    means ``farthest``. If ``farthest`` is None, too, the weight of the farthest edge is used. If the graph is
    complete or has no edges, ``"mean"`` is the same as None.
    """
    is_complete = 2 * graph.n_edges == graph.n_points * (graph.n_points - 1)
    if missing is None or (missing == "mean" and (is_complete or not graph.n_edges)):
        missing = farthest
    elif missing == "mean":
        mean = _mean_pair(X, graph.metric or "", seed, n_threads)
        missing = min(mean, graph.min_weight) if graph.kind == "similarity" else max(mean, graph.max_weight)
    return replace(graph, missing=missing, checked=TRUSTED)


def _mean_pair(X: Any, metric: str, seed: int, n_threads: int) -> float:
    """Return the mean similarity or distance over all pairs of a sample of points."""
    n = X.shape[0]
    rows: Any = slice(None)
    if n > _SAMPLE:
        rows = np.sort(np.random.default_rng(seed).choice(n, _SAMPLE, replace=False, shuffle=False))
    points: DensePoints | SparsePoints
    if sp.issparse(X) or metric in BINARY_METRICS:
        sample = X.tocsr()[rows] if sp.issparse(X) else X[rows]
        points = SparsePoints(sample, metric, check_scale=False)  # a sample may have a smaller scale
    else:
        points = DensePoints(X[rows], metric)
    return float(points.all_pairs(n_threads).mean(dtype=np.float64))
