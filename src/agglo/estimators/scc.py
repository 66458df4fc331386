"""The clusterers: the stages in order behind scikit-learn's conventions, points in, labels and tree out."""

from __future__ import annotations

from typing import Any, Literal, SupportsFloat, SupportsIndex

import numpy.typing as npt

from agglo._validation import RandomStateLike
from agglo.estimators.base import Clusterer
from agglo.neighbors.graph import Kind, NeighborGraph
from agglo.neighbors.missing import MissingRule
from agglo.progress import Progress
from agglo.rounds.algorithms import affinity, hac, scc
from agglo.rounds.linkage import Linkage, LinkageName
from agglo.rounds.plan import Advance
from agglo.rounds.schedule import ScheduleName
from agglo.rounds.vector_linkage import ConnectName
from agglo.tree.cut import RoundRule
from agglo.tree.hierarchy import Hierarchy


class SCC(Clusterer):
    """Clusterer that runs the Sub-Cluster Component algorithm on the neighbour graph of the points.

    Parameters
    ----------
    n_clusters : int, optional
        ``labels_`` are those of the round whose number of clusters is closest; rounds may jump over it.
    metric : {"cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming", "precomputed"}, default="cosine"
        How points are compared; see :func:`agglo.neighbor_graph`. With ``"precomputed"`` no points are given, but
        a :class:`agglo.NeighborGraph`, a SciPy sparse matrix whose stored entries are the edges, or a square
        array, which is a complete graph.
    n_neighbors : int or "all", default=25
        Neighbours to find for each point; ``"all"`` for the complete graph. Where there are not so many other
        points it is all of them; ``graph_.parameters`` has the number that was used.
    method : str, default="auto"
        How neighbours are found: one of the methods of :func:`agglo.neighbor_graph`. ``"auto"`` finds all of them
        while that is cheap, and else nearly all; ``graph_.method`` and ``graph_.recall_estimate`` say which.
    recall : float, default=0.95
        The share of the true neighbours to find, where not all are.
    missing : float, "mean", "ignore" or None, default="mean"
        The value that a pair without an edge has in a linkage; see :func:`agglo.neighbor_graph`. With
        ``metric="precomputed"`` nothing is known of such pairs: then ``"mean"`` is like None, and a graph has a
        value of its own.
    thresholds : {"odds", "geometric", "linear", "doubling"} or array-like, default="odds"
        The schedule of the rounds, from near to far; see :func:`agglo.scc`.
    n_thresholds : int, optional
        How many thresholds, for ``"odds"``, ``"geometric"`` and ``"linear"``; by default some ten thousands for
        the first and 200 for the others.
    linkage : {"average", "single", "complete", "exact-average", "centroid", "ward"} or Linkage, default="average"
        How close two clusters are; see :func:`agglo.scc`.
    connect : {"auto", "exact-average", "centroid", "ward"} or None, default="auto"
        The linkage that merges the clusters that are left when the neighbour graph has no more edges between them.
        ``"auto"`` takes ``"exact-average"``, or ``"centroid"`` for the metric ``euclidean``, if the points are
        dense and ``linkage`` is one on the graph. Otherwise, and with None, these clusters stay apart. The rule
        ``"persistent"`` chooses among the rounds on the graph in any case.
    advance : {"every-round", "until-stable"}, default="every-round"
        When to go to the next threshold.
    round : int, "persistent" or "silhouette", optional
        ``labels_`` are those of that round, as :meth:`agglo.Hierarchy.labels` counts. ``"persistent"``, also the
        rule if none of ``n_clusters``, ``round`` and ``height`` is given: the round near whose number of
        clusters the merging stays longest, see the notes.
    height : float, optional
        ``labels_`` are those of all merges up to this height.
    kind : {"distance", "similarity"}, optional
        What the numbers of a precomputed matrix are; needed there, and nowhere else.
    max_cluster_size : float, optional
        How many points a cluster may be of, or how much it may weigh; see :func:`agglo.scc`.
    random_state : int, RandomState instance or None, default=0
        The seed of a search for nearly all neighbours. The same integer gives the same result. None takes a seed
        from NumPy's global random state, a ``RandomState`` instance gives one: each fit differs.
    n_jobs : int, optional
        Threads; None or -1 for all cores. The result does not depend on it.
    verbose : bool, default=False
        Show a progress bar on the terminal.
    top : deprecated
        The former name of ``connect``.

    Attributes
    ----------
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point. 0 is the largest cluster: that of the largest total weight, or of most points
        if there are no weights. Of equally large clusters, the one with the smallest row of ``X`` comes first;
        rows are compared column by column. So the numbers do not depend on the order of the points. Only clusters
        that are still tied are in order of first appearance: those of a precomputed graph, and of equal points
        kept apart. No point is left out as noise.
    tree_ : Hierarchy
        The tree, for any other cut: ``tree_.cut(n_clusters=10)`` needs no second fit. It numbers clusters in order
        of first appearance.
    graph_ : NeighborGraph
        The neighbour graph, in which points that are equal are one.
    graph_index_ : ndarray of int64 of shape (n_points,)
        The point of the graph that stands for each point.
    round_ : int or None
        The round that ``labels_`` are of; None if they were cut at a height.
    query_method_ : str or None
        How neighbours of new points are found by ``predict``: "exact", "kdtree" or "cells"; None for a
        precomputed graph.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of str
        Their names, if ``X`` has some.

    See Also
    --------
    Affinity, HAC : The same with other rounds.
    agglo.scc : The algorithm alone, for a graph.

    Notes
    -----
    Which of the many partitions of a tree is the right one is for the user to say. Where nothing is said,
    ``labels_`` follow the rule ``"persistent"``: as the threshold moves from near to far the number of clusters
    falls, fast where there is no reason to stop and slowly where clusters are apart, and the rule takes the round
    near whose number it stays longest. :func:`agglo.tree.persistence.persistent_round` defines it. It never
    answers with single points or with one cluster for all, unless the tree has nothing else.

    Examples
    --------
    >>> from agglo import SCC
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> clusterer = SCC(metric="euclidean").fit(X)
    >>> clusterer.labels_
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> clusterer.tree_.rounds.after, clusterer.round_
    (array([6, 4, 3, 2, 1]), 4)
    >>> clusterer.tree_.cut(n_clusters=4)
    array([0, 0, 1, 1, 2, 2, 3, 3])
    """

    def __init__(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        metric: str = "cosine",
        n_neighbors: int | Literal["all"] = 25,
        method: str = "auto",
        recall: float = 0.95,
        missing: MissingRule = "mean",
        thresholds: ScheduleName | npt.ArrayLike = "odds",
        n_thresholds: int | None = None,
        linkage: LinkageName | Linkage = "average",
        connect: ConnectName | None = "auto",
        advance: Advance = "every-round",
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        kind: Kind | None = None,
        max_cluster_size: float | None = None,
        random_state: RandomStateLike = 0,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        top: ConnectName | Literal["deprecated"] | None = "deprecated",
    ) -> None:
        super().__init__(
            n_clusters,
            metric=metric,
            n_neighbors=n_neighbors,
            method=method,
            recall=recall,
            missing=missing,
            linkage=linkage,
            connect=connect,
            round=round,
            height=height,
            kind=kind,
            max_cluster_size=max_cluster_size,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            top=top,
        )
        self.thresholds = thresholds
        self.n_thresholds = n_thresholds
        self.advance = advance

    def _run_rounds(
        self, graph: NeighborGraph, X: Any, progress: Progress | None, **constraints: Any
    ) -> Hierarchy:
        return scc(
            graph,
            thresholds=self.thresholds,
            n_thresholds=self.n_thresholds,
            linkage=self.linkage,
            advance=self.advance,
            n_jobs=self.n_jobs,
            X=X,
            connect=self._resolve_connect(),
            **constraints,
            progress=progress,
        )


class Affinity(Clusterer):
    """Clusterer in whose rounds every cluster joins its nearest neighbour, however far that is.

    Parameters and attributes are those of :class:`SCC`, without a schedule. There are few rounds, so that the
    one closest to ``n_clusters`` may be far from it.

    Examples
    --------
    >>> from agglo import Affinity
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> Affinity(metric="euclidean", n_neighbors=3).fit_predict(X)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """

    def _run_rounds(
        self, graph: NeighborGraph, X: Any, progress: Progress | None, **constraints: Any
    ) -> Hierarchy:
        return affinity(
            graph,
            linkage=self.linkage,
            n_jobs=self.n_jobs,
            X=X,
            connect=self._resolve_connect(),
            **constraints,
            progress=progress,
        )


class HAC(Clusterer):
    """Clusterer that merges the two closest clusters, again and again, on the neighbour graph of the points.

    Parameters and attributes are those of :class:`SCC`, without a schedule. Every merge is a round, so that any
    ``n_clusters`` is met that the graph's connected components allow; ``n_neighbors="all"`` gives classical
    hierarchical agglomerative clustering.

    Examples
    --------
    >>> from agglo import HAC
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> HAC(3, metric="euclidean", n_neighbors="all").fit_predict(X)
    array([0, 0, 0, 0, 1, 1, 2, 2])
    """

    def _run_rounds(
        self, graph: NeighborGraph, X: Any, progress: Progress | None, **constraints: Any
    ) -> Hierarchy:
        return hac(
            graph,
            linkage=self.linkage,
            n_jobs=self.n_jobs,
            X=X,
            connect=self._resolve_connect(),
            **constraints,
            progress=progress,
        )
