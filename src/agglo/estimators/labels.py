"""Number the clusters of a partition independently of the order of the points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo.points.points import canonical_rows

Ids = npt.NDArray[np.int64]


def number_clusters(
    labels: Ids, weights: npt.NDArray[np.float64] | None = None, X: Any = None, rows: Ids | None = None
) -> Ids:
    """Renumber clusters by falling weight and then by smallest row, independently of the order of the points.

    The clusters in ``labels`` are 0 to k - 1. By default, each point has weight 1 and point ``i`` has row ``i`` of
    ``X``; duplicates may share a row. Rows are compared column by column, and sparse rows as the equal dense rows.
    Clusters that are still tied keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> from agglo.estimators.labels import number_clusters
    >>> X = np.array([[7.0], [9.0], [1.0], [2.0], [3.0], [8.0]])
    >>> number_clusters(np.array([0, 0, 1, 2, 2, 2]), X=X)
    array([1, 1, 2, 0, 0, 0])
    """
    if weights is None:
        total: npt.NDArray[Any] = np.bincount(labels)
    else:
        order = np.argsort(weights)  # a rounded sum depends on the order of its terms
        total = np.bincount(labels[order], weights[order])
    rank = _refine(np.zeros(len(total), np.int64), -total)
    if X is not None:
        _order_by_rows(rank, labels, X, rows)
    number = np.empty_like(rank)
    number[np.argsort(rank, kind="stable")] = np.arange(len(rank))
    return number[labels]


def order_of_appearance(labels: Ids) -> Ids:
    """Return the distinct labels in order of first appearance."""
    first = np.full(labels.max() + 1, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    return np.argsort(first)


def _order_by_rows(rank: Ids, labels: Ids, X: Any, rows: Ids | None) -> None:
    """Break ties in ``rank``, in place, by the smallest row of each tied cluster.

    Rows are compared key by key. The candidates of a cluster are its rows with the smallest keys so far. Clusters
    that are still tied have candidates with equal keys. Only the candidates of tied clusters are read.
    """
    clusters = np.flatnonzero(np.bincount(rank, minlength=len(rank))[rank] > 1)  # the clusters that are still tied
    if not len(clusters):
        return
    position = np.full(len(rank), -1)
    position[clusters] = np.arange(len(clusters))
    points = np.flatnonzero(position[labels] >= 0)
    owner = position[labels[points]]  # for each candidate, the index of its cluster in `clusters`
    candidates = points if rows is None else rows[points]
    clusters, candidates, owner = _drop_settled(rank, clusters, candidates, owner)
    for key_of in _row_keys(X):
        if not len(clusters):
            return
        key = key_of(candidates)
        if (key == key[0]).all():
            continue
        smallest = np.empty(len(clusters), key.dtype)
        smallest[owner] = key  # start with any key of the cluster
        np.minimum.at(smallest, owner, key)
        kept = key == smallest[owner]
        rank[clusters] = _refine(rank[clusters], smallest)
        clusters, candidates, owner = _drop_settled(rank, clusters, candidates[kept], owner[kept])


def _drop_settled(rank: Ids, clusters: Ids, candidates: Ids, owner: Ids) -> tuple[Ids, Ids, Ids]:
    """Drop clusters without ties, clusters whose ties all share one row, and the candidates of both."""
    _, tie, count = np.unique(rank[clusters], return_inverse=True, return_counts=True)
    own = tie[owner]
    row = np.empty(len(count), np.int64)
    row[own] = candidates  # any candidate of the tied clusters
    differ = np.zeros(len(count), bool)
    differ[own[candidates != row[own]]] = True
    open_ = (differ & (count > 1))[tie]
    position = np.cumsum(open_) - 1
    kept = open_[owner]
    return clusters[open_], candidates[kept], position[owner[kept]]


def _refine(rank: Ids, key: npt.NDArray[Any]) -> Ids:
    """Rank items by ``rank`` and then by ``key``; the new rank is the number of items before the item's ties."""
    order = np.lexsort((key, rank))
    ranks, keys = rank[order], key[order]
    is_first = np.append(True, ranks[1:] != ranks[:-1])
    is_new = is_first | np.append(True, keys[1:] != keys[:-1])
    at = np.arange(len(order))
    before = np.maximum.accumulate(np.where(is_new, at, 0)) - np.maximum.accumulate(np.where(is_first, at, 0))
    refined = np.empty_like(rank)
    refined[order] = ranks + before
    return refined


def _row_keys(X: Any) -> Iterator[Callable[[Ids], npt.NDArray[Any]]]:
    """Yield functions that return a sort key for given rows; the first key is the most significant."""
    if not sp.issparse(X):
        for column in range(X.shape[1]):
            yield lambda rows, column=column: X[rows, column]  # type: ignore[misc]
        return
    matrix = canonical_rows(X)
    length = np.diff(matrix.indptr)
    for entry in range(int(length.max(initial=0))):
        yield lambda rows, entry=entry: _signed_columns(matrix, length, rows, entry)  # type: ignore[misc]
        yield lambda rows, entry=entry: _entries(matrix.data, matrix, length, rows, entry)  # type: ignore[misc]


def _signed_columns(matrix: Any, length: Ids, rows: Ids, entry: int) -> Ids:
    """Return a sort key for sparse rows whose earlier entries are equal: the sign and column of their next entry.

    The row with the earlier column is compared with a zero of the other row. So it is the smaller row if its entry
    is negative, and the larger row if its entry is positive. Rows without a next entry are in between.
    """
    value = _entries(matrix.data, matrix, length, rows, entry)
    left = matrix.shape[1] - _entries(matrix.indices, matrix, length, rows, entry).astype(np.int64)
    return np.where(value < 0, -left, np.where(value == 0, 0, left))


def _entries(values: npt.NDArray[Any], matrix: Any, length: Ids, rows: Ids, entry: int) -> npt.NDArray[Any]:
    """Return entry number ``entry`` of each row from ``values``; 0 for rows with fewer entries."""
    there = entry < length[rows]
    found = np.zeros(len(rows), values.dtype)
    found[there] = values[matrix.indptr[rows[there]].astype(np.int64) + entry]
    return found
