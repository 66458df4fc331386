"""The command line: the stages in order for files. See docs/cli.md for what is read and written."""

# Each adds its verbs, in the order of the help.
from agglo.cli import fit, predict, text, trees, explore, spark, demo  # isort: skip
from agglo.cli.app import app, main
from agglo.cli.ends import BAD_INPUT, CANNOT_WRITE, INTERRUPTED, NO_MEMORY, PIPE_CLOSED, TERMINATED, USAGE

__all__ = [
    "BAD_INPUT",
    "CANNOT_WRITE",
    "INTERRUPTED",
    "NO_MEMORY",
    "PIPE_CLOSED",
    "TERMINATED",
    "USAGE",
    "app",
    "demo",
    "explore",
    "fit",
    "main",
    "predict",
    "spark",
    "text",
    "trees",
]
