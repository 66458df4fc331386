"""Number the clusters of a partition so that the numbers do not depend on the order of the points."""

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
    """Renumber clusters from heaviest to lightest; break ties by the smallest row of ``X`` in each cluster.

    The new numbers do not depend on the order of the points. The clusters in ``labels`` are 0 to k - 1. By
    default, each point has weight 1. ``rows[i]`` is the row of point ``i`` in ``X``, and duplicates may share a
    row. By default, it is ``i``. Rows are compared column by column. Sparse rows are ordered like the equal dense
    rows. Clusters that are still tied keep their order.

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
        order = np.argsort(weights)  # a floating-point sum depends on the order of its terms
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

    Rows are compared key by key; see :func:`_row_keys`. The candidates of a cluster are those of its rows whose
    keys so far are the smallest. If two clusters are still tied, the keys of their candidates are equal. Only the
    candidates of tied clusters are read.
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
    """Drop clusters whose rank is final, with their candidates; return the remaining clusters and candidates.

    The rank of a cluster is final if no other cluster has the same rank. It is also final if all candidates of the
    clusters with this rank are the same row.
    """
    _, tie, count = np.unique(rank[clusters], return_inverse=True, return_counts=True)
    own = tie[owner]
    row = np.empty(len(count), np.int64)
    row[own] = candidates  # any one candidate of the tied clusters
    differ = np.zeros(len(count), bool)
    differ[own[candidates != row[own]]] = True
    open_ = (differ & (count > 1))[tie]
    position = np.cumsum(open_) - 1
    kept = open_[owner]
    return clusters[open_], candidates[kept], position[owner[kept]]


def _refine(rank: Ids, key: npt.NDArray[Any]) -> Ids:
    """Break ties in ``rank`` by ``key``; return the new ranks.

    The rank of an item is the number of items that are ordered before it. Tied items have the same rank.
    """
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
    """Yield functions that map row numbers to sort keys; the first function gives the most significant key."""
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
    """Return sort keys for sparse rows whose earlier entries are equal: the sign and column of their next entry.

    If two rows have their next entry in different columns, the earlier entry is compared with a zero of the other
    row. The row with the earlier entry is smaller if this entry is negative, and larger if it is positive. A row
    without a next entry is larger than rows with a negative entry and smaller than rows with a positive entry.
    """
    value = _entries(matrix.data, matrix, length, rows, entry)
    left = matrix.shape[1] - _entries(matrix.indices, matrix, length, rows, entry).astype(np.int64)
    return np.where(value < 0, -left, np.where(value == 0, 0, left))


def _entries(values: npt.NDArray[Any], matrix: Any, length: Ids, rows: Ids, entry: int) -> npt.NDArray[Any]:
    """Return entry number ``entry`` of each sparse row from ``values``, or 0 if the row has fewer entries."""
    there = entry < length[rows]
    found = np.zeros(len(rows), values.dtype)
    found[there] = values[matrix.indptr[rows[there]].astype(np.int64) + entry]
    return found
