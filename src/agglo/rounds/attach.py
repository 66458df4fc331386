"""New points in an old tree: the rounds are replayed for each of them, the tree staying as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._validation import effective_n_threads
from agglo.neighbors.graph import NeighborGraph
from agglo.points.validation import check_labels
from agglo.progress import Progress, bind_phase
from agglo.rounds.constraints import check_weights
from agglo.rounds.linkage import GRAPH_LINKAGES
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, MetricSpec, VectorLinkage
from agglo.tree.cut import RoundRule, check_rule, select_round
from agglo.tree.hierarchy import Hierarchy

_WEIGHED = ("average", *VECTOR_LINKAGES)  # the linkages that weights of points matter to


@dataclass(frozen=True, eq=False)
class Attached:
    """Where new points are in a tree, an entry a point: from it follow their labels in any cut.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [10.0], [12.0]]
    >>> tree = agglo.hac(agglo.neighbor_graph(X, 3, "euclidean"))
    >>> new = agglo.attach(tree, indices=[[1, 0], [3, 2]], values=[[1.0, 2.0], [8.0, 10.0]])
    >>> new.node, new.round, new.height
    (array([1, 5], dtype=int32), array([1, 3], dtype=int32), array([1., 9.]))
    >>> new.labels(n_clusters=2)
    array([ 0, -1])
    >>> new.labels(n_clusters=1)
    array([0, 0])
    """

    tree: Hierarchy
    """The tree, as it was without the points."""
    node: npt.NDArray[np.int32]
    """The cluster that a point joins; -1 if it joins none."""
    round: npt.NDArray[np.int32]
    """The round in which it does; 0 for a copy of a leaf, -1 for a point that joins none."""
    height: npt.NDArray[np.float64]
    """At what height, which is not below that of the cluster; infinite for a point that joins none."""

    def labels(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        labels: npt.ArrayLike | None = None,
        graph: NeighborGraph | None = None,
    ) -> npt.NDArray[np.int64]:
        """The labels of the points in a cut of the tree, -1 for those that are in none of its clusters.

        Parameters
        ----------
        n_clusters, round, height, graph
            As of :meth:`agglo.Hierarchy.cut`. A point is in a cluster if it joined by that round or height.
        labels : array-like of shape (n_leaves,)
            Labels that :meth:`agglo.Hierarchy.cut` gave the leaves by any other rule. A point is in a cluster if
            it joined that or a part of it.
        """
        tree, late = self.tree, np.zeros(len(self.node), bool)
        if labels is not None:
            if not (n_clusters is None and round is None and height is None):
                raise ValueError("labels are a cut already: leave out n_clusters, round and height")
            tree.nodes(labels)  # raises where a cluster is no node
        else:
            check_rule(tree.n_leaves, n_clusters, round, height)
            if height is None:
                chosen = select_round(tree, n_clusters, round, graph)
                labels, late = tree.labels(chosen), self.round > chosen
            else:
                labels, late = tree.cut(height=height), self.height > float(height)
        cluster, size = check_labels(labels, tree.n_leaves, "the tree")
        # Of two nodes above the same leaf the larger is above the other.
        found = cluster[tree.order[tree.start[self.node]]]
        inside = (self.node >= 0) & (found >= 0) & (tree.size[self.node] <= size[found]) & ~late
        return np.where(inside, found, -1)


class Rows(NamedTuple):
    """The neighbours of new points, row after row: leaves of a tree, and -1 for none."""

    indptr: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.indptr) - 1


class NodeMoments(NamedTuple):
    """What linkages of the points themselves keep of the nodes of a tree, to compare new points with."""

    linkage: VectorLinkage
    weight: npt.NDArray[np.float64]
    square: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float32]
    """Of inner nodes, row after row."""


class QueryVectors(NamedTuple):
    """New points, and the nodes to compare them with."""

    known: NodeMoments
    points: npt.NDArray[np.float32]


def attach(
    tree: Hierarchy,
    indices: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    X: npt.ArrayLike | None = None,
    X_new: npt.ArrayLike | None = None,
    copies: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Attached:
    """Where new points would have joined a tree, by their neighbours among its leaves.

    A new point is a cluster of its own to begin with. Before each round that made the tree it is compared, by the
    linkage of the tree, with the clusters of that time that its neighbours are in. It joins the closest (of
    equally close ones that of the smallest leaf) if this reaches the threshold of the round, and is part of
    whatever becomes of that cluster. After the last round it is compared once more, by the farthest threshold.

    Parameters
    ----------
    tree : Hierarchy
        A tree of :func:`agglo.scc`, :func:`agglo.affinity` or :func:`agglo.hac`.
    indices, values : array-like of shape (n_new, n_neighbors)
        The neighbours of each new point among the leaves, and how close they are, in the unit of the graph that
        the tree was made of; -1 is none.
    X, X_new : array-like of shape (n_leaves, n_features) and (n_new, n_features), optional
        The points of the tree and the new ones, for linkages of the points themselves (``"exact-average"``,
        ``"centroid"``, ``"ward"``). Other trees do not ask for them.
    copies : array-like of shape (n_new,), optional
        For a new point that is the same as a leaf, that leaf: it goes where the leaf is, whatever its neighbours.
        -1 for the others.
    sample_weight : array-like of shape (n_leaves,), optional
        What each leaf counts as, as it was told when the tree was made. A new point counts as 1.
    n_jobs : int, optional
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    Attached
        The node that each joins, when, and how high.

    Notes
    -----
    Affinity has no thresholds: a new point joins its nearest neighbour in the first round. HAC merges the closest
    pair in each round: a new point joins when its closest cluster is closer than that pair.

    By a linkage of the points themselves a new point is compared with sizes, means and spreads of the clusters
    that its neighbours are in, and with a single leaf by the value given. These are computed again for all
    clusters, which takes at most as much memory as the points in float32.

    New points do not see each other, and old clusters are not moved by them. What was said of old points, which
    must or cannot be linked, does not hold for new ones, nor does the largest size of a cluster.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [10.0], [12.0], [50.0]]
    >>> tree = agglo.scc(agglo.neighbor_graph(X, 2, "euclidean"))
    >>> new = agglo.attach(tree, indices=[[1, 0], [2, 3]], values=[[0.5, 1.5], [1.0, 1.0]])
    >>> new.labels(n_clusters=3)
    array([0, 1])
    """
    lists, close = np.asarray(indices), np.asarray(values)
    if lists.ndim != 2 or lists.shape != close.shape:
        raise ValueError(
            f"indices and values must be (points, neighbours) arrays, got {lists.shape} and {close.shape}"
        )
    if lists.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers (leaves of the tree), got dtype {lists.dtype}")
    n, k = lists.shape
    rows = Rows(np.arange(n + 1, dtype=np.int64) * k, lists.ravel(), np.where(lists < 0, 0, close).ravel())
    weights = None if sample_weight is None else check_weights(tree.n_leaves, sample_weight)
    vectors = None
    if tree.about.get("linkage") in VECTOR_LINKAGES and X is not None and X_new is not None:
        known = node_moments(tree, X, weights)
        vectors = QueryVectors(known, known.linkage.prepare_queries(X_new))
    return attach_rows(tree, rows, None if copies is None else np.asarray(copies), n_jobs, None, weights, vectors)


def node_moments(tree: Hierarchy, X: Any, leaf_weights: npt.NDArray[np.float64] | None) -> NodeMoments:
    """What the linkage that made ``tree`` of the points ``X`` keeps of its nodes."""
    _check_weighed(tree, leaf_weights)
    compared = MetricSpec(tree.about.get("metric"), tree.n_leaves)
    linkage = VectorLinkage(compared, tree.about["linkage"], X, leaf_weights)
    given = np.empty(0) if leaf_weights is None else leaf_weights
    return NodeMoments(linkage, *_core.compute_node_moments(tree.parent, linkage.release_points(), given))


def attach_rows(
    tree: Hierarchy,
    rows: Rows,
    copies: npt.NDArray[Any] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    leaf_weights: npt.NDArray[np.float64] | None = None,
    vectors: QueryVectors | None = None,
) -> Attached:
    """:func:`attach` for rows of any length; ``vectors`` for linkages of the points themselves."""
    rows, leaf_weights = check_rows(tree, rows, leaf_weights)
    if (tree.about["linkage"] in VECTOR_LINKAGES) != (vectors is not None):
        raise ValueError(
            f"linkage={tree.about['linkage']!r} made the tree, which compares the points themselves: pass X, "
            "those of the tree, and X_new, the new ones"
        )
    similarity = tree.about["kind"] == "similarity"
    shared = {"n_threads": effective_n_threads(n_jobs), "progress": bind_phase(progress, "attaching")}
    shape = (tree.parent, tree.size, tree.round, tree.n_leaves)
    if vectors is not None:
        if len(vectors.points) != len(rows):
            raise ValueError(
                f"X_new has {len(vectors.points)} rows, but indices {len(rows)}: pass the points whose neighbours "
                "these are"
            )
        linkage, weight, squared_norm, spread, mean = vectors.known
        node, round, close = _core.attach_points_by_means(
            *shape,
            *rows,
            points=vectors.points,
            weight=weight,
            squared_norm=squared_norm,
            spread=spread,
            mean=mean,
            thresholds=round_thresholds(tree),
            linkage=linkage.linkage,
            metric=linkage.metric,
            **shared,
        )
    else:
        node, round, close = _core.attach_points(
            *shape,
            *rows,
            leaf_weights=np.empty(0) if leaf_weights is None else leaf_weights,
            thresholds=round_thresholds(tree),
            similarity=similarity,
            linkage=tree.about["linkage"],
            missing=None if tree.about["missing"] == "ignore" else tree.about["missing"],
            **shared,
        )
    return to_attachments(tree, node, round, close if similarity else -close, copies)


def to_attachments(
    tree: Hierarchy,
    node: npt.NDArray[np.int32],
    round: npt.NDArray[np.int32],
    value: npt.NDArray[np.float64],
    copies: npt.NDArray[Any] | None,
) -> Attached:
    """What an engine found, in terms of the tree, and copies where their leaves are.

    What joins after the last round is in the last partition, which lasts until the end of the run.
    """
    height = tree.about["origin"] - value if tree.about["kind"] == "similarity" else value
    height = np.where(node < 0, np.inf, np.maximum(height, np.maximum(0.0, tree.height[node])))
    round = np.minimum(round, np.int32(len(tree.rounds)))
    if copies is not None:
        if copies.shape != node.shape or copies.dtype.kind not in "iu":
            raise ValueError(
                f"copies must be an integer for each of {len(node)} points, got {copies.dtype} of {copies.shape}"
            )
        if len(copies) and not -1 <= copies.min() <= copies.max() < tree.n_leaves:
            raise ValueError(f"copies names no leaf: pass numbers up to {tree.n_leaves - 1}, and -1 for none")
        known = copies >= 0
        node = np.where(known, copies, node).astype(np.int32)
        round, height = np.where(known, 0, round).astype(np.int32), np.where(known, 0.0, height)
    return Attached(tree, node, round, height)


def round_thresholds(tree: Hierarchy) -> npt.NDArray[np.float32]:
    """What a new point's linkage must reach in each round and after the last, larger being closer."""
    similarity = tree.about["kind"] == "similarity"
    last, values = len(tree.rounds), tree.rounds.threshold
    end = tree.about.get("farthest_threshold", values[-1] if last else np.nan)
    if tree.about.get("method") == "hac":
        height = np.zeros(last + 2)
        np.maximum.at(height, tree.round, tree.height)
        height = np.maximum.accumulate(height)
        values, end = tree.about["origin"] - height[1:-1] if similarity else height[1:-1], np.nan
    # Rounds beyond the graph have no threshold, and ask for what the last one before them did.
    signed = np.append(np.where(np.isnan(values), end, values), end) * (1 if similarity else -1)
    reach = np.where(np.isnan(signed), -np.inf, signed).astype(np.float32)
    if (
        "must_link" in tree.about or "copies" in tree.about
    ):  # a round before all others, in which nobody else joins
        reach[0] = np.inf
    if (reach[1:] > reach[:-1]).any():
        raise ValueError("the thresholds of the tree do not go from near to far, so its rounds cannot be replayed")
    return reach


def check_rows(
    tree: Hierarchy, rows: Rows, leaf_weights: npt.NDArray[np.float64] | None
) -> tuple[Rows, npt.NDArray[np.float64] | None]:
    """The rows and the weights of leaves as the core takes them, if they and the tree go together."""
    absent = [name for name in ("kind", "missing", "linkage") if name not in tree.about]
    if absent:
        raise ValueError(
            f"the tree has no record of its {absent[0]}, so its rounds cannot be replayed: "
            "pass a tree of agglo.scc, agglo.affinity or agglo.hac"
        )
    if tree.about["linkage"] not in (*GRAPH_LINKAGES, *VECTOR_LINKAGES):
        raise ValueError(
            f"linkage={tree.about['linkage']!r} made the tree, whose rounds cannot be replayed for new points: "
            f"those of {', '.join((*GRAPH_LINKAGES, *VECTOR_LINKAGES))} can"
        )
    targets, weights = rows.targets, np.asarray(rows.weights, np.float32)
    if len(targets) and not -1 <= targets.min() <= targets.max() < tree.n_leaves:
        worst = targets.min() if targets.min() < -1 else targets.max()
        raise ValueError(f"indices holds {worst}, outside 0..{tree.n_leaves - 1}; -1 stands for no neighbour")
    if not np.isfinite(weights).all():
        raise ValueError("values holds numbers that are not finite float32 numbers: leave such neighbours out")
    _check_weighed(tree, leaf_weights)
    rows = Rows(rows.indptr, np.ascontiguousarray(targets, np.int32), np.ascontiguousarray(weights))
    return rows, leaf_weights if tree.about["linkage"] in _WEIGHED else None


def _check_weighed(tree: Hierarchy, leaf_weights: npt.NDArray[np.float64] | None) -> None:
    if tree.about["linkage"] in _WEIGHED and "weight" in tree.about and leaf_weights is None:
        raise ValueError(
            f"the points of the tree weigh {tree.about['weight']:g} together, and averages depend on what each "
            "weighs: pass sample_weight, as it was when the tree was made"
        )
