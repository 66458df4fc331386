"""Round plans: the linkage, the thresholds and the advance rule of one run of the rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph, WeightSummary
from agglo.rounds.linkage import GraphLinkageName, Linkage, edge_linkages
from agglo.rounds.schedule import ScheduleName, schedule
from agglo.rounds.vector_linkage import VectorLinkage

Advance = Literal["every-round", "until-stable"]
ADVANCES = ("every-round", "until-stable")


@dataclass(frozen=True, eq=False)
class RoundPlan:
    """Parameters of one run of the rounds.

    In each round every cluster finds its nearest neighbour. The two merge if their linkage reaches the threshold.
    Both numbers are rounded to float32, the precision of the weights. The connected components of these pairs are
    the new clusters.
    """

    linkage: GraphLinkageName | Linkage
    thresholds: npt.NDArray[np.float64] | None  # from near to far; None: every value reaches the threshold
    until_stable: bool  # keep a threshold until a round merges nothing
    mutual: bool  # merge only clusters that are each other's nearest neighbour
    about: dict[str, Any]  # what the tree records of the plan


def scc_plan(
    graph: WeightSummary,
    thresholds: ScheduleName | npt.ArrayLike,
    n_thresholds: int | None,
    linkage: GraphLinkageName | Linkage,
    advance: Advance,
    weights: npt.NDArray[np.float64] | None = None,
) -> RoundPlan:
    """Plan the paper's algorithm: one threshold per round, or each threshold until nothing merges."""
    if advance not in ADVANCES:
        raise ValueError(f"advance={advance!r} is unknown: pass one of {', '.join(ADVANCES)}")
    if isinstance(linkage, str):
        mass = None if weights is None else float(weights.sum() / weights.min())
        values = schedule(graph, thresholds, n_thresholds, linkage, mass)
    else:
        assert isinstance(graph, NeighborGraph)  # Spark has linkages on the graph only
        if weights is None and isinstance(linkage, VectorLinkage):
            edges = linkage.edge_linkages(graph)
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


def affinity_plan(linkage: GraphLinkageName | Linkage) -> RoundPlan:
    """Plan Affinity clustering: without a threshold, every cluster merges with its nearest neighbour."""
    return RoundPlan(linkage, None, True, False, {"method": "affinity"})


def hac_plan(linkage: GraphLinkageName | Linkage) -> RoundPlan:
    """Plan HAC: without a threshold, merge mutual nearest neighbours.

    With a reducible linkage these are the merges of best-first HAC, many of them in one round.
    """
    return RoundPlan(linkage, None, True, True, {"method": "hac"})
