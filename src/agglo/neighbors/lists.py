"""What every search takes, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import RecallEstimate
from agglo.points.validation import Points

Report = Callable[[int, int], None]
"""Called as ``report(done, total)`` from time to time."""


class Found(NamedTuple):
    """The neighbours of all points, and how they were found."""

    indices: npt.NDArray[np.int32]
    """The neighbours of each point in a row, the closest first, and of equally close ones the smaller index."""
    values: npt.NDArray[np.float32]
    """How close they are by the metric, as the exact search has it."""
    estimate: RecallEstimate | None
    """What share of the true neighbours is there; None where a search misses none."""
    parameters: dict[str, Any]
    """The settings that were chosen."""
    cells: npt.NDArray[np.int32] | None = None
    """The cell that each point is in, by those who make some."""


class Search(Protocol):
    """A way to find the ``n_neighbors`` nearest others of every point, which have been checked.

    ``recall`` is the share of the true neighbours to find, ``random_state`` where chance begins. A search
    may find more than that, and need not use chance.
    """

    def __call__(
        self,
        points: Points,
        n_neighbors: int,
        metric: str,
        workers: int,
        report: Report | None,
        *,
        recall: float,
        random_state: int,
    ) -> Found:
        """Search."""
