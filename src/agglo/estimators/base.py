"""Base class of the clusterers: validate, search for neighbours, run the rounds, select the labels."""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from agglo._html import render_facts
from agglo._validation import RandomStateLike, effective_n_threads
from agglo.estimators.duplicates import (
    collapse_duplicates,
    expand_duplicates,
    extend_duplicates,
    map_constraints,
)
from agglo.estimators.model_folder import ModelState, save_model
from agglo.estimators.options import FitOptions, cut_rule
from agglo.estimators.prediction import PredictionMixin
from agglo.neighbors.dense import DensePoints
from agglo.neighbors.graph import Kind, NeighborGraph
from agglo.neighbors.missing import MissingRule
from agglo.neighbors.search import neighbor_graph
from agglo.neighbors.sparse import BINARY_METRICS, SPARSE_METRICS
from agglo.neighbors.update import add_points
from agglo.neighbors.validation import clip_n_neighbors
from agglo.points.duplicates import copy_if_shared, no_duplicates
from agglo.points.validation import Points, check_points, validate_points
from agglo.progress import Progress, progress_bar
from agglo.rounds.constraints import Constraints, Groups, check_constraints, check_weights
from agglo.rounds.linkage import Linkage, LinkageName
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, ConnectName
from agglo.tree.cut import RoundRule
from agglo.tree.hierarchy import Hierarchy
from agglo.tree.modularity_path import ResolutionRule


class Clusterer(PredictionMixin, ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of SCC, Affinity and HAC. See :class:`agglo.SCC` for the parameters."""

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    _constraints: Constraints  # on the points of positive weight
    _seconds: dict[str, float]  # duration of each phase of the last fit

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
        resolution: SupportsFloat | ResolutionRule | None = None,
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
        self.resolution = resolution
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
        """Cluster ``X``; set ``labels_``, ``tree_`` and ``graph_``.

        If ``fit`` raises an exception, including Ctrl-C, the estimator does not change. The estimator keeps a copy
        of ``X``, so you may change ``X`` afterwards. Only a file that is mapped read-only is not copied.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features), NeighborGraph or matrix of shape (n_points, n_points)
            The points: dense, or sparse for ``cosine``, ``dot``, ``jaccard`` and ``hamming``. With
            ``metric="precomputed"``, a graph, or a sparse or dense matrix of similarities or distances (``kind``).
        y : object
            Ignored; present for scikit-learn pipelines.
        sample_weight : array-like of shape (n_points,), optional
            The weight of each point; see :func:`agglo.scc`. A point of weight 0 does not influence the clustering.
            It is not in ``tree_`` and ``graph_``, which contain the other points in their order. :meth:`predict`
            assigns its label, which is -1 if no cluster is close enough. Constraints must not
            refer to such a point, and a precomputed graph must not contain it.
        must_link, cannot_link : array-like of shape (n_links, 2) or list of groups, optional
            Groups of row numbers: points that must be in the same cluster, and points that must be in different
            clusters; see :func:`agglo.scc`.
        """
        if self.top != "deprecated":
            name = type(self).__name__
            warnings.warn(f"top= of {name} is now called connect=: pass connect", FutureWarning, stacklevel=2)
        with self._all_or_nothing() as draft:
            draft._fit(X, sample_weight, must_link, cannot_link)
        return self

    def partial_fit(self, X: Any, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Add the points ``X`` to the fitted points, and cluster all of them.

        The first call is the same as :meth:`fit`. Later calls search only for the neighbours of the new points.
        New points replace farther neighbours of old points. Then the rounds run on the graph of all points. If the
        search is exact, the result equals a fit of all points. If ``partial_fit`` raises an exception, including
        Ctrl-C, the estimator does not change.

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
        """Write the fitted model to a folder, for :func:`agglo.load`; return the paths of the files.

        Parameters, graph, tree and points are written as JSON, Parquet and NumPy files. If writing fails, no file
        changes. Loading them executes no code.

        Parameters
        ----------
        folder : path
            A new or empty folder, or the folder of a saved model, which is replaced.
        points : path, optional
            A .npy file that contains the fitted points. The model then refers to this file, and
            :func:`agglo.load` checks that the file has not changed. By default the points are written to the
            folder.
        """
        check_is_fitted(self)
        return save_model(self._get_state(), folder, points)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[Self]:
        """Yield a draft, a copy of the estimator; on success, the estimator takes over the draft's state.

        If an exception is raised, such as Ctrl-C or MemoryError, the estimator does not change.
        """
        draft = object.__new__(type(self))
        draft.__dict__ = self.__dict__.copy()
        yield draft
        self.__dict__ = draft.__dict__

    def _fit(
        self, X: Any, sample_weight: npt.ArrayLike | None, must_link: Groups | None, cannot_link: Groups | None
    ) -> None:
        """Fit this estimator, a draft of :meth:`_all_or_nothing`."""
        options = FitOptions.from_params(self.get_params(deep=False))
        data = self._validate(X)
        n_points = data.n_points if isinstance(data, NeighborGraph) else data.shape[0]
        constraints = check_constraints(
            n_points, must_link, cannot_link, self.max_cluster_size, sample_weight, allow_zero=True
        )
        has_weight = np.ones(n_points, bool) if constraints.weights is None else constraints.weights > 0
        options.check_data(data, int(has_weight.sum()))
        for name in ("labels_", "_weighted", "_weightless"):  # attributes of an earlier fit
            self.__dict__.pop(name, None)
        if not has_weight.all():
            self._check_weightless(int(has_weight.argmin()))
            constraints = constraints.restrict(np.flatnonzero(has_weight), n_points)
            data = self._set_weightless_aside(data, has_weight)
        self._constraints, self._seed = constraints, options.seed
        start = time.perf_counter()
        self._duplicates = no_duplicates(int(has_weight.sum()))
        if self.metric != "precomputed" and isinstance(self.linkage, str):
            # A custom linkage may identify points by their rows, so duplicates are not collapsed.
            self._duplicates = collapse_duplicates(data, constraints, self.n_jobs)
            data = self._duplicates.select_first(data)
        # After points of weight 0 are removed, the scale may be too small for the metric: check again.
        is_valid = isinstance(data, np.ndarray) and self._compares_numbers() and has_weight.all()
        with progress_bar(bool(self.verbose)) as progress:
            graph = self._build_graph(DensePoints(data, self.metric) if is_valid else data, options, progress)
            self._seconds = {"search": time.perf_counter() - start}
            points: Any = None if self.metric == "precomputed" else copy_if_shared(data, X)
            self._build_index(DensePoints(points, self.metric) if is_valid else points, graph)
            self._fit_from_graph(graph, points, progress)

    def _fit_from_graph(self, graph: NeighborGraph, X: Any, progress: Progress | None) -> None:
        """Run the rounds on ``graph``; set ``tree_`` and ``labels_``."""
        start = time.perf_counter()
        self.graph_ = graph
        self._graph_tree = self._run_rounds(
            graph, X, progress, **map_constraints(self._duplicates, self._constraints)
        )
        self.tree_ = expand_duplicates(self._graph_tree, self._duplicates, self._constraints)
        self._seconds["rounds"] = time.perf_counter() - start
        path = self._select_cut(**cut_rule(self.n_clusters, self.round, self.height, self.resolution))
        self._set_labels(progress, path)

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

    def _add_points(self, X: Any, sample_weight: npt.ArrayLike | None) -> None:
        """Add points to this estimator, a draft of :meth:`_all_or_nothing`; see :meth:`partial_fit`."""
        if self._index is None:
            raise ValueError(
                "metric='precomputed' has no points that new ones could be compared with: "
                "build the graph of all points, and fit that"
            )
        data = self._validate(X, reset=False)
        has_weight = np.ones(data.shape[0], bool)
        if sample_weight is not None:
            check_weights(len(has_weight), sample_weight, allow_zero=True, allow_all=True)
            has_weight = np.asarray(sample_weight) != 0
            sample_weight = np.asarray(sample_weight)[has_weight]
        data = self._set_weightless_aside(data, has_weight)
        if not data.shape[0]:
            with progress_bar(bool(self.verbose)) as progress:
                self._set_labels(progress)
            return
        start = time.perf_counter()
        old, new = self._index.convert_queries(data)
        constraints = _add_weights(self._constraints, len(self._duplicates.inverse), new.shape[0], sample_weight)
        duplicates, fresh = self._duplicates, np.arange(new.shape[0])
        if isinstance(self.linkage, str):
            matches = old.find_equal(new, effective_n_threads(self.n_jobs))
            duplicates, fresh = extend_duplicates(duplicates, matches, new, constraints, self.n_jobs)
        else:
            duplicates = no_duplicates(len(duplicates.inverse) + new.shape[0])
        n_neighbors = clip_n_neighbors(self.n_neighbors, len(duplicates.first))
        with progress_bar(bool(self.verbose)) as progress:
            graph = self.graph_
            if n_neighbors == "all":
                both = old.concatenate(new[fresh])
                graph = neighbor_graph(
                    both,
                    "all",
                    self.metric,
                    n_jobs=self.n_jobs,
                    missing=self.missing,
                    random_state=self._seed,
                    progress=progress,
                )
                self._build_index(both, graph)
            elif len(fresh):
                self._index, graph = add_points(
                    old, graph, new[fresh], n_neighbors, self.missing, self.n_jobs, progress
                )
            self._seconds = {"search": time.perf_counter() - start}
            self._duplicates, self._constraints = duplicates, constraints
            self._fit_from_graph(graph, self._index.X, progress)

    def _check_weightless(self, point: int) -> None:
        """Raise if the points of weight 0 cannot be labelled; the error names ``point``."""
        cause = ""
        if self.metric == "precomputed":
            cause = "metric='precomputed' compares no points: leave it out of the graph or matrix"
        elif not isinstance(self.linkage, str):
            cause = "a linkage of your own cannot predict labels for such points: leave it out of X"
        if cause:
            raise ValueError(f"sample_weight[{point}] is 0, but {cause}")

    @abstractmethod
    def _run_rounds(
        self, graph: NeighborGraph, X: Any, progress: Progress | None, **constraints: Any
    ) -> Hierarchy:
        """Run the rounds on ``graph`` and return the tree; ``X`` is None if the graph is precomputed."""

    def _resolve_connect(self) -> ConnectName | None:
        """Return ``connect``, or the value of its deprecated alias ``top`` if ``top`` is given."""
        return self.connect if self.top == "deprecated" else self.top

    def _validate(self, X: Any, *, reset: bool = True) -> Any:
        """Return ``X`` as a graph or an array of finite numbers; set the number and names of its columns."""
        precomputed = self.metric == "precomputed"
        if isinstance(X, NeighborGraph) and reset:
            if not precomputed:
                raise TypeError(
                    f"X is a NeighborGraph, but metric={self.metric!r} asks for points: "
                    "pass metric='precomputed' for a graph"
                )
            self.n_features_in_ = X.n_points
            return X
        forms = "csr" if self.metric in SPARSE_METRICS else precomputed
        if reset and self._compares_numbers() and not sp.issparse(X):
            # check_points below checks all numbers.
            data = validate_points(self, X, accept_sparse=forms, ensure_all_finite=False)
            return data if sp.issparse(data) else self._check_numbers(data)
        data = validate_points(self, X, reset=reset, accept_sparse=forms)
        if precomputed and reset and data.shape[0] != data.shape[1]:
            raise ValueError(
                f"X has shape {data.shape}, but metric='precomputed' asks for a square matrix, with one row and "
                "one column per point: pass a metric to compare points by"
            )
        return data

    def _compares_numbers(self) -> bool:
        """Return whether the metric supports any numbers, and not only zeros and ones."""
        return self.metric != "precomputed" and self.metric not in BINARY_METRICS

    def _check_numbers(self, data: Any) -> Points:
        """Convert points for the search; raise if a number is not finite or too small for the metric."""
        try:
            return check_points(data, compact=True, metric=self.metric)
        except ValueError:
            assert_all_finite(data, input_name="X")  # raises scikit-learn's usual error
            raise

    def _build_graph(self, data: Any, options: FitOptions, progress: Progress | None) -> NeighborGraph:
        """Build the neighbour graph of points or of a precomputed matrix; return a given graph unchanged."""
        if isinstance(data, NeighborGraph):
            if self.missing not in ("mean", None):
                raise ValueError(
                    f"missing={self.missing!r}, but the graph has a value of its own, {data.missing}: leave it "
                    "out, or pass dataclasses.replace(graph, missing=...)"
                )
            return data
        if self.metric != "precomputed":
            return neighbor_graph(
                data,
                clip_n_neighbors(self.n_neighbors, len(self._duplicates.first)),
                self.metric,
                self.method,
                self.n_jobs,
                recall=self.recall,
                missing=self.missing,
                random_state=self._seed,
                progress=progress,
            )
        about: Any = {
            "kind": options.graph_kind(data),
            "missing": None if self.missing == "mean" else self.missing,
            "n_jobs": self.n_jobs,
        }
        if sp.issparse(data):
            return NeighborGraph.from_scipy(data, **about)
        columns = np.broadcast_to(np.arange(data.shape[1], dtype=np.int32), data.shape)
        return NeighborGraph.from_neighbors(columns, data, **about)

    def _get_state(self) -> ModelState:
        """Return the fitted state, for :meth:`save`."""
        parameters = self.get_params(deep=False) | {"connect": self._resolve_connect()}
        del parameters["top"]  # the deprecated alias of connect
        if isinstance(self.random_state, np.random.RandomState):
            parameters["random_state"] = self._seed  # the seed that was drawn from it
        return ModelState(
            class_name=type(self).__name__,
            parameters=parameters,
            n_features=int(self.n_features_in_),
            feature_names=[str(name) for name in getattr(self, "feature_names_in_", [])],
            graph=self.graph_,
            tree=self.tree_,
            graph_tree=self._graph_tree,
            round=self.round_,
            resolution=self.resolution_,
            index=self._index,
            seed=self._seed,
            constraints=self._constraints,
            duplicates=self._duplicates,
            weighted=self._weighted,
            weightless=self._weightless,
        )

    def _set_state(self, state: ModelState) -> None:
        """Set the fitted state; ``state`` is the result of :meth:`_get_state` for the same parameters."""
        self.n_features_in_ = state.n_features
        if state.feature_names:
            self.feature_names_in_ = np.array(state.feature_names, object)
        self.graph_, self.tree_, self._graph_tree = state.graph, state.tree, state.graph_tree
        self.round_, self.resolution_, self._seed = state.round, state.resolution, state.seed
        self._index = state.index
        self.query_method_ = None if state.index is None else state.index.method
        self._constraints, self._duplicates = state.constraints, state.duplicates
        self._weighted, self._weightless = state.weighted, state.weightless
        self._set_labels(None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        needs_dense = isinstance(self.linkage, str) and self.linkage in VECTOR_LINKAGES
        tags.input_tags.sparse = tags.input_tags.pairwise or (self.metric in SPARSE_METRICS and not needs_dense)
        return tags


def _add_weights(
    constraints: Constraints, n_old: int, n_new: int, sample_weight: npt.ArrayLike | None
) -> Constraints:
    """Return ``constraints`` with the weights of the new points appended to the weights of the old points."""
    new = None if sample_weight is None else check_weights(n_new, sample_weight)
    if constraints.weights is None and new is None:
        return constraints
    old = np.ones(n_old) if constraints.weights is None else constraints.weights
    both = np.concatenate([old, np.ones(n_new) if new is None else new])
    return replace(constraints, weights=check_weights(n_old + n_new, both))
