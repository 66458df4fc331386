"""SciPy's BLAS as the core uses it: a function that its threads call, each for itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from scipy.linalg import cython_blas
from threadpoolctl import ThreadpoolController


def sgemm() -> Any:
    """The matrix product of float32, as a capsule for the core."""
    return cython_blas.__pyx_capi__["sgemm"]


def dgemm() -> Any:
    """The same of float64."""
    return cython_blas.__pyx_capi__["dgemm"]


class _Searches:
    """The searches under way, by thread, and the limit that the first of them set and the last lifts."""

    changed = threading.Condition()
    entries: ClassVar[list[list[int]]] = []
    limiter: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to the thread that calls it, for the core brings its own threads.

    The limit is one of the process. So searches in several threads share it: if each set and restored its
    own, the last one to end could restore what another had set.
    """
    # An entry per search, not per thread, as searches may be nested. It is told by identity, so that an exception
    # at any point, such as Ctrl-C just after it was added, removes this entry and no other.
    entry = [threading.get_ident()]
    try:
        with _Searches.changed:
            if not _Searches.entries:
                _Searches.limiter = ThreadpoolController().limit(limits=1, user_api="blas")
            _Searches.entries.append(entry)
        yield
    finally:
        with _Searches.changed:
            _Searches.entries[:] = [other for other in _Searches.entries if other is not entry]
            if not _Searches.entries and _Searches.limiter is not None:
                _Searches.limiter.restore_original_limits()
                _Searches.limiter = None
            _Searches.changed.notify_all()


# If a process forks while another of its threads is inside of OpenBLAS, the next product of the child may hang,
# and even that of the parent: OpenBLAS stops its threads before a fork, and its locks are copied as they are. So a
# fork waits for the searches of other threads, and none begins until it is done.


def _before_fork() -> None:
    _Searches.changed.acquire()
    own = threading.get_ident()
    _Searches.changed.wait_for(lambda: all(entry[0] == own for entry in _Searches.entries))


def _after_fork_in_child() -> None:
    _Searches.changed = threading.Condition()  # the old one is locked by a thread of the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _Searches.changed.release(),
        after_in_child=_after_fork_in_child,
    )
