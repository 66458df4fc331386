"""SciPy's BLAS for the core, whose threads call it independently of each other."""

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
    """Return the float32 matrix product as a capsule for the core."""
    return cython_blas.__pyx_capi__["sgemm"]


def dgemm() -> Any:
    """Return the float64 matrix product as a capsule for the core."""
    return cython_blas.__pyx_capi__["dgemm"]


class _Search:
    """A running search, identified by its thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class _Searches:
    """The running searches, and the limit on BLAS threads that the first one sets and the last one lifts.

    The lock is a plain ``Lock``, because Ctrl-C cannot interrupt its ``with`` statement between acquiring it and
    entering the block. A ``Condition`` is written in Python, so Ctrl-C could leave it acquired forever. The set is
    weak, so that a search is removed wherever an exception ends it.
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


# If a process forks while one of its threads is inside OpenBLAS, the next product may hang, in the child and even
# in the parent: OpenBLAS stops its threads before a fork, and its locks are copied in their current state. So a
# fork waits for the searches of other threads, and no search starts during the fork.


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
    _Searches.lock, _Searches.forking = threading.Lock(), False  # the old lock is held by the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
