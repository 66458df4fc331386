"""Choose the similarity or distance of a pair without an edge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from agglo.neighbors.dense import DensePoints
from agglo.neighbors.graph import TRUSTED, Missing, NeighborGraph
from agglo.neighbors.sparse import BINARY_METRICS, SparsePoints
from agglo.neighbors.validation import are_unit

MissingRule = Missing | Literal["mean"] | None

_SAMPLE = 1000  # the mean of all pairs is estimated on this number of points


def check_missing(missing: object) -> None:
    """Raise unless ``missing`` is a finite number, ``"mean"``, ``"ignore"`` or None."""
    if missing is None or (isinstance(missing, str) and missing in ("mean", "ignore")):
        return
    if isinstance(missing, bool) or not isinstance(missing, int | float | np.number) or not np.isfinite(missing):
        raise ValueError(f"missing={missing!r} is neither a finite number nor 'mean', 'ignore' or None: pass one")


def farthest_value(X: Any, metric: str) -> float | None:
    """Return 0 for similarities, or the largest possible distance for distances; None if there is no bound."""
    if metric in ("cosine", "dot"):
        return 0.0
    if metric in BINARY_METRICS:
        return 1.0
    if are_unit(X):
        return 4.0 if metric == "sqeuclidean" else 2.0
    return None


def set_missing(
    graph: NeighborGraph, X: Any, missing: MissingRule, farthest: float | None, seed: int, n_threads: int
) -> NeighborGraph:
    """Return the graph with its ``missing`` value, the similarity or distance of a pair without an edge.

    ``"mean"`` is the mean over all pairs of points, or over all pairs of a sample of 1,000 points. If the farthest
    edge is farther, its weight is used instead, because pairs without an edge are not among the nearest. None
    means ``farthest``, or the farthest edge if ``farthest`` is None. If the graph is complete or has no edges,
    ``"mean"`` is the same as None.
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
