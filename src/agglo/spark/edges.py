"""Validate the user's edges, number the points, and write the cleaned graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from agglo.neighbors.graph import KINDS, Kind, Missing, NeighborGraph
from agglo.rounds.linkage import GRAPH_LINKAGES, LINKAGES
from agglo.spark.folder import GRAPH, POINTS, Folder

_BINS = 4096  # number of bins of a histogram that the driver collects


class GraphSummary(NamedTuple):
    """The size and the weight range of the input graph, with the field names of :class:`agglo.NeighborGraph`."""

    kind: Kind
    missing: Missing
    metric: str | None
    n_points: int
    n_edges: int
    min_weight: float
    max_weight: float


class PreparedGraph:
    """The input graph as a :class:`agglo.neighbors.graph.WeightSummary`, whose quantiles Spark computes."""

    def __init__(self, summary: GraphSummary, table: DataFrame) -> None:
        self._weights = table.select(F.col("weight").cast("double"))
        self.kind, self.missing, self.metric, self.n_points, self.n_edges = summary[:5]
        self.min_weight, self.max_weight = summary[5:]

    def quantile_above(self, bound: float, up: bool, share: float) -> float | None:
        """Return the quantile ``share`` of the weights above ``bound``, or below it if ``up`` is False.

        See :class:`agglo.neighbors.graph.WeightSummary`.
        """
        # If `up` is False, negate the weights, so that ranks start at the bound.
        sign = 1.0 if up else -1.0
        signed = F.lit(sign) * F.col("weight")
        values = self._weights.filter(signed > F.lit(sign * bound)).select(signed.alias("value"))
        # A NeighborGraph stores each edge twice, but this table stores it once.
        # Convert the rank, so that both give the same quantile.
        value = _select_rank(values, lambda n: int(share * (2 * n - 1)) // 2)
        return None if value is None else sign * value


_UNSUPPORTED = ("X", "connect", "top", "must_link", "cannot_link", "max_cluster_size", "sample_weight")


def check_supported(linkage: object, arguments: Mapping[str, object]) -> None:
    """Raise ``ValueError`` if Spark does not support the linkage or one of the named arguments."""
    for name in arguments:
        if name not in _UNSUPPORTED:
            raise TypeError(f"unknown argument {name!r}: see help(agglo.spark.scc)")
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
    """Raise ``ValueError`` if the value of ``kind`` or ``missing`` is invalid."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is unknown: pass 'similarity' or 'distance'")
    if isinstance(missing, str):
        if missing != "ignore":
            raise ValueError(f"missing={missing!r} is unknown: pass a number or 'ignore'")
    elif missing is not None and not math.isfinite(missing):
        raise ValueError(f"missing={missing!r} must be finite, or 'ignore'")


def check_edges(edges: DataFrame) -> DataFrame:
    """Validate the columns of edges; return them with src and dst as long or string, and weight as float."""
    if not isinstance(edges, DataFrame):
        raise TypeError(
            f"expected a Spark DataFrame with columns src, dst and weight, got {type(edges).__name__}: for data "
            "in memory use agglo.scc"
        )
    absent = [name for name in ("src", "dst", "weight") if name not in edges.columns]
    if absent:
        raise ValueError(
            f"edges have no column {absent[0]!r}, only {', '.join(edges.columns)}: rename with withColumnRenamed"
        )
    types = {name: edges.schema[name].dataType for name in ("src", "dst", "weight")}
    if not isinstance(types["weight"], T.NumericType):
        raise TypeError(f"weight must be numeric, got {types['weight'].simpleString()}: cast it")
    kinds = {name: id_type(name, types[name]) for name in ("src", "dst")}
    if kinds["src"] != kinds["dst"]:
        raise TypeError(
            f"src is {kinds['src']} and dst is {kinds['dst']}: ids must have the same type, cast one of them"
        )
    return edges.select(
        F.col("src").cast(kinds["src"]), F.col("dst").cast(kinds["dst"]), F.col("weight").cast("float")
    )


def id_type(name: str, found: T.DataType) -> str:
    """Return the SQL type for ids of type ``found``; raise ``TypeError`` unless they are integers or strings."""
    if isinstance(found, T.StringType):
        return "string"
    if isinstance(found, T.IntegralType):
        return "long"
    raise TypeError(f"{name} must be integers or strings, got {found.simpleString()}: cast it")


def fingerprint(edges: DataFrame, points: DataFrame | None) -> dict[str, Any]:
    """Compute the row count and hashes of the edges and points; raise ``ValueError`` if an edge is invalid."""
    return _check_statistics(edges.agg(*_input_statistics()).collect()[0].asDict(), points)


def collect_edges(edges: DataFrame, points: DataFrame | None) -> tuple[pa.Table, dict[str, Any]]:
    """Load the edges, at least one, into the driver's memory; return them and their :func:`fingerprint`."""
    observed = Observation()
    table = edges.observe(observed, *_input_statistics()).toArrow()
    return table, _check_statistics(observed.get, points)


_INVALID = {
    "a src that is null": "src IS NULL",
    "a dst that is null": "dst IS NULL",
    "a weight that is null": "weight IS NULL",
    "a weight that is not finite (NaN, or too large for float32)": "weight IN ('NaN', 'Infinity', '-Infinity')",
}


def _input_statistics() -> list[Column]:
    """Return SQL aggregates for the fingerprint, and for the number of rows with each error in `_INVALID`."""
    hashes = F.xxhash64("src", "dst", "weight")
    return [
        F.count(F.lit(1)).alias("rows"),
        F.bit_xor(hashes).alias("xor"),
        F.sum(F.pmod(hashes, F.lit(1_000_003))).alias("sum"),  # small terms, so that the sum fits 64 bits
        *(F.count_if(F.coalesce(F.expr(which), F.lit(False))).alias(name) for name, which in _INVALID.items()),
    ]


def _check_statistics(statistics: dict[str, Any], points: DataFrame | None) -> dict[str, Any]:
    for name in _INVALID:
        if statistics[name]:
            rows = f"{statistics[name]} of {statistics['rows']}"
            raise ValueError(f"{rows} edges have {name}: remove them with filter")
    found = {name: statistics[name] for name in ("rows", "xor", "sum")}
    if points is not None:
        extra = points.agg(F.count(F.lit(1)).alias("rows"), F.bit_xor(F.xxhash64(*points.columns)).alias("xor"))
        found["points"] = list(extra.collect()[0])
    if not found["rows"] and not (points is not None and found["points"][0]):
        raise ValueError("there are no edges: the table is empty; pass at least one, or points without edges")
    return found


class DriverGraph(NamedTuple):
    """The input graph in the memory of the driver."""

    ids: npt.NDArray[np.int64]
    """The sorted ids of the points."""
    graph: NeighborGraph


def load_driver_graph(edges: pa.Table, **options: Any) -> DriverGraph:
    """Build the graph in memory from the rows of the table `GRAPH`.

    ``options`` are the values of kind, missing and metric of the graph.
    """
    ids, (lo, hi) = _encode(edges["lo"], edges["hi"])
    graph = NeighborGraph.from_edges(lo, hi, edges["weight"].to_numpy(), n_points=len(ids), **options)
    return DriverGraph(ids.to_numpy(), graph)


def prepare_driver_graph(edges: pa.Table, points: DataFrame | None, folder: Folder, **options: Any) -> DriverGraph:
    """Build the graph in memory from the user's edges, and write the tables `POINTS` and `GRAPH` of the run.

    ``options`` are the values of kind, missing and metric of the graph.
    """
    columns = [edges["src"], edges["dst"]]
    if points is not None:
        kind = "string" if pa.types.is_string(columns[0].type) else "bigint"
        extra = points.select(F.col(points.columns[0]).cast(kind).alias("name")).toArrow()["name"]
        if extra.null_count:
            raise _null_id_error(kind)
        columns.append(extra)
    names, (src, dst, *_) = _encode(*columns)
    graph = NeighborGraph.from_edges(src, dst, edges["weight"].to_numpy(), n_points=len(names), **options)
    ids = np.arange(len(names)) if pa.types.is_string(names.type) else names.to_numpy()
    folder.write(folder.upload(pa.table({"id": ids, "name": names})), POINTS)
    row = np.repeat(np.arange(len(ids), dtype=np.int32), np.diff(graph.indptr))
    once = row < graph.indices
    rows = {"lo": ids[row[once]], "hi": ids[graph.indices[once]], "weight": graph.weights[once]}
    del row, once
    folder.write(folder.upload(pa.table(rows)), GRAPH)
    return DriverGraph(ids, graph)


def _encode(*columns: pa.ChunkedArray) -> tuple[pa.Array, list[npt.NDArray[np.int32]]]:
    """Return the sorted distinct values of all columns, and each column as positions in these values."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    encoded = pa.chunked_array(chunks, columns[0].type).dictionary_encode().chunks
    values = encoded[0].dictionary if encoded else pa.array([], columns[0].type)
    order = pc.sort_indices(values)
    rank = np.empty(len(values), np.int32)
    rank[order.to_numpy()] = np.arange(len(values), dtype=np.int32)
    codes = rank[np.concatenate([np.empty(0, np.int32), *(chunk.indices.to_numpy() for chunk in encoded)])]
    return values.take(order), np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def _null_id_error(kind: str) -> ValueError:
    return ValueError(f"points have an id that is null or not a {kind}: leave it out, or cast it")


def prepare_graph(
    edges: DataFrame,
    points: DataFrame | None,
    folder: Folder,
    *,
    kind: Kind,
    missing: Missing | None,
    metric: str | None,
) -> PreparedGraph:
    """Write the tables `POINTS` and `GRAPH` of a run; return the graph with its summary.

    Self-loops are dropped, but their points are kept. If two points have several edges, in either direction, the
    closest edge is kept.
    """
    names = edges.select(F.explode(F.array("src", "dst")).alias("name"))
    if points is not None:
        names = names.unionByName(
            points.select(F.col(points.columns[0]).cast(names.schema[0].dataType).alias("name"))
        )
        if names.filter(F.col("name").isNull()).count():
            raise _null_id_error(names.schema[0].dataType.simpleString())
    observed = Observation()
    names = names.distinct()
    if isinstance(names.schema["name"].dataType, T.StringType):
        # Sort the names, so that ids have the same order. Ids need not be consecutive.
        numbered = names.orderBy("name").select(F.monotonically_increasing_id().alias("id"), "name")
    else:
        numbered = names.select(F.col("name").alias("id"), "name")
    point_table = folder.write(numbered.observe(observed, F.count(F.lit(1)).alias("points")), POINTS)
    n_points = int(observed.get["points"])

    # Store an edge as (lo, hi) with lo < hi, so that both directions become the same row.
    if isinstance(names.schema["name"].dataType, T.StringType):
        for end in ("src", "dst"):
            ids = point_table.select(F.col("name").alias(end), F.col("id").alias(f"{end}_id"))
            edges = edges.join(ids, end).drop(end).withColumnRenamed(f"{end}_id", end)
    ends = edges.filter("src != dst").select(
        F.least("src", "dst").alias("lo"), F.greatest("src", "dst").alias("hi"), "weight"
    )
    closest = F.max("weight") if kind == "similarity" else F.min("weight")
    weight = F.col("weight")
    observed = Observation()
    graph = folder.write(
        ends.groupBy("lo", "hi")
        .agg(closest.alias("weight"))
        .observe(
            observed,
            F.count(F.lit(1)).alias("edges"),
            F.min(weight).alias("min"),
            F.max(weight).alias("max"),
        ),
        GRAPH,
    )
    found = observed.get
    if missing is None:
        missing = 0.0 if kind == "similarity" or not found["edges"] else found["max"]
    value: Missing = "ignore" if missing == "ignore" else float(missing)
    summary = GraphSummary(kind, value, metric, n_points, found["edges"], found["min"] or 0.0, found["max"] or 0.0)
    return PreparedGraph(summary, graph)


def _select_rank(values: DataFrame, rank_of: Callable[[int], int]) -> float | None:
    """Return the value at rank ``rank_of(n)`` of the ``n`` sorted values; None if the table is empty.

    Instead of sorting, successive histograms narrow the range of values until it contains a single value.
    """
    column = F.col("value")
    statistics = [F.count(F.lit(1)).alias("n"), F.min(column).alias("min"), F.max(column).alias("max")]
    found = values.agg(*statistics).collect()[0]
    rank = rank_of(found.n)
    while found.n and found.min != found.max:
        # Rounding may put a value into an adjacent bin, but the order of the values is preserved.
        width = (found.max - found.min) / _BINS
        bin_number = F.least(F.floor((column - found.min) / width), F.lit(_BINS - 1)).alias("bin")
        for found in sorted(values.groupBy(bin_number).agg(*statistics).collect()):
            if rank < found.n:
                break
            rank -= found.n
        values = values.filter(bin_number == found.bin)
    return float(found.min) if found.n else None
