"""The command line: one module per command. See docs/cli.md for the files that it reads and writes."""

# Each module adds its command, in the order of the help.
from agglo.cli import fit, predict, text, cut, evaluate, info, plot, explore, spark, demo  # isort: skip
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
    "cut",
    "demo",
    "evaluate",
    "explore",
    "fit",
    "info",
    "main",
    "plot",
    "predict",
    "spark",
    "text",
]
