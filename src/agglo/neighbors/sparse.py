"""Search nearest neighbours of sparse rows, of sets (Jaccard) and of bits (Hamming)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo.neighbors.dense import (
    SAMPLE,
    Candidates,
    Lists,
    NeighborLists,
    Report,
    SearchParams,
    check_finite,
    to_rows,
)
from agglo.neighbors.graph import RecallEstimate
from agglo.points.points import (
    MAX_MAGNITUDE,
    canonical_rows,
    check_compressed,
    check_lengths,
    check_points,
    check_scale,
    choose_float_dtype,
    iter_blocks,
    number_error,
)

BINARY_METRICS = ("hamming", "jaccard")
"""The metrics that compare zeros and ones. Both are distances from 0 to 1."""

SPARSE_METRICS = ("cosine", "dot", *BINARY_METRICS)
"""The metrics that support sparse points."""

MAX_BANDS = 128  # maximum number of MinHash bands
_LANES = 8  # number of running sums in the core; column j is added to sum j % _LANES
_SPARE_COLUMNS = 2**16  # columns are renumbered if more than this number of columns have no entries
_LARGEST_SET = 2**24  # size of the largest allowed set: float32 represents integers exactly up to this
_BLOCK_ROWS = 4096  # number of rows that are packed into bits at a time

# The cost of an exact search is measured by the number of pairs of sets that share a member.
_CHEAP_PAIRS = 1e9  # comparing this number of pairs takes about 3 CPU seconds
_CHEAP_PAIRS_PER_SET = 4e4  # up to this number of pairs per set, an exact search is faster than MinHash


class _Functions(NamedTuple):
    """The functions of the C++ core for one kind of points: sparse rows, sets or bits."""

    search: Callable[..., Any]
    query: Callable[..., Any]
    all_pairs: Callable[..., Any]
    select_closest: Callable[..., Any]


_OF_ROWS = _Functions(
    _core.search_sparse, _core.query_sparse, _core.compute_all_pairs_sparse, _core.select_closest_sparse
)
_OF_SETS = _Functions(_core.search_sets, _core.query_sets, _core.compute_all_pairs_sets, _core.select_closest_sets)
_OF_BITS = _Functions(_core.search_bits, _core.query_bits, _core.compute_all_pairs_bits, _core.select_closest_bits)


class SparseRows(NamedTuple):
    """Sparse rows in CSR format, as an argument of the C++ core.

    The columns of each row are strictly increasing, and no stored value is zero.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32 | np.float64]
    n_columns: int

    def __len__(self) -> int:
        return len(self.indptr) - 1


class Bits(NamedTuple):
    """Rows of bits packed into 64-bit words, and the number of bits per row."""

    words: npt.NDArray[np.uint64]
    n_bits: int

    def __len__(self) -> int:
        return len(self.words)


class SparsePoints:
    """Points for sparse searches: sparse rows (cosine, dot), sets (Jaccard) or bits (Hamming).

    ``X`` is a sparse matrix, or an array of zeros and ones. The constructor validates and converts it. With
    ``check_scale``, it raises if all values are too small for the metric.
    """

    def __init__(self, X: Any, metric: str, *, check_scale: bool = True) -> None:
        self.X = X if sp.issparse(X) else check_points(X, compact=True)
        self.metric = metric
        self.rows: SparseRows | Bits
        if metric == "hamming":
            self.rows = check_bits(self.X)
        elif metric == "jaccard":
            self.rows = check_sets(self.X)
        else:
            self.rows = check_sparse(self.X, metric if check_scale else None)
        self._arrays: Any = tuple(self.rows)  # the points, as an argument of the core
        self._functions = {"hamming": _OF_BITS, "jaccard": _OF_SETS}.get(metric, _OF_ROWS)
        self._options = () if metric in BINARY_METRICS else (metric,)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def zero_rows(self) -> npt.NDArray[np.int64]:
        """The indices of the rows that are all zero. The points must be sparse rows or sets."""
        if not isinstance(self.rows, SparseRows):
            return np.empty(0, np.int64)
        return np.flatnonzero(np.diff(self.rows.indptr) == 0)

    def choose_method(self, recall: float) -> str:
        """Choose a search method: ``minhash`` for sets if an exact search is slow, otherwise ``exact``."""
        return "minhash" if self.metric == "jaccard" and recall < 1 and self.exact_is_expensive() else "exact"

    def exact_is_expensive(self) -> bool:
        """Return whether an exact search of sets is expected to take longer than MinHash."""
        assert isinstance(self.rows, SparseRows)
        set_counts = np.bincount(self.rows.indices, minlength=1).astype(np.float64)  # number of sets per member
        return bool(set_counts @ set_counts > max(_CHEAP_PAIRS, _CHEAP_PAIRS_PER_SET * len(self)))

    def search(self, method: str, params: SearchParams) -> NeighborLists:
        """Find the nearest neighbours of all points.

        For cosine and dot, neighbours must have a similarity above 0. For Jaccard, they must have a distance below
        1.
        """
        if method == "minhash":
            return search_minhash(self, params)
        lists = self._functions.search(
            self._arrays, params.n_neighbors, *self._options, params.n_threads, params.report
        )
        check_finite(lists[1], self.X)
        return NeighborLists(*to_rows(lists, params.n_neighbors), None, {})

    def search_queries(self, n_fitted: int, n_neighbors: int, n_threads: int, report: Report | None) -> Lists:
        """Find neighbours of queries among the first ``n_fitted`` points. The remaining points are the queries."""
        lists = self._functions.query(self._arrays, n_fitted, n_neighbors, *self._options, n_threads, report)
        return to_rows(lists, n_neighbors)

    def all_pairs(self, n_threads: int, report: Report | None = None) -> npt.NDArray[np.float32]:
        """Compute the similarity or distance of each point to each other point; return them row by row."""
        values: npt.NDArray[np.float32] = self._functions.all_pairs(
            self._arrays, *self._options, n_threads, report
        )
        check_finite(values, self.X)
        return values

    def select_closest(self, candidates: Candidates, n_neighbors: int, n_threads: int) -> Lists:
        """Select the closest candidates of each point; see :class:`agglo.neighbors.dense.DensePoints`."""
        lists = self._functions.select_closest(self._arrays, *self._options, candidates, n_neighbors, n_threads)
        return to_rows(lists, n_neighbors)


def search_minhash(
    points: SparsePoints, params: SearchParams, *, bucket_size: int = 0, n_bands: int = 0, sample: int = SAMPLE
) -> NeighborLists:
    """Find approximate nearest neighbours of sets by MinHash, and re-rank them by exact Jaccard distances.

    The search measures its recall on ``sample`` sets. It adds bands, at most 128, until the wanted recall is
    reached. If ``n_bands`` is given, it is not increased. A bucket has at most ``bucket_size`` sets. For both
    parameters, 0 means automatic.
    """
    lists, recall, used = _core.search_minhash(
        points._arrays,
        k=params.n_neighbors,
        params=_core.MinHashParams(bucket_size=bucket_size, n_bands=n_bands),
        goal=params.recall_goal(sample, MAX_BANDS),
        seed=params.seed,
        n_threads=params.n_threads,
        progress=params.report,
    )
    parameters = params.describe(bucket_size=used.bucket_size, bands=used.n_bands)
    return NeighborLists(*to_rows(lists, params.n_neighbors), RecallEstimate(*recall), parameters)


def check_sparse(X: Any, metric: str | None = None) -> SparseRows:
    """Convert any SciPy sparse matrix to CSR rows; sum duplicate entries and drop zeros.

    Raise if a number is not finite, or if all numbers are too small for ``metric``. If ``X`` is a CSR matrix in
    canonical format, its arrays are not copied.
    """
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions, shape {X.shape}, but points are the rows of a table")
    if 0 in X.shape:
        raise ValueError(f"X is empty, of shape {X.shape}: pass at least one point with one column")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {X.dtype}, but points must be real numbers: convert it, e.g. to float32")
    check_compressed("X", X)
    matrix = X.tocsr()
    indptr = np.asarray(matrix.indptr, np.int64)
    indices, data = matrix.indices[: indptr[-1]], matrix.data[: indptr[-1]]  # arrays may have unused entries
    values = np.asarray(data, choose_float_dtype(data) if len(data) else np.dtype(np.float32))
    _check_entries(indptr, indices, values)
    rows = canonical_rows(sp.csr_array((values, indices, indptr), shape=X.shape))
    indptr, indices, values = rows.indptr.astype(np.int64), rows.indices, rows.data
    if metric == "cosine" and len(values):
        nonzero = np.flatnonzero(np.diff(indptr))
        largest = np.zeros(X.shape[0])
        largest[nonzero] = np.maximum.reduceat(np.abs(values), indptr[nonzero])
        check_lengths(largest)
    elif metric == "dot":
        check_scale(
            np.array([values.min(initial=0)], np.float64), np.array([values.max(initial=0)], np.float64), metric
        )
    n_columns = X.shape[1]
    if n_columns > len(indices) + _SPARE_COLUMNS or n_columns > np.iinfo(np.int32).max:
        indices, n_columns = _renumber_columns(indices)
    return SparseRows(indptr, np.ascontiguousarray(indices, np.int32), np.ascontiguousarray(values), n_columns)


def check_sets(X: Any) -> SparseRows:
    """Convert each row to a set: the indices of its nonzero columns. ``X`` has zeros and ones if it is dense."""
    if not sp.issparse(X):
        _check_zeros_and_ones(X)
        X = sp.csr_array(X)
    rows = check_sparse(X)
    largest = int(np.diff(rows.indptr).max())
    if largest > _LARGEST_SET:
        raise ValueError(f"X has a set of {largest} members, but at most 2^24 can be compared: use smaller sets")
    return SparseRows(rows.indptr, rows.indices, np.empty(0, np.float32), rows.n_columns)


def check_bits(X: Any) -> Bits:
    """Pack the zeros and ones of a sparse matrix, or of a validated array, into bits."""
    if sp.issparse(X):
        check_sparse(X)
        X = X.tocsr()
    n, n_bits = X.shape
    words = np.zeros((n, -(-n_bits // 64)), np.uint64)
    for start in range(0, n, _BLOCK_ROWS):
        rows = X[start : start + _BLOCK_ROWS]
        rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows)
        _check_zeros_and_ones(rows, start)
        packed = np.packbits(rows.astype(bool), axis=1)
        words[start : start + _BLOCK_ROWS].view(np.uint8)[:, : packed.shape[1]] = packed
    return Bits(words, n_bits)


def _check_zeros_and_ones(points: npt.NDArray[Any], first_row: int = 0) -> None:
    """Raise if ``points`` has numbers other than 0 and 1. ``first_row`` is the index of its first row in X."""
    for start, rows in iter_blocks(points):
        if ((rows == 0) | (rows == 1)).all():
            continue
        row, column = np.argwhere((rows != 0) & (rows != 1))[0]
        raise ValueError(
            f"X[{first_row + start + row}, {column}] is {rows[row, column]:g}, but these metrics compare zeros "
            "and ones: pass X != 0 to compare which entries are not zero"
        )


def _check_entries(indptr: npt.NDArray[np.int64], indices: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
    """Raise if a value of a CSR matrix is not finite, or too large to be squared."""
    largest = min(MAX_MAGNITUDE, float(np.finfo(values.dtype).max))
    if not len(values) or (values.min() >= -largest and values.max() <= largest):  # comparisons with NaN are false
        return
    entry = int(np.flatnonzero(~(np.abs(values) <= largest))[0])
    row = int(np.searchsorted(indptr, entry, side="right")) - 1
    raise number_error(row, int(indices[entry]), values[entry])


def _renumber_columns(indices: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], int]:
    """Renumber columns without gaps, to save memory in the C++ core; return the new ids and the column count.

    The order of the columns does not change. A column number modulo ``_LANES`` does not change, either. So the
    core adds the same numbers in the same order.
    """
    used, inverse = np.unique(indices, return_inverse=True)
    before = np.concatenate(([-1], used[:-1].astype(np.int64)))
    numbers = np.cumsum((used.astype(np.int64) - before - 1) % _LANES + 1) - 1
    n_columns = int(numbers[-1]) + 1 if len(numbers) else 1
    if n_columns > np.iinfo(np.int32).max:
        raise ValueError(f"X uses {len(used)} different columns, more than int32 can number: use fewer features")
    return numbers.astype(np.int32)[inverse], n_columns
