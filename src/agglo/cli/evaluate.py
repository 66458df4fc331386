"""The command ``agglo eval``: score a tree against known classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from agglo.cli import options as opt
from agglo.cli.app import BAD_INPUT, USAGE, command, exit_with, print_result


@command("eval")
def evaluate(
    run: opt.RunPath,
    labels: Annotated[Path, opt.input_option("Known classes: .npy, .npz, .parquet, .csv or .tsv.")],
    label_column: Annotated[str | None, opt.input_option("Column (.npz: array) of known classes.")] = None,
    header: opt.Header = None,
    encoding: opt.Encoding = "utf-8",
    delimiter: opt.Delimiter = None,
    n_clusters: opt.NClusters = None,
    round: opt.Round = None,
    height: opt.Height = None,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Score a tree against known classes: dendrogram purity and pairwise F1.

    F1 is computed for one cut and for the best round. By default the cut has
    as many clusters as there are classes.

    Example: agglo eval out --labels classes.npy
    """
    with exit_with(USAGE):
        from agglo.cli import record as records
        from agglo.cli.data import encode_classes
        from agglo.estimators.run_folder import find_rows, load_tree
        from agglo.io.points import read_labels

        rule = opt.parse_rule(n_clusters, round, height)
        csv = opt.csv_options(header, encoding, delimiter)
    with exit_with(BAD_INPUT):
        tree = load_tree(run)
        given = read_labels(labels, column=label_column, csv=csv)
        y = encode_classes(given[find_rows(run, len(given))], tree.n_leaves)
    with exit_with(USAGE):
        clusters, about = records.cut_tree(tree, rule or {"n_clusters": int(y.max()) + 1})
    scores = records.compute_scores(tree, clusters, y)
    rows = [*records.summarize_labels(about), *records.summarize_scores(scores)]
    print_result({"run": str(run), "labels": about, "scores": scores}, rows, as_json, quiet)
