"""Logarithms and exponentials that are bit-equal on every machine.

NumPy and the C library choose implementations by processor, and the results differ in the last bit. Thresholds and
selected rounds must not depend on the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from agglo import _core

Floats = npt.NDArray[np.float64]


def log(values: npt.ArrayLike) -> Any:
    """Return the natural logarithm of a number, or of each element of an array."""
    return _map(_core.log, values)


def exp(values: npt.ArrayLike) -> Any:
    """Return the exponential of a number, or of each element of an array."""
    return _map(_core.exp, values)


def geomspace(first: float, last: float, number: int) -> Floats:
    """Return ``number`` values in geometric progression from ``first`` to ``last``; ``number`` is 2 or more."""
    low = log(first)
    values: Floats = exp(low + (log(last) - low) * (np.arange(number) / (number - 1)))
    values[0], values[-1] = first, last
    return values


def _map(function: Any, values: npt.ArrayLike) -> Any:
    """Apply a function of flat arrays to an array of any shape, or to a number; return the same shape."""
    given = np.asarray(values, dtype=np.float64)
    mapped = function(np.ascontiguousarray(given).reshape(-1)).reshape(given.shape)
    return mapped if given.ndim else float(mapped)
