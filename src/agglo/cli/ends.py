"""How a command ends: what it prints, and a code for scripts."""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, ParamSpec

import typer

# Exit codes; they are part of the interface.
USAGE = 2
BAD_INPUT = 3
CANNOT_WRITE = 4
NO_MEMORY = 5
INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143

EPILOG = (
    "Exit codes: 0 done, 2 wrong or unfitting options, 3 input that cannot be used, 4 output that cannot be "
    "written, 5 not enough memory, 130 interrupted, 141 the reader of a pipe has gone, 143 terminated."
)

P = ParamSpec("P")


class CommandError(Exception):
    """What ends a command: a message for people and a code for scripts."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def failing(code: int, prefix: str = "") -> Iterator[None]:
    """Errors of what is done here end the command with ``code``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        cause = error.strerror or str(error)
        where = "" if error.filename is None else f"{error.filename}: "
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # of a temporary file, too
            code = CANNOT_WRITE
        raise CommandError(code, f"{prefix}{where}{cause}") from error
    except (ValueError, TypeError, IndexError, ImportError) as error:
        raise CommandError(code, f"{prefix}{error}") from error


def verb(function: Callable[P, None]) -> Callable[P, None]:
    """Every end of a command that is not a success becomes one message on stderr and an exit code."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_args, **_kwargs: complain("warning", str(message))
            try:
                function(*args, **kwargs)
            except CommandError as failure:
                _end(failure.code, str(failure))
            except MemoryError as error:
                _end(NO_MEMORY, f"not enough memory ({error}): take fewer points or fewer neighbours")
            except KeyboardInterrupt:
                _end(INTERRUPTED, "interrupted")
            except BrokenPipeError:  # as `| head -1` does; nobody is left to be told
                _discard_stdout()
                raise typer.Exit(PIPE_CLOSED) from None

    return run


def complain(kind: str, message: str) -> None:
    """Print an error, a warning or a note on stderr, if it can be printed: work goes on without readers."""
    colour = {"error": "red", "warning": "yellow", "note": "blue"}[kind]
    with suppress(OSError):
        _print(typer.style(f"{kind}: ", fg=colour, bold=True) + message, err=True)


def _print(text: str, err: bool = False) -> None:
    typer.echo(text, err=err, color=False if os.environ.get("NO_COLOR") else None)


def _discard_stdout() -> None:
    """Let Python's last flush of stdout succeed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(code: int, message: str) -> NoReturn:
    complain("error", message)
    raise typer.Exit(code)


def tell(result: dict[str, Any], rows: list[tuple[str, str]], as_json: bool, quiet: bool) -> None:
    """Print a result, for machines or for people."""
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
