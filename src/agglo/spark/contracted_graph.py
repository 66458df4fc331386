"""A contracted graph, whose nodes are clusters; and a function that runs the remaining rounds on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._validation import effective_n_threads
from agglo.neighbors.graph import FixedPoint, Kind, Missing
from agglo.rounds.linkage import EdgeStatistics
from agglo.rounds.schedule import RoundPlan
from agglo.tree.forest import Forest

Ints = npt.NDArray[np.int64]


class ContractedGraph(NamedTuple):
    """The clusters after some rounds, and the statistics of the edges between each pair of them.

    Clusters are numbered in the order of their smallest points, so that ties are broken as in the input graph.
    """

    sizes: Ints
    """The number of points of each cluster; the total must be less than 2^53."""
    rows: Ints
    """The smaller cluster id of each pair of clusters with an edge."""
    columns: Ints
    """The larger cluster id of each pair."""
    edges: EdgeStatistics
    """The statistics of the edges of each pair. For average linkage, weights are summed in fixed point."""


def run_remaining_rounds(
    graph: ContractedGraph,
    plan: RoundPlan,
    thresholds: npt.ArrayLike,
    fixed: FixedPoint,
    *,
    kind: Kind,
    missing: Missing,
    n_jobs: int | None = None,
) -> Forest:
    """Run the remaining rounds in the C++ core; return the forest whose leaves are the clusters of ``graph``.

    Parameters
    ----------
    graph : ContractedGraph
        The clusters after the earlier rounds.
    plan : RoundPlan
        The plan of the whole run; its thresholds are ignored.
    thresholds : array-like
        The remaining thresholds; empty for a plan without thresholds.
    fixed : FixedPoint
        The fixed-point format in which the weights of the input graph are summed for average linkage.
    kind, missing
        The kind of weights and the value of missing edges, as in the input graph.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    """
    n, m = len(graph.sizes), len(graph.rows)
    sign = 1 if kind == "similarity" else -1
    # Each pair has two entries in the CSR matrix, one per cluster; `pair` maps entries to pairs.
    ends = (
        np.concatenate([graph.rows, graph.columns]),
        np.concatenate([graph.columns, graph.rows]),
    )
    matrix = sp.csr_array((np.tile(np.arange(m), 2), ends), shape=(n, n))
    matrix.sort_indices()
    pair = matrix.data
    combined = graph.edges.combined
    is_average = plan.linkage == "average"
    weights = np.zeros(2 * m, np.float32) if is_average else (sign * combined).astype(np.float32)[pair]
    sums = _limbs(combined, fixed.limbs)[pair].ravel() if is_average else _NONE
    core_plan = _core.RoundPlan(
        _core.LinkageSpec(
            kind,
            str(plan.linkage),
            missing=None if missing == "ignore" else missing,
            shift=fixed.shift,
            limbs=fixed.limbs,
        ),
        thresholds=np.asarray(thresholds, np.float64),
        until_stable=plan.until_stable,
        mutual=plan.mutual,
    )
    return Forest(
        *_core.run_cluster_rounds(
            (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), weights),
            (graph.sizes.astype(np.float64), graph.edges.number[pair], sums),
            core_plan,
            effective_n_threads(n_jobs),
            None,
        )
    )


_NONE = np.empty(0, np.int64)


def _limbs(sums: npt.NDArray[Any], number: int) -> Ints:
    """Split each integer into a row of ``number`` limbs of 64 bits, lowest limb first."""
    if number == 1:
        return sums.astype(np.int64)[:, None]
    wrapped = [int(value) % 2 ** (64 * number) for value in sums]
    columns = [[value >> 64 * limb & (2**64 - 1) for value in wrapped] for limb in range(number)]
    return np.array(columns, np.uint64).view(np.int64).T
