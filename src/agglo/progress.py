"""Progress reports of long computations, and progress bars for terminals and notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import Any

Progress = Callable[[str, int, int], None]
"""A function that is called from time to time as ``progress(phase, done, total)``, in the caller's thread."""

_SECONDS_PER_UPDATE = 0.2  # minimum time between two updates of a bar in a notebook


@contextmanager
def progress_bar(enabled: bool = True) -> Iterator[Progress | None]:
    """Show one progress bar per phase, in a notebook or on stderr; yield the function that updates the bars.

    If ``enabled`` is False, or if there is neither a notebook nor a terminal, yield None.
    """
    if enabled and _is_notebook():
        with _notebook_bar() as report:
            yield report
        return
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


def _is_notebook() -> bool:
    """Return whether this program is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


@contextmanager
def _notebook_bar() -> Iterator[Progress]:
    """Display progress bars below the cell that runs; yield the function that updates them."""
    module: Any = import_module("IPython.display")
    phases: dict[str, tuple[int, int]] = {}
    shown_at = 0.0
    handle = module.display(module.HTML(""), display_id=True)

    def complete_phases() -> None:
        phases.update({name: (total, total) for name, (_, total) in phases.items()})

    def report(name: str, done: int, total: int) -> None:
        nonlocal shown_at
        if name not in phases:
            complete_phases()
        is_milestone = name not in phases or done >= total
        phases[name] = (done, total)
        if is_milestone or time.monotonic() - shown_at > _SECONDS_PER_UPDATE:
            handle.update(module.HTML(_render_bars(phases)))
            shown_at = time.monotonic()

    yield report
    complete_phases()
    handle.update(module.HTML(_render_bars(phases)))


def _render_bars(phases: Mapping[str, tuple[int, int]]) -> str:
    """Render one HTML progress bar per phase."""
    rows = [
        f'<div><span style="display:inline-block;width:7em">{escape(name)}</span>'
        f'<progress value="{done}" max="{max(total, 1)}" style="width:20em;vertical-align:middle"></progress> '
        f"{100 * done // max(total, 1)} %</div>"
        for name, (done, total) in phases.items()
    ]
    return "".join(rows)
