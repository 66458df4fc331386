"""The stages in order, behind scikit-learn's conventions: points in, labels and tree out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, Self, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from agglo.constraints import Groups, check_constraints
from agglo.cut import RoundRule, check_rule
from agglo.folding import folding, unfoldable, unfolded
from agglo.graph import KINDS, Kind, NeighborGraph
from agglo.linkage import Linkage, LinkageName, check_linkage
from agglo.model import Model
from agglo.neighbors import METRICS, neighbor_graph
from agglo.progress import Progress, progress_bar
from agglo.rounds import Advance, affinity, hac, scc
from agglo.schedule import ScheduleName
from agglo.search.checks import most_neighbors
from agglo.search.features import SPARSE
from agglo.search.missing import MissingRule, check_missing
from agglo.tree import Hierarchy
from agglo.vectors import TopName


class _Clusterer(Model, ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """What the clusterers share: all but which rounds to run. Their parameters are documented at :class:`SCC`."""

    n_features_in_: int

    def __init__(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        metric: str = "cosine",
        n_neighbors: int | Literal["all"] = 25,
        method: str = "auto",
        recall: float = 0.95,
        missing: MissingRule = "mean",
        linkage: LinkageName | Linkage = "average",
        top: TopName | None = "auto",
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        kind: Kind | None = None,
        max_cluster_size: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.method = method
        self.recall = recall
        self.missing = missing
        self.linkage = linkage
        self.top = top
        self.round = round
        self.height = height
        self.kind = kind
        self.max_cluster_size = max_cluster_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: object = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        must_link: Groups | None = None,
        cannot_link: Groups | None = None,
    ) -> Self:
        """The estimator with ``labels_``, ``tree_`` and ``graph_`` of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features), NeighborGraph or matrix of shape (n_points, n_points)
            The points, dense or, for ``cosine``, ``dot``, ``jaccard`` and ``hamming``, also sparse; with
            ``metric="precomputed"`` a graph, or a sparse or dense matrix of ``kind``.
        y : object
            Not used; for pipelines.
        sample_weight : array-like of shape (n_points,), optional
            What each point counts as, a positive number; see :func:`agglo.scc`.
        must_link, cannot_link : array-like of shape (n_links, 2) or list of groups, optional
            Points that belong together, and points that do not, by their rows; see :func:`agglo.scc`.
        """
        given = self._validated(X)
        n_points = given.n_points if isinstance(given, NeighborGraph) else given.shape[0]
        rule = self._rule()
        # What can be wrong is found before the search, which may take long: two points try out the rounds.
        check_rule(n_points, **rule)
        check_missing(self.missing)
        pair = NeighborGraph.from_edges([0], [1], [1.0], kind=self._kind(given), metric=self.metric)
        points = None if self.metric == "precomputed" else given
        if isinstance(self.linkage, str):
            self._rounds(pair, None if points is None else points[[0, 0]], None)
        else:
            check_linkage(self.linkage)  # which may be one of these points alone
        self._known = check_constraints(n_points, must_link, cannot_link, self.max_cluster_size, sample_weight)
        self._folding = unfoldable(n_points)
        if points is not None and isinstance(self.linkage, str):
            # A linkage of one's own may know the points by their rows, so that none can be left out.
            self._folding = folding(points, self._known, self.n_jobs)
            given = points = self._folding.rows(points)
        with progress_bar(bool(self.verbose)) as progress:
            graph = self._graph(given, progress)
            self._keep(points, graph)
            return self._finish(graph, points, progress)

    def _finish(self, graph: NeighborGraph, X: Any, progress: Progress | None) -> Self:
        self.graph_, self.graph_index_, rule = graph, self._folding.place, self._rule()
        self._tree = self._rounds(graph, X, progress, **self._folding.constraints(self._known))
        self.tree_ = unfolded(self._tree, self._folding, self._known)
        self.round_ = None
        if self.height is None:
            self.round_ = self._round(rule["n_clusters"], rule["round"])
        self.labels_ = self.tree_.cut(round=self.round_, height=self.height)
        return self

    @abstractmethod
    def _rounds(self, graph: NeighborGraph, X: Any, progress: Progress | None, **known: Any) -> Hierarchy:
        """The tree that the clusterer makes of a graph, and of the points if there are any."""

    def _rule(self) -> dict[str, Any]:
        rule = {"n_clusters": self.n_clusters, "round": self.round, "height": self.height}
        if all(value is None for value in rule.values()):
            rule["round"] = "persistent"
        return rule

    def _validated(self, X: Any, *, reset: bool = True) -> Any:
        """``X`` as a graph or an array of finite numbers, its columns counted and their names noted."""
        precomputed = self.metric == "precomputed"
        if not precomputed and self.metric not in METRICS:
            names = ", ".join(map(repr, [*METRICS, "precomputed"]))
            raise ValueError(f"metric={self.metric!r} is unknown: pass one of {names}")
        if isinstance(X, NeighborGraph) and reset:
            if not precomputed:
                raise TypeError(
                    f"X is a NeighborGraph, but metric={self.metric!r} asks for points: "
                    "pass metric='precomputed' for a graph"
                )
            self.n_features_in_ = X.n_points
            return X
        forms = "csr" if self.metric in SPARSE else precomputed
        checked = validate_data(self, X, reset=reset, accept_sparse=forms)
        if precomputed and reset and checked.shape[0] != checked.shape[1]:
            raise ValueError(
                f"X has shape {checked.shape}, but metric='precomputed' asks for a square matrix, a row and a "
                "column a point: pass a metric to compare points by"
            )
        return checked

    def _kind(self, given: Any) -> Kind:
        """The kind of the graph that is to be clustered; an error where it is unknown or contradicted."""
        if self.kind not in (None, *KINDS):
            raise ValueError(f"kind={self.kind!r} is unknown: pass 'similarity' or 'distance'")
        known: Kind
        if isinstance(given, NeighborGraph):
            known, what = given.kind, f"the graph is one of kind {given.kind!r}"
        elif self.metric in METRICS:
            known = METRICS[self.metric]
            what = f"metric={self.metric!r} gives a graph of kind {known!r}"
        elif self.kind is not None:
            return self.kind
        else:
            raise ValueError(
                "metric='precomputed' does not say what the numbers of the matrix mean: pass kind='distance' "
                "(smaller is closer) or kind='similarity' (larger is closer)"
            )
        if self.kind not in (None, known):
            raise ValueError(f"kind={self.kind!r} is wrong, because {what}: leave kind out")
        return known

    def _graph(self, given: Any, progress: Progress | None) -> NeighborGraph:
        """The neighbour graph of what was given."""
        if isinstance(given, NeighborGraph):
            if self.missing not in ("mean", None):
                raise ValueError(
                    f"missing={self.missing!r}, but the graph has a value of its own, {given.missing}: leave it "
                    "out, or pass dataclasses.replace(graph, missing=...)"
                )
            return given
        n_points = given.shape[0]
        if self.metric != "precomputed":
            return neighbor_graph(
                *(given, most_neighbors(self.n_neighbors, n_points), self.metric, self.method, self.n_jobs),
                recall=self.recall,
                missing=self.missing,
                random_state=self.random_state,
                progress=progress,
            )
        about: Any = {"kind": self._kind(given), "missing": None if self.missing == "mean" else self.missing}
        if sp.issparse(given):
            return NeighborGraph.from_scipy(given, **about, n_jobs=self.n_jobs)
        everyone = np.broadcast_to(np.arange(n_points, dtype=np.int32), given.shape)
        return NeighborGraph.from_neighbors(everyone, given, **about, n_jobs=self.n_jobs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = tags.input_tags.pairwise or self.metric in SPARSE
        return tags


class SCC(_Clusterer):
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
    top : {"auto", "exact-average", "centroid", "ward"} or None, default="auto"
        How to merge the clusters that are left when the neighbour graph has no more edges between them.
        ``"auto"``: for linkages on the graph of dense points by ``"exact-average"``, or ``"centroid"`` if the
        metric is ``euclidean``. None, and ``"auto"`` in all other cases: they stay apart. ``labels_`` by the rule
        ``"persistent"`` are of rounds on the graph in any case.
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
    random_state : int, default=0
        Where chance begins in a search for nearly all neighbours.
    n_jobs : int, optional
        Threads; None or -1 for all cores. The result does not depend on it.
    verbose : bool, default=False
        Show a progress bar on the terminal.

    Attributes
    ----------
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point, 0, 1, ... in order of first appearance. No point is left out as noise.
    tree_ : Hierarchy
        The tree, for any other cut: ``tree_.cut(n_clusters=10)`` needs no second fit.
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
    near whose number it stays longest. :func:`agglo.cut.persistent_round` defines it. It never answers with
    single points or with one cluster for all, unless the tree has nothing else.

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
        top: TopName | None = "auto",
        advance: Advance = "every-round",
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        kind: Kind | None = None,
        max_cluster_size: float | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            n_clusters,
            metric=metric,
            n_neighbors=n_neighbors,
            method=method,
            recall=recall,
            missing=missing,
            linkage=linkage,
            top=top,
            round=round,
            height=height,
            kind=kind,
            max_cluster_size=max_cluster_size,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.thresholds = thresholds
        self.n_thresholds = n_thresholds
        self.advance = advance

    def _rounds(self, graph: NeighborGraph, X: Any, progress: Progress | None, **known: Any) -> Hierarchy:
        return scc(
            graph,
            self.thresholds,
            self.n_thresholds,
            self.linkage,
            self.advance,
            self.n_jobs,
            X=X,
            top=self.top,
            **known,
            progress=progress,
        )


class Affinity(_Clusterer):
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

    def _rounds(self, graph: NeighborGraph, X: Any, progress: Progress | None, **known: Any) -> Hierarchy:
        return affinity(graph, self.linkage, self.n_jobs, X=X, top=self.top, **known, progress=progress)


class HAC(_Clusterer):
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

    def _rounds(self, graph: NeighborGraph, X: Any, progress: Progress | None, **known: Any) -> Hierarchy:
        return hac(graph, self.linkage, self.n_jobs, X=X, top=self.top, **known, progress=progress)
