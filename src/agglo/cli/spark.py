"""The commands ``agglo spark fit`` and ``agglo spark labels``: cluster tables of edges on Spark."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from agglo.cli import options as opt
from agglo.cli.app import BAD_INPUT, EPILOG, USAGE, app, command, exit_with, print_result

spark = typer.Typer(help="Cluster tables of edges on Apache Spark.", no_args_is_help=True, epilog=EPILOG)
app.add_typer(spark, name="spark")


@command(group=spark)
def fit(
    edges: Annotated[
        list[str],
        typer.Argument(
            metavar="EDGES...", help="Parquet files with src, dst and weight, at paths that Spark reads."
        ),
    ],
    *,
    out: Annotated[str, opt.output_option("Folder for the run that all machines can access.", "--out", "-o")],
    kind: Annotated[
        Literal["similarity", "distance"],
        opt.input_option("similarity or distance: the meaning of the weights.", metavar="NAME"),
    ],
    columns: Annotated[
        str, opt.input_option("Names of the columns src, dst and weight: a,b,w.")
    ] = "src,dst,weight",
    points: Annotated[
        str | None, opt.input_option("Parquet file with all point ids, if some points have no edges.")
    ] = None,
    missing: Annotated[str | None, opt.input_option("Value of a pair without an edge, or 'ignore'.")] = None,
    metric: Annotated[str | None, opt.input_option("Metric of the weights.")] = None,
    linkage: Annotated[
        Literal["average", "single", "complete"], opt.tree_option("average, single or complete.", metavar="NAME")
    ] = "average",
    thresholds: Annotated[
        str, opt.tree_option("odds, geometric, linear, doubling, or numbers: 0.9,0.5.")
    ] = "odds",
    n_thresholds: Annotated[
        int | None, opt.tree_option("Number of thresholds; by default as many as needed.")
    ] = None,
    advance: Annotated[
        Literal["every-round", "until-stable"], opt.tree_option("every-round or until-stable.", metavar="NAME")
    ] = "every-round",
    handoff_edges: Annotated[
        int | None, opt.output_option("Maximum number of edges that one machine clusters alone.")
    ] = None,
    resume: Annotated[bool, opt.output_option("Resume an interrupted run in the folder.", "--resume")] = False,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Cluster a graph, given as a table of edges; write the tree as tables.

    The command uses the session of spark-submit, or starts a local session.

    Example: agglo spark fit edges.parquet --kind distance -o run
    """
    with exit_with(USAGE):
        from agglo import spark as engine

        names = columns.split(",")
        if len(names) != 3:
            raise ValueError(
                f"--columns {columns} names {len(names)} columns: pass three, those of src,dst,weight"
            )
        options: dict[str, Any] = {
            "kind": kind,
            "missing": None if missing is None else opt.parse_float("--missing", missing, "ignore"),
            "metric": metric,
            "linkage": linkage,
            "thresholds": opt.parse_thresholds(thresholds),
            "n_thresholds": n_thresholds,
            "advance": advance,
            "resume": resume,
        }
        if handoff_edges is not None:
            options["handoff_edges"] = handoff_edges
    with exit_with(BAD_INPUT):
        session = _start_session()
        table = _read_parquet(session, *edges)
        for name in names:
            if name not in table.columns:
                raise ValueError(
                    f"{edges[0]} has no column {name!r}, only {', '.join(table.columns)}: "
                    "pass the names of three of its columns with --columns"
                )
        table = table.select(*names).toDF("src", "dst", "weight")
        tree = engine.scc(table, out, points=None if points is None else _read_parquet(session, points), **options)
    clusters = tree.clusters_per_round
    result = {"run": out, "points": tree.n_points, "rounds": len(tree.rounds), "clusters": clusters}
    rows = [
        ("points", f"{tree.n_points:,}"),
        ("rounds", f"{len(tree.rounds)}, to {clusters[-1]:,} clusters"),
        ("written", out),
    ]
    print_result(result, rows, as_json, quiet)


@command(group=spark)
def labels(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Folder that agglo spark fit wrote.")],
    *,
    round: Annotated[int, typer.Option(help="The round: a number, or -1 for the last.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for Parquet files with id and cluster.")],
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write the cluster of each point after a round of a run.

    Example: agglo spark labels run --round -1 -o labels
    """
    with exit_with(USAGE):
        from agglo.spark import SparkHierarchy
    with exit_with(BAD_INPUT):
        tree = SparkHierarchy(_start_session(), run)
        tree.labels(round).write.mode("overwrite").parquet(out)
    clusters = tree.clusters_per_round[round]
    result = {"run": run, "clusters": clusters, "written": out}
    print_result(result, [("written", f"{out}: {clusters:,} clusters")], as_json, quiet)


def _start_session() -> Any:
    from agglo.spark import session

    try:
        return session()
    except RuntimeError as error:  # Java is not installed
        raise ValueError(str(error)) from None


def _read_parquet(session: Any, *paths: str) -> Any:
    from pyspark.errors import AnalysisException

    try:
        return session.read.parquet(*paths)
    except AnalysisException as error:
        raise ValueError(f"cannot read {', '.join(paths)} as Parquet: {error.getMessage()}") from None
