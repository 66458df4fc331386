"""What the clusterers share: from what is given to the labels, whichever rounds make the tree."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Literal, Self, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin

from agglo._validation import RandomStateLike, check_seed
from agglo.estimators.duplicates import collapse_duplicates, expand_duplicates, map_constraints
from agglo.estimators.prediction import Model
from agglo.neighbors.graph import KINDS, Kind, NeighborGraph
from agglo.neighbors.missing import MissingRule, check_missing
from agglo.neighbors.search import METRICS, neighbor_graph
from agglo.neighbors.sparse import SPARSE_METRICS
from agglo.neighbors.validation import clip_n_neighbors
from agglo.points.dedup import copy_if_shared, no_duplicates
from agglo.points.validation import validate_points
from agglo.progress import Progress, progress_bar
from agglo.rounds.constraints import Groups, check_constraints
from agglo.rounds.linkage import Linkage, LinkageName, check_linkage
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, ConnectName
from agglo.tree.cut import RoundRule, check_rule
from agglo.tree.hierarchy import Hierarchy


class Clusterer(Model, ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """What the clusterers share: all but which rounds to run. Parameters are documented at :class:`agglo.SCC`."""

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
        connect: ConnectName | None = "auto",
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        kind: Kind | None = None,
        max_cluster_size: float | None = None,
        random_state: RandomStateLike = 0,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        top: ConnectName | Literal["deprecated"] | None = "deprecated",
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.method = method
        self.recall = recall
        self.missing = missing
        self.linkage = linkage
        self.connect = connect
        self.round = round
        self.height = height
        self.kind = kind
        self.max_cluster_size = max_cluster_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.top = top

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

        If an exception is raised, Ctrl-C included, the estimator stays as it was. ``X`` may be changed afterwards:
        points that can be written are copied. A file that is mapped read-only is not.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features), NeighborGraph or matrix of shape (n_points, n_points)
            The points, dense or, for ``cosine``, ``dot``, ``jaccard`` and ``hamming``, also sparse; with
            ``metric="precomputed"`` a graph, or a sparse or dense matrix of ``kind``.
        y : object
            Not used; for pipelines.
        sample_weight : array-like of shape (n_points,), optional
            What each point counts as; see :func:`agglo.scc`. A point of weight 0 has no part in the clustering:
            ``tree_`` and ``graph_`` are of the other points, in their order. Its label is that of :meth:`predict`,
            -1 if no cluster is close enough. Constraints must not name it, and a graph must not have it.
        must_link, cannot_link : array-like of shape (n_links, 2) or list of groups, optional
            Points that belong together, and points that do not, by their rows; see :func:`agglo.scc`.
        """
        if self.top != "deprecated":
            name = type(self).__name__
            warnings.warn(f"top= of {name} is now called connect=: pass connect", FutureWarning, stacklevel=2)
        with self._all_or_nothing() as draft:
            draft._fit(X, sample_weight, must_link, cannot_link)
        return self

    def _fit(
        self, X: Any, sample_weight: npt.ArrayLike | None, must_link: Groups | None, cannot_link: Groups | None
    ) -> None:
        """Do the work of :meth:`fit` on a draft."""
        given = self._validated(X)
        n_points = given.n_points if isinstance(given, NeighborGraph) else given.shape[0]
        rule, self._seed = self._rule(), check_seed(self.random_state)
        constraints = (must_link, cannot_link, self.max_cluster_size, sample_weight)
        self._known = check_constraints(n_points, *constraints, allow_zero=True)
        weights = self._known.weights
        counted = np.ones(n_points, bool) if weights is None else weights > 0
        # What can be wrong is found before the search, which may take long: two points try out the rounds.
        check_rule(int(counted.sum()), **rule)
        check_missing(self.missing)
        pair = NeighborGraph.from_edges([0], [1], [1.0], kind=self._kind(given), metric=self.metric)
        points = None if self.metric == "precomputed" else given
        if isinstance(self.linkage, str):
            self._rounds(pair, None if points is None else points[[0, 0]], None)
        else:
            check_linkage(self.linkage)  # which may be one of these points alone
        for name in ("labels_", "_counted", "_uncounted"):
            self.__dict__.pop(name, None)
        if not counted.all():
            self._check_uncounted(int(counted.argmin()))
            self._known = self._known.restrict(np.flatnonzero(counted), n_points)
            given = points = self._set_aside(given, counted)
        self._duplicates = no_duplicates(len(counted) if points is None else points.shape[0])
        if points is not None and isinstance(self.linkage, str):
            # A linkage of one's own may know the points by their rows, so that none can be left out.
            self._duplicates = collapse_duplicates(points, self._known, self.n_jobs)
            given = points = self._duplicates.select_first(points)
        with progress_bar(bool(self.verbose)) as progress:
            graph = self._graph(given, progress)
            if points is not None:
                points = copy_if_shared(points, X)
            self._keep(points, graph)
            self._finish(graph, points, progress)

    def _finish(self, graph: NeighborGraph, X: Any, progress: Progress | None) -> None:
        self.graph_, rule = graph, self._rule()
        self._tree = self._rounds(graph, X, progress, **map_constraints(self._duplicates, self._known))
        self.tree_ = expand_duplicates(self._tree, self._duplicates, self._known)
        self.round_ = None
        if self.height is None:
            self.round_ = self._round(rule["n_clusters"], rule["round"])
        self._label(progress)

    def _check_uncounted(self, point: int) -> None:
        """Raise if a point of weight 0 cannot be labelled."""
        cause = ""
        if self.metric == "precomputed":
            cause = "metric='precomputed' compares no points: leave it out of the graph or matrix"
        elif not isinstance(self.linkage, str):
            cause = "a linkage of your own cannot predict labels for such points: leave it out of X"
        if cause:
            raise ValueError(f"sample_weight[{point}] is 0, but {cause}")

    @abstractmethod
    def _rounds(self, graph: NeighborGraph, X: Any, progress: Progress | None, **known: Any) -> Hierarchy:
        """The tree that the clusterer makes of a graph, and of the points if there are any."""

    def _connect(self) -> ConnectName | None:
        """Return ``connect``, or the value of its deprecated alias ``top`` if that is given."""
        return self.connect if self.top == "deprecated" else self.top

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
        forms = "csr" if self.metric in SPARSE_METRICS else precomputed
        checked = validate_points(self, X, reset=reset, accept_sparse=forms)
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
                *(given, clip_n_neighbors(self.n_neighbors, n_points), self.metric, self.method, self.n_jobs),
                recall=self.recall,
                missing=self.missing,
                random_state=self._seed,
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
        means = isinstance(self.linkage, str) and self.linkage in VECTOR_LINKAGES  # of sparse points, are dense
        tags.input_tags.sparse = tags.input_tags.pairwise or (self.metric in SPARSE_METRICS and not means)
        return tags
