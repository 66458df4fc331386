"""What a pair without an edge is taken to be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo.neighbors.graph import TRUSTED, Missing, NeighborGraph
from agglo.neighbors.sparse import (
    BINARY,
    all_pairs,
    all_pairs_of_bits,
    all_pairs_of_sets,
    check_bits,
    check_sets,
    check_sparse,
)
from agglo.neighbors.validation import are_unit, check_finite
from agglo.points.validation import check_points, for_core

MissingRule = Missing | Literal["mean"] | None

_SAMPLE = 1000  # points whose pairs tell the mean of all


def check_missing(missing: object) -> None:
    """Raise unless it is a number or the name of a rule."""
    if missing is None or (isinstance(missing, str) and missing in ("mean", "ignore")):
        return
    if isinstance(missing, bool) or not isinstance(missing, int | float | np.number) or not np.isfinite(missing):
        raise ValueError(f"missing={missing!r} is neither a finite number nor 'mean', 'ignore' or None: pass one")


def farthest_of(X: Any, metric: str) -> float | None:
    """The farthest that two points can be by the metric, 0 for similarities; None where there is no bound."""
    if metric in ("cosine", "dot"):
        return 0.0
    if metric in BINARY:
        return 1.0
    if are_unit(X):
        return 4.0 if metric == "sqeuclidean" else 2.0
    return None


def with_missing(
    graph: NeighborGraph, X: Any, missing: MissingRule, farthest: float | None, random_state: int, workers: int
) -> NeighborGraph:
    """The graph of ``X`` with the value that a pair without an edge is to have.

    ``"mean"`` is the mean of all pairs, of a sample of 1,000 points if there are more, or the farthest edge where
    that is farther: who was not among the nearest is not closer than these. None, and ``"mean"`` where all pairs
    have an edge, is the farthest that two points can be, or the farthest edge where there is no bound.
    """
    complete = 2 * graph.n_edges == graph.n_points * (graph.n_points - 1)
    if missing is None or (missing == "mean" and (complete or not graph.n_edges)):
        missing = farthest
    elif missing == "mean":
        mean = _mean(X, graph.metric or "", random_state, workers)
        missing = min(mean, graph.min_weight) if graph.kind == "similarity" else max(mean, graph.max_weight)
    return replace(graph, missing=missing, checked=TRUSTED)


def _mean(X: Any, metric: str, random_state: int, workers: int) -> float:
    n = X.shape[0]
    rows: Any = slice(None)
    if n > _SAMPLE:
        rows = np.sort(np.random.default_rng(random_state).choice(n, _SAMPLE, replace=False, shuffle=False))
    return float(_pairs(X.tocsr()[rows] if sp.issparse(X) else X[rows], metric, workers).mean(dtype=np.float64))


def _pairs(X: Any, metric: str, workers: int) -> npt.NDArray[np.float32]:
    values: npt.NDArray[np.float32]
    if metric == "hamming":
        values = all_pairs_of_bits(check_bits(X), workers, None)
    elif metric == "jaccard":
        values = all_pairs_of_sets(check_sets(X), workers, None)
    elif sp.issparse(X):
        values = all_pairs(check_sparse(X), metric, workers, None)
    else:
        values = _core.all_pairs(for_core(check_points(X, compact=True)), metric, workers, None)
    check_finite(values, X)
    return values
