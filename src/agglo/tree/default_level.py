"""Select the default labels: the most persistent cut of the path of modularity-optimal cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agglo import _core
from agglo._native import exp, log

if TYPE_CHECKING:
    from agglo.tree.modularity_path import ModularityPath

_LEAST = 0.25  # clusters with less than this share of the edge weight of chance are separate
_FEW = 1.1  # below this effective number of clusters, one cluster has about 98 % of the points
_ROUNDING = 1e-9  # treat scores that differ by less as equal: sums depend on the order of the points


def persistent_resolution(path: ModularityPath) -> float:
    """Select the most persistent cut of the path; return the largest resolution at which it is the best cut.

    The best cut at a resolution is the cut with the largest modularity.

    1. The persistence of a cut is the length of its range of resolutions, on a logarithmic scale. Ranges start
       at 1/4. Below 1/4, the best cut separates only clusters between which the edge weight is less than a quarter
       of that of chance. Such clusters are separate in any case, so longer ranges there prove nothing.
    2. The persistence is multiplied by the share of points in clusters of at least two points. Duplicates, and
       points that a must-link constraint merges, are one point here.
    3. Clusters are counted by their effective number: the exponential of the entropy of the cluster sizes.
    4. The score of a cut is a weighted sum of the persistence of all cuts. The weight of another cut is the
       ratio of the two numbers of clusters, the smaller divided by the larger. The cut with the highest score
       is selected. Ties go to the coarser cut.

    Cuts whose effective number of clusters is below 1.1 are ignored: one cluster has about 98 % of the points.
    If no cut is left, the result is the coarsest cut at a positive resolution. Only ratios of weights matter,
    so multiplying all edge weights by a factor does not change the result.
    """
    tree, ends = path.tree, path.node_resolution
    # A node is a cluster between two resolutions: the largest at which an ancestor is merged, and its own.
    merged = -_core.min_over_ancestors(tree.parent, -ends)
    starts = np.append(merged[tree.parent[:-1]], 0.0)
    is_cluster = ends > starts
    lower, first = np.unique(starts[is_cluster], return_inverse=True)  # piece i starts at lower[i]
    n_pieces = len(lower)
    last = np.searchsorted(lower, ends[is_cluster])  # the first piece in which the node is not a cluster
    weight, total = path.node_weight[is_cluster], path.node_weight[-1]
    information = weight * log(weight / total)
    changes = np.bincount(first, information, n_pieces + 1) - np.bincount(last, information, n_pieces + 1)
    n_clusters = exp(-np.cumsum(changes)[:n_pieces] / total)
    is_alone = tree.round[is_cluster] <= tree.n_given_rounds
    alone = np.cumsum(np.bincount(first[is_alone], weight[is_alone], n_pieces)) / total
    logs = log(np.maximum(lower, _LEAST))
    persistence = np.append(np.diff(logs), 0.0) * np.maximum(0.0, 1 - alone) * (n_clusters > _FEW)
    if not persistence.any():
        return float(lower[1]) if n_pieces > 1 else 1.0
    finer = np.cumsum((persistence / n_clusters)[::-1])[::-1] - persistence / n_clusters
    scores = np.cumsum(persistence * n_clusters) / n_clusters + finer * n_clusters
    scores[persistence == 0] = 0.0
    selected = int((scores >= (1 - _ROUNDING) * scores.max()).argmax())
    return float(lower[selected + 1])
