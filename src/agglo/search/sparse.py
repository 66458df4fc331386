"""The true neighbours of sparse rows, by an index of which rows have a column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo.inputs import LARGEST, check_lengths, check_scale, narrowest
from agglo.search.found import Report

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
