"""What comes in from outside is checked here, once; the stages behind trust it."""

from __future__ import annotations

import mmap
import operator
import os
from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Points = npt.NDArray[np.float32 | np.float64 | np.float16 | np.int8 | np.uint8]

_ROWS = 4096  # checked at a time, so that a check needs little memory and Ctrl-C is answered between
_COMPACT = (np.float16, np.int8, np.uint8)  # what the searches widen as they go
LARGEST = 1e100  # so that squares and their sums stay finite in float64


def threads(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` asks for, as scikit-learn counts: None is all cores, -1 too."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} is not a number of threads: pass a positive integer, None or -1")
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


def check_points(X: Any, *, half: bool = False, compact: bool = False) -> Points:
    """The rows of ``X`` as a C-contiguous array of float32, or of float64 where float32 would lose something.

    Takes whatever NumPy can read: arrays, nested lists, pandas and polars frames, Arrow tables. float32 and
    float64 stay as they are (without a copy if contiguous, so that a file that is mapped into memory is not read
    into it), other floats, booleans and integers become float32, integers beyond 2^24 float64. ``half`` leaves
    float16 as it is, ``compact`` also int8, uint8 and booleans (as uint8). Anything that is not a table of finite
    numbers is an error.
    """
    if sp.issparse(X):
        raise TypeError(
            f"X is a SciPy sparse {type(X).__name__}, but points must be dense for now: "
            "pass X.toarray(), or a low-dimensional projection of it (sklearn.decomposition.TruncatedSVD)"
        )
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("X is a masked array, and points cannot have missing values: pass X.filled(value)")
    try:
        given = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"X is not a table of numbers ({error}): pass rows of one length") from error
    if given.dtype.kind not in "fiub":
        raise TypeError(
            f"X has dtype {given.dtype}, but points must be real numbers: convert it, e.g. to float32, "
            "and leave out or encode columns that are not numbers"
        )
    if given.ndim == 1:
        raise ValueError(
            f"X is one-dimensional, of shape {given.shape}, but points are the rows of a table: "
            "X.reshape(-1, 1) if it has one column, X.reshape(1, -1) if it is one point"
        )
    if given.ndim != 2:
        raise ValueError(
            f"X has {given.ndim} dimensions, shape {given.shape}, but points are the rows of a table: "
            "X.reshape(len(X), -1) makes each point one row"
        )
    if 0 in given.shape:
        raise ValueError(f"X is empty, of shape {given.shape}: pass at least one point with one column")
    if compact and given.dtype == np.bool_:
        given = given.view(np.uint8)
    kept = _COMPACT if compact else _COMPACT[:1] if half else ()
    stays = any(given.dtype == dtype for dtype in kept)
    points = np.ascontiguousarray(given, given.dtype if stays else narrowest(given))
    if points.dtype.kind == "f":
        for first, rows in blocks(points):
            _check_values(rows, first)
    return points


def blocks(points: Points) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """The rows in blocks, each with the number of its first, as float32 if they are smaller."""
    for first in range(0, len(points), _ROWS):
        rows = points[first : first + _ROWS]
        yield first, rows if rows.dtype.itemsize > 2 else rows.astype(np.float32)


def forget(points: npt.NDArray[Any]) -> None:
    """Give back the memory of what was read of a file that is mapped; it is read again when it is needed.

    Not if it is mapped to be copied on write, as by ``mmap_mode="c"``: what was written would be lost.
    """
    base: Any = points
    shared = False
    while isinstance(base, np.ndarray):
        shared = isinstance(base, np.memmap) and base.mode != "c"
        base = base.base
    if shared and isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def for_core(points: Points) -> npt.NDArray[Any]:
    """Points as the core takes them: half precision by its bits."""
    return points.view(np.uint16) if points.dtype == np.float16 else points


def check_labels(
    labels: npt.ArrayLike, n_points: int, name: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Labels as integers, -1 for points of no cluster, and how many points each cluster has."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"labels must be an integer a point, got {given.dtype} of shape {given.shape}")
    if len(given) != n_points:
        raise ValueError(f"labels has {len(given)} entries, but {name} has {n_points}: pass one a point")
    clusters = given.astype(np.int64)
    if not len(clusters) or clusters.max() < 0 or clusters.min() < -1:
        span = f"from {clusters.min()} to {clusters.max()}" if len(clusters) else "nowhere"
        raise ValueError(f"labels go {span}, but clusters are numbered 0, 1, ..., and -1 is for points of none")
    size = np.bincount(clusters[clusters >= 0])
    if size.min() == 0:
        raise ValueError(f"labels have no point of cluster {size.argmin()}, but go up to {len(size) - 1}")
    return clusters, size


def positive(name: str, number: SupportsIndex) -> int:
    """``number`` as an integer, if it is 1 or more."""
    try:
        index = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}={number!r} is not a number: pass an integer") from None
    if index < 1:
        raise ValueError(f"{name}={index} is too few: pass 1 or more")
    return index


def narrowest(given: npt.NDArray[Any]) -> np.dtype[Any]:
    """float32, unless that does not hold every number of ``given``."""
    small = np.dtype(np.float32)
    if given.dtype.kind == "f":
        return small if given.dtype.itemsize <= small.itemsize else np.dtype(np.float64)
    if given.dtype.itemsize <= 2 or (given.min() >= -(2**24) and given.max() <= 2**24):
        return small
    return np.dtype(np.float64)


def check_leaves(X: Any, n_leaves: int) -> Points:
    """:func:`check_points`, with half precision left as it is, for a tree with a leaf for each row."""
    points = check_points(X, half=True)
    if len(points) != n_leaves:
        raise ValueError(
            f"X has {len(points)} rows, but the tree has {n_leaves} leaves: pass the points that it was made of, "
            "in the same order"
        )
    return points


def _check_values(rows: npt.NDArray[Any], first: int) -> None:
    """Raise if a number is not finite, or too large to be squared."""
    largest = min(LARGEST, float(np.finfo(rows.dtype).max))
    if rows.min() >= -largest and rows.max() <= largest:  # false if there is a NaN
        return
    row, column = np.argwhere(~(np.abs(rows) <= largest))[0]
    value = rows[row, column]
    where = f"X[{first + row}, {column}] is {value}"
    if np.isfinite(value):
        raise ValueError(f"{where}, and numbers beyond {LARGEST:g} cannot be squared: scale X down")
    raise ValueError(f"{where}, but points must be finite: drop such rows or fill in values first")
