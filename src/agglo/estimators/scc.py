"""The clusterers SCC, Affinity and HAC, as scikit-learn estimators.

``fit`` runs the stages in order: validate the parameters and the points, build the neighbour graph, run the
rounds, and select the labels from the tree.
"""

from __future__ import annotations

import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from agglo._html import render_facts
from agglo._validation import RandomStateLike, check_choice, check_seed, effective_n_threads
from agglo.estimators.duplicates import (
    expand_duplicates,
    map_constraints,
    separate_constrained_points,
    sum_weights,
)
from agglo.estimators.model_folder import load_model, save_model
from agglo.estimators.partial_fit import add_points, add_weights, extend_duplicates
from agglo.estimators.prediction import PredictionMixin
from agglo.neighbors.dense import DensePoints
from agglo.neighbors.graph import KINDS, Kind, NeighborGraph
from agglo.neighbors.index import QUERY_METHODS, NeighborIndex
from agglo.neighbors.search import (
    METRICS,
    MissingRule,
    check_n_neighbors,
    check_search_options,
    clip_n_neighbors,
    neighbor_graph,
)
from agglo.neighbors.sparse import BINARY_METRICS, SPARSE_METRICS
from agglo.points.points import (
    Ids,
    Points,
    copy_if_shared,
    find_duplicates,
    no_duplicates,
    validate_points,
)
from agglo.progress import Progress, progress_bar
from agglo.rounds.connect import Planner, build_hierarchy, check_round_options
from agglo.rounds.constraints import NO_CONSTRAINTS, Groups, check_constraints, check_weights
from agglo.rounds.linkage import Linkage, LinkageName
from agglo.rounds.schedule import (
    ADVANCES,
    Advance,
    ScheduleName,
    affinity_plan,
    check_schedule,
    hac_plan,
    run_plan,
    scc_plan,
)
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, ConnectName, check_vector_linkage, vector_linkage_kind
from agglo.tree.cut import RoundRule, check_rule
from agglo.tree.default_level import ModularityPath, ResolutionRule, modularity_path

_MAX_POINTS = 2**31
# number_clusters compares clusters of equal weight by their rows, in blocks of 1, 2, 4, ... columns.
_MAX_WIDTH = 256  # maximum number of columns of a block
_MAX_ENTRIES = 1 << 24  # maximum number of entries of a block
_DEFAULT_CUT = {"n_clusters": None, "round": None, "height": None, "resolution": "persistent"}


@dataclass(frozen=True, eq=False)
class FitOptions:
    """Validated parameters of one fit.

    :meth:`from_params` checks the parameters without the data. :meth:`check_data` checks them against the data.
    """

    params: Mapping[str, Any]
    rule: Mapping[str, Any]
    """The rule that selects ``labels_``. Exactly one of n_clusters, round, height and resolution is not None."""
    seed: int

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> FitOptions:
        """Validate ``params``, the result of a clusterer's ``get_params``; return them as ``FitOptions``."""
        given = {"thresholds": "odds", "n_thresholds": None, "advance": ADVANCES[0]} | dict(params)
        if given["top"] != "deprecated":
            given["connect"] = given["top"]
        check_choice("metric", given["metric"], [*METRICS, "precomputed"])
        if given["n_neighbors"] != "all":  # "all" is checked later, because its memory depends on the data
            check_n_neighbors(given["n_neighbors"], _MAX_POINTS)
        check_search_options(given["method"], given["recall"], given["missing"])
        check_round_options(given["linkage"], given["connect"])
        check_choice("advance", given["advance"], ADVANCES)
        check_choice("kind", given["kind"], [None, *KINDS])
        effective_n_threads(given["n_jobs"])
        rule = {name: given[name] for name in _DEFAULT_CUT}
        is_default = all(value is None for value in rule.values())
        options = cls(given, _DEFAULT_CUT if is_default else rule, check_seed(given["random_state"]))
        if given["metric"] in METRICS:
            options._check_thresholds(options.graph_kind(None))
        return options

    def check_data(self, data: Points | NeighborGraph, n_points: int) -> None:
        """Raise if a parameter is invalid for ``data``, which are points or a graph.

        ``n_points`` is the number of points with positive weight.
        """
        kind = self.graph_kind(data)
        if self.rule is not _DEFAULT_CUT:
            check_rule(n_points, **self.rule)
        for name in (self.params["linkage"], self.params["connect"]):
            if isinstance(name, str) and name in VECTOR_LINKAGES:
                check_vector_linkage(name, data.metric, None if isinstance(data, NeighborGraph) else data.X)
        if isinstance(data, NeighborGraph):
            self._check_thresholds(kind)

    def graph_kind(self, data: Any) -> Kind:
        """Return "similarity" or "distance", the kind of the graph of ``data``; raise if ``kind`` differs."""
        metric, kind = self.params["metric"], self.params["kind"]
        if isinstance(data, NeighborGraph):
            known, cause = data.kind, f"the graph is one of kind {data.kind!r}"
        elif metric in METRICS:
            known, cause = METRICS[metric], f"metric={metric!r} gives a graph of kind {METRICS[metric]!r}"
        elif kind is None:
            raise ValueError(
                "metric='precomputed' does not say what the numbers of the matrix mean: pass kind='distance' "
                "(smaller is closer) or kind='similarity' (larger is closer)"
            )
        else:
            known, cause = kind, ""
        if kind not in (None, known):
            raise ValueError(f"kind={kind!r} is wrong, because {cause}: leave kind out")
        return known

    def _check_thresholds(self, kind: Kind) -> None:
        """Raise if the thresholds are invalid for the linkage, on a graph of kind ``kind``."""
        linkage = self.params["linkage"]
        if not isinstance(linkage, str):
            kind = linkage.kind
        elif linkage in VECTOR_LINKAGES:
            kind = vector_linkage_kind(linkage, self.params["metric"])
        check_schedule(self.params["thresholds"], self.params["n_thresholds"], kind)


@dataclass(eq=False, repr=False)
class Clusterer(PredictionMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of SCC, Affinity and HAC. The fields are the parameters; see :class:`agglo.SCC`."""

    n_clusters: SupportsIndex | None = None
    _: KW_ONLY
    metric: str = "cosine"
    n_neighbors: int | Literal["all"] = 25
    method: str = "auto"
    recall: float = 0.95
    missing: MissingRule = "mean"
    linkage: LinkageName | Linkage = "average"
    connect: ConnectName | None = "auto"
    round: SupportsIndex | RoundRule | None = None
    height: SupportsFloat | None = None
    resolution: SupportsFloat | ResolutionRule | None = None
    kind: Kind | None = None
    max_cluster_size: float | None = None
    random_state: RandomStateLike = 0
    n_jobs: int | None = None
    verbose: bool | int = False
    top: ConnectName | Literal["deprecated"] | None = "deprecated"

    def fit(
        self,
        X: Any,
        y: object = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        must_link: Groups | None = None,
        cannot_link: Groups | None = None,
    ) -> Self:
        """Cluster the points ``X``; set ``labels_``, ``tree_`` and ``graph_``.

        If ``fit`` raises an exception, including Ctrl-C, the estimator does not change. The estimator keeps a copy
        of ``X``, so you may change ``X`` afterwards. A file that is mapped read-only is not copied.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features), NeighborGraph or matrix of shape (n_points, n_points)
            The points, as a dense array. The metrics ``cosine``, ``dot``, ``jaccard`` and ``hamming`` also support
            sparse matrices. With ``metric="precomputed"``, ``X`` is a graph, or a sparse or dense matrix. The
            parameter ``kind`` says whether the matrix contains similarities or distances.
        y : object
            Ignored; present for scikit-learn pipelines.
        sample_weight : array-like of shape (n_points,), optional
            The weight of each point; see :func:`agglo.scc`. A point of weight 0 does not influence the clustering.
            ``tree_`` and ``graph_`` contain only the points of positive weight, in the order of ``X``. A point of
            weight 0 gets its label from :meth:`predict`. The label is -1 if it joins no cluster.
            Constraints must not refer to a point of weight 0. A precomputed graph must not contain one.
        must_link, cannot_link : array-like of shape (n_links, 2) or list of groups, optional
            Groups of row numbers. The points of a must-link group are in the same cluster. The points of a
            cannot-link group are in different clusters. See :func:`agglo.scc`.
        """
        if self.top != "deprecated":
            name = type(self).__name__
            warnings.warn(f"top= of {name} is now called connect=: pass connect", FutureWarning, stacklevel=2)
        with self._all_or_nothing() as draft:
            draft._fit(X, sample_weight, must_link, cannot_link)
        return self

    def partial_fit(self, X: Any, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Add the points ``X`` to the fitted points, and cluster all of them.

        The first call is the same as :meth:`fit`. Later calls do not search again for the neighbours of old points
        among old points. A new point replaces a neighbour of an old point if the new point is closer. Then the
        rounds run on the graph of all points. If the search is exact, the result equals a fit of all points. If
        ``partial_fit`` raises an exception, including Ctrl-C, the estimator does not change.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New points with the same features as the fitted points.
        y : object
            Ignored; present for scikit-learn pipelines.
        sample_weight : array-like of shape (n_new,), optional
            The weight of each new point, as in :meth:`fit`.

        Examples
        --------
        >>> from agglo import SCC
        >>> clusterer = SCC(metric="euclidean").partial_fit([[0.0], [1.0], [10.0], [12.0]])
        >>> clusterer.partial_fit([[30.0], [31.0], [42.0], [44.0]]).labels_
        array([0, 0, 0, 0, 1, 1, 1, 1])
        """
        if not hasattr(self, "tree_"):
            return self.fit(X, sample_weight=sample_weight)
        with self._all_or_nothing() as draft:
            draft._add_points(X, sample_weight)
        return self

    def save(self, folder: str | os.PathLike[str], *, points: str | os.PathLike[str] | None = None) -> list[Path]:
        """Write the fitted model to a folder; return the paths of the files. :func:`agglo.load` loads the model.

        Parameters, graph, tree and points are written as JSON, Parquet and NumPy files. If writing fails, no file
        in the folder changes. Loading the files executes no code.

        Parameters
        ----------
        folder : path
            A new folder, an empty folder, or the folder of a saved model. The saved model is replaced.
        points : path, optional
            A .npy file that contains the fitted points. The model then refers to this file, and
            :func:`agglo.load` checks that the file has not changed. By default the points are written to the
            folder.
        """
        check_is_fitted(self)
        return save_model(self, folder, points)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[Self]:
        """Yield a copy of the estimator to fit; if that succeeds, move the attributes back to the estimator.

        If an exception is raised, including Ctrl-C and MemoryError, the estimator does not change.
        """
        draft = object.__new__(type(self))
        draft.__dict__ = self.__dict__.copy()
        yield draft
        self.__dict__ = draft.__dict__

    def _fit(
        self, X: Any, sample_weight: npt.ArrayLike | None, must_link: Groups | None, cannot_link: Groups | None
    ) -> None:
        """Fit this estimator, which is the copy that :meth:`_all_or_nothing` yields."""
        options = FitOptions.from_params(self.get_params(deep=False))
        points = self._validate_fit(X, options)
        constraints, n_points = NO_CONSTRAINTS, points.n_points
        if not (must_link is cannot_link is self.max_cluster_size is sample_weight is None):
            limits = (must_link, cannot_link, self.max_cluster_size)
            constraints = check_constraints(n_points, *limits, sample_weight, allow_zero=True)
        has_weight = np.ones(n_points, bool) if constraints.weights is None else constraints.weights > 0
        options.check_data(points, int(has_weight.sum()))
        for name in ("labels_", "_weighted", "_weightless"):  # attributes of an earlier fit
            self.__dict__.pop(name, None)
        if not has_weight.all():
            points = self._check_weightless(points, int(has_weight.argmin()))
            constraints = constraints.restrict(np.flatnonzero(has_weight), n_points)
            points = self._to_points(self._set_weightless_aside(points.X, has_weight))
        self._constraints, self._seed = constraints, options.seed
        start = time.perf_counter()
        self._duplicates = no_duplicates(points.n_points)
        with self._progress_bar() as progress:
            if isinstance(points, NeighborGraph):
                graph, self._index = points, None
            else:
                if isinstance(self.linkage, str):  # a custom linkage may need every row, even of duplicates
                    self._duplicates = find_duplicates(points.X, self.n_jobs)
                if self._duplicates.n_duplicates:
                    self._duplicates = separate_constrained_points(self._duplicates, constraints)
                    points = points.select(self._duplicates.first)
                graph = self._search(points, progress)
            self._seconds = {"search": time.perf_counter() - start}
            self._fit_from_graph(graph, progress)

    def _search(self, points: Points, progress: Progress | None) -> NeighborGraph:
        """Build and return the neighbour graph of ``points``; set ``_index``, in which ``predict`` searches."""
        graph = neighbor_graph(
            points,
            clip_n_neighbors(self.n_neighbors, points.n_points),
            self.metric,
            self.method,
            self.n_jobs,
            recall=self.recall,
            missing=self.missing,
            random_state=self._seed,
            progress=progress,
        )
        settings = (graph.method, graph.parameters, self.recall, self._seed, graph.cells)
        self._index = NeighborIndex(points.X, self.metric, *settings)
        return graph

    def _fit_from_graph(self, graph: NeighborGraph, progress: Progress | None) -> None:
        """Run the rounds on ``graph``; set ``tree_`` and ``labels_``."""
        start = time.perf_counter()
        self.graph_ = graph
        self.query_method_ = None if self._index is None else QUERY_METHODS[self._index.fit_method]
        constraints = None if self._constraints is NO_CONSTRAINTS else self._constraints
        X = None if self._index is None else self._index.X
        if X is not None and not sp.issparse(X):
            X = Points(X, self.metric)  # Points are validated, so vector linkages do not validate them again
        if self._duplicates.n_duplicates:
            constraints = map_constraints(self._duplicates, self._constraints)
        self.tree_ = self._graph_tree = build_hierarchy(
            partial(run_plan, self.n_jobs, progress),
            self._plan_rounds(graph),
            graph,
            self.linkage,
            X,
            self._resolve_connect(),
            constraints,
        )
        if self._duplicates.n_duplicates:
            self.tree_ = expand_duplicates(self._graph_tree, self._duplicates, self._constraints)
        self._seconds["rounds"] = time.perf_counter() - start
        path = self._select_cut()
        self._set_labels(progress, path)

    def _select_cut(self) -> ModularityPath | None:
        """Set ``round_`` and ``resolution_``; return the modularity path if a resolution selects the labels.

        If ``height`` selects the labels, both attributes are None.
        """
        self.round_ = self.resolution_ = None
        if self.n_clusters is not None or self.round is not None:
            self.round_ = self._select_round(self.n_clusters, self.round)
        elif self.height is None:
            path = self._modularity_path()
            if self.resolution is None or isinstance(self.resolution, str):
                self.resolution_ = path.persistent_resolution()
            else:
                self.resolution_ = float(self.resolution)
            return path
        return None

    def _modularity_path(self) -> ModularityPath:
        """Compute the cuts of ``_graph_tree`` with the largest modularity at each resolution.

        The weight of a leaf is the total weight of the duplicates that the leaf represents.
        """
        weights = self._constraints.weights
        if self._duplicates.n_duplicates:
            weights = sum_weights(self._duplicates, self._constraints)
        return modularity_path(self._graph_tree, self.graph_, sample_weight=weights)

    def _set_labels(self, progress: Progress | None, path: ModularityPath | None = None) -> None:
        """Set ``labels_`` and ``graph_index_`` for all points, including points of weight 0.

        ``path`` is the result of :meth:`_modularity_path`. If it is None, it is computed when needed.
        """
        if self.resolution_ is not None:
            clusters = (path or self._modularity_path()).cut(self.resolution_)[self._duplicates.inverse]
        else:
            clusters = self.tree_.cut(**self._default_rule())
        X = None if self._index is None else self._index.X
        self.labels_ = number_clusters(clusters, self._constraints.weights, X, self._duplicates.inverse)
        self.graph_index_ = self._duplicates.inverse
        if self._weighted is not None:
            self._label_weightless(progress)

    @abstractmethod
    def _plan_rounds(self, graph: NeighborGraph) -> Planner:
        """Return a function that sets the parameters of the rounds on ``graph``; see :func:`build_hierarchy`."""

    def _add_points(self, X: Any, sample_weight: npt.ArrayLike | None) -> None:
        """Add points to this estimator, the copy that :meth:`_all_or_nothing` yields; see :meth:`partial_fit`."""
        if self._index is None:
            raise ValueError(
                "metric='precomputed' has no points that new ones could be compared with: "
                "build the graph of all points, and fit that"
            )
        data = self._validate_new(X)
        has_weight = np.ones(data.shape[0], bool)
        if sample_weight is not None:
            check_weights(len(has_weight), sample_weight, allow_zero=True, allow_all=True)
            has_weight = np.asarray(sample_weight) != 0
            sample_weight = np.asarray(sample_weight)[has_weight]
        data = self._set_weightless_aside(data, has_weight)
        if not data.shape[0]:
            with self._progress_bar() as progress:
                self._set_labels(progress)
            return
        start = time.perf_counter()
        old, new = self._index.convert_queries(data)
        self._constraints = add_weights(
            self._constraints, len(self._duplicates.inverse), new.shape[0], sample_weight
        )
        if isinstance(self.linkage, str):
            matches = old.find_equal(new, effective_n_threads(self.n_jobs))
            self._duplicates, fresh = extend_duplicates(
                self._duplicates, matches, new, self._constraints, self.n_jobs
            )
            new = new[fresh]
        else:
            self._duplicates = no_duplicates(len(self._duplicates.inverse) + new.shape[0])
        n_neighbors = clip_n_neighbors(self.n_neighbors, len(self._duplicates.first))
        with self._progress_bar() as progress:
            graph = self.graph_
            if n_neighbors == "all":
                graph = self._search(self._to_points(old.concatenate(new)), progress)
            elif new.shape[0]:
                self._index, graph = add_points(old, graph, new, n_neighbors, self.missing, self.n_jobs, progress)
            self._seconds = {"search": time.perf_counter() - start}
            self._fit_from_graph(graph, progress)

    def _progress_bar(self) -> AbstractContextManager[Progress | None]:
        """Return a context that shows a progress bar if ``verbose`` is set."""
        return progress_bar(True) if self.verbose else nullcontext()

    def _resolve_connect(self) -> ConnectName | None:
        """Return ``connect``, or the value of its deprecated alias ``top`` if ``top`` is given."""
        return self.connect if self.top == "deprecated" else self.top

    def _validate_fit(self, X: Any, options: FitOptions) -> Points | NeighborGraph:
        """Validate ``X``; return points or a graph. Set ``n_features_in_`` and ``feature_names_in_``."""
        is_precomputed = self.metric == "precomputed"
        if isinstance(X, NeighborGraph):
            if not is_precomputed:
                raise TypeError(
                    f"X is a NeighborGraph, but metric={self.metric!r} asks for points: "
                    "pass metric='precomputed' for a graph"
                )
            if self.missing not in ("mean", None):
                raise ValueError(
                    f"missing={self.missing!r}, but the graph has a value of its own, {X.missing}: leave it "
                    "out, or pass dataclasses.replace(graph, missing=...)"
                )
            self.n_features_in_ = X.n_points
            return X
        is_checked_later = self._compares_numbers() and not sp.issparse(X)  # _to_points checks for NaN, inf
        forms = self._accepted_formats()
        data = validate_points(self, X, accept_sparse=forms, ensure_all_finite=not is_checked_later)
        if not is_precomputed:
            return self._to_points(data, X)
        if data.shape[0] != data.shape[1]:
            raise ValueError(
                f"X has shape {data.shape}, but metric='precomputed' asks for a square matrix, with one row and "
                "one column per point: pass a metric to compare points by"
            )
        about: Any = {"kind": options.graph_kind(None), "n_jobs": self.n_jobs}
        about["missing"] = None if self.missing == "mean" else self.missing
        if sp.issparse(data):
            return NeighborGraph.from_scipy(data, **about)
        columns = np.broadcast_to(np.arange(data.shape[1], dtype=np.int32), data.shape)
        return NeighborGraph.from_neighbors(columns, data, **about)

    def _validate_new(self, X: Any) -> Any:
        """Return new points as an array or CSR matrix of finite numbers with the columns of the fitted points."""
        return validate_points(self, X, reset=False, accept_sparse=self._accepted_formats())

    def _accepted_formats(self) -> Any:
        """Return scikit-learn's ``accept_sparse`` for ``X``: "csr", or whether all sparse formats are accepted."""
        return "csr" if self.metric in SPARSE_METRICS else self.metric == "precomputed"

    def _compares_numbers(self) -> bool:
        """Return whether the metric accepts arbitrary numbers, not only zeros and ones."""
        return self.metric != "precomputed" and self.metric not in BINARY_METRICS

    def _to_points(self, data: Any, source: Any = None) -> Points:
        """Validate ``data``, which was converted from ``source``; copy ``data`` if both share memory.

        Sparse points, and points of zeros and ones, are not validated here: the search validates them.
        """
        if sp.issparse(data) or not self._compares_numbers():
            return Points(data if source is None else copy_if_shared(data, source), self.metric)
        return DensePoints.validate(data, self.metric, source=source)

    def _check_weightless(self, points: Points | NeighborGraph, row: int) -> Points:
        """Return ``points``; raise if a point of weight 0 cannot be labelled. ``row`` is the first such point."""
        if isinstance(points, NeighborGraph):
            cause = "metric='precomputed' compares no points: leave it out of the graph or matrix"
        elif not isinstance(self.linkage, str):
            cause = "a linkage of your own cannot predict labels for such points: leave it out of X"
        else:
            return points
        raise ValueError(f"sample_weight[{row}] is 0, but {cause}")

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram of the parameters and, after ``fit``, a summary of the result."""
        diagram: str = super()._repr_html_inner()
        if not hasattr(self, "labels_"):
            return diagram
        sizes = np.bincount(self.labels_[self.labels_ >= 0])
        largest = f", the largest with {sizes.max():,} points" if len(sizes) else ""
        facts = {"points": f"{len(self.labels_):,}", "clusters": f"{len(sizes):,}{largest}"}
        return diagram + render_facts("Labels", facts) + self.tree_._repr_html_()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the representations for notebooks."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        needs_dense = isinstance(self.linkage, str) and self.linkage in VECTOR_LINKAGES
        tags.input_tags.sparse = tags.input_tags.pairwise or (self.metric in SPARSE_METRICS and not needs_dense)
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class SCC(Clusterer):
    """Clusterer that runs the Sub-Cluster Component algorithm on the neighbour graph of the points.

    Parameters
    ----------
    n_clusters : int, optional
        Select the round whose number of clusters is closest to ``n_clusters``. ``labels_`` are the labels after
        this round. A round may merge many clusters, so possibly no round has exactly this number.
    metric : {"cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming", "precomputed"}, default="cosine"
        The similarity or distance of two points; see :func:`agglo.neighbor_graph`. With ``"precomputed"``, ``X``
        is a :class:`agglo.NeighborGraph`, a SciPy sparse matrix, or a square array. The stored entries of a sparse
        matrix are the edges. A square array is a complete graph.
    n_neighbors : int or "all", default=25
        The number of neighbours of each point, or ``"all"`` for the complete graph. If there are too few points,
        the number is reduced. ``graph_.parameters`` contains the number that was used.
    method : str, default="auto"
        The search method of :func:`agglo.neighbor_graph`. ``"auto"`` searches exactly if that is fast, and
        approximately otherwise. ``graph_.method`` is the method that was used. ``graph_.recall_estimate`` is the
        measured recall of an approximate search.
    recall : float, default=0.95
        The share of the true neighbours that an approximate search must find.
    missing : float, "mean", "ignore" or None, default="mean"
        The similarity or distance of a pair without an edge; see :func:`agglo.neighbor_graph`. With
        ``metric="precomputed"`` the mean is unknown. For a matrix, ``"mean"`` then is the same as None. A graph
        keeps its own value of ``missing``.
    thresholds : {"odds", "geometric", "linear", "doubling"} or array-like, default="odds"
        The name of a schedule, or an array of thresholds from near to far; see :func:`agglo.scc`.
    n_thresholds : int, optional
        The number of thresholds for ``"odds"``, ``"geometric"`` and ``"linear"``. By default, there are
        several tens of thousands for ``"odds"``, and 200 for ``"geometric"`` and ``"linear"``.
    linkage : {"average", "single", "complete", "exact-average", "centroid", "ward"} or Linkage, default="average"
        The similarity or distance of two clusters; see :func:`agglo.scc`.
    connect : {"auto", "exact-average", "centroid", "ward"} or None, default="auto"
        After the rounds on the graph, clusters without edges between them may remain. ``connect`` is the linkage
        that merges such clusters. With None, they are not merged. With ``"auto"`` and ``linkage="average"``,
        Ward's linkage merges them. It also replaces the merges near the root that the graph does not support. See
        :func:`agglo.scc`.
    advance : {"every-round", "until-stable"}, default="every-round"
        When to go to the next threshold. ``"every-round"`` goes on after every round. ``"until-stable"`` goes on
        only after a round that merges nothing.
    round : int, "persistent" or "silhouette", optional
        Select a round by its number, as in :meth:`agglo.Hierarchy.labels`, or by a rule. ``labels_`` are the
        labels after this round. ``"persistent"`` selects the most persistent round; see
        :meth:`agglo.Hierarchy.cut`.
    height : float, optional
        Apply all merges up to this height. ``labels_`` are the resulting clusters.
    resolution : float or "persistent", optional
        Select the nodes of the tree with the largest modularity on the graph at this resolution. ``labels_`` are
        these clusters. A larger resolution gives more clusters. ``"persistent"`` chooses the resolution by the
        rule in the notes. If ``n_clusters``, ``round``, ``height`` and ``resolution`` are None, ``"persistent"``
        is used.
    kind : {"distance", "similarity"}, optional
        Whether a precomputed matrix contains distances or similarities. ``kind`` is required for a precomputed
        matrix. For other data, it must not contradict the metric or the graph.
    max_cluster_size : float, optional
        The maximum number of points in a cluster. With ``sample_weight``, the maximum total weight of a cluster.
    random_state : int, RandomState instance or None, default=0
        The random seed of an approximate search. The same integer gives the same result. With None, each fit draws
        a seed from NumPy's global random state. With a ``RandomState`` instance, each fit draws a seed from it.
    n_jobs : int, optional
        The number of threads. None or -1 uses all cores. The result does not depend on it.
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
        For each point, the index of the graph's point that represents it. It is -1 for points of weight 0.
    round_ : int or None
        ``labels_`` are the clusters after this round. It is None if ``height`` or ``resolution`` selected the
        labels.
    resolution_ : float or None
        ``labels_`` is the cut with the largest modularity at this resolution. If ``"persistent"`` chose the
        resolution, it is the largest resolution that gives these labels. It is None if another rule selected them.
    query_method_ : str or None
        The search method of ``predict``: "exact", "kdtree" or "cells". It is None for a precomputed graph.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns, if ``X`` has names.

    See Also
    --------
    Affinity, HAC : Clusterers that run other algorithms.
    agglo.scc : Build the tree of a given graph.

    Notes
    -----
    A tree contains many partitions. By default, ``labels_`` is the most persistent of the partitions with the
    largest modularity. The modularity is the edge weight inside clusters, minus a resolution times the edge weight
    that chance would give. As the resolution grows, the number of clusters grows quickly where clusters touch,
    and slowly where they are well separated. The selected partition has the number of clusters that survives the
    longest range of resolutions; see
    :meth:`agglo.tree.default_level.ModularityPath.persistent_resolution`. The rule uses only the tree and the
    ratios of edge weights. So it works with all linkages, metrics and precomputed graphs.

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

    thresholds: ScheduleName | npt.ArrayLike = "odds"
    n_thresholds: int | None = None
    advance: Advance = "every-round"

    def _plan_rounds(self, graph: NeighborGraph) -> Planner:
        return lambda rule, weights: scc_plan(
            graph, self.thresholds, self.n_thresholds, rule, self.advance, weights
        )


class Affinity(Clusterer):
    """Clusterer that runs Affinity clustering: in each round every cluster merges with its nearest neighbour.

    Parameters and attributes are the same as in :class:`SCC`, except that there are no thresholds. There are few
    rounds. So the round that ``n_clusters`` selects may have a very different number of clusters.

    Examples
    --------
    >>> from agglo import Affinity
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> Affinity(metric="euclidean", n_neighbors=3).fit_predict(X)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """

    def _plan_rounds(self, graph: NeighborGraph) -> Planner:
        return lambda rule, _: affinity_plan(rule)


class HAC(Clusterer):
    """Clusterer that runs hierarchical agglomerative clustering on the neighbour graph of the points.

    Each round merges the two closest clusters. Parameters and attributes are the same as in :class:`SCC`, except
    that there are no thresholds. Each round reduces the number of clusters by 1. So some round has exactly
    ``n_clusters`` clusters, if ``n_clusters`` is at least the number of connected components of the graph.
    ``n_neighbors="all"`` gives classical HAC.

    Examples
    --------
    >>> from agglo import HAC
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> HAC(3, metric="euclidean", n_neighbors="all").fit_predict(X)
    array([0, 0, 0, 0, 1, 1, 2, 2])
    """

    def _plan_rounds(self, graph: NeighborGraph) -> Planner:
        return lambda rule, _: hac_plan(rule)


def load(folder: str | os.PathLike[str]) -> Clusterer:
    """Load the model that :meth:`agglo.SCC.save` wrote to ``folder``; return the fitted clusterer.

    Loading executes no code from the folder. An error is raised if files are damaged or come from different saves.
    An error is also raised if the model refers to a file of points and that file has changed.

    Examples
    --------
    >>> import agglo
    >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
    >>> files = agglo.SCC(metric="euclidean").fit(X).save("model")
    >>> model = agglo.load("model")
    >>> model
    SCC(metric='euclidean')
    >>> model.predict([[0.4], [41.0]])
    array([0, 1])
    """
    return load_model(folder, {"SCC": SCC, "Affinity": Affinity, "HAC": HAC})


# ---- numbering of the clusters, independent of the order of the points ----


def number_clusters(
    labels: Ids, weights: npt.NDArray[np.float64] | None = None, X: Any = None, rows: Ids | None = None
) -> Ids:
    """Renumber clusters from heaviest to lightest; break ties by the smallest row of ``X`` in each cluster.

    The new numbers do not depend on the order of the points. The clusters in ``labels`` are 0 to k - 1. By
    default, each point has weight 1. ``rows[i]`` is the row of point ``i`` in ``X``, and duplicates may share a
    row. By default, it is ``i``. Rows are compared column by column. Sparse rows are ordered like the equal dense
    rows. Clusters that are still tied keep their order.

    Examples
    --------
    >>> import numpy as np
    >>> from agglo.estimators.scc import number_clusters
    >>> X = np.array([[7.0], [9.0], [1.0], [2.0], [3.0], [8.0]])
    >>> number_clusters(np.array([0, 0, 1, 2, 2, 2]), X=X)
    array([1, 1, 2, 0, 0, 0])
    """
    if weights is None:
        total: npt.NDArray[Any] = np.bincount(labels)
    else:
        order = np.argsort(weights)  # a floating-point sum depends on the order of its terms
        total = np.bincount(labels[order], weights[order])
    rank = _refine(np.zeros(len(total), np.int64), -total)
    if X is not None:
        _order_by_rows(rank, labels, X, rows)
    number = np.empty_like(rank)
    number[np.argsort(rank, kind="stable")] = np.arange(len(rank))
    return number[labels]


def _order_by_rows(rank: Ids, labels: Ids, X: Any, rows: Ids | None) -> None:
    """Break ties in ``rank``, in place, by the smallest row of each tied cluster.

    Rows are compared by blocks of columns. The candidates of a cluster are its smallest rows in the columns that
    were compared so far. If two clusters are still tied, their candidates are equal in these columns.
    Only the candidates of tied clusters are read.
    """
    clusters = np.flatnonzero(np.bincount(rank, minlength=len(rank))[rank] > 1)  # the clusters that are still tied
    position = np.full(len(rank), -1)
    position[clusters] = np.arange(len(clusters))
    points = np.flatnonzero(position[labels] >= 0)
    owner = position[labels[points]]  # for each candidate, the index of its cluster in `clusters`
    candidates = points if rows is None else rows[points]
    clusters, candidates, owner = _drop_settled(rank, clusters, candidates, owner)
    first, width = 0, 1
    while len(clusters) and first < X.shape[1]:
        key = _rank_rows(X, candidates, slice(first, first + width))
        smallest = np.full(len(clusters), len(candidates))
        np.minimum.at(smallest, owner, key)
        kept = key == smallest[owner]
        rank[clusters] = _refine(rank[clusters], smallest)
        clusters, candidates, owner = _drop_settled(rank, clusters, candidates[kept], owner[kept])
        first += width
        width = min(2 * width, _MAX_WIDTH, max(1, _MAX_ENTRIES // max(1, len(candidates))))


def _rank_rows(X: Any, rows: Ids, columns: slice) -> Ids:
    """Return the rank of each of the given rows in a block of columns; equal rows have the same rank."""
    block = sp.csr_array(X)[rows][:, columns].toarray() if sp.issparse(X) else X[rows, columns]
    order = np.lexsort(block.T[::-1])
    is_new = (block[order[1:]] != block[order[:-1]]).any(axis=1)
    rank = np.empty(len(rows), np.int64)
    rank[order] = np.append(0, np.cumsum(is_new))
    return rank


def _drop_settled(rank: Ids, clusters: Ids, candidates: Ids, owner: Ids) -> tuple[Ids, Ids, Ids]:
    """Drop clusters whose rank is final, with their candidates; return the remaining clusters and candidates.

    The rank of a cluster is final if no other cluster has the same rank. It is also final if all candidates of the
    clusters with this rank are the same row.
    """
    _, tie, count = np.unique(rank[clusters], return_inverse=True, return_counts=True)
    own = tie[owner]
    row = np.empty(len(count), np.int64)
    row[own] = candidates  # row[t] is the row of any one candidate in group t of tied clusters
    differ = np.zeros(len(count), bool)
    differ[own[candidates != row[own]]] = True
    open_ = (differ & (count > 1))[tie]
    position = np.cumsum(open_) - 1
    kept = open_[owner]
    return clusters[open_], candidates[kept], position[owner[kept]]


def _refine(rank: Ids, key: npt.NDArray[Any]) -> Ids:
    """Break ties in ``rank`` by ``key``; return the new ranks.

    The rank of an item is the number of items that are ordered before it. Tied items have the same rank.
    """
    order = np.lexsort((key, rank))
    ranks, keys = rank[order], key[order]
    is_first = np.append(True, ranks[1:] != ranks[:-1])
    is_new = is_first | np.append(True, keys[1:] != keys[:-1])
    at = np.arange(len(order))
    before = np.maximum.accumulate(np.where(is_new, at, 0)) - np.maximum.accumulate(np.where(is_first, at, 0))
    refined = np.empty_like(rank)
    refined[order] = ranks + before
    return refined
