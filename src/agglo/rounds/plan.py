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

    In each round every cluster finds its nearest neighbour. The pair merges if its linkage reaches the threshold.
    Linkage and threshold are compared in float32, the precision of the edge weights. The connected components of
    the merging pairs are the new clusters.
    """

    linkage: GraphLinkageName | Linkage
    thresholds: npt.NDArray[np.float64] | None  # from near to far; None: every pair merges
    until_stable: bool  # whether to keep a threshold until a round merges nothing
    mutual: bool  # whether to merge only mutual nearest neighbours
    about: dict[str, Any]  # entries for the record of the tree, Hierarchy.about


def scc_plan(
    graph: WeightSummary,
    thresholds: ScheduleName | npt.ArrayLike,
    n_thresholds: int | None,
    linkage: GraphLinkageName | Linkage,
    advance: Advance,
    weights: npt.NDArray[np.float64] | None = None,
) -> RoundPlan:
    """Plan the rounds of SCC: advance the threshold after every round, or when a round merges nothing."""
    if advance not in ADVANCES:
        raise ValueError(f"advance={advance!r} is unknown: pass one of {', '.join(ADVANCES)}")
    if isinstance(linkage, str):
        mass = None if weights is None else float(weights.sum() / weights.min())
        values = schedule(graph, thresholds, n_thresholds, linkage, mass)
    else:
        assert isinstance(graph, NeighborGraph)  # Spark supports only linkages on the graph
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
    """Plan Affinity clustering: no thresholds; every cluster merges with its nearest neighbour."""
    return RoundPlan(linkage, None, True, False, {"method": "affinity"})


def hac_plan(linkage: GraphLinkageName | Linkage) -> RoundPlan:
    """Plan HAC: no thresholds; each round merges all pairs of mutual nearest neighbours.

    If the linkage is reducible, these are the merges of sequential HAC, but many of them share a round.
    """
    return RoundPlan(linkage, None, True, True, {"method": "hac"})
