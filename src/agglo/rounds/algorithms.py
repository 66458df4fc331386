"""The rounds: SCC, Affinity and HAC on a neighbour graph, run by the native core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from agglo import _core
from agglo._validation import effective_n_threads
from agglo.neighbors.graph import Missing, NeighborGraph, WeightSummary
from agglo.progress import Progress, phase
from agglo.rounds.constraints import Constraints, Groups, check_constraints
from agglo.rounds.linkage import GraphLinkageName, Linkage, LinkageName, check_linkage, grid, valued
from agglo.rounds.roots import joined, usual_top
from agglo.rounds.schedule import ScheduleName, schedule
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, TopName, VectorLinkage
from agglo.tree.forest import by_value
from agglo.tree.hierarchy import Forest, Hierarchy

Advance = Literal["every-round", "until-stable"]
ADVANCES = ("every-round", "until-stable")


@dataclass(frozen=True, eq=False)
class Plan:
    """What an engine is to do with a graph.

    In a round every cluster finds its nearest neighbour; the pairs whose linkage reaches the threshold, both
    rounded to float32, the precision of the weights, are joined, and connected components are the new clusters.
    """

    linkage: GraphLinkageName | Linkage
    thresholds: npt.NDArray[np.float64] | None  # from near to far; None: no threshold at all
    until_stable: bool  # stay at a threshold until a round merges nothing
    mutual: bool  # join only clusters that are each other's nearest neighbour
    about: dict[str, Any]


def scc_plan(
    graph: WeightSummary,
    thresholds: ScheduleName | npt.ArrayLike,
    n_thresholds: int | None,
    linkage: GraphLinkageName | Linkage,
    advance: Advance,
    weights: npt.NDArray[np.float64] | None = None,
) -> Plan:
    """The paper's algorithm: a threshold a round, or one kept until nothing merges."""
    if advance not in ADVANCES:
        raise ValueError(f"advance={advance!r} is unknown: pass one of {', '.join(ADVANCES)}")
    if isinstance(linkage, str):
        mass = None if weights is None else float(weights.sum() / weights.min())
        values = schedule(graph, thresholds, n_thresholds, linkage, mass)
    else:
        assert isinstance(graph, NeighborGraph)  # elsewhere there are only linkages on the graph
        if weights is None and isinstance(linkage, VectorLinkage):
            seen = linkage.valued(graph)
        else:
            seen = valued(graph, linkage, weights)
        values = schedule(seen, thresholds, n_thresholds, "given")
    about = {
        "method": "scc",
        "advance": advance,
        "thresholds": thresholds if isinstance(thresholds, str) else "given",
        "n_thresholds": len(values),
        "nearest_threshold": float(values[0]),
        "farthest_threshold": float(values[-1]),
    }
    return Plan(linkage, values, advance == "until-stable", False, about)


def affinity_plan(linkage: GraphLinkageName | Linkage) -> Plan:
    """No threshold: every cluster joins its nearest neighbour in every round."""
    return Plan(linkage, None, True, False, {"method": "affinity"})


def hac_plan(linkage: GraphLinkageName | Linkage) -> Plan:
    """No threshold, mutual nearest neighbours only: what best-first merging does, many merges at a time."""
    return Plan(linkage, None, True, True, {"method": "hac"})


def scc(
    graph: NeighborGraph,
    thresholds: ScheduleName | npt.ArrayLike = "odds",
    n_thresholds: int | None = None,
    linkage: LinkageName | Linkage = "average",
    advance: Advance = "every-round",
    n_jobs: int | None = None,
    *,
    X: npt.ArrayLike | None = None,
    top: TopName | None = None,
    must_link: Groups | None = None,
    cannot_link: Groups | None = None,
    max_cluster_size: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
    progress: Progress | None = None,
) -> Hierarchy:
    """The tree of the Sub-Cluster Component algorithm.

    Parameters
    ----------
    graph : NeighborGraph
        The points and their neighbours.
    thresholds : {"odds", "geometric", "linear", "doubling"} or array-like
        The schedule of thresholds from near to far, or the thresholds themselves (decreasing for similarities,
        increasing for distances). See :func:`agglo.rounds.schedule.schedule`.
    n_thresholds : int, optional
        How many, for ``"odds"``, ``"geometric"`` and ``"linear"``. By default 200, as in the paper, and for
        ``"odds"`` as many as its range needs, some ten thousands: those at which nothing merges cost nothing.
    linkage : {"average", "single", "complete", "exact-average", "centroid", "ward"} or Linkage
        How close two clusters are. Only clusters with an edge between them can be neighbours. The last three are
        of the points themselves, see :class:`agglo.rounds.vector_linkage.VectorLinkage`. One of your own, see
        :class:`agglo.Linkage`, is run in NumPy instead of the core.
    advance : {"every-round", "until-stable"}
        Whether to go to the next threshold after every round, as the paper's experiments do, or only when a round
        merged nothing, as its Algorithm 1 does.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    X : array-like of shape (n_points, n_features), optional
        The points, for linkages of the points themselves and for ``top``.
    top : {"auto", "exact-average", "centroid", "ward"}, optional
        How to merge the clusters that are left when the graph has no more edges between them; each such merge is a
        round. ``"auto"`` is what :class:`agglo.SCC` does. By default they stay apart, under one root. See
        :mod:`agglo.rounds.roots`.
    must_link : array-like of shape (n_links, 2) or list of groups, optional
        Points that belong together, by their indices. They are merged before the first round, at height 0, each
        group a node.
    cannot_link : array-like of shape (n_links, 2) or list of groups, optional
        Points that do not belong together, those of a group pairwise: no cluster ever holds two of them.
    max_cluster_size : float, optional
        How many points a cluster may be of, or how much it may weigh.
    sample_weight : array-like of shape (n_points,), optional
        What each point counts as, a positive number: 3 is as much as three copies of it, merged already. It
        matters to averages, and to ``max_cluster_size``; the sizes of the tree count points.
    progress : callable, optional
        Called as ``progress("rounds", done, total)`` from time to time.

    Returns
    -------
    Hierarchy
        The tree; its ``rounds`` tell what each round did and its ``about`` which thresholds were used.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.9, 0.2, 0.8], kind="similarity")
    >>> tree = agglo.scc(graph)
    >>> tree.cut(n_clusters=2)
    array([0, 0, 1, 1])
    """
    return made(
        partial(core_engine, n_jobs, progress),
        lambda rule, weights: scc_plan(graph, thresholds, n_thresholds, rule, advance, weights),
        graph,
        linkage,
        X=X,
        top=top,
        must_link=must_link,
        cannot_link=cannot_link,
        max_cluster_size=max_cluster_size,
        sample_weight=sample_weight,
    )


def affinity(
    graph: NeighborGraph,
    linkage: LinkageName | Linkage = "average",
    n_jobs: int | None = None,
    *,
    X: npt.ArrayLike | None = None,
    top: TopName | None = None,
    must_link: Groups | None = None,
    cannot_link: Groups | None = None,
    max_cluster_size: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
    progress: Progress | None = None,
) -> Hierarchy:
    """The tree of Affinity clustering: in each round every cluster joins its nearest neighbour.

    Parameters are those of :func:`scc`. It takes few rounds, and is apt to merge too much in them.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.9, 0.2, 0.8], kind="similarity")
    >>> [record.after for record in agglo.affinity(graph).rounds]
    [2, 1]
    """
    return made(
        partial(core_engine, n_jobs, progress),
        lambda rule, _: affinity_plan(rule),
        graph,
        linkage,
        X=X,
        top=top,
        must_link=must_link,
        cannot_link=cannot_link,
        max_cluster_size=max_cluster_size,
        sample_weight=sample_weight,
    )


def hac(
    graph: NeighborGraph,
    linkage: LinkageName | Linkage = "average",
    n_jobs: int | None = None,
    *,
    X: npt.ArrayLike | None = None,
    top: TopName | None = None,
    must_link: Groups | None = None,
    cannot_link: Groups | None = None,
    max_cluster_size: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
    progress: Progress | None = None,
) -> Hierarchy:
    """The binary tree of hierarchical agglomerative clustering on the graph, each merge a round of its own.

    Parameters are those of :func:`scc`. On the complete graph (``n_neighbors="all"``) it is classical HAC. Where
    linkages tie, which pair goes first is settled by the smaller point indices.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.9, 0.2, 0.8], kind="similarity")
    >>> agglo.hac(graph, linkage="single").height.round(2).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.8]
    """
    return made(
        partial(core_engine, n_jobs, progress),
        lambda rule, _: hac_plan(rule),
        graph,
        linkage,
        X=X,
        top=top,
        must_link=must_link,
        cannot_link=cannot_link,
        max_cluster_size=max_cluster_size,
        sample_weight=sample_weight,
    )


Engine = Callable[[NeighborGraph, Plan, Constraints | None], Forest]
Top = VectorLinkage | partial[VectorLinkage]
Planner = Callable[[GraphLinkageName | Linkage, npt.NDArray[np.float64] | None], Plan]


def made(
    engine: Engine,
    planner: Planner,
    graph: NeighborGraph,
    linkage: LinkageName | Linkage,
    *,
    X: npt.ArrayLike | None = None,
    top: TopName | None = None,
    must_link: Groups | None = None,
    cannot_link: Groups | None = None,
    max_cluster_size: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Hierarchy:
    """The tree that ``engine`` makes of ``graph`` by the plan that ``planner`` makes for linkage and weights."""
    if not isinstance(graph, NeighborGraph):
        raise TypeError(
            f"expected a NeighborGraph, got {type(graph).__name__}: make one of points with agglo.neighbor_graph, "
            "or of a SciPy matrix with NeighborGraph.from_scipy"
        )
    check_linkage(linkage)
    if top not in (None, "auto", *VECTOR_LINKAGES):
        raise ValueError(f"top={top!r} is unknown: pass None, 'auto' or one of {', '.join(VECTOR_LINKAGES)}")
    constraints = None
    if not (must_link is cannot_link is max_cluster_size is sample_weight is None):
        constraints = check_constraints(graph.n_points, must_link, cannot_link, max_cluster_size, sample_weight)
    weights = None if constraints is None else constraints.weights
    rule: GraphLinkageName | Linkage
    if linkage == "exact-average" or linkage == "centroid" or linkage == "ward":
        rule = VectorLinkage(graph, linkage, X, weights)
        rule.warn_of_rounding(stacklevel=3)
    else:
        rule = linkage
    above: Top | None = None
    if top == "auto":
        chosen = usual_top(graph.metric, linkage, X)
        if chosen is not None:
            above = partial(VectorLinkage, graph, chosen, X, weights)  # a copy of the points: only if it must be
    elif top is not None:
        above = VectorLinkage(graph, top, X, weights)  # which raises before the rounds
    return _hierarchy(engine, planner(rule, weights), graph, constraints, above)


def core_engine(
    n_jobs: int | None,
    progress: Progress | None,
    graph: NeighborGraph,
    plan: Plan,
    constraints: Constraints | None,
) -> Forest:
    """The forest that the core makes of a graph by a plan; the result does not depend on the threads."""
    shared = {
        "thresholds": np.empty(0) if plan.thresholds is None else plan.thresholds,
        "until_stable": plan.until_stable,
        "mutual": plan.mutual,
        **_for_core(constraints),
        "threads": effective_n_threads(n_jobs),
        "progress": phase(progress, "rounds"),
    }
    if isinstance(plan.linkage, VectorLinkage):
        columns = _core.run_rounds_of_vectors(
            graph.indptr,
            graph.indices,
            graph.weights,
            similarity=plan.linkage.kind == "similarity",
            means=plan.linkage.handed_over(),
            linkage=plan.linkage.linkage,
            metric=plan.linkage.metric,
            spreads=np.empty(0) if plan.linkage.spreads is None else plan.linkage.spreads,
            **shared,
        )
        return Forest(*columns)
    if not isinstance(plan.linkage, str):
        from agglo.rounds import numpy_engine as vectorised  # whose plans are of this module

        return vectorised.run(graph, plan, constraints, progress)
    weights = None if constraints is None or plan.linkage != "average" else constraints.weights
    fixed = grid(graph, weights)
    columns = _core.run_rounds(
        graph.indptr,
        graph.indices,
        graph.weights,
        similarity=graph.kind == "similarity",
        linkage=plan.linkage,
        missing=None if graph.missing == "ignore" else graph.missing,
        shift=fixed.shift,
        limbs=fixed.limbs,
        count_shift=fixed.count_shift,
        **shared,
    )
    return Forest(*columns)


def _for_core(constraints: Constraints | None) -> dict[str, Any]:
    if constraints is None:
        none = np.empty(0, np.int32)
        return {"must": none, "cannot": none, "groups": none, "most": np.inf, "point_weights": np.empty(0)}
    given = {name: getattr(constraints, name).ravel() for name in ("must", "cannot", "groups")}
    weights = np.empty(0) if constraints.weights is None else constraints.weights
    return {**given, "most": constraints.most, "point_weights": weights}


def _hierarchy(
    engine: Engine,
    plan: Plan,
    graph: NeighborGraph,
    constraints: Constraints | None,
    top: Top | None,
) -> Hierarchy:
    forest = engine(graph, plan, constraints)
    assert graph.missing is not None
    name: str
    missing: Missing
    if isinstance(plan.linkage, str):
        name, kind, missing, closest = plan.linkage, graph.kind, graph.missing, graph.weights.max(initial=1.0)
    else:
        named = isinstance(plan.linkage, VectorLinkage)
        name = str(plan.linkage) if named else type(plan.linkage).__name__
        kind, missing = plan.linkage.kind, "ignore"
        closest = np.max(forest.value, initial=1.0, where=np.isfinite(forest.value))
    if plan.mutual:
        forest = by_value(forest, kind == "similarity")
    about = {"linkage": name, "metric": graph.metric, **plan.about}
    left = int(forest.after[-1]) if len(forest.after) else graph.n_points
    if isinstance(top, partial):  # where it is the graph that ends, and not the thresholds or what is allowed
        ended = left > 1 and left == connected_components(graph.to_scipy(), False, return_labels=False)
        top = top() if ended else None
    if top is not None:

        def run(clusters: NeighborGraph, linkage: VectorLinkage, known: Constraints | None) -> Forest:
            merged = engine(clusters, hac_plan(linkage), known)
            return by_value(merged, linkage.kind == "similarity")

        forest = joined(forest, top, kind, constraints, run)
        about |= {"top": str(top), "graph_clusters": left}
    if constraints is not None:
        about |= constraints.about()
    return Hierarchy.from_forest(forest, kind=kind, missing=missing, origin=max(1.0, float(closest)), about=about)
