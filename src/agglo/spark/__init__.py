"""SCC past one machine: the same tree as :func:`agglo.scc` makes, by Apache Spark. See docs/spark.md."""

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError("agglo.spark needs pyspark, which is not installed: pip install 'agglo[spark]'") from error

from agglo.spark.evaluation import exemplars, pairwise_f1, scores
from agglo.spark.hierarchy import SparkHierarchy
from agglo.spark.neighbors import SparkGraph, neighbor_graph, set_graph
from agglo.spark.rounds import affinity, scc
from agglo.spark.session import session

__all__ = [
    "SparkGraph",
    "SparkHierarchy",
    "affinity",
    "exemplars",
    "neighbor_graph",
    "pairwise_f1",
    "scc",
    "scores",
    "session",
    "set_graph",
]
