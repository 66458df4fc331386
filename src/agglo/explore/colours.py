"""Clusters by a column of their points: the mean of numbers, or the most frequent name."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.explore.items import MOST_KINDS
from agglo.explore.run import Opened


class Colouring:
    """What each node is coloured by.

    Parameters
    ----------
    names : list of str, optional
        What entries stand for; None if they are numbers.
    values : ndarray
        An entry a point, in the order of the tree.
    start, size : ndarray
        Where the points of each node begin in that order, and their number.
    """

    def __init__(self, names: list[str] | None, values: npt.NDArray[Any], start: Any, size: Any) -> None:
        self.legend = names or []
        self.span: list[float] = []
        self._names, self._values, self._start, self._size = names, values, start, size
        if names is None:
            known = np.isfinite(values)
            if known.any():
                self.span = [float(values[known].min()), float(values[known].max())]

    def of(self, node: int) -> tuple[float | None, float | None]:
        """The mean and None, or the place of the most frequent name (-1 for others) and the share that has it."""
        first = int(self._start[node])
        values = self._values[first : first + int(self._size[node])]
        if self._names is None:
            known = values[np.isfinite(values)]
            return (_mean(known), None) if len(known) else (None, None)
        counts = np.bincount(values + 1, minlength=MOST_KINDS + 1)
        most = int(counts.argmax())
        return float(most - 1), float(counts[most] / len(values))


def _mean(values: npt.NDArray[np.float64]) -> float:
    with np.errstate(over="ignore"):
        mean = float(values.mean())
    # The sum of large floats may be infinite where their mean is not.
    return mean if math.isfinite(mean) else float((values / len(values)).sum())


@lru_cache(maxsize=2)
def colouring(opened: Opened, column: str) -> Colouring:
    """The colouring by a column."""
    kinds = opened.items.kinds(column)
    tree = opened.tree
    return Colouring(kinds.names, kinds.values[tree.order], tree.start, tree.size)
