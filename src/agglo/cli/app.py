"""The program, to which every verb is added."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated, NoReturn

import typer

from agglo import __version__
from agglo.cli.ends import EPILOG, INTERRUPTED, TERMINATED

app = typer.Typer(
    name="agglo",
    help="Hierarchical clustering of very many points.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the command ``agglo``."""

    def terminated(_signal: int, _frame: object) -> NoReturn:
        raise SystemExit(TERMINATED)  # unlike the default, lets files be cleaned up

    signal.signal(signal.SIGTERM, terminated)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # no terminal is too old for a ×
    try:
        app(prog_name="agglo")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _open_closed_streams() -> None:
    """Open standard streams that the caller closed, lest a file get their numbers and be printed into."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the smallest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def _version(wanted: bool) -> None:
    if wanted:
        from agglo import _core  # which takes its time, and is needed here alone

        typer.echo(f"agglo {__version__} (instructions: {_core.simd_level()})")
        raise typer.Exit


@app.callback()
def _agglo(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...
