"""Find duplicates, which are searched and clustered as one point with the sum of their weights.

Otherwise duplicates would slow down the search and fill each other's neighbour lists.
:mod:`agglo.estimators.duplicates` has the parts that depend on constraints and trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._native import empty_maybe_mapped
from agglo._validation import Immutable, effective_n_threads, is_read_only, release

Ids = npt.NDArray[np.int64]

_ROWS = 4096  # number of rows that are copied at a time


@dataclass(frozen=True, eq=False)
class Duplicates(Immutable):
    """Groups of equal points, as ``np.unique`` returns them, but in order of first appearance.

    1. ``first`` is the index of the first point of each group, in ascending order;
    2. ``inverse`` is the group of each point, an index into ``first``.
    """

    first: Ids
    inverse: Ids

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", release(self.first))
        object.__setattr__(self, "inverse", release(self.inverse))

    @property
    def n_duplicates(self) -> int:
        """The number of points that are not the first point of their group."""
        return len(self.inverse) - len(self.first)

    def select_first(self, X: Any) -> Any:
        """Return the first row of each group, as a copy; return ``X`` itself if it has no duplicates."""
        return take_rows(X, self.first) if self.n_duplicates else X


def find_duplicates(X: Any, n_jobs: int | None = None) -> Duplicates:
    """Group the equal rows of ``X``, which is dense or sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from agglo.points.duplicates import find_duplicates
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [5.0, 6.0]])
    >>> find_duplicates(X).inverse
    array([0, 1, 0, 2])
    """
    return group_by(find_first_equal(X, n_jobs))


def no_duplicates(n_points: int) -> Duplicates:
    """Return groups for points without duplicates: one group per point."""
    return Duplicates(np.arange(n_points), np.arange(n_points))


def group_by(keys: Ids) -> Duplicates:
    """Group the points that have equal keys."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Duplicates(first[order], rank[inverse])


def find_first_equal(X: Any, n_jobs: int | None = None) -> Ids:
    """Return, for each row of ``X``, the index of the first equal row."""
    n_threads = effective_n_threads(n_jobs)
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
    """Return a CSR matrix with sorted columns, without duplicate entries or stored zeros; copy if necessary."""
    rows = sp.csr_array(X, copy=False)
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows


def take_rows(X: Any, rows: Ids) -> Any:
    """Return a copy of the given rows; a large copy is stored in a memory-mapped temporary file."""
    if sp.issparse(X):
        return X[rows]
    taken = empty_maybe_mapped((len(rows), X.shape[1]), X.dtype)
    for start in range(0, len(taken), _ROWS):
        taken[start : start + _ROWS] = X[rows[start : start + _ROWS]]
    return taken


def copy_if_shared(points: Any, source: Any) -> Any:
    """Return ``points``, or a copy if they share memory with ``source`` that the caller could change."""
    if sp.issparse(points):
        shared = sp.issparse(source) and any(
            np.may_share_memory(column, getattr(source, name, ()))
            for name, column in (("data", points.data), ("indices", points.indices), ("indptr", points.indptr))
        )
        return points.copy() if shared else points
    if is_read_only(points) or isinstance(source, list | tuple):
        return points
    if isinstance(source, np.ndarray) and not np.may_share_memory(points, source):
        return points
    return take_rows(points, np.arange(len(points)))  # other libraries may return views of their memory
