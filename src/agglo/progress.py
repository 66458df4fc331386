"""How long work reports on itself, and a progress bar on the terminal for those who want one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

Progress = Callable[[str, int, int], None]
"""Called as ``progress(phase, done, total)`` from time to time, on the thread of the caller."""


def phase(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    """``progress`` bound to one phase, as the native core calls it."""
    return None if progress is None else partial(progress, name)


@contextmanager
def progress_bar(enabled: bool = True) -> Iterator[Progress | None]:
    """A bar on stderr with one line a phase; None where it is not wanted or nobody would see it."""
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

        def finish() -> None:
            for task in bar.tasks:
                bar.update(task.id, completed=task.total)

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                finish()
                tasks[name] = bar.add_task(name, total=total, count="")
            count = f"{total - done:,} clusters" if name == "rounds" else ""
            bar.update(tasks[name], completed=done, total=total, count=count)

        yield show
        finish()
