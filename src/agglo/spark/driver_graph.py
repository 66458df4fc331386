"""A small input graph, which the driver loads into memory, cleans, and passes to the C++ core."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agglo.neighbors.graph import Kind, Missing, NeighborGraph
from agglo.progress import Progress
from agglo.rounds import algorithms
from agglo.rounds.schedule import RoundPlan
from agglo.spark.folder import GRAPH, POINTS, Folder
from agglo.spark.handoff import CoreResult

Ints = npt.NDArray[np.int64]


class DriverGraph(NamedTuple):
    """The input graph in the memory of the driver."""

    ids: Ints
    """The sorted ids of the points."""
    graph: NeighborGraph

    def run_core(self, plan: RoundPlan, progress: Progress | None) -> CoreResult:
        """Run all rounds of the plan in the core."""
        forest = algorithms.run_core(None, progress, self.graph, plan, None)
        return CoreResult(self.ids, np.ones(len(self.ids), np.int64), forest)


def load_driver_graph(edges: pa.Table, kind: Kind, missing: Missing | None, metric: str | None) -> DriverGraph:
    """Build the graph in memory from the table `GRAPH`, with the columns lo, hi and weight."""
    ids, codes = _encode(edges["lo"], edges["hi"])
    return DriverGraph(ids.to_numpy(), _build_graph(codes, edges["weight"], len(ids), kind, missing, metric))


def prepare_driver_graph(
    edges: pa.Table,
    points: DataFrame | None,
    folder: Folder,
    kind: Kind,
    missing: Missing | None,
    metric: str | None,
) -> DriverGraph:
    """Build the graph in memory from the user's edges; write the tables `POINTS` and `GRAPH` of the run."""
    columns = [edges["src"], edges["dst"]]
    if points is not None:
        columns.append(_read_names(points, columns[0].type))
    names, codes = _encode(*columns)
    graph = _build_graph(codes[:2], edges["weight"], len(names), kind, missing, metric)
    ids = np.arange(len(names)) if pa.types.is_string(names.type) else names.to_numpy()
    folder.write(folder.upload(pa.table({"id": ids, "name": names})), POINTS)
    row = np.repeat(np.arange(len(ids), dtype=np.int32), np.diff(graph.indptr))
    once = row < graph.indices
    rows = {"lo": ids[row[once]], "hi": ids[graph.indices[once]], "weight": graph.weights[once]}
    del row, once
    folder.write(folder.upload(pa.table(rows)), GRAPH)
    return DriverGraph(ids, graph)


def _read_names(points: DataFrame, kind: pa.DataType) -> pa.ChunkedArray:
    name = "string" if pa.types.is_string(kind) else "bigint"
    column = points.select(F.col(points.columns[0]).cast(name).alias("name")).toArrow()["name"]
    if column.null_count:
        raise ValueError(f"points have an id that is null or not a {name}: leave it out, or cast it")
    return column


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


def _build_graph(
    ends: list[npt.NDArray[np.int32]],
    weights: pa.ChunkedArray,
    n_points: int,
    kind: Kind,
    missing: Missing | None,
    metric: str | None,
) -> NeighborGraph:
    sources, targets = ends
    return NeighborGraph.from_edges(
        sources, targets, weights.to_numpy(), n_points=n_points, kind=kind, missing=missing, metric=metric
    )
