"""Read-only columns: arrays that are validated once and must not change afterwards."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

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
