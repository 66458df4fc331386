"""The forest that the rounds build, and the record of each round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agglo import _core


class Forest(NamedTuple):
    """The result of an engine: four columns with one entry per node, then four with one entry per round.

    Leaves come first. Merged clusters follow in order of their rounds. Within a round, they are in order of their
    smallest leaves.
    """

    parent: npt.NDArray[np.int32]
    """The parent of each node; -1 for a root. A forest may have any number of roots."""
    value: npt.NDArray[np.float64]
    """The farthest linkage value among the pairs that merged into each node; not used for leaves."""
    size: npt.NDArray[np.int32]
    """The number of leaves below each node."""
    round: npt.NDArray[np.int32]
    """The round that merged each node, counted from 1; 0 for leaves."""
    threshold: npt.NDArray[np.float64]
    """The threshold of each round; NaN if it has none."""
    before: npt.NDArray[np.int64]
    """The number of clusters before each round."""
    after: npt.NDArray[np.int64]
    """The number of clusters after each round."""
    seconds: npt.NDArray[np.float64]
    """The duration of each round in seconds."""


def sort_merges(forest: Forest, is_similarity: bool) -> Forest:
    """Sort the merges of a binary forest by their linkage, with one merge per round, as in sequential HAC.

    A merge that is closer than a merge below it is sorted by the farther value, so that children come before their
    parents. Must-link merges, whose linkage is infinite, stay in one round at the start.
    """
    must_link = np.isinf(forest.value)
    n = int(((forest.round == 0) | must_link).sum())  # nodes that are not sorted: leaves and must-link merges
    rounds = int(must_link.any())  # rounds that are not sorted
    merges = len(forest.parent) - n
    distance = -forest.value[n:] if is_similarity else forest.value[n:]
    settled = _core.make_heights_monotone(forest.parent, np.concatenate([np.full(n, -np.inf), distance]))[n:]
    order = np.argsort(settled, kind="stable")
    place = np.empty(merges, np.int32)
    place[order] = np.arange(merges, dtype=np.int32)
    old = np.concatenate([np.arange(n), n + order])
    parent = forest.parent[old]
    inner = parent >= n
    parent[inner] = n + place[parent[inner] - n]
    clusters = int(forest.before[rounds]) if merges else 0
    before = clusters - np.arange(merges)
    unknown = np.full(merges, np.nan)
    return Forest(
        parent,
        forest.value[old],
        forest.size[old],
        np.concatenate([forest.round[:n], rounds + np.arange(1, merges + 1, dtype=np.int32)]),
        np.concatenate([forest.threshold[:rounds], unknown]),
        np.concatenate([forest.before[:rounds], before]),
        np.concatenate([forest.after[:rounds], before - 1]),
        np.concatenate([forest.seconds[:rounds], unknown]),
    )
