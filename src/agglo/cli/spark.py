"""The commands ``agglo spark fit`` and ``agglo spark labels``: cluster tables of edges on Spark."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from agglo.cli.app import BAD_INPUT, EPILOG, USAGE, app, exit_with, print_result, report_errors
from agglo.cli.options import INPUT, OUTPUT, TREE, AsJson, Quiet, parse_float, parse_thresholds

spark = typer.Typer(help="Cluster tables of edges on Apache Spark.", no_args_is_help=True, epilog=EPILOG)
app.add_typer(spark, name="spark")

RunFolder = Annotated[
    str,
    typer.Option("--out", "-o", help="Folder for the run that all machines can access.", rich_help_panel=OUTPUT),
]


@spark.command(epilog=EPILOG)
@report_errors
def fit(
    edges: Annotated[
        list[str],
        typer.Argument(
            metavar="EDGES...", help="Parquet files with src, dst and weight, at paths that Spark reads."
        ),
    ],
    *,
    out: RunFolder,
    kind: Annotated[
        Literal["similarity", "distance"],
        typer.Option(
            metavar="NAME", help="similarity or distance: the meaning of the weights.", rich_help_panel=INPUT
        ),
    ],
    columns: Annotated[
        str, typer.Option(help="Names of the columns src, dst and weight: a,b,w.", rich_help_panel=INPUT)
    ] = "src,dst,weight",
    points: Annotated[
        str | None,
        typer.Option(help="Parquet file with all point ids, if some points have no edges.", rich_help_panel=INPUT),
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="Value of a pair without an edge, or 'ignore'.", rich_help_panel=INPUT)
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Metric of the weights.", rich_help_panel=INPUT)] = None,
    linkage: Annotated[
        Literal["average", "single", "complete"],
        typer.Option(metavar="NAME", help="average, single or complete.", rich_help_panel=TREE),
    ] = "average",
    thresholds: Annotated[
        str, typer.Option(help="odds, geometric, linear, doubling, or numbers: 0.9,0.5.", rich_help_panel=TREE)
    ] = "odds",
    n_thresholds: Annotated[
        int | None, typer.Option(help="Number of thresholds; by default as many as needed.", rich_help_panel=TREE)
    ] = None,
    advance: Annotated[
        Literal["every-round", "until-stable"],
        typer.Option(metavar="NAME", help="every-round or until-stable.", rich_help_panel=TREE),
    ] = "every-round",
    handoff_edges: Annotated[
        int | None,
        typer.Option(help="Maximum number of edges that one machine clusters alone.", rich_help_panel=OUTPUT),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted run in the folder.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster a graph, given as a table of edges; write the tree as tables.

    The command uses the session of spark-submit, or starts a local session.

    Example: agglo spark fit edges.parquet --kind distance -o run
    """
    with exit_with(USAGE):
        from agglo import spark as engine
        from agglo.spark.algorithms import HANDOFF_EDGES

        names = columns.split(",")
        if len(names) != 3:
            raise ValueError(
                f"--columns {columns} names {len(names)} columns: pass three, those of src,dst,weight"
            )
        options: dict[str, Any] = {
            "kind": kind,
            "missing": None if missing is None else parse_float("--missing", missing, "ignore"),
            "metric": metric,
            "linkage": linkage,
            "thresholds": parse_thresholds(thresholds),
            "n_thresholds": n_thresholds,
            "advance": advance,
            "handoff_edges": HANDOFF_EDGES if handoff_edges is None else handoff_edges,
            "resume": resume,
        }
    with exit_with(BAD_INPUT):
        session = _start_session()
        table = _read_parquet(session, *edges)
        for name in names:
            if name not in table.columns:
                raise ValueError(
                    f"{edges[0]} has no column {name!r}, only {', '.join(table.columns)}: "
                    "pass the names of three of its columns with --columns"
                )
        table = table.select(*(table[name].alias(to) for name, to in zip(names, _COLUMNS, strict=True)))
        tree = engine.scc(table, out, points=None if points is None else _read_parquet(session, points), **options)
    clusters = tree.clusters_per_round
    result = {"run": out, "points": tree.n_points, "rounds": len(tree.rounds), "clusters": clusters}
    rows = [
        ("points", f"{tree.n_points:,}"),
        ("rounds", f"{len(tree.rounds)}, to {clusters[-1]:,} clusters"),
        ("written", out),
    ]
    print_result(result, rows, as_json, quiet)


@spark.command(epilog=EPILOG)
@report_errors
def labels(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Folder that agglo spark fit wrote.")],
    *,
    round: Annotated[int, typer.Option(help="The round: a number, or -1 for the last.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for Parquet files with id and cluster.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
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
    print_result(
        {"run": run, "clusters": clusters, "written": out},
        [("written", f"{out}: {clusters:,} clusters")],
        as_json,
        quiet,
    )


_COLUMNS = ("src", "dst", "weight")


def _start_session() -> Any:
    from agglo.spark import session

    try:
        return session()
    except RuntimeError as error:  # no Java
        raise ValueError(str(error)) from None


def _read_parquet(session: Any, *paths: str) -> Any:
    from pyspark.errors import AnalysisException

    try:
        return session.read.parquet(*paths)
    except AnalysisException as error:
        raise ValueError(f"cannot read {', '.join(paths)} as Parquet: {error.getMessage()}") from None
