"""A job: the part of an experiment that runs in one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A part of an experiment that runs in one process and gives one or more rows of results."""

    experiment: str
    set: str
    method: str
    points: int | None = None  # the number of sampled points; None means the whole dataset
