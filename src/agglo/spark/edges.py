"""From a user's edges to a graph that rounds can start from: checked, cleaned and numbered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from agglo.neighbors.graph import KINDS, Kind, Missing
from agglo.rounds.linkage import GRAPH_LINKAGES, LINKAGES
from agglo.spark.folder import GRAPH, POINTS, Folder

_BINS = 4096  # of a histogram that comes to the driver


class Numbers(NamedTuple):
    """The graph of a run in a few numbers, see :class:`agglo.NeighborGraph`."""

    kind: Kind
    missing: Missing
    metric: str | None
    n_points: int
    n_edges: int
    least: float
    most: float


class PreparedGraph:
    """The graph of a run as schedules ask for it; quantiles are found by Spark when they are wanted."""

    def __init__(self, numbers: Numbers, table: DataFrame) -> None:
        self.numbers, self._weights = numbers, table.select(F.col("weight").cast("double"))
        self.kind, self.missing, self.metric, self.n_points, self.n_edges, *_ = numbers
        self.min_weight, self.max_weight = numbers.least, numbers.most

    def quantile_above(self, bound: float, up: bool, share: float) -> float | None:
        """Return the quantile ``share`` of the weights above ``bound``; see :class:`WeightSummary`."""
        # From the bound, whichever way: so that the rank counts from the smallest.
        sign = 1.0 if up else -1.0
        away = F.lit(sign) * F.col("weight")
        values = self._weights.filter(away > F.lit(sign * bound)).select(away.alias("value"))
        # In memory each edge is there twice.
        found = _of_share(values, lambda number: int(share * (2 * number - 1)) // 2)
        return None if found is None else sign * found


_ELSEWHERE = ("X", "connect", "top", "must_link", "cannot_link", "max_cluster_size", "sample_weight")


def check_supported(linkage: object, arguments: Mapping[str, object]) -> None:
    """Raise if a linkage or ``arguments`` of :func:`agglo.scc` are asked for that there are not on Spark."""
    for name in arguments:
        if name not in _ELSEWHERE:
            raise TypeError(f"{name!r} is no argument of agglo.spark: see help(agglo.spark.scc)")
    asked = [name for name, value in arguments.items() if value is not None]
    if not isinstance(linkage, str):
        asked.insert(0, f"a linkage that is a {type(linkage).__name__}")
    elif linkage in LINKAGES and linkage not in GRAPH_LINKAGES:
        asked.insert(0, f"linkage={linkage!r}")
    if asked:
        raise ValueError(
            f"{', '.join(asked)}: not supported on Spark, which has the linkages {', '.join(GRAPH_LINKAGES)} and "
            "no constraints or weights of points; collect the graph, rows = edges.toArrow(), and pass "
            "agglo.NeighborGraph.from_edges(rows['src'], rows['dst'], rows['weight'], kind=kind) to agglo.scc"
        )


def check_options(kind: str, missing: Missing | None) -> None:
    """Raise if these cannot be of a graph."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is unknown: pass 'similarity' or 'distance'")
    if isinstance(missing, str):
        if missing != "ignore":
            raise ValueError(f"missing={missing!r} is unknown: pass a number or 'ignore'")
    elif missing is not None and not math.isfinite(missing):
        raise ValueError(f"missing={missing!r} must be finite, or 'ignore'")


def checked(edges: DataFrame) -> DataFrame:
    """Edges with columns src, dst (both long, or both string) and weight (float); raises if they have no such."""
    if not isinstance(edges, DataFrame):
        raise TypeError(
            f"expected a Spark DataFrame with columns src, dst and weight, got {type(edges).__name__}: for what "
            "is in memory there is agglo.scc"
        )
    absent = [name for name in ("src", "dst", "weight") if name not in edges.columns]
    if absent:
        raise ValueError(
            f"edges have no column {absent[0]!r}, only {', '.join(edges.columns)}: rename with withColumnRenamed"
        )
    types = {name: edges.schema[name].dataType for name in ("src", "dst", "weight")}
    if not isinstance(types["weight"], T.NumericType):
        raise TypeError(f"weight must be a number, got {types['weight'].simpleString()}: cast it")
    kinds = {name: id_type(name, types[name]) for name in ("src", "dst")}
    if kinds["src"] != kinds["dst"]:
        raise TypeError(
            f"src is {kinds['src']} and dst is {kinds['dst']}: ids must be of one type, cast one of them"
        )
    return edges.select(
        F.col("src").cast(kinds["src"]), F.col("dst").cast(kinds["dst"]), F.col("weight").cast("float")
    )


def id_type(name: str, found: T.DataType) -> str:
    """What ids of this type are kept as; raises if they cannot be ids."""
    if isinstance(found, T.StringType):
        return "string"
    if isinstance(found, T.IntegralType):
        return "long"
    raise TypeError(f"{name} must be whole numbers or strings, got {found.simpleString()}: cast it")


def fingerprint(edges: DataFrame, points: DataFrame | None) -> dict[str, Any]:
    """What tells this input from any other, in one pass; raises if something in it cannot be used."""
    return _usable(edges.agg(*_told()).collect()[0].asDict(), points)


def collected(edges: DataFrame, points: DataFrame | None) -> tuple[pa.Table, dict[str, Any]]:
    """The edges themselves, of which there are some, and their fingerprint, in one pass."""
    seen = Observation()
    table = edges.observe(seen, *_told()).toArrow()
    return table, _usable(seen.get, points)


_BAD = {
    "a src that is null": "src IS NULL",
    "a dst that is null": "dst IS NULL",
    "a weight that is null": "weight IS NULL",
    "a weight that is not finite (NaN, or too large for float32)": "weight IN ('NaN', 'Infinity', '-Infinity')",
}


def _told() -> list[Column]:
    """What is looked at in edges."""
    hashes = F.xxhash64("src", "dst", "weight")
    return [
        F.count(F.lit(1)).alias("rows"),
        F.bit_xor(hashes).alias("xor"),
        F.sum(F.pmod(hashes, F.lit(1_000_003))).alias("sum"),  # small, so that 64 bits hold the sum
        *(F.count_if(F.coalesce(F.expr(which), F.lit(False))).alias(name) for name, which in _BAD.items()),
    ]


def _usable(seen: dict[str, Any], points: DataFrame | None) -> dict[str, Any]:
    for name in _BAD:
        if seen[name]:
            raise ValueError(f"{seen[name]} of {seen['rows']} edges have {name}: leave them out with filter")
    found = {name: seen[name] for name in ("rows", "xor", "sum")}
    if points is not None:
        extra = points.agg(F.count(F.lit(1)).alias("rows"), F.bit_xor(F.xxhash64(*points.columns)).alias("xor"))
        found["points"] = list(extra.collect()[0])
    if not found["rows"] and not (points is not None and found["points"][0]):
        raise ValueError("there are no edges: the table is empty; pass at least one, or points without edges")
    return found


def prepare(
    edges: DataFrame,
    points: DataFrame | None,
    folder: Folder,
    kind: Kind,
    missing: Missing | None,
    metric: str | None,
) -> PreparedGraph:
    """Write the tables that a run starts from, `POINTS` and `GRAPH`, and say what is in them.

    Self-loops are dropped, but the point counts; of several edges between two points the closest stays, whichever
    way they point.
    """
    names = edges.select(F.explode(F.array("src", "dst")).alias("name"))
    if points is not None:
        names = names.unionByName(
            points.select(F.col(points.columns[0]).cast(names.schema[0].dataType).alias("name"))
        )
        if names.filter(F.col("name").isNull()).count():
            raise ValueError(f"points have an id that is null, or no {names.schema[0].dataType.simpleString()}")
    seen = Observation()
    names = names.distinct()
    if isinstance(names.schema["name"].dataType, T.StringType):
        # Sorted, so that ids are in the order of names; they need not be dense.
        numbered = names.orderBy("name").select(F.monotonically_increasing_id().alias("id"), "name")
    else:
        numbered = names.select(F.col("name").alias("id"), "name")
    known = folder.write(numbered.observe(seen, F.count(F.lit(1)).alias("points")), POINTS)
    n_points = int(seen.get["points"])

    # From here on an edge is (lo, hi) with lo < hi, so that both its directions are one row.
    if isinstance(names.schema["name"].dataType, T.StringType):
        for end in ("src", "dst"):
            ids = known.select(F.col("name").alias(end), F.col("id").alias(f"{end}_id"))
            edges = edges.join(ids, end).drop(end).withColumnRenamed(f"{end}_id", end)
    ends = edges.filter("src != dst").select(
        F.least("src", "dst").alias("lo"), F.greatest("src", "dst").alias("hi"), "weight"
    )
    closest = F.max("weight") if kind == "similarity" else F.min("weight")
    weight = F.col("weight")
    seen = Observation()
    graph = folder.write(
        ends.groupBy("lo", "hi")
        .agg(closest.alias("weight"))
        .observe(
            seen,
            F.count(F.lit(1)).alias("edges"),
            F.min(weight).alias("least"),
            F.max(weight).alias("most"),
        ),
        GRAPH,
    )
    found = seen.get
    if missing is None:
        missing = 0.0 if kind == "similarity" or not found["edges"] else found["most"]
    value: Missing = "ignore" if missing == "ignore" else float(missing)
    least, most = found["least"] or 0.0, found["most"] or 0.0
    return PreparedGraph(Numbers(kind, value, metric, n_points, found["edges"], least, most), graph)


def _of_share(values: DataFrame, rank_of: Callable[[int], int]) -> float | None:
    """The value whose place in the order of all is what ``rank_of`` makes of their number, if there are any.

    It is found by histograms that get finer until a bin has one value.
    """
    column = F.col("value")
    about = [F.count(F.lit(1)).alias("number"), F.min(column).alias("least"), F.max(column).alias("most")]
    bin_ = values.agg(*about).collect()[0]
    rank = rank_of(bin_.number)
    while bin_.number and bin_.least != bin_.most:
        # Rounding may put a value into the bin beside its own, but never out of order.
        width = (bin_.most - bin_.least) / _BINS
        which = F.least(F.floor((column - bin_.least) / width), F.lit(_BINS - 1)).alias("bin")
        for bin_ in sorted(values.groupBy(which).agg(*about).collect()):
            if rank < bin_.number:
                break
            rank -= bin_.number
        values = values.filter(which == bin_.bin)
    return float(bin_.least) if bin_.number else None
