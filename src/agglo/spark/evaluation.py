"""Evaluate a tree on Spark: scores against known classes, and representative points of each cluster."""

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
from agglo.spark.round import cached_frames


class Scores(NamedTuple):
    """Scores of a tree against known classes."""

    dendrogram_purity: float
    """The mean purity of the least common ancestor, over all pairs of points of one class.

    If no two points have the same class, it is NaN.
    """
    by_round: RoundScores
    """Pairwise F1, precision and recall of the partition after each round, starting with round 0."""


def scores(tree: SparkHierarchy, classes: DataFrame) -> Scores:
    """Compute the dendrogram purity of a tree and the pairwise scores of all its rounds.

    :mod:`agglo.metrics` defines both scores. The points of each class below each node are counted by pointer
    jumping. So the number of Spark steps grows with the logarithm of the tree's depth.

    Parameters
    ----------
    tree : SparkHierarchy
        The tree.
    classes : DataFrame
        One row per point, with the columns ``id`` (the user's id of the point) and ``class``.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [("ant", "bee", 0.9), ("bee", "cow", 0.2), ("cow", "dog", 0.8)]
    >>> edges = spark.createDataFrame(rows, "src string, dst string, weight float")
    >>> tree = agglo.spark.scc(edges, "scores-run", kind="similarity")
    >>> rows = [("ant", "a"), ("bee", "a"), ("cow", "b"), ("dog", "b")]
    >>> classes = spark.createDataFrame(rows, "id string, class string")
    >>> agglo.spark.scores(tree, classes).dendrogram_purity
    1.0
    """
    points = _join_classes(tree, classes).select(F.col("id").alias("cluster"), "class")
    links = _write_links(tree)
    up = links.filter("created > 0").select("cluster", "created", "parent", "round")
    leaves = points.join(links.filter("created = 0"), "cluster")
    own = leaves.groupBy(F.col("parent").alias("cluster"), F.col("round").alias("created"), "class")
    # Counts are stored as doubles, because their squares may exceed 64-bit integers.
    own_counts = tree.folder.write(
        own.agg(F.count(F.lit(1)).cast("double").alias("n")), tree.folder.work_table("evaluation-own")
    )
    counts = _sum_subtrees(own_counts, up, tree.folder)

    # A node is the least common ancestor of two points if they lie in different children of the node.
    squares = F.sum(F.col("n") * F.col("n")).alias("squares")
    pairs = (F.col("n") * F.col("n") - F.col("squares")) / 2
    zero = F.lit(0.0)
    parts = _move_to_parents(counts, up).withColumn("n", F.col("n") * F.col("n")).unionByName(own_counts)
    both = counts.withColumn("squares", zero).unionByName(
        parts.withColumnRenamed("n", "squares").withColumn("n", zero)
    )
    nodes = both.groupBy("cluster", "created", "class").agg(
        F.sum("n").alias("n"), F.sum("squares").alias("squares")
    )
    sizes = links.filter("cluster = parent").select("cluster", F.col("round").alias("created"), "size")
    found = nodes.join(sizes, ["cluster", "created"]).groupBy("created")
    rows = found.agg(
        F.sum(pairs).alias("pairs"), F.sum(pairs * F.col("n") / F.col("size")).alias("pure")
    ).collect()

    # If clusters remain after the last round, an extra root of the tree merges them all.
    alone = points.join(leaves.select("cluster"), "cluster", "anti").select("class", F.lit(1.0).alias("n"))
    left = counts.join(up, ["cluster", "created"], "anti").select("class", "n").unionByName(alone)
    whole = left.groupBy("class").agg(F.sum("n").alias("n"), squares)
    ends = whole.agg(
        F.sum(pairs * F.col("n") / F.lit(tree.n_points)).alias("pure"),
        F.sum(F.col("n") * (F.col("n") - 1) / 2).alias("pairs"),
    ).collect()[0]
    pure, of_class = sum(row.pure for row in rows) + ends.pure, ends.pairs
    together = _sum_up_to_rounds(tree, {row.created: row.pairs for row in rows})
    by_round = RoundScores.from_pairs(together, of_class, _cluster_pairs(tree))
    return Scores(pure / of_class if of_class else float("nan"), by_round)


def _write_links(tree: SparkHierarchy) -> DataFrame:
    """Write and return a table with one row per node that has a parent.

    A node is identified by its id and the round that created it. The columns ``cluster`` and ``created`` identify
    the node. If the node is a point, ``created`` is 0. The columns ``parent`` and ``round`` identify the parent.
    ``size`` is the number of points of the parent.
    """
    # The same id can occur in several merges. The previous merge with that id created the node.
    before = F.lag("round", 1, 0).over(Window.partitionBy("child").orderBy("round"))
    links = tree.merges.select(
        F.col("child").alias("cluster"), before.alias("created"), F.col("cluster").alias("parent"), "round", "size"
    )
    return tree.folder.write(links, tree.folder.work_table("evaluation-links"))


def _sum_subtrees(counts: DataFrame, up: DataFrame, folder: Folder) -> DataFrame:
    """Sum ``n`` over each node and all its descendants, separately for each class."""
    for turn in itertools.count():
        # Before this turn, the sums cover 2^turn levels of the tree, and the pointers lead 2^turn levels up.
        # Each turn writes both tables to disk, because otherwise the query plan would double.
        joined = counts.unionByName(_move_to_parents(counts, up)).groupBy("cluster", "created", "class")
        counts = folder.write(joined.agg(F.sum("n").alias("n")), folder.work_table(f"evaluation-{turn % 2}"))
        above = up.toDF("parent", "round", "over", "over_round")
        higher = up.join(above, ["parent", "round"]).select("cluster", "created", "over", "over_round")
        observed = Observation()
        counted = higher.toDF(*up.columns).observe(observed, F.count(F.lit(1)).alias("pointers"))
        up = folder.write(counted, folder.work_table(f"evaluation-up-{turn % 2}"))
        if not observed.get["pointers"]:
            break
    return counts


def _move_to_parents(counts: DataFrame, up: DataFrame) -> DataFrame:
    """Assign the counts of each node to the ancestor to which the node's pointer in ``up`` leads."""
    return counts.join(up, ["cluster", "created"]).select(
        F.col("parent").alias("cluster"), F.col("round").alias("created"), "class", "n"
    )


def pairwise_f1(tree: SparkHierarchy, classes: DataFrame, round: SupportsIndex) -> PairwiseScores:
    """Compute pairwise F1, precision and recall of the partition after a round, against known classes.

    :mod:`agglo.metrics` defines these scores. ``classes`` has the columns ``id`` (the user's id of a point) and
    ``class``.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [("ant", "bee", 0.9), ("bee", "cow", 0.2), ("cow", "dog", 0.8)]
    >>> edges = spark.createDataFrame(rows, "src string, dst string, weight float")
    >>> tree = agglo.spark.scc(edges, "f1-run", kind="similarity")
    >>> rows = [("ant", "a"), ("bee", "a"), ("cow", "b"), ("dog", "b")]
    >>> classes = spark.createDataFrame(rows, "id string, class string")
    >>> agglo.spark.pairwise_f1(tree, classes, round=2)
    PairwiseScores(f1=1.0, precision=1.0, recall=1.0)
    """
    both = _join_classes(tree, classes).join(tree.assignment(round), "id")
    cells = both.groupBy("cluster", "class").agg(F.count(F.lit(1)).alias("n"))
    with cached_frames() as cache:
        cells = cache(cells)
        together = _count_pairs(cells)
        of_class = _count_pairs(cells.groupBy("class").agg(F.sum("n").alias("n")))
        of_cluster = _count_pairs(cells.groupBy("cluster").agg(F.sum("n").alias("n")))
    return PairwiseScores.from_pairs(together, of_class, of_cluster)


def exemplars(tree: SparkHierarchy, round: SupportsIndex, n: int = 5) -> DataFrame:
    """Select the ``n`` most representative points of each cluster after a round.

    Returns a table with the columns ``cluster``, ``rank`` (from 1), ``id`` and ``closeness``. The closeness of a
    point is the sum of the weights of its edges within the cluster. A distance d is first converted to the largest
    distance minus d. Ties go to the smaller id.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [("ant", "bee", 0.9), ("bee", "cow", 0.2), ("cow", "dog", 0.8)]
    >>> edges = spark.createDataFrame(rows, "src string, dst string, weight float")
    >>> tree = agglo.spark.scc(edges, "exemplars-run", kind="similarity")
    >>> sorted(row.id for row in agglo.spark.exemplars(tree, round=2, n=1).collect())
    ['ant', 'cow']
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError(f"n={n!r} must be a positive integer: the number of points per cluster")
    summary = tree.graph_summary
    weight = F.col("weight").cast("double")
    close = weight if summary.kind == "similarity" else F.lit(summary.max_weight) - weight
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


def _join_classes(tree: SparkHierarchy, classes: DataFrame) -> DataFrame:
    """Return a table of the internal ``id`` and the ``class`` of each point.

    Raise ``ValueError`` if a point does not have exactly one class.
    """
    absent = [name for name in ("id", "class") if name not in classes.columns]
    if absent:
        raise ValueError(f"classes have no column {absent[0]!r}, only {', '.join(classes.columns)}: rename one")
    named = classes.select(F.col("id").alias("name"), "class")
    found = tree.points.join(named, "name").select("id", "class").filter(F.col("class").isNotNull())
    rows, points = found.agg(F.count(F.lit(1)), F.count_distinct("id")).collect()[0]
    if rows != points or points != tree.n_points:
        raise ValueError(
            f"classes have {rows} rows for {points} of {tree.n_points} points: every point needs exactly one class"
        )
    return found


def _cluster_pairs(tree: SparkHierarchy) -> npt.NDArray[np.float64]:
    """Return, for each round from 0, the number of pairs of points that share a cluster after the round."""

    def pairs(size: str) -> Column:
        return F.col(size).cast("double") * (F.col(size) - 1) / 2

    created = F.sum(F.when(F.col("child") == F.col("cluster"), pairs("size")).otherwise(0.0))
    rows = tree.merges.groupBy("round").agg((created - F.sum(pairs("child_size"))).alias("pairs")).collect()
    return _sum_up_to_rounds(tree, {row["round"]: row["pairs"] for row in rows})


def _sum_up_to_rounds(tree: SparkHierarchy, new_pairs: dict[int, float]) -> npt.NDArray[np.float64]:
    """Return the total number of pairs after each round, given the number of pairs that each round adds."""
    return np.cumsum([new_pairs.get(round, 0.0) for round in range(len(tree.rounds) + 1)])


def _count_pairs(counts: DataFrame) -> float:
    """Return the total number of pairs within groups, given the size ``n`` of each group."""
    n = F.col("n").cast("double")
    return float(counts.agg(F.sum(n * (n - 1) / 2)).collect()[0][0] or 0.0)
