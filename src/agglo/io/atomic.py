"""Write files so that a reader finds all of the old content or all of the new, even after a kill or a power cut.

A single file is written under a temporary name, flushed to disk, and renamed.

Several files of one folder cannot be renamed in one step, so they are switched by a journal:

1. The new files are written to a temporary folder inside the folder, and flushed to disk.
2. The temporary folder is renamed to ``.agglo-switch``. This one step makes the new files valid.
3. The files are renamed to their places, old files that have no successor are removed, and the journal goes.

A writer that is killed before step 2 leaves the old files valid; after it, the new ones. Readers call
:func:`locate`, which looks into the journal first. The next writer completes or removes what was left behind.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from agglo._memory import NO_SPACE, explain_full_disk

T = TypeVar("T")

LOCK = ".agglo-lock"
JOURNAL = ".agglo-switch"
JOURNAL_LIST = "journal.json"

_CHUNK = 1 << 24  # bytes that are read or written at a time
_BLOCK = 1024  # bytes that a folder is tried with: fewer may fit beside the names, where there is always space
_NO_LOCKS = {errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.EBADF}


# ---- single files ----


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name to write to: it becomes ``path`` on success and is removed on failure.

    It lies in the same folder, so that the renaming is one step; what was at ``path`` stays until then.
    """
    final = _check_name(path)
    with explain_full_disk(final.parent):
        _remove_dead_files(final.parent)
        partial, lock = _create_locked(final.parent)
        try:
            yield partial
            _flush(partial)
            partial.replace(final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        finally:
            os.close(lock)
        _flush(final.parent)


def check_file(path: str | os.PathLike[str]) -> None:
    """Raise if no file can be written to ``path``, before any work is done for it."""
    _try_writing(_check_name(path).parent)


def _check_name(path: str | os.PathLike[str]) -> Path:
    try:
        final = Path(os.path.realpath(path, strict=True))  # a link stays one
    except FileNotFoundError:
        final = Path(os.path.realpath(path))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(f"cannot write {path}: it is a link that leads back to itself; remove it") from None
        if error.errno == errno.ENOTDIR:
            raise NotADirectoryError(
                f"cannot write {path}: {Path(path).parent} is a file; pass the name of a folder"
            ) from None
        raise
    if final.is_dir():
        raise IsADirectoryError(f"cannot write {final}: it is a folder; pass the name of a file")
    if final.exists() and not final.is_file():  # renaming would put a file where a device was
        raise OSError(f"cannot write {final}: it is a device or the like; pass the name of a file")
    if not final.parent.is_dir():
        raise FileNotFoundError(f"cannot write {final}: there is no folder {final.parent}; make it first")
    return final


# ---- folders ----


def check_folder(folder: Path, names: Iterable[str] = ()) -> None:
    """Raise if files called ``names`` cannot be written to ``folder``, before any work is done for them."""
    if not folder.is_dir():
        _check_missing(folder)
        return
    _try_writing(folder)
    _check_names(folder, names)


def _check_missing(folder: Path) -> None:
    try:
        os.path.realpath(folder, strict=True)
    except FileNotFoundError:
        if folder.is_symlink():
            target = os.path.realpath(folder)
            raise FileNotFoundError(
                f"cannot write to {folder}: it is a link to {target}, which is not there; make that folder, or "
                "remove the link"
            ) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(f"cannot write to {folder}: it is a link that leads back to itself; remove it") from None
        if error.errno != errno.ENOTDIR:
            raise
    there = next(parent for parent in (folder, *folder.absolute().parents) if os.path.lexists(parent))
    if not there.is_dir():
        what = "it" if there == folder else there
        raise FileExistsError(f"cannot write to {folder}: {what} is a file; pass the name of a folder")
    _try_writing(there)


def _try_writing(folder: Path) -> None:
    """Write a block to a temporary file in ``folder``: permissions alone do not show a full or read-only disk."""
    try:
        # Where the system can, the file has no name: nothing is left behind by a signal that comes here.
        with (
            explain_full_disk(folder),
            tempfile.TemporaryFile(dir=folder, prefix=".agglo-", suffix=".tmp") as file,
        ):
            file.write(bytes(_BLOCK))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in NO_SPACE:
            raise
        raise type(error)(f"cannot write to {folder}: {error.strerror or error}; choose another folder") from error


@contextmanager
def switching(folder: Path, names: Sequence[str], obsolete: Callable[[], Iterable[str]]) -> Iterator[Path]:
    """Yield a temporary folder to write the files ``names`` to; on success they replace ``obsolete`` files.

    Parameters
    ----------
    folder : Path
        Made if it is not there, and removed again on failure.
    names : sequence of str
        All files to write.
    obsolete : callable
        Returns the names of the files to remove, those of ``names`` excepted. It is called when no other writer
        is at work.
    """
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with explain_full_disk(folder), _locked(folder / LOCK) as alone:
            _complete_switch(folder)
            _remove_dead_files(folder)
            if alone:
                _remove_dead_folders(folder)
            _check_names(folder, names)
            temporary = folder / _temporary_name()
            try:
                temporary.mkdir()
                yield temporary
                removed = sorted(set(obsolete()) - set(names))
                journal = {"files": list(names), "removed": removed}
                (temporary / JOURNAL_LIST).write_text(json.dumps(journal))
                for name in (*names, JOURNAL_LIST):
                    _flush(temporary / name)
                _flush(temporary)
                temporary.rename(folder / JOURNAL)  # the switch
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            _flush(folder)
            _complete_switch(folder)
    except BaseException:
        for parent in made:  # the innermost first
            with suppress(OSError):  # not empty, or not made
                parent.rmdir()
        raise
    for parent in made:
        _flush(parent.parent)


def locate(folder: Path, name: str) -> Path:
    """Return where the file ``name`` of ``folder`` is, after a switch that may not be complete."""
    listed = _read_journal(folder)
    if listed is not None:
        files, removed = listed
        there = folder / JOURNAL / name
        if name in removed or (name in files and there.exists()):
            return there
    return folder / name


def read_stable(folder: Path, records: Sequence[str], read: Callable[[], T]) -> T:
    """Return what ``read`` returns if no switch of the files in ``folder`` came between; else read again.

    ``records`` are names of files of which each switch writes or removes one.
    """
    while True:
        before = _stamps(folder, records)
        try:
            result = read()
        except Exception:
            if _stamps(folder, records) == before:
                raise
        else:
            if _stamps(folder, records) == before:
                return result


def _stamps(folder: Path, records: Sequence[str]) -> list[tuple[int, int, int] | None]:
    stamps: list[tuple[int, int, int] | None] = []
    for name in (JOURNAL, *records):
        try:
            status = (folder / name).stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((status.st_ino, status.st_mtime_ns, status.st_ctime_ns))
    return stamps


def _check_names(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if (folder / name).is_dir():
            raise IsADirectoryError(
                f"cannot write {folder / name}: it is a folder; remove it, or choose another folder"
            )


def _read_journal(folder: Path) -> tuple[list[str], list[str]] | None:
    path = folder / JOURNAL / JOURNAL_LIST
    try:
        journal = json.loads(path.read_text(encoding="utf-8"))
        files, removed = journal["files"], journal["removed"]
        if all(isinstance(name, str) and Path(name).name == name for name in (*files, *removed)):
            return files, removed
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        pass
    raise ValueError(f"{path} is damaged: remove {folder / JOURNAL} and write the files again")


def _complete_switch(folder: Path) -> None:
    """Do what is left of a switch; nothing of it is done twice."""
    journal = folder / JOURNAL
    listed = _read_journal(folder)
    if listed is not None:
        files, removed = listed
        for name in removed:
            (folder / name).unlink(missing_ok=True)
        for name in files:
            with suppress(FileNotFoundError):  # it is in its place already
                (journal / name).replace(folder / name)
        _flush(folder)
        (journal / JOURNAL_LIST).unlink()
    if journal.is_dir():
        journal.rmdir()
        _flush(folder)


# ---- leftovers of writers that were killed ----


def _temporary_name() -> str:
    return f".agglo-{secrets.token_hex(8)}.tmp"


def _create_locked(folder: Path) -> tuple[Path, int]:
    """Create a temporary file that is locked for as long as it is being written."""
    while True:
        path = folder / _temporary_name()
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if not _lock(file, wait=True) or _is_at(file, path):
            return path, file
        os.close(file)  # another process took it for a leftover before it was locked


def _remove_dead_files(folder: Path) -> None:
    """Remove temporary files whose writers are gone, which their locks show."""
    for path in folder.glob(".agglo-*.tmp"):
        try:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # a folder, somebody else's, or gone
            continue
        try:
            if _lock(file, wait=False) and _is_at(file, path):
                path.unlink(missing_ok=True)
        finally:
            os.close(file)


def _remove_dead_folders(folder: Path) -> None:
    """Remove temporary folders; the caller has the lock of ``folder``, so nobody is writing to them."""
    for path in folder.glob(".agglo-*.tmp"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Wait for the lock file ``path`` and hold it; yield whether this file system has locks.

    The file is removed with the lock. Therefore a process that was waiting for it checks whether it still has its
    name, and starts again if not.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        waiting = True
        try:
            held = _lock(file, wait=True)
            waiting = False
            if held and not _is_at(file, path):
                continue
            yield held
            return
        finally:
            if not waiting and _is_at(file, path):
                path.unlink(missing_ok=True)
            os.close(file)


def _lock(file: int, *, wait: bool) -> bool:
    """Lock an open file, and return whether that was possible; processes that end lose their locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:  # then leftovers stay, and writers do not wait for each other
            return False
        raise
    return True


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


# ---- bytes ----


def _flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that cannot flush folders keep their names in order
            raise
    finally:
        os.close(file)


def write_array(array: npt.NDArray[Any], path: Path) -> None:
    """Write an array as .npy; a full disk is an OSError that says so, unlike that of ``numpy.save``."""
    with path.open("wb") as file:
        np.lib.format.write_array(_Writer(file.write), array, allow_pickle=False)


class _Writer:
    """What NumPy does not take for a file: it writes to files by a function that loses the cause of errors."""

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self.write = write


def file_digest(path: Path) -> str:
    """Return a hash of the content of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


# ---- records ----


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with a checksum of itself, by which :func:`is_intact` finds changed bytes."""
    return {**record, "checksum": _checksum(record)}


def is_intact(record: Mapping[str, Any]) -> bool:
    """Return whether a record is as it was sealed. One without a checksum is of an earlier version."""
    rest = dict(record)
    known = rest.pop("checksum", None)
    return known is None or known == _checksum(rest)


def _checksum(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, allow_nan=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
