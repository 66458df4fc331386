"""The command ``agglo info``: describe a run."""

from __future__ import annotations

from agglo.cli.app import BAD_INPUT, EPILOG, USAGE, app, exit_with, print_result, report_errors
from agglo.cli.options import AsJson, Quiet, RunPath


@app.command(epilog=EPILOG)
@report_errors
def info(run: RunPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Describe a run: points, graph, tree, labels, and the number of clusters per round.

    Example: agglo info out
    """
    with exit_with(USAGE):
        from agglo.cli import record as report
        from agglo.cli.record import describe_tree
        from agglo.estimators.run_folder import load_run
    with exit_with(BAD_INPUT):
        tree, record = load_run(run)
        record = record or describe_tree(tree)
    print_result(record, [*report.summarize_run(record), *report.summarize_rounds(tree)], as_json, quiet)
