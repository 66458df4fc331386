"""The base class of online methods, which insert one point at a time, and their search of nearest neighbours."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from agglo.paper.baselines.base import TreeBaseline, hierarchy_from_parents
from agglo.points.points import PointArray
from agglo.tree.hierarchy import Hierarchy

_BLOCK = 1024  # number of rows that are compared at a time, to limit memory

Rows = npt.NDArray[np.float32]


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineBaseline(TreeBaseline):
    """Base class of methods that insert one point at a time. The tree depends on the order of the points.

    Parameters
    ----------
    shuffle : bool, default=True
        Whether to insert the points in random order. If False, they are inserted in the order of the rows.
    random_state : int, RandomState or None, default=None
        The random seed of the order of the points. Pass an integer for reproducible results.
    """

    shuffle: bool = True
    random_state: int | np.random.RandomState | None = None

    def _build_tree(self, points: PointArray) -> Hierarchy:
        n = len(points)
        order = check_random_state(self.random_state).permutation(n) if self.shuffle else np.arange(n)
        parent, height, about = self._build_parents(points[order])
        parent[order] = parent[:n].copy()
        about["shuffle"] = bool(self.shuffle)
        return hierarchy_from_parents(parent, n, points if height is None else height, about)

    @abstractmethod
    def _build_parents(
        self, points: PointArray
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64] | None, dict[str, Any]]:
        """Return the parent of each node, the height of each node, and the parameters to record.

        If the method defines no heights, they are None.
        """


def center_and_scale(points: PointArray) -> tuple[Rows, float]:
    """Center the points and scale them to the range -1 to 1; return the float32 rows and the scale."""
    centered = points - points.mean(axis=0, dtype=np.float64)
    scale = float(np.abs(centered).max()) or 1.0
    return np.ascontiguousarray(centered / scale, np.float32), scale


def find_earlier_neighbors(rows: Rows, k: int, *, dot: bool) -> npt.NDArray[np.int32]:
    """Find the ``k`` nearest neighbours of each row among the rows before it, nearest first.

    If a row has fewer than ``k`` rows before it, the missing neighbours are -1. If ``dot`` is True, the nearest
    neighbours have the largest dot products. Otherwise they have the smallest Euclidean distances. Each row is
    compared with all rows before it, in float32.
    """
    n = len(rows)
    squares = np.einsum("ij,ij->i", rows, rows) / 2
    found = np.full((n, k), -1, np.int32)
    for first in range(0, n, _BLOCK):
        last = min(n, first + _BLOCK)
        score = rows[first:last] @ rows[:last].T
        if not dot:
            score -= squares[:last]
        score[:, first:][np.arange(last - first) >= np.arange(last - first)[:, None]] = -np.inf
        n_found = min(k, last)
        best = score.argmax(axis=1)[:, None] if n_found == 1 else _largest_per_row(score, n_found)
        best[best >= np.arange(first, last)[:, None]] = -1
        found[first:last, :n_found] = best
    return found


def _largest_per_row(values: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int64]:
    """Return the columns of the k largest values of each row, largest first; equal values by column."""
    width = values.shape[1]
    # Do not use argpartition, because its order of equal values depends on the processor.
    kth = np.partition(values, width - k, axis=1)[:, width - k]
    rows, columns = np.nonzero(values >= kth[:, None])
    order = np.lexsort((columns, -values[rows, columns], rows))
    starts = np.searchsorted(rows, np.arange(len(values)))  # each row has at least k entries
    best: npt.NDArray[np.int64] = columns[order[starts[:, None] + np.arange(k)]]
    return best
