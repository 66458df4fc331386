"""Neighbour graphs on Spark: points that fall into one bucket are compared, by the core, many buckets at a time.

Comparing all pairs is out of the question, so points are dealt into buckets in which close points are likely to
meet, several times over: vectors by the sides of random planes that they lie on, sets of words by MinHash. Inside
a bucket the search is exact; of all that was found for a point, its nearest stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

import agglo
from agglo import _core
from agglo._validation import check_positive
from agglo.neighbors.graph import Kind, Missing, RecallEstimate
from agglo.neighbors.search import METRICS
from agglo.spark.edges import id_type
from agglo.spark.folder import Folder
from agglo.spark.round import Kept

_MORE_BITS = 8  # by which a bucket that is too large may be split by planes, before it is split by chance
Floats = npt.NDArray[np.float32]


class SparkGraph(NamedTuple):
    """A neighbour graph as a table, with what :func:`agglo.spark.scc` has to know of it."""

    edges: DataFrame
    """``src``, ``dst``, ``weight``: from each point to its nearest."""
    kind: Kind
    missing: Missing | None
    metric: str
    recall_estimate: RecallEstimate
    """The share of the true neighbours that was found, as measured on a sample of the points."""
    parameters: dict[str, Any]
    """The settings, and how many buckets there were, and were split because they were too large."""


def neighbor_graph(
    points: DataFrame,
    path: str,
    n_neighbors: int = 25,
    metric: str = "cosine",
    *,
    repetitions: int = 8,
    bucket_size: int = 4000,
    sample: int = 200,
    random_state: int = 0,
) -> SparkGraph:
    """Graph that joins every vector with nearly all of its nearest neighbours.

    Parameters
    ----------
    points : DataFrame
        Columns ``id``, whole numbers or strings, and ``vector``, arrays of numbers, all of one length.
    path : str
        A folder that all machines see; the edges are written there.
    n_neighbors : int
        Neighbours to keep for each point.
    metric : {"cosine", "dot", "sqeuclidean", "euclidean"}
        As for :func:`agglo.neighbor_graph`.
    repetitions : int
        How many times points are dealt into buckets: more find more of the true neighbours.
    bucket_size : int
        At most so many points in a bucket. One that is larger is split, first by more planes, then by chance;
        no point is left out.
    sample : int
        How many points the recall is measured on, by comparing them with all.
    random_state : int
        Where chance begins. The same number gives the same graph.
    """
    if metric not in ("cosine", "dot", "sqeuclidean", "euclidean"):
        raise ValueError(f"metric={metric!r} is unknown here: pass cosine, dot, sqeuclidean or euclidean")
    kind = _check(points, "vector", "array<float>")
    points = points.select(F.col("id").cast(kind), F.col("vector").cast("array<float>"))
    repetitions, bucket_size = (
        check_positive("repetitions", repetitions),
        check_positive("bucket_size", bucket_size),
    )
    n = points.count()
    bits = max(0, math.ceil(math.log2(max(n, 1) / (bucket_size / 2))))
    planes, offsets = _planes(points, repetitions, bits + _MORE_BITS, random_state)

    def sides(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Of each point and repetition, a number whose bits say on which side of each plane it lies."""
        powers = 2 ** np.arange(bits + _MORE_BITS, dtype=np.int64)[::-1]
        for batch in batches:
            X = _matrix(batch.column("vector"))
            side = (offsets < X @ planes.T).reshape(len(X), repetitions, -1) @ powers
            ids = np.repeat(batch.column("id").to_numpy(zero_copy_only=False), repetitions)
            deal = np.tile(np.arange(repetitions), len(X))
            yield pa.RecordBatch.from_pydict({"id": ids, "deal": deal, "side": side.ravel()})

    with Kept() as kept:
        dealt = kept(points.mapInArrow(sides, f"id {kind}, deal long, side long"))
        # A bucket is a number of leading bits; one that holds too many points takes more of them into account.
        coarse = F.shiftright("side", _MORE_BITS).alias("coarse")
        deeper = F.ceil(F.log2(F.col("n") / bucket_size))
        counts = (
            dealt.groupBy("deal", coarse)
            .agg(F.count(F.lit(1)).alias("n"))
            .select(
                "deal",
                "coarse",
                F.greatest(F.lit(0), F.least(F.lit(_MORE_BITS), deeper)).cast("int").alias("more"),
            )
        )
        finer = F.expr(f"shiftright(side, {_MORE_BITS} - more)")
        placed = dealt.withColumn("coarse", coarse).join(counts, ["deal", "coarse"])
        buckets = placed.select("id", F.xxhash64("deal", "more", finer).alias("bucket"))
        return _searched(
            kept,
            buckets,
            points,
            path,
            n_neighbors,
            metric,
            bucket_size,
            sample,
            {"repetitions": repetitions, "bits": bits, "random_state": random_state},
        )


def set_graph(
    sets: DataFrame,
    path: str,
    n_neighbors: int = 25,
    *,
    bands: int = 20,
    rows: int = 2,
    bucket_size: int = 4000,
    sample: int = 200,
) -> SparkGraph:
    """Graph that joins every set with nearly all of its nearest neighbours by Jaccard distance, by MinHash.

    Two sets of Jaccard similarity s share a bucket with probability 1 - (1 - s**rows)**bands.

    Parameters
    ----------
    sets : DataFrame
        Columns ``id``, whole numbers or strings, and ``tokens``, arrays of strings: the words of a text, or its
        shingles.
    path, n_neighbors, bucket_size, sample
        As for :func:`neighbor_graph`.
    bands, rows : int
        So many buckets for each set, each of so many hashes.
    """
    kind = _check(sets, "tokens", "array<string>")
    bands, rows = check_positive("bands", bands), check_positive("rows", rows)
    sets = sets.select(F.col("id").cast(kind), F.array_distinct("tokens").alias("tokens"))

    def least(seed: int) -> Column:
        return F.array_min(F.transform("tokens", lambda token: F.xxhash64(token, F.lit(seed))))

    keys = [F.xxhash64(F.lit(b), *(least(b * rows + r) for r in range(rows))) for b in range(bands)]
    with Kept() as kept:
        buckets = kept(sets.filter(F.size("tokens") > 0).select("id", F.explode(F.array(*keys)).alias("bucket")))
        about = {"bands": bands, "rows": rows}
        return _searched(kept, buckets, sets, path, n_neighbors, "jaccard", bucket_size, sample, about)


def _searched(
    kept: Kept,
    buckets: DataFrame,
    points: DataFrame,
    path: str,
    n_neighbors: int,
    metric: str,
    bucket_size: int,
    sample: int,
    about: dict[str, Any],
) -> SparkGraph:
    """The graph of what is found in buckets (id, bucket) of points (id and a column that they are compared by)."""
    k, kind = check_positive("n_neighbors", n_neighbors), METRICS[metric]
    ids = points.schema["id"].dataType.simpleString()
    folder = Folder(points.sparkSession, path)
    sizes = kept(buckets.groupBy("bucket").agg(F.count(F.lit(1)).alias("n")))
    number, split = sizes.agg(F.count(F.lit(1)), F.count_if(F.col("n") > bucket_size)).collect()[0]
    parts = F.ceil(F.col("n") / bucket_size)
    part = F.pmod(F.xxhash64("id", "bucket"), parts).alias("part")
    placed = buckets.join(sizes.filter("n > 1"), "bucket").select("id", "bucket", part).distinct()

    def search(key: Any, table: pa.Table) -> pa.Table:
        return _edges(table, k, metric)

    found = (
        placed.join(points, "id")
        .groupBy("bucket", "part")
        .applyInArrow(search, f"src {ids}, dst {ids}, weight float")
    )
    closest = F.desc("weight") if kind == "similarity" else F.asc("weight")
    nearest = Window.partitionBy("src").orderBy(closest, "dst")
    best = found.distinct().withColumn("rank", F.row_number().over(nearest)).filter(F.col("rank") <= k)
    edges = folder.write(best.drop("rank"), "edges")
    recall = _recall(points, edges, k, metric, check_positive("sample", sample))
    missing = 1.0 if metric == "jaccard" else None
    parameters = {"n_neighbors": k, "buckets": number, "split": split, "bucket_size": bucket_size, **about}
    return SparkGraph(edges, kind, missing, metric, recall, parameters)


def _check(points: DataFrame, column: str, wanted: str) -> str:
    """The type of the ids; raises if points cannot be compared."""
    absent = [name for name in ("id", column) if name not in points.columns]
    if absent:
        raise ValueError(f"points have no column {absent[0]!r}, only {', '.join(points.columns)}: rename one")
    kind = id_type("id", points.schema["id"].dataType)
    found = points.schema[column].dataType.simpleString()
    if not found.startswith("array<"):
        raise TypeError(f"{column} must be {wanted}, got {found}: make it an array")
    if points.filter(F.col("id").isNull() | F.col(column).isNull()).count():
        raise ValueError(f"some points have an id or a {column} that is null: leave them out with filter")
    return kind


def _matrix(column: pa.Array) -> npt.NDArray[np.float64]:
    """Arrays of one length as rows."""
    values = np.asarray(column.flatten(), np.float64)
    if len(column) and len(values) % len(column):
        raise ValueError("vectors must be of one length")
    return values.reshape(len(column), -1)


def _features(column: pa.ChunkedArray) -> Any:
    """What points are compared by, as the search takes it: vectors as a matrix, sets as a sparse one."""
    array = column.combine_chunks()
    if pa.types.is_floating(array.type.value_type):
        return _matrix(array).astype(np.float32)
    tokens = array.flatten().dictionary_encode()
    indptr = np.concatenate([[0], np.cumsum(array.value_lengths().to_numpy())])
    indices = tokens.indices.to_numpy()
    shape = (len(array), max(1, len(tokens.dictionary)))
    return sp.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)


def _edges(table: pa.Table, n_neighbors: int, metric: str) -> pa.Table:
    """The exact neighbours of points within one bucket."""
    ids = table["id"].to_numpy()
    column = next(name for name in table.column_names if name in ("vector", "tokens"))
    graph = agglo.neighbor_graph(_features(table[column]), min(n_neighbors, len(ids) - 1), metric, n_jobs=1)
    sources = np.repeat(ids, np.diff(graph.indptr))
    return pa.table({"src": sources, "dst": ids[graph.indices], "weight": graph.weights})


def _planes(points: DataFrame, repetitions: int, bits: int, seed: int) -> tuple[Floats, Floats]:
    """Planes half-way between random pairs of points, so that they cut where the points are."""
    number = 2 * repetitions * bits
    rows = points.orderBy(F.xxhash64("id", F.lit(seed)), "id").limit(number).select("vector").toArrow()
    if not len(rows):
        raise ValueError("there are no points: the table is empty; pass at least one")
    X = _matrix(rows["vector"].combine_chunks())
    rng = np.random.default_rng(seed)
    a, b = (X[rng.integers(0, len(X), number // 2)] for _ in range(2))
    normal = np.where((a == b).all(axis=1)[:, None], rng.normal(size=a.shape), a - b)
    return normal, ((a + b) / 2 * normal).sum(axis=1)


def _recall(points: DataFrame, edges: DataFrame, k: int, metric: str, sample: int) -> RecallEstimate:
    """The share of the true neighbours of a sample that was found, ties counting as found."""
    asked = points.orderBy(F.xxhash64("id", F.lit(1)), "id").limit(sample).toArrow()
    ids, wanted, kind = points.schema["id"].dataType.simpleString(), asked["id"].to_numpy(), METRICS[metric]

    def compared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The nearest of the sample among the points of each batch."""
        for batch in batches:
            both = pa.Table.from_batches([batch.cast(asked.schema)])
            values = _compared(pa.concat_tables([asked, both]), len(wanted), metric)
            values[wanted[:, None] == both["id"].to_numpy()[None, :]] = -np.inf  # a point is not its own neighbour
            top = np.argsort(-values, axis=1, kind="stable")[:, :k]
            value = np.take_along_axis(values, top, 1).ravel()
            there = np.isfinite(value)
            src = np.repeat(wanted, top.shape[1])[there]
            yield pa.RecordBatch.from_pydict({"src": src, "value": value[there]})

    close = F.col("weight") if kind == "similarity" else -F.col("weight")
    rows = points.mapInArrow(compared, f"src {ids}, value double")
    place = F.row_number().over(Window.partitionBy("src").orderBy(F.desc("value")))
    true = rows.withColumn("rank", place).filter(F.col("rank") <= k)
    bar = true.groupBy("src").agg(F.min("value").alias("bar"), F.count(F.lit(1)).alias("n"))
    reached = close.cast("double") >= F.col("bar") - 1e-5 * F.abs("bar")
    hits = edges.join(F.broadcast(bar), "src").filter(reached).groupBy("src").agg(F.count(F.lit(1)).alias("hits"))
    shares = bar.join(hits, "src", "left").select(
        (F.least("n", F.coalesce("hits", F.lit(0))) / F.col("n")).alias("s")
    )
    found = np.array([row.s for row in shares.collect()], dtype=np.float64)
    return RecallEstimate(*_core.recall_of(found, k)) if len(found) else RecallEstimate(1.0, 0.0, 0)


def _compared(table: pa.Table, n: int, metric: str) -> npt.NDArray[np.float64]:
    """How close the first ``n`` points of a table are to the others, larger being closer."""
    column = next(name for name in table.column_names if name in ("vector", "tokens"))
    X = _features(table[column])
    A, B = X[:n], X[n:]
    if metric == "jaccard":
        common = (A @ B.T).toarray()
        sizes = np.asarray(X.sum(axis=1)).ravel()
        return np.asarray(common / np.maximum(sizes[:n, None] + sizes[None, n:] - common, 1) - 1, np.float64)
    A, B = A.astype(np.float64), B.astype(np.float64)
    if metric == "cosine":
        A, B = (Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), 1e-300) for Y in (A, B))
    if METRICS[metric] == "similarity":
        return np.asarray(A @ B.T)
    squares = np.maximum((A**2).sum(1)[:, None] + (B**2).sum(1)[None] - 2 * A @ B.T, 0)
    return np.asarray(-squares if metric == "sqeuclidean" else -np.sqrt(squares))
