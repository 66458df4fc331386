"""A job of an experiment, and the rows of its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """The work of one process: some rows of an experiment."""

    experiment: str
    set: str
    method: str
    points: int | None = None  # of a sample; None for the whole dataset
