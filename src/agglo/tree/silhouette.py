"""Select the round with the best silhouette score on the neighbour graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agglo._native import geomspace, log
from agglo.tree.default_level import match_points, weight_reference

if TYPE_CHECKING:
    from agglo.neighbors.graph import NeighborGraph
    from agglo.tree.hierarchy import Hierarchy

_MAX_ROUNDS = 100
_SAMPLE_SIZE = 2000


def silhouette_round(tree: Hierarchy, graph: NeighborGraph, *, random_state: int = 0) -> int:
    """Select the round whose clusters are best separated in the graph, by a score similar to the silhouette.

    1. The weight of an edge is the difference between its value and the value of a pair without an edge. If such
       pairs are ignored, the difference is taken to similarity 0, or to the distance of the farthest edge. If all
       edges have this distance, their weight is 1.
    2. The margin of a point compares the weights of its edges. It is the share of the weight that goes to its own
       cluster, minus the largest share that goes to another cluster. It is 1 if all neighbours are in the point's
       cluster, and negative if another cluster has a larger share.
    3. The margin is multiplied by log(N / size) / log(N), where N is the number of points and size is the size of
       the cluster. This factor is 1 for a single point, and 0 for one cluster of all points.
    4. The score of a round is the mean over a sample of 2000 points. The round with the highest score is selected.
       Ties go to the coarser round.

    The partitions into single points and into one cluster are not candidates. If there are no other rounds, the
    result is the last round. If there are more than 100 rounds, the candidates are 100 of them, whose numbers of
    clusters are in geometric progression.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    graph : NeighborGraph
        The graph that the tree was built from, or another graph over the same points. If the tree has duplicates,
        the graph may contain each group of duplicates as one point, as ``graph_`` of a clusterer does.
    random_state : int
        The random seed of the sample. All points are used if there are at most 2000.

    Examples
    --------
    >>> import agglo
    >>> from agglo.tree.silhouette import silhouette_round
    >>> from sklearn.datasets import load_digits
    >>> graph = agglo.neighbor_graph(load_digits().data)
    >>> tree = agglo.scc(graph)
    >>> tree.rounds[silhouette_round(tree, graph) - 1].after
    14
    """
    matched = match_points(tree, graph)
    leaf_of = matched.astype(np.int64) if len(matched) else np.arange(tree.n_leaves)
    n, counts = tree.n_leaves, np.concatenate(([tree.n_leaves], tree.rounds.after))
    rounds = np.flatnonzero((counts > 1) & (counts < n))
    if len(rounds) == 0:
        return len(tree.rounds)
    if len(rounds) > _MAX_ROUNDS:
        wanted = geomspace(counts[rounds[0]], counts[rounds[-1]], _MAX_ROUNDS)
        rounds = rounds[np.unique(np.searchsorted(-counts[rounds], -wanted).clip(max=len(rounds) - 1))]
    rng = np.random.default_rng(random_state)
    n_points = graph.n_points
    sample = np.arange(n_points)
    if n_points > _SAMPLE_SIZE:
        sample = np.sort(rng.choice(n_points, _SAMPLE_SIZE, replace=False))
    which, neighbor, share = _sample_edges(graph, sample)
    edges = which, leaf_of[neighbor], share
    scores = np.array([_score(tree.labels(round=round), leaf_of[sample], *edges) for round in rounds])
    return int(rounds[len(scores) - 1 - scores[::-1].argmax()])


def _sample_edges(graph: NeighborGraph, sample: npt.NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """Return the edges of sampled points: index in the sample, neighbour, share of the point's edge weight."""
    degree = np.diff(graph.indptr)[sample]
    which = np.repeat(np.arange(len(sample)), degree)
    first = np.cumsum(degree) - degree
    edge = np.arange(len(which)) - first[which] + graph.indptr[sample][which]
    values = graph.weights[edge].astype(np.float64)
    reference, scale = weight_reference(graph)
    weight = np.maximum(scale * (values - reference), 0.0)
    total = np.bincount(which, weight, len(sample))[which]
    return which, graph.indices[edge], np.divide(weight, total, out=np.zeros(len(total)), where=total > 0)


def _score(
    labels: npt.NDArray[np.int64],
    sample: npt.NDArray[np.int64],
    which: npt.NDArray[np.int64],
    neighbor: npt.NDArray[np.int64],
    share: npt.NDArray[np.float64],
) -> float:
    size = np.bincount(labels)
    pairs, pair = np.unique(which * len(size) + labels[neighbor], return_inverse=True)
    point, cluster = pairs // len(size), pairs % len(size)
    shares = np.bincount(pair, share, len(pairs))
    own = cluster == labels[sample][point]
    margin = np.bincount(point[own], shares[own], len(sample))
    other = np.zeros(len(sample))
    np.maximum.at(other, point[~own], shares[~own])
    specificity = 1 - log(size[labels[sample]]) / log(len(labels))
    return float(((margin - other) * specificity).mean())
