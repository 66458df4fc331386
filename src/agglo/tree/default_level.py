"""Select the default level of a tree: the most persistent of the cuts with the largest modularity.

The modularity path contains these cuts for every resolution at once. The resolution (γ in docs) is the factor of
the null model in the modularity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsFloat, overload

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import exp, log
from agglo._validation import Immutable, check_nonnegative, check_nonnegative_number
from agglo.neighbors.graph import NeighborGraph
from agglo.tree.dp_means_path import summarize_path

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ResolutionRule = Literal["persistent"]

_LEAST = 0.25  # clusters are separate in any case if the edge weight between them is below this share of chance
_FEW = 1.1  # if the effective number of clusters is below this, one cluster has about 98 % of the points
_ROUNDING = 1e-9  # treat scores that differ by less as equal: sums depend on the order of the points


def modularity_path(
    tree: Hierarchy, graph: NeighborGraph, *, sample_weight: npt.ArrayLike | None = None
) -> ModularityPath:
    """Compute the cut of the tree with the largest modularity on a graph, for every resolution at once.

    The modularity of a cut is the share of the edge weight inside clusters, minus ``resolution`` times the share
    that chance would give: the sum over clusters of the squared share of all degrees. A cut may use any nodes of
    the tree, from any rounds. Ties go to the cut with the fewest clusters. There is one exception: if no edge
    connects the parts of a node, the node is merged at resolution 0 only.

    Only the ratios of edge weights matter, so multiplying all edge weights by a factor does not change the cuts.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    graph : NeighborGraph
        The graph that the tree was built from, or another graph over the same points. The weight of an edge is the
        difference between its value and ``graph.missing``, the value of a pair without an edge. Edges that are
        farther than that have weight 0. If ``missing`` is ``"ignore"``, the difference is taken to similarity 0,
        or to the distance of the farthest edge. If all edges of a graph have this largest distance, their
        weight is 1. If the tree has duplicates, the graph may contain each group of duplicates as one point, as
        the attribute ``graph_`` of the estimators does.
    sample_weight : array-like of shape (n_leaves,), optional
        The weight of each leaf. A point of weight 3 is treated like three points, each with the edges of the
        point.

    Returns
    -------
    ModularityPath
        The largest modularity as a function of the resolution, and the cuts.

    Notes
    -----
    Divide the modularity by the resolution γ. A node then costs the squared share of its degrees, plus 1 / γ times
    the share of the edge weight that leaves it. This is the form of the DP-means objective, with 1 / γ
    instead of λ, so the path is computed in the same way; see :func:`agglo.dp_means_path`. It takes
    O(N log N + M) time for N nodes and M edges, and O(N) memory.

    Duplicates and must-link constraints are always merged.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.NeighborGraph.from_edges(
    ...     [0, 0, 1, 3, 3, 4, 2], [1, 2, 2, 4, 5, 5, 3], [1.0, 1, 1, 1, 1, 1, 0.5], kind="similarity"
    ... )
    >>> tree = agglo.scc(graph)
    >>> path = agglo.modularity_path(tree, graph)
    >>> path
    ModularityPath(6 leaves, 1 to 6 clusters, breakpoints 0.1538, 2.786, inf)
    >>> path.n_clusters
    array([1, 2, 6])
    >>> path.cut(1.0)
    array([0, 0, 0, 1, 1, 1])
    >>> round(path.modularity(1.0), 4)
    0.4231
    """
    if not hasattr(tree, "n_leaves"):  # isinstance(tree, Hierarchy) would need a circular import
        raise TypeError(f"expected a Hierarchy, got {type(tree).__name__}")
    leaf_of = match_points(tree, graph)
    mass = _check_leaf_weights(sample_weight, tree.n_leaves)
    given = (tree.round <= tree.n_given_rounds).view(np.uint8)
    # The weight of a group of duplicates is the sum of the weights of its points.
    node_weight = tree.size.astype(np.float64)
    if len(mass):
        node_weight = _core.sum_descendants(tree.parent, np.append(mass, np.zeros(tree.n_nodes - tree.n_leaves)))
    point_weights = mass
    if len(leaf_of):
        group = tree.parent[leaf_of]
        point_weights = node_weight[np.where(given[group] == 1, group, leaf_of)]
    meets, volume = _core.compute_node_modularity(
        tree.parent,
        tree.size,
        (graph.indptr, graph.indices, graph.weights),
        leaf_of.astype(np.int32),
        (*weight_reference(graph), point_weights),
    )
    critical, lams, costs, prices, n_clusters = _core.compute_modularity_path(
        tree.parent, tree.n_leaves, meets, volume, given
    )
    total = volume[-1] if volume[-1] > 0 else 1.0
    with np.errstate(divide="ignore"):
        resolutions, node_resolution = 1.0 / lams[::-1], 1.0 / critical
    is_first = np.append(True, resolutions[1:] > resolutions[:-1])  # by rounding, two λ may have the same inverse
    chance = ((volume[: tree.n_leaves] / total) ** 2).sum() + costs
    return ModularityPath(
        tree=tree,
        resolutions=resolutions[is_first],
        n_clusters=n_clusters[::-1][is_first].view(np.int64),
        inside=prices[::-1][is_first],
        chance=chance[::-1][is_first],
        node_resolution=node_resolution,
        node_inside=_core.sum_descendants(tree.parent, meets) * 2 / total,
        node_volume=volume / total,
        node_weight=node_weight,
    )


@dataclass(frozen=True, eq=False, repr=False)
class ModularityPath(Immutable):
    """The best cuts of a tree and their modularity, as functions of the resolution; see :func:`modularity_path`.

    The largest modularity is a piecewise linear, convex and decreasing function of the resolution. On each piece,
    the best cut does not change. The cuts become finer as the resolution grows, and they are nested.

    Examples
    --------
    >>> import agglo
    >>> graph = agglo.neighbor_graph([[0.0], [1.0], [5.0], [6.0]], 3, "euclidean")
    >>> path = agglo.modularity_path(agglo.hac(graph), graph)
    >>> path.cut(1.0)
    array([0, 0, 1, 1])
    >>> round(path.modularity(1.0), 2)
    0.21
    >>> path.cut(path.persistent_resolution())
    array([0, 0, 1, 1])
    """

    tree: Hierarchy
    resolutions: Floats
    """The resolution at which each linear piece of the modularity ends (inclusive), ascending to infinity."""
    n_clusters: Ints
    """The number of clusters for each piece, strictly increasing."""
    inside: Floats
    """The share of the edge weight inside clusters, for each piece."""
    chance: Floats
    """The sum of the squared shares of all degrees, for each piece. It is minus the slope of the modularity."""
    node_resolution: Floats
    """For each node, the largest resolution at which merging the node is at least as good as any split."""
    node_inside: Floats
    """For each node, the share of the edge weight between its points."""
    node_volume: Floats
    """For each node, the share of all degrees that its points have."""
    node_weight: Floats
    """For each node, the total weight of its points."""

    def __post_init__(self) -> None:
        self._release_arrays()

    @overload
    def modularity(self, resolution: SupportsFloat) -> float: ...
    @overload
    def modularity(self, resolution: npt.ArrayLike) -> float | Floats: ...
    def modularity(self, resolution: npt.ArrayLike | SupportsFloat) -> float | Floats:
        """Return the largest modularity of a cut at ``resolution``, a number or an array."""
        gammas = check_nonnegative("resolution", resolution)
        piece = np.searchsorted(self.resolutions, gammas)
        best = self.inside[piece] - gammas * self.chance[piece]
        return best if gammas.ndim else float(best)

    def cut(self, resolution: SupportsFloat) -> Ints:
        """Return the labels of the cut with the largest modularity, numbered in order of first appearance.

        At resolution 0 the result is one cluster. If the resolution is infinite, only duplicates and must-link
        constraints are merged.
        """
        return self.tree.partition(self.node_resolution >= check_nonnegative_number("resolution", resolution))

    def persistent_resolution(self) -> float:
        """Select the most persistent cut of the path; return the largest resolution at which it is the best cut.

        The best cut at a resolution is the cut with the largest modularity.

        1. The persistence of a cut is the length of its range of resolutions, on a logarithmic scale. Ranges start
           at 1/4. Below 1/4, the best cut separates only clusters with very little edge weight between them: less
           than a quarter of what chance would give. Such clusters are separate in any case, so longer ranges there
           prove nothing.
        2. The persistence is multiplied by the share of points in clusters of at least two points. Duplicates, and
           points that a must-link constraint merges, are one point here.
        3. Clusters are counted by their effective number: the exponential of the entropy of the cluster sizes.
        4. The score of a cut is a weighted sum of the persistence of all cuts. The weight of another cut is the
           ratio of the two numbers of clusters, the smaller divided by the larger. The cut with the highest score
           is selected. Ties go to the coarser cut.

        Cuts whose effective number of clusters is below 1.1 are ignored: one cluster has about 98 % of the points.
        If no cut is left, the result is the coarsest cut at a positive resolution. Only ratios of weights matter,
        so multiplying all edge weights by a factor does not change the result.

        Examples
        --------
        >>> import agglo
        >>> from sklearn.datasets import load_digits
        >>> graph = agglo.neighbor_graph(load_digits().data)
        >>> path = agglo.modularity_path(agglo.scc(graph), graph)
        >>> resolution = path.persistent_resolution()
        >>> round(resolution, 2), len(set(path.cut(resolution)))
        (1.44, 11)
        """
        tree, ends = self.tree, self.node_resolution
        # A node is a cluster between two resolutions: the largest at which an ancestor is merged, and the largest
        # at which the node itself is merged.
        merged = -_core.min_over_ancestors(tree.parent, -ends)
        starts = np.append(merged[tree.parent[:-1]], 0.0)
        is_cluster = ends > starts
        lower, first = np.unique(starts[is_cluster], return_inverse=True)  # piece i starts at lower[i]
        n_pieces = len(lower)
        last = np.searchsorted(lower, ends[is_cluster])  # the first piece in which the node is not a cluster
        weight, total = self.node_weight[is_cluster], self.node_weight[-1]
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

    def __repr__(self) -> str:
        return summarize_path(self, self.resolutions)


def check_resolution_rule(resolution: SupportsFloat | ResolutionRule) -> float | ResolutionRule:
    """Return ``resolution`` as a float, or ``"persistent"``; raise if it is neither."""
    if isinstance(resolution, str):
        if resolution != "persistent":
            raise ValueError(f"resolution={resolution!r} is unknown: pass a number or 'persistent'")
        return "persistent"
    return check_nonnegative_number("resolution", resolution)


def _check_leaf_weights(sample_weight: npt.ArrayLike | None, n_leaves: int) -> Floats:
    """Return the weights of the leaves; raise unless they are finite and positive.

    If all weights are 1, return an empty array.
    """
    if sample_weight is None:
        return np.empty(0)
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (n_leaves,):
        raise ValueError(f"sample_weight must have one number for each of {n_leaves} leaves, got {weights.shape}")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("sample_weight must be finite and positive: leave out points of weight 0")
    return weights


def match_points(tree: Hierarchy, graph: NeighborGraph) -> npt.NDArray[np.int32]:
    """Return the leaf of each point of ``graph``; raise if the graph and the tree do not match.

    If point ``i`` is leaf ``i``, return an empty array. If the tree has duplicates, the graph may contain each
    group of duplicates as one point. The leaf of a group is its first point.
    """
    if not isinstance(graph, NeighborGraph):
        raise TypeError(
            f"graph must be a NeighborGraph, got {type(graph).__name__}: build one with NeighborGraph.from_scipy"
        )
    if graph.n_points == tree.n_leaves:
        return np.empty(0, np.int32)
    n_groups = tree.n_leaves - tree.about.get("copies", 0)
    if graph.n_points != n_groups or "must_link" in tree.about:
        groups = f", or {n_groups} without duplicates" if n_groups < tree.n_leaves else ""
        raise ValueError(
            f"the graph has {graph.n_points} points, but the tree has {tree.n_leaves} leaves{groups}: "
            "pass the graph that the tree was built from"
        )
    above = tree.parent[: tree.n_leaves]
    is_copy = tree.round[above] == 1
    first = np.full(tree.n_nodes, tree.n_leaves)
    np.minimum.at(first, above[is_copy], np.flatnonzero(is_copy))
    return np.flatnonzero(~is_copy | (first[above] == np.arange(tree.n_leaves))).astype(np.int32)


def weight_reference(graph: NeighborGraph) -> tuple[float, float]:
    """Return ``(reference, scale)``, which convert the value of an edge to its weight in the modularity.

    The weight is ``max(0, scale * (value - reference))``.

    The reference is the value of a pair without an edge. If such pairs are ignored, it is similarity 0, or the
    distance of the farthest edge. If all edges have that largest distance, the weight of every edge is 1.
    """
    if graph.kind == "similarity":
        return (0.0 if graph.missing == "ignore" else float(graph.missing or 0.0)), 1.0
    farthest = float(graph.weights.max(initial=0.0))
    reference = farthest if graph.missing == "ignore" else float(graph.missing or 0.0)
    if reference == farthest == graph.weights.min(initial=farthest):
        reference += 1.0
    return reference, -1.0
