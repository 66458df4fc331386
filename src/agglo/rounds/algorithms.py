"""SCC, Affinity and HAC on a neighbour graph, run by the native core."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from agglo import _core
from agglo._validation import check_choice, effective_n_threads
from agglo.neighbors.graph import Missing, NeighborGraph, fixed_point_for
from agglo.progress import Progress
from agglo.rounds import numpy_engine
from agglo.rounds.connect import choose_connect, drop_unsupported_merges, extend_heights, merge_roots
from agglo.rounds.constraints import Constraints, Groups, check_constraints
from agglo.rounds.linkage import LINKAGES, GraphLinkageName, Linkage, LinkageName, check_linkage
from agglo.rounds.schedule import Advance, RoundPlan, ScheduleName, affinity_plan, hac_plan, scc_plan
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, ConnectName, VectorLinkage
from agglo.tree.default_level import modularity_path
from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Hierarchy

Function = TypeVar("Function", bound=Callable[..., Hierarchy])
Engine = Callable[[NeighborGraph, RoundPlan, Constraints | None], Forest]
Planner = Callable[[GraphLinkageName | Linkage, npt.NDArray[np.float64] | None], RoundPlan]


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
    return partial(run_core, n_jobs, progress), plan_rounds, graph, linkage, X, connect, constraints


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
        The tree. Its attribute ``rounds`` contains the numbers of clusters before and after each round. Its
        attribute ``about`` contains the parameters.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.9, 0.2, 0.8], kind="similarity")
    >>> tree = agglo.scc(graph)
    >>> tree.cut(n_clusters=2)
    array([0, 0, 1, 1])
    """

    def plan(rule: GraphLinkageName | Linkage, weights: npt.NDArray[np.float64] | None) -> RoundPlan:
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


def check_round_options(linkage: object, connect: object) -> None:
    """Raise if ``linkage``, or the linkage ``connect`` that merges the roots, is unknown."""
    if not isinstance(linkage, str) or linkage not in LINKAGES:
        check_linkage(linkage)
    check_choice("connect", connect, (None, "auto", *VECTOR_LINKAGES))


def build_hierarchy(
    engine: Engine,
    plan_rounds: Planner,
    graph: NeighborGraph,
    linkage: LinkageName | Linkage,
    X: npt.ArrayLike | None,
    connect: ConnectName | None,
    constraints: Constraints | None,
) -> Hierarchy:
    """Run the rounds on ``graph``, merge the remaining roots, and return the tree.

    ``plan_rounds(linkage, weights)`` returns the plan of the rounds. ``weights`` are the point weights, or None.
    """
    weights = None if constraints is None else constraints.weights
    rule: GraphLinkageName | Linkage
    if linkage == "exact-average" or linkage == "centroid" or linkage == "ward":
        rule = VectorLinkage(graph, linkage, X, weights)
        rule.warn_of_rounding(stacklevel=3)
    else:
        rule = linkage
    root_linkage: VectorLinkage | None = None
    if connect is not None and connect != "auto":
        root_linkage = VectorLinkage(graph, connect, X, weights)  # raises if X is invalid, before the rounds run
    plan = plan_rounds(rule, weights)
    forest = engine(graph, plan, constraints)

    kind, about = graph.kind, {"linkage": str(rule), "metric": graph.metric, **plan.about}
    missing, closest = cast(Missing, graph.missing), graph.weights.max(initial=1.0)
    if not isinstance(rule, str):
        kind, missing = rule.kind, "ignore"
        closest = np.max(forest.value, initial=1.0, where=np.isfinite(forest.value))
        if not isinstance(rule, VectorLinkage):
            about["linkage"] = type(rule).__name__
    if plan.mutual:
        forest = _sort_merges(forest, kind == "similarity")
    if constraints is not None:
        about |= constraints.about()
    origin = max(1.0, float(closest))
    n_clusters = int(forest.after[-1]) if len(forest.after) else graph.n_points
    if connect == "auto":
        chosen = choose_connect(graph.metric, linkage, X)
        # If thresholds or constraints ended the rounds while edges were left, do not merge the roots.
        if chosen is not None and (n_clusters == 1 or n_clusters == _count_components(graph)):
            if chosen == "ward" and 2 * graph.n_edges < graph.n_points * (graph.n_points - 1):
                tree = Hierarchy.from_forest(forest, kind=kind, missing=missing, origin=origin, about=about)
                forest = drop_unsupported_merges(forest, modularity_path(tree, graph, sample_weight=weights))
                n_clusters = int(np.count_nonzero(forest.parent < 0))
            if n_clusters > 1:
                root_linkage = VectorLinkage(graph, chosen, X, weights)
    if root_linkage is not None:
        n_below = len(forest.parent)

        def run_hac(roots: NeighborGraph, linkage: VectorLinkage, constraints: Constraints | None) -> Forest:
            merged = engine(roots, hac_plan(linkage), constraints)
            return _sort_merges(merged, linkage.kind == "similarity")

        forest = merge_roots(forest, root_linkage, kind, constraints, run_hac)
        if connect == "auto" and root_linkage.linkage == "ward":
            forest = extend_heights(forest, n_below, kind, missing)
        about |= {"connect": str(root_linkage), "graph_clusters": n_clusters}
    return Hierarchy.from_forest(forest, kind=kind, missing=missing, origin=origin, about=about)


def _sort_merges(forest: Forest, is_similarity: bool) -> Forest:
    """Sort the merges of a binary forest by linkage value; return a forest with one merge per round, as in HAC.

    If a merge is closer than a merge below it, it is sorted by the value of the merge below it. So children come
    before their parents. Merges of must-link points have infinite linkage values. They stay in the first round.
    """
    must_link = np.isinf(forest.value)
    n = int(((forest.round == 0) | must_link).sum())  # nodes that are not sorted: leaves and must-link merges
    rounds = int(must_link.any())  # number of rounds that are not sorted
    merges = len(forest.parent) - n
    distance = -forest.value[n:] if is_similarity else forest.value[n:]
    settled = _core.make_heights_monotone(forest.parent, np.concatenate([np.full(n, -np.inf), distance]))[n:]
    order = np.argsort(settled, kind="stable")
    place = np.empty(merges, np.int32)
    place[order] = np.arange(merges, dtype=np.int32)
    old = np.concatenate([np.arange(n), n + order])
    parent = forest.parent[old]
    inner = parent >= n
    parent[inner] = n + place[parent[inner] - n]
    clusters = int(forest.before[rounds]) if merges else 0
    before = clusters - np.arange(merges)
    unknown = np.full(merges, np.nan)
    return Forest(
        parent,
        forest.value[old],
        forest.size[old],
        np.concatenate([forest.round[:n], rounds + np.arange(1, merges + 1, dtype=np.int32)]),
        np.concatenate([forest.threshold[:rounds], unknown]),
        np.concatenate([forest.before[:rounds], before]),
        np.concatenate([forest.after[:rounds], before - 1]),
        np.concatenate([forest.seconds[:rounds], unknown]),
    )


def _count_components(graph: NeighborGraph) -> int:
    return int(connected_components(graph.to_scipy(), False, return_labels=False))


def run_core(
    n_jobs: int | None,
    progress: Progress | None,
    graph: NeighborGraph,
    plan: RoundPlan,
    constraints: Constraints | None,
) -> Forest:
    """Run the rounds of ``plan`` in the C++ core, or in NumPy for a custom linkage; return the forest."""
    linkage, rows = plan.linkage, (graph.indptr, graph.indices, graph.weights)
    n_threads, report = effective_n_threads(n_jobs), progress and partial(progress, "rounds")
    limits = _core_constraints(constraints)
    if isinstance(linkage, VectorLinkage):
        vectors = _core.Vectors(
            linkage.release_points(),
            linkage=linkage.linkage,
            metric=linkage.metric,
            weights=_or_empty(None if constraints is None else constraints.weights),
            spreads=_or_empty(linkage.spreads),
        )
        core_plan = _core_plan(plan, _core.LinkageSpec(linkage.kind))
        return Forest(*_core.run_vector_rounds(rows, vectors, core_plan, limits, n_threads, report))
    if not isinstance(linkage, str):
        return numpy_engine.run(graph, plan, constraints, progress)
    weights = None if constraints is None or linkage != "average" else constraints.weights
    fixed = fixed_point_for(graph, weights)
    spec = _core.LinkageSpec(
        graph.kind,
        linkage,
        missing=None if graph.missing == "ignore" else graph.missing,
        shift=fixed.shift,
        limbs=fixed.limbs,
        count_shift=fixed.count_shift,
    )
    return Forest(*_core.run_rounds(rows, _core_plan(plan, spec), limits, n_threads, report))


def _core_plan(plan: RoundPlan, linkage: _core.LinkageSpec) -> _core.RoundPlan:
    """Convert a plan of the rounds to an argument of the C++ core."""
    return _core.RoundPlan(
        linkage, thresholds=_or_empty(plan.thresholds), until_stable=plan.until_stable, mutual=plan.mutual
    )


def _core_constraints(constraints: Constraints | None) -> _core.Constraints:
    """Convert the constraints to the form that the C++ core takes; None becomes empty arrays."""
    none = np.empty(0, np.int32)
    return _core.Constraints(
        must_link=none if constraints is None else constraints.must.ravel(),
        cannot_link=none if constraints is None else constraints.cannot.ravel(),
        groups=none if constraints is None else constraints.groups.ravel(),
        max_weight=np.inf if constraints is None else constraints.most,
        weights=_or_empty(None if constraints is None else constraints.weights),
    )


def _or_empty(values: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
    """Return ``values``. If they are None, return an empty array, as the C++ core expects."""
    return np.empty(0) if values is None else values
