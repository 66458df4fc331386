"""Evaluation of a tree on Spark against known classes, and what is in its clusters; points stay where they are."""

from __future__ import annotations

import itertools
from typing import NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F

from agglo.evaluation.metrics import PairwiseScores, RoundScores
from agglo.spark.folder import Folder
from agglo.spark.hierarchy import SparkHierarchy
from agglo.spark.round import Kept


class Scores(NamedTuple):
    """How well a tree fits known classes."""

    dendrogram_purity: float
    """Mean purity of the least common ancestors of all pairs of one class; NaN if there is no such pair."""
    by_round: RoundScores
    """Pairwise F1, precision and recall of the partition after every round, round 0 first."""


def scores(tree: SparkHierarchy, classes: DataFrame) -> Scores:
    """Dendrogram purity, and pairwise scores of all rounds, as :mod:`agglo.metrics` defines them.

    The points of each class below each node of the tree are counted by pointers whose reach doubles; so the number
    of steps grows with the logarithm of the tree's depth, however many rounds there were.

    Parameters
    ----------
    tree : SparkHierarchy
        The tree.
    classes : DataFrame
        Columns ``id``, the user's name of a point, and ``class``. Every point has to be there, once.
    """
    points = _of_points(tree, classes).select(F.col("id").alias("cluster"), "class")
    links = _links(tree)
    up = links.filter("made > 0").select("cluster", "made", "parent", "round")
    leaves = points.join(links.filter("made = 0"), "cluster")
    own = leaves.groupBy(F.col("parent").alias("cluster"), F.col("round").alias("made"), "class")
    # Doubles, for squares of counts outgrow 64 bits before anything else does.
    own_counts = tree.folder.write(
        own.agg(F.count(F.lit(1)).cast("double").alias("n")), tree.folder.own("evaluation-own")
    )
    counts = _below(own_counts, up, tree.folder)

    # Pairs of one class meet in a node if they are in different parts of it. Points are parts of one.
    squares = F.sum(F.col("n") * F.col("n")).alias("squares")
    pairs = (F.col("n") * F.col("n") - F.col("squares")) / 2
    none = F.lit(0.0)
    parts = _lifted(counts, up).withColumn("n", F.col("n") * F.col("n")).unionByName(own_counts)
    both = counts.withColumn("squares", none).unionByName(
        parts.withColumnRenamed("n", "squares").withColumn("n", none)
    )
    nodes = both.groupBy("cluster", "made", "class").agg(F.sum("n").alias("n"), F.sum("squares").alias("squares"))
    sizes = links.filter("cluster = parent").select("cluster", F.col("round").alias("made"), "size")
    found = nodes.join(sizes, ["cluster", "made"]).groupBy("made")
    rows = found.agg(F.sum(pairs).alias("met"), F.sum(pairs * F.col("n") / F.col("size")).alias("pure")).collect()
    rounds = len(tree.rounds)
    met = np.zeros(rounds + 1)  # pairs of one class that each round brings together
    for row in rows:
        met[row.made] = row.met

    # The explicit root of a forest brings all that is left together.
    alone = points.join(leaves.select("cluster"), "cluster", "anti").select("class", F.lit(1.0).alias("n"))
    left = counts.join(up, ["cluster", "made"], "anti").select("class", "n").unionByName(alone)
    whole = left.groupBy("class").agg(F.sum("n").alias("n"), squares)
    ends = whole.agg(
        F.sum(pairs * F.col("n") / F.lit(tree.n_points)).alias("pure"),
        F.sum(F.col("n") * (F.col("n") - 1) / 2).alias("pairs"),
    ).collect()[0]
    pure, of_class = sum(row.pure for row in rows) + ends.pure, ends.pairs
    together = np.cumsum(met)
    of_cluster = _of_clusters(tree)
    return Scores(
        pure / of_class if of_class else float("nan"),
        RoundScores(
            _share(2 * together, of_class + of_cluster),
            _share(together, of_cluster),
            _share(together, np.full(rounds + 1, of_class)),
        ),
    )


def _links(tree: SparkHierarchy) -> DataFrame:
    """The tree from below: nodes, each by its name and the round that it was made in, and their parents.

    Columns ``cluster`` and ``made``, 0 for a point; ``parent`` and ``round``, of its parent; ``size``, of that.
    """
    # Until it goes, a name is kept in all merges of its cluster: the last of them has made the node.
    before = F.lag("round", 1, 0).over(Window.partitionBy("child").orderBy("round"))
    links = tree.merges.select(
        F.col("child").alias("cluster"), before.alias("made"), F.col("cluster").alias("parent"), "round", "size"
    )
    return tree.folder.write(links, tree.folder.own("evaluation-links"))


def _below(counts: DataFrame, up: DataFrame, folder: Folder) -> DataFrame:
    """Sums of ``n`` over each node and all nodes below it, by class, from those of the nodes themselves."""
    for turn in itertools.count():
        # Sums reach 2^turn levels down, and pointers as many up; both are written, for plans would double too.
        joined = counts.unionByName(_lifted(counts, up)).groupBy("cluster", "made", "class")
        counts = folder.write(joined.agg(F.sum("n").alias("n")), folder.own(f"evaluation-{turn % 2}"))
        above = up.toDF("parent", "round", "over", "over_round")
        higher = up.join(above, ["parent", "round"]).select("cluster", "made", "over", "over_round")
        seen = Observation()
        observed = higher.toDF(*up.columns).observe(seen, F.count(F.lit(1)).alias("pointers"))
        up = folder.write(observed, folder.own(f"evaluation-up-{turn % 2}"))
        if not seen.get["pointers"]:
            break
    return counts


def _lifted(counts: DataFrame, up: DataFrame) -> DataFrame:
    """The counts of nodes as those of where their pointers lead."""
    return counts.join(up, ["cluster", "made"]).select(
        F.col("parent").alias("cluster"), F.col("round").alias("made"), "class", "n"
    )


def pairwise_f1(tree: SparkHierarchy, classes: DataFrame, round: SupportsIndex) -> PairwiseScores:
    """F1, precision and recall of the partition after one round, as :func:`agglo.metrics.pairwise_f1` has them."""
    both = _of_points(tree, classes).join(tree.assignment(round), "id")
    cells = both.groupBy("cluster", "class").agg(F.count(F.lit(1)).alias("n"))
    with Kept() as kept:
        cells = kept(cells)
        together = _pairs(cells)
        of_class = _pairs(cells.groupBy("class").agg(F.sum("n").alias("n")))
        of_cluster = _pairs(cells.groupBy("cluster").agg(F.sum("n").alias("n")))
    return PairwiseScores(
        f1=2 * together / (of_class + of_cluster) if of_class + of_cluster else 1.0,
        precision=together / of_cluster if of_cluster else 1.0,
        recall=together / of_class if of_class else 1.0,
    )


def exemplars(tree: SparkHierarchy, round: SupportsIndex, n: int = 5) -> DataFrame:
    """The points that best stand for their clusters: ``cluster``, ``rank`` from 1, ``id``, ``closeness``.

    A point's closeness is the sum of the weights of its edges within its cluster, with the sign turned for
    distances less the largest distance, so that more and closer neighbours both count. Of equals the one with the
    smaller id comes first. Clusters of one point have that point.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"n={n!r} must be a positive integer: how many points of each cluster")
    numbers = tree.numbers
    weight = F.col("weight").cast("double")
    close = weight if numbers.kind == "similarity" else F.lit(numbers.most) - weight
    ends = tree.graph.select(F.expr("stack(2, lo, hi, hi, lo) AS (id, other)"), close.alias("close"))
    labels = tree.assignment(round)
    others = labels.select(F.col("id").alias("other"), F.col("cluster").alias("of_other"))
    inside = ends.join(labels, "id").join(others, "other").filter("cluster = of_other")
    sums = inside.groupBy("id").agg(F.sum("close").alias("closeness"))
    order = Window.partitionBy("cluster").orderBy(F.col("closeness").desc(), "id")
    ranked = (
        labels.join(sums, "id", "left")
        .withColumn("closeness", F.coalesce("closeness", F.lit(0.0)))
        .withColumn("rank", F.row_number().over(order))
        .filter(F.col("rank") <= n)
    )
    names = tree.points
    clusters = names.select(F.col("id").alias("cluster"), F.col("name").alias("cluster_name"))
    return (
        ranked.join(names, "id")
        .join(clusters, "cluster")
        .select(F.col("cluster_name").alias("cluster"), "rank", F.col("name").alias("id"), "closeness")
    )


def _of_points(tree: SparkHierarchy, classes: DataFrame) -> DataFrame:
    """The classes of the points by their ids; raises unless there is one for each."""
    absent = [name for name in ("id", "class") if name not in classes.columns]
    if absent:
        raise ValueError(f"classes have no column {absent[0]!r}, only {', '.join(classes.columns)}: rename one")
    named = classes.select(F.col("id").alias("name"), "class")
    found = tree.points.join(named, "name").select("id", "class").filter(F.col("class").isNotNull())
    rows, points = found.agg(F.count(F.lit(1)), F.count_distinct("id")).collect()[0]
    if rows != points or points != tree.n_points:
        raise ValueError(
            f"classes have {rows} rows for {points} of {tree.n_points} points: every point needs one class, once"
        )
    return found


def _of_clusters(tree: SparkHierarchy) -> npt.NDArray[np.float64]:
    """Pairs of points in one cluster, after each round."""

    def pairs(size: str) -> Column:
        return F.col(size).cast("double") * (F.col(size) - 1) / 2

    made = F.sum(F.when(F.col("child") == F.col("cluster"), pairs("size")).otherwise(0.0))
    rows = tree.merges.groupBy("round").agg((made - F.sum(pairs("child_size"))).alias("pairs")).collect()
    joined = np.zeros(len(tree.rounds) + 1)
    for row in rows:
        joined[row["round"]] = row["pairs"]
    return np.cumsum(joined)


def _pairs(counts: DataFrame) -> float:
    """Pairs within groups of ``n``."""
    n = F.col("n").cast("double")
    return float(counts.agg(F.sum(n * (n - 1) / 2)).collect()[0][0] or 0.0)


def _share(part: npt.NDArray[np.float64], whole: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.divide(part, whole, out=np.ones(len(whole)), where=whole > 0)
