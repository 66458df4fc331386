"""The program ``agglo``, to which each command is added."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated, NoReturn

import typer

from agglo import __version__
from agglo.cli.exit_codes import EPILOG, INTERRUPTED, TERMINATED

app = typer.Typer(
    name="agglo",
    help="Hierarchical clustering of very many points.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command ``agglo``."""

    def terminate(_signal: int, _frame: object) -> NoReturn:
        raise SystemExit(TERMINATED)  # unlike the default handler, this lets temporary files be removed

    signal.signal(signal.SIGTERM, terminate)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # some encodings have no ×
    try:
        app(prog_name="agglo")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _open_closed_streams() -> None:
    """Reopen closed standard streams, so that no file gets their descriptors and is printed into."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the smallest free descriptor
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def _print_version(wanted: bool) -> None:
    if wanted:
        from agglo import _core  # slow to import

        typer.echo(f"agglo {__version__} (instructions: {_core.simd_level()})")
        raise typer.Exit


@app.callback()
def _agglo(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...
