"""Arrays that may exceed physical memory: large arrays are memory-mapped from temporary files."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_CHUNK = 1 << 24  # bytes written at a time
_SHARE = 1 / 4  # arrays above this share of physical memory are mapped from a temporary file


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
        else:  # macOS
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
