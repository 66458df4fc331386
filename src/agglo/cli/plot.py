"""The command ``agglo plot``: draw a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agglo.cli import options as opt
from agglo.cli.app import BAD_INPUT, CANNOT_WRITE, USAGE, command, exit_with, print_result


@command()
def plot(
    run: opt.RunPath,
    kind: Annotated[
        Literal["overview", "treemap", "dendrogram", "icicle", "rounds", "dp-means"],
        typer.Option(metavar="NAME", help="overview, treemap, dendrogram, icicle, rounds or dp-means."),
    ] = "overview",
    data: Annotated[
        Path | None, opt.input_option("File of the points: required for dp-means, optional for overview.")
    ] = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    array: opt.NpzArray = None,
    label_column: Annotated[
        str | None, opt.input_option("Column of known classes, which is not used as a feature.")
    ] = None,
    header: opt.Header = None,
    encoding: opt.Encoding = "utf-8",
    delimiter: opt.Delimiter = None,
    n_clusters: opt.NClusters = None,
    round: opt.Round = None,
    height: opt.Height = None,
    out: Annotated[Path, opt.output_option("File: .png, .svg or .pdf.", "--out", "-o")] = Path("tree.png"),
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Draw a tree, its rounds or its DP-means costs.

    Colours show the clusters of a cut, which --n-clusters, --round or
    --height selects. By default it is the most persistent round.

    Example: agglo plot out --kind dendrogram -o tree.png
    """
    with exit_with(USAGE):
        from agglo.cli.data import read_data
        from agglo.cli.record import cut_tree
        from agglo.estimators.run_folder import find_rows, load_tree
        from agglo.io.atomic import check_writable_file

        try:
            from agglo.plot import pictures
        except ImportError as error:
            raise ValueError(str(error)) from None
        given_rule = opt.parse_rule(n_clusters, round, height)
        rule = given_rule or {"round": "persistent"}
        if kind == "dp-means" and data is None:
            raise ValueError("--kind dp-means needs the points of the tree: pass --data")
        features = opt.parse_columns(columns, drop)
        csv = opt.csv_options(header, encoding, delimiter)
    with exit_with(CANNOT_WRITE):
        pictures.check_name(out)
        check_writable_file(out)
    with exit_with(BAD_INPUT):
        tree = load_tree(run)
    with exit_with(USAGE):
        labels, about = cut_tree(tree, rule)
    X = names = None
    with exit_with(BAD_INPUT):
        if kind in ("dendrogram", "treemap") and run.is_dir():
            from agglo.explore.run import open_run

            shown = open_run(run)
            names = shown.make_namer() if shown.items.has_text else None
        if data is not None:
            if columns is None and drop is None and data.suffix.lower() not in (".npy", ".npz"):
                features["columns"] = _feature_columns(run)
            X = read_data(data, None, label_column, **features, array=array, csv=csv).X
            if not hasattr(X, "__array__"):
                raise ValueError(f"{data} holds sparse points, which cannot be drawn: leave out --data")
            X = X[find_rows(run, len(X))]
            if len(X) != tree.n_leaves:
                raise ValueError(
                    f"{data} has {len(X)} points, but the tree has {tree.n_leaves}: pass the points of the tree"
                )
    with exit_with(USAGE):
        is_for_reading = kind in ("dendrogram", "treemap")  # by default, these two kinds show few clusters
        shown_labels = labels if given_rule or not is_for_reading else None
        figure = pictures.draw(tree, kind, shown_labels, X, names=names)
    with exit_with(CANNOT_WRITE):
        pictures.save(figure, out)
    result = {"run": str(run), "kind": kind, "labels": about, "written": str(out)}
    print_result(result, [("written", str(out))], as_json, quiet)


def _feature_columns(run: Path) -> list[str] | None:
    """Return the names of the feature columns of a run's input. If the input was not a table, return None."""
    from agglo.estimators.run_folder import load_record

    record = (load_record(run) if run.is_dir() else None) or {}
    columns = record.get("data", {}).get("columns")
    return columns if isinstance(columns, list) else None
