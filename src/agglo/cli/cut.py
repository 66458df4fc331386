"""The command ``agglo cut``: cut a tree into flat clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agglo.cli.app import BAD_INPUT, CANNOT_WRITE, EPILOG, USAGE, app, exit_with, print_result, report_errors
from agglo.cli.options import OUTPUT, AsJson, Height, NClusters, Quiet, Round, RunPath, parse_rule


@app.command(epilog=EPILOG)
@report_errors
def cut(
    run: RunPath,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File for labels: .parquet, .csv or .npy.", rich_help_panel=OUTPUT),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cut a tree into flat clusters; write their labels with --out.

    Example: agglo cut out --n-clusters 100 -o labels.csv
    """
    with exit_with(USAGE):
        from agglo.cli import record as report
        from agglo.cli.record import cut_tree
        from agglo.estimators.run_folder import load_tree
        from agglo.io.atomic import check_writable_file
        from agglo.io.points import check_label_format, write_labels

        rule = parse_rule(n_clusters, round, height)
        if rule is None:
            raise ValueError("a cut needs a rule: pass one of --n-clusters, --round and --height")
        if out is not None:
            check_label_format(out)
    if out is not None:
        with exit_with(CANNOT_WRITE):
            check_writable_file(out)
    with exit_with(BAD_INPUT):
        tree = load_tree(run)
    with exit_with(USAGE):
        labels, about = cut_tree(tree, rule)
    if out is not None:
        with exit_with(CANNOT_WRITE):
            write_labels(labels, out)
    written = "nothing; --out labels.csv writes the labels" if out is None else str(out)
    result = {"run": str(run), "labels": about, "written": None if out is None else str(out)}
    print_result(result, [*report.summarize_labels(about), ("written", written)], as_json, quiet)
