"""The clusterers SCC, Affinity and HAC, as scikit-learn estimators."""

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
from agglo.rounds.schedule import Advance, ScheduleName
from agglo.rounds.vector_linkage import ConnectName
from agglo.tree.cut import RoundRule
from agglo.tree.hierarchy import Hierarchy
from agglo.tree.modularity_path import ResolutionRule


class SCC(Clusterer):
    """Clusterer that runs the Sub-Cluster Component algorithm on the neighbour graph of the points.

    Parameters
    ----------
    n_clusters : int, optional
        Select the round whose number of clusters is closest. ``labels_`` are the labels after this round. A round
        may merge many clusters, so no round may have exactly this number.
    metric : {"cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming", "precomputed"}, default="cosine"
        The similarity or distance of two points; see :func:`agglo.neighbor_graph`. With ``"precomputed"``, ``X``
        is a :class:`agglo.NeighborGraph`, a SciPy sparse matrix whose stored entries are the edges, or a square
        array, which is a complete graph.
    n_neighbors : int or "all", default=25
        The number of neighbours of each point, or ``"all"`` for the complete graph. It is reduced if there are too
        few points; ``graph_.parameters`` has the number that was used.
    method : str, default="auto"
        The search method of :func:`agglo.neighbor_graph`. ``"auto"`` searches exactly if that is fast, and
        approximately otherwise. ``graph_.method`` is the method that was used, and ``graph_.recall_estimate`` its
        measured recall.
    recall : float, default=0.95
        The share of the true neighbours that an approximate search must find.
    missing : float, "mean", "ignore" or None, default="mean"
        The similarity or distance of a pair without an edge; see :func:`agglo.neighbor_graph`. With
        ``metric="precomputed"`` the mean is unknown: for a matrix, ``"mean"`` is the same as None, and a graph
        keeps its own value.
    thresholds : {"odds", "geometric", "linear", "doubling"} or array-like, default="odds"
        The schedule of the rounds, from near to far; see :func:`agglo.scc`.
    n_thresholds : int, optional
        The number of thresholds for ``"odds"``, ``"geometric"`` and ``"linear"``. The default is several tens of
        thousands for ``"odds"`` and 200 for the others.
    linkage : {"average", "single", "complete", "exact-average", "centroid", "ward"} or Linkage, default="average"
        The similarity or distance of two clusters; see :func:`agglo.scc`.
    connect : {"auto", "exact-average", "centroid", "ward"} or None, default="auto"
        After the rounds on the graph, clusters without edges between them may remain. ``connect`` is the linkage
        that merges them. With None, they are not merged. With ``"auto"`` and ``linkage="average"``, Ward's linkage
        merges them, and it also replaces the coarse merges that the graph does not support; see
        :func:`agglo.scc`.
    advance : {"every-round", "until-stable"}, default="every-round"
        When to go to the next threshold: after every round, or only after a round that merges nothing.
    round : int, "persistent" or "silhouette", optional
        Select a round by its number, as in :meth:`agglo.Hierarchy.labels`, or by a rule. ``labels_`` are the
        labels after this round. ``"persistent"`` selects the most persistent round; see
        :meth:`agglo.Hierarchy.cut`.
    height : float, optional
        Apply all merges up to this height. ``labels_`` are the resulting clusters.
    resolution : float or "persistent", optional
        Select the nodes of the tree with the largest modularity on the graph at this resolution. ``labels_`` are
        these clusters. The larger the resolution, the more clusters. ``"persistent"`` selects the resolution, see
        the notes. It is the default if ``n_clusters``, ``round``, ``height`` and ``resolution`` are None.
    kind : {"distance", "similarity"}, optional
        Whether a precomputed matrix has distances or similarities. It is required for such a matrix, and not
        allowed otherwise.
    max_cluster_size : float, optional
        The maximum number of points in a cluster. With weights, the maximum total weight; see :func:`agglo.scc`.
    random_state : int, RandomState instance or None, default=0
        The random seed of an approximate search. The same integer gives the same result. With None, each fit draws
        a seed from NumPy's global random state. With a ``RandomState`` instance, each fit draws a seed from it.
    n_jobs : int, optional
        The number of threads; None or -1 for all cores. The result does not depend on it.
    verbose : bool, default=False
        Show a progress bar on the terminal.
    top : deprecated
        The former name of ``connect``.

    Attributes
    ----------
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point. Clusters are numbered by falling total weight, or by falling size if there are
        no weights. Ties are broken by the smallest row of ``X`` in each cluster; rows are compared column by
        column. So the numbers do not depend on the order of the points. Clusters that are still tied are numbered
        in order of first appearance. This happens for precomputed graphs, and for duplicates that constraints
        separate. Every point of positive weight has a cluster.
    tree_ : Hierarchy
        The tree. ``tree_.cut(n_clusters=10)`` selects another cut without a second fit. Cuts number their clusters
        in order of first appearance.
    graph_ : NeighborGraph
        The neighbour graph. Duplicates are one point of the graph.
    graph_index_ : ndarray of int64 of shape (n_points,)
        The point of the graph that represents each point; -1 for points of weight 0.
    round_ : int or None
        The round that ``labels_`` are from; None if ``height`` or ``resolution`` selected them.
    resolution_ : float or None
        The largest resolution at which ``labels_`` are the cut with the largest modularity; None if another rule
        selected them.
    query_method_ : str or None
        The search method of ``predict``: "exact", "kdtree" or "cells"; None for a precomputed graph.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns, if ``X`` has names.

    See Also
    --------
    Affinity, HAC : Clusterers with other rounds.
    agglo.scc : The algorithm alone, for a graph.

    Notes
    -----
    A tree contains many partitions. By default, ``labels_`` is the most persistent of the partitions with the
    largest modularity. The modularity compares the edge weight inside clusters with the weight that chance would
    give, times a resolution. As the resolution grows, the number of clusters grows quickly where clusters touch,
    and slowly where they are well separated. The selected partition has the number of clusters that survives the
    longest range of resolutions; see
    :meth:`agglo.tree.modularity_path.ModularityPath.persistent_resolution`. Only the tree and the ratios of edge
    weights matter, so the rule suits all linkages, metrics and precomputed graphs.

    Examples
    --------
    >>> from agglo import SCC
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> clusterer = SCC(metric="euclidean").fit(X)
    >>> clusterer.labels_
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> clusterer.tree_.rounds.after, round(clusterer.resolution_, 3)
    (array([6, 4, 3, 2, 1]), 1.654)
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
        resolution: SupportsFloat | ResolutionRule | None = None,
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
            resolution=resolution,
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
    """Clusterer that runs Affinity clustering: in each round every cluster merges with its nearest neighbour.

    Parameters and attributes are the same as in :class:`SCC`, except that there are no thresholds. There are few
    rounds, so the closest number of clusters may be far from ``n_clusters``.

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
    """Clusterer that runs hierarchical agglomerative clustering on the neighbour graph of the points.

    Each round merges the two closest clusters. Parameters and attributes are the same as in :class:`SCC`, except
    that there are no thresholds. For every ``n_clusters`` down to the number of connected components of the graph,
    there is a round. ``n_neighbors="all"`` gives classical HAC.

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
