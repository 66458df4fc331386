"""Validation of search parameters, and the warnings of searches."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._native import physical_memory
from agglo.neighbors.graph import RecallEstimate
from agglo.points.validation import Points, iter_blocks

_UNIT_TOLERANCE = 1e-3  # tolerance of squared lengths, for unit vectors in float16
_LARGEST = np.finfo(np.float32).max


def check_recall(recall: float) -> None:
    """Raise unless ``recall`` is in (0, 1]."""
    if not 0 < recall <= 1:
        raise ValueError(f"recall={recall!r} is not a share of the neighbours: pass a number above 0, at most 1")


def clip_n_neighbors(n_neighbors: Any, n: int) -> Any:
    """Reduce ``n_neighbors`` to at most ``n - 1``; return ``"all"`` for a single point."""
    if isinstance(n_neighbors, int | np.integer) and n_neighbors >= n:
        return n - 1 if n > 1 else "all"
    return n_neighbors


def check_n_neighbors(n_neighbors: int | str, n: int) -> None:
    """Raise unless ``n_neighbors`` is below ``n``; for ``"all"``, raise if the complete graph exceeds memory."""
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


def are_unit(points: Points) -> bool:
    """Return whether all points have unit length, up to the precision of float16."""
    with np.errstate(over="ignore"):
        return all(
            np.all(np.abs(np.square(rows).sum(axis=1) - 1) <= _UNIT_TOLERANCE) for _, rows in iter_blocks(points)
        )


def check_finite(values: npt.NDArray[np.float32], *points: Any) -> None:
    """Raise if similarities or distances of ``points`` exceed the range of float32."""
    # The condition also detects NaN, because comparisons with NaN are false.
    if values.size and not (values.min() >= -_LARGEST and values.max() <= _LARGEST):
        numbers = [X.tocsr().data if sp.issparse(X) else X for X in points]
        largest = max(max(float(np.max(X)), -float(np.min(X))) for X in numbers if X.size)
        raise ValueError(
            f"the largest magnitude in X is {largest:g}, and values of its points exceed float32: scale X down"
        )
