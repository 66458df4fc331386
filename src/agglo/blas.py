"""SciPy's BLAS as the core uses it: a function that its threads call, each for itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scipy.linalg import cython_blas
from threadpoolctl import ThreadpoolController


def sgemm() -> Any:
    """The matrix product of float32, as a capsule for the core."""
    return cython_blas.__pyx_capi__["sgemm"]


def dgemm() -> Any:
    """The same of float64."""
    return cython_blas.__pyx_capi__["dgemm"]


class _BlasLimit:
    """How many searches are under way, and the limit that the first of them set and the last lifts."""

    lock = threading.Lock()
    searches = 0
    limiter: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to the thread that calls it, for the core brings its own threads.

    The limit is one of the process. So searches in several threads share it: if each set and restored its
    own, the last one to end could restore what another had set.
    """
    with _BlasLimit.lock:
        if _BlasLimit.searches == 0:
            _BlasLimit.limiter = ThreadpoolController().limit(limits=1, user_api="blas")
        _BlasLimit.searches += 1
    try:
        yield
    finally:
        with _BlasLimit.lock:
            _BlasLimit.searches -= 1
            if _BlasLimit.searches == 0:
                _BlasLimit.limiter.restore_original_limits()
