"""Peak memory and CPU seconds of a command and all its child processes."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import NamedTuple

_INTERVAL = 0.2  # seconds between two samples
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """The output and the resources of a command."""

    output: str
    memory: float  # resident bytes; shared pages count for each process
    cpu: float  # seconds


def run_measured(command: list[str]) -> Usage:
    """Run a command, and sample its processes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    ended, peak = threading.Event(), 0.0
    cpu: dict[int, float] = {}

    def sample() -> None:
        nonlocal peak
        while not ended.wait(_INTERVAL):
            seen = _processes(process.pid)
            peak = max(peak, sum(memory for memory, _ in seen.values()))
            cpu.update({number: seconds for number, (_, seconds) in seen.items()})

    watcher = threading.Thread(target=sample)
    watcher.start()
    try:
        output = process.communicate()[0]
    finally:
        ended.set()
        watcher.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Usage(output, peak, sum(cpu.values()))


def cpu_seconds(root: int) -> float:
    """Return the CPU seconds of a process and its running descendants."""
    return sum(seconds for _, seconds in _processes(root).values())


def _processes(root: int) -> dict[int, tuple[float, float]]:
    """Return resident bytes and CPU seconds of a process and its descendants, from /proc."""
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
    for number in sorted(parents):  # a child has a larger number, unless numbers have wrapped around
        if parents[number] in ours:
            ours.add(number)
    return {number: found[number] for number in ours & found.keys()}
