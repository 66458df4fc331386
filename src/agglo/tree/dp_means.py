"""Partitions of least cost out of a tree: the DP-means optimum for every price of a cluster at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsFloat, SupportsIndex, cast, overload

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._arrays import Immutable, release
from agglo._validation import effective_n_threads
from agglo.points.validation import check_leaves, for_core
from agglo.progress import Progress, phase
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
    """The best partition that the tree has for the DP-means objective, for every price of a cluster at once.

    The objective is the sum of squared distances of the points to the center of their cluster, plus ``lam``
    for each cluster. Of all partitions into nodes of the tree, however they lie across its rounds, the path
    has the one of least cost for each ``lam`` from 0 to infinity, and of equals the one of fewest clusters.
    The root of a forest is a node like any other here.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    X : array-like of shape (n_leaves, n_features)
        Its points, dense. For a tree of cosine similarities give them with rows of length 1. Arrays of
        float16, float32 and float64 in C order are read in place, memory-mapped ones too.
    centers : {"means", "points"}
        Where the center of a cluster is: at its mean, or at the one of its own points that is best (the
        DP-facility problem, with every cluster served from within).
    n_jobs : int, optional
        Number of threads, all cores by default; it does not change the result.
    progress : callable, optional
        Called as ``progress(phase, done, total)`` from time to time.

    Returns
    -------
    DPMeansPath
        The function of ``lam``, with the partitions that go with it.

    Notes
    -----
    A node as one cluster costs its squared distances plus ``lam``; split, it costs what its children cost at
    best, which grows at least twice as fast in ``lam``. So there is one critical price for each node from
    which on it is better joined, and one sweep from the leaves up finds them all: O(N log N) for N nodes
    after a pass over the points, in O(N) memory beside them.

    With ``centers="points"`` a node also needs the point nearest its mean. Only those points are looked at
    that can be it, judged by how far means have moved since the last look. That is exact; the number of looks
    is usually a few times N log N but no better than the sum of all nodes' sizes for the worst data.

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
    if not hasattr(tree, "n_leaves"):
        raise TypeError(f"expected a Hierarchy, got {type(tree).__name__}")
    if centers not in CENTERS:
        raise ValueError(f"centers={centers!r} is unknown: pass 'means' or 'points'")
    points = check_leaves(X, tree.n_leaves)
    node_cost, node_center = _core.node_costs(
        for_core(points),
        tree.parent,
        tree.size,
        centers == "points",
        effective_n_threads(n_jobs),
        phase(progress, "costs"),
    )
    critical, lambdas, within, n_clusters = _core.price_path(tree.parent, node_cost, tree.n_leaves)
    return DPMeansPath(
        tree=tree,
        centers=centers,
        lambdas=lambdas,
        within=within,
        n_clusters=n_clusters.view(np.int64),  # of two types of 64 bits the one that prints plainly
        node_cost=node_cost,
        node_center=node_center if centers == "points" else None,
        critical=critical,
    )


@dataclass(frozen=True, eq=False, repr=False)
class DPMeansPath(Immutable):
    """The least DP-means cost of a tree's partitions as a function of the price of a cluster.

    It is piecewise linear, concave and increasing. Made by :func:`dp_means_path`.
    """

    tree: Hierarchy
    centers: Centers
    lambdas: Floats
    """Where pieces begin, ascending from 0."""
    within: Floats
    """On each piece, the sum of squared distances to the centers."""
    n_clusters: Ints
    """On each piece, the number of clusters, which is the slope: it falls from piece to piece, down to 1."""
    node_cost: Floats
    """For each node of the tree, the sum of squared distances to its center if it is one cluster."""
    node_center: npt.NDArray[np.int32] | None
    """For each node, the point that is its center; None if centers are means."""
    critical: Floats
    """For each node, the price from which on it costs no more than any way of splitting it."""

    def __post_init__(self) -> None:
        for name in ("lambdas", "within", "n_clusters", "node_cost", "node_center", "critical"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, release(given))

    @property
    def costs(self) -> Floats:
        """The cost where pieces begin."""
        return self.within + self.lambdas * self.n_clusters

    @overload
    def cost(self, lam: SupportsFloat) -> float: ...
    @overload
    def cost(self, lam: npt.ArrayLike) -> float | Floats: ...
    def cost(self, lam: npt.ArrayLike | SupportsFloat) -> float | Floats:
        """The least cost for a price, or for each of an array of them; infinite for an infinite one."""
        prices = _prices(lam)
        piece = self._piece(prices)
        costs = self.within[piece] + prices * self.n_clusters[piece]
        return costs if prices.ndim else float(costs)

    def cut(self, lam: SupportsFloat) -> Ints:
        """Labels of the partition of least cost for the price ``lam``, in order of first appearance.

        For 0 that has every copy of a point joined that the tree can join without others, and for infinity
        it is one cluster.
        """
        return self.tree.partition(self.critical <= _prices(lam, scalar=True))

    def exactly(self, n_clusters: SupportsIndex) -> Ints:
        """Call :meth:`cut_exactly`, the new name of this method."""
        warnings.warn("exactly is deprecated: call cut_exactly", FutureWarning, stacklevel=2)
        return self.cut_exactly(n_clusters)

    def cut_exactly(self, n_clusters: SupportsIndex) -> Ints:
        """Labels of the partition of least cost among those of exactly ``n_clusters`` nodes of the tree.

        Where the path has that number of clusters, it is the path's. Other numbers take a search over the
        nodes that can be part of a solution, as bounds from the path show: usually few, and for the worst
        trees all, in time and memory of O(nodes × n_clusters). It is exact either way.

        Raises
        ------
        ValueError
            If the number is below 1 or above that of the leaves, or if the tree has no partition of so many
            nodes: a node of three children can make one cluster or three, but not two.
        """
        wanted = check_n_clusters(n_clusters, self.tree.n_leaves)
        piece = int(np.searchsorted(-self.n_clusters, -wanted))  # the first of no more clusters
        if self.n_clusters[piece] == wanted:
            return self.cut(self.lambdas[piece])
        _check_possible(self.tree, wanted)
        joined = self._some_of_equals(piece, wanted)
        if joined is None:
            price = float(self.lambdas[piece])
            joined = _core.cheapest_of(self.tree.parent, self.node_cost, self.tree.n_leaves, wanted, price)
        return self.tree.partition(joined.view(np.bool_))

    def best_round(self, lam: SupportsFloat) -> int:
        """The round whose partition costs least for the price ``lam``, the coarser of equals.

        That is how the paper chooses. The path's own partition never costs more, for a round is one partition
        of the tree among many; see :meth:`round_costs`.
        """
        costs = self.round_costs(_prices(lam, scalar=True))
        return len(costs) - 1 - int(costs[::-1].argmin())

    def round_costs(self, lam: SupportsFloat) -> Floats:
        """The cost of the partition of every round for the price ``lam``, single points being round 0."""
        tree, last = self.tree, len(self.tree.rounds)
        made = np.bincount(tree.round, self.node_cost, last + 2)
        gone = np.bincount(tree.round[tree.parent[:-1]], self.node_cost[:-1], last + 2)
        within = np.maximum(np.cumsum(made - gone)[: last + 1], 0.0)
        counts = np.concatenate(([tree.n_leaves], tree.rounds.after))
        return cast(Floats, within + float(_prices(lam, scalar=True)) * counts)

    def _piece(self, prices: Floats) -> npt.NDArray[np.intp]:
        return np.searchsorted(self.lambdas, prices, side="right") - 1

    def _some_of_equals(self, piece: int, wanted: int) -> npt.NDArray[np.bool_] | None:
        """Joined nodes, if of the merges that begin this piece some make the number: none can cost less.

        Equal critical prices are common, 0 for copies of one point above all, and then the bounds of a search
        exclude nothing.
        """
        joined: npt.NDArray[np.bool_] = self.critical < self.lambdas[piece]
        finer, coarser = self.tree.partition(joined), self.cut(self.lambdas[piece])
        parts = np.bincount(coarser[np.unique(finer, return_index=True)[1]])  # finer clusters in a coarser one
        nodes = self.tree.nodes(coarser)
        spare = int(parts.sum()) - wanted
        for cluster in np.argsort(-parts, kind="stable"):
            fewer = int(parts[cluster]) - 1
            if spare == 0 or fewer == 0:
                break
            if fewer <= spare:
                joined[nodes[cluster]] = True
                spare -= fewer
        return joined if spare == 0 else None

    def __repr__(self) -> str:
        shown = [f"{lam:.4g}" for lam in self.lambdas]
        if len(shown) > 5:
            shown[2:-2] = ["..."]
        span = f"{self.n_clusters[0]} to {self.n_clusters[-1]} clusters"
        return f"DPMeansPath({self.tree.n_leaves} leaves, {span}, breakpoints {', '.join(shown)})"


def _check_possible(tree: Hierarchy, wanted: int) -> None:
    """Raise unless the tree has a partition of ``wanted`` nodes."""
    first, last = _core.possible_numbers(tree.parent, tree.n_leaves)
    run = int(np.searchsorted(first, wanted, side="right")) - 1
    if last[run] < wanted:
        raise ValueError(
            f"n_clusters={wanted} is impossible: nodes of more than two children leave this tree no partition of "
            f"that number; the nearest are {last[run]} and {first[run + 1]}"
        )


def check_lam(lam: SupportsFloat) -> None:
    """Raise unless ``lam`` is one price of a cluster."""
    _prices(lam, scalar=True)


def _prices(lam: npt.ArrayLike | SupportsFloat, *, scalar: bool = False) -> Floats:
    try:
        prices = np.asarray(lam, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"lam={lam!r} is no price of a cluster: pass a number") from None
    if scalar and prices.ndim:
        raise TypeError(f"lam must be one price of a cluster, got an array of shape {prices.shape}")
    wrong = ~(prices >= 0)  # NaN is wrong too
    if wrong.any():
        value = float(prices[wrong][0])
        raise ValueError(f"lam={value:g} is no price of a cluster: pass 0 or more, infinity included")
    return prices
