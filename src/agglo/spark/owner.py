"""Who works in the folder of a run: one driver at a time, and the next one if that has died.

Every driver leaves a record before it works, and the last one to do so owns the folder. What a driver writes has
names of its own until a line of the log says that it counts, and only the owner adds lines: so a driver that has
lost its folder while nobody could tell whether it was still there can spoil nothing, and stops at its next line.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

_AT_WORK: set[str] = set()  # tokens of this process


class Owner(NamedTuple):
    """A record of a driver."""

    number: int
    """How many there were before, and one."""
    token: str
    """A name that no other has."""
    host: str
    process: int
    ended: bool = False
    """Whether it has left the folder, by its end or by an error."""

    @property
    def seen_alive(self) -> bool:
        """Whether it is known to be at work, as can only be told of processes of this machine."""
        if self.ended or self.host != socket.gethostname():
            return False
        if self.process == os.getpid():
            return self.token in _AT_WORK
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # of somebody else
            return True
        return True


class Ownership:
    """A driver's claim to a folder.

    Parameters
    ----------
    path : str
        The folder, for messages.
    read : callable
        The records so far, as lines.
    append : callable
        Adds a line.
    """

    def __init__(self, path: str, read: Callable[[], list[str]], append: Callable[[str], None]) -> None:
        self.path, self._read, self._append = path, read, append
        self.token = uuid.uuid4().hex[:12]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Own the folder for as long as a ``with``; raises if it is known that another one works in it."""
        last = self._last()
        if last is not None and last.seen_alive:
            raise FileExistsError(
                f"process {last.process} on {last.host} is at work on the run in {self.path}: wait for it or stop "
                f"it, or pass another path; if it is no run of agglo's, delete {self.path}/owners"
            )
        mine = Owner(last.number + 1 if last else 1, self.token, socket.gethostname(), os.getpid())
        _AT_WORK.add(self.token)
        self._append(json.dumps(mine._asdict()))
        try:
            self.check()
            yield
        except BaseException as error:
            try:
                self._leave(mine)
            except Exception as failure:
                error.add_note(f"and {self.path}/owners does not say that the run has ended: {failure}")
            raise
        self._leave(mine)

    def check(self) -> None:
        """Raise if the folder has another owner by now."""
        last = self._last()
        if last is None or last.token != self.token:
            whose = f"process {last.process} on {last.host}" if last else "nobody"
            raise FileExistsError(
                f"the run in {self.path} has been taken over by {whose}: this one stops, and nothing is lost"
            )

    def _leave(self, mine: Owner) -> None:
        _AT_WORK.discard(self.token)
        self._append(json.dumps(mine._replace(ended=True)._asdict()))

    def _last(self) -> Owner | None:
        records = [Owner(**json.loads(line)) for line in self._read()]
        # Of two that came at the same time both see the same one as the last; a record of an end comes after.
        return max(records, key=lambda record: (record.number, record.token, record.ended), default=None)
