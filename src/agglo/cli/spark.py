"""The verbs for tables on Spark: spark fit, spark labels."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from agglo.cli.app import app
from agglo.cli.ends import BAD_INPUT, EPILOG, USAGE, failing, tell, verb
from agglo.cli.options import INPUT, OUTPUT, TREE, AsJson, Quiet, float_or_name, numbers_or_name

spark = typer.Typer(help="Cluster tables of edges on Apache Spark.", no_args_is_help=True, epilog=EPILOG)
app.add_typer(spark, name="spark")

Place = Annotated[
    str, typer.Option("--out", "-o", help="Folder for the run that all machines see.", rich_help_panel=OUTPUT)
]


@spark.command(epilog=EPILOG)
@verb
def fit(
    edges: Annotated[
        list[str], typer.Argument(metavar="EDGES...", help="Parquet: src, dst, weight. Any path that Spark reads.")
    ],
    *,
    out: Place,
    kind: Annotated[
        Literal["similarity", "distance"],
        typer.Option(metavar="NAME", help="similarity or distance: what weights are.", rich_help_panel=INPUT),
    ],
    columns: Annotated[
        str, typer.Option(help="Names of the three columns: a,b,w.", rich_help_panel=INPUT)
    ] = "src,dst,weight",
    points: Annotated[
        str | None, typer.Option(help="Parquet of ids, for points without edges.", rich_help_panel=INPUT)
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="Value of a pair without an edge, or 'ignore'.", rich_help_panel=INPUT)
    ] = None,
    metric: Annotated[str | None, typer.Option(help="What weights measure.", rich_help_panel=INPUT)] = None,
    linkage: Annotated[
        Literal["average", "single", "complete"],
        typer.Option(metavar="NAME", help="average, single or complete.", rich_help_panel=TREE),
    ] = "average",
    thresholds: Annotated[
        str, typer.Option(help="odds, geometric, linear, doubling, or numbers: 0.9,0.5.", rich_help_panel=TREE)
    ] = "odds",
    n_thresholds: Annotated[
        int | None, typer.Option(help="How many; by default as many as needed.", rich_help_panel=TREE)
    ] = None,
    advance: Annotated[
        Literal["every-round", "until-stable"],
        typer.Option(metavar="NAME", help="every-round or until-stable.", rich_help_panel=TREE),
    ] = "every-round",
    handoff_edges: Annotated[
        int | None, typer.Option(help="Edges from which on one machine does the rest.", rich_help_panel=OUTPUT)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in the folder.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the points of a table of edges; write the tree as tables.

    The session is that of spark-submit, else one on this machine.
    """
    with failing(USAGE):
        from agglo import spark as engine
        from agglo.spark.algorithms import HANDOFF_EDGES

        names = columns.split(",")
        if len(names) != 3:
            raise ValueError(
                f"--columns {columns} names {len(names)} columns: pass three, those of src,dst,weight"
            )
        options: dict[str, Any] = {
            "kind": kind,
            "missing": None if missing is None else float_or_name("--missing", missing, "ignore"),
            "metric": metric,
            "linkage": linkage,
            "thresholds": numbers_or_name(thresholds),
            "n_thresholds": n_thresholds,
            "advance": advance,
            "handoff_edges": HANDOFF_EDGES if handoff_edges is None else handoff_edges,
            "resume": resume,
        }
    with failing(BAD_INPUT):
        session = _session()
        table = _read(session, *edges)
        for name in names:
            if name not in table.columns:
                raise ValueError(f"{edges[0]} has no column {name!r}, only {', '.join(table.columns)}: --columns")
        table = table.select(*(table[name].alias(to) for name, to in zip(names, _COLUMNS, strict=True)))
        tree = engine.scc(table, out, points=None if points is None else _read(session, points), **options)
    clusters = tree.clusters_per_round
    result = {"run": out, "points": tree.n_points, "rounds": len(tree.rounds), "clusters": clusters}
    rows = [
        ("points", f"{tree.n_points:,}"),
        ("rounds", f"{len(tree.rounds)}, to {clusters[-1]:,} clusters"),
        ("written", out),
    ]
    tell(result, rows, as_json, quiet)


@spark.command(epilog=EPILOG)
@verb
def labels(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Folder that agglo spark fit wrote.")],
    *,
    round: Annotated[int, typer.Option(help="The round, -1 being the last.")],
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for Parquet: id, cluster.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the clusters of all points after a round of a run."""
    with failing(USAGE):
        from agglo.spark import SparkHierarchy
    with failing(BAD_INPUT):
        tree = SparkHierarchy(_session(), run)
        tree.labels(round).write.mode("overwrite").parquet(out)
    clusters = tree.clusters_per_round[round]
    tell(
        {"run": run, "clusters": clusters, "written": out},
        [("written", f"{out}: {clusters:,} clusters")],
        as_json,
        quiet,
    )


_COLUMNS = ("src", "dst", "weight")


def _session() -> Any:
    from agglo.spark import session

    try:
        return session()
    except RuntimeError as error:  # no Java
        raise ValueError(str(error)) from None


def _read(session: Any, *paths: str) -> Any:
    from pyspark.errors import AnalysisException

    try:
        return session.read.parquet(*paths)
    except AnalysisException as error:
        raise ValueError(f"cannot read {', '.join(paths)} as Parquet: {error.getMessage()}") from None
