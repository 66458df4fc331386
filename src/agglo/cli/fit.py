"""The command ``agglo fit``: cluster the points of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agglo.cli import options as opt
from agglo.cli.app import BAD_INPUT, CANNOT_WRITE, USAGE, command, exit_with, print_message, print_result

if TYPE_CHECKING:  # slow imports are inside the commands, so that --help is fast
    from agglo.cli.data import Data
    from agglo.estimators.scc import Clusterer

PERSISTENT = {"resolution": "persistent"}
"""The default cut: the cut with the most persistent number of clusters; see :meth:`agglo.Hierarchy.cut`."""


@command()
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Points: .npy, .npz, .parquet, .csv or .tsv.")],
    *,
    labels: Annotated[Path | None, opt.input_option("File of known classes to score the tree with.")] = None,
    label_column: Annotated[
        str | None, opt.input_option("Column of known classes, in that file or in DATA.")
    ] = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    array: opt.NpzArray = None,
    header: opt.Header = None,
    encoding: opt.Encoding = "utf-8",
    delimiter: opt.Delimiter = None,
    metric: opt.Metric = "cosine",
    n_neighbors: Annotated[
        str, opt.graph_option("Number of neighbours per point, or 'all'.", "--n-neighbors", "-k")
    ] = "25",
    method: opt.Method = "auto",
    recall: opt.Recall = 0.95,
    missing: opt.Missing = "mean",
    seed: opt.Seed = 0,
    algorithm: opt.Algorithm = "scc",
    linkage: opt.LinkageName = "average",
    connect: opt.Connect = "auto",
    top: Annotated[str | None, typer.Option(hidden=True)] = None,
    thresholds: Annotated[
        str | None,
        opt.tree_option("For scc: odds (default), geometric, linear, doubling, or numbers: 0.9,0.5,0.1."),
    ] = None,
    n_thresholds: Annotated[
        int | None, opt.tree_option("For scc: number of thresholds; by default as many as needed.")
    ] = None,
    advance: Annotated[
        Literal["every-round", "until-stable"] | None,
        opt.tree_option("For scc: every-round (default) or until-stable.", metavar="NAME"),
    ] = None,
    must_link: Annotated[
        Path | None,
        opt.constraint_option("Groups of points that belong to one cluster: a table of row numbers of DATA."),
    ] = None,
    cannot_link: Annotated[
        Path | None,
        opt.constraint_option(
            "Groups of points that belong to different clusters: a table of row numbers of DATA."
        ),
    ] = None,
    sample_weight: Annotated[Path | None, opt.constraint_option("File with the weight of each point.")] = None,
    max_cluster_size: Annotated[
        float | None,
        opt.constraint_option("Maximum number of points of a cluster; with --sample-weight, its maximum weight."),
    ] = None,
    n_clusters: opt.NClusters = None,
    round: opt.Round = None,
    height: opt.Height = None,
    resolution: opt.Resolution = None,
    out: opt.Out,
    keep_model: opt.KeepModel = False,
    jobs: opt.Jobs = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Cluster the points of a file; write the tree and its labels to a folder.

    The labels are a cut of the tree, which --n-clusters, --round, --height or
    --resolution selects. The default is --resolution persistent: the cut with
    the largest modularity whose number of clusters survives the longest range
    of resolutions.

    Example: agglo fit points.npy --metric euclidean --n-clusters 10 -o out
    """
    if top is not None:
        print_message("warning", "--top is deprecated: use --connect")
    with exit_with(USAGE):
        from agglo.cli import record as records
        from agglo.cli.data import check_cosine, read_data
        from agglo.estimators import run_folder
        from agglo.estimators.model_folder import model_files
        from agglo.progress import progress_bar

        given = {"thresholds": opt.parse_thresholds(thresholds), "n_thresholds": n_thresholds, "advance": advance}
        schedule = {name: value for name, value in given.items() if value is not None}
        if algorithm != "scc" and schedule:
            options = ", ".join("--" + name.replace("_", "-") for name in schedule)
            raise ValueError(f"--algorithm {algorithm} has no thresholds: leave out {options}")
        rule = opt.parse_rule(n_clusters, round, height, resolution) or PERSISTENT
        model = build_model(
            algorithm,
            metric=metric,
            n_neighbors=opt.parse_integer("--n-neighbors", n_neighbors, "all"),
            method=method,
            recall=recall,
            missing=opt.parse_float("--missing", missing, "mean", "ignore"),
            random_state=seed,
            linkage=linkage,
            connect=None if "none" in (top, connect) else top or connect,
            max_cluster_size=max_cluster_size,
            n_jobs=jobs,
            **schedule,
            **rule,
        )
        names = opt.parse_columns(columns, drop)
        csv = opt.csv_options(header, encoding, delimiter)
    with exit_with(CANNOT_WRITE):
        run_folder.check_folder(out, force=force)
    files = {"must_link": must_link, "cannot_link": cannot_link, "sample_weight": sample_weight}
    with progress_bar(not quiet) as progress, exit_with(BAD_INPUT):
        if progress:
            progress("reading", 0, 1)
        points = read_data(data, labels, label_column, **names, array=array, csv=csv, constraints=files)
        if metric == "cosine":
            check_cosine(data, points, csv)
    fit_model(model, points, quiet)
    record = records.describe_run(model, points, rule, schedule)
    with exit_with(CANNOT_WRITE, f"nothing was written to {out}: "):
        saved = model_files(model) if keep_model else None
        run_folder.save_run(out, model.tree_, model.labels_, record, model=saved)
    rows = [*records.summarize_run(record), ("written", str(out))]
    print_result(record, rows, as_json, quiet)


def build_model(algorithm: str, **parameters: Any) -> Clusterer:
    """Create an unfitted clusterer; raise an error if a parameter is invalid, before any file is read."""
    from agglo.estimators.scc import HAC, SCC, Affinity, FitOptions

    clusterers: Mapping[str, type[Clusterer]] = {"scc": SCC, "affinity": Affinity, "hac": HAC}
    model = clusterers[algorithm](**parameters)
    FitOptions.from_params(model.get_params(deep=False))
    return model


def fit_model(model: Clusterer, data: Data, quiet: bool) -> None:
    """Fit a clusterer to the data; show a progress bar unless ``quiet``."""
    import numpy as np

    with exit_with(USAGE):
        model.set_params(verbose=not quiet).fit(data.X, **data.constraints)
    model.set_params(verbose=False)  # so that a saved model shows no progress bar
    if isinstance(data.source.get("columns"), list):
        model.feature_names_in_ = np.array(data.source["columns"], object)
