"""SCC on Apache Spark: the same tree as :func:`agglo.scc`, for graphs that do not fit one machine."""

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError("agglo.spark needs pyspark, which is not installed: pip install 'agglo[spark]'") from error

from agglo.spark.algorithms import affinity, scc
from agglo.spark.evaluation import exemplars, pairwise_f1, scores
from agglo.spark.hierarchy import SparkHierarchy
from agglo.spark.neighbors import SparkGraph, neighbor_graph, set_graph
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
