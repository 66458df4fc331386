"""Logarithms and exponentials with the same bits on every machine.

NumPy and the C library choose an implementation by the instructions of the processor, and these differ in the
last bit. Thresholds and chosen rounds must not depend on the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from agglo import _core

Floats = npt.NDArray[np.float64]


def log(values: npt.ArrayLike) -> Any:
    """Return the natural logarithm of a number or of each number of an array."""
    return _map(_core.log, values)


def exp(values: npt.ArrayLike) -> Any:
    """Return the exponential of a number or of each number of an array."""
    return _map(_core.exp, values)


def geomspace(first: float, last: float, number: int) -> Floats:
    """Return ``number`` >= 2 values from ``first`` to ``last``, both positive, with equal ratios."""
    low = log(first)
    values: Floats = exp(low + (log(last) - low) * (np.arange(number) / (number - 1)))
    values[0], values[-1] = first, last
    return values


def _map(function: Any, values: npt.ArrayLike) -> Any:
    """Apply a function of flat arrays; return an array of the same shape, or a float for a number."""
    given = np.asarray(values, dtype=np.float64)
    mapped = function(np.ascontiguousarray(given).reshape(-1)).reshape(given.shape)
    return mapped if given.ndim else float(mapped)
