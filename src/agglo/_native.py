"""Access to the machine: BLAS with one thread, arrays that may exceed memory, and portable logarithms."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt

from agglo import _core

Floats = npt.NDArray[np.float64]

NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_CHUNK = 1 << 24  # number of bytes written at a time
_SHARE = 1 / 4  # arrays above this share of physical memory are mapped from a temporary file


# ---- BLAS: the core has its own threads ----


def sgemm() -> Any:
    """Return BLAS's float32 matrix product (sgemm) as a PyCapsule, to pass to the C++ core."""
    return _load_blas()["sgemm"]


def dgemm() -> Any:
    """Return BLAS's float64 matrix product (dgemm) as a PyCapsule, to pass to the C++ core."""
    return _load_blas()["dgemm"]


def _load_blas() -> Any:
    from scipy.linalg import cython_blas  # imported at the first search, because it takes long

    return cython_blas.__pyx_capi__


class _Search:
    """One running neighbour search, identified by its thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class _Searches:
    """The running neighbour searches of the process. While there is one, BLAS is limited to one thread.

    The first search sets the limit, and the last search removes the limit.

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
    """Limit BLAS to one thread inside the ``with`` block, because the C++ core has its own threads.

    The limit holds for the whole process, so concurrent searches share it. If each search set and restored its own
    limit, the last search to end could restore the limit of another search.
    """
    from threadpoolctl import ThreadpoolController

    _load_blas()  # a library that is loaded after the limit is set would not be limited
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
    if _Searches.forking:  # forking is False if an exception, such as Ctrl-C, ended the wait
        _Searches.forking = False
        _Searches.lock.release()


def _after_fork_in_child() -> None:
    _Searches.lock, _Searches.forking = threading.Lock(), False  # the child's copy of the old lock is still held


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )


# ---- arrays that may exceed physical memory: large ones are memory-mapped from temporary files ----


def physical_memory() -> int:
    """Return the physical memory in bytes, or 8 GiB if the operating system does not report it."""
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 2**33


def empty_maybe_mapped(shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return an uninitialized array; a large array is memory-mapped from a temporary file.

    The system can page out the mapped array. The file has no name, and is deleted together with the array.
    """
    size = shape[0] * shape[1] * dtype.itemsize
    if size <= _SHARE * physical_memory():
        return np.empty(shape, dtype)
    with open_scratch(size) as file:
        return np.memmap(file, dtype, "r+", shape=shape)


@contextmanager
def open_scratch(size: int) -> Iterator[BinaryIO]:
    """Open a temporary file without a name, with space for ``size`` bytes, to be mapped into memory.

    The space is reserved on the disk. Otherwise, writing to a mapped page on a full disk would kill the process.
    """
    folder = tempfile.gettempdir()
    remedy = "free some, or name another folder by the environment variable TMPDIR"
    with explain_full_disk(folder, remedy), tempfile.TemporaryFile(prefix="agglo-") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:  # macOS has no posix_fallocate
            for first in range(0, size, _CHUNK):
                file.write(bytes(min(_CHUNK, size - first)))
        file.seek(0)
        yield file


@contextmanager
def explain_full_disk(folder: Path | str, remedy: str = "free some, or choose another folder") -> Iterator[None]:
    """If the disk of ``folder`` is full, raise an error that names ``folder`` and a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise OSError(error.errno, f"there is no space left in {folder}: {remedy}") from error


# ---- logarithms and exponentials that are bit-equal on every machine ----
#
# NumPy and the C library choose implementations by processor, and the results differ in the last bit.
# Thresholds and selected rounds must not depend on the processor.


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
    """Apply ``function``, which takes one-dimensional arrays, to a number or an array of any shape."""
    given = np.asarray(values, dtype=np.float64)
    mapped = function(np.ascontiguousarray(given).reshape(-1)).reshape(given.shape)
    return mapped if given.ndim else float(mapped)
