"""The true neighbours of sets, and of rows of bits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo.inputs import blocks, check_points
from agglo.search.found import Report
from agglo.search.sparse import Lists, SparseRows, check_sparse

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
