"""The result of the rounds: one or more trees (a forest), stored as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Forest(NamedTuple):
    """The result of the rounds: four arrays with one entry per node, and four arrays with one entry per round.

    Nodes are sorted: leaves come first, then merged clusters in order of their rounds. Within a round, merged
    clusters are in order of their smallest leaves.
    """

    parent: npt.NDArray[np.int32]
    """The parent of each node, or -1 for a root. A forest may have any number of roots."""
    value: npt.NDArray[np.float64]
    """The farthest linkage value among the pairs that merged into each node. Values of leaves are not used."""
    size: npt.NDArray[np.int32]
    """The number of leaves below each node."""
    round: npt.NDArray[np.int32]
    """The round that merged each node, counted from 1. It is 0 for leaves."""
    threshold: npt.NDArray[np.float64]
    """The threshold of each round, or NaN if the round has none."""
    before: npt.NDArray[np.int64]
    """The number of clusters before each round."""
    after: npt.NDArray[np.int64]
    """The number of clusters after each round."""
    seconds: npt.NDArray[np.float64]
    """The duration of each round in seconds."""
