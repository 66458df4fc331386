"""Progress reports of long computations, and a progress bar for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

Progress = Callable[[str, int, int], None]
"""A function, called as ``progress(phase, done, total)`` from time to time, in the caller's thread."""


def bind_phase(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    """Return a function ``report(done, total)`` that calls ``progress`` with the phase ``name``."""
    return None if progress is None else partial(progress, name)


@contextmanager
def progress_bar(enabled: bool = True) -> Iterator[Progress | None]:
    """Show a progress bar on stderr, one line per phase; yield None if disabled or stderr is no terminal."""
    if not enabled or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description:<10}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    counts = TextColumn("{task.fields[count]}")
    with RichProgress(*columns, counts, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        tasks: dict[str, Any] = {}

        def complete_tasks() -> None:
            for task in bar.tasks:
                bar.update(task.id, completed=task.total)

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                complete_tasks()
                tasks[name] = bar.add_task(name, total=total, count="")
            count = f"{total - done:,} clusters" if name == "rounds" else ""
            bar.update(tasks[name], completed=done, total=total, count=count)

        yield report
        complete_tasks()
