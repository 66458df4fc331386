"""The columns of a clustering run: nodes as an engine returns them, and a record for each round.

Graphs, trees and rounds are validated once, when they are made, and the core trusts them from then on. So their
arrays must never change: :class:`Immutable` and :func:`read_only` see to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from agglo import _core

Column = npt.NDArray[Any]


class Immutable:
    """Base of frozen dataclasses of arrays, whose copies and pickles are read-only as they are.

    Only the fields are copied and pickled, not what was derived from them and kept.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, release(value) if isinstance(value, np.ndarray) else value)


class Forest(NamedTuple):
    """What an engine returns: one entry a node in the first four columns, one a round in the others.

    Leaves come first, then the merged clusters in order of round and, inside a round, of smallest leaf.
    """

    parent: npt.NDArray[np.int32]
    """The node that a node merged into; -1 for a root, of which there may be many."""
    value: npt.NDArray[np.float64]
    """The farthest linkage value that was joined to make the node, in the graph's unit; unused at leaves."""
    size: npt.NDArray[np.int32]
    """The number of leaves."""
    round: npt.NDArray[np.int32]
    """The merging round that made the node, from 1; 0 for leaves."""
    threshold: npt.NDArray[np.float64]
    """The round's threshold; NaN where the schedule has none."""
    before: npt.NDArray[np.int64]
    """The number of clusters before the round."""
    after: npt.NDArray[np.int64]
    """The number of clusters after the round, which is smaller."""
    seconds: npt.NDArray[np.float64]
    """How long the round took."""


class Round(NamedTuple):
    """The record of a round that merged."""

    threshold: float
    before: int
    after: int
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Rounds(Immutable, Sequence[Round]):
    """A record for each round that merged, kept as columns because there may be as many rounds as points."""

    threshold: npt.NDArray[np.float64]
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, dtype in (("threshold", "f8"), ("before", "i8"), ("after", "i8"), ("seconds", "f8")):
            given = getattr(self, name)
            object.__setattr__(self, name, read_only(np.ascontiguousarray(given, dtype), given))
        shapes = {self.threshold.shape, self.before.shape, self.after.shape, self.seconds.shape}
        if len(shapes) != 1 or self.threshold.ndim != 1:
            raise ValueError(f"the columns of the rounds must be one-dimensional and of one length, got {shapes}")

    def __len__(self) -> int:
        return len(self.threshold)

    @overload
    def __getitem__(self, index: int) -> Round: ...
    @overload
    def __getitem__(self, index: slice) -> Rounds: ...
    def __getitem__(self, index: int | slice) -> Round | Rounds:
        if isinstance(index, slice):
            return Rounds(self.threshold[index], self.before[index], self.after[index], self.seconds[index])
        columns = (self.threshold[index], self.before[index], self.after[index], self.seconds[index])
        return Round(*(column.item() for column in columns))

    def __repr__(self) -> str:
        span = f", {self.before[0]} to {self.after[-1]} clusters" if len(self) else ""
        return f"Rounds({len(self)} rounds{span})"


def convert_column(name: str, values: Any, dtype: np.dtype[Any]) -> Column:
    """Return ``values`` as a contiguous column of ``dtype``, if that loses nothing but the precision of floats."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {given.shape}")
    if given.size and given.dtype.kind not in ("iuf" if dtype.kind == "f" else "iu"):
        raise TypeError(f"{name} must be numbers of dtype {dtype}, got dtype {given.dtype}")
    with np.errstate(over="ignore"):
        column = np.ascontiguousarray(given, dtype)
    if dtype.kind == "i" and given.dtype.itemsize >= dtype.itemsize and not np.array_equal(column, given):
        raise ValueError(f"{name} holds {given.max()}, which does not fit {dtype}")
    return column


def check_column(name: str, values: Any, dtype: np.dtype[Any]) -> Column:
    """Return :func:`convert_column` of ``values`` as an array that nobody can write."""
    return read_only(convert_column(name, values, dtype), values)


def is_read_only(array: Column) -> bool:
    """Whether neither the array nor any array or buffer that it is a view of can be written."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        if base.base is None:
            return True
        base = base.base
    try:
        owner = memoryview(base).obj  # a read-only memoryview may be one of memory that can be written
        return is_read_only(owner) if isinstance(owner, np.ndarray) else memoryview(owner).readonly
    except TypeError:  # memory of some other library: who can write it is unknown
        return False


def read_only(column: Column, source: Any) -> Column:
    """Return ``column``, which was made of ``source``, as an array that nobody can write.

    An array that is so already is returned as it is. Memory that it shares with ``source`` is copied.
    """
    if is_read_only(column):
        return column.view(np.ndarray)
    # Lists become new arrays; any other object may keep the array that it gave.
    if not isinstance(source, list | tuple) and np.may_share_memory(column, np.asarray(source)):
        column = column.copy()
    return release(column)


def release(column: Column) -> Column:
    """Return an array that the caller has made and gives up, read-only and without a copy.

    A view of other memory, such as a buffer that a pickle was read from, is copied if that can be written.
    """
    if column.base is not None or type(column) is not np.ndarray:
        return column if is_read_only(column) else release(np.array(column, order="K"))
    column.flags.writeable = False
    return column.view()  # who sets the flag of a view gets an error


def by_value(forest: Forest, similarity: bool) -> Forest:
    """The same binary forest with its merges in order of linkage, each a round of its own: what HAC would do.

    A merge counts as no closer than those it is made of, so that children come before their parents. What must be
    linked, which is infinitely close, stays the one round that it is.
    """
    linked = np.isinf(forest.value)
    n = int(((forest.round == 0) | linked).sum())  # nodes that stay where they are
    rounds = int(linked.any())  # and the rounds that they are of
    merges = len(forest.parent) - n
    distance = -forest.value[n:] if similarity else forest.value[n:]
    settled = _core.tree_settled(forest.parent, np.concatenate([np.full(n, -np.inf), distance]))[n:]
    order = np.argsort(settled, kind="stable")
    place = np.empty(merges, np.int32)
    place[order] = np.arange(merges, dtype=np.int32)
    old = np.concatenate([np.arange(n), n + order])
    parent = forest.parent[old]
    inner = parent >= n
    parent[inner] = n + place[parent[inner] - n]
    clusters = int(forest.before[rounds]) if merges else 0
    left = clusters - np.arange(merges)
    unknown = np.full(merges, np.nan)
    return Forest(
        parent,
        forest.value[old],
        forest.size[old],
        np.concatenate([forest.round[:n], rounds + np.arange(1, merges + 1, dtype=np.int32)]),
        np.concatenate([forest.threshold[:rounds], unknown]),
        np.concatenate([forest.before[:rounds], left]),
        np.concatenate([forest.after[:rounds], left - 1]),
        np.concatenate([forest.seconds[:rounds], unknown]),
    )
