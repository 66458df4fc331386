"""Find the cut of a tree with the lowest DP-means cost, for every λ at once.

λ (``lam`` in code) is the cost per cluster in the DP-means objective.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex, cast, overload

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._validation import (
    Immutable,
    check_n_clusters,
    check_nonnegative,
    check_nonnegative_number,
    effective_n_threads,
)
from agglo.points.points import as_core_array, check_points
from agglo.progress import Progress

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Centers = Literal["means", "points"]
CENTERS = ("means", "points")


def dp_means_path(
    tree: Hierarchy,
    X: npt.ArrayLike,
    *,
    centers: Centers = "means",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> DPMeansPath:
    """Compute the cut of the tree with the lowest DP-means cost, for every ``lam`` at once.

    The objective is the sum of squared distances of the points to the center of their cluster, plus ``lam`` for
    each cluster. A cut may use any nodes of the tree, from any rounds, including the explicit root of a forest.
    The path contains the cut with the lowest cost for each ``lam`` from 0 to infinity. Ties go to the cut with the
    fewest clusters.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    X : array-like of shape (n_leaves, n_features)
        The points of the tree, dense. For a tree of cosine similarities, normalize the rows to length 1. float16,
        float32 and float64 arrays in C order are not copied, so memory-mapped arrays work, too.
    centers : {"means", "points"}
        With ``"means"``, the center of a cluster is its mean. With ``"points"``, it is the point of the cluster
        that gives the lowest cost (the DP-facility problem).
    n_jobs : int, optional
        The number of threads. By default, all cores are used. The result does not depend on it.
    progress : callable, optional
        Called as ``progress(phase, done, total)`` from time to time.

    Returns
    -------
    DPMeansPath
        The lowest cost as a function of ``lam``, and the cuts.

    Notes
    -----
    If a node is one cluster, it costs its sum of squared distances plus ``lam``. If it is split, it costs the sum
    of the lowest costs of its children, which grows at least twice as fast in ``lam``. So each node has a critical
    ``lam``: from this value on, merging the node is cheaper. One pass from the leaves to the root finds all
    critical values. It takes O(N log N) time and O(N) memory for N nodes, after one pass over the points.

    With ``centers="points"``, each node needs the point nearest to its mean. Bounds on the distance between the
    means of a node and its child exclude most points. The result is exact. The number of comparisons is usually a
    few times N log N, and in the worst case the sum of the sizes of all nodes.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [10.0], [12.0]]
    >>> tree = agglo.hac(agglo.neighbor_graph(X, "all", "sqeuclidean"))
    >>> path = agglo.dp_means_path(tree, X)
    >>> path
    DPMeansPath(4 leaves, 4 to 1 clusters, breakpoints 0, 0.5, 2, 110.2)
    >>> path.n_clusters
    array([4, 3, 2, 1])
    >>> path.cost([0, 1, 3, 1000])
    array([   0.  ,    3.5 ,    8.5 , 1112.75])
    >>> path.cut(3)
    array([0, 0, 1, 1])
    >>> path.cut_exactly(3)
    array([0, 0, 1, 2])
    """
    if not hasattr(tree, "n_leaves"):  # isinstance(tree, Hierarchy) would need a circular import
        raise TypeError(f"expected a Hierarchy, got {type(tree).__name__}")
    if centers not in CENTERS:
        raise ValueError(f"centers={centers!r} is unknown: pass 'means' or 'points'")
    points = check_points(X, half=True)
    if len(points) != tree.n_leaves:
        raise ValueError(
            f"X has {len(points)} rows, but the tree has {tree.n_leaves} leaves: pass the points that it was "
            "built from, in the same order"
        )
    node_cost, node_center = _core.compute_node_costs(
        as_core_array(points),
        tree.parent,
        tree.size,
        centers,
        effective_n_threads(n_jobs),
        progress and partial(progress, "costs"),
    )
    critical, lambdas, within, n_clusters = _core.compute_price_path(tree.parent, node_cost, tree.n_leaves)
    return DPMeansPath(
        tree=tree,
        centers=centers,
        lambdas=lambdas,
        within=within,
        n_clusters=n_clusters.view(np.int64),  # the repr of int64 shows no dtype
        node_cost=node_cost,
        node_center=node_center if centers == "points" else None,
        critical=critical,
    )


@dataclass(frozen=True, eq=False, repr=False)
class DPMeansPath(Immutable):
    """The best cuts of a tree and their DP-means costs, as functions of ``lam``; see :func:`dp_means_path`.

    The lowest cost is a piecewise linear, concave and increasing function of ``lam``. On each piece, the best cut
    does not change.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [5.0], [6.0]]
    >>> path = agglo.dp_means_path(agglo.hac(agglo.neighbor_graph(X, 3, "sqeuclidean")), X)
    >>> path.cut(lam=2.0)
    array([0, 0, 1, 1])
    >>> path.cost(lam=2.0)
    5.0
    >>> path.best_round(lam=2.0)
    2
    >>> path.round_costs(lam=2.0)
    array([ 8. ,  6.5,  5. , 28. ])
    >>> path.cut_exactly(n_clusters=3)
    array([0, 0, 1, 2])
    """

    tree: Hierarchy
    centers: Centers
    lambdas: Floats
    """The value of ``lam`` at which each linear piece of the lowest cost starts, ascending from 0."""
    within: Floats
    """The sum of squared distances of the points to their centers, for each piece."""
    n_clusters: Ints
    """The number of clusters for each piece, strictly decreasing to 1. It is the slope of the cost."""
    node_cost: Floats
    """For each node, the sum of squared distances of its points to its center."""
    node_center: npt.NDArray[np.int32] | None
    """For each node, the index of the point that is its center; None if centers are means."""
    critical: Floats
    """For each node, the smallest ``lam`` at which merging the node costs no more than any split."""

    def __post_init__(self) -> None:
        self._release_arrays()

    @property
    def costs(self) -> Floats:
        """The lowest DP-means cost at each value in ``lambdas``."""
        return self.within + self.lambdas * self.n_clusters

    @overload
    def cost(self, lam: SupportsFloat) -> float: ...
    @overload
    def cost(self, lam: npt.ArrayLike) -> float | Floats: ...
    def cost(self, lam: npt.ArrayLike | SupportsFloat) -> float | Floats:
        """Return the lowest cost of a cut for ``lam``, a number or an array; infinity if ``lam`` is infinite."""
        lams = check_nonnegative("lam", lam)
        piece = np.searchsorted(self.lambdas, lams, side="right") - 1
        costs = self.within[piece] + lams * self.n_clusters[piece]
        return costs if lams.ndim else float(costs)

    def cut(self, lam: SupportsFloat) -> Ints:
        """Return the labels of the cut with the lowest cost for ``lam``, numbered in order of first appearance.

        If ``lam`` is 0, only nodes that consist of duplicates are merged. If ``lam`` is infinite, the result is
        one cluster.
        """
        return self.tree.partition(self.critical <= check_nonnegative_number("lam", lam))

    def exactly(self, n_clusters: SupportsIndex) -> Ints:
        """Call :meth:`cut_exactly`: this is the deprecated name of that method."""
        warnings.warn("exactly is deprecated: call cut_exactly", FutureWarning, stacklevel=2)
        return self.cut_exactly(n_clusters)

    def cut_exactly(self, n_clusters: SupportsIndex) -> Ints:
        """Return the labels of the cut with the lowest cost into exactly ``n_clusters`` nodes of the tree.

        If a cut of the path has this number of clusters, that cut is returned. Otherwise, bounds from the path
        exclude most nodes, and the remaining nodes are searched. In the worst case no node is excluded, and the
        search takes O(nodes × n_clusters) time and memory. The result is exact.

        Raises
        ------
        ValueError
            If ``n_clusters`` is below 1 or above the number of leaves, or if the tree has no such cut. For
            example, a node with three children can be one cluster or three, but not two.
        """
        number = check_n_clusters(n_clusters, self.tree.n_leaves)
        piece = int(np.searchsorted(-self.n_clusters, -number))  # the first piece with at most that many clusters
        if self.n_clusters[piece] == number:
            return self.cut(self.lambdas[piece])
        _check_partition_exists(self.tree, number)
        merged = self._select_tied_merges(piece, number)
        if merged is None:
            lam = float(self.lambdas[piece])
            tree, costs = self.tree, self.node_cost
            merged = _core.select_k_nodes(tree.parent, costs, tree.n_leaves, number, lam, None).view(np.bool_)
        return self.tree.partition(merged)

    def best_round(self, lam: SupportsFloat) -> int:
        """Return the round whose partition has the lowest cost for ``lam``; ties go to the coarser round.

        The paper uses this rule. The result of :meth:`cut` never costs more, because :meth:`cut` selects among all
        cuts of the tree.
        """
        costs = self.round_costs(lam)
        return len(costs) - 1 - int(costs[::-1].argmin())

    def round_costs(self, lam: SupportsFloat) -> Floats:
        """Return the cost of the partition after each round, for ``lam``. Round 0 is the partition into points."""
        tree, last = self.tree, len(self.tree.rounds)
        added = np.bincount(tree.round, self.node_cost, last + 2)
        removed = np.bincount(tree.round[tree.parent[:-1]], self.node_cost[:-1], last + 2)
        within = np.maximum(np.cumsum(added - removed)[: last + 1], 0.0)
        counts = np.concatenate(([tree.n_leaves], tree.rounds.after))
        return cast(Floats, within + check_nonnegative_number("lam", lam) * counts)

    def _select_tied_merges(self, piece: int, n_clusters: int) -> npt.NDArray[np.bool_] | None:
        """Find a cut into ``n_clusters`` with only some of the merges of critical ``lam`` ``lambdas[piece]``.

        Return a mask of the merged nodes, or None if no such cut is found. All these merges have the same critical
        ``lam``, so no cut into ``n_clusters`` costs less. Such ties are common. For example, all merges of
        duplicates have the critical ``lam`` 0. The bounds of a search would exclude no nodes in case of ties.
        """
        merged: npt.NDArray[np.bool_] = self.critical < self.lambdas[piece]
        finer, coarser = self.tree.partition(merged), self.cut(self.lambdas[piece])
        # The number of finer clusters in each coarser cluster.
        parts = np.bincount(coarser[np.unique(finer, return_index=True)[1]])
        nodes = self.tree.nodes(coarser)
        excess = int(parts.sum()) - n_clusters
        for cluster in np.argsort(-parts, kind="stable"):
            fewer = int(parts[cluster]) - 1
            if excess == 0 or fewer == 0:
                break
            if fewer <= excess:
                merged[nodes[cluster]] = True
                excess -= fewer
        return merged if excess == 0 else None

    def __repr__(self) -> str:
        return summarize_path(self, self.lambdas)


def _check_partition_exists(tree: Hierarchy, n_clusters: int) -> None:
    """Raise unless the tree can be cut into exactly ``n_clusters`` nodes."""
    first, last = _core.find_possible_counts(tree.parent, tree.n_leaves)
    run = int(np.searchsorted(first, n_clusters, side="right")) - 1
    if last[run] < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is impossible: because nodes have more than two children, this tree has no "
            f"partition into that number of nodes; the nearest are {last[run]} and {first[run + 1]}"
        )


def summarize_path(path: Any, breakpoints: Floats) -> str:
    """Return the ``repr`` of a path of cuts: type, number of leaves, range of cluster counts, and breakpoints."""
    shown = [f"{number:.4g}" for number in breakpoints]
    if len(shown) > 5:
        shown[2:-2] = ["..."]
    span = f"{path.n_clusters[0]} to {path.n_clusters[-1]} clusters"
    return f"{type(path).__name__}({path.tree.n_leaves} leaves, {span}, breakpoints {', '.join(shown)})"
