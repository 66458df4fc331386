"""Validation of the parameters that select a cut of a tree."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    pass


def check_integer(name: str, value: SupportsIndex, meaning: str) -> int:
    """Return ``value`` as an int; raise if it is not an integer. ``meaning`` describes it in the error."""
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
    """Return ``height`` as a float; raise if it is NaN or not a number."""
    try:
        number = float(height)
    except (TypeError, ValueError):
        raise TypeError(f"height={height!r} is not a number") from None
    if math.isnan(number):
        raise ValueError("height must not be NaN: pass a number (heights are distances, 0 at the leaves)")
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
    except TypeError:  # bool(pandas.NA == pandas.NA) raises
        return True
