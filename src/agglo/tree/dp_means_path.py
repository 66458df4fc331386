"""Partitions of least DP-means cost: the optimum over a tree for every λ at once.

λ (``lam`` in code) is the cost of a cluster in the DP-means objective.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsFloat, SupportsIndex, cast, overload

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._arrays import Immutable, release
from agglo._validation import effective_n_threads
from agglo.points.validation import as_core_array, check_leaf_points
from agglo.progress import Progress, bind_phase
from agglo.tree.validation import check_n_clusters

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
    """Compute the partition of least DP-means cost among those of the tree, for every ``lam`` at once.

    The objective is the sum of squared distances of the points to the center of their cluster, plus ``lam`` for
    each cluster. Partitions consist of any nodes of the tree, from any rounds; the explicit root of a forest is
    one of the nodes. For each ``lam`` from 0 to infinity, the path has the partition of least cost; of equals,
    the one with the fewest clusters.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    X : array-like of shape (n_leaves, n_features)
        The points of the tree, dense. For a tree of cosine similarities, normalize the rows to length 1. Arrays of
        float16, float32 and float64 in C order are not copied, even if they are memory-mapped.
    centers : {"means", "points"}
        The center of a cluster is its mean, or the best of its points (the DP-facility problem, with the facility
        of each cluster among its points).
    n_jobs : int, optional
        Number of threads, all cores by default. It does not change the result.
    progress : callable, optional
        Called as ``progress(phase, done, total)`` from time to time.

    Returns
    -------
    DPMeansPath
        The least cost as a function of ``lam``, and the partitions.

    Notes
    -----
    A node as one cluster costs its squared distances plus ``lam``. If it is split, it costs the sum of the least
    costs of its children, which grows at least twice as fast in ``lam``. So each node has a critical ``lam`` from
    which on it is better merged. One pass from the leaves to the root finds all of them. This takes O(N log N)
    time for N nodes after one pass over the points, and O(N) memory.

    With ``centers="points"``, each node needs the point nearest to its mean. Bounds on how far the mean has moved
    exclude most points. The result is exact. The number of comparisons is usually a few times N log N. In the
    worst case it is the sum of the sizes of all nodes.

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
    if not hasattr(tree, "n_leaves"):  # isinstance would need an import of Hierarchy, which imports this module
        raise TypeError(f"expected a Hierarchy, got {type(tree).__name__}")
    if centers not in CENTERS:
        raise ValueError(f"centers={centers!r} is unknown: pass 'means' or 'points'")
    points = check_leaf_points(X, tree.n_leaves)
    node_cost, node_center = _core.compute_node_costs(
        as_core_array(points),
        tree.parent,
        tree.size,
        centers == "points",
        effective_n_threads(n_jobs),
        bind_phase(progress, "costs"),
    )
    critical, lambdas, within, n_clusters = _core.compute_price_path(tree.parent, node_cost, tree.n_leaves)
    return DPMeansPath(
        tree=tree,
        centers=centers,
        lambdas=lambdas,
        within=within,
        n_clusters=n_clusters.view(np.int64),  # its repr shows no dtype, unlike that of the other 64-bit integer
        node_cost=node_cost,
        node_center=node_center if centers == "points" else None,
        critical=critical,
    )


@dataclass(frozen=True, eq=False, repr=False)
class DPMeansPath(Immutable):
    """The least DP-means cost of a tree's partitions as a function of ``lam``; see :func:`dp_means_path`.

    The function is piecewise linear, concave and increasing. The partition is constant on each piece.
    """

    tree: Hierarchy
    centers: Centers
    lambdas: Floats
    """The start of each piece, ascending from 0."""
    within: Floats
    """The sum of squared distances to the centers, on each piece."""
    n_clusters: Ints
    """The number of clusters on each piece, which is its slope: strictly decreasing, down to 1."""
    node_cost: Floats
    """For each node of the tree, the sum of squared distances to its center if it is one cluster."""
    node_center: npt.NDArray[np.int32] | None
    """For each node, the point that is its center; None if centers are means."""
    critical: Floats
    """For each node, the ``lam`` from which on it costs no more than any way of splitting it."""

    def __post_init__(self) -> None:
        for name in ("lambdas", "within", "n_clusters", "node_cost", "node_center", "critical"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, release(given))

    @property
    def costs(self) -> Floats:
        """The cost at the start of each piece."""
        return self.within + self.lambdas * self.n_clusters

    @overload
    def cost(self, lam: SupportsFloat) -> float: ...
    @overload
    def cost(self, lam: npt.ArrayLike) -> float | Floats: ...
    def cost(self, lam: npt.ArrayLike | SupportsFloat) -> float | Floats:
        """Return the least cost for ``lam``, a number or an array of them; infinity for infinity."""
        lams = _check_lams(lam)
        piece = np.searchsorted(self.lambdas, lams, side="right") - 1
        costs = self.within[piece] + lams * self.n_clusters[piece]
        return costs if lams.ndim else float(costs)

    def cut(self, lam: SupportsFloat) -> Ints:
        """Return the labels of the partition of least cost for ``lam``, numbered in order of first appearance.

        If ``lam`` is 0, duplicates are merged as far as the tree has nodes of duplicates only. If it is infinite,
        the result is one cluster.
        """
        return self.tree.partition(self.critical <= check_lam(lam))

    def exactly(self, n_clusters: SupportsIndex) -> Ints:
        """Call :meth:`cut_exactly`, the new name of this method."""
        warnings.warn("exactly is deprecated: call cut_exactly", FutureWarning, stacklevel=2)
        return self.cut_exactly(n_clusters)

    def cut_exactly(self, n_clusters: SupportsIndex) -> Ints:
        """Return the labels of the partition of least cost into exactly ``n_clusters`` nodes of the tree.

        If the path has that number of clusters, its partition is returned. Otherwise the nodes that can be part
        of a solution, by bounds from the path, are searched. These are usually few. In the worst case they are all
        nodes, and the search takes O(nodes × n_clusters) time and memory. The result is exact.

        Raises
        ------
        ValueError
            If the number is below 1 or above that of the leaves, or if the tree has no such partition: a node
            of three children can be one cluster or three, but not two.
        """
        number = check_n_clusters(n_clusters, self.tree.n_leaves)
        piece = int(np.searchsorted(-self.n_clusters, -number))  # the first with at most that number
        if self.n_clusters[piece] == number:
            return self.cut(self.lambdas[piece])
        _check_partition_exists(self.tree, number)
        merged = self._select_tied_merges(piece, number)
        if merged is None:
            lam = float(self.lambdas[piece])
            merged = _core.select_k_nodes(self.tree.parent, self.node_cost, self.tree.n_leaves, number, lam)
        return self.tree.partition(merged.view(np.bool_))

    def best_round(self, lam: SupportsFloat) -> int:
        """Return the round whose partition has the least cost for ``lam``; of equals, the coarser.

        This is the rule of the paper. :meth:`cut` never costs more, because it selects among all partitions of
        the tree.
        """
        costs = self.round_costs(lam)
        return len(costs) - 1 - int(costs[::-1].argmin())

    def round_costs(self, lam: SupportsFloat) -> Floats:
        """Return the cost of the partition after each round for ``lam``, from round 0, the single points."""
        tree, last = self.tree, len(self.tree.rounds)
        added = np.bincount(tree.round, self.node_cost, last + 2)
        removed = np.bincount(tree.round[tree.parent[:-1]], self.node_cost[:-1], last + 2)
        within = np.maximum(np.cumsum(added - removed)[: last + 1], 0.0)
        counts = np.concatenate(([tree.n_leaves], tree.rounds.after))
        return cast(Floats, within + check_lam(lam) * counts)

    def _select_tied_merges(self, piece: int, n_clusters: int) -> npt.NDArray[np.bool_] | None:
        """Return merged nodes that give ``n_clusters``, if some of the merges at the start of ``piece`` do.

        All these merges have the same critical ``lam``, so no partition of that number costs less. Ties are
        common, above all at 0 for duplicates, and then the bounds of a search would exclude nothing.
        """
        merged: npt.NDArray[np.bool_] = self.critical < self.lambdas[piece]
        finer, coarser = self.tree.partition(merged), self.cut(self.lambdas[piece])
        parts = np.bincount(coarser[np.unique(finer, return_index=True)[1]])  # finer clusters in each coarser one
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
        shown = [f"{lam:.4g}" for lam in self.lambdas]
        if len(shown) > 5:
            shown[2:-2] = ["..."]
        span = f"{self.n_clusters[0]} to {self.n_clusters[-1]} clusters"
        return f"DPMeansPath({self.tree.n_leaves} leaves, {span}, breakpoints {', '.join(shown)})"


def _check_partition_exists(tree: Hierarchy, n_clusters: int) -> None:
    """Raise unless the tree has a partition into ``n_clusters`` nodes."""
    first, last = _core.find_possible_counts(tree.parent, tree.n_leaves)
    run = int(np.searchsorted(first, n_clusters, side="right")) - 1
    if last[run] < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is impossible: because nodes have more than two children, this tree has no "
            f"partition into that number of nodes; the nearest are {last[run]} and {first[run + 1]}"
        )


def check_lam(lam: SupportsFloat) -> float:
    """Return ``lam`` as a float; raise unless it is one number that is not negative."""
    lams = _check_lams(lam)
    if lams.ndim:
        raise TypeError(f"lam must be one number, got an array of shape {lams.shape}")
    return float(lams)


def _check_lams(lam: npt.ArrayLike | SupportsFloat) -> Floats:
    """Return ``lam`` as an array of floats; raise unless all are numbers that are not negative."""
    try:
        lams = np.asarray(lam, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"lam={lam!r} is not a number: pass 0 or more, infinity included") from None
    is_wrong = ~(lams >= 0)  # true for NaN
    if is_wrong.any():
        raise ValueError(f"lam={lams[is_wrong][0]:g} is not allowed: pass 0 or more, infinity included")
    return lams
