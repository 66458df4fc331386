"""The entry point of the program ``agglo``, and the exit codes, messages and errors of its commands."""

from __future__ import annotations

import errno
import functools
import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec

import typer

from agglo import __version__

# Do not change the exit codes, because scripts depend on them.
USAGE = 2
BAD_INPUT = 3
CANNOT_WRITE = 4
NO_MEMORY = 5
INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143

EPILOG = (
    "Exit codes: 0 success, 2 wrong options, 3 input that cannot be used, 4 output that cannot be written, "
    "5 not enough memory, 130 interrupted, 141 the reader of a pipe has closed it, 143 terminated."
)

P = ParamSpec("P")


class CommandError(Exception):
    """An error that ends a command; it has a message and an exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def exit_with(code: int, prefix: str = "") -> Iterator[None]:
    """End the command with exit code ``code`` if the ``with`` block raises an error that the user can correct."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        cause = error.strerror or str(error)
        where = "" if error.filename is None else f"{error.filename}: "
        # A temporary file could not be written because the disk is full, even if the block only reads input.
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            code = CANNOT_WRITE
        raise CommandError(code, f"{prefix}{where}{cause}") from error
    except (ValueError, TypeError, IndexError, ImportError) as error:
        raise CommandError(code, f"{prefix}{error}") from error


def report_errors(function: Callable[P, None]) -> Callable[P, None]:
    """Decorate a command: if it raises an error, print one message on stderr and exit with the error's code."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_args, **_kwargs: print_message("warning", str(message))
            try:
                function(*args, **kwargs)
            except CommandError as error:
                _exit(error.code, str(error))
            except MemoryError as error:
                _exit(NO_MEMORY, f"not enough memory ({error}): take fewer points or fewer neighbours")
            except KeyboardInterrupt:
                _exit(INTERRUPTED, "interrupted")
            except BrokenPipeError:  # the reader closed the pipe, as in `| head -1`, and reads no messages
                _discard_stdout()
                raise typer.Exit(PIPE_CLOSED) from None

    return run


def print_message(kind: str, message: str) -> None:
    """Print an error, a warning or a note on stderr; do nothing if stderr is closed."""
    colour = {"error": "red", "warning": "yellow", "note": "blue"}[kind]
    with suppress(OSError):
        _print(typer.style(f"{kind}: ", fg=colour, bold=True) + message, err=True)


def print_result(result: dict[str, Any], rows: list[tuple[str, str]], as_json: bool, quiet: bool) -> None:
    """Print ``result`` as JSON if ``as_json``, otherwise ``rows`` as text; print no text if ``quiet``.

    Each row is a heading and a line of text.
    """
    if as_json:
        text = json.dumps(result, indent=2, allow_nan=False)
    elif quiet:
        return
    else:
        text = "\n".join(typer.style(f"{key:<9}", fg="cyan") + value for key, value in rows)
    try:
        _print(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_stdout()
        raise CommandError(CANNOT_WRITE, f"the result could not be printed: {error.strerror or error}") from error


def _print(text: str, err: bool = False) -> None:
    typer.echo(text, err=err, color=False if os.environ.get("NO_COLOR") else None)


def _discard_stdout() -> None:
    """Redirect stdout to the null device, so that Python can flush stdout at exit without an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit(code: int, message: str) -> NoReturn:
    print_message("error", message)
    raise typer.Exit(code)


app = typer.Typer(
    name="agglo",
    help="Hierarchical clustering of very many points.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(name: str | None = None, group: typer.Typer = app) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Register a function as a command whose errors are reported by :func:`report_errors`."""
    return lambda function: group.command(name, epilog=EPILOG)(report_errors(function))


def command_to_type() -> str:
    """Return the command that starts agglo in this shell: ``agglo`` if that is on the search path."""
    if shutil.which("agglo"):
        return "agglo"
    program = Path(sys.argv[0])
    return f"{sys.executable} -m agglo" if program.name == "__main__.py" else str(program)


def main() -> None:
    """Run the command ``agglo``."""

    def terminate(_signal: int, _frame: object) -> NoReturn:
        raise SystemExit(TERMINATED)  # unlike the default handler, this removes temporary files

    signal.signal(signal.SIGTERM, terminate)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # some encodings lack the character ×
    try:
        app(prog_name="agglo")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _open_closed_streams() -> None:
    """Open the null device for each closed standard stream.

    Otherwise a file that is opened later could get the file descriptor of stdout.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the smallest free descriptor
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
