"""What a fitted clusterer goes on with: labels for new points, and more points to cluster."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from agglo._arrays import release
from agglo._validation import RandomStateLike, effective_n_threads
from agglo.estimators.duplicates import extend_duplicates, map_nodes, sum_weights
from agglo.estimators.labels import number_clusters, order_of_appearance
from agglo.neighbors.graph import NeighborGraph
from agglo.neighbors.index import NeighborIndex
from agglo.neighbors.missing import MissingRule
from agglo.neighbors.search import neighbor_graph
from agglo.neighbors.update import add_points
from agglo.neighbors.validation import clip_n_neighbors
from agglo.points.dedup import Duplicates, no_duplicates, take_rows
from agglo.progress import Progress, bind_phase, progress_bar
from agglo.rounds.attach import Attached, Placed, Rows, attach_rows, known_of
from agglo.rounds.constraints import Constraints, check_weights
from agglo.rounds.vector_linkage import VECTOR_LINKAGES
from agglo.tree.cut import RoundRule, check_rule, select_round
from agglo.tree.hierarchy import Hierarchy


class Model(ABC):
    """Methods of a fitted clusterer; the clusterers inherit them."""

    labels_: npt.NDArray[np.int64]
    tree_: Hierarchy
    graph_: NeighborGraph
    graph_index_: npt.NDArray[np.int64]
    round_: int | None
    query_method_: str | None
    height: SupportsFloat | None
    n_neighbors: Any
    metric: str
    method: str
    recall: float
    missing: MissingRule
    random_state: RandomStateLike
    n_jobs: int | None
    verbose: bool | int
    linkage: Any
    _fitted: NeighborIndex | None  # the points of the graph; None if none were given
    _duplicates: Duplicates  # of all points of positive weight to those
    _known: Constraints  # of all points of positive weight
    _tree: Hierarchy  # of the points of the graph
    _seed: int  # that random_state gave for this fit
    _counted: npt.NDArray[np.int64] | None = None  # the points of positive weight; None if that is all
    _uncounted: Any = None  # the rows of the others; all else is of the points of positive weight alone

    @abstractmethod
    def fit(self, X: Any, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """The estimator, fitted."""

    @abstractmethod
    def _validated(self, X: Any, *, reset: bool = True) -> Any:
        """``X`` as an array of finite numbers."""

    @abstractmethod
    def _finish(self, graph: NeighborGraph, X: Any, progress: Any) -> None:
        """Set the tree and the labels of a graph."""

    def _keep(self, X: Any, graph: NeighborGraph) -> None:
        """Keep the points that were fitted, for those to come."""
        self._fitted, self.query_method_ = None, None
        if self.metric != "precomputed":
            settings = (graph.method, graph.parameters, self.recall, self._seed, graph.cells)
            self._fitted = NeighborIndex(X, self.metric, *settings)
            self.query_method_ = self._fitted.method

    def attach(self, X: Any) -> Attached:
        """Where new points are in the tree: the node that each joins, from which its label in any cut follows.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_points)
            New points, like those that were fitted; with ``metric="precomputed"`` how close they are to each of
            these, of which a sparse matrix has the neighbours alone.

        Returns
        -------
        Attached
            See :func:`agglo.attach`. Its method ``labels`` takes any cut of the tree.

        Examples
        --------
        >>> from agglo import SCC
        >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
        >>> clusterer = SCC(metric="euclidean").fit(X)
        >>> new = clusterer.attach([[0.4], [11.0], [20.0]])
        >>> new.labels(n_clusters=4), new.labels(labels=clusterer.tree_.cut(max_size=2))
        (array([ 0,  1, -1]), array([0, 1, 1]))
        """
        check_is_fitted(self)
        with progress_bar(bool(self.verbose)) as progress:
            return self._attach(self._validated(X, reset=False), progress)

    def _attach(self, new: Any, progress: Progress | None) -> Attached:
        """Do the work of :meth:`attach` for valid points."""
        weights = sum_weights(self._duplicates, self._known)
        if self._fitted is None:
            return attach_rows(self.tree_, _rows_of_matrix(new), None, self.n_jobs, progress, weights)
        workers, report = effective_n_threads(self.n_jobs), bind_phase(progress, "neighbours")
        fitted, new = self._fitted.convert_queries(new)
        k = self.graph_.parameters["n_neighbors"]
        k = len(fitted) if k == "all" else min(k, len(fitted))
        targets, values = fitted.search(new, k, workers, report)
        rows = Rows(np.arange(len(targets) + 1, dtype=np.int64) * k, targets.ravel(), values.ravel())
        copies = fitted.find_equal(new, workers)
        vectors = None
        if self._tree.about["linkage"] in VECTOR_LINKAGES:
            if fitted.moments is None or fitted.moments[0] is not self._tree:
                fitted.moments = self._tree, known_of(self._tree, fitted.X, weights)
            known = fitted.moments[1]
            vectors = Placed(known, known.linkage.like(new))
        return self._all(attach_rows(self._tree, rows, copies, self.n_jobs, progress, weights, vectors))

    def _label(self, progress: Progress | None) -> None:
        """Set what there is an entry of for each point, also for points of weight 0."""
        X = None if self._fitted is None else self._fitted.X
        found = self.tree_.cut(**self._default_rule())
        self.labels_ = number_clusters(found, self._known.weights, X, self._duplicates.inverse)
        self.graph_index_ = self._duplicates.inverse
        if self._counted is not None:
            n_points = len(self._counted) + self._uncounted.shape[0]
            others = np.setdiff1d(np.arange(n_points), self._counted, assume_unique=True)
            labels, index = np.empty(n_points, np.int64), np.full(n_points, -1)
            labels[self._counted], index[self._counted] = self.labels_, self.graph_index_
            labels[others] = self._label_new(self._attach(self._uncounted, progress), self.labels_)
            self.labels_, self.graph_index_ = labels, index

    def _default_rule(self) -> dict[str, Any]:
        """Return the rule of the cut that ``labels_`` are."""
        return {"round": self.round_, "height": self.height if self.round_ is None else None}

    def _label_new(self, new: Attached, leaf_labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the labels of new points by the default rule, numbered as those of the tree's leaves."""
        found = new.labels(**self._default_rule())  # numbered by first appearance
        return np.where(found < 0, -1, order_of_appearance(leaf_labels)[found])

    def _set_aside(self, X: Any, counted: npt.NDArray[np.bool_]) -> Any:
        """Return the points of positive weight out of ``X``, and keep the others for their labels."""
        before = 0 if not hasattr(self, "labels_") else len(self.labels_)
        if counted.all() and self._counted is None:
            return X
        old = np.arange(before) if self._counted is None else self._counted
        self._counted = release(np.concatenate([old, before + np.flatnonzero(counted)]))
        others = take_rows(X, np.flatnonzero(~counted))
        self._uncounted = others if self._uncounted is None else _stack(self._uncounted, others)
        return take_rows(X, np.flatnonzero(counted))

    def _all(self, new: Attached) -> Attached:
        """Where new points are in the tree of all points, if ``new`` says it of that of the graph's points."""
        if not self._duplicates.n_duplicates:
            return new
        names = np.append(map_nodes(self._tree, self._duplicates), -1)
        leaves = np.append(self._duplicates.first, -1)
        copy = new.round == 0
        node = np.where(copy, leaves[np.where(copy, new.node, -1)], names[new.node]).astype(np.int32)
        earlier = np.int32(len(self.tree_.rounds) - len(self._tree.rounds))
        return Attached(self.tree_, node, np.where(new.round > 0, new.round + earlier, new.round), new.height)

    def _round(self, n_clusters: SupportsIndex | None, round: SupportsIndex | RoundRule | None) -> int:
        """The round of ``tree_`` that a rule asks for; one that looks at the graph sees the points in it."""
        tree = self._tree if round == "silhouette" else self.tree_
        found = select_round(tree, n_clusters, round, self.graph_, weights=self._known.weights)
        return found + len(self.tree_.rounds) - len(tree.rounds)

    def predict(
        self,
        X: Any,
        *,
        n_clusters: SupportsIndex | None = None,
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        labels: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.int64]:
        """Assign new points to clusters, numbered as in ``labels_``; -1 if no cluster would have taken them in.

        A new point joins the cluster that the rounds would have merged it into: see :func:`agglo.attach`. A copy
        of a fitted point is where that is.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_points)
            As of :meth:`attach`.
        n_clusters, round, height, labels
            Another cut of the tree than that of ``labels_``: a rule of :meth:`agglo.Hierarchy.cut`, or labels that
            it gave by any other rule. Clusters are then numbered as that method numbers them, in order of first
            appearance, or as in ``labels``.

        Examples
        --------
        >>> from agglo import SCC
        >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
        >>> clusterer = SCC(metric="euclidean").fit(X)
        >>> clusterer.labels_
        array([0, 0, 0, 0, 1, 1, 1, 1])
        >>> clusterer.predict([[0.4], [41.0], [400.0]])
        array([ 0,  1, -1])
        >>> clusterer.predict([[0.4], [41.0], [400.0]], n_clusters=4)
        array([ 0,  3, -1])
        """
        check_is_fitted(self)
        rule = {"n_clusters": n_clusters, "round": round, "height": height}
        if labels is None:
            if all(value is None for value in rule.values()):
                leaf_labels = self.labels_ if self._counted is None else self.labels_[self._counted]
                return self._label_new(self.attach(X), leaf_labels)
            check_rule(self.tree_.n_leaves, **rule)  # type: ignore[arg-type]  # before the search
            if round is not None:
                rule["round"] = self._round(None, round)
        return self.attach(X).labels(**rule, labels=labels)  # type: ignore[arg-type]

    def partial_fit(self, X: Any, y: object = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """The estimator with more points: those that were fitted before, and after them ``X``.

        New points are searched among the old ones and each other, and old points take new neighbours in that are
        closer than theirs. Then the rounds are run again, on the graph of all. Where neighbours are found exactly,
        the result is that of a fit of all points. The first call is a fit. If an exception is raised, Ctrl-C
        included, the estimator stays as it was.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New points, like those that were fitted.
        y : object
            Not used; for pipelines.
        sample_weight : array-like of shape (n_new,), optional
            What each of the new points counts as, as of :meth:`fit`.

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
            draft._fit_more(X, sample_weight)
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[Self]:
        """Yield a copy of the estimator to be fitted, whose state replaces that of the estimator in one step.

        An exception in between, such as Ctrl-C or want of memory, leaves the estimator as it was.
        """
        draft = object.__new__(type(self))
        draft.__dict__ = self.__dict__.copy()
        yield draft
        self.__dict__ = draft.__dict__

    def _fit_more(self, X: Any, sample_weight: npt.ArrayLike | None) -> None:
        """Do the work of :meth:`partial_fit` on a draft."""
        if self._fitted is None:
            raise ValueError(
                "metric='precomputed' has no points that others could be compared with: "
                "make the graph of all points, and fit that"
            )
        given = self._validated(X, reset=False)
        counted = np.ones(given.shape[0], bool)
        if sample_weight is not None:
            check_weights(len(counted), sample_weight, allow_zero=True, allow_all=True)
            counted = np.asarray(sample_weight) != 0
            sample_weight = np.asarray(sample_weight)[counted]
        given = self._set_aside(given, counted)
        if not given.shape[0]:
            with progress_bar(bool(self.verbose)) as progress:
                self._label(progress)
            return
        old, new = self._fitted.convert_queries(given)
        known = _with_more(self._known, len(self._duplicates.inverse), new.shape[0], sample_weight)
        duplicates, fresh = self._duplicates, np.arange(new.shape[0])
        if isinstance(self.linkage, str):
            matches = old.find_equal(new, effective_n_threads(self.n_jobs))
            duplicates, fresh = extend_duplicates(duplicates, matches, new, known, self.n_jobs)
        else:
            duplicates = no_duplicates(len(duplicates.inverse) + new.shape[0])
        n_neighbors = clip_n_neighbors(self.n_neighbors, len(duplicates.first))
        with progress_bar(bool(self.verbose)) as progress:
            graph = self.graph_
            if n_neighbors == "all":
                both = old.concatenate(new[fresh])
                graph = neighbor_graph(
                    *(both, "all", self.metric, "auto", self.n_jobs),
                    missing=self.missing,
                    random_state=self._seed,
                    progress=progress,
                )
                self._keep(both, graph)
            elif len(fresh):
                self._fitted, graph = add_points(
                    old, graph, new[fresh], n_neighbors, self.missing, self.n_jobs, progress
                )
            self._duplicates, self._known = duplicates, known
            self._finish(graph, self._fitted.X, progress)

    def save(self, folder: str | os.PathLike[str], *, points: str | os.PathLike[str] | None = None) -> list[Path]:
        """Write the fitted model to a folder, for :func:`agglo.load`; returns the files.

        Parameters, graph, tree and points are written, all or none, as JSON, Parquet and NumPy's formats: there is
        nothing in them that could be executed.

        Parameters
        ----------
        folder : path
            A new or empty folder, or one that holds a model, which is replaced.
        points : path, optional
            A .npy file that holds the fitted points already: they are then not written once more, but read from
            there, and must be the same when the model is loaded. By default they are written to the folder.
        """
        from agglo.estimators import model_folder as modelfile

        check_is_fitted(self)
        return modelfile.save(self, folder, points)  # type: ignore[arg-type]  # for it is a clusterer


def _with_more(known: Constraints, n_old: int, n_new: int, sample_weight: npt.ArrayLike | None) -> Constraints:
    """What is known of old points, and the weights of new ones after them."""
    new = None if sample_weight is None else check_weights(n_new, sample_weight)
    if known.weights is None and new is None:
        return known
    parts = [np.ones(n_old) if known.weights is None else known.weights, np.ones(n_new) if new is None else new]
    return replace(known, weights=check_weights(n_old + n_new, np.concatenate(parts)))


def _stack(first: Any, second: Any) -> Any:
    """Return the rows of two arrays or sparse matrices, one after the other."""
    if sp.issparse(first) or sp.issparse(second):
        return sp.vstack([sp.csr_array(first), sp.csr_array(second)], format="csr")
    return np.concatenate([first, second])


def _rows_of_matrix(matrix: Any) -> Rows:
    """The entries of a matrix of values, those that are stored if it is sparse."""
    n, points = matrix.shape
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix)
        return Rows(matrix.indptr.astype(np.int64), matrix.indices, matrix.data)
    everyone = np.broadcast_to(np.arange(points, dtype=np.int32), matrix.shape)
    return Rows(np.arange(n + 1, dtype=np.int64) * points, everyone.ravel(), matrix.ravel())
