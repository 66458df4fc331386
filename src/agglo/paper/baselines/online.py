"""What methods share that insert points one after another: the order, and who was nearest among those before."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from agglo.paper.baselines.base import TreeBaseline, assembled
from agglo.points.validation import Points
from agglo.tree.hierarchy import Hierarchy

_BLOCK = 1024  # rows whose products with all earlier ones are in memory at a time

Rows = npt.NDArray[np.float32]


class OnlineBaseline(TreeBaseline):
    """A method whose tree depends on the order in which points come."""

    shuffle: bool
    random_state: int | np.random.RandomState | None

    def _tree(self, points: Points) -> Hierarchy:
        n = len(points)
        order = check_random_state(self.random_state).permutation(n) if self.shuffle else np.arange(n)
        parent, height, about = self._grown(points[order])
        parent[order] = parent[:n].copy()
        return assembled(parent, n, points if height is None else height, {**about, "shuffle": bool(self.shuffle)})

    @abstractmethod
    def _grown(
        self, points: Points
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64] | None, dict[str, Any]]:
        """Parents of the nodes, their heights if the method has some, and what to put on record."""


def centered(points: Points) -> tuple[Rows, float]:
    """The points in float32, moved and scaled so that no number is beyond 1; and the scale."""
    moved = points - points.mean(axis=0, dtype=np.float64)
    scale = float(np.abs(moved).max()) or 1.0
    return np.ascontiguousarray(moved / scale, np.float32), scale


def earlier_neighbors(rows: Rows, k: int, *, dot: bool) -> npt.NDArray[np.int32]:
    """Of each row the ``k`` nearest rows before it, from near to far; -1 where there are not so many.

    By products in float32 of all rows with all earlier ones, in blocks.
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
        few = min(k, last)
        best = score.argmax(axis=1)[:, None] if few == 1 else _largest_per_row(score, few)
        best[best >= np.arange(first, last)[:, None]] = -1
        found[first:last, :few] = best
    return found


def _largest_per_row(values: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int64]:
    """Select the columns of the k largest values of each row, the largest first; of equal values the first."""
    width = values.shape[1]
    # argpartition would select among the values equal to the k-th as the processor's sort leaves them.
    bars = np.partition(values, width - k, axis=1)[:, width - k]
    rows, columns = np.nonzero(values >= bars[:, None])
    order = np.lexsort((columns, -values[rows, columns], rows))
    starts = np.searchsorted(rows, np.arange(len(values)))  # each row has at least k of them
    best: npt.NDArray[np.int64] = columns[order[starts[:, None] + np.arange(k)]]
    return best
