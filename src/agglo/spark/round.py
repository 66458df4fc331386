"""One round on Spark, as four steps on tables.

    nearest = find_nearest(edges, linkage, threshold)    each cluster's nearest neighbour within the threshold
    members = find_components(nearest, folder)           the connected components of these pairs
    merges  = build_merges(members, round)               one row per merged cluster
    edges   = contract(edges, merges, linkage, ...)      the graph between the new clusters

The id of a cluster is the smallest id of its points. :mod:`agglo.spark.linkage` lists the columns of ``edges``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from agglo.spark.folder import POINTERS, Folder
from agglo.spark.linkage import SqlLinkage

N_SALTS = 32  # number of parts into which the edges of a hub are split
_HUB_SHARE = 1 / 1000  # a cluster with more than this share of all edge ends is a hub
_HUB_SAMPLE = 100_000  # number of edges that are sampled to find hubs


@contextmanager
def cached_frames() -> Iterator[Callable[[DataFrame], DataFrame]]:
    """Yield a function that caches a table until the end of the ``with`` block."""
    frames: list[DataFrame] = []

    def cache(frame: DataFrame) -> DataFrame:
        frames.append(frame.persist())
        return frame

    try:
        yield cache
    finally:
        for frame in frames:
            frame.unpersist()


def find_nearest(edges: DataFrame, linkage: SqlLinkage, threshold: float | None) -> DataFrame:
    """Find the nearest neighbour of each cluster within the threshold.

    Linkage and threshold are compared in float32, as in the C++ core. The result has one row per cluster with a
    neighbour within the threshold. Its columns are:

        cluster, size  the id and the number of points of the cluster
        target         the id of its nearest neighbour; among equally near neighbours, the smallest id
        value          the linkage of the cluster and its nearest neighbour
        degree         the number of neighbours within the threshold

    Every target also has a row, because the target's own nearest neighbour is at least as close.
    """
    close = edges.select("lo", "hi", "lo_size", "hi_size", linkage.value().alias("value"))
    close = close.filter(within_threshold(F.col("value"), threshold))
    both = close.select(
        F.expr("stack(2, lo, lo_size, hi, value, hi, hi_size, lo, value) AS (cluster, size, target, value)")
    )
    # Spark computes partial maxima before the shuffle, so a cluster with many edges does not slow down its task.
    best = F.max(F.struct("value", F.bitwise_not("target").alias("smaller")))
    degree = F.count(F.lit(1)).alias("degree")
    grouped = both.groupBy("cluster").agg(best.alias("best"), F.max("size").alias("size"), degree)
    target = F.bitwise_not("best.smaller").alias("target")
    return grouped.select("cluster", "size", target, F.col("best.value"), "degree")


def within_threshold(value: Column, threshold: float | None) -> Column:
    """Return the SQL condition that a linkage is within the threshold; without a threshold, it is always true."""
    if threshold is None:
        return F.lit(True)
    return value.cast("float") >= F.lit(threshold).cast("float")


def find_components(nearest: DataFrame, folder: Folder) -> DataFrame:
    """Find the connected components of the nearest-neighbour pairs; return one row per cluster with its ``root``.

    The result is the table ``nearest`` with the column ``root`` instead of ``target``. Start at a cluster and
    follow the nearest neighbours: the linkages along this path never get farther. Among equally near neighbours,
    the smallest id is the nearest. So each path ends in two mutual nearest neighbours. The root of the component
    is the smaller id of these two.
    """
    back = nearest.select(F.col("cluster").alias("target"), F.col("target").alias("back"))
    is_root = (F.col("back") == F.col("cluster")) & (F.col("cluster") < F.col("target"))
    parent = F.when(is_root, F.col("cluster")).otherwise(F.col("target"))
    pointers = nearest.join(back, "target").select("cluster", "size", "value", parent.alias("root"))
    return pointer_jump(folder.write(pointers, folder.work_table(POINTERS[0])), folder, "cluster", "root")


def pointer_jump(pointers: DataFrame, folder: Folder, source: str, target: str) -> DataFrame:
    """Follow pointers from the column ``source`` to ``target``; replace each target by the end of its chain.

    Each source has at most one pointer. Each join doubles the length of the path that a pointer covers. The table
    is written to disk after each join, because otherwise the query plan would double each time.
    """
    for turn in count(1):
        next_pointers = pointers.select(F.col(source).alias(target), F.col(target).alias("next"))
        n_moved = F.count_if(F.col("next") != F.col(target)).alias("n_moved")
        observed = Observation()
        jumped = pointers.join(next_pointers, target, "left").observe(observed, n_moved)
        end = F.coalesce("next", target).alias(target)
        others = [name for name in pointers.columns if name != target]
        pointers = folder.write(jumped.select(*others, end), folder.work_table(POINTERS[turn % 2]))
        if not observed.get["n_moved"]:
            break
    return pointers


def build_merges(members: DataFrame, round: int) -> DataFrame:
    """Build the table of merges from the connected components of a round.

    The result has one row per cluster that merges. Its columns are:

        round              the number of the round, from 1
        child, child_size  the id and the number of points of the cluster before the merge
        cluster, size      the id and the number of points of the merged cluster
        value              the farthest linkage among the merged pairs of clusters
    """
    new = members.groupBy("root").agg(
        F.min("cluster").alias("new_cluster"), F.sum("size").alias("new_size"), F.min("value").alias("farthest")
    )
    return members.join(new, "root").select(
        F.lit(round).alias("round"),
        F.col("cluster").alias("child"),
        F.col("size").alias("child_size"),
        F.col("new_cluster").alias("cluster"),
        F.col("new_size").alias("size"),
        F.col("farthest").alias("value"),
    )


def contract(
    edges: DataFrame,
    merges: DataFrame,
    linkage: SqlLinkage,
    last_threshold: float | None,
    broadcast: bool,
    hubs: list[int],
) -> DataFrame:
    """Contract the graph: relabel the ends of each edge with the merged clusters, and combine parallel edges.

    ``merges`` has the columns ``child``, ``cluster`` and ``size``. ``last_threshold`` is the farthest threshold.
    Edges that cannot affect a merge within ``last_threshold`` are dropped. If ``broadcast`` is True, the merges
    are sent to every machine, and only the edges of merged clusters are shuffled. Otherwise all edges are
    shuffled, and the edges of each cluster in ``hubs`` are split among several tasks.
    """
    for end in ("lo", "hi"):
        new = merges.select(
            F.col("child").alias(end),
            F.col("cluster").alias(f"{end}_new"),
            F.col("size").alias(f"{end}_new_size"),
        )
        edges = edges.join(F.broadcast(new), end, "left") if broadcast else _join_salted(edges, new, end, hubs)
    a, b = F.coalesce("lo_new", "lo"), F.coalesce("hi_new", "hi")
    a_size, b_size = F.coalesce("lo_new_size", "lo_size"), F.coalesce("hi_new_size", "hi_size")
    relabelled = edges.select(
        F.least(a, b).alias("lo"),
        F.greatest(a, b).alias("hi"),
        F.when(a < b, a_size).otherwise(b_size).alias("lo_size"),
        F.when(a < b, b_size).otherwise(a_size).alias("hi_size"),
        "combined",
        "count",
        (F.col("lo_new").isNotNull() | F.col("hi_new").isNotNull()).alias("is_changed"),
    ).filter("lo != hi")
    columns = ["lo", "hi", "lo_size", "hi_size", "combined", "count"]
    # All rows of a pair have the same sizes.
    sizes = [F.max("lo_size").alias("lo_size"), F.max("hi_size").alias("hi_size")]
    changed = relabelled.filter("is_changed") if broadcast else relabelled
    grouped = changed.groupBy("lo", "hi").agg(*sizes, *linkage.aggregates()).select(columns)
    keep = linkage.may_matter(last_threshold)
    if keep is not None:
        grouped = grouped.filter(keep)
    if not broadcast:
        return grouped
    # All edges of a pair that contains a merged cluster are changed, so no pair occurs in both tables.
    return relabelled.filter("not is_changed").select(columns).unionByName(grouped)


def _join_salted(edges: DataFrame, table: DataFrame, key: str, hubs: list[int]) -> DataFrame:
    """Left-join ``table`` to edges on the column ``key``; split the edges of hubs among `N_SALTS` tasks."""
    if not hubs:
        return edges.join(table, key, "left")
    other = "hi" if key == "lo" else "lo"
    is_hub: Column = F.col(key).isin(hubs)
    salt = F.when(is_hub, F.pmod(F.xxhash64(other), F.lit(N_SALTS))).otherwise(F.lit(0).cast("long"))
    salts = F.when(is_hub, F.sequence(F.lit(0).cast("long"), F.lit(N_SALTS - 1).cast("long")))
    replicated = table.withColumn("salt", F.explode(salts.otherwise(F.array(F.lit(0).cast("long")))))
    return edges.withColumn("salt", salt).join(replicated, [key, "salt"], "left").drop("salt")


def find_hubs(edges: DataFrame, n_edges: int) -> list[int]:
    """Sample edges to find the hubs: clusters with more than a thousandth of all edge ends."""
    share = min(1.0, _HUB_SAMPLE / max(n_edges, 1))
    sample = edges.sample(fraction=share, seed=0) if share < 1 else edges
    ends = sample.select(F.explode(F.array("lo", "hi")).alias("end")).groupBy("end").count()
    min_count = max(_HUB_SHARE * 2 * share * n_edges, 100)
    return [row.end for row in ends.filter(F.col("count") >= min_count).limit(int(1 / _HUB_SHARE)).collect()]
