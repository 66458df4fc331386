"""Checks of points: arrays, tables and sparse matrices become arrays that the core can read."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo.points.frames import holds_vectors, to_array

Points = npt.NDArray[np.float32 | np.float64 | np.float16 | np.int8 | np.uint8]

_ROWS = 4096  # checked at a time, so that a check needs little memory and Ctrl-C is answered between
_COMPACT = (np.float16, np.int8, np.uint8)  # what the searches widen as they go
LARGEST = 1e100  # so that squares and their sums stay finite in float64
# Weights are float32, with full precision down to 2^-126. From these scales on, weights down to 2^-26 of the
# largest distance or product have it, and smaller ones are zero as far as sums of weights are concerned.
LEAST_SCALE = {"euclidean": 2.0**-100, "sqeuclidean": 2.0**-50, "dot": 2.0**-50}
LEAST_LENGTH = 2.0**-500  # of a row by cosine: the squares of smaller numbers are not precise in float64


def check_points(X: Any, *, half: bool = False, compact: bool = False, metric: str | None = None) -> Points:
    """The rows of ``X`` as a C-contiguous array of float32, or of float64 where float32 would lose something.

    Takes whatever NumPy can read, tables of pandas, polars and Arrow, and single columns of vectors in these: see
    :mod:`agglo.points.frames`. float32 and float64 stay as they are (without a copy if contiguous, so that a file
    that is mapped into memory is not read into it), other floats, booleans and integers become float32, integers
    beyond 2^24 and longer floats float64. ``half`` leaves float16 as it is, ``compact`` also int8, uint8 and
    booleans (as uint8). Anything that is not a table of finite numbers is an error. If ``metric`` is given, so are
    points that are too small for its values, or whose rows are.
    """
    table = to_array(X)
    if sp.issparse(table):
        raise TypeError(
            f"X is a SciPy sparse {type(table).__name__}, but points must be dense for now: "
            "pass X.toarray(), or a low-dimensional projection of it (sklearn.decomposition.TruncatedSVD)"
        )
    try:
        given = np.asarray(table)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"X is not a table of numbers ({error}): pass rows of one length") from error
    if given.dtype == np.object_ and given.ndim == 2:
        given = _from_objects(given)
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
        _check_values(points, metric)
    return points


def validate_points(estimator: Any, X: Any, *, reset: bool = True, accept_sparse: Any = False) -> Any:
    """Return ``X`` as an array, or CSR matrix, of finite numbers that is valid input of a scikit-learn estimator.

    Columns are counted and their names noted, or compared with those of the fit unless ``reset``.
    """
    from sklearn.utils import check_array
    from sklearn.utils.validation import validate_data

    table = to_array(X)
    if sp.issparse(table):
        check_compressed("X", table)
    settings = {"accept_sparse": accept_sparse}
    if table is X or holds_vectors(X, table):
        checked = validate_data(estimator, table, reset=reset, **settings)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        checked = check_array(table, input_name="X", estimator=estimator, **settings)
    dtype = checked.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype.itemsize > 8:
        dtype = np.dtype(np.float64)
    return checked if dtype == checked.dtype and checked.dtype.isnative else checked.astype(dtype)


def _from_objects(given: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return an array of Python's numbers as float64."""
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"X has dtype object and holds what is not a real number ({error}): convert it, e.g. to float32, "
            "and leave out or encode columns that are not numbers"
        ) from error


def check_compressed(name: str, matrix: Any) -> None:
    """Raise unless the index arrays of a SciPy CSR, CSC or BSR matrix are valid.

    SciPy does not check them when a matrix is made, and reads outside of its arrays, or sorts them wrongly, later.
    """
    if matrix.format not in ("csr", "csc", "bsr"):
        return
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    n_rows, n_columns = matrix.shape
    if matrix.format == "bsr":
        n_rows, n_columns = n_rows // matrix.blocksize[0], n_columns // matrix.blocksize[1]
    if matrix.format == "csc":
        n_rows, n_columns = n_columns, n_rows
    cause = ""
    if not indptr.ndim == indices.ndim == 1 or not indptr.dtype.kind == indices.dtype.kind == "i":
        cause = f"indptr and indices are of {indptr.dtype} and {indices.dtype}, not columns of integers"
    elif len(indptr) != n_rows + 1:
        cause = f"indptr has {len(indptr)} entries, not {n_rows + 1}"
    elif indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        cause = "indptr does not start at 0, or decreases"
    elif not indptr[-1] <= len(indices) == len(data):
        cause = f"indptr ends at {indptr[-1]}, with {len(indices)} indices and {len(data)} values"
    elif len(indices) and not 0 <= indices.min() <= indices.max() < n_columns:
        cause = f"indices go from {indices.min()} to {indices.max()}, not from 0 to {n_columns - 1}"
    if cause:
        raise ValueError(
            f"{name} is not a valid {matrix.format.upper()} matrix: {cause}. "
            "Make it again from its rows, columns and data"
        )


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
    present = np.unique(clusters[clusters >= 0])
    if len(present) <= present[-1]:  # before an array of so many entries is made
        absent = int((present != np.arange(len(present))).argmax())
        raise ValueError(
            f"labels have no point of cluster {absent}, but go up to {present[-1]}: number clusters without gaps, "
            "e.g. by np.unique(labels, return_inverse=True)[1]"
        )
    return clusters, np.bincount(clusters[clusters >= 0])


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


def _check_values(points: Points, metric: str | None) -> None:
    """Raise if a number is not finite or too large to be squared, or if all are too small for the metric."""
    by_rows = metric == "cosine" and points.dtype == np.float64  # squares of float32 do not underflow in float64
    axis = 1 if by_rows else 0 if metric in ("euclidean", "sqeuclidean") else None
    low = high = np.zeros(0)
    for first, rows in blocks(points):
        smallest, largest = rows.min(axis=axis), rows.max(axis=axis)
        _check_finite(rows, first, float(np.min(smallest)), float(np.max(largest)))
        if by_rows:
            check_lengths(np.maximum(largest, -smallest), first)
        elif metric is not None:
            low = np.minimum(low, smallest) if first else smallest
            high = np.maximum(high, largest) if first else largest
    if metric in LEAST_SCALE:
        check_scale(np.asarray(low, np.float64), np.asarray(high, np.float64), metric)


def check_lengths(largest: npt.NDArray[Any], first: int = 0) -> None:
    """Raise if a row, given its largest magnitude, is not zero but too short for cosines; ``first`` is row 0."""
    short = (largest > 0) & (largest < LEAST_LENGTH)
    if short.any():
        row = int(short.argmax())
        raise ValueError(
            f"the largest magnitude in row {first + row} of X is {largest[row]:g}, and squares of numbers below "
            f"{LEAST_LENGTH:.2g} underflow, which cosines need: scale X up"
        )


def check_scale(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], metric: str) -> None:
    """Raise if the weights of points would underflow, given the least and greatest number of X or its columns."""
    if metric == "dot":
        scale, what = float(np.max(np.maximum(high, -low), initial=0.0)), "largest magnitude in X"
    else:
        scale, what = float(np.max(high - low, initial=0.0)), "largest range of a column of X"
    if 0 < scale < LEAST_SCALE[metric]:
        raise ValueError(
            f"the {what} is {scale:g}, below {LEAST_SCALE[metric]:.2g}, so weights by metric={metric!r} would "
            "underflow in float32: scale X up"
        )


def _check_finite(rows: npt.NDArray[Any], first: int, smallest: float, greatest: float) -> None:
    """Raise if a number is not finite, or too large to be squared, given the least and the greatest."""
    largest = min(LARGEST, float(np.finfo(rows.dtype).max))
    if smallest >= -largest and greatest <= largest:  # false if there is a NaN
        return
    row, column = np.argwhere(~(np.abs(rows) <= largest))[0]
    value = rows[row, column]
    where = f"X[{first + row}, {column}] is {value}"
    if np.isfinite(value):
        raise ValueError(f"{where}, and numbers beyond {LARGEST:g} cannot be squared: scale X down")
    raise ValueError(f"{where}, but points must be finite: drop such rows or fill in values first")
