"""Replace files and groups of files atomically.

A reader finds either the old content or the new content, even if the writer is killed or the power fails. A single
file is written under a temporary name and flushed to disk. Then it is renamed, and a rename is atomic.

Several files cannot be renamed atomically, so :func:`replace_files` uses a journal. It writes the new files to a
temporary folder inside the target folder and flushes them to disk. Then it renames the temporary folder to
``.agglo-switch``, the journal. This rename commits the new files. Finally it moves the new files to the target
folder, deletes obsolete files and removes the journal.

If a writer is killed before the commit, the old files stay valid. If a writer is killed after the commit, the new
files are valid. Readers call :func:`resolve_file`, which looks into the journal first. The next writer completes a
committed journal, and deletes the temporary files of killed writers. The lock file ``.agglo-lock`` ensures that
only one process at a time writes to a folder.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from agglo._native import NO_SPACE, explain_full_disk

T = TypeVar("T")

LOCK = ".agglo-lock"
JOURNAL = ".agglo-switch"
JOURNAL_LIST = "journal.json"

_TEST_BYTES = 1024  # number of bytes of a test file; a smaller file may fit even on a full disk
_LOCKS_UNSUPPORTED = {errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL, errno.EBADF}


# ---- single files ----


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file to write to; rename it to ``path`` on success, delete it on failure.

    The temporary file is in the same folder as ``path``, so that the rename is atomic. Until the rename, the old
    file is unchanged.
    """
    final = _resolve_target(path)
    with explain_full_disk(final.parent):
        _delete_abandoned_files(final.parent)
        partial, lock = _create_locked_file(final.parent)
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


def check_writable_file(path: str | os.PathLike[str]) -> None:
    """Raise an ``OSError`` if no file can be written to ``path``."""
    _check_writable(_resolve_target(path).parent)


def _resolve_target(path: str | os.PathLike[str]) -> Path:
    """Return ``path`` without symbolic links, so that the target of a link is replaced, and not the link.

    Raise an ``OSError`` if the target is a folder or a device, or if its folder does not exist.
    """
    try:
        final = Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:
        final = Path(os.path.realpath(path))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(f"cannot write {path}: it is a link to itself; remove it") from None
        if error.errno == errno.ENOTDIR:
            above = (Path(path).parent, *Path(os.path.realpath(path)).parents)
            file = next(parent for parent in above if parent.exists() and not parent.is_dir())
            raise NotADirectoryError(f"cannot write {path}: {file} is a file; pass the name of a folder") from None
        raise type(error)(f"cannot write {path}: {error.strerror}; choose another file") from None
    if final.is_dir():
        raise IsADirectoryError(f"cannot write {final}: it is a folder; pass the name of a file")
    if final.exists() and not final.is_file():  # the target is a device, which a rename would replace by a file
        raise OSError(f"cannot write {final}: it is a device; pass the name of a file")
    if not final.parent.is_dir():
        raise FileNotFoundError(f"cannot write {final}: there is no folder {final.parent}; create it first")
    return final


# ---- folders ----


def check_writable_folder(folder: Path, names: Iterable[str] = ()) -> None:
    """Raise an ``OSError`` if the files ``names`` cannot be written to ``folder``, which may not exist yet."""
    # Unlike Path.is_dir, isdir returns False if the user may not look into the parent.
    if not os.path.isdir(folder):
        _check_creatable(folder)
        return
    _check_writable(folder)
    _check_names(folder, names)


def _check_creatable(folder: Path) -> None:
    """Raise an ``OSError`` if ``folder``, which does not exist, cannot be created."""
    try:
        os.path.realpath(folder, strict=True)
    except FileNotFoundError:
        pass
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(f"cannot write to {folder}: it is a link to itself; remove it") from None
        if error.errno != errno.ENOTDIR:
            raise type(error)(f"cannot write to {folder}: {error.strerror}; choose another folder") from None
    existing = next(parent for parent in (folder, *folder.absolute().parents) if os.path.lexists(parent))
    what = "it" if existing == folder else existing
    if not existing.exists():
        raise FileNotFoundError(
            f"cannot write to {folder}: {what} is a link to {os.path.realpath(existing)}, which does not exist; "
            "create that folder, or remove the link"
        )
    if not existing.is_dir():
        raise FileExistsError(f"cannot write to {folder}: {what} is a file; pass the name of a folder")
    _check_writable(existing)


def _check_writable(folder: Path) -> None:
    """Write a test file to ``folder``; raise an ``OSError`` if the folder is not writable or the disk is full."""
    try:
        # On most systems, the temporary file has no name. So a killed process leaves no file behind.
        with (
            explain_full_disk(folder),
            tempfile.TemporaryFile(dir=folder, prefix=".agglo-", suffix=".tmp") as file,
        ):
            file.write(bytes(_TEST_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in NO_SPACE:
            raise
        raise type(error)(f"cannot write to {folder}: {error.strerror or error}; choose another folder") from error


@contextmanager
def replace_files(folder: Path, names: Sequence[str], obsolete: Callable[[], Iterable[str]]) -> Iterator[Path]:
    """Yield a temporary folder for the files ``names``; on success, move all of them to ``folder`` atomically.

    If ``folder`` does not exist, it is created. On failure, a created folder is removed again. ``obsolete()``
    returns the names of old files to delete. ``obsolete`` is called while this process holds the lock of the
    folder.
    """
    created = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with explain_full_disk(folder), _hold_lock(folder / LOCK) as is_locked:
            _complete_journal(folder)
            _delete_abandoned_files(folder)
            if is_locked:
                _delete_abandoned_folders(folder)
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
                temporary.rename(folder / JOURNAL)  # this rename commits the new files
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            _flush(folder)
            _complete_journal(folder)
    except BaseException:
        for parent in created:  # from the innermost folder to the outermost
            with suppress(OSError):  # the folder is not empty, or it was not created
                parent.rmdir()
        raise
    for parent in created:
        _flush(parent.parent)


def resolve_file(folder: Path, name: str) -> Path:
    """Return the current path of the file ``name`` in ``folder``; the file may still be in the journal.

    If the file does not exist, or if the journal lists it as obsolete, the returned path does not exist.
    """
    journal = _read_journal(folder)
    if journal is not None:
        files, removed = journal
        path = folder / JOURNAL / name
        if name in removed or (name in files and path.exists()):
            return path
    return folder / name


def read_consistently(folder: Path, records: Sequence[str], read: Callable[[], T]) -> T:
    """Return the result of ``read()``; repeat the call if files in ``folder`` were replaced during the call.

    Replacements are detected by changes of the files ``records``. Every replacement must write or delete at least
    one of these files.
    """
    while True:
        before = _file_versions(folder, records)
        try:
            result = read()
        except Exception:
            if _file_versions(folder, records) == before:
                raise
        else:
            if _file_versions(folder, records) == before:
                return result


def _file_versions(folder: Path, records: Sequence[str]) -> list[tuple[int, int, int] | None]:
    versions: list[tuple[int, int, int] | None] = []
    for name in (JOURNAL, *records):
        try:
            status = (folder / name).stat()
        except OSError:
            versions.append(None)
        else:
            versions.append((status.st_ino, status.st_mtime_ns, status.st_ctime_ns))
    return versions


def _check_names(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if (folder / name).is_dir():
            raise IsADirectoryError(
                f"cannot write {folder / name}: it is a folder; remove it, or choose another folder"
            )


def _read_journal(folder: Path) -> tuple[list[str], list[str]] | None:
    """Return the names of the journal's new files, and of the files to delete.

    If the folder has no journal, return None.
    """
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


def _complete_journal(folder: Path) -> None:
    """Move the new files of a committed journal to ``folder``, and remove the journal.

    A killed writer may already have moved some of the files.
    """
    journal = folder / JOURNAL
    content = _read_journal(folder)
    if content is not None:
        files, removed = content
        for name in removed:
            (folder / name).unlink(missing_ok=True)
        for name in files:
            with suppress(FileNotFoundError):  # a killed writer has already moved the file
                (journal / name).replace(folder / name)
        _flush(folder)
        (journal / JOURNAL_LIST).unlink()
    if journal.is_dir():
        journal.rmdir()
        _flush(folder)


# ---- locks, and temporary files of killed writers ----


def _temporary_name() -> str:
    return f".agglo-{secrets.token_hex(8)}.tmp"


def _create_locked_file(folder: Path) -> tuple[Path, int]:
    """Create and lock a temporary file; return its path and its file descriptor."""
    while True:
        path = folder / _temporary_name()
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if not _lock(file, wait=True) or _is_same_file(file, path):
            return path, file
        os.close(file)  # another process deleted the file before it was locked


def _delete_abandoned_files(folder: Path) -> None:
    """Delete the temporary files in ``folder`` that no process has locked, because their writers were killed."""
    for path in folder.glob(".agglo-*.tmp"):
        try:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # the path is a folder, or was deleted, or the user may not open it
            continue
        try:
            if _lock(file, wait=False) and _is_same_file(file, path):
                path.unlink(missing_ok=True)
        finally:
            os.close(file)


def _delete_abandoned_folders(folder: Path) -> None:
    """Delete temporary folders in ``folder``. The caller holds the lock, so no other process uses them."""
    for path in folder.glob(".agglo-*.tmp"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _hold_lock(path: Path) -> Iterator[bool]:
    """Wait for the lock file ``path`` and hold the lock; yield whether the file system supports locks.

    A process that releases the lock deletes the lock file. Therefore a process that has waited for the lock checks
    whether the lock file still exists. If the lock file was deleted, the process creates it and waits again.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        is_waiting = True
        try:
            is_locked = _lock(file, wait=True)
            is_waiting = False
            if is_locked and not _is_same_file(file, path):
                continue
            yield is_locked
            return
        finally:
            if not is_waiting and _is_same_file(file, path):
                path.unlink(missing_ok=True)
            os.close(file)


def _lock(file: int, *, wait: bool) -> bool:
    """Lock an open file; return whether this succeeded. The system releases the lock when the process ends."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        # If locks are not supported, abandoned files are not deleted, and writers do not wait for each other.
        if error.errno in _LOCKS_UNSUPPORTED:
            return False
        raise
    return True


def _is_same_file(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


# ---- contents ----


def _flush(path: Path) -> None:
    """Flush the content of a file, or the entries of a folder, to disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: the file system cannot flush folders
            raise
    finally:
        os.close(file)


def write_array(array: npt.NDArray[Any], path: Path) -> None:
    """Write an array to a .npy file.

    Unlike the errors of ``numpy.save``, the errors of this function state their cause, such as a full disk.
    """
    with path.open("wb") as file:
        np.lib.format.write_array(_Writer(file.write), array, allow_pickle=False)


class _Writer:
    """A writer that NumPy does not recognize as a file, so that errors keep their cause.

    NumPy writes to files by its own code, which loses the cause of errors.
    """

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self.write = write
