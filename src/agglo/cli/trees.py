"""The verbs that read a tree: cut, eval, info and plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agglo.cli.app import app
from agglo.cli.ends import BAD_INPUT, CANNOT_WRITE, EPILOG, USAGE, failing, tell, verb
from agglo.cli.options import (
    INPUT,
    OUTPUT,
    AsJson,
    Columns,
    Delimiter,
    Drop,
    Encoding,
    Header,
    Height,
    NClusters,
    NpzArray,
    Quiet,
    Round,
    RunPath,
    csv_options,
    feature_names,
    rule_of,
)


@app.command(epilog=EPILOG)
@verb
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
    """Choose a flat clustering of a tree; write its labels with --out."""
    with failing(USAGE):
        from agglo.cli import pipeline
        from agglo.cli import report as summary
        from agglo.estimators import run_folder as runfolder
        from agglo.io import atomic as outputs
        from agglo.io import points as files

        rule = rule_of(n_clusters, round, height)
        if rule is None:
            raise ValueError("a cut needs a rule: pass one of --n-clusters, --round and --height")
        if out is not None:
            files.check_label_format(out)
    if out is not None:
        with failing(CANNOT_WRITE):
            outputs.check_writable_file(out)
    with failing(BAD_INPUT):
        tree = runfolder.load_tree(run)
    with failing(USAGE):
        labels, about = pipeline.cut(tree, rule)
    if out is not None:
        with failing(CANNOT_WRITE):
            files.write_labels(labels, out)
    written = "nothing; --out labels.csv keeps the labels" if out is None else str(out)
    result = {"run": str(run), **about, "written": None if out is None else str(out)}
    tell(result, [*summary.of_labels(about["labels"]), ("written", written)], as_json, quiet)


@app.command("eval", epilog=EPILOG)
@verb
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
    """Score a tree against known classes: dendrogram purity, pairwise F1.

    F1 is that of a cut, by default at the number of classes, and of the best round.
    """
    with failing(USAGE):
        from agglo.cli import pipeline
        from agglo.cli import report as summary
        from agglo.estimators import run_folder as runfolder
        from agglo.io import points as files

        rule = rule_of(n_clusters, round, height)
        csv = csv_options(header, encoding, delimiter)
    with failing(BAD_INPUT):
        tree = runfolder.load_tree(run)
        y = pipeline.classes(files.read_labels(labels, column=label_column, csv=csv), tree.n_leaves)
    with failing(USAGE):
        flat, about = pipeline.cut(tree, rule or {"n_clusters": int(y.max()) + 1})
    scores = pipeline.scores(tree, flat, y)
    result = {"run": str(run), **about, "scores": scores}
    tell(result, [*summary.of_labels(about["labels"]), *summary.of_scores(scores)], as_json, quiet)


@app.command(epilog=EPILOG)
@verb
def info(run: RunPath, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Tell what a run did, and the clusters after its rounds."""
    with failing(USAGE):
        from agglo.cli import pipeline
        from agglo.cli import report as summary
        from agglo.estimators import run_folder as runfolder
    with failing(BAD_INPUT):
        tree, record = runfolder.load_run(run)
        record = record or pipeline.tree_record(tree)
    tell(record, [*summary.of_run(record), *summary.of_rounds(tree)], as_json, quiet)


@app.command(epilog=EPILOG)
@verb
def plot(
    run: RunPath,
    kind: Annotated[
        Literal["overview", "icicle", "dendrogram", "rounds", "dp-means"],
        typer.Option(metavar="NAME", help="overview, icicle, dendrogram, rounds or dp-means."),
    ] = "overview",
    data: Annotated[
        Path | None,
        typer.Option(help="The points: for dp-means, and to be seen in an overview.", rich_help_panel=INPUT),
    ] = None,
    columns: Columns = None,
    drop: Drop = None,
    array: NpzArray = None,
    label_column: Annotated[
        str | None, typer.Option(help="Column of known classes, which is no feature.", rich_help_panel=INPUT)
    ] = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = None,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File: .png, .svg or .pdf.", rich_help_panel=OUTPUT)
    ] = Path("tree.png"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw a tree: by numbers of clusters, by height, its rounds or its DP-means costs.

    Colours are those of the clusters at --n-clusters, --round or --height, else --round persistent.
    """
    with failing(USAGE):
        from agglo.cli import pipeline
        from agglo.estimators import run_folder as runfolder
        from agglo.io import atomic as outputs

        try:
            from agglo.plot import pictures as pictures
        except ImportError as error:
            raise ValueError(str(error)) from None
        rule = rule_of(n_clusters, round, height) or {"round": "persistent"}
        if kind == "dp-means" and data is None:
            raise ValueError("--kind dp-means needs the points that the tree is of: pass --data")
        features = feature_names(columns, drop)
        csv = csv_options(header, encoding, delimiter)
    with failing(CANNOT_WRITE):
        pictures.check_name(out)
        outputs.check_writable_file(out)
    with failing(BAD_INPUT):
        tree = runfolder.load_tree(run)
    with failing(USAGE):
        labels, about = pipeline.cut(tree, rule)
    with failing(BAD_INPUT):
        if data is not None and columns is None and drop is None and data.suffix.lower() not in (".npy", ".npz"):
            features["columns"] = _columns_of(run)
        X = None if data is None else pipeline.read(data, None, label_column, **features, array=array, csv=csv).X
        if X is not None and not hasattr(X, "__array__"):
            raise ValueError(f"{data} holds sparse points, which cannot be drawn: leave out --data")
        if X is not None and len(X) != tree.n_leaves:
            raise ValueError(f"{data} has {len(X)} points, but the tree has {tree.n_leaves}: pass its own")
    with failing(USAGE):
        figure = pictures.draw(tree, kind, labels, X)
    with failing(CANNOT_WRITE):
        pictures.save(figure, out)
    tell({"run": str(run), "kind": kind, **about, "written": str(out)}, [("written", str(out))], as_json, quiet)


def _columns_of(run: Path) -> list[str] | None:
    """Return the columns that a run was made of, if it was made of a table."""
    from agglo.estimators import run_folder as runfolder

    record = (runfolder.load_record(run) if run.is_dir() else None) or {}
    columns = record.get("data", {}).get("columns")
    return columns if isinstance(columns, list) else None
