"""Validate points, and convert arrays, tables and sparse matrices to arrays that the core can read."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo.points.frames import holds_vectors, to_array

Points = npt.NDArray[np.float32 | np.float64 | np.float16 | np.int8 | np.uint8]

_BLOCK_ROWS = 4096  # rows checked at a time, to save memory and to handle Ctrl-C
_COMPACT = (np.float16, np.int8, np.uint8)  # types that searches read without a converted copy
MAX_MAGNITUDE = 1e100  # so that squares and their sums are finite in float64
# The smallest allowed scale of points. Edge weights are float32, which has full precision down to 2^-126.
# At this scale, weights have full precision down to 2^-26 of the largest distance or product.
# Smaller weights do not matter in sums of weights.
MIN_SCALE = {"euclidean": 2.0**-100, "sqeuclidean": 2.0**-50, "dot": 2.0**-50}
MIN_LENGTH = 2.0**-500  # minimum length of a row for cosines; smaller squares lose precision


def check_points(X: Any, *, half: bool = False, compact: bool = False, metric: str | None = None) -> Points:
    """Convert ``X`` to a C-contiguous array of finite numbers with one row per point; raise if that is impossible.

    ``X`` is anything that NumPy can read, a table of pandas, polars or Arrow, or a column of vectors in such a
    table: see :mod:`agglo.points.frames`. Contiguous float32 and float64 arrays are not copied, so a memory-mapped
    file stays on disk. Other types become float32. Integers beyond 2^24 and longer floats become float64.

    With ``half``, float16 is not converted. With ``compact``, float16, int8 and uint8 are not converted, and
    booleans become uint8. With ``metric``, raise if the points are too small for this metric.
    """
    table = to_array(X)
    if sp.issparse(table):
        raise TypeError(
            f"X is a SciPy sparse {type(table).__name__}, but points must be dense here: "
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
    points = np.ascontiguousarray(given, given.dtype if stays else choose_float_dtype(given))
    if points.dtype.kind == "f":
        _check_values(points, metric)
    return points


def validate_points(
    estimator: Any, X: Any, *, reset: bool = True, accept_sparse: Any = False, ensure_all_finite: bool = True
) -> Any:
    """Validate ``X`` as input of a scikit-learn estimator; return an array or CSR matrix of numbers.

    With ``reset``, set ``n_features_in_`` and ``feature_names_in_``; otherwise compare ``X`` with them. With
    ``ensure_all_finite``, raise if a number is not finite.
    """
    from sklearn.utils import check_array
    from sklearn.utils.validation import validate_data

    table = to_array(X)
    if sp.issparse(table):
        check_compressed("X", table)
    settings = {"accept_sparse": accept_sparse, "ensure_all_finite": ensure_all_finite}
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
    """Convert an array of Python objects to float64; raise if one is not a number."""
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"X has dtype object and an entry that is not a real number ({error}): convert it, e.g. to float32, "
            "and leave out or encode columns that are not numbers"
        ) from error


def check_compressed(name: str, matrix: Any) -> None:
    """Raise unless the index arrays of a SciPy CSR, CSC or BSR matrix are valid.

    SciPy does not check the index arrays when a matrix is created, and could later read outside of the arrays.
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
        cause = f"indptr and indices have dtypes {indptr.dtype} and {indices.dtype}, not one-dimensional integers"
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
            "Build it again from its rows, columns and data"
        )


def iter_blocks(points: Points) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Yield blocks of rows: the index of the first row, and the rows. Types smaller than float32 are converted."""
    for start in range(0, len(points), _BLOCK_ROWS):
        rows = points[start : start + _BLOCK_ROWS]
        yield start, rows if rows.dtype.itemsize > 2 else rows.astype(np.float32)


def release_pages(points: npt.NDArray[Any]) -> None:
    """Release the memory pages of a mapped file; the system reads them again when they are needed.

    Copy-on-write maps (``mmap_mode="c"``) are not released, because changes would be lost.
    """
    base: Any = points
    shared = False
    while isinstance(base, np.ndarray):
        shared = isinstance(base, np.memmap) and base.mode != "c"
        base = base.base
    if shared and isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def as_core_array(points: Points) -> npt.NDArray[Any]:
    """Return points for the core: float16 is viewed as uint16, other types are unchanged."""
    return points.view(np.uint16) if points.dtype == np.float16 else points


def check_labels(
    labels: npt.ArrayLike, n_points: int, name: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Validate labels, where -1 means no cluster; return the labels as int64, and the size of each cluster."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"labels must be one integer per point, got {given.dtype} of shape {given.shape}")
    if len(given) != n_points:
        raise ValueError(f"labels has {len(given)} entries, but {name} has {n_points}: pass one per point")
    clusters = given.astype(np.int64)
    if not len(clusters) or clusters.max() < 0 or clusters.min() < -1:
        span = f"go from {clusters.min()} to {clusters.max()}" if len(clusters) else "are empty"
        raise ValueError(
            f"labels {span}, but clusters are numbered 0, 1, ...: pass -1 for points without a cluster"
        )
    present = np.unique(clusters[clusters >= 0])
    if len(present) <= present[-1]:  # checked first, because np.bincount would allocate an entry for each gap
        absent = int((present != np.arange(len(present))).argmax())
        raise ValueError(
            f"no label is {absent}, but labels go up to {present[-1]}: number clusters without gaps, "
            "e.g. by np.unique(labels, return_inverse=True)[1]"
        )
    return clusters, np.bincount(clusters[clusters >= 0])


def choose_float_dtype(given: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return float32 if it can represent all numbers of ``given``, otherwise float64."""
    if given.dtype.kind == "f":
        fits = given.dtype.itemsize <= 4
    else:
        fits = given.dtype.itemsize <= 2 or (given.min() >= -(2**24) and given.max() <= 2**24)
    return np.dtype(np.float32 if fits else np.float64)


def check_leaf_points(X: Any, n_leaves: int) -> Points:
    """Validate the points of a tree, which must have one leaf per row; float16 is not converted."""
    points = check_points(X, half=True)
    if len(points) != n_leaves:
        raise ValueError(
            f"X has {len(points)} rows, but the tree has {n_leaves} leaves: pass the points that it was built "
            "from, in the same order"
        )
    return points


def _check_values(points: Points, metric: str | None) -> None:
    """Raise if a number is not finite or too large to be squared, or if points are too small for the metric."""
    # Squares of float32 numbers do not underflow in float64, so only float64 rows are checked.
    by_rows = metric == "cosine" and points.dtype == np.float64
    axis = 1 if by_rows else 0 if metric in ("euclidean", "sqeuclidean") else None
    low = high = np.zeros(0)
    for first, rows in iter_blocks(points):
        smallest, largest = rows.min(axis=axis), rows.max(axis=axis)
        _check_finite(rows, first, float(np.min(smallest)), float(np.max(largest)))
        if by_rows:
            check_lengths(np.maximum(largest, -smallest), first)
        elif metric is not None:
            low = np.minimum(low, smallest) if first else smallest
            high = np.maximum(high, largest) if first else largest
    if metric in MIN_SCALE:
        check_scale(np.asarray(low, np.float64), np.asarray(high, np.float64), metric)


def check_lengths(largest: npt.NDArray[Any], first: int = 0) -> None:
    """Raise if a nonzero row is too short for cosines.

    ``largest`` is the largest magnitude of each row, and ``first`` is the index of the first row.
    """
    short = (largest > 0) & (largest < MIN_LENGTH)
    if short.any():
        row = int(short.argmax())
        raise ValueError(
            f"the largest magnitude in row {first + row} of X is {largest[row]:g}, and cosines need squares, "
            f"which underflow for numbers below {MIN_LENGTH:.2g}: scale X up"
        )


def check_scale(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], metric: str) -> None:
    """Raise if edge weights would underflow, given the smallest and largest number of X or of each column."""
    if metric == "dot":
        scale, what = float(np.max(np.maximum(high, -low), initial=0.0)), "largest magnitude in X"
    else:
        scale, what = float(np.max(high - low, initial=0.0)), "largest range of a column of X"
    if 0 < scale < MIN_SCALE[metric]:
        raise ValueError(
            f"the {what} is {scale:g}, below {MIN_SCALE[metric]:.2g}, so weights by metric={metric!r} would "
            "underflow in float32: scale X up"
        )


def _check_finite(rows: npt.NDArray[Any], first: int, low: float, high: float) -> None:
    """Raise if a number is not finite or too large to be squared; ``low`` and ``high`` are the extremes."""
    limit = min(MAX_MAGNITUDE, float(np.finfo(rows.dtype).max))
    if low >= -limit and high <= limit:  # false if there is a NaN
        return
    row, column = np.argwhere(~(np.abs(rows) <= limit))[0]
    value = rows[row, column]
    where = f"X[{first + row}, {column}] is {value}"
    if np.isfinite(value):
        raise ValueError(f"{where}, and numbers beyond {MAX_MAGNITUDE:g} cannot be squared: scale X down")
    raise ValueError(f"{where}, but points must be finite: drop such rows or fill in values first")
