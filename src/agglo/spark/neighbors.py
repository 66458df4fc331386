"""Approximate neighbour graphs on Spark, by locality-sensitive hashing.

Each point is hashed into several buckets, so that close points are likely to share a bucket. Vectors are hashed by
random hyperplanes. Sets are hashed by MinHash. The C++ core searches each bucket exactly, and Spark runs many
buckets in parallel. Each point keeps the nearest neighbours found in all its buckets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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
from agglo.neighbors.index import NeighborIndex
from agglo.neighbors.search import METRICS
from agglo.spark.edges import id_type
from agglo.spark.folder import Folder
from agglo.spark.round import cached_frames

_SPLIT_BITS = 8  # extra hash bits that split a bucket with too many points
Floats = npt.NDArray[np.float32]


class SparkGraph(NamedTuple):
    """A neighbour graph as a Spark table, with the arguments to pass to :func:`agglo.spark.scc`.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> points = spark.createDataFrame([(0, [1.0, 0.0]), (1, [0.9, 0.1])], "id long, vector array<double>")
    >>> graph = agglo.spark.neighbor_graph(points, "graph-edges", n_neighbors=1)
    >>> graph.kind, graph.metric
    ('similarity', 'cosine')
    """

    edges: DataFrame
    """The columns ``src``, ``dst`` and ``weight``, with one row per point and nearest neighbour."""
    kind: Kind
    missing: Missing | None
    metric: str
    recall_estimate: RecallEstimate
    """The recall: the share of the true nearest neighbours that was found, measured on sampled points."""
    parameters: dict[str, Any]
    """The parameters of the search, the number of buckets, and the number of buckets that were split."""


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
    """Search the approximate nearest neighbours of vectors; return the neighbour graph.

    Parameters
    ----------
    points : DataFrame
        Columns ``id`` (integers or strings) and ``vector`` (arrays of numbers, all of the same length).
    path : str
        The folder for the edges, on a file system that all machines share.
    n_neighbors : int
        The number of neighbours per point.
    metric : {"cosine", "dot", "sqeuclidean", "euclidean"}
        As for :func:`agglo.neighbor_graph`.
    repetitions : int
        The number of hash tables. More hash tables increase the recall and the time.
    bucket_size : int
        The maximum number of points in a bucket. A larger bucket is split by more hyperplanes, then at random.
    sample : int
        The number of points on which the recall is measured. Their true neighbours are found by exact search.
    random_state : int
        The random seed. The same seed gives the same graph.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [(0, [1.0, 0.0]), (1, [0.9, 0.1]), (2, [0.0, 1.0]), (3, [0.1, 0.9])]
    >>> points = spark.createDataFrame(rows, "id long, vector array<double>")
    >>> graph = agglo.spark.neighbor_graph(points, "edges", n_neighbors=1)
    >>> sorted((row.src, row.dst) for row in graph.edges.collect())
    [(0, 1), (1, 0), (2, 3), (3, 2)]
    """
    if metric not in ("cosine", "dot", "sqeuclidean", "euclidean"):
        raise ValueError(
            f"metric={metric!r} is not supported on Spark: pass cosine, dot, sqeuclidean or euclidean"
        )
    id_kind = _check_points(points, "vector", "array<float>")
    points = points.select(F.col("id").cast(id_kind), F.col("vector").cast("array<float>"))
    repetitions = check_positive("repetitions", repetitions)
    bucket_size = check_positive("bucket_size", bucket_size)
    n = points.count()
    bits = max(0, math.ceil(math.log2(max(n, 1) / (bucket_size / 2))))
    planes, offsets = _draw_planes(points, repetitions, bits + _SPLIT_BITS, random_state)

    def hash_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Hash each point once per repetition; each bit is the side of a hyperplane on which the point lies."""
        powers = 2 ** np.arange(bits + _SPLIT_BITS, dtype=np.int64)[::-1]
        for batch in batches:
            X = _matrix(batch.column("vector"))
            hashes = (offsets < X @ planes.T).reshape(len(X), repetitions, -1) @ powers
            ids = np.repeat(batch.column("id").to_numpy(zero_copy_only=False), repetitions)
            repetition = np.tile(np.arange(repetitions), len(X))
            yield pa.RecordBatch.from_pydict({"id": ids, "repetition": repetition, "hash": hashes.ravel()})

    with cached_frames() as cache:
        hashed = cache(points.mapInArrow(hash_batches, f"id {id_kind}, repetition long, hash long"))
        # The leading bits of the hash identify the bucket. If a bucket has too many points, further bits split it.
        coarse = F.shiftright("hash", _SPLIT_BITS).alias("coarse")
        needed = F.ceil(F.log2(F.col("n") / bucket_size))
        counts = (
            hashed.groupBy("repetition", coarse)
            .agg(F.count(F.lit(1)).alias("n"))
            .select(
                "repetition",
                "coarse",
                F.greatest(F.lit(0), F.least(F.lit(_SPLIT_BITS), needed)).cast("int").alias("more"),
            )
        )
        finer = F.expr(f"shiftright(hash, {_SPLIT_BITS} - more)")
        split = hashed.withColumn("coarse", coarse).join(counts, ["repetition", "coarse"])
        buckets = split.select("id", F.xxhash64("repetition", "more", finer).alias("bucket"))
        return _search_buckets(
            cache,
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
    """Search the approximate nearest neighbours of sets by Jaccard distance; return the neighbour graph.

    The search uses MinHash. Two sets with Jaccard similarity s share a bucket with probability
    1 - (1 - s**rows)**bands.

    Parameters
    ----------
    sets : DataFrame
        Columns ``id`` (integers or strings) and ``tokens`` (arrays of strings, such as the words of a text).
    path, n_neighbors, bucket_size, sample
        As for :func:`neighbor_graph`.
    bands, rows : int
        ``bands`` is the number of buckets per set. ``rows`` is the number of MinHashes that identify a bucket.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [("a", ["red", "green"]), ("b", ["red", "green", "blue"]), ("c", ["black"])]
    >>> sets = spark.createDataFrame(rows, "id string, tokens array<string>")
    >>> graph = agglo.spark.set_graph(sets, "set-edges", n_neighbors=1)
    >>> sorted((row.src, row.dst) for row in graph.edges.collect())
    [('a', 'b'), ('b', 'a')]
    """
    id_kind = _check_points(sets, "tokens", "array<string>")
    bands, rows = check_positive("bands", bands), check_positive("rows", rows)
    sets = sets.select(F.col("id").cast(id_kind), F.array_distinct("tokens").alias("tokens"))

    def min_hash(seed: int) -> Column:
        return F.array_min(F.transform("tokens", lambda token: F.xxhash64(token, F.lit(seed))))

    keys = [F.xxhash64(F.lit(b), *(min_hash(b * rows + r) for r in range(rows))) for b in range(bands)]
    with cached_frames() as cache:
        buckets = cache(sets.filter(F.size("tokens") > 0).select("id", F.explode(F.array(*keys)).alias("bucket")))
        parameters = {"bands": bands, "rows": rows}
        return _search_buckets(cache, buckets, sets, path, n_neighbors, "jaccard", bucket_size, sample, parameters)


def _search_buckets(
    cache: Callable[[DataFrame], DataFrame],
    buckets: DataFrame,
    points: DataFrame,
    path: str,
    n_neighbors: int,
    metric: str,
    bucket_size: int,
    sample: int,
    parameters: dict[str, Any],
) -> SparkGraph:
    """Search each bucket exactly, keep the nearest neighbours of each point, and write the neighbour graph.

    ``buckets`` has the columns id and bucket. ``points`` has the columns id and vector, or id and tokens. Buckets
    of more than ``bucket_size`` points are split at random.
    """
    k, kind = check_positive("n_neighbors", n_neighbors), METRICS[metric]
    ids = points.schema["id"].dataType.simpleString()
    folder = Folder(points.sparkSession, path)
    sizes = cache(buckets.groupBy("bucket").agg(F.count(F.lit(1)).alias("n")))
    n_buckets, n_split = sizes.agg(F.count(F.lit(1)), F.count_if(F.col("n") > bucket_size)).collect()[0]
    parts = F.ceil(F.col("n") / bucket_size)
    part = F.pmod(F.xxhash64("id", "bucket"), parts).alias("part")
    members = buckets.join(sizes.filter("n > 1"), "bucket").select("id", "bucket", part).distinct()

    def search(key: Any, table: pa.Table) -> pa.Table:
        return _bucket_edges(table, k, metric)

    found = (
        members.join(points, "id")
        .groupBy("bucket", "part")
        .applyInArrow(search, f"src {ids}, dst {ids}, weight float")
    )
    closest = F.desc("weight") if kind == "similarity" else F.asc("weight")
    nearest = Window.partitionBy("src").orderBy(closest, "dst")
    best = found.distinct().withColumn("rank", F.row_number().over(nearest)).filter(F.col("rank") <= k)
    edges = folder.write(best.drop("rank"), "edges")
    recall = _measure_recall(points, edges, k, metric, check_positive("sample", sample))
    missing = 1.0 if metric == "jaccard" else None
    counts = {"n_neighbors": k, "buckets": n_buckets, "split": n_split, "bucket_size": bucket_size}
    return SparkGraph(edges, kind, missing, metric, recall, counts | parameters)


def _check_points(points: DataFrame, column: str, wanted: str) -> str:
    """Validate the columns of points; return the SQL type of the ids."""
    absent = [name for name in ("id", column) if name not in points.columns]
    if absent:
        raise ValueError(f"points have no column {absent[0]!r}, only {', '.join(points.columns)}: rename one")
    kind = id_type("id", points.schema["id"].dataType)
    found = points.schema[column].dataType.simpleString()
    if not found.startswith("array<"):
        raise TypeError(f"{column} must be {wanted}, got {found}: convert it to an array")
    if points.filter(F.col("id").isNull() | F.col(column).isNull()).count():
        raise ValueError(f"some points have an id or a {column} that is null: remove them with filter")
    return kind


def _matrix(column: pa.Array) -> npt.NDArray[np.float64]:
    """Convert a column of arrays of equal length to a matrix with one row per array."""
    values = np.asarray(column.flatten(), np.float64)
    if len(column) and len(values) % len(column):
        raise ValueError("vectors differ in length: pass vectors of equal length")
    return values.reshape(len(column), -1)


def _features(table: pa.Table) -> Any:
    """Convert the column ``vector`` to a dense matrix, or the column ``tokens`` to a sparse matrix."""
    if "vector" in table.column_names:
        return _matrix(table["vector"].combine_chunks()).astype(np.float32)
    array = table["tokens"].combine_chunks()
    tokens = array.flatten().dictionary_encode()
    indptr = np.concatenate([[0], np.cumsum(array.value_lengths().to_numpy())])
    indices = tokens.indices.to_numpy()
    shape = (len(array), max(1, len(tokens.dictionary)))
    return sp.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=shape)


def _bucket_edges(table: pa.Table, n_neighbors: int, metric: str) -> pa.Table:
    """Search the nearest neighbours within one bucket exactly; return the edges."""
    ids = table["id"].to_numpy()
    k = min(n_neighbors, len(ids) - 1)
    graph = agglo.neighbor_graph(_features(table), k, metric, n_jobs=1, missing=None)
    sources = np.repeat(ids, np.diff(graph.indptr))
    return pa.table({"src": sources, "dst": ids[graph.indices], "weight": graph.weights})


def _draw_planes(points: DataFrame, repetitions: int, bits: int, seed: int) -> tuple[Floats, Floats]:
    """Draw random pairs of points; return normals and offsets of the hyperplanes half-way between each pair."""
    number = 2 * repetitions * bits
    rows = points.orderBy(F.xxhash64("id", F.lit(seed)), "id").limit(number).select("vector").toArrow()
    if not len(rows):
        raise ValueError("the table of points is empty: pass at least one point")
    X = _matrix(rows["vector"].combine_chunks())
    rng = np.random.default_rng(seed)
    a, b = (X[rng.integers(0, len(X), number // 2)] for _ in range(2))
    normal = np.where((a == b).all(axis=1)[:, None], rng.normal(size=a.shape), a - b)
    return normal, ((a + b) / 2 * normal).sum(axis=1)


def _measure_recall(points: DataFrame, edges: DataFrame, k: int, metric: str, sample: int) -> RecallEstimate:
    """Measure the recall of the edges on a sample of points, whose true neighbours are found by exact search.

    An edge is a hit if it is at least as close as the ``k``-th true neighbour, so ties are hits.
    """
    queries = points.orderBy(F.xxhash64("id", F.lit(1)), "id").limit(sample).toArrow()
    ids, wanted, kind = points.schema["id"].dataType.simpleString(), queries["id"].to_numpy(), METRICS[metric]

    def search_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Search the nearest neighbours of the sampled points within each batch."""
        for batch in filter(len, batches):
            rows = pa.Table.from_batches([batch.cast(queries.schema)])
            X, n = _features(pa.concat_tables([rows, queries])), len(rows)
            width = min(k + 1, n)  # one more than k, because the search also returns the query itself
            indices, values = NeighborIndex(X[:n], metric, "exact", {}, 1.0, 0).search(X[n:], width, 1, None)
            is_other = rows["id"].to_numpy()[indices] != wanted[:, None]
            similarity = values if kind == "similarity" else -values
            src = np.repeat(wanted, width)[is_other.ravel()]
            yield pa.RecordBatch.from_pydict({"src": src, "value": similarity[is_other].astype(np.float64)})

    similarity = F.col("weight") if kind == "similarity" else -F.col("weight")
    rows = points.mapInArrow(search_batches, f"src {ids}, value double")
    rank = F.row_number().over(Window.partitionBy("src").orderBy(F.desc("value")))
    true = rows.withColumn("rank", rank).filter(F.col("rank") <= k)
    bar = true.groupBy("src").agg(F.min("value").alias("bar"), F.count(F.lit(1)).alias("n"))
    is_hit = similarity.cast("double") >= F.col("bar") - 1e-5 * F.abs("bar")
    hits = edges.join(F.broadcast(bar), "src").filter(is_hit).groupBy("src").agg(F.count(F.lit(1)).alias("hits"))
    shares = bar.join(hits, "src", "left").select(
        (F.least("n", F.coalesce("hits", F.lit(0))) / F.col("n")).alias("s")
    )
    found = np.array([row.s for row in shares.collect()], dtype=np.float64)
    return RecallEstimate(*_core.estimate_recall(found, k)) if len(found) else RecallEstimate(1.0, 0.0, 0)
