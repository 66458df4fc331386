"""Search nearest neighbours of dense points: exactly, by k-d tree, or by cells (an inverted file index).

Some searches project each point to a few main directions. The projection is called the sketch of the point. The
residual is the point minus its projection. The dot product of two points is at most the dot product of their
sketches plus the product of the lengths of their residuals. If the residuals are short, this bound excludes nearly
all pairs of points at low cost. Only the remaining pairs are compared in all columns (in full).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._native import dgemm, one_blas_thread, sgemm
from agglo.neighbors.graph import RecallEstimate
from agglo.points.points import PointArray, Points, as_core_array

Floats = npt.NDArray[np.float64]

Report = Callable[[int, int], None]
"""A progress function, called as ``report(done, total)`` from time to time."""

Lists = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Neighbour indices and values: one row per point, from near to far. The index -1 fills short rows."""

Candidates = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Directed edges in CSR format: ``indptr``, targets and values."""

SAMPLE = 256  # number of points to measure recall on; at a recall of 95 %, the error is about 1 %
MAX_ATTEMPTS = 4  # maximum number of times that a search by cells adds probes
_CHEAP = 2.0  # method="auto" searches exactly up to this number of CPU seconds
_FEW_COLUMNS = 5  # up to this number of columns, a k-d tree is faster than matrix products
_LARGEST = np.finfo(np.float32).max

SIMILARITIES = ("cosine", "dot")

_WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256)  # possible numbers of columns of a sketch

# Constants of the exact search.
_SAMPLE = 4096  # number of sampled points from which the directions are computed; also a block size
# Number of points among which the score of the k-th nearest neighbour of each query (its bar) is estimated.
_REFERENCE = 16 * _SAMPLE
_QUERIES = 64  # number of points whose bars are estimated (queries)
_MIN_SECONDS = 3.0  # use sketches only if a search without sketches takes longer than this
# At its start, a search compares this many times more pairs in full, because bars are still low.
_EARLY_FACTOR = 1.7
_MAX_COST_RATIO = 0.85  # use sketches only if the cost is below this share of the cost without sketches

# Constants of the search by cells.
_CELLS_SAMPLE = 2048  # number of sampled points from which the directions are computed
_KEPT_SQUARES = 0.95  # the directions must keep this share of the sum of squared lengths
_MIN_COLUMNS = 160  # use directions only for at least this number of columns


@dataclass(frozen=True)
class SearchParams:
    """Validated parameters of a search for the neighbours of all points.

    ``recall`` is the share of the true neighbours to find. Only approximate searches use ``recall`` and ``seed``.
    They add probes or MinHash bands until the measured recall reaches ``recall``. With ``stop_early``, they stop
    as soon as ``recall`` turns out to be unreachable, or more costly than an exact search.
    """

    n_neighbors: int
    metric: str
    n_threads: int
    report: Report | None = None
    recall: float = 0.95
    seed: int = 0
    stop_early: bool = False

    def recall_goal(self, sample: int, max_attempts: int) -> _core.RecallGoal:
        """Return the recall goal as an argument of the C++ core. Recall is measured on ``sample`` points."""
        accept_lower = not self.stop_early
        return _core.RecallGoal(self.recall, sample=sample, max_attempts=max_attempts, accept_lower=accept_lower)

    def describe(self, **chosen: int) -> dict[str, Any]:
        """Return the given and the chosen parameters of an approximate search, to store in the graph."""
        return {"recall": self.recall, "random_state": self.seed, **chosen}


class NeighborLists(NamedTuple):
    """The neighbours of all points, with the recall and the parameters of the search."""

    indices: npt.NDArray[np.int32]
    """Neighbour indices: one row per point, from near to far. Ties are in order of index. -1 fills short rows."""
    values: npt.NDArray[np.float32]
    """The exact similarities or distances of the neighbours."""
    recall_estimate: RecallEstimate | None
    """The measured recall; None if the search is exact."""
    parameters: dict[str, Any]
    """The parameters that the search chose."""
    cells: npt.NDArray[np.int32] | None = None
    """The cell (inverted list) of each point. If the method is not ``cells``, None."""


class DensePoints(Points):
    """Validated dense points, and the searches for their neighbours."""

    def choose_method(self, recall: float) -> str:
        """Choose a search method: ``kdtree`` for few columns, ``exact`` if it is fast, otherwise ``cells``."""
        n, d = self.X.shape
        if d <= _FEW_COLUMNS and self.metric != "dot":  # points with a large dot product may be far apart
            return "kdtree"
        return "exact" if recall == 1 or estimate_search_seconds(n, d) <= _CHEAP else "cells"

    def search(self, method: str, params: SearchParams) -> NeighborLists:
        """Find the nearest neighbours of all points by the search method ``method``."""
        lists = _SEARCHES[method](self.X, params)
        check_finite(lists.values, self.X)
        return lists

    def all_pairs(self, n_threads: int, report: Report | None = None) -> npt.NDArray[np.float32]:
        """Compute the similarity or distance of each point to each other point; return them row by row."""
        values: npt.NDArray[np.float32] = _core.compute_all_pairs(
            as_core_array(self.X), self.metric, n_threads, report
        )
        check_finite(values, self.X)
        return values

    def select_closest(self, candidates: Candidates, n_neighbors: int, n_threads: int) -> Lists:
        """Select the ``n_neighbors`` closest candidates of each point.

        If two values are equal in float32, they are compared in float64, as in a search.
        """
        lists = _core.select_closest(as_core_array(self.X), self.metric, candidates, n_neighbors, n_threads)
        return to_rows(lists, n_neighbors)


def search_exact(points: PointArray, params: SearchParams) -> NeighborLists:
    """Find the exact nearest neighbours by blocked matrix products."""
    with one_blas_thread():
        basis = choose_sketch_basis(points, params.metric, params.n_neighbors)
        lists = _core.search_exact(
            as_core_array(points),
            params.n_neighbors,
            params.metric,
            basis,
            (sgemm(), dgemm()),
            params.n_threads,
            params.report,
        )
    return NeighborLists(*to_rows(lists, params.n_neighbors), None, {})


def search_kdtree(points: PointArray, params: SearchParams) -> NeighborLists:
    """Find the exact nearest neighbours by a k-d tree."""
    lists = _core.search_kdtree(
        as_core_array(points), params.n_neighbors, params.metric, params.n_threads, params.report
    )
    return NeighborLists(*to_rows(lists, params.n_neighbors), None, {})


def search_cells(
    points: PointArray,
    params: SearchParams,
    *,
    list_size: int = 0,
    n_probes: int = 0,
    n_candidates: int = 0,
    sample: int = SAMPLE,
) -> NeighborLists:
    """Find approximate nearest neighbours by an inverted file index, and re-rank them by exact values.

    ``list_size`` is the number of points per inverted list. ``n_probes`` is the number of lists that are searched
    per point. ``n_candidates`` is the number of candidates to re-rank. For these three, 0 means automatic. If
    ``n_probes`` is given, it is not increased, even if the recall is too low. The recall is measured on ``sample``
    points. If ``params.stop_early`` is set, the search gives up if the recall is unreachable or more costly than
    an exact search. Then the neighbour lists are empty, or their recall is below ``params.recall``.
    """
    with one_blas_thread():
        basis = find_main_directions(points, params.metric)
        lists, recall, used, cells = _core.search_ivf(
            as_core_array(points),
            k=params.n_neighbors,
            metric=params.metric,
            params=_core.IvfParams(list_size=list_size, n_probes=n_probes, n_candidates=n_candidates),
            goal=params.recall_goal(sample, MAX_ATTEMPTS),
            basis=basis,
            seed=params.seed,
            sgemm=sgemm(),
            n_threads=params.n_threads,
            progress=params.report,
        )
    parameters = params.describe(  # these names are part of the format of saved models
        cell_size=used.list_size, visits=used.n_probes, candidates=used.n_candidates, rounds=used.n_passes
    )
    if len(basis):
        parameters["directions"] = len(basis)
    return NeighborLists(*to_rows(lists, params.n_neighbors), RecallEstimate(*recall), parameters, cells)


_SEARCHES: dict[str, Callable[[PointArray, SearchParams], NeighborLists]] = {
    "exact": search_exact,
    "kdtree": search_kdtree,
    "cells": search_cells,
}

DENSE_METHODS = tuple(_SEARCHES)


def to_rows(lists: Lists, n_neighbors: int) -> Lists:
    """Reshape the flat neighbour lists of the C++ core to one row per point."""
    indices, values = lists
    return indices.reshape(-1, n_neighbors), values.reshape(-1, n_neighbors)


def check_finite(values: npt.NDArray[np.float32], *points: Any) -> None:
    """Raise if similarities or distances of ``points`` exceed the range of float32."""
    # The condition also detects NaN, because comparisons with NaN are false.
    if values.size and not (values.min() >= -_LARGEST and values.max() <= _LARGEST):
        numbers = [X.tocsr().data if sp.issparse(X) else X for X in points]
        largest = max(max(float(np.max(X)), -float(np.min(X))) for X in numbers if X.size)
        raise ValueError(
            f"the largest magnitude in X is {largest:g}, and values of its points exceed float32: scale X down"
        )


# ---- projections to a few main directions ----


def choose_sketch_basis(points: PointArray, metric: str, n_neighbors: int) -> Floats:
    """Choose the directions to which an exact search projects points (sketches); return one row per direction.

    The first direction keeps the most of the points' lengths. If a search without sketches is expected to be about
    as fast, return no rows.
    """
    n, d = points.shape
    no_basis = np.empty((0, d))
    if n * n / 2 * _filter_seconds_per_pair(d) < _MIN_SECONDS or d < 2 * _WIDTHS[0]:
        return no_basis
    rng = np.random.default_rng(0)
    reference = rng.choice(n, min(n, _REFERENCE), replace=False)
    sample = points[reference[:_SAMPLE]]
    center = np.zeros(d) if metric in SIMILARITIES else sample.mean(axis=0, dtype=np.float64)
    rows = _normalize_rows(sample, center, metric)
    basis = _principal_directions(rows, rng)
    queries = rows[:_QUERIES]
    rank = max(1, round(n_neighbors * len(reference) / n))
    bars = _estimate_bars(points, reference, queries, center, metric, rank)
    widths = [width for width in _WIDTHS if width <= len(basis)]
    shares = _passing_shares(queries, rows[_QUERIES:], bars, basis, widths, metric)
    costs = [_sketch_seconds_per_pair(width, share, d) for width, share in zip(widths, shares, strict=True)]
    best = int(np.argmin(costs))
    return basis[: widths[best]] if costs[best] < _MAX_COST_RATIO * _filter_seconds_per_pair(d) else no_basis


def find_main_directions(points: PointArray, metric: str) -> npt.NDArray[np.float32]:
    """Find orthonormal directions that keep most of the points' lengths; return one row per direction.

    The first direction keeps the most of the points' lengths. If more directions are needed than half the number
    of columns, return no rows.
    """
    n, d = points.shape
    rng = np.random.default_rng(0)
    no_basis = np.empty((0, d), np.float32)
    if d < _MIN_COLUMNS:
        return no_basis
    sample = points[np.sort(rng.choice(n, min(n, _CELLS_SAMPLE), replace=False))]
    center = np.zeros(d) if metric in SIMILARITIES else sample.mean(axis=0, dtype=np.float64)
    rows = _normalize_rows(sample, center, metric)
    largest = float(np.abs(rows).max())
    if largest == 0:
        return no_basis
    scaled = np.ldexp(rows, -np.frexp(largest)[1]).astype(np.float32)
    # The result of an approximate search depends on the directions, so they must be bit-equal on every machine.
    # The C++ core guarantees bit-equal directions. BLAS does not.
    count = max(width for width in _WIDTHS if width <= d / 2)
    basis, squares = _core.find_principal_directions(scaled, count, 2)
    n_needed = int(np.searchsorted(squares.cumsum(), _KEPT_SQUARES * np.square(scaled).sum(dtype=np.float64))) + 1
    n_needed = -(-n_needed // 16) * 16
    return basis.reshape(count, d)[:n_needed] if n_needed <= count else no_basis


def _normalize_rows(rows: PointArray, center: Floats, metric: str) -> Floats:
    """Subtract ``center`` from the rows, and scale them to unit length if the metric is cosine."""
    normalized: Floats = rows - center
    if metric == "cosine":
        lengths = np.linalg.norm(normalized, axis=1, keepdims=True)
        normalized /= np.where(lengths > 0, lengths, 1)
    return normalized


def _principal_directions(rows: Floats, rng: np.random.Generator) -> Floats:
    """Approximate the principal directions of the rows by subspace iteration, sorted by falling variance."""
    d = rows.shape[1]
    subspace = rng.standard_normal((d, max(width for width in _WIDTHS if width <= d / 2)), np.float32)
    subspace = subspace.astype(rows.dtype)
    for _ in range(3):
        subspace, _ = np.linalg.qr(rows.T @ (rows @ subspace))
    projected = rows @ subspace
    _, axes = np.linalg.eigh(projected.T @ projected)
    return np.ascontiguousarray((subspace @ axes[:, ::-1]).T)


# Searches rank pairs of points by a score. For similarities, the score is the dot product of the two points.
# For distances, it is minus half of the squared distance: the dot product minus half of each squared length.
# The bar of a point is the score of its k-th nearest neighbour.
# If the upper bound of a pair's score reaches the bar of one of the two points, the pair is compared in full.


def _half_squares(rows: Floats, metric: str) -> Floats:
    """Return half of the squared length of each row for distances, and 0 for similarities."""
    return np.zeros(len(rows)) if metric in SIMILARITIES else np.einsum("ij,ij->i", rows, rows) / 2


def _estimate_bars(
    points: PointArray, reference: npt.NDArray[np.int64], queries: Floats, center: Floats, metric: str, rank: int
) -> Floats:
    """Estimate the score of the ``rank``-th nearest reference point of each query.

    This score is the bar of the query. The queries are the first reference points, in the same order.
    """
    best = np.full((len(queries), rank), -np.inf)
    for start in range(0, len(reference), _SAMPLE):
        rows = _normalize_rows(points[reference[start : start + _SAMPLE]], center, metric)
        scores = queries @ rows.T - _half_squares(rows, metric)
        if start == 0:
            np.fill_diagonal(scores, -np.inf)
        best = np.partition(np.hstack([best, scores]), -rank, axis=1)[:, -rank:]
    bars: Floats = best.min(axis=1) - _half_squares(queries, metric)
    return bars


def _passing_shares(
    queries: Floats, rows: Floats, bars: Floats, basis: Floats, widths: list[int], metric: str
) -> list[float]:
    """Estimate the share of pairs whose upper bound reaches one of their two bars, for each width of sketches."""
    subtracted = _half_squares(rows, metric) + _half_squares(queries, metric)[:, None]
    query_sketches, row_sketches = queries @ basis.T, rows @ basis.T
    shares = []
    for width in widths:
        residuals = [
            np.sqrt(np.maximum((full**2).sum(axis=1) - (sketch[:, :width] ** 2).sum(axis=1), 0))
            for full, sketch in ((queries, query_sketches), (rows, row_sketches))
        ]
        bound = query_sketches[:, :width] @ row_sketches[:, :width].T + np.outer(*residuals) - subtracted
        share = float((bound >= bars[:, None]).mean())
        shares.append(min(1.0, 2 * _EARLY_FACTOR * share))  # twice, because a pair has two bars
    return shares


def estimate_search_seconds(n: int, d: int) -> float:
    """Estimate the CPU seconds of an exact search of ``n`` points with ``d`` columns, for 25 neighbours.

    The estimate does not depend on the SIMD level, so that ``auto`` selects the same method on every processor.
    """
    return n * n / 2 * 1e-9 * (0.8 + 0.0075 * d)


# The durations below were measured on one processor core with AVX2. Only their ratios matter.


def _seconds_per_pair(n_columns: int) -> float:
    """Estimate the seconds to compare one pair of points in full."""
    return 1e-9 * (0.35 + 0.026 * n_columns)


def _filter_seconds_per_pair(n_columns: int) -> float:
    """Estimate the seconds to compute an upper bound on the score of one pair of points.

    If the processor has fast products of int8 codes, the bound is computed from int8 codes.
    """
    is_coded = _core.simd_level() != "plain"
    return 1e-9 * (0.4 + 0.008 * n_columns) if is_coded else _seconds_per_pair(n_columns)


def _sketch_seconds_per_pair(width: int, passing: float, n_columns: int) -> float:
    """Estimate the mean seconds per pair of points in a search with sketches of ``width`` columns.

    Pairs that pass the bound are compared in full: one by one, or by matrix products if many pairs pass.
    """
    full = min(passing * 1e-9 * (15 + 0.11 * n_columns), _seconds_per_pair(n_columns))
    return _filter_seconds_per_pair(width + 1) + full
