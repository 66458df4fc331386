"""Provide SciPy's BLAS to the core, and limit BLAS to one thread while the core searches."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from scipy.linalg import cython_blas
from threadpoolctl import ThreadpoolController


def sgemm() -> Any:
    """Return BLAS sgemm, the float32 matrix product, as a capsule for the core."""
    return cython_blas.__pyx_capi__["sgemm"]


def dgemm() -> Any:
    """Return BLAS dgemm, the float64 matrix product, as a capsule for the core."""
    return cython_blas.__pyx_capi__["dgemm"]


class _Search:
    """A running search, identified by its thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class _Searches:
    """The running searches. The first search limits the BLAS threads, and the last one removes the limit.

    The lock is a plain ``Lock``: Ctrl-C cannot interrupt its ``with`` statement before the block starts. A
    ``Condition`` is written in Python, so Ctrl-C could leave it locked forever. The set of searches is weak, so
    that a search is removed even if an exception ends it.
    """

    lock = threading.Lock()
    running: ClassVar[weakref.WeakSet[_Search]] = weakref.WeakSet()
    limiter: Any = None
    forking = False


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to the calling thread, because the core has its own threads.

    The limit holds for the whole process, so concurrent searches share it. If each search set and restored its own
    limit, the last one could restore the limit of another.
    """
    search = _Search()
    try:
        with _Searches.lock:
            if _Searches.limiter is None:
                _Searches.limiter = ThreadpoolController().limit(limits=1, user_api="blas")
            _Searches.running.add(search)
        yield
    finally:
        with _Searches.lock:
            _Searches.running.discard(search)
            if not _Searches.running and _Searches.limiter is not None:
                _Searches.limiter.restore_original_limits()
                _Searches.limiter = None


# If a process forks while a thread is inside OpenBLAS, the next product may hang, in the child or in the parent.
# The reason is that OpenBLAS stops its threads before a fork, and its locks are copied in their current state.
# So a fork waits for the searches of other threads, and no search starts during the fork.


def _before_fork() -> None:
    own = threading.get_ident()
    while True:
        _Searches.lock.acquire()
        _Searches.forking = True
        if all(search.thread == own for search in _Searches.running):
            return
        _after_fork_in_parent()
        time.sleep(0.001)


def _after_fork_in_parent() -> None:
    if _Searches.forking:  # False if an exception, such as Ctrl-C, ended the wait
        _Searches.forking = False
        _Searches.lock.release()


def _after_fork_in_child() -> None:
    _Searches.lock, _Searches.forking = threading.Lock(), False  # the copied lock is still held


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
