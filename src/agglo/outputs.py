"""What goes out to a file arrives there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name to write to: it becomes ``path`` on success and is removed on failure.

    It lies in the same folder, so that the renaming is one step; what was at ``path`` stays until then.
    """
    with replacing_all([path]) as (partial,):
        yield partial


@contextmanager
def replacing_all(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[Path]]:
    """Temporary names as of :func:`replacing`: once all are written they become ``paths``, in that order."""
    finals = [_checked(path) for path in paths]
    partials = [final.with_name(f".agglo-{secrets.token_hex(8)}.tmp") for final in finals]
    try:
        yield partials
        for partial in partials:
            with partial.open("rb+") as file:
                os.fsync(file.fileno())  # the name must not be there before the content is
        for partial, final in zip(partials, finals, strict=True):
            partial.replace(final)
    except BaseException:
        for partial in partials:
            partial.unlink(missing_ok=True)
        raise


def _checked(path: str | os.PathLike[str]) -> Path:
    final = Path(os.path.realpath(path))  # a link stays one
    if final.is_dir():
        raise IsADirectoryError(f"cannot write {final}: it is a folder; pass the name of a file")
    if final.exists() and not final.is_file():  # renaming would put a file where a device was
        raise OSError(f"cannot write {final}: it is a device or the like; pass the name of a file")
    if not final.parent.is_dir():
        raise FileNotFoundError(f"cannot write {final}: there is no folder {final.parent}; make it first")
    return final
