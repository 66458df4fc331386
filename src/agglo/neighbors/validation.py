"""What a search is asked for is checked here, before it begins."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._memory import physical_memory
from agglo.neighbors.graph import RecallEstimate
from agglo.points.validation import Points, blocks

_UNIT = 1e-3  # how far from 1 the squared length of "unit-length" points may be: float16 is that coarse
_LARGEST = np.finfo(np.float32).max


def check_wish(recall: float) -> None:
    """Raise if this is no share."""
    if not 0 < recall <= 1:
        raise ValueError(f"recall={recall!r} is not a share of the neighbours: pass a number above 0, at most 1")


def most_neighbors(n_neighbors: Any, n: int) -> Any:
    """A wished-for number of neighbours, or all others where there are not so many."""
    if isinstance(n_neighbors, int | np.integer) and n_neighbors >= n:
        return n - 1 if n > 1 else "all"
    return n_neighbors


def check_n_neighbors(n_neighbors: int | str, n: int) -> None:
    """Raise if n points do not have so many neighbours, or memory would not hold them all."""
    if isinstance(n_neighbors, str):
        if n_neighbors != "all":
            raise ValueError(f"n_neighbors={n_neighbors!r} is unknown: pass a positive integer or 'all'")
        needed, most = 8 * n * (n - 1), physical_memory() // 2
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


def warn_of_zeros(points: Points) -> None:
    """Warn if points have no direction."""
    zeros = [first + np.flatnonzero(~rows.any(axis=1)) for first, rows in blocks(points)]
    warn_of_zero_rows(np.concatenate(zeros), len(points), stacklevel=4)


def warn_of_zero_rows(rows: npt.NDArray[np.intp], n: int, stacklevel: int) -> None:
    """Warn of these rows out of n, if there are any, that they have no direction."""
    if len(rows):
        warnings.warn(
            f"{len(rows)} of {n} points are all zero (the first is row {rows[0]}) and have no "
            "direction: their cosine to every point is taken to be 0. Leave them out, or use another metric",
            stacklevel=stacklevel,
        )


def warn_of_recall(method: str, estimate: RecallEstimate, recall: float, stacklevel: int) -> None:
    """Warn that a search found less than it was asked to."""
    warnings.warn(
        f"only {estimate} of the neighbours were found, less than recall={recall:g}: these points do not have the "
        f"structure that {method} needs. Pass method='auto', which then searches exactly, or be content with less",
        stacklevel=stacklevel,
    )


def are_unit(points: Points) -> bool:
    """Whether all points are of length 1, nearly."""
    with np.errstate(over="ignore"):
        return all(np.all(np.abs(np.square(rows).sum(axis=1) - 1) <= _UNIT) for _, rows in blocks(points))


def check_finite(values: npt.NDArray[np.float32], *points: Any) -> None:
    """Raise if values that the core found for ``points``, arrays or sparse matrices, do not fit float32."""
    # A value that is not a number would not reach the bound either.
    if values.size and not (values.min() >= -_LARGEST and values.max() <= _LARGEST):
        numbers = [X.tocsr().data if sp.issparse(X) else X for X in points]
        largest = max(max(float(np.max(X)), -float(np.min(X))) for X in numbers if X.size)
        raise ValueError(
            f"the largest magnitude in X is {largest:g}, and values of its points exceed float32: scale X down"
        )
