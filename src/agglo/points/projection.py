"""Project points to a few main directions (a sketch), so that a search compares fewer pairs in full.

The dot product of two points is at most the dot product of their sketches plus the product of the lengths of their
residuals. If the sketches keep most of the points' lengths, this bound excludes nearly all pairs at low cost. This
module chooses the directions, and decides whether to use them. The choice changes only the time of the exact
search, not its result.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.points.validation import Points

Floats = npt.NDArray[np.float64]

SIMILARITIES = ("cosine", "dot")

_WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256)  # possible numbers of directions

# Constants of the exact search.
_SAMPLE = 4096  # points that the directions are computed from; also a block size
_REFERENCE = 16 * _SAMPLE  # reference points, which estimate the bars of the queries
_QUERIES = 64  # number of queries, the points whose bars are estimated
_MIN_SECONDS = 3.0  # use directions only if a full search takes longer than this
_EARLY_FACTOR = 1.7  # bars rise during a search, so more pairs pass at the start
_MAX_COST_RATIO = 0.85  # use sketches only below this share of the cost of a full search

# Constants of the search by cells.
_CELLS_SAMPLE = 2048  # points that the directions are computed from
_KEPT_SQUARES = 0.95  # share of the squared lengths that the directions must keep
_MIN_COLUMNS = 160  # use directions only for at least this number of columns


def choose_sketch_basis(points: Points, metric: str, n_neighbors: int) -> Floats:
    """Choose orthonormal directions for the sketches of an exact search; return one row per direction.

    The rows are sorted by falling importance. Return no rows if a full search is expected to be about as fast.
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


def find_main_directions(points: Points, metric: str) -> npt.NDArray[np.float32]:
    """Find orthonormal directions that keep most of the points' lengths; return one row per direction.

    The rows are sorted by falling importance. Return no rows if more than half as many directions as columns are
    needed.
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
    # The core guarantees that, and BLAS does not.
    count = max(width for width in _WIDTHS if width <= d / 2)
    basis, squares = _core.find_principal_directions(scaled, count, 2)
    n_needed = int(np.searchsorted(squares.cumsum(), _KEPT_SQUARES * np.square(scaled).sum(dtype=np.float64))) + 1
    n_needed = -(-n_needed // 16) * 16
    return basis.reshape(count, d)[:n_needed] if n_needed <= count else no_basis


def _normalize_rows(rows: Points, center: Floats, metric: str) -> Floats:
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


# Searches rank pairs by a score. For similarities, the score is the dot product of the two points.
# For distances, it is minus half of the squared distance: the dot product minus half of both squared lengths.
# The bar of a point is the score of its k-th nearest neighbour.
# Only pairs whose upper bound reaches the bar are compared in full.


def _half_squares(rows: Floats, metric: str) -> Floats:
    """Return half of the squared length of each row for distances, and 0 for similarities."""
    return np.zeros(len(rows)) if metric in SIMILARITIES else np.einsum("ij,ij->i", rows, rows) / 2


def _estimate_bars(
    points: Points, reference: npt.NDArray[np.int64], queries: Floats, center: Floats, metric: str, rank: int
) -> Floats:
    """Return the score of each query's ``rank``-th nearest neighbour among the reference points.

    The queries are the first of the reference points.
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
    """Estimate, for each width of sketches, the share of pairs whose upper bound reaches the bar."""
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
        shares.append(min(1.0, 2 * _EARLY_FACTOR * share))  # twice: a pair passes if it reaches either bar
    return shares


def estimate_search_seconds(n: int, d: int) -> float:
    """Estimate the CPU seconds to compare all pairs of ``n`` points with ``d`` columns in full."""
    return n * n / 2 * _seconds_per_pair(d)


# The constants below were measured on one core with AVX2. Only their ratios matter.


def _seconds_per_pair(n_columns: int) -> float:
    """Estimate the seconds to compare one pair in full."""
    return 1e-9 * (0.35 + 0.026 * n_columns)


def _filter_seconds_per_pair(n_columns: int) -> float:
    """Estimate the seconds to bound the score of one pair, by int8 codes if the processor has fast products."""
    is_coded = _core.simd_level() != "plain"
    return 1e-9 * (0.4 + 0.008 * n_columns) if is_coded else _seconds_per_pair(n_columns)


def _sketch_seconds_per_pair(width: int, passing: float, n_columns: int) -> float:
    """Estimate the mean seconds per pair of a search with sketches.

    Pairs that pass the bound are compared in full: one by one, or by matrix products if many pairs pass.
    """
    full = min(passing * 1e-9 * (15 + 0.11 * n_columns), _seconds_per_pair(n_columns))
    return _filter_seconds_per_pair(width + 1) + full
