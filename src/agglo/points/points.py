"""Validate points once: convert arrays, tables and sparse matrices, check all numbers, find duplicates.

Duplicates are searched and clustered as one point, whose weight is the sum of their weights. As separate points,
duplicates would slow down the search and fill each other's neighbour lists.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._native import empty_maybe_mapped
from agglo._validation import Immutable, effective_n_threads, is_read_only
from agglo.points.frames import holds_vectors, to_array

PointArray = npt.NDArray[np.float32 | np.float64 | np.float16 | np.int8 | np.uint8]
Ids = npt.NDArray[np.int64]

_BLOCK_ROWS = 4096  # number of rows checked or copied at a time, to save memory and to handle Ctrl-C
_COMPACT = (np.float16, np.int8, np.uint8)  # dtypes that searches read without a converted copy
MAX_MAGNITUDE = 1e100  # larger numbers could have squares, or sums of squares, beyond float64
# The smallest allowed scale of points. Edge weights are float32, which has full precision down to 2^-126.
# At this scale, edge weights have full precision down to 2^-26 of the largest distance or dot product.
# In a sum of edge weights, smaller edge weights do not matter.
MIN_SCALE = {"euclidean": 2.0**-100, "sqeuclidean": 2.0**-50, "dot": 2.0**-50}
MIN_LENGTH = 2.0**-500  # minimum length of a row for cosines; shorter rows have squares that lose precision


@dataclass(frozen=True, eq=False)
class Points:
    """Validated points, and the metric that compares them.

    If the points are dense and the metric is neither jaccard nor hamming, they satisfy:

    1. ``X`` is C-contiguous, has a dtype that the C++ core reads, and has one row per point;
    2. the numbers of ``X`` are finite, and neither too large nor too small for the metric;
    3. if the metric is cosine, ``zero_rows`` contains the indices of the rows that are all zero.

    Other points are converted and checked by the search: sparse points, and points of zeros and ones.
    """

    X: Any
    metric: str
    zero_rows: Ids = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def n_points(self) -> int:
        """The number of points."""
        return int(self.X.shape[0])

    def __len__(self) -> int:
        return self.n_points

    @classmethod
    def validate(cls, X: Any, metric: str, *, source: Any = None) -> Self:
        """Convert and check dense points in one pass; return them as validated points.

        ``source`` is the object that ``X`` was converted from. If ``source`` and ``X`` share writable memory, the
        points are copied in the same pass. Later changes of ``source`` then do not change the points.
        """
        points = _convert(X, _COMPACT, source)
        copy = source is not None and _is_shared(points, source)
        checked, zero_rows = _check_values(points, metric, copy=copy)
        return cls(checked, metric, zero_rows)

    def select(self, rows: Ids) -> Self:
        """Return a copy of the points with the indices ``rows``, which must be in ascending order."""
        zero_rows = np.flatnonzero(np.isin(rows, self.zero_rows))
        return type(self)(take_rows(self.X, rows), self.metric, zero_rows)


def check_points(X: Any, *, half: bool = False, compact: bool = False, metric: str | None = None) -> PointArray:
    """Convert ``X`` to a C-contiguous array of finite numbers with one row per point; raise if that is impossible.

    ``X`` is anything that NumPy can convert to an array, or a table of pandas, polars or Arrow; see
    :mod:`agglo.points.frames`. Contiguous float32 and float64 arrays are not copied, so a memory-mapped
    file stays on disk. Other dtypes become float32 if that represents all numbers. Otherwise they become float64.

    With ``half``, float16 is not converted. With ``compact``, float16, int8 and uint8 are not converted, and
    booleans become uint8. With ``metric``, raise if the points are too small for this metric.
    """
    points = _convert(X, _COMPACT if compact else _COMPACT[:1] if half else ())
    if points.dtype.kind == "f":
        _check_values(points, metric)
    return points


def validate_points(
    estimator: Any, X: Any, *, reset: bool = True, accept_sparse: Any = False, ensure_all_finite: bool = True
) -> Any:
    """Validate ``X`` as input of a scikit-learn estimator; return an array or CSR matrix of numbers.

    With ``reset``, set ``n_features_in_`` and ``feature_names_in_``. Otherwise, raise if the columns of ``X`` do
    not match these attributes. With ``ensure_all_finite``, raise if a number is not finite.
    """
    from sklearn.utils import assert_all_finite, check_array
    from sklearn.utils.validation import validate_data

    table = X if type(X) is np.ndarray else to_array(X)
    if sp.issparse(table):
        check_compressed("X", table)
    settings = {"accept_sparse": accept_sparse, "ensure_all_finite": False}
    try:
        if table is X or holds_vectors(X, table):
            checked = validate_data(estimator, table, reset=reset, **settings)
        else:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
            checked = check_array(table, input_name="X", estimator=estimator, **settings)
    except (TypeError, ValueError) as error:
        check_texts(X, table, error)
        raise
    if ensure_all_finite:
        try:
            assert_all_finite(checked)
        except ValueError:
            raise _first_nonfinite(checked) from None
    dtype = checked.dtype.newbyteorder("=")
    if dtype.kind == "f" and dtype.itemsize > 8:
        dtype = np.dtype(np.float64)
    return checked if dtype == checked.dtype and checked.dtype.isnative else checked.astype(dtype)


def _convert(X: Any, kept: tuple[Any, ...], source: Any = None) -> PointArray:
    """Convert ``X`` to a C-contiguous array with one row per point; dtypes in ``kept`` are not converted.

    Error messages contain the names of the columns of ``source``, or of ``X`` if ``source`` is None.
    """
    table = X if type(X) is np.ndarray else to_array(X)
    if sp.issparse(table):
        raise TypeError(
            f"X is a SciPy sparse {type(table).__name__}, but points must be dense here: "
            "pass X.toarray(), or a low-dimensional projection of it (sklearn.decomposition.TruncatedSVD)"
        )
    try:
        given = np.asarray(table)
    except ValueError as error:  # the rows have different lengths
        raise ValueError(f"X is not a table of numbers ({error}): pass rows of one length") from error
    if given.dtype == np.object_ and given.ndim == 2:
        given = _from_objects(given, X if source is None else source)
    if given.dtype.kind in "OUS":
        check_texts(X if source is None else source, given)
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
    if given.dtype == np.bool_ and np.uint8 in kept:
        given = given.view(np.uint8)
    stays = any(given.dtype == dtype for dtype in kept)
    return np.ascontiguousarray(given, given.dtype if stays else choose_float_dtype(given))


def _from_objects(given: npt.NDArray[Any], source: Any) -> npt.NDArray[np.float64]:
    """Convert an array of Python objects to float64; raise if an object is not a number.

    ``source`` is the object that the array was converted from. Error messages contain the names of its columns.
    """
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        check_texts(source, given, error)
        raise TypeError(
            f"X has dtype object and an entry that is not a real number ({error}): convert it, e.g. to float32, "
            "and leave out or encode columns that are not numbers"
        ) from error


def check_texts(X: Any, table: Any, cause: Exception | None = None) -> None:
    """Raise if the points are texts, or if a column has a text that is not a number.

    ``table`` is ``X`` as an array or list. ``cause`` is the error that the conversion to numbers raised.
    """
    if sp.issparse(table):
        return
    try:
        array = np.asarray(table, object)
    except ValueError:  # the rows have different lengths
        return
    columns = array.T if array.ndim == 2 else array.reshape(1, -1)
    for number, column in enumerate(columns):
        text = next((value for value in column if isinstance(value, str) and not _is_number(value)), None)
        if text is None:
            continue
        if len(columns) == 1:
            raise TypeError("X has texts: pass their embeddings, or call agglo.topics(texts)") from cause
        names = list(getattr(X, "column_names", getattr(X, "columns", ())))
        name = repr(names[number]) if len(names) == len(columns) else number
        raise TypeError(
            f"column {name} of X has texts, such as {str(text)[:40]!r}: leave out this column, or encode it as "
            "numbers"
        ) from cause


def _is_number(text: str) -> bool:
    """Return whether ``float`` converts the text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def choose_float_dtype(given: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return float32 if it can represent all numbers of ``given``, otherwise float64."""
    if given.dtype.kind == "f":
        fits = given.dtype.itemsize <= 4
    else:
        fits = given.dtype.itemsize <= 2 or (given.min() >= -(2**24) and given.max() <= 2**24)
    return np.dtype(np.float32 if fits else np.float64)


def _check_values(points: PointArray, metric: str | None, *, copy: bool = False) -> tuple[PointArray, Ids]:
    """Check all numbers in one pass; return the points, or a copy of them, and the indices of zero rows.

    Raise if a number is not finite or too large to be squared. Also raise if the points are too small for the
    metric. If the metric is not cosine, no zero rows are returned.
    """
    axis = {"cosine": 1, "euclidean": 0, "sqeuclidean": 0}.get(metric or "")
    checked = empty_maybe_mapped(points.shape, points.dtype) if copy else points
    low = high = np.zeros(0)
    zero_rows = [np.empty(0, np.int64)]
    for first, rows in iter_blocks(points, checked if copy else None):
        smallest, largest = rows.min(axis=axis), rows.max(axis=axis)
        _check_finite(rows, first, float(np.min(smallest)), float(np.max(largest)))
        if metric == "cosine":
            magnitudes = np.maximum(largest, -smallest)
            check_lengths(magnitudes, first)
            zero_rows.append(first + np.flatnonzero(magnitudes == 0))
        else:
            low = np.minimum(low, smallest) if first else smallest
            high = np.maximum(high, largest) if first else largest
    if metric in MIN_SCALE:
        check_scale(np.asarray(low, np.float64), np.asarray(high, np.float64), metric)
    return checked, np.concatenate(zero_rows)


def _check_finite(rows: npt.NDArray[Any], first: int, low: float, high: float) -> None:
    """Raise if a number is not finite or too large to be squared.

    ``low`` and ``high`` are the smallest and the largest number of ``rows``.
    """
    limit = min(MAX_MAGNITUDE, float(np.finfo(rows.dtype).max))
    if low >= -limit and high <= limit:  # comparisons with NaN are false
        return
    row, column = np.argwhere(~(np.abs(rows) <= limit))[0]
    raise number_error(first + row, column, rows[row, column])


def _first_nonfinite(X: Any) -> ValueError:
    """Return the error for the first number of an array or sparse matrix that is not finite."""
    if sp.issparse(X):
        entries = X.tocoo()
        first = int(np.isfinite(entries.data).argmin())
        return number_error(entries.row[first], entries.col[first], entries.data[first])
    for start, rows in iter_blocks(X):
        wrong = np.argwhere(~np.isfinite(rows))
        if len(wrong):
            row, column = wrong[0]
            return number_error(start + row, column, rows[row, column])
    raise AssertionError("all numbers are finite")


def number_error(row: int, column: int, value: Any) -> ValueError:
    """Return the error for a number that is not finite or too large to be squared."""
    where = f"X[{row}, {column}] is {value}"
    if np.isfinite(value):
        return ValueError(f"{where}, and numbers beyond {MAX_MAGNITUDE:g} cannot be squared: scale X down")
    what = "NaN" if np.isnan(value) else "infinity"
    return ValueError(
        f"X contains {what}: {where}, but points must be finite: drop such rows or fill in values first"
    )


def check_lengths(largest: npt.NDArray[Any], first: int = 0, least: float = MIN_LENGTH, where: str = "") -> None:
    """Raise if a nonzero row is too short for cosines: if its largest magnitude is below ``least``.

    ``largest`` contains the largest magnitude of each row. ``first`` is the index of the first of these rows.
    """
    short = (largest > 0) & (largest < least)
    if short.any():
        row = int(short.argmax())
        raise ValueError(
            f"the largest magnitude in row {first + row} of X is {largest[row]:g}, below {least:.2g}, so its "
            f"cosines would lose precision{where}: scale X up"
        )


def check_scale(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], metric: str) -> None:
    """Raise if edge weights would underflow in float32.

    ``low`` and ``high`` are the smallest and the largest number of X, or of each column of X.
    """
    if metric == "dot":
        scale, what = float(np.max(np.maximum(high, -low), initial=0.0)), "largest magnitude in X"
    else:
        scale, what = float(np.max(high - low, initial=0.0)), "largest range of a column of X"
    if 0 < scale < MIN_SCALE[metric]:
        raise ValueError(
            f"the {what} is {scale:g}, below {MIN_SCALE[metric]:.2g}, so weights by metric={metric!r} would "
            "underflow in float32: scale X up"
        )


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


def iter_blocks(points: PointArray, copy: PointArray | None = None) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Yield blocks of rows as (index of the first row, rows). Rows of small dtypes are converted to float32.

    If ``copy`` is given, each block is first copied to ``copy``, and the rows are yielded from there.
    """
    for start in range(0, len(points), _BLOCK_ROWS):
        rows = points[start : start + _BLOCK_ROWS]
        if copy is not None:
            copy[start : start + _BLOCK_ROWS] = rows
            rows = copy[start : start + _BLOCK_ROWS]
        yield start, rows if rows.dtype.itemsize > 2 else rows.astype(np.float32)


def as_core_array(points: PointArray) -> npt.NDArray[Any]:
    """Return points as an array for the C++ core: view float16 as uint16, and keep other dtypes."""
    return points.view(np.uint16) if points.dtype == np.float16 else points


def release_pages(points: npt.NDArray[Any]) -> None:
    """Release the memory pages of a memory-mapped file; the system reads them again when they are needed.

    Pages of copy-on-write maps (``mmap_mode="c"``) are not released, because their changes would be lost.
    """
    base: Any = points
    shared = False
    while isinstance(base, np.ndarray):
        shared = isinstance(base, np.memmap) and base.mode != "c"
        base = base.base
    if shared and isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


# ---- copies of rows ----


def take_rows(X: Any, rows: Ids) -> Any:
    """Return a copy of the rows with the indices ``rows``; large copies are in a memory-mapped temporary file."""
    if sp.issparse(X):
        return X[rows]
    taken = empty_maybe_mapped((len(rows), X.shape[1]), X.dtype)
    for start in range(0, len(taken), _BLOCK_ROWS):
        taken[start : start + _BLOCK_ROWS] = X[rows[start : start + _BLOCK_ROWS]]
    return taken


def copy_if_shared(points: Any, source: Any) -> Any:
    """Return ``points``, or a copy if they share memory with ``source`` that the caller could change."""
    if not _is_shared(points, source):
        return points
    return points.copy() if sp.issparse(points) else take_rows(points, np.arange(len(points)))


def _is_shared(points: Any, source: Any) -> bool:
    """Return whether ``points``, which were converted from ``source``, may share writable memory with it."""
    if sp.issparse(points):
        return sp.issparse(source) and any(
            np.may_share_memory(getattr(points, name), getattr(source, name, ()))
            for name in ("data", "indices", "indptr")
        )
    if is_read_only(points) or isinstance(source, list | tuple):
        return False
    # Tables of other libraries may be converted to views of their memory.
    return not isinstance(source, np.ndarray) or np.may_share_memory(points, source)


# ---- duplicates ----


@dataclass(frozen=True, eq=False)
class Duplicates(Immutable):
    """Groups of equal points, as ``np.unique`` returns them, but in order of first appearance.

    1. ``first`` contains the index of the first point of each group, in ascending order;
    2. ``inverse`` contains the group of each point, as an index into ``first``.
    """

    first: Ids
    inverse: Ids

    def __post_init__(self) -> None:
        self._release_arrays()

    @property
    def n_duplicates(self) -> int:
        """The number of points that are not the first point of their group."""
        return len(self.inverse) - len(self.first)

    def select_first(self, X: Any) -> Any:
        """Return a copy of the first row of each group. If there are no duplicates, return ``X`` itself."""
        return take_rows(X, self.first) if self.n_duplicates else X


def find_duplicates(X: Any, n_jobs: int | None = None) -> Duplicates:
    """Find the duplicates of ``X``, which is dense or sparse; return the groups of equal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from agglo.points.points import find_duplicates
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [5.0, 6.0]])
    >>> find_duplicates(X).inverse
    array([0, 1, 0, 2])
    """
    first = _find_first_equal(X, effective_n_threads(n_jobs))
    return no_duplicates(len(first)) if (first == np.arange(len(first))).all() else group_by(first)


def no_duplicates(n_points: int) -> Duplicates:
    """Return groups for points without duplicates: one group per point."""
    return Duplicates(np.arange(n_points), np.arange(n_points))


def group_by(keys: Ids) -> Duplicates:
    """Group the points that have equal keys; return the groups in order of first appearance."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Duplicates(first[order], rank[inverse])


def _find_first_equal(X: Any, n_threads: int) -> Ids:
    """Return, for each row of ``X``, the index of the first equal row."""
    if sp.issparse(X):
        rows = canonical_rows(X)
        indptr = rows.indptr.astype(np.int64)
        same_columns = _find_first_equal_slice(indptr, rows.indices, n_threads).astype(np.int64)
        keys = same_columns * rows.shape[0] + _find_first_equal_slice(indptr, rows.data, n_threads)
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return np.asarray(first[inverse])
    points = np.ascontiguousarray(X)
    indptr = np.arange(len(points) + 1, dtype=np.int64) * points.shape[1]
    return _find_first_equal_slice(indptr, points.reshape(-1), n_threads).astype(np.int64)


def _find_first_equal_slice(indptr: Ids, values: npt.NDArray[Any], n_threads: int) -> npt.NDArray[np.int32]:
    """Return, for each slice ``values[indptr[i]:indptr[i + 1]]``, the index of the first equal slice."""
    bits = values.view(np.dtype(f"u{values.dtype.itemsize}"))
    first: npt.NDArray[np.int32] = _core.find_duplicates(indptr, bits, values.dtype.kind == "f", n_threads)
    return first


def canonical_rows(X: Any) -> Any:
    """Return ``X`` as a CSR matrix with sorted columns, without duplicate entries and without stored zeros.

    If ``X`` already has this form, it is not copied.
    """
    rows = sp.csr_array(X, copy=False)
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows
