"""The lock of a run folder: one driver at a time writes to it, and a dead driver can be replaced.

Every driver appends a record before it starts, and the last record owns the folder. A driver writes tables under
its own token, and only the owner appends to the log that makes them valid. So a driver that has lost the folder
cannot corrupt it: it stops before its next line of the log.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

_ACTIVE_TOKENS: set[str] = set()  # of the drivers in this process


class Owner(NamedTuple):
    """The record of a driver."""

    number: int
    """One more than that of the previous owner."""
    token: str
    """A unique id."""
    host: str
    process: int
    ended: bool = False
    """Whether the driver has released the folder."""

    @property
    def is_alive(self) -> bool:
        """Whether the driver is known to run, which can only be checked on the same machine."""
        if self.ended or self.host != socket.gethostname():
            return False
        if self.process == os.getpid():
            return self.token in _ACTIVE_TOKENS
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # a process of another user
            return True
        return True


class FolderLock:
    """The claim of one driver to a folder.

    Parameters
    ----------
    path : str
        The folder, for messages.
    read : callable
        Returns the records so far, as lines.
    append : callable
        Appends a line.
    """

    def __init__(self, path: str, read: Callable[[], list[str]], append: Callable[[str], None]) -> None:
        self.path, self._read, self._append = path, read, append
        self.token = uuid.uuid4().hex[:12]

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Own the folder during a ``with`` block; raise ``FileExistsError`` if its owner is alive."""
        last = self._last_owner()
        if last is not None and last.is_alive:
            raise FileExistsError(
                f"process {last.process} on {last.host} is working on the run in {self.path}: wait for it or stop "
                f"it, or pass another path; if that process is not a run of agglo, delete {self.path}/owners"
            )
        record = Owner(last.number + 1 if last else 1, self.token, socket.gethostname(), os.getpid())
        _ACTIVE_TOKENS.add(self.token)
        self._append(json.dumps(record._asdict()))
        try:
            self.check()
            yield
        except BaseException as error:
            try:
                self._release(record)
            except Exception as failure:
                error.add_note(f"the end of the run could not be recorded in {self.path}/owners: {failure}")
            raise
        self._release(record)

    def check(self) -> None:
        """Raise ``FileExistsError`` if the folder has another owner by now."""
        last = self._last_owner()
        if last is None or last.token != self.token:
            owner = f"process {last.process} on {last.host}" if last else "nobody"
            raise FileExistsError(
                f"the run in {self.path} has been taken over by {owner}: this process stops; no data is lost"
            )

    def _release(self, record: Owner) -> None:
        _ACTIVE_TOKENS.discard(self.token)
        self._append(json.dumps(record._replace(ended=True)._asdict()))

    def _last_owner(self) -> Owner | None:
        records = [Owner(**json.loads(line)) for line in self._read()]
        # Two drivers that start at the same time agree on the last one. A record of an end follows that of its
        # start.
        return max(records, key=lambda record: (record.number, record.token, record.ended), default=None)
