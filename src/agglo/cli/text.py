"""The command ``agglo text``: cluster texts, and name the clusters by their terms."""

from __future__ import annotations

import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from agglo.cli.app import (
    BAD_INPUT,
    CANNOT_WRITE,
    EPILOG,
    USAGE,
    app,
    exit_with,
    print_message,
    print_result,
    report_errors,
)
from agglo.cli.explore import serve
from agglo.cli.fit import PERSISTENT, build_model, fit_model
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
    Resolution,
    Round,
    csv_options,
    parse_integer,
    parse_rule,
)


@app.command(epilog=EPILOG)
@report_errors
def text(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Texts: .csv, .tsv, .parquet, or .txt with one text per line.")
    ],
    *,
    column: Annotated[
        str | None, typer.Option(help="Text column, if FILE has several columns.", rich_help_panel=INPUT)
    ] = None,
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(
            help="Vectors of the texts, with one row per row of FILE: .npy, .npz or .parquet.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a sentence-transformers model that computes the vectors.", rich_help_panel=INPUT
        ),
    ] = None,
    n_neighbors: Annotated[
        str,
        typer.Option(
            "--n-neighbors", "-k", help="Number of neighbours per text, or 'all'.", rich_help_panel=GRAPH
        ),
    ] = "25",
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    resolution: Resolution = None,
    out: Out = Path("agglo-text"),
    explore: Annotated[
        bool,
        typer.Option("--explore", help="Afterwards, serve the explorer until Ctrl-C.", rich_help_panel=OUTPUT),
    ] = False,
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster short texts; write a tree with named clusters for agglo explore.

    Texts are compared by their words and letters, or by the vectors of
    --embeddings or --model.

    Example: agglo text queries.csv --column query -o out
    """
    with exit_with(USAGE):
        import numpy as np

        from agglo.cli import record as records
        from agglo.cli import record as report
        from agglo.cli.data import Data
        from agglo.estimators import run_folder
        from agglo.io.arrow_file import write_arrow
        from agglo.progress import progress_bar
        from agglo.text.names import name_nodes
        from agglo.text.reader import read_texts
        from agglo.text.vectors import compute_vectors

        if embeddings is not None and model is not None:
            raise ValueError("--embeddings and --model are two ways to get vectors: pass one of them")
        csv = csv_options(None, encoding, delimiter)
        rule = parse_rule(n_clusters, round, height, resolution) or PERSISTENT
        k = parse_integer("--n-neighbors", n_neighbors, "all")
        clusterer = build_model("scc", n_neighbors=k, n_jobs=jobs, **rule)
    with exit_with(CANNOT_WRITE):
        run_folder.check_folder(out, force=force)
    with progress_bar(not quiet) as progress, exit_with(BAD_INPUT):
        if progress:
            progress("reading", 0, 1)
        texts = read_texts(file, column, encoding, csv.delimiter)
        X, features_from = compute_vectors(texts, embeddings, model, progress)
    data = Data(X, None, {"path": str(file), "columns": column, "features_from": features_from})
    fit_model(clusterer, data, quiet)
    start = time.perf_counter()
    with progress_bar(not quiet) as progress, exit_with(USAGE):
        dense = X if isinstance(X, np.ndarray) else None
        names = name_nodes(clusterer.tree_, texts.texts, dense, progress=progress)
    clusterer._seconds["names"] = time.perf_counter() - start
    if texts.n_empty:
        print_message("note", f"{texts.n_empty:,} of {texts.n_rows:,} rows have no text and were left out")
    record = records.describe_run(clusterer, data, rule, {})
    record["data"] |= {"rows": texts.n_rows, "rows_without_text": texts.n_empty}
    with exit_with(CANNOT_WRITE, f"nothing was written to {out}: "):
        extra = {
            run_folder.ITEMS: partial(write_arrow, texts.table()),
            run_folder.NAMES: partial(write_arrow, names.to_table()),
        }
        paths = run_folder.save_run(out, clusterer.tree_, clusterer.labels_, record, extra=extra)
    name = "agglo" if shutil.which("agglo") else sys.argv[0]  # the command to type
    rows = [("texts", f"{len(texts.texts):,} different ones in {texts.n_rows:,} rows of {file}")]
    rows += [row for row in report.summarize_run(record) if row[0] != "points"]
    rows += [("written", ", ".join(map(str, paths))), ("next", f"{name} explore {out}")]
    print_result(record, rows, as_json, quiet)
    if explore:
        serve(out)
