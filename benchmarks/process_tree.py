"""What a command and all processes that it starts take: the most memory at a time, and CPU seconds."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import NamedTuple

_EVERY = 0.2  # seconds between two looks
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Taken(NamedTuple):
    """What was seen of a command."""

    output: str
    memory: float  # bytes, resident, pages that processes share counting for each
    cpu: float  # seconds


def measured(command: list[str]) -> Taken:
    """Run a command and look at its processes from time to time."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    ended, most = threading.Event(), 0.0
    cpu: dict[int, float] = {}

    def look() -> None:
        nonlocal most
        while not ended.wait(_EVERY):
            seen = _processes(process.pid)
            most = max(most, sum(memory for memory, _ in seen.values()))
            cpu.update({number: seconds for number, (_, seconds) in seen.items()})

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        output = process.communicate()[0]
    finally:
        ended.set()
        watcher.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Taken(output, most, sum(cpu.values()))


def cpu_seconds(root: int) -> float:
    """What a process and all that come from it have used so far, but for those that have ended."""
    return sum(seconds for _, seconds in _processes(root).values())


def _processes(root: int) -> dict[int, tuple[float, float]]:
    """Resident bytes and CPU seconds of a process and all that come from it, as Linux tells them."""
    found, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        number = int(path.parent.name)
        parents[number] = int(fields[1])
        found[number] = int(fields[21]) * _PAGE, (int(fields[11]) + int(fields[12])) / _TICK
    ours = {root}
    for number in sorted(parents):  # a child's number is larger, unless numbers begin anew
        if parents[number] in ours:
            ours.add(number)
    return {number: found[number] for number in ours & found.keys()}
