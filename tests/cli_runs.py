"""Commands, as tests run them."""

import subprocess
import sys
import textwrap

from children import TIMEOUT
from typer.testing import CliRunner

from agglo import cli

FILES = ["labels.parquet", "run.json", "tree.parquet"]


def run(*words, code=0, stdin=None):
    """What a command prints on stdout and stderr, in this process; it must end with ``code``."""
    result = CliRunner().invoke(cli.app, [str(word) for word in words], input=stdin, prog_name="agglo")
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def driven(prelude, *words):
    """The command in a process of its own, after a few lines of Python have been run there."""
    program = f"{textwrap.dedent(prelude)}\nimport agglo.cli\nagglo.cli.main()"
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def write(folder, content, name="texts.csv"):
    """Write a file of text or bytes; return its path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
