"""The verb that makes a tree: fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agglo.cli.app import app
from agglo.cli.ends import BAD_INPUT, CANNOT_WRITE, EPILOG, USAGE, failing, tell, verb
from agglo.cli.options import (
    GRAPH,
    INPUT,
    KNOWN,
    OUTPUT,
    TREE,
    AsJson,
    Columns,
    Delimiter,
    Drop,
    Encoding,
    Force,
    Header,
    Height,
    Jobs,
    NClusters,
    NpzArray,
    Out,
    Quiet,
    Round,
    csv_options,
    feature_names,
    float_or_name,
    number_or_name,
    numbers_or_name,
    rule_of,
)

if TYPE_CHECKING:  # what takes long to import is imported by the verb that needs it
    from agglo.cli.pipeline import Run


@app.command(epilog=EPILOG)
@verb
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Points: .npy, .npz, .parquet, .csv or .tsv.")],
    *,
    labels: Annotated[
        Path | None, typer.Option(help="File of known classes, to score the tree with.", rich_help_panel=INPUT)
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(help="Column of known classes, in that file or in DATA.", rich_help_panel=INPUT),
    ] = None,
    columns: Columns = None,
    drop: Drop = None,
    array: NpzArray = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    delimiter: Delimiter = None,
    metric: Annotated[
        Literal["cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming"],
        typer.Option(
            metavar="NAME", help="cosine, dot, sqeuclidean, euclidean, jaccard or hamming.", rich_help_panel=GRAPH
        ),
    ] = "cosine",
    n_neighbors: Annotated[
        str, typer.Option("--n-neighbors", "-k", help="Neighbours a point, or 'all'.", rich_help_panel=GRAPH)
    ] = "25",
    method: Annotated[
        Literal["auto", "exact", "kdtree", "cells", "minhash"],
        typer.Option(
            metavar="NAME",
            help="How neighbours are found: auto, exact, kdtree, cells or minhash.",
            rich_help_panel=GRAPH,
        ),
    ] = "auto",
    recall: Annotated[
        float, typer.Option(help="Share of the true neighbours to find, if not all.", rich_help_panel=GRAPH)
    ] = 0.95,
    missing: Annotated[
        str,
        typer.Option(
            help="Value of a pair without an edge: a number, 'mean' (of two points), or 'ignore'.",
            rich_help_panel=GRAPH,
        ),
    ] = "mean",
    seed: Annotated[int, typer.Option(help="Where chance begins in a search.", rich_help_panel=GRAPH)] = 0,
    algorithm: Annotated[
        Literal["scc", "affinity", "hac"],
        typer.Option("--algorithm", "-a", metavar="NAME", help="scc, affinity or hac.", rich_help_panel=TREE),
    ] = "scc",
    linkage: Annotated[
        Literal["average", "single", "complete", "exact-average", "centroid", "ward"],
        typer.Option(
            metavar="NAME",
            help="average, single or complete, on the graph; exact-average, centroid or ward, of the points.",
            rich_help_panel=TREE,
        ),
    ] = "average",
    connect: Annotated[
        Literal["auto", "none", "exact-average", "centroid", "ward"],
        typer.Option(
            metavar="NAME",
            help="Linkage that merges the clusters that the graph leaves apart: exact-average, centroid, ward, "
            "auto (one that fits the metric), or none.",
            rich_help_panel=TREE,
        ),
    ] = "auto",
    top: Annotated[str | None, typer.Option(hidden=True)] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(
            help="For scc: odds (default), geometric, linear, doubling, or numbers: 0.9,0.5,0.1.",
            rich_help_panel=TREE,
        ),
    ] = None,
    n_thresholds: Annotated[
        int | None, typer.Option(help="For scc: how many; by default as many as needed.", rich_help_panel=TREE)
    ] = None,
    advance: Annotated[
        Literal["every-round", "until-stable"] | None,
        typer.Option(metavar="NAME", help="For scc: every-round (default) or until-stable.", rich_help_panel=TREE),
    ] = None,
    must_link: Annotated[
        Path | None, typer.Option(help="Table of rows of DATA that belong together.", rich_help_panel=KNOWN)
    ] = None,
    cannot_link: Annotated[
        Path | None, typer.Option(help="Table of rows of DATA that do not.", rich_help_panel=KNOWN)
    ] = None,
    sample_weight: Annotated[
        Path | None, typer.Option(help="File of what each point counts as.", rich_help_panel=KNOWN)
    ] = None,
    max_cluster_size: Annotated[
        float | None, typer.Option(help="How many points a cluster may be of, or weigh.", rich_help_panel=KNOWN)
    ] = None,
    n_clusters: NClusters = None,
    round: Round = None,
    height: Height = None,
    out: Out,
    keep_model: Annotated[
        bool, typer.Option("--keep-model", help="Keep what agglo predict needs, too.", rich_help_panel=OUTPUT)
    ] = False,
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the points of a file; write tree and labels to a folder.

    Labels are by --n-clusters, --round or --height, else --round persistent:
    the round near whose number of clusters the merging stays longest.
    """
    if top is not None:
        typer.echo("--top is deprecated: use --connect", err=True)
    with failing(USAGE):
        from agglo.cli import pipeline
        from agglo.cli import report as summary
        from agglo.estimators import model_folder as modelfile
        from agglo.estimators import run_folder as runfolder

        schedule = {"thresholds": numbers_or_name(thresholds), "n_thresholds": n_thresholds, "advance": advance}
        plan = pipeline.Plan(
            metric=metric,
            n_neighbors=number_or_name("--n-neighbors", n_neighbors, "all"),
            method=method,
            recall=recall,
            missing=float_or_name("--missing", missing, "mean", "ignore"),
            seed=seed,
            algorithm=algorithm,
            linkage=linkage,
            connect=None if "none" in (top, connect) else top or connect,
            schedule={name: value for name, value in schedule.items() if value is not None},
            max_cluster_size=max_cluster_size,
            rule=rule_of(n_clusters, round, height) or {"round": "persistent"},
            n_jobs=jobs,
        )
        names = feature_names(columns, drop)
        csv = csv_options(header, encoding, delimiter)
    with failing(CANNOT_WRITE):
        runfolder.check_folder(out, force=force)
    known = {"must_link": must_link, "cannot_link": cannot_link, "sample_weight": sample_weight}
    points = {**names, "array": array, "csv": csv, "known": known}
    run = clustered(plan, quiet, lambda: pipeline.read(data, labels, label_column, **points))
    with failing(CANNOT_WRITE, f"nothing was written to {out}: "):
        model = modelfile.contents(pipeline.model_of(plan, run)) if keep_model else None
        paths = runfolder.save_run(out, run.tree, run.labels, run.record, model=model)
    tell(run.record, [*summary.of_run(run.record), ("written", ", ".join(map(str, paths)))], as_json, quiet)


def clustered(plan: Any, quiet: bool, read: Callable[[], Any]) -> Run:
    """Read, search and merge, with a progress bar."""
    from agglo.cli import pipeline
    from agglo.progress import progress_bar

    with progress_bar(not quiet) as progress:
        if progress:
            progress("reading", 0, 1)
        with failing(BAD_INPUT):
            data = read()
        with failing(USAGE):
            return pipeline.run(plan, data, progress)
