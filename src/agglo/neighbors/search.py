"""Neighbour graphs of points: which points are close to each other, and how close."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._validation import RandomStateLike, check_seed, effective_n_threads
from agglo.neighbors.dense import cells, exact, kdtree
from agglo.neighbors.graph import Kind, NeighborGraph
from agglo.neighbors.lists import Found, Search
from agglo.neighbors.missing import MissingRule, check_missing, farthest_of, with_missing
from agglo.neighbors.sparse import BINARY, Features
from agglo.neighbors.validation import check_finite, check_n_neighbors, check_wish, warn_of_recall, warn_of_zeros
from agglo.points.frames import to_array
from agglo.points.projection import full_search_cost
from agglo.points.validation import Points, check_compressed, check_points, for_core, forget
from agglo.progress import Progress, phase

METRICS: dict[str, Kind] = {
    "cosine": "similarity",
    "dot": "similarity",
    "euclidean": "distance",
    "sqeuclidean": "distance",
    "jaccard": "distance",
    "hamming": "distance",
}
"""The metrics that points can be compared by, and the kind of graph that each gives."""

SEARCHES: dict[str, Search] = {
    "exact": exact,
    "kdtree": kdtree,
    "cells": cells,
}
"""The searches, by the names of their methods."""

METHODS = ("auto", *SEARCHES, "minhash")
"""The ways to find neighbours."""

_log = logging.getLogger(__name__)

_CHEAP = 2.0  # CPU seconds that an exact search may cost without anybody asking for less
_FEW = 5  # columns up to which a k-d tree costs less than a search by products, for any number of points


def neighbor_graph(
    X: Any,
    n_neighbors: int | Literal["all"] = 25,
    metric: str = "cosine",
    method: str = "auto",
    n_jobs: int | None = None,
    *,
    recall: float = 0.95,
    missing: MissingRule = None,
    random_state: RandomStateLike = 0,
    progress: Progress | None = None,
) -> NeighborGraph:
    """Graph that joins every point with its nearest neighbours.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_points, n_features)
        The points: floats, integers or booleans, in an array, a list, or a pandas, polars or Arrow table, or in
        one column of vectors of such a table.
        float64, float32, float16, int8, uint8 and booleans are searched where they are, without a copy, if their
        rows are contiguous, and be it in a file (``numpy.load(..., mmap_mode="r")``). A SciPy sparse matrix or
        array of any format is searched as it is, by ``cosine``, ``dot``, ``jaccard`` or ``hamming``.
    n_neighbors : int or "all", default=25
        Neighbours to find for each point, the point itself not counted; at most ``n_points - 1``. The graph
        is the union of both directions, so a point that is a neighbour of many has more edges. ``"all"``
        gives the complete graph, for small data: it takes ``8 * n_points**2`` bytes.
    metric : {"cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming"}, default="cosine"
        ``cosine`` and ``dot`` (the dot product) give a graph of similarities, ``euclidean`` and
        ``sqeuclidean`` (its square) one of distances. A point whose numbers are all zero has no direction:
        its cosine to every point is taken to be 0, with a warning. ``jaccard`` and ``hamming`` are distances of
        zeros and ones, as SciPy has them: the share of the features of either of two points that are not
        features of both, and the share of all features that differ. Numbers other than 0 in a sparse matrix are
        ones to ``jaccard``.
    method : {"auto", "exact", "kdtree", "cells", "minhash"}, default="auto"
        ``exact`` and ``kdtree`` find the true neighbours, of all points; ``kdtree`` faster than all others if
        points have few columns, and slowly if they have many. ``cells`` finds nearly all of them, much faster
        where points are many: it compares points only with those in cells that are close to them. ``auto`` is
        ``kdtree`` for points of up to 5 columns, else ``exact`` while that takes about 2 CPU seconds (30,000
        points of 128 columns), else ``cells``, and ``exact`` again if cells do not reach the wished-for recall;
        the graph's ``method`` says which it was. Sparse points and bits are searched exactly; so are sets, or
        nearly so by ``minhash`` where they are many: ``auto`` chooses between these as between ``exact`` and
        ``cells``.
    n_jobs : int, optional
        Threads; None or -1 for all cores. The graph does not depend on it.
    recall : float, default=0.95
        The share of the true neighbours to find, in (0, 1], where a method does not find them all. It is
        measured, on a random sample of the points, and effort is added until it holds: see ``recall_estimate``
        of the graph. With 1, ``auto`` searches exactly.
    missing : float, "mean" or "ignore", optional
        The value that a pair without an edge has in a linkage. ``"mean"``: what two points have on average (of
        1,000 points, if there are more), or the value of the farthest edge where that is farther; the clusterers
        say so, see the notes. ``"ignore"``: such pairs take no part. By default as far as can be: 0 for
        similarities, for distances 4 (``sqeuclidean``) or 2 (``euclidean``) if the points are of unit length, no
        two being farther apart, 1 for ``jaccard`` and ``hamming``, and the largest edge otherwise.
    random_state : int, RandomState instance or None, default=0
        The random seed. The same integer gives the same graph, whatever the number of threads.
        None takes a seed from NumPy's global random state, and a ``RandomState`` instance gives one.
    progress : callable, optional
        Called as ``progress(phase, done, total)`` from time to time.

    Returns
    -------
    NeighborGraph
        Its ``method``, ``parameters``, ``recall_estimate`` and ``missing`` say how it was made.

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

    An average over the pairs of two clusters is told apart from others by how much closer their edges are than
    pairs without one. Where all cosines are above 0.8, as those of faces are, such a pair is not at 0: with 0 the
    average tells how many edges there are and hardly how close they are, with the mean it tells both.

    Sparse points and sets have edges to what is closer than the farthest that can be alone: similarities above 0,
    Jaccard distances below 1. So a point may have fewer neighbours than asked for, or none, unless these are
    ``"all"``.

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
    check_wish(recall)
    seed = check_seed(random_state)
    check_missing(missing)
    workers = effective_n_threads(n_jobs)
    wish: dict[str, Any] = {"recall": recall, "random_state": seed}
    X = to_array(X)
    if sp.issparse(X):
        check_compressed("X", X)
    if sp.issparse(X) or metric in BINARY:
        features = Features(X, metric, method)
        points = X if sp.issparse(X) else check_points(X, compact=True)
        farthest = farthest_of(points, metric)
        graph = _of_features(features, n_neighbors, metric, method, workers, progress, **wish)
    else:
        points = check_points(X, compact=True, metric=metric)
        farthest = farthest_of(points, metric)  # before pages of a file are given back
        graph = _of_points(points, n_neighbors, metric, method, workers, progress, **wish)
    return with_missing(graph, points, missing, farthest, seed, workers)


def _of_points(
    points: Points,
    n_neighbors: int | Literal["all"],
    metric: str,
    method: str,
    workers: int,
    progress: Progress | None,
    **wish: Any,
) -> NeighborGraph:
    """The graph of dense points."""
    if method == "minhash":
        raise ValueError(
            f"method='minhash' compares sets, but metric={metric!r}: pass metric='jaccard', or 'auto'"
        )
    check_n_neighbors(n_neighbors, len(points))
    if metric == "cosine":
        warn_of_zeros(points)
    about: dict[str, Any] = {"kind": METRICS[metric], "metric": metric}
    report = phase(progress, "neighbours")
    if n_neighbors == "all":
        _check_all(method)
        values = _core.all_pairs(for_core(points), metric, workers, report)
        return _complete(values, points, about)

    def search(name: str) -> Found:
        more = {"patient": method != "auto"} if name == "cells" else {}
        found = SEARCHES[name](points, int(n_neighbors), metric, workers, report, **wish, **more)
        forget(points)  # lists and graph together are large, and need no points
        return found

    chosen = cheapest(points, metric, wish["recall"]) if method == "auto" else method
    return _searched(search, points, chosen, method, wish["recall"], int(n_neighbors), workers, about)


def _searched(
    search: Callable[[str], Found],
    points: Any,
    chosen: str,
    method: str,
    recall: float,
    n_neighbors: int,
    workers: int,
    about: dict[str, Any],
) -> NeighborGraph:
    """The graph that the chosen search finds, or the exact one where ``auto`` chose one that falls short."""
    found = search(chosen)
    estimate = found.estimate
    if estimate is not None and estimate.value < recall:
        if method != "auto":
            warn_of_recall(method, estimate, recall, stacklevel=5)
        else:
            _log.info("recall %s of %s falls short of %g: searching exactly", estimate, chosen, recall)
            chosen, found = "exact", search("exact")
    check_finite(found.values, points)
    n, how = len(found.indices), "" if found.estimate is None else f", recall {found.estimate}"
    _log.info("%d neighbours of %d points by %s%s: %s", n_neighbors, n, chosen, how, found.parameters)
    return NeighborGraph.from_neighbors(
        found.indices,
        found.values,
        method=chosen,
        parameters={"n_neighbors": n_neighbors, **found.parameters},
        recall_estimate=found.estimate,
        cells=found.cells,
        n_jobs=workers,
        **about,
    )


def cheapest(points: Points, metric: str, recall: float) -> str:
    """A k-d tree for few columns, else exact while that is cheap: it grows with the square of the points."""
    n, d = points.shape
    if d <= _FEW and metric != "dot":  # the points of the largest products are not close together
        return "kdtree"
    return "exact" if recall == 1 or full_search_cost(n, d) <= _CHEAP else "cells"


def _of_features(
    features: Features,
    n_neighbors: int | Literal["all"],
    metric: str,
    method: str,
    workers: int,
    progress: Progress | None,
    *,
    recall: float,
    random_state: int,
) -> NeighborGraph:
    """The graph of sparse points, sets or bits."""
    check_n_neighbors(n_neighbors, len(features))
    about: dict[str, Any] = {"kind": METRICS[metric], "metric": metric}
    report = phase(progress, "neighbours")
    if n_neighbors == "all":
        _check_all(method)
        return _complete(features.all_pairs(workers, report), features.X, about)

    def search(name: str) -> Found:
        wish: dict[str, Any] = {}
        if name == "minhash":
            wish = {"recall": recall, "random_state": random_state, "patient": method != "auto"}
        return features.search(int(n_neighbors), workers, report, name, **wish)

    chosen = features.choice(recall) if method == "auto" else method
    return _searched(search, features.X, chosen, method, recall, int(n_neighbors), workers, about)


def _check_all(method: str) -> None:
    """Raise if a method cannot give all pairs."""
    if method not in ("auto", "exact"):
        raise ValueError("n_neighbors='all' compares all pairs, which is method='exact': pass that, or 'auto'")


def _complete(values: npt.NDArray[np.float32], points: Any, about: dict[str, Any]) -> NeighborGraph:
    """The graph of all pairs, whose values are given row by row."""
    check_finite(values, points)
    n = points.shape[0]
    columns = np.broadcast_to(np.arange(n, dtype=np.int32), (n, n))
    rows = np.arange(n + 1, dtype=np.int64) * (n - 1)
    about |= {"method": "exact", "parameters": {"n_neighbors": "all"}}
    return NeighborGraph(rows, columns[~np.eye(n, dtype=bool)], values, **about)
