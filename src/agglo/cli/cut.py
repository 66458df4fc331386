"""The command ``agglo cut``: cut a tree into flat clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from agglo.cli import options as opt
from agglo.cli.app import BAD_INPUT, CANNOT_WRITE, USAGE, command, exit_with, print_result


@command()
def cut(
    run: opt.RunPath,
    n_clusters: opt.NClusters = None,
    round: opt.Round = None,
    height: opt.Height = None,
    out: Annotated[Path | None, opt.label_file] = None,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Cut a tree into flat clusters; write their labels with --out.

    For a run of agglo text, the labels have one row per row of its file, -1
    for rows without a text, and the names of the clusters.

    Example: agglo cut out --n-clusters 100 -o labels.csv
    """
    with exit_with(USAGE):
        import numpy as np

        from agglo.cli import record as records
        from agglo.estimators.run_folder import load_tree, read_point_of_row
        from agglo.io.atomic import check_writable_file
        from agglo.io.points import check_label_format, write_labels
        from agglo.text.tables import read_cluster_names

        rule = opt.parse_rule(n_clusters, round, height)
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
        labels, about = records.cut_tree(tree, rule)
    summary = records.summarize_labels(about)
    with exit_with(BAD_INPUT):
        names = read_cluster_names(run, tree, labels)
        point = read_point_of_row(run)
    if point is not None:
        labels = np.where(point < 0, -1, labels[point])
    if names is not None:
        summary += records.summarize_largest(np.bincount(labels[labels >= 0]).tolist(), names)
    if out is not None:
        with exit_with(CANNOT_WRITE):
            write_labels(labels, out, names=names)
    written = "nothing; --out labels.csv writes the labels" if out is None else str(out)
    result = {"run": str(run), "labels": about, "written": None if out is None else str(out)}
    print_result(result, [*summary, ("written", written)], as_json, quiet)
