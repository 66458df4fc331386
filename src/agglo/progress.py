"""How long work reports on itself, and a progress bar on the terminal for those who want one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

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

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with RichProgress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        tasks: dict[str, object] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                for earlier in tasks.values():
                    bar.update(earlier, completed=1, total=1)  # type: ignore[arg-type]
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done, total=total)  # type: ignore[arg-type]

        yield show
        for task in tasks.values():
            bar.update(task, completed=1, total=1)  # type: ignore[arg-type]
