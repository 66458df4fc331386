"""The command ``agglo info``: describe a run."""

from __future__ import annotations

from agglo.cli import options as opt
from agglo.cli.app import BAD_INPUT, USAGE, command, exit_with, print_result


@command()
def info(run: opt.RunPath, as_json: opt.AsJson = False, quiet: opt.Quiet = False) -> None:
    """Describe a run: points, graph, tree, labels, and the number of clusters per round.

    Example: agglo info out
    """
    with exit_with(USAGE):
        from agglo.cli import record as records
        from agglo.estimators.run_folder import load_run
    with exit_with(BAD_INPUT):
        tree, record = load_run(run)
        record = record or records.describe_tree(tree)
    print_result(record, [*records.summarize_run(record), *records.summarize_rounds(tree)], as_json, quiet)
