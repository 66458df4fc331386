"""SCC and Affinity clustering on Spark; :mod:`agglo.spark.driver` runs the rounds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from agglo.neighbors.graph import Kind, Missing, WeightSummary
from agglo.progress import Progress
from agglo.rounds.linkage import GraphLinkageName
from agglo.rounds.schedule import Advance, RoundPlan, ScheduleName, affinity_plan, scc_plan
from agglo.spark.driver import Driver
from agglo.spark.edges import check_supported
from agglo.spark.hierarchy import SparkHierarchy

HANDOFF_EDGES = 5_000_000


def scc(
    edges: DataFrame,
    path: str,
    *,
    kind: Kind,
    missing: Missing | None = None,
    metric: str | None = None,
    points: DataFrame | None = None,
    thresholds: ScheduleName | npt.ArrayLike = "odds",
    n_thresholds: int | None = None,
    linkage: GraphLinkageName = "average",
    advance: Advance = "every-round",
    handoff_edges: int = HANDOFF_EDGES,
    resume: bool = False,
    progress: Progress | None = None,
    **unsupported: object,
) -> SparkHierarchy:
    """Cluster a graph with the Sub-Cluster Component algorithm; the tree is the same as with :func:`agglo.scc`.

    Parameters
    ----------
    edges : DataFrame
        Columns ``src`` and ``dst`` (integers or strings) and ``weight``. An edge may have one row, or one row per
        direction. Self-loops are dropped, but their points are kept. If two points have several edges, the closest
        edge is kept. Spark reads the table up to four times, so store or cache it first.
    path : str
        The folder for the tables of the run, on a file system that all machines share.
    kind : {"similarity", "distance"}
        Whether weights are similarities (larger is closer) or distances (smaller is closer).
    missing : float or "ignore", optional
        The weight assumed for a pair without an edge, as for :class:`agglo.NeighborGraph`.
    metric : str, optional
        The metric of the weights. The run records it. For squared distances, the computed thresholds cover a
        different range.
    points : DataFrame, optional
        A table whose first column has the ids of all points. Pass it if some points have no edges.
    thresholds, n_thresholds, linkage, advance
        As for :func:`agglo.scc`.
    handoff_edges : int
        The maximum number of edges that the driver loads into memory, at about 150 bytes per edge. If the clusters
        that can merge in a round have at most this number of edges, the driver runs the round with the C++ core.
        If the whole graph is that small, the core runs all remaining rounds. With 0, all rounds run on Spark. The
        tree does not depend on this parameter.
    resume : bool
        Whether to resume the run in ``path`` after its last finished round. The process that started the run must
        have ended. If the folder contains no run, a new run starts.
    progress : callable, optional
        Called as ``progress("rounds", done, total)`` after each round. ``total`` is the number of points.
        ``done`` is the number of points minus the number of clusters.
    **unsupported
        Other arguments of :func:`agglo.scc` raise an error that names an alternative.

    Returns
    -------
    SparkHierarchy
        The tree, stored as tables in ``path``.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [("ant", "bee", 0.9), ("bee", "cow", 0.2), ("cow", "dog", 0.8)]
    >>> edges = spark.createDataFrame(rows, "src string, dst string, weight float")
    >>> tree = agglo.spark.scc(edges, "run", kind="similarity")
    >>> tree.clusters_per_round
    [4, 3, 2, 1]
    >>> sorted(tuple(row) for row in tree.labels(round=2).collect())
    [('ant', 'ant'), ('bee', 'ant'), ('cow', 'cow'), ('dog', 'cow')]
    """
    parameters = {
        "method": "scc",
        "kind": kind,
        "missing": missing,
        "metric": metric,
        "linkage": linkage,
        "advance": advance,
        "thresholds": thresholds if isinstance(thresholds, str) else np.asarray(thresholds).tolist(),
        "n_thresholds": n_thresholds,
    }

    def make_plan(graph: WeightSummary) -> RoundPlan:
        return scc_plan(graph, thresholds, n_thresholds, linkage, advance)

    check_supported(linkage, unsupported)
    return Driver(edges, path, points, parameters).run(make_plan, handoff_edges, resume, progress)


def affinity(
    edges: DataFrame,
    path: str,
    *,
    kind: Kind,
    missing: Missing | None = None,
    metric: str | None = None,
    points: DataFrame | None = None,
    linkage: GraphLinkageName = "average",
    handoff_edges: int = HANDOFF_EDGES,
    resume: bool = False,
    progress: Progress | None = None,
    **unsupported: object,
) -> SparkHierarchy:
    """Cluster a graph with Affinity clustering, which has no thresholds; return the tree.

    The tree is the same as with :func:`agglo.affinity`. The parameters have the same meaning as for :func:`scc`.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> rows = [("ant", "bee", 0.9), ("bee", "cow", 0.2), ("cow", "dog", 0.8)]
    >>> edges = spark.createDataFrame(rows, "src string, dst string, weight float")
    >>> agglo.spark.affinity(edges, "affinity-run", kind="similarity").clusters_per_round
    [4, 2, 1]
    """
    parameters = {"method": "affinity", "kind": kind, "missing": missing, "metric": metric, "linkage": linkage}
    check_supported(linkage, unsupported)
    driver = Driver(edges, path, points, parameters)
    return driver.run(lambda graph: affinity_plan(linkage), handoff_edges, resume, progress)
