"""Choose the thresholds of the rounds (schedule), set all parameters of the rounds (plan), and run the rounds.

A schedule is an array of thresholds, from near to far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import geomspace, log
from agglo._validation import check_choice, effective_n_threads
from agglo.neighbors.graph import Kind, NeighborGraph, WeightSummary, fixed_point_for
from agglo.progress import Progress
from agglo.rounds import numpy_engine
from agglo.rounds.constraints import Constraints
from agglo.rounds.linkage import GraphLinkageName, Linkage, edge_linkages
from agglo.rounds.vector_linkage import VectorLinkage
from agglo.tree.forest import Forest

ScheduleName = Literal["odds", "geometric", "linear", "doubling"]
SCHEDULES = ("odds", "geometric", "linear", "doubling")
Advance = Literal["every-round", "until-stable"]
ADVANCES = ("every-round", "until-stable")

# The range of the paper's thresholds, for cosines and for squared Euclidean distances of unit vectors.
_COSINE = (1.0, 0.001)
_UNIT_SQEUCLIDEAN = (0.001, 4.0)

_NUMBER = 200  # the number of thresholds in the paper's experiments
_STEPS = 15_980  # default number of thresholds per factor of 1000: about 20 times the paper's 800
_FLOAT32 = 2.0**-22  # relative differences below this are lost in float32 rounding
_FEW = 0.001  # the range of thresholds ignores this share of the closest edges, and of the farthest edges


def threshold_range(graph: WeightSummary) -> tuple[float, float]:
    """Return the nearest and the farthest threshold for ``graph``.

    The range of similarities starts at 1, or at the largest weight if that is larger. It ends at a thousandth of
    its start. The paper uses this range for cosines. Dot products have no upper bound, so their range starts at
    the largest weight. Squared Euclidean distances of unit vectors range from 0.001 to 4, as in the paper. Other
    distances range from the 0.1 % quantile of the positive weights to the largest weight, or to ``missing`` if
    that is larger. Because of the quantile, a few near duplicates do not extend the range.
    """
    if graph.kind == "similarity":
        nearest = _closest_similarity(graph)
        return nearest, nearest * _COSINE[1]
    if not graph.n_edges:
        return 0.0, 0.0
    if graph.metric == "sqeuclidean" and graph.missing == _UNIT_SQEUCLIDEAN[1]:
        return _UNIT_SQEUCLIDEAN
    farthest = graph.max_weight
    if graph.missing != "ignore":
        farthest = max(farthest, float(graph.missing or 0.0))
    if farthest <= 0:
        return graph.min_weight, farthest
    low = graph.quantile_above(0.0, True, _FEW)
    return farthest if low is None else low, farthest


def _closest_similarity(graph: WeightSummary) -> float:
    """Return the similarity at which the thresholds for ``graph`` start."""
    if graph.metric == "dot" and graph.max_weight > 0:
        return graph.max_weight  # then the tree does not depend on the scale of the points
    return max(1.0, graph.max_weight)


def _unit_similarity(graph: WeightSummary) -> float:
    """Return the similarity that the schedule ``"odds"`` converts to distance 0; see :func:`schedule`."""
    largest = graph.max_weight
    if graph.metric == "dot" or largest <= 0 or 0.5 < largest <= 1:
        return _closest_similarity(graph)
    if largest > 1:
        power = len(str(int(largest))) - 1  # 10 ** power <= largest
        units = (float(digit * 10**power) for digit in (1, 2, 5, 10))
        unit = next(unit for unit in units if largest * (1 - _FLOAT32) <= unit)
        return max(unit, largest)  # rounding may make a cosine larger than 1
    fraction, exponent = math.frexp(largest)
    return math.ldexp(1.0, exponent - (fraction == 0.5))


def schedule(
    graph: WeightSummary,
    thresholds: ScheduleName | npt.ArrayLike = "odds",
    n_thresholds: int | None = None,
    linkage: str = "average",
    mass: float | None = None,
) -> npt.NDArray[np.float64]:
    """Return the thresholds for ``graph``, from near to far.

    Parameters
    ----------
    graph : NeighborGraph
        The graph to cluster. Its kind and weights determine the range.
    thresholds : {"odds", "geometric", "linear", "doubling"} or array-like
        ``"odds"``: the odds (1 - d) / d of the relative distance d decrease by equal ratios; see the notes.
        ``"geometric"``: equal ratios over the range of :func:`threshold_range`. ``"linear"``: equal steps over
        that range. ``"doubling"``: the schedule τ₀·2ⁱ of the paper's theorem. It doubles the smallest positive
        distance until the farthest distance is covered. For similarities, it halves the threshold instead. An
        array is used unchanged.
    n_thresholds : int, optional
        The number of thresholds for ``"odds"``, ``"geometric"`` and ``"linear"``. With 1, only the farthest
        threshold is used. The default is 200, as in the paper. For ``"odds"``, the default is 15,980 per factor
        of 1,000, which is 20 times as many as in the paper's finest schedule.
    linkage : str
        The linkage that is compared with the thresholds. Values of ``"average"`` can be farther than all edge
        weights, because they include pairs without an edge. Other linkages stay within the range of the weights.
    mass : float, optional
        The total weight of the points divided by the smallest weight. By default, it is the number of points.

    Notes
    -----
    Close and far clusters need different scales. Close clusters differ by ratios of distances, as in the paper's
    theorem: there may be as many levels between cosines of 0.9999 and 0.99 as between 0.99 and 0. Between large
    clusters, most pairs of points have no edge. The average linkage of clusters with a and b points may then
    differ from ``missing`` by only 1 / (a b). Large clusters differ on this scale.

    Let d be the distance of two clusters, relative to the distance of a pair without an edge. The odds (1 - d) / d
    suit both scales: they are about 1 / d for small d, and about 1 - d for d near 1. The schedule starts at the
    odds of the nearest edge. It ends at 4 / n² times the odds of the farthest edge. These are the smallest
    possible odds of two clusters that have n points in total and an edge between them. Therefore all clusters with
    an edge between them merge. The nearest and the farthest 0.1 % of the edges do not extend the range. The range
    always includes odds of 0.001. For other linkages, the distances of the thresholds increase by equal ratios up
    to the farthest edge. The same holds if pairs without an edge are ignored.

    The distance of a similarity is 1 minus the similarity, if the largest weight is above 1/2 and at most 1. If it
    is larger, the smallest of 2, 5, 10, 20, 50, ... that no weight exceeds replaces the 1. So percentages and
    thousandths give the same tree as fractions, except for rounding. If all weights are at most 1/2, the smallest
    power of two that no weight exceeds replaces the 1. So weights times 1/2, 1/4, ... give the same tree. For dot
    products, the largest weight replaces the 1.

    With smaller steps, the tree is closer to the tree of HAC. A threshold at which nothing merges costs no time.

    Examples
    --------
    >>> from agglo import NeighborGraph
    >>> from agglo.rounds.schedule import schedule
    >>> graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.9, 0.5], kind="similarity")
    >>> schedule(graph, "geometric", 4).round(3).tolist()
    [1.0, 0.1, 0.01, 0.001]
    >>> schedule(graph, "odds", 4).round(3).tolist()
    [0.9, 0.302, 0.02, 0.001]
    """
    given = check_schedule(thresholds, n_thresholds, graph.kind)
    if given is not None:
        return given
    if thresholds == "odds":
        return _odds(graph, n_thresholds, linkage, float(graph.n_points) if mass is None else mass)
    n_thresholds = _NUMBER if n_thresholds is None else n_thresholds
    nearest, farthest = threshold_range(graph)
    if nearest == farthest or (n_thresholds == 1 and thresholds != "doubling"):
        return np.array([farthest])
    if thresholds == "linear":
        return np.linspace(nearest, farthest, n_thresholds)
    if min(nearest, farthest) <= 0:
        raise ValueError(
            f"{thresholds} thresholds need a positive range, but the weights give {nearest:g} to {farthest:g}: "
            "pass thresholds='linear' or an array"
        )
    if thresholds == "geometric":
        return geomspace(nearest, farthest, n_thresholds)
    first = nearest
    if graph.kind == "distance":
        first = min(nearest, graph.quantile_above(0.0, True, 0.0) or nearest)
    fraction, steps = math.frexp(max(farthest, first) / min(farthest, first))
    if fraction == 0.5:
        steps -= 1  # 2 ** steps is now the smallest power of two that is at least the ratio
    exponents = np.arange(steps + 1) if farthest > nearest else -np.arange(steps + 1)
    return np.ldexp(first, exponents)


def _odds(graph: WeightSummary, number: int | None, linkage: str, mass: float) -> npt.NDArray[np.float64]:
    """Compute the thresholds of the schedule ``"odds"``; see :func:`schedule`."""
    up = graph.kind == "distance"  # whether far pairs have larger weights
    sign = 1.0 if up else -1.0
    closest = min(0.0, graph.min_weight) if up else _unit_similarity(graph)

    def distance(weight: float | None, otherwise: float) -> float:
        return otherwise if weight is None else sign * (weight - closest)

    diluted = linkage == "average" and graph.missing != "ignore"
    farthest = distance(graph.max_weight if up else graph.min_weight, 0.0) if graph.n_edges else 0.0
    if diluted:
        absent = sign * (float(graph.missing or 0.0) - closest)
        farthest = max(absent, farthest) if sign > 0 or absent <= 0 else absent
    if farthest <= 0:  # all points are duplicates, or the graph has no edges
        return np.array([closest])
    nearest = min(distance(graph.quantile_above(closest, up, _FEW), farthest), farthest / 2)
    if not diluted:
        return closest + sign * _ratios(nearest, farthest, number)
    # 1 minus the distance of the farthest edges, relative to the distance of a pair without an edge.
    closer = 1 - distance(graph.quantile_above(closest + sign * farthest, not up, _FEW), 0.0) / farthest
    closer = max(closer, 2.0**-53)  # smaller differences are lost in rounding
    least = min(_COSINE[1], 4 * closer / mass**2)
    zero = closest + sign * farthest == 0.0  # thresholds that end at 0 can be arbitrarily close to it in float32
    odds = 1 / _ratios(nearest / (farthest - nearest), 1 / (least if zero else max(least, _FLOAT32)), number)
    if zero:
        return np.asarray(closest * odds / (1 + odds))
    odds[-1] = 0.0  # the last threshold is the value of a pair without an edge
    return np.asarray(closest + sign * farthest / (1 + odds))


def _ratios(first: float, last: float, number: int | None) -> npt.NDArray[np.float64]:
    """Return a geometric progression of ``number`` values; by default, 15,980 values per factor of 1,000."""
    if number is None:
        number = 1 + math.ceil(log(last / first) / log(1000.0) * _STEPS)
    return geomspace(first, last, number) if number > 1 else np.array([last])


def check_schedule(
    thresholds: ScheduleName | npt.ArrayLike, n_thresholds: int | None, kind: Kind
) -> npt.NDArray[np.float64] | None:
    """Check the parameters of a schedule; return ``thresholds`` as an array, or None for a named schedule.

    ``kind`` is the kind of the linkage. Thresholds must decrease for similarities and increase for distances.
    """
    if isinstance(thresholds, str):
        if thresholds not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise ValueError(f"thresholds={thresholds!r} is unknown: pass one of {known}, or an array")
        is_number = isinstance(n_thresholds, int | np.integer) and not isinstance(n_thresholds, bool)
        if n_thresholds is not None and (not is_number or n_thresholds < 1):
            raise ValueError(f"n_thresholds={n_thresholds!r} must be a positive integer")
        return None
    given: npt.NDArray[Any] = np.atleast_1d(np.asarray(thresholds))
    if given.dtype.kind not in "iuf" or given.ndim != 1 or len(given) == 0:
        raise ValueError(
            f"thresholds must be a name or a one-dimensional array of numbers, got dtype {given.dtype} "
            f"and shape {given.shape}"
        )
    values = given.astype(np.float64)
    if not np.isfinite(values).all():
        where = int((~np.isfinite(values)).argmax())
        raise ValueError(
            f"thresholds[{where}] is {values[where]}, but thresholds are finite: leave it out, or end with the "
            "value of the farthest pair"
        )
    steps = np.diff(values) if kind == "distance" else -np.diff(values)
    if (steps <= 0).any():
        where = int((steps <= 0).argmax())
        order = "increasing (distances)" if kind == "distance" else "decreasing (similarities)"
        raise ValueError(
            f"thresholds must be strictly {order}, from near to far, but thresholds[{where}]={values[where]:g} is "
            f"followed by {values[where + 1]:g}: sort them and drop duplicates"
        )
    return values


@dataclass(frozen=True, eq=False)
class RoundPlan:
    """The parameters of the rounds: the linkage, the thresholds, and which pairs of clusters merge.

    In each round, every cluster finds its nearest neighbour. If their linkage reaches the threshold, both merge.
    Linkage and threshold are compared in float32, the precision of the edge weights. The connected components of
    the merging pairs are the new clusters.
    """

    linkage: GraphLinkageName | Linkage | VectorLinkage
    thresholds: npt.NDArray[np.float64] | None  # from near to far; if None, neighbours merge at any distance
    until_stable: bool  # whether to keep a threshold until a round merges nothing
    mutual: bool  # whether to merge only mutual nearest neighbours
    about: dict[str, Any]  # entries to add to Hierarchy.about


def scc_plan(
    graph: WeightSummary,
    thresholds: ScheduleName | npt.ArrayLike,
    n_thresholds: int | None,
    linkage: GraphLinkageName | Linkage | VectorLinkage,
    advance: Advance,
    weights: npt.NDArray[np.float64] | None = None,
) -> RoundPlan:
    """Return the parameters of SCC's rounds. ``advance`` says after which rounds to go to the next threshold."""
    check_choice("advance", advance, ADVANCES)
    if isinstance(linkage, str):
        mass = None if weights is None else float(weights.sum() / weights.min())
        values = schedule(graph, thresholds, n_thresholds, linkage, mass)
    else:
        assert isinstance(graph, NeighborGraph)  # on Spark, linkage is a str
        if isinstance(linkage, VectorLinkage):
            edges = linkage.edge_linkages(graph, weights)
        else:
            edges = edge_linkages(graph, linkage, weights)
        values = schedule(edges, thresholds, n_thresholds, "given")
    about = {
        "method": "scc",
        "advance": advance,
        "thresholds": thresholds if isinstance(thresholds, str) else "given",
        "n_thresholds": len(values),
        "nearest_threshold": float(values[0]),
        "farthest_threshold": float(values[-1]),
    }
    return RoundPlan(linkage, values, advance == "until-stable", False, about)


def affinity_plan(linkage: GraphLinkageName | Linkage | VectorLinkage) -> RoundPlan:
    """Return the parameters of Affinity's rounds: each cluster merges with its nearest neighbour, however far."""
    return RoundPlan(linkage, None, True, False, {"method": "affinity"})


def hac_plan(linkage: GraphLinkageName | Linkage | VectorLinkage) -> RoundPlan:
    """Return the parameters of HAC's rounds: all pairs of mutual nearest neighbours merge, at any distance.

    If the linkage is reducible, the merges are those of sequential HAC. Many of these merges share a round.
    """
    return RoundPlan(linkage, None, True, True, {"method": "hac"})


def run_plan(
    n_jobs: int | None,
    progress: Progress | None,
    graph: NeighborGraph,
    plan: RoundPlan,
    constraints: Constraints | None,
) -> Forest:
    """Run the rounds with the parameters ``plan`` in C++, or in NumPy for custom linkages; return the forest."""
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
        core_plan = convert_plan(plan, _core.LinkageSpec(linkage.kind))
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
    return Forest(*_core.run_rounds(rows, convert_plan(plan, spec), limits, n_threads, report))


def convert_plan(plan: RoundPlan, linkage: _core.LinkageSpec) -> _core.RoundPlan:
    """Convert the parameters of the rounds to the form that the C++ core takes."""
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
