"""Colour values of clusters: the mean of a numeric column, or the most frequent category of another column."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.explore.items import MAX_CATEGORIES
from agglo.explore.run import ExplorableRun


class Colouring:
    """The colour values of nodes, computed from one column of the items.

    Parameters
    ----------
    names : list of str, optional
        The names of the categories; None for a numeric column.
    values : ndarray
        One entry per point, in the leaf order of the tree. It is a number, or the position of a category in
        ``names``.
    start, size : ndarray
        For each node, the position of its first point in the leaf order, and its number of points.
    """

    def __init__(self, names: list[str] | None, values: npt.NDArray[Any], start: Any, size: Any) -> None:
        self.legend = names or []
        self.span: list[float] = []
        self._names, self._values, self._start, self._size = names, values, start, size
        if names is None:
            finite = values[np.isfinite(values)]
            if len(finite):
                self.span = [float(finite.min()), float(finite.max())]

    def value(self, node: int) -> tuple[float | None, float | None]:
        """Return (mean, None) for a numeric column, else (most frequent category, its share of the points).

        The category is -1 if it is not in the legend.
        """
        first = int(self._start[node])
        values = self._values[first : first + int(self._size[node])]
        if self._names is None:
            finite = values[np.isfinite(values)]
            return (_mean(finite), None) if len(finite) else (None, None)
        counts = np.bincount(values + 1, minlength=MAX_CATEGORIES + 1)
        most = int(counts.argmax())
        return float(most - 1), float(counts[most] / len(values))


def _mean(values: npt.NDArray[np.float64]) -> float:
    with np.errstate(over="ignore"):
        mean = float(values.mean())
    # The sum of large floats may be infinite although their mean is finite.
    return mean if math.isfinite(mean) else float((values / len(values)).sum())


@lru_cache(maxsize=2)
def build_colouring(run: ExplorableRun, column: str) -> Colouring:
    """Build the colouring of a run by one of its columns."""
    names, values = run.items.colour_values(column)
    tree = run.tree
    return Colouring(names, values[tree.order], tree.start, tree.size)
