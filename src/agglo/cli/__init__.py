"""The command line program ``agglo``: one module per command.

docs/guide/cli.md describes the input and output files.
"""

# Importing a module registers its command. The order of the imports is the order in the help.
from agglo.cli import fit, predict, text, cut, evaluate, info, plot, explore, spark, demo  # noqa: F401  # isort: skip
from agglo.cli.app import (
    BAD_INPUT,
    CANNOT_WRITE,
    INTERRUPTED,
    NO_MEMORY,
    PIPE_CLOSED,
    TERMINATED,
    USAGE,
    app,
    main,
)

__all__ = [
    "BAD_INPUT",
    "CANNOT_WRITE",
    "INTERRUPTED",
    "NO_MEMORY",
    "PIPE_CLOSED",
    "TERMINATED",
    "USAGE",
    "app",
    "main",
]
