"""A table that fits the driver from the start: cleaned there and handed to the core, without a shuffle."""

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
from agglo.rounds.algorithms import run_core
from agglo.rounds.plan import RoundPlan
from agglo.spark.folder import GRAPH, POINTS, Folder
from agglo.spark.handoff import HandedOff

Ints = npt.NDArray[np.int64]


class Whole(NamedTuple):
    """A graph of points in the driver."""

    ids: Ints
    """Of its points, in order."""
    graph: NeighborGraph

    def handed_off(self, plan: RoundPlan, progress: Progress | None) -> HandedOff:
        """What the core makes of it."""
        forest = run_core(None, progress, self.graph, plan, None)
        return HandedOff(self.ids, np.ones(len(self.ids), np.int64), forest)


def whole(edges: pa.Table, kind: Kind, missing: Missing | None, metric: str | None) -> Whole:
    """The graph of rows lo, hi, weight by ids."""
    ids, places = _numbered(edges["lo"], edges["hi"])
    return Whole(ids.to_numpy(), _graph(places, edges["weight"], len(ids), kind, missing, metric))


def prepare_whole(
    edges: pa.Table,
    points: DataFrame | None,
    folder: Folder,
    kind: Kind,
    missing: Missing | None,
    metric: str | None,
) -> Whole:
    """The same of rows src, dst, weight by names; writes what :func:`agglo.spark.edges.prepare` does."""
    columns = [edges["src"], edges["dst"]]
    if points is not None:
        columns.append(_named(points, columns[0].type))
    names, places = _numbered(*columns)
    graph = _graph(places[:2], edges["weight"], len(names), kind, missing, metric)
    ids = np.arange(len(names)) if pa.types.is_string(names.type) else names.to_numpy()
    folder.write(folder.sent(pa.table({"id": ids, "name": names})), POINTS)
    row = np.repeat(np.arange(len(ids), dtype=np.int32), np.diff(graph.indptr))
    once = row < graph.indices
    rows = {"lo": ids[row[once]], "hi": ids[graph.indices[once]], "weight": graph.weights[once]}
    del row, once
    folder.write(folder.sent(pa.table(rows)), GRAPH)
    return Whole(ids, graph)


def _named(points: DataFrame, kind: pa.DataType) -> pa.ChunkedArray:
    name = "string" if pa.types.is_string(kind) else "bigint"
    column = points.select(F.col(points.columns[0]).cast(name).alias("name")).toArrow()["name"]
    if column.null_count:
        raise ValueError(f"points have an id that is null, or no {name}")
    return column


def _numbered(*columns: pa.ChunkedArray) -> tuple[pa.Array, list[npt.NDArray[np.int32]]]:
    """All values of the columns in order, strings by their bytes; and the places of each column's in it."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    codes = pa.chunked_array(chunks, columns[0].type).dictionary_encode().chunks
    values = codes[0].dictionary if codes else pa.array([], columns[0].type)
    order = pc.sort_indices(values)
    place = np.empty(len(values), np.int32)
    place[order.to_numpy()] = np.arange(len(values), dtype=np.int32)
    places = place[np.concatenate([np.empty(0, np.int32), *(code.indices.to_numpy() for code in codes)])]
    return values.take(order), np.split(places, np.cumsum([len(column) for column in columns])[:-1])


def _graph(
    places: list[npt.NDArray[np.int32]],
    weights: pa.ChunkedArray,
    n_points: int,
    kind: Kind,
    missing: Missing | None,
    metric: str | None,
) -> NeighborGraph:
    sources, targets = places
    return NeighborGraph.from_edges(
        sources, targets, weights.to_numpy(), n_points=n_points, kind=kind, missing=missing, metric=metric
    )
