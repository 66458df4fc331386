"""SCC and Affinity clustering on Spark; the rounds are run by :mod:`agglo.spark.driver`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame

from agglo.neighbors.graph import Kind, Missing, WeightSummary
from agglo.progress import Progress
from agglo.rounds.linkage import GraphLinkageName
from agglo.rounds.plan import Advance, RoundPlan, affinity_plan, scc_plan
from agglo.rounds.schedule import ScheduleName
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
    """Build the tree of the Sub-Cluster Component algorithm; it equals that of :func:`agglo.scc`.

    Parameters
    ----------
    edges : DataFrame
        Columns ``src`` and ``dst`` (integers or strings) and ``weight``; an edge may have one row or one per
        direction. Self-loops are dropped, but their points are kept; of several edges between two points, the
        closest is kept. The table is read up to four times, so it should be a stored or cached one.
    path : str
        A folder for the tables of the run, on a file system that all machines share.
    kind : {"similarity", "distance"}
        Whether larger or smaller weights are closer.
    missing : float or "ignore", optional
        The value of a pair without an edge, as for :class:`agglo.NeighborGraph`.
    metric : str, optional
        The metric of the weights; it is recorded, and sets the range of thresholds for squared distances.
    points : DataFrame, optional
        A column of ids, to include points without edges.
    thresholds, n_thresholds, linkage, advance
        As for :func:`agglo.scc`.
    handoff_edges : int
        The number of edges that the core, in the driver, handles at a time, with about 150 bytes per edge. The
        core does the rounds whose participating clusters have no more edges, and all remaining rounds once the
        graph has no more edges. Input of no more rows is also cleaned in the driver. The tree does not depend on
        it. With 0 all rounds run on Spark.
    resume : bool
        Resume the run in ``path`` after its last finished round, if there is one. The process that started it must
        have ended.
    progress : callable, optional
        Called as ``progress("rounds", done, total)`` after each round, in points merged and all points.
    **unsupported
        Other arguments of :func:`agglo.scc` raise an error that says what to do instead.

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
    """Build the tree of Affinity clustering; it equals that of :func:`agglo.affinity`; see :func:`scc`."""
    parameters = {"method": "affinity", "kind": kind, "missing": missing, "metric": metric, "linkage": linkage}
    check_supported(linkage, unsupported)
    driver = Driver(edges, path, points, parameters)
    return driver.run(lambda graph: affinity_plan(linkage), handoff_edges, resume, progress)
