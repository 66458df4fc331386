"""Which few directions tell most pairs of points apart, so that an exact search need look at few in full.

The product of two points is at most that of their coordinates in some directions plus the product of the lengths
of what these leave out. If the coordinates carry most of the points' lengths, that bound rules out nearly all
pairs at a fraction of the cost. Here the directions are chosen, and whether they are worth it. The search
is exact with any choice: what is estimated here decides its time alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.points.validation import Points

Floats = npt.NDArray[np.float64]

SIMILARITIES = ("cosine", "dot")

_WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256)
_SAMPLE = 4096  # points that the directions are found from, and those looked at in one go
_BASE = 16 * _SAMPLE  # points among which the bars are found
_QUERIES = 64  # points whose bars are found: how close another must be to be among their nearest
_FEW = 2048  # points that are enough to find directions from, if nothing but time depends on them
_SEEN = 0.95  # the share of the points' squares that directions must keep for a search that may err
_WIDE = 160  # columns from which on it pays for that
_WORTH = 2.0  # seconds of a search in full from which on it pays to look for directions
_LATE = 1.7  # bars rise during a search; so many times more pairs pass than by the final ones


def sketch_basis(points: Points, metric: str, n_neighbors: int) -> Floats:
    """Orthonormal directions for the sketches of a search, one a row, the most important first.

    No rows if a search that compares all pairs in full is expected to be as fast.
    """
    n, d = points.shape
    nothing = np.empty((0, d))
    if full_search_cost(n, d) < _WORTH or d < 2 * _WIDTHS[0]:
        return nothing
    rng = np.random.default_rng(0)
    base = rng.choice(n, min(n, _BASE), replace=False)
    sample = points[base[:_SAMPLE]]
    center = np.zeros(d) if metric in SIMILARITIES else sample.mean(axis=0, dtype=np.float64)
    images = _images(sample, center, metric)
    basis = _directions(images, rng)
    queries = images[:_QUERIES]
    rank = max(1, round(n_neighbors * len(base) / n))
    bars = _bars(points, base, queries, center, metric, rank)
    widths = [width for width in _WIDTHS if width <= len(basis)]
    passing = _passing(queries, images[_QUERIES:], bars, basis, widths, metric)
    costs = [_sketch_cost(width, share, d) for width, share in zip(widths, passing, strict=True)]
    best = int(np.argmin(costs))
    return basis[: widths[best]] if costs[best] < 0.85 * _full_cost(d) else nothing


def main_directions(points: Points, metric: str) -> npt.NDArray[np.float32]:
    """Orthonormal directions in which points are seen nearly as they are, one a row, the most important first.

    No rows if it takes more than half as many directions as there are columns.
    """
    n, d = points.shape
    rng = np.random.default_rng(0)
    nothing = np.empty((0, d), np.float32)
    if d < _WIDE:
        return nothing
    rows = points[np.sort(rng.choice(n, min(n, _FEW), replace=False))]
    center = np.zeros(d) if metric in SIMILARITIES else rows.mean(axis=0, dtype=np.float64)
    images = _images(rows, center, metric)
    largest = float(np.abs(images).max())
    if largest == 0:
        return nothing
    scaled = np.ldexp(images, -np.frexp(largest)[1]).astype(np.float32)
    # A search that may err depends on these, so they must have the same bits on every machine: BLAS has not.
    count = max(width for width in _WIDTHS if width <= d / 2)
    basis, squares = _core.main_directions(scaled, count, 2)
    enough = int(np.searchsorted(squares.cumsum(), _SEEN * np.square(scaled).sum(dtype=np.float64))) + 1
    enough = -(-enough // 16) * 16
    return basis.reshape(count, d)[:enough] if enough <= count else nothing


def _images(rows: Points, center: Floats, metric: str) -> Floats:
    """The points as they are multiplied: centred for distances, of unit length for cosines."""
    images: Floats = rows - center
    if metric == "cosine":
        lengths = np.linalg.norm(images, axis=1, keepdims=True)
        images /= np.where(lengths > 0, lengths, 1)
    return images


def _directions(images: Floats, rng: np.random.Generator) -> Floats:
    """Nearly the principal directions of the images, by subspace iteration, in decreasing order."""
    d = images.shape[1]
    subspace = rng.standard_normal((d, max(width for width in _WIDTHS if width <= d / 2)), np.float32)
    subspace = subspace.astype(images.dtype)
    for _ in range(3):
        subspace, _ = np.linalg.qr(images.T @ (images @ subspace))
    inside = images @ subspace
    _, axes = np.linalg.eigh(inside.T @ inside)
    return np.ascontiguousarray((subspace @ axes[:, ::-1]).T)


def _half_squares(images: Floats, metric: str) -> Floats:
    """What closeness takes from a product, for each point."""
    return np.zeros(len(images)) if metric in SIMILARITIES else np.einsum("ij,ij->i", images, images) / 2


def _bars(
    points: Points, base: npt.NDArray[np.int64], queries: Floats, center: Floats, metric: str, rank: int
) -> Floats:
    """The closeness of the ``rank``-th of the base to every query, which are themselves the first of the base."""
    best = np.full((len(queries), rank), -np.inf)
    for first in range(0, len(base), _SAMPLE):
        rows = _images(points[base[first : first + _SAMPLE]], center, metric)
        closeness = queries @ rows.T - _half_squares(rows, metric)
        if first == 0:
            np.fill_diagonal(closeness, -np.inf)
        both = np.hstack([best, closeness])
        best = np.partition(both, -rank, axis=1)[:, -rank:]
    bars: Floats = best.min(axis=1) - _half_squares(queries, metric)
    return bars


def _passing(
    queries: Floats, others: Floats, bars: Floats, basis: Floats, widths: list[int], metric: str
) -> list[float]:
    """For sketches of every width, the share of pairs that look close enough to be compared in full."""
    taken = _half_squares(others, metric) + _half_squares(queries, metric)[:, None]
    one, two = queries @ basis.T, others @ basis.T
    shares = []
    for width in widths:
        rests = [
            np.sqrt(np.maximum((images**2).sum(axis=1) - (inside[:, :width] ** 2).sum(axis=1), 0))
            for images, inside in ((queries, one), (others, two))
        ]
        bound = one[:, :width] @ two[:, :width].T + np.outer(*rests) - taken
        share = float((bound >= bars[:, None]).mean())
        shares.append(min(1.0, 2 * _LATE * share))  # a pair passes if it may matter to either of its points
    return shares


def full_search_cost(n: int, d: int) -> float:
    """CPU seconds that it takes about to compare all pairs of ``n`` points with ``d`` columns."""
    return n * n / 2 * _full_cost(d)


# Seconds for a pair, as measured on one core with AVX2; only their proportions matter.


def _full_cost(columns: int) -> float:
    """Of a product of so many columns, and of looking at it."""
    return 1e-9 * (0.35 + 0.026 * columns)


def _sketch_cost(width: int, passing: float, columns: int) -> float:
    """Of a sketch, and of comparing in full those that pass by it, one by one or, if they are many, all."""
    return _full_cost(width + 1) + min(passing * 1e-9 * (15 + 0.11 * columns), _full_cost(columns))
