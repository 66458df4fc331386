"""Select the most persistent round of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import exp, log

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]

_MIN_SIMILARITY = 1e-3  # the default thresholds end at this share of the similarity at height 0


def persistent_round(tree: Hierarchy, weights: Floats | None = None) -> int:
    """Select the most persistent round: the cluster count that survives the longest range of thresholds.

    1. The persistence of a round is the range of heights from this round to the next. For the last round of a
       forest, the range ends at the height of the root. Lengths are measured on the scale ``-log(1 - h / H)``,
       where ``H`` is the height of a pair without an edge. On this scale, similarities in geometric progression
       are equally spaced, as the default thresholds are. If pairs without an edge are ignored, ``H`` is the height
       of similarity 0, and distances are not rescaled.
    2. The persistence is multiplied by the share of points in clusters of at least two points.
    3. Clusters are counted by their effective number: the exponential of the entropy of the cluster sizes. Small
       clusters hardly change this number.
    4. The score of a round is a weighted sum of the persistence of all rounds. The weight of another round is the
       ratio of the two numbers of clusters, the smaller divided by the larger. The round with the highest score
       is selected. Ties go to the coarser round.

    The partitions into single points and into one cluster are not candidates. If there are no other rounds, the
    result is the last round. Rounds that connect the roots (:mod:`agglo.rounds.connect`) are ignored: the last
    round on the graph is treated as the last round of a forest.

    If there are duplicates or must-link constraints, the first round merges them. That round is never selected,
    and its clusters are treated as single points.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    weights : ndarray of shape (n_leaves,), optional
        The weight of each leaf. A point of weight 3 is treated like three points.
    """
    candidates = _candidate_rounds(tree)
    if len(candidates) == 0:
        return len(tree.rounds)
    n_clusters, persistence = _persistence(tree, weights)
    finer = np.cumsum(persistence / n_clusters)
    coarser = np.cumsum((persistence * n_clusters)[::-1])[::-1] - persistence * n_clusters
    scores = (n_clusters * finer + coarser / n_clusters)[candidates]
    return int(candidates[len(scores) - 1 - scores[::-1].argmax()])


def _candidate_rounds(tree: Hierarchy) -> npt.NDArray[np.intp]:
    """Return the rounds that :func:`persistent_round` may select."""
    rounds = np.flatnonzero(tree.rounds.after[: _n_graph_rounds(tree)] > 1) + 1
    return rounds[rounds > tree.n_given_rounds]


def _n_graph_rounds(tree: Hierarchy) -> int:
    """Return the number of rounds that merged along edges of the graph, or of all rounds if there are none."""
    number = int(np.count_nonzero(tree.rounds.after >= tree.about.get("graph_clusters", 0)))
    return number or len(tree.rounds)


def _persistence(tree: Hierarchy, weights: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the effective number of clusters and the persistence of every round; see :func:`persistent_round`."""
    last = _n_graph_rounds(tree)
    round = np.minimum(tree.round, last + 1)  # all nodes above the rounds on the graph get the round last + 1
    reached = np.zeros(last + 2)
    np.maximum.at(reached, round, tree.height)
    if last < len(tree.rounds):
        reached[-1] = 0.0 if tree.about.get("missing", "ignore") == "ignore" else _missing_height(tree)
    end_round = round[tree.parent[:-1]]  # the round that merges each node into its parent; the root has none
    mass = tree.size.astype(np.float64)
    if weights is not None:
        node_weights: Floats = np.append(weights, np.zeros(tree.n_nodes - tree.n_leaves))
        mass = _core.sum_descendants(tree.parent, node_weights)
    total = mass[-1]
    n_given = tree.n_given_rounds
    is_single = (round[:-1] <= n_given) & (end_round > n_given)
    merged_share = np.cumsum(np.bincount(end_round[is_single], mass[:-1][is_single], last + 2))[: last + 1] / total
    persistence = np.diff(rescale_heights(tree, np.maximum.accumulate(reached))) * merged_share
    # The entropy of the shares m / total is log(total) - sum(m log m) / total. To sum over the clusters after a
    # round, add all nodes created by then, and subtract all nodes that have been merged into a parent.
    information = mass * log(mass)
    added = np.bincount(round, information, last + 2)
    removed = np.bincount(end_round, information[:-1], last + 2)
    n_clusters = total / exp(np.cumsum(added - removed)[: last + 1] / total)
    return n_clusters, persistence


def rescale_heights(tree: Hierarchy, heights: Floats) -> Floats:
    """Map heights to the logarithmic scale of :func:`persistent_round`.

    Most pairs of points between two large clusters have no edge, so average similarities fall as clusters grow.
    Heights therefore crowd just below the height of a pair without an edge. The logarithm spaces them evenly.
    """
    missing_height = _missing_height(tree)
    if missing_height <= 0:
        return heights
    similarity: Floats = np.clip(1 - heights / missing_height, _MIN_SIMILARITY, 1.0)
    rescaled: Floats = -log(similarity)
    return rescaled


def _missing_height(tree: Hierarchy) -> float:
    """Return the height of a pair without an edge. For distances, return 0 if such pairs are ignored."""
    missing = tree.about.get("missing", "ignore")
    value = 0.0 if missing == "ignore" else float(missing)
    return float(tree.about["origin"]) - value if tree.about.get("kind") == "similarity" else value
