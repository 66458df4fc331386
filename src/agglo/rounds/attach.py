"""Attach new points to a tree: replay the rounds for each new point. The tree does not change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._validation import check_labels, effective_n_threads
from agglo.neighbors.graph import NeighborGraph, check_neighbor_lists
from agglo.progress import Progress
from agglo.rounds.constraints import check_weights
from agglo.rounds.linkage import GRAPH_LINKAGES
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, MetricSpec, VectorLinkage
from agglo.tree.cut import RoundRule, check_rule, select_round
from agglo.tree.hierarchy import Hierarchy

_WEIGHTED_LINKAGES = ("average", *VECTOR_LINKAGES)  # linkages that depend on point weights


@dataclass(frozen=True, eq=False)
class Attached:
    """The node, round and height at which each new point merges into a tree. They determine its label in any cut.

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
    """The tree, without the new points."""
    node: npt.NDArray[np.int32]
    """The node that each new point merges with, or -1 if the point does not merge."""
    round: npt.NDArray[np.int32]
    """The round in which each new point merges. It is 0 for a duplicate of a leaf, and -1 without a merge."""
    height: npt.NDArray[np.float64]
    """The height at which each new point merges, at least the height of the node; infinite without a merge."""

    def labels(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        labels: npt.ArrayLike | None = None,
        graph: NeighborGraph | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return the label of each new point in a cut of the tree, or -1 if the point is in no cluster.

        Parameters
        ----------
        n_clusters, round, height, graph
            The cut, as in :meth:`agglo.Hierarchy.cut`. A new point is in a cluster if it merged with the cluster
            no later than at that round or height.
        labels : array-like of shape (n_leaves,)
            The cut, as a result of :meth:`agglo.Hierarchy.cut` for any rule. A new point is in a
            cluster if it merged with the cluster or with a part of it.
        """
        tree, late = self.tree, np.zeros(len(self.node), bool)
        if labels is not None:
            if not (n_clusters is None and round is None and height is None):
                raise ValueError("labels are a cut already: leave out n_clusters, round and height")
            tree.nodes(labels)  # raises if a cluster is not a node
        else:
            check_rule(tree.n_leaves, n_clusters, round, height)
            if height is None:
                chosen = select_round(tree, n_clusters, round, graph)
                labels, late = tree.labels(chosen), self.round > chosen
            else:
                labels, late = tree.cut(height=height), self.height > float(height)
        cluster, size = check_labels(labels, tree.n_leaves, "the tree")
        # A node is in the cluster of its first leaf, unless the node is larger than the cluster and thus above it.
        found = cluster[tree.order[tree.start[self.node]]]
        inside = (self.node >= 0) & (found >= 0) & (tree.size[self.node] <= size[found]) & ~late
        return np.where(inside, found, -1)


class Rows(NamedTuple):
    """The neighbours of new points in CSR format. A neighbour is a leaf of the tree, or -1 for no neighbour."""

    indptr: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.indptr) - 1


class NodeMoments(NamedTuple):
    """Weights, means and sums of squared distances to the means (spreads) of all nodes, for vector linkages."""

    linkage: VectorLinkage
    weight: npt.NDArray[np.float64]
    squared_norm: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float32]
    """The means of the inner nodes, as a flat array."""


class QueryVectors(NamedTuple):
    """The vectors of new points, and the weights, means and spreads of the tree nodes to compare them with."""

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
    """Attach new points to a tree: find the node that each point joins, from its neighbours among the leaves.

    A new point starts as a cluster of its own. In each round of the tree, it is compared with the current clusters
    of its neighbours by the linkage of the tree. If the linkage of the point and the closest cluster reaches the
    threshold of the round, they merge. Ties go to the cluster with the smallest leaf. If a point has not merged
    after the last round, it is compared once more, with the farthest threshold.

    Parameters
    ----------
    tree : Hierarchy
        A tree of :func:`agglo.scc`, :func:`agglo.affinity` or :func:`agglo.hac`.
    indices, values : array-like of shape (n_new, n_neighbors)
        The neighbours of each new point among the leaves, and their similarities or distances to the new point.
        Use the metric with which the tree's graph was built. The index -1 means no neighbour.
    X, X_new : array-like of shape (n_leaves, n_features) and (n_new, n_features), optional
        The points of the tree and the new points. They are required if the linkage of the tree is
        ``"exact-average"``, ``"centroid"`` or ``"ward"``.
    copies : array-like of shape (n_new,), optional
        For each new point, the leaf with an equal row, or -1 if there is none. A duplicate is attached to that
        leaf, and its neighbours are ignored.
    sample_weight : array-like of shape (n_leaves,), optional
        The weight of each leaf, as passed when the tree was built. New points have weight 1.
    n_jobs : int, optional
        The number of threads. By default, all cores are used. The result does not depend on it.

    Returns
    -------
    Attached
        The node, round and height at which each new point merges.

    Notes
    -----
    Affinity has no thresholds, so a new point merges with its nearest neighbour in the first round. HAC merges the
    closest pair of clusters in each round. A new point merges as soon as its closest cluster is closer than that
    pair.

    A vector linkage compares a new point with a cluster by the cluster's weight, mean and spread. The linkage of a
    new point and a single leaf is their entry in ``values``. The means of all clusters are computed again. The
    means take at most as much memory as the points in float32.

    New points are not compared with each other and do not change the clusters. Constraints do not apply to them.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [10.0], [12.0], [50.0]]
    >>> tree = agglo.scc(agglo.neighbor_graph(X, 2, "euclidean"))
    >>> new = agglo.attach(tree, indices=[[1, 0], [2, 3]], values=[[0.5, 1.5], [1.0, 1.0]])
    >>> new.labels(n_clusters=3)
    array([0, 1])
    """
    lists, close = check_neighbor_lists(indices, values, "leaves of the tree")
    n, k = lists.shape
    rows = Rows(np.arange(n + 1, dtype=np.int64) * k, lists.ravel(), np.where(lists < 0, 0, close).ravel())
    weights = None if sample_weight is None else check_weights(tree.n_leaves, sample_weight)
    vectors = None
    if tree.about.get("linkage") in VECTOR_LINKAGES and X is not None and X_new is not None:
        known = node_moments(tree, X, weights)
        vectors = QueryVectors(known, known.linkage.prepare_queries(X_new))
    return attach_rows(tree, rows, None if copies is None else np.asarray(copies), n_jobs, None, weights, vectors)


def node_moments(tree: Hierarchy, X: Any, leaf_weights: npt.NDArray[np.float64] | None) -> NodeMoments:
    """Compute the weight, mean and spread of every node of ``tree`` from the points ``X``, for vector linkages."""
    compared = MetricSpec(tree.about.get("metric"), tree.n_leaves)
    linkage = VectorLinkage(compared, tree.about["linkage"], X, leaf_weights)
    vectors = _core.Vectors(
        linkage.release_points(),
        linkage=linkage.linkage,
        metric=linkage.metric,
        weights=np.empty(0) if leaf_weights is None else leaf_weights,
        spreads=np.empty(0),
    )
    return NodeMoments(linkage, *_core.compute_node_moments(tree.parent, tree.n_leaves, vectors))


def attach_rows(
    tree: Hierarchy,
    rows: Rows,
    copies: npt.NDArray[Any] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    leaf_weights: npt.NDArray[np.float64] | None = None,
    vectors: QueryVectors | None = None,
) -> Attached:
    """Attach new points to a tree; ``rows`` contains their neighbours in CSR format. See :func:`attach`.

    If the linkage of the tree is a vector linkage, ``vectors`` is required.
    """
    rows, leaf_weights = check_rows(tree, rows, leaf_weights)
    if (tree.about["linkage"] in VECTOR_LINKAGES) != (vectors is not None):
        raise ValueError(
            f"the tree was built with linkage={tree.about['linkage']!r}, which compares the points themselves: "
            "pass X, the points of the tree, and X_new, the new points"
        )
    rule: _core.EdgeAttachment | _core.MeanAttachment
    if vectors is not None:
        if len(vectors.points) != len(rows):
            raise ValueError(
                f"X_new has {len(vectors.points)} rows, but indices {len(rows)}: pass the points whose neighbours "
                "these are"
            )
        linkage, weight, squared_norm, spread, mean = vectors.known
        rule = _core.MeanAttachment(
            linkage=linkage.linkage,
            metric=linkage.metric,
            n_columns=vectors.points.shape[1],
            points=vectors.points,
            weight=weight,
            squared_norm=squared_norm,
            spread=spread,
            mean=mean,
            thresholds=round_thresholds(tree),
        )
    else:
        missing = None if tree.about["missing"] == "ignore" else tree.about["missing"]
        rule = _core.EdgeAttachment(
            _core.LinkageSpec(tree.about["kind"], tree.about["linkage"], missing=missing),
            thresholds=round_thresholds(tree),
            weights=np.empty(0) if leaf_weights is None else leaf_weights,
        )
    node, round, close = _core.attach_points(
        (tree.parent, tree.size, tree.round, tree.n_leaves),
        (rows.indptr, rows.targets, rows.weights),
        rule,
        effective_n_threads(n_jobs),
        progress and partial(progress, "attaching"),
    )
    return to_attachments(tree, node, round, close if tree.about["kind"] == "similarity" else -close, copies)


def to_attachments(
    tree: Hierarchy,
    node: npt.NDArray[np.int32],
    round: npt.NDArray[np.int32],
    value: npt.NDArray[np.float64],
    copies: npt.NDArray[Any] | None,
) -> Attached:
    """Convert the merge that was found for each new point to :class:`Attached`; attach duplicates to their leaves.

    If a point merges after the last round, its round is the last round.
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
            raise ValueError(f"copies must be leaves: pass numbers up to {tree.n_leaves - 1}, and -1 for none")
        known = copies >= 0
        node = np.where(known, copies, node).astype(np.int32)
        round, height = np.where(known, 0, round).astype(np.int32), np.where(known, 0.0, height)
    return Attached(tree, node, round, height)


def round_thresholds(tree: Hierarchy) -> npt.NDArray[np.float32]:
    """Return one threshold per round, and one for points that are left after the last round, as similarities.

    A larger similarity is closer. Thresholds on distances are negated.
    """
    similarity = tree.about["kind"] == "similarity"
    last, values = len(tree.rounds), tree.rounds.threshold
    end = tree.about.get("farthest_threshold", values[-1] if last else np.nan)
    if tree.about.get("method") == "hac":
        height = np.zeros(last + 2)
        np.maximum.at(height, tree.round, tree.height)
        height = np.maximum.accumulate(height)
        values, end = tree.about["origin"] - height[1:-1] if similarity else height[1:-1], np.nan
    # Rounds that merge roots have no threshold. Use the farthest threshold of the rounds on the graph instead.
    signed = np.append(np.where(np.isnan(values), end, values), end) * (1 if similarity else -1)
    reach = np.where(np.isnan(signed), -np.inf, signed).astype(np.float32)
    if "must_link" in tree.about or "copies" in tree.about:
        reach[0] = np.inf  # no new point merges in the round that merges must-link points and duplicates
    if (reach[1:] > reach[:-1]).any():
        raise ValueError("the thresholds of the tree do not go from near to far, so its rounds cannot be replayed")
    return reach


def check_rows(
    tree: Hierarchy, rows: Rows, leaf_weights: npt.NDArray[np.float64] | None
) -> tuple[Rows, npt.NDArray[np.float64] | None]:
    """Check that neighbours and leaf weights match the tree; return them as arrays for the C++ core."""
    absent = [name for name in ("kind", "missing", "linkage") if name not in tree.about]
    if absent:
        raise ValueError(
            f"the tree has no record of its {absent[0]}, so its rounds cannot be replayed: "
            "pass a tree of agglo.scc, agglo.affinity or agglo.hac"
        )
    if tree.about["linkage"] not in (*GRAPH_LINKAGES, *VECTOR_LINKAGES):
        raise ValueError(
            f"the tree was built with linkage={tree.about['linkage']!r}, whose rounds cannot be replayed for new "
            f"points: build it with one of {', '.join((*GRAPH_LINKAGES, *VECTOR_LINKAGES))}"
        )
    targets, weights = rows.targets, np.asarray(rows.weights, np.float32)
    if len(targets) and not -1 <= targets.min() <= targets.max() < tree.n_leaves:
        worst = targets.min() if targets.min() < -1 else targets.max()
        raise ValueError(f"indices holds {worst}, outside 0..{tree.n_leaves - 1}; -1 stands for no neighbour")
    if not np.isfinite(weights).all():
        raise ValueError("values holds numbers that are not finite float32 numbers: leave such neighbours out")
    is_weighted = tree.about["linkage"] in _WEIGHTED_LINKAGES
    if is_weighted and "weight" in tree.about and leaf_weights is None:
        raise ValueError(
            f"the tree was built with point weights, {tree.about['weight']:g} in total, which averages depend on: "
            "pass the same sample_weight"
        )
    rows = Rows(rows.indptr, np.ascontiguousarray(targets, np.int32), np.ascontiguousarray(weights))
    return rows, leaf_weights if is_weighted else None
