"""The command ``agglo eval``: score a tree against known classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agglo.cli.app import BAD_INPUT, EPILOG, USAGE, app, exit_with, print_result, report_errors
from agglo.cli.options import (
    INPUT,
    AsJson,
    Delimiter,
    Encoding,
    Header,
    Height,
    NClusters,
    Quiet,
    Round,
    RunPath,
    csv_options,
    parse_rule,
)


@app.command("eval", epilog=EPILOG)
@report_errors
def evaluate(
    run: RunPath,
    labels: Annotated[
        Path,
        typer.Option(help="Known classes: .npy, .npz, .parquet, .csv or .tsv.", rich_help_panel=INPUT),
    ],
    label_column: Annotated[
        str | None, typer.Option(help="Column (.npz: array) of known classes.", rich_help_panel=INPUT)
    ] = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = None,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score a tree against known classes: dendrogram purity and pairwise F1.

    F1 is computed for one cut and for the best round. By default the cut has
    as many clusters as there are classes.

    Example: agglo eval out --labels classes.npy
    """
    with exit_with(USAGE):
        from agglo.cli import record as report
        from agglo.cli.data import encode_classes
        from agglo.cli.record import compute_scores, cut_tree
        from agglo.estimators.run_folder import find_rows, load_tree
        from agglo.io.points import read_labels

        rule = parse_rule(n_clusters, round, height)
        csv = csv_options(header, encoding, delimiter)
    with exit_with(BAD_INPUT):
        tree = load_tree(run)
        given = read_labels(labels, column=label_column, csv=csv)
        y = encode_classes(given[find_rows(run, len(given))], tree.n_leaves)
    with exit_with(USAGE):
        clusters, about = cut_tree(tree, rule or {"n_clusters": int(y.max()) + 1})
    scores = compute_scores(tree, clusters, y)
    rows = [*report.summarize_labels(about), *report.summarize_scores(scores)]
    print_result({"run": str(run), "labels": about, "scores": scores}, rows, as_json, quiet)
