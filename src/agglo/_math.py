"""Logarithms and exponentials whose bits are the same on every machine.

NumPy and the C library choose among several implementations by what the processor has, and these differ in the
last bit. Thresholds and choices of rounds must not: they would make results depend on the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from agglo import _core

Floats = npt.NDArray[np.float64]


def log(values: npt.ArrayLike) -> Any:
    """Return the natural logarithm of numbers: an array of their shape, or a number for a number."""
    return _map(_core.log, values)


def exp(values: npt.ArrayLike) -> Any:
    """Return the exponential of numbers: an array of their shape, or a number for a number."""
    return _map(_core.exp, values)


def geomspace(first: float, last: float, number: int) -> Floats:
    """Return ``number`` >= 2 values in equal ratios from ``first`` to ``last``, two positive numbers."""
    low = log(first)
    values: Floats = exp(low + (log(last) - low) * (np.arange(number) / (number - 1)))
    values[0], values[-1] = first, last
    return values


def _map(function: Any, values: npt.ArrayLike) -> Any:
    given = np.asarray(values, dtype=np.float64)
    mapped = function(np.ascontiguousarray(given).reshape(-1)).reshape(given.shape)
    return mapped if given.ndim else float(mapped)
