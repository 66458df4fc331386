"""Checks of parameters: random seed, number of threads, counts."""

from __future__ import annotations

import operator
import os
from typing import Any, SupportsIndex

import numpy as np

MOST_THREADS = 1024  # tens of thousands would use up those of all processes of the machine


RandomStateLike = SupportsIndex | np.random.RandomState | None


def check_seed(random_state: Any) -> int:
    """Return a seed for ``random_state``, which is as of scikit-learn: an integer, a ``RandomState`` or None.

    None takes one from NumPy's global random state.
    """
    if random_state is None or random_state is np.random:
        return int(np.random.randint(2**31 - 1))  # noqa: NPY002  # so that numpy.random.seed has its effect
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, bool | np.bool_) or not hasattr(random_state, "__index__"):
        raise TypeError(
            f"random_state={random_state!r} is not a number: pass a non-negative integer, a "
            "numpy.random.RandomState or None"
        )
    seed = operator.index(random_state)
    if not 0 <= seed < 2**64:
        raise ValueError(f"random_state={seed} is out of range: pass an integer from 0 to 2^64 - 1")
    return seed


def threads(n_jobs: SupportsIndex | None) -> int:
    """The number of threads that ``n_jobs`` asks for, as scikit-learn counts: None is all cores, -1 too."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return available
    if isinstance(n_jobs, bool | np.bool_) or not hasattr(n_jobs, "__index__") or operator.index(n_jobs) == 0:
        raise ValueError(f"n_jobs={n_jobs!r} is not a number of threads: pass a positive integer, None or -1")
    wanted = operator.index(n_jobs)
    if wanted > MOST_THREADS:
        raise ValueError(f"n_jobs={wanted} is more than {MOST_THREADS} threads: pass the number of cores, or None")
    return wanted if wanted > 0 else max(1, available + 1 + wanted)


def positive(name: str, number: SupportsIndex) -> int:
    """``number`` as an integer, if it is 1 or more."""
    try:
        index = operator.index(number)
    except TypeError:
        raise TypeError(f"{name}={number!r} is not a number: pass an integer") from None
    if index < 1:
        raise ValueError(f"{name}={index} is too few: pass 1 or more")
    return index
