"""Check the parameters of baselines and DP-means solvers, and renumber labels."""

from __future__ import annotations

import math
import numbers

import numpy as np
import numpy.typing as npt


def check_lam(lam: object) -> float:
    """Check that ``lam`` is a number of at least 0, possibly infinite; return it as a float."""
    if isinstance(lam, bool) or not isinstance(lam, numbers.Real):
        raise TypeError(f"lam={lam!r} is not a number: pass a number of at least 0")
    value = float(lam)
    if not value >= 0:  # also rejects NaN
        raise ValueError(f"lam={lam!r} is negative or NaN: pass a number of at least 0")
    return value


def check_count(name: str, value: object) -> int:
    """Check that the parameter ``name`` is an integer of at least 1; return it as an int."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is not an integer: pass a positive integer")
    if int(value) < 1:
        raise ValueError(f"{name}={value} must be at least 1: pass a positive integer")
    return int(value)


def check_bool(name: str, value: object) -> None:
    """Raise ``TypeError`` unless the parameter ``name`` is a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r} is not a bool: pass True or False")


def check_nonnegative(name: str, value: object) -> float:
    """Check that the parameter ``name`` is a finite number of at least 0; return it as a float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={value!r} is not a number: pass a number of at least 0, for example 1e-4")
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name}={value!r} must be finite and at least 0: pass for example 0 or 1e-4")
    return number


def relabel_by_appearance(labels: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Relabel clusters from 0 in order of first appearance; return new labels, and each cluster's old label."""
    old = np.asarray(labels)
    _, first, inverse = np.unique(old, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[inverse].astype(np.int64), old[np.sort(first)].astype(np.int64)
