"""The verb that makes a tree of texts."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from agglo.cli.app import app
from agglo.cli.ends import BAD_INPUT, CANNOT_WRITE, EPILOG, USAGE, complain, failing, tell, verb
from agglo.cli.explore import serve
from agglo.cli.options import (
    GRAPH,
    INPUT,
    OUTPUT,
    AsJson,
    Delimiter,
    Encoding,
    Force,
    Height,
    Jobs,
    NClusters,
    Out,
    Quiet,
    Round,
    csv_options,
    number_or_name,
    rule_of,
)


@app.command(epilog=EPILOG)
@verb
def text(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Texts: .csv, .tsv, .parquet, or lines of a .txt.")],
    *,
    column: Annotated[
        str | None, typer.Option(help="Column of texts, if there are others.", rich_help_panel=INPUT)
    ] = None,
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="Vectors, a row for each row of FILE: .npy, .npz or .parquet.", rich_help_panel=INPUT),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Folder of a sentence-transformers model that makes them.", rich_help_panel=INPUT),
    ] = None,
    n_neighbors: Annotated[
        str, typer.Option("--n-neighbors", "-k", help="Neighbours a text, or 'all'.", rich_help_panel=GRAPH)
    ] = "25",
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    out: Out = Path("agglo-text"),
    explore: Annotated[
        bool, typer.Option("--explore", help="Serve the explorer of it, until Ctrl-C.", rich_help_panel=OUTPUT)
    ] = False,
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster short texts; write a tree with named clusters, to be explored.

    Texts are compared by the words and letters in them, or by --embeddings or --model.
    """
    with failing(USAGE):
        from agglo.cli import pipeline
        from agglo.cli import report as summary
        from agglo.estimators import run_folder as runfolder
        from agglo.progress import progress_bar
        from agglo.text import reader as texts
        from agglo.text import run as textrun

        if embeddings is not None and model is not None:
            raise ValueError("--embeddings and --model are two ways to have vectors: pass one of them")
        csv = csv_options(None, encoding, delimiter)
        plan = pipeline.Plan(
            n_neighbors=number_or_name("--n-neighbors", n_neighbors, "all"),
            rule=rule_of(n_clusters, round, height) or {"round": "persistent"},
            n_jobs=jobs,
        )
    with failing(CANNOT_WRITE):
        runfolder.check_folder(out, force=force)
    with progress_bar(not quiet) as progress:
        if progress:
            progress("reading", 0, 1)
        with failing(BAD_INPUT):
            found = texts.read_texts(file, column, encoding, csv.delimiter)
            X, about = textrun.vectors(found, embeddings, model, progress)
        about = {"path": str(file), "columns": column, **about}
        with failing(USAGE):
            made = textrun.run_texts(plan, found, X, about, progress)
    if found.n_empty:
        complain("note", f"{found.n_empty:,} of {found.n_rows:,} rows have no text and were left out")
    record = made.run.record
    with failing(CANNOT_WRITE, f"nothing was written to {out}: "):
        paths = runfolder.save_run(out, made.run.tree, made.run.labels, record, extra=made.files())
    name = "agglo" if shutil.which("agglo") else sys.argv[0]  # as it can be typed again
    rows = [("texts", f"{len(found.texts):,} different ones in {found.n_rows:,} rows of {file}")]
    rows += [row for row in summary.of_run(record) if row[0] != "points"]
    rows += [("written", ", ".join(map(str, paths))), ("next", f"{name} explore {out}")]
    tell(record, rows, as_json, quiet)
    if explore:
        serve(out)
