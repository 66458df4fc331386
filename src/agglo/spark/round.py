"""One round on tables: nearest neighbours, components of those that join, the graph between the new clusters."""

from __future__ import annotations

from itertools import count
from types import TracebackType

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from agglo.spark.folder import POINTERS, Folder
from agglo.spark.linkage import SqlLinkage

SALTS = 32  # into how many parts the rows of a hub are dealt
_HUB_SHARE = 1 / 1000  # of all ends of edges, from which on a cluster is a hub; so there are at most as many
_HUB_SAMPLE = 100_000  # edges that are enough to find hubs by


class Kept:
    """Tables that are kept in memory until the end of a ``with``, and not a moment longer."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def __call__(self, frame: DataFrame) -> DataFrame:
        """The same table, to be computed only once."""
        self._frames.append(frame.persist())
        return frame

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for frame in self._frames:
            frame.unpersist()


def nearest(edges: DataFrame, linkage: SqlLinkage, threshold: float | None) -> DataFrame:
    """The nearest neighbours of the clusters that join theirs.

    Pairs beyond the threshold, if one is given, are left out first: a cluster whose nearest neighbour is among
    them does not join. Linkage and threshold are compared in float32, the precision of the weights, as in every
    engine.

    Returns
    -------
    DataFrame
        cluster, size: what joins; target: its nearest neighbour, of equals the one with the smallest name;
        value: how close; degree: to how many clusters it is that close. Every target is a cluster here too, its
        nearest being at least as close.
    """
    close = edges.select("lo", "hi", "lo_size", "hi_size", linkage.value().alias("value"))
    close = close.filter(close_enough(F.col("value"), threshold))
    both = close.select(
        F.expr("stack(2, lo, lo_size, hi, value, hi, hi_size, lo, value) AS (cluster, size, target, value)")
    )
    # Partial maxima are taken before anything is sent, so a hub is no more work for one task than for another.
    best = F.max(F.struct("value", F.bitwise_not("target").alias("smaller")))
    degree = F.count(F.lit(1)).alias("degree")
    found = both.groupBy("cluster").agg(best.alias("best"), F.max("size").alias("size"), degree)
    target = F.bitwise_not("best.smaller").alias("target")
    return found.select("cluster", "size", target, F.col("best.value"), "degree")


def close_enough(value: Column, threshold: float | None) -> Column:
    """Whether clusters join that are so close."""
    if threshold is None:
        return F.lit(True)
    return value.cast("float") >= F.lit(threshold).cast("float")


def components(nearest: DataFrame, folder: Folder) -> DataFrame:
    """Which component each joining cluster is in: the table of nearest neighbours, with roots for targets.

    Going from nearest neighbour to nearest neighbour, linkages never get farther; where they stay the same, names
    get no larger from every other cluster to the next. So all ways end in a pair of mutual nearest neighbours,
    whose smaller name is the root; and a pointer to where one gets in k steps finds 2 k steps by one join.
    """
    back = nearest.select(F.col("cluster").alias("target"), F.col("target").alias("back"))
    mutual = (F.col("back") == F.col("cluster")) & (F.col("cluster") < F.col("target"))
    up = F.when(mutual, F.col("cluster")).otherwise(F.col("target"))
    pointers = nearest.join(back, "target").select("cluster", "size", "value", up.alias("root"))
    return followed(folder.write(pointers, folder.own(POINTERS[0])), folder, "cluster", "root")


def followed(pointers: DataFrame, folder: Folder, source: str, target: str) -> DataFrame:
    """A table of pointers, at most one from each source, with each pointing to where one gets by following them.

    Each step is written: its plan has the table in it twice, so that plans that were not cut would double.
    """
    for turn in count(1):
        above = pointers.select(F.col(source).alias(target), F.col(target).alias("above"))
        moved = F.count_if(F.col("above") != F.col(target)).alias("moved")
        seen = Observation()
        jumped = pointers.join(above, target, "left").observe(seen, moved)
        end = F.coalesce("above", target).alias(target)
        others = [name for name in pointers.columns if name != target]
        pointers = folder.write(jumped.select(*others, end), folder.own(POINTERS[turn % 2]))
        if not seen.get["moved"]:
            break
    return pointers


def merges(members: DataFrame, round: int) -> DataFrame:
    """What the round merges, a row for each cluster that takes part, of what :func:`components` found.

    Returns
    -------
    DataFrame
        round: the number of the round, from 1; child, child_size: a cluster that was, and how many points it is
        of; cluster, size: the one that it is now part of, named by its smallest point, which is the smallest name
        among its parts; value: the farthest linkage that was joined to make it.
    """
    made = members.groupBy("root").agg(
        F.min("cluster").alias("name"), F.sum("size").alias("whole"), F.min("value").alias("farthest")
    )
    return members.join(made, "root").select(
        F.lit(round).alias("round"),
        F.col("cluster").alias("child"),
        F.col("size").alias("child_size"),
        F.col("name").alias("cluster"),
        F.col("whole").alias("size"),
        F.col("farthest").alias("value"),
    )


def contracted(
    edges: DataFrame, merges: DataFrame, linkage: SqlLinkage, last: float | None, few: bool, hubs: list[int]
) -> DataFrame:
    """The graph between the clusters after a round, in the columns of :mod:`agglo.spark.linkage`.

    Parameters
    ----------
    edges, merges : DataFrame
        The graph before, and what :func:`merges` found.
    linkage : SqlLinkage
        How rows that have become one are combined.
    last : float, optional
        The farthest threshold, larger being closer: what cannot reach it is dropped, if nothing misses it.
    few : bool
        The merges fit every machine's memory. Then edges stay where they are, but for those of merged clusters.
    hubs : list of int
        Clusters with so many edges that they are dealt among tasks, if the merges are not few.
    """
    for end in ("lo", "hi"):
        moves = merges.select(
            F.col("child").alias(end), F.col("cluster").alias("to"), F.col("size").alias("whole")
        )
        edges = _looked_up(edges, F.broadcast(moves) if few else moves, end, [] if few else hubs)
        edges = edges.withColumnsRenamed({"to": f"{end}_to", "whole": f"{end}_whole"})
    a, b = F.coalesce("lo_to", "lo"), F.coalesce("hi_to", "hi")
    a_size, b_size = F.coalesce("lo_whole", "lo_size"), F.coalesce("hi_whole", "hi_size")
    relabelled = edges.select(
        F.least(a, b).alias("lo"),
        F.greatest(a, b).alias("hi"),
        F.when(a < b, a_size).otherwise(b_size).alias("lo_size"),
        F.when(a < b, b_size).otherwise(a_size).alias("hi_size"),
        "combined",
        "count",
        (F.col("lo_to").isNotNull() | F.col("hi_to").isNotNull()).alias("touched"),
    ).filter("lo != hi")
    columns = ["lo", "hi", "lo_size", "hi_size", "combined", "count"]
    sizes = [F.max("lo_size").alias("lo_size"), F.max("hi_size").alias("hi_size")]  # one value in a group
    moved = relabelled.filter("touched") if few else relabelled
    grouped = moved.groupBy("lo", "hi").agg(*sizes, *linkage.merged()).select(columns)
    reach = linkage.may_reach(last)
    if reach is not None:
        grouped = grouped.filter(reach)
    # A pair that holds a new cluster comes from rows that were touched, all of them; so no pair is in both.
    return relabelled.filter("not touched").select(columns).unionByName(grouped) if few else grouped


def _looked_up(edges: DataFrame, table: DataFrame, key: str, hubs: list[int]) -> DataFrame:
    """Edges with what a table says of one of their ends, the edges of hubs being dealt among `SALTS` tasks."""
    if not hubs:
        return edges.join(table, key, "left")
    other = "hi" if key == "lo" else "lo"
    hub: Column = F.col(key).isin(hubs)
    salt = F.when(hub, F.pmod(F.xxhash64(other), F.lit(SALTS))).otherwise(F.lit(0).cast("long"))
    salts = F.when(hub, F.sequence(F.lit(0).cast("long"), F.lit(SALTS - 1).cast("long")))
    copies = table.withColumn("salt", F.explode(salts.otherwise(F.array(F.lit(0).cast("long")))))
    return edges.withColumn("salt", salt).join(copies, [key, "salt"], "left").drop("salt")


def find_hubs(edges: DataFrame, n_edges: int) -> list[int]:
    """Clusters with more than a thousandth of all ends of edges, by a sample; so there are never many."""
    share = min(1.0, _HUB_SAMPLE / max(n_edges, 1))
    sample = edges.sample(fraction=share, seed=0) if share < 1 else edges
    ends = sample.select(F.explode(F.array("lo", "hi")).alias("end")).groupBy("end").count()
    least = max(_HUB_SHARE * 2 * share * n_edges, 100)
    return [row.end for row in ends.filter(F.col("count") >= least).limit(int(1 / _HUB_SHARE)).collect()]
