"""Select the round with the best silhouette on the neighbour graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agglo._math import geomspace, log
from agglo.neighbors.graph import NeighborGraph

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy

_MOST_ROUNDS = 100
_SAMPLE = 2000


def silhouette_round(tree: Hierarchy, graph: NeighborGraph, *, random_state: int = 0) -> int:
    """The round whose clusters are best told apart in the graph, by a score in the manner of the silhouette.

    1. The closeness of two points with an edge is how much closer they are than a pair without one (if such
       pairs are ignored: than similarity 0, or than the farthest edge of distances).
    2. The margin of a point is the share of its closeness that goes to its own cluster, less the share that goes
       to the best of the others: 1 if all its neighbours are in its cluster, negative if another cluster has more
       of them.
    3. It counts by how much a cluster of that size tells, log(N / size) / log(N) for N points: 1 for a single
       point, 0 for all.
    4. The score of a round is the mean over a sample of 2000 points. The highest wins, and the coarser of equals.

    Single points and one cluster for all are no answers, unless there is no round between them: then it is the
    last round. Of more than 100 rounds, 100 are tried, evenly by ratios of their numbers of clusters.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    graph : NeighborGraph
        The graph that it was made of, or another over the same points.
    random_state : int
        The seed of the sample. All points are taken if there are no more than 2000.

    Examples
    --------
    >>> import agglo
    >>> from agglo.tree.silhouette import silhouette_round
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> graph = agglo.neighbor_graph(X)
    >>> tree = agglo.scc(graph)
    >>> tree.rounds[silhouette_round(tree, graph) - 1].after
    13
    """
    if not isinstance(graph, NeighborGraph):
        raise TypeError(
            f"graph must be a NeighborGraph, got {type(graph).__name__}: NeighborGraph.from_scipy makes one"
        )
    if graph.n_points != tree.n_leaves:
        raise ValueError(
            f"the graph has {graph.n_points} points, but the tree has {tree.n_leaves} leaves: "
            "pass the graph that it was made of"
        )
    n, counts = tree.n_leaves, np.concatenate(([tree.n_leaves], tree.rounds.after))
    rounds = np.flatnonzero((counts > 1) & (counts < n))
    if len(rounds) == 0:
        return len(tree.rounds)
    if len(rounds) > _MOST_ROUNDS:
        wanted = geomspace(counts[rounds[0]], counts[rounds[-1]], _MOST_ROUNDS)
        rounds = rounds[np.unique(np.searchsorted(-counts[rounds], -wanted).clip(max=len(rounds) - 1))]
    rng = np.random.default_rng(random_state)
    sample = np.arange(n) if n <= _SAMPLE else np.sort(rng.choice(n, _SAMPLE, replace=False))
    edges = _edges(graph, sample)
    scores = np.array([_score(tree.labels(round=round), sample, *edges) for round in rounds])
    return int(rounds[len(scores) - 1 - scores[::-1].argmax()])


def _edges(graph: NeighborGraph, sample: npt.NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """The edges of the sampled points: which point of the sample, which neighbour, what share of closeness."""
    degree = np.diff(graph.indptr)[sample]
    which = np.repeat(np.arange(len(sample)), degree)
    first = np.cumsum(degree) - degree
    edge = np.arange(len(which)) - first[which] + graph.indptr[sample][which]
    weights = graph.weights[edge].astype(np.float64)
    if graph.kind == "similarity":
        closeness = weights - (0.0 if graph.missing == "ignore" else graph.missing)
    else:
        closeness = (graph.weights.max(initial=0.0) if graph.missing == "ignore" else graph.missing) - weights
    closeness = np.maximum(closeness, 0.0)
    total = np.bincount(which, closeness, len(sample))[which]
    return which, graph.indices[edge], np.divide(closeness, total, out=np.zeros(len(total)), where=total > 0)


def _score(
    labels: npt.NDArray[np.int64],
    sample: npt.NDArray[np.int64],
    which: npt.NDArray[np.int64],
    neighbor: npt.NDArray[np.int32],
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
    tells = 1 - log(size[labels[sample]]) / log(len(labels))
    return float(((margin - other) * tells).mean())
