"""Validate parameters that several modules have in common, and create read-only arrays."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

_MAX_THREADS = 1024  # more threads could exceed a limit of the operating system

Column = npt.NDArray[Any]
RandomStateLike = SupportsIndex | np.random.RandomState | None


def check_seed(random_state: Any) -> int:
    """Return an integer seed for ``random_state``: an integer, a ``RandomState`` or None, as in scikit-learn.

    None draws the seed from NumPy's global random state.
    """
    if random_state is None or random_state is np.random:
        return int(np.random.randint(2**31 - 1))  # noqa: NPY002  # numpy.random.seed must have an effect
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, bool | np.bool_) or not hasattr(random_state, "__index__"):
        raise TypeError(
            f"random_state={random_state!r} is not an integer: pass a non-negative integer, a "
            "numpy.random.RandomState or None"
        )
    seed = operator.index(random_state)
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_state={seed} is out of range: pass an integer from 0 to 2^64 - 1")
    return seed


def effective_n_threads(n_jobs: SupportsIndex | None) -> int:
    """Return the number of threads for ``n_jobs``: all cores for None or -1, all but one for -2, and so on."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool | np.bool_) or not hasattr(n_jobs, "__index__") or operator.index(n_jobs) == 0:
        raise ValueError(f"n_jobs={n_jobs!r} is not a number of threads: pass a positive integer, None or -1")
    wanted = operator.index(n_jobs)
    if wanted > _MAX_THREADS:
        raise ValueError(f"n_jobs={wanted} is more than {_MAX_THREADS} threads: pass the number of cores, or None")
    return wanted if wanted > 0 else max(1, available + 1 + wanted)


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise unless ``value`` is one of ``choices``, which are strings or None."""
    allowed = list(choices)
    if not isinstance(value, str | None) or value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown: pass one of {', '.join(map(repr, allowed))}")


def check_positive(name: str, number: SupportsIndex) -> int:
    """Return ``number`` as an integer; raise unless it is at least 1."""
    try:
        index = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}={number!r} is not an integer: pass a positive integer") from None
    if index < 1:
        raise ValueError(f"{name}={index} is too small: pass 1 or more")
    return index


def check_labels(
    labels: npt.ArrayLike, n_points: int, name: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Validate labels, where -1 means no cluster; return the labels as int64, and the size of each cluster."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"labels must be one integer per point, got {given.dtype} of shape {given.shape}")
    if len(given) != n_points:
        raise ValueError(f"labels has {len(given)} entries, but {name} has {n_points}: pass one per point")
    clusters = given.astype(np.int64)
    if not len(clusters) or clusters.max() < 0 or clusters.min() < -1:
        span = f"go from {clusters.min()} to {clusters.max()}" if len(clusters) else "are empty"
        raise ValueError(
            f"labels {span}, but clusters are numbered 0, 1, ...: pass -1 for points without a cluster"
        )
    present = np.unique(clusters[clusters >= 0])
    # Look for gaps first, because np.bincount would allocate an entry for each gap.
    if len(present) <= present[-1]:
        absent = int((present != np.arange(len(present))).argmax())
        raise ValueError(
            f"no label is {absent}, but labels go up to {present[-1]}: number clusters without gaps, "
            "e.g. by np.unique(labels, return_inverse=True)[1]"
        )
    return clusters, np.bincount(clusters[clusters >= 0])


# ---- parameters that select a cut of a tree ----


def check_integer(name: str, value: SupportsIndex, meaning: str) -> int:
    """Return ``value`` as an int; raise if it is not an integer. The error says that it is not ``meaning``."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r} is not {meaning}: pass an integer") from None


def check_n_clusters(n_clusters: SupportsIndex, n_leaves: int) -> int:
    """Return ``n_clusters`` as an int; raise unless it is between 1 and ``n_leaves``."""
    number = check_integer("n_clusters", n_clusters, "a number of clusters")
    if not 1 <= number <= n_leaves:
        raise ValueError(
            f"n_clusters={number} is impossible: the tree has {n_leaves} leaves, "
            f"so pass a number from 1 to {n_leaves}"
        )
    return number


def check_round(round: SupportsIndex, n_rounds: int) -> int:
    """Return a round as an int from 0 to ``n_rounds``; negative rounds count from the end."""
    number = check_integer("round", round, "a round")
    if not -n_rounds - 1 <= number <= n_rounds:
        raise IndexError(
            f"round={number} is out of range: the tree has {n_rounds} rounds, so pass a number from 0 "
            f"(single points) to {n_rounds}, or from -1 (the last round) to {-n_rounds - 1}"
        )
    return number if number >= 0 else number + n_rounds + 1


def check_cluster_size(name: str, size: SupportsIndex, largest: int | None = None) -> int:
    """Return ``size`` as an int; raise unless it is 1 or more, and at most ``largest`` if that is given."""
    number = check_integer(name, size, "a number of points")
    if number < 1 or (largest is not None and number > largest):
        remedy = (
            "pass 1 or more" if largest is None else f"pass a number from 1 to {largest}, the number of leaves"
        )
        raise ValueError(f"{name}={number} is not a possible cluster size: {remedy}")
    return number


def check_height(height: SupportsFloat) -> float:
    """Return ``height`` as a float; raise unless it is a nonnegative number."""
    try:
        number = float(height)
    except (TypeError, ValueError):
        raise TypeError(f"height={height!r} is not a number") from None
    if math.isnan(number):
        raise ValueError("height must not be NaN: pass a number (heights are distances, 0 at the leaves)")
    if number < 0:
        raise ValueError(
            f"height={number:g} is not allowed: pass 0 or more (heights are distances, 0 at the leaves)"
        )
    return number


def to_label_array(labels: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return ``labels`` as an array; a list of strings becomes an array of objects.

    NumPy would convert a NaN in a list of strings to the text "nan".
    """
    array = np.asarray(labels)
    if array.dtype.kind in "US" and not hasattr(labels, "dtype"):
        array = np.asarray(labels, object)
    return array


def is_missing_label(value: Any) -> bool:
    """Return whether a label is None, NaN or pandas.NA."""
    try:
        return value is None or not bool(value == value)  # NaN does not equal itself
    except TypeError:  # bool() raises TypeError for pandas.NA
        return True


def check_nonnegative(name: str, values: npt.ArrayLike | SupportsFloat) -> npt.NDArray[np.float64]:
    """Return ``values``, a number or an array, as an array of floats; raise unless all are nonnegative numbers."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={values!r} is not a number: pass 0 or more, infinity included") from None
    is_wrong = ~(numbers >= 0)  # comparisons with NaN are false, so this also finds NaN
    if is_wrong.any():
        raise ValueError(f"{name}={numbers[is_wrong][0]:g} is not allowed: pass 0 or more, infinity included")
    return numbers


def check_nonnegative_number(name: str, value: SupportsFloat) -> float:
    """Return ``value`` as a float; raise unless it is one nonnegative number."""
    number = check_nonnegative(name, value)
    if number.ndim:
        raise TypeError(f"{name} must be one number, got an array of shape {number.shape}")
    return float(number)


# ---- read-only arrays, which are validated once and cannot change afterwards ----


class Immutable:
    """Base class of frozen dataclasses with read-only arrays; copies and unpickled objects are read-only, too.

    Only the fields are copied and pickled, not cached properties.
    """

    def _release_arrays(self) -> None:
        """Make all arrays read-only without copies; see :func:`release`. Constructors call this method."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, release(value))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, release(value) if isinstance(value, np.ndarray) else value)


def convert_column(name: str, values: Any, dtype: np.dtype[Any]) -> Column:
    """Convert ``values`` to a contiguous array of ``dtype``; raise if a number changes by more than rounding."""
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
    """Convert ``values`` like :func:`convert_column`, to a read-only array."""
    return read_only(convert_column(name, values, dtype), values)


def is_read_only(array: Column) -> bool:
    """Return whether the array, and every array or buffer that it is a view of, is read-only."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        if base.base is None:
            return True
        base = base.base
    try:
        owner = memoryview(base).obj  # a read-only memoryview can have a writable owner
        return is_read_only(owner) if isinstance(owner, np.ndarray) else memoryview(owner).readonly
    except TypeError:  # another library owns the memory and may change it
        return False


def read_only(column: Column, source: Any) -> Column:
    """Return ``column``, which was converted from ``source``, as a read-only array.

    The array is copied only if it shares writable memory with ``source``.
    """
    if is_read_only(column):
        return column.view(np.ndarray)
    # NumPy copies lists and tuples. Other objects may still refer to the memory of the array.
    if not isinstance(source, list | tuple) and np.may_share_memory(column, np.asarray(source)):
        column = column.copy()
    return release(column)


def release(column: Column) -> Column:
    """Return an array as read-only without a copy; the caller must own the array and not use it any more.

    A view of writable memory, such as the buffer of a pickle, is copied.
    """
    if column.base is not None or type(column) is not np.ndarray:
        return column if is_read_only(column) else release(np.array(column, order="K"))
    column.flags.writeable = False
    return column.view()  # a view, because its writeable flag cannot be set again
