"""The functions that run SCC, Affinity and HAC on a neighbour graph, and return the tree."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, Literal, TypedDict, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph
from agglo.progress import Progress
from agglo.rounds.connect import Planner, build_hierarchy, check_round_options
from agglo.rounds.constraints import Groups, check_constraints
from agglo.rounds.linkage import GraphLinkageName, Linkage, LinkageName
from agglo.rounds.schedule import Advance, RoundPlan, ScheduleName, affinity_plan, hac_plan, run_plan, scc_plan
from agglo.rounds.vector_linkage import ConnectName, VectorLinkage
from agglo.tree.hierarchy import Hierarchy

Function = TypeVar("Function", bound=Callable[..., Hierarchy])


class Inputs(TypedDict, total=False):
    """The keyword arguments that :func:`scc`, :func:`affinity` and :func:`hac` share; see :func:`scc`."""

    linkage: LinkageName | Linkage
    X: npt.ArrayLike | None
    connect: ConnectName | None
    must_link: Groups | None
    cannot_link: Groups | None
    max_cluster_size: float | None
    sample_weight: npt.ArrayLike | None
    n_jobs: int | None
    progress: Progress | None
    top: ConnectName | Literal["deprecated"] | None


def _check_inputs(
    method: str,
    plan_rounds: Planner,
    graph: NeighborGraph,
    *,
    linkage: LinkageName | Linkage = "average",
    X: npt.ArrayLike | None = None,
    connect: ConnectName | None = "auto",
    must_link: Groups | None = None,
    cannot_link: Groups | None = None,
    max_cluster_size: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    top: ConnectName | Literal["deprecated"] | None = "deprecated",
    **unknown: object,
) -> tuple[Any, ...]:
    """Check the shared arguments of an algorithm; return the arguments of :func:`build_hierarchy`."""
    for name in unknown:
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}: see help(agglo.{method})")
    if not isinstance(graph, NeighborGraph):
        raise TypeError(
            f"expected a NeighborGraph, got {type(graph).__name__}: make one of points with agglo.neighbor_graph, "
            "or of a SciPy matrix with NeighborGraph.from_scipy"
        )
    constraints = None
    if not (must_link is cannot_link is max_cluster_size is sample_weight is None):
        constraints = check_constraints(graph.n_points, must_link, cannot_link, max_cluster_size, sample_weight)
    if top != "deprecated":
        warnings.warn("top= is now called connect=: pass connect", FutureWarning, stacklevel=3)
        connect = top
    check_round_options(linkage, connect)
    return partial(run_plan, n_jobs, progress), plan_rounds, graph, linkage, X, connect, constraints


def _show_inputs(function: Function) -> Function:
    """Decorate a function so that its help shows the arguments of ``_check_inputs`` instead of ``**inputs``."""
    shown = signature(function)
    parameters = list(shown.parameters.values())[:-1]
    parameters += [p for p in signature(_check_inputs).parameters.values() if p.kind is p.KEYWORD_ONLY]
    function.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


@_show_inputs
def scc(
    graph: NeighborGraph,
    *,
    thresholds: ScheduleName | npt.ArrayLike = "odds",
    n_thresholds: int | None = None,
    advance: Advance = "every-round",
    **inputs: Unpack[Inputs],
) -> Hierarchy:
    """Run the Sub-Cluster Component algorithm (SCC) on a neighbour graph; return the tree of clusters.

    Parameters
    ----------
    graph : NeighborGraph
        The neighbour graph of the points.
    thresholds : {"odds", "geometric", "linear", "doubling"} or array-like, default="odds"
        The name of a schedule, or an array of thresholds from near to far: decreasing similarities or increasing
        distances. See :func:`agglo.rounds.schedule.schedule`.
    n_thresholds : int, optional
        The number of thresholds for ``"odds"``, ``"geometric"`` and ``"linear"``. The default is 200, as in the
        paper. For ``"odds"`` the default depends on the range of the weights and is often above 10,000. Thresholds
        at which nothing merges cost no time.
    linkage : {"average", "single", "complete", "exact-average", "centroid", "ward"} or Linkage, default="average"
        The similarity or distance of two clusters. Only clusters with an edge between them are compared.
        ``"exact-average"``, ``"centroid"`` and ``"ward"`` are computed from the vectors ``X``; see
        :class:`agglo.rounds.vector_linkage.VectorLinkage`. A custom :class:`agglo.Linkage` object runs in NumPy
        instead of the core.
    advance : {"every-round", "until-stable"}, default="every-round"
        When to go to the next threshold. ``"every-round"`` goes on after every round, as in the paper's
        experiments. ``"until-stable"`` goes on only after a round that merges nothing, as in the paper's
        Algorithm 1.
    X : array-like of shape (n_points, n_features), optional
        The points. Vector linkages and ``connect`` need them.
    connect : {"auto", "exact-average", "centroid", "ward"} or None, default="auto"
        After the rounds on the graph, clusters without edges between them may remain. ``connect`` is the linkage
        that merges such clusters, one merge per round. With None, they become children of one root.
        ``"auto"`` is the same as None in three cases: there is no dense ``X``, thresholds or constraints ended the
        rounds while edges were left, or ``linkage`` is a vector linkage.
        If ``linkage`` is ``"average"`` and the metric supports Ward's linkage, ``"auto"`` first drops the merges
        that the graph does not support; see :func:`agglo.rounds.connect.drop_unsupported_merges`. Then Ward's
        linkage merges the remaining clusters. In all other cases, ``"auto"`` is ``"exact-average"``. With the
        metric ``euclidean``, it is ``"centroid"`` instead.
    must_link : array-like of shape (n_links, 2) or list of groups, optional
        Groups of point indices. The points of a group are merged before the first round, at height 0.
    cannot_link : array-like of shape (n_links, 2) or list of groups, optional
        Groups of point indices. No cluster contains two points of the same group.
    max_cluster_size : float, optional
        The largest number of points in a cluster. With ``sample_weight``, the largest total weight of a cluster.
    sample_weight : array-like of shape (n_points,), optional
        A positive weight for each point. A point of weight 3 is treated like three duplicates. Weights affect
        averages and ``max_cluster_size``. Weights do not change the sizes in the tree, which are numbers of
        points.
    n_jobs : int, optional
        The number of threads. By default, all cores are used. The result does not depend on it.
    progress : callable, optional
        Called as ``progress("rounds", done, total)`` from time to time.
    top : deprecated
        The former name of ``connect``.

    Returns
    -------
    Hierarchy
        The tree. Its attribute ``rounds`` contains the number of clusters before and after each round. Its
        attribute ``about`` contains the parameters.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.9, 0.2, 0.8], kind="similarity")
    >>> tree = agglo.scc(graph)
    >>> tree.cut(n_clusters=2)
    array([0, 0, 1, 1])
    """

    def plan(
        rule: GraphLinkageName | Linkage | VectorLinkage, weights: npt.NDArray[np.float64] | None
    ) -> RoundPlan:
        return scc_plan(graph, thresholds, n_thresholds, rule, advance, weights)

    return build_hierarchy(*_check_inputs("scc", plan, graph, **inputs))


@_show_inputs
def affinity(graph: NeighborGraph, **inputs: Unpack[Inputs]) -> Hierarchy:
    """Run Affinity clustering on a graph: in each round every cluster merges with its nearest neighbour.

    The parameters are the same as in :func:`scc`, without thresholds. There are few rounds, and a round often
    merges clusters that are far apart.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.9, 0.2, 0.8], kind="similarity")
    >>> [record.after for record in agglo.affinity(graph).rounds]
    [2, 1]
    """
    return build_hierarchy(*_check_inputs("affinity", lambda rule, _: affinity_plan(rule), graph, **inputs))


@_show_inputs
def hac(graph: NeighborGraph, **inputs: Unpack[Inputs]) -> Hierarchy:
    """Run hierarchical agglomerative clustering (HAC) on a graph: each round merges the closest two clusters.

    The parameters are the same as in :func:`scc`, without thresholds. On the complete graph
    (``n_neighbors="all"``), this is classical HAC. If two pairs have equal linkage values, the pair with the
    smaller point indices merges first.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.9, 0.2, 0.8], kind="similarity")
    >>> agglo.hac(graph, linkage="single").height.round(2).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.8]
    """
    return build_hierarchy(*_check_inputs("hac", lambda rule, _: hac_plan(rule), graph, **inputs))
