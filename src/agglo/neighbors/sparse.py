"""Nearest neighbours of sparse rows, sets and bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo.neighbors.graph import RecallEstimate
from agglo.neighbors.lists import Found, Report
from agglo.neighbors.validation import check_finite, warn_of_zero_rows
from agglo.points.validation import LARGEST, blocks, check_lengths, check_points, check_scale, narrowest

_LANES = 8  # running sums of the core: a column's number modulo this says which it is added to
_SPARE = 2**16  # columns that may be without entries before they are numbered anew

Lists = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Neighbours and values, k of each point in turn, the closest first; -1 where there are no more."""


class SparseRows(NamedTuple):
    """Rows as the core takes them: columns ascending in each, none twice, and no zeros."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32 | np.float64]
    columns: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def empty(self) -> npt.NDArray[np.intp]:
        """The rows that have nothing in them."""
        return np.flatnonzero(np.diff(self.indptr) == 0)


def check_sparse(X: Any, metric: str | None = None) -> SparseRows:
    """The rows of a SciPy sparse matrix or array of any format, repeated entries added up and zeros left out.

    Raises if it is not a table of finite numbers, or if they are too small for ``metric``. The arrays of a CSR
    matrix that is in order are not copied.
    """
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions, shape {X.shape}, but points are the rows of a table")
    if 0 in X.shape:
        raise ValueError(f"X is empty, of shape {X.shape}: pass at least one point with one column")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {X.dtype}, but points must be real numbers: convert it, e.g. to float32")
    matrix = X.tocsr()
    indptr = np.asarray(matrix.indptr, np.int64)
    _check_structure(indptr, matrix.indices, matrix.data, X.shape)
    values = np.asarray(matrix.data, narrowest(matrix.data) if len(matrix.data) else np.dtype(np.float32))
    _check_entries(indptr, matrix.indices, values)
    indices = matrix.indices
    if not _in_order(indptr, indices) or not values.all():
        own = sp.csr_array((values.copy(), indices.copy(), indptr.copy()), shape=X.shape)
        own.sum_duplicates()
        own.eliminate_zeros()
        indptr, indices, values = own.indptr.astype(np.int64), own.indices, own.data
    if metric == "cosine" and len(values):
        full = np.flatnonzero(np.diff(indptr))
        lengths = np.zeros(X.shape[0])
        lengths[full] = np.maximum.reduceat(np.abs(values), indptr[full])
        check_lengths(lengths)
    elif metric == "dot":
        check_scale(
            np.array([values.min(initial=0)], np.float64), np.array([values.max(initial=0)], np.float64), metric
        )
    columns = X.shape[1]
    if columns > len(indices) + _SPARE or columns > np.iinfo(np.int32).max:
        indices, columns = _renumbered(indices)
    return SparseRows(indptr, np.ascontiguousarray(indices, np.int32), np.ascontiguousarray(values), columns)


def nearest(rows: SparseRows, n_neighbors: int, metric: str, workers: int, report: Report | None) -> Lists:
    """The closest rows of each by cosine or dot product, of those whose similarity is above 0."""
    lists: Lists = _core.sparse_nearest(*rows, n_neighbors, metric == "cosine", workers, report)
    return lists


def all_pairs(rows: SparseRows, metric: str, workers: int, report: Report | None) -> npt.NDArray[np.float32]:
    """The similarity of every pair, row by row."""
    values: npt.NDArray[np.float32] = _core.sparse_all_pairs(*rows, metric == "cosine", workers, report)
    return values


def _check_structure(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[Any], data: npt.NDArray[Any], shape: tuple[int, int]
) -> None:
    """Raise if this is no CSR matrix, lest the core read where nothing is."""
    if (
        len(indptr) != shape[0] + 1
        or indptr[0] != 0
        or (np.diff(indptr) < 0).any()
        or not indptr[-1] <= len(indices) == len(data)
        or (len(indices) and not 0 <= indices.min() <= indices.max() < shape[1])
    ):
        raise ValueError(
            "X is not a valid sparse matrix (its indptr does not ascend, or its indices are out of range): "
            "see scipy's check_format, and make it anew"
        )
    if len(indices) > indptr[-1]:
        raise ValueError(
            f"X holds {len(indices)} entries, but its indptr ends at {indptr[-1]}: call X.prune() on it"
        )


def _check_entries(indptr: npt.NDArray[np.int64], indices: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
    """Raise if a number is not finite, or too large to be squared."""
    largest = min(LARGEST, float(np.finfo(values.dtype).max))
    if not len(values) or (values.min() >= -largest and values.max() <= largest):  # false if there is a NaN
        return
    entry = int(np.flatnonzero(~(np.abs(values) <= largest))[0])
    row = int(np.searchsorted(indptr, entry, side="right")) - 1
    where = f"X[{row}, {indices[entry]}] is {values[entry]}"
    if np.isfinite(values[entry]):
        raise ValueError(f"{where}, and numbers beyond {LARGEST:g} cannot be squared: scale X down")
    raise ValueError(f"{where}, but points must be finite: drop such rows or fill in values first")


def _in_order(indptr: npt.NDArray[np.int64], indices: npt.NDArray[Any]) -> bool:
    """Whether the columns of every row ascend, none being there twice."""
    ascends = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    starts = starts[(starts > 0) & (starts < len(indices))]
    ascends[starts - 1] = True
    return bool(ascends.all())


def _renumbered(indices: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], int]:
    """Columns with smaller numbers, in the same order, and in the core's sums where they would be."""
    used, places = np.unique(indices, return_inverse=True)
    before = np.concatenate(([-1], used[:-1].astype(np.int64)))
    numbers = np.cumsum((used.astype(np.int64) - before - 1) % _LANES + 1) - 1
    columns = int(numbers[-1]) + 1 if len(numbers) else 1
    if columns > np.iinfo(np.int32).max:
        raise ValueError(f"X uses {len(used)} different columns, more than can be told apart: use fewer features")
    return numbers.astype(np.int32)[places], columns


_LARGEST_SET = 2**24  # members, as float32 counts
_ROWS = 4096  # packed at a time


def check_sets(X: Any) -> SparseRows:
    """Sets: the columns that are not 0 in a sparse matrix, or 1 in a table of zeros and ones."""
    if sp.issparse(X):
        rows = check_sparse(X)
    else:
        points = check_points(X, compact=True)
        _check_bits(points)
        rows = check_sparse(sp.csr_array(points))
    largest = int(np.diff(rows.indptr).max())
    if largest > _LARGEST_SET:
        raise ValueError(f"X has a set of {largest} members, but at most 2^24 can be compared: use smaller sets")
    return rows


def nearest_sets(rows: SparseRows, n_neighbors: int, workers: int, report: Report | None) -> Lists:
    """The closest sets of each by Jaccard distance, of those that have something in common with it."""
    lists: Lists = _core.nearest_sets(rows.indptr, rows.indices, rows.columns, n_neighbors, workers, report)
    return lists


def all_pairs_of_sets(rows: SparseRows, workers: int, report: Report | None) -> npt.NDArray[np.float32]:
    """The Jaccard distance of every pair, row by row."""
    values: npt.NDArray[np.float32] = _core.all_pairs_of_sets(
        rows.indptr, rows.indices, rows.columns, workers, report
    )
    return values


class Bits(NamedTuple):
    """Rows of bits in 64-bit words, and how many bits a row has."""

    words: npt.NDArray[np.uint64]
    bits: int

    def __len__(self) -> int:
        return len(self.words)


def check_bits(X: Any) -> Bits:
    """Bits, packed, of a dense or sparse table of zeros and ones."""
    if sp.issparse(X):
        check_sparse(X)
        given = X.tocsr()
    else:
        given = check_points(X, compact=True)
    n, bits = given.shape
    words = np.zeros((n, -(-bits // 64)), np.uint64)
    for first in range(0, n, _ROWS):
        rows = given[first : first + _ROWS]
        rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows)
        _check_bits(rows, first)
        packed = np.packbits(rows.astype(bool), axis=1)
        words[first : first + _ROWS].view(np.uint8)[:, : packed.shape[1]] = packed
    return Bits(words, bits)


def nearest_bits(bits: Bits, n_neighbors: int, workers: int, report: Report | None) -> Lists:
    """The closest rows of each by the share of bits that differ."""
    lists: Lists = _core.nearest_bits(*bits, n_neighbors, workers, report)
    return lists


def all_pairs_of_bits(bits: Bits, workers: int, report: Report | None) -> npt.NDArray[np.float32]:
    """The share of bits that differ of every pair, row by row."""
    values: npt.NDArray[np.float32] = _core.all_pairs_of_bits(*bits, workers, report)
    return values


def _check_bits(points: npt.NDArray[Any], start: int = 0) -> None:
    """Raise if there is anything but zeros and ones."""
    for first, rows in blocks(points):
        if ((rows == 0) | (rows == 1)).all():
            continue
        row, column = np.argwhere((rows != 0) & (rows != 1))[0]
        raise ValueError(
            f"X[{start + first + row}, {column}] is {rows[row, column]:g}, but these metrics compare zeros and "
            "ones: pass X != 0 if that is what counts"
        )


SAMPLE = 256  # sets that recall is measured on, as for cells
MOST = 128  # bands, before it is given up

# Pairs of equal members of two sets, which an exact search may have to count: beyond that it takes more than some
# 3 CPU seconds in all, and more than bands do for each set.
_CHEAP = 1e9
_CHEAP_EACH = 4e4


def minhash(
    rows: SparseRows,
    n_neighbors: int,
    workers: int,
    report: Report | None,
    *,
    recall: float = 0.95,
    random_state: int = 0,
    bucket: int = 0,
    bands: int = 0,
    patient: bool = True,
    sample: int = SAMPLE,
) -> Found:
    """The closest of all sets that each was compared with, by Jaccard distance, with exact values.

    Parameters
    ----------
    rows, n_neighbors, workers, report
        Checked sets, the length of the lists, threads and a progress function.
    recall : float
        The share of the true neighbours to find. Bands are added until the estimate says so, or there are 128:
        see the estimate that is returned.
    random_state : int
        Where chance begins; nothing else is random.
    bucket, bands : int
        Sets that a bucket holds at most, and bands. 0 leaves them to be chosen; given ``bands`` are made as they
        are, whatever recall that gives.
    patient : bool
        Whether to add bands up to the most although it is clear that these will not do.
    sample : int
        Sets that the estimate is measured on.
    """
    indices, values, reached, spent = _core.nearly_nearest_sets(
        *(rows.indptr, rows.indices, rows.columns, n_neighbors, recall, bucket, bands, patient, MOST, sample),
        *(random_state, workers, report),
    )
    shape = (len(rows), n_neighbors)
    effort = dict(zip(("bucket_size", "bands"), spent, strict=True))
    parameters = {"recall": recall, "random_state": random_state, **effort}
    return Found(indices.reshape(shape), values.reshape(shape), RecallEstimate(*reached), parameters)


def is_dear(rows: SparseRows) -> bool:
    """Whether an exact search costs more than bands do: by how many sets have the members of each."""
    counts = np.bincount(rows.indices, minlength=1).astype(np.float64)
    return bool(counts @ counts > max(_CHEAP, _CHEAP_EACH * len(rows)))


BINARY = ("hamming", "jaccard")
"""The metrics that compare zeros and ones; both are distances, and 1 at most."""

SPARSE = ("cosine", "dot", *BINARY)
"""The metrics that sparse points can be compared by."""


class Features:
    """Points that are searched without a table of all their numbers.

    Raises if they, the metric and the method do not go together.
    """

    def __init__(self, X: Any, metric: str, method: str) -> None:
        what = f"a SciPy sparse {type(X).__name__}" if sp.issparse(X) else "a table of zeros and ones"
        if metric not in SPARSE:
            raise TypeError(
                f"X is {what}, but metric={metric!r} needs dense points: pass metric='cosine', 'dot', 'jaccard' "
                "or 'hamming', or X.toarray(), or a low-dimensional projection of it "
                "(sklearn.decomposition.TruncatedSVD)"
            )
        methods = ("auto", "exact", "minhash") if metric == "jaccard" else ("auto", "exact")
        if method not in methods:
            other = "metric='jaccard'" if method == "minhash" else "dense points of other metrics"
            raise ValueError(
                f"method={method!r} is for {other}, and X is {what} by metric={metric!r}: pass method="
                + " or ".join(map(repr, methods[::-1]))
            )
        self.X = X
        self.points: Any
        self._nearest: Callable[..., Lists]
        self._pairs: Callable[..., npt.NDArray[np.float32]]
        if metric == "hamming":
            self.points = check_bits(X)
            self._nearest, self._pairs = nearest_bits, all_pairs_of_bits
        elif metric == "jaccard":
            self.points = check_sets(X)
            self._nearest, self._pairs = nearest_sets, all_pairs_of_sets
        else:
            self.points = check_sparse(X, metric)
            self._nearest, self._pairs = partial(nearest, metric=metric), partial(all_pairs, metric=metric)
            if metric == "cosine":
                warn_of_zero_rows(self.points.empty(), len(self.points), stacklevel=4)
        self._sets = metric == "jaccard"

    def __len__(self) -> int:
        return len(self.points)

    def choice(self, recall: float) -> str:
        """The method that is expected to cost least."""
        return "minhash" if self._sets and recall < 1 and is_dear(self.points) else "exact"

    def search(
        self, n_neighbors: int, workers: int, report: Report | None, method: str = "exact", **wish: Any
    ) -> Found:
        """The nearest neighbours of all points."""
        if method == "minhash":
            return minhash(self.points, n_neighbors, workers, report, **wish)
        indices, values = self._nearest(self.points, n_neighbors, workers=workers, report=report)
        check_finite(values, self.X)
        shape = (len(self), n_neighbors)
        return Found(indices.reshape(shape), values.reshape(shape), None, {})

    def all_pairs(self, workers: int, report: Report | None) -> npt.NDArray[np.float32]:
        """The values of all pairs, row by row."""
        values: npt.NDArray[np.float32] = self._pairs(self.points, workers=workers, report=report)
        check_finite(values, self.X)
        return values
