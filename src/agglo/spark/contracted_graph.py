"""A graph in the middle of its rounds: the clusters so far and the edges between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._validation import effective_n_threads
from agglo.neighbors.graph import Kind, Missing
from agglo.rounds.linkage import Grid, Statistics
from agglo.rounds.plan import RoundPlan
from agglo.tree.hierarchy import Forest

Ints = npt.NDArray[np.int64]


class Contracted(NamedTuple):
    """Clusters, and what their linkages are made of.

    Clusters are numbered in the order of their smallest points, so that ties go the way they would have gone.
    """

    sizes: Ints
    """How many points each cluster is of; together fewer than 2^53."""
    rows: Ints
    """Of each pair of clusters with an edge between them, the smaller number."""
    columns: Ints
    """The larger number."""
    edges: Statistics
    """The statistics of the edges between the two, as :class:`agglo.rounds.linkage.GraphLinkage` keeps them."""


def rest(
    contracted: Contracted,
    plan: RoundPlan,
    thresholds: npt.ArrayLike,
    fixed: Grid,
    *,
    kind: Kind,
    missing: Missing,
    n_jobs: int | None = None,
) -> Forest:
    """The forest over the clusters of ``contracted`` that the rest of a run makes.

    Parameters
    ----------
    contracted : Contracted
        What earlier rounds left.
    plan : RoundPlan
        What the whole run does; its thresholds are not looked at.
    thresholds : array-like
        Those that are left; none for a plan without thresholds.
    fixed : Grid
        That of the whole graph, on which averages were summed.
    kind, missing
        As of the graph.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    """
    n, m = len(contracted.sizes), len(contracted.rows)
    sign = 1 if kind == "similarity" else -1
    # Each pair is in the rows of both its clusters; `pair` says which one an entry is.
    ends = (
        np.concatenate([contracted.rows, contracted.columns]),
        np.concatenate([contracted.columns, contracted.rows]),
    )
    matrix = sp.csr_array((np.tile(np.arange(m), 2), ends), shape=(n, n))
    matrix.sort_indices()
    pair = matrix.data
    combined = contracted.edges.combined
    averages = plan.linkage == "average"
    return Forest(
        *_core.run_rounds_of_clusters(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            np.zeros(2 * m, np.float32) if averages else (sign * combined).astype(np.float32)[pair],
            contracted.sizes.astype(np.float64),
            contracted.edges.number[pair],
            _limbs(combined, fixed.limbs)[pair].ravel() if averages else _NONE,
            similarity=sign == 1,
            linkage=plan.linkage,
            missing=None if missing == "ignore" else missing,
            shift=fixed.shift,
            limbs=fixed.limbs,
            thresholds=np.asarray(thresholds, np.float64),
            until_stable=plan.until_stable,
            mutual=plan.mutual,
            threads=effective_n_threads(n_jobs),
            progress=None,
        )
    )


_NONE = np.empty(0, np.int64)


def _limbs(sums: npt.NDArray[Any], number: int) -> Ints:
    """Split integers into so many limbs of 64 bits, the lowest first, one row per integer."""
    if number == 1:
        return sums.astype(np.int64)[:, None]
    wrapped = [int(value) % 2 ** (64 * number) for value in sums]
    columns = [[value >> 64 * limb & (2**64 - 1) for value in wrapped] for limb in range(number)]
    return np.array(columns, np.uint64).view(np.int64).T
