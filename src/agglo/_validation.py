"""Validation of common parameters: random seed, number of threads, counts."""

from __future__ import annotations

import operator
import os
from typing import Any, SupportsIndex

import numpy as np

_MAX_THREADS = 1024  # more threads could exceed the limit of the machine

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


def check_positive(name: str, number: SupportsIndex) -> int:
    """Return ``number`` as an integer; raise unless it is at least 1."""
    try:
        index = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}={number!r} is not an integer: pass a positive integer") from None
    if index < 1:
        raise ValueError(f"{name}={index} is too small: pass 1 or more")
    return index
