"""Prediction: assign new points to the clusters of a fitted clusterer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from agglo._validation import effective_n_threads, release
from agglo.estimators.duplicates import map_nodes, sum_weights
from agglo.neighbors.graph import NeighborGraph
from agglo.neighbors.index import NeighborIndex
from agglo.points.points import Duplicates, take_rows
from agglo.progress import Progress, progress_bar
from agglo.rounds.attach import Attached, QueryVectors, Rows, attach_rows, node_moments
from agglo.rounds.constraints import Constraints
from agglo.rounds.vector_linkage import VECTOR_LINKAGES
from agglo.tree.cut import RoundRule, check_rule, select_round
from agglo.tree.hierarchy import Hierarchy


class PredictionMixin(ABC):
    """Mixin for clusterers that labels new points, and fitted points of weight 0."""

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    labels_: npt.NDArray[np.int64]
    tree_: Hierarchy
    graph_: NeighborGraph
    graph_index_: npt.NDArray[np.int64]
    round_: int | None
    resolution_: float | None
    query_method_: str | None
    height: SupportsFloat | None
    metric: str
    recall: float
    n_jobs: int | None
    verbose: bool | int
    _index: NeighborIndex | None  # search index over the points of the graph; None for a precomputed graph
    _duplicates: Duplicates  # groups of equal points with positive weight; a group is one point of the graph
    _constraints: Constraints  # constraints on the points with positive weight
    _graph_tree: Hierarchy  # the tree over the points of the graph
    _seed: int  # the random seed of this fit
    _seconds: dict[str, float]  # duration of each phase of the last fit
    _weighted: npt.NDArray[np.int64] | None = None  # ids of points with positive weight; None if all are positive
    _weightless: Any = None  # the rows of the points with weight 0

    @abstractmethod
    def _validate_new(self, X: Any) -> Any:
        """Return new points as an array of finite numbers."""

    def attach(self, X: Any) -> Attached:
        """Find the tree node that each new point merges with. This node determines the point's label in any cut.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_points)
            New points with the same features as the fitted points. With ``metric="precomputed"``, ``X`` contains
            the similarities or distances between new points and fitted points. The stored entries of a sparse
            matrix are the edges.

        Returns
        -------
        Attached
            See :func:`agglo.attach`. Its method ``labels`` returns the labels in any cut of the tree.

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
            return self._attach(self._validate_new(X), progress)

    def _attach(self, new: Any, progress: Progress | None) -> Attached:
        """Find the tree nodes that the validated points ``new`` merge with; see :meth:`attach`."""
        weights = sum_weights(self._duplicates, self._constraints)
        if self._index is None:
            return attach_rows(self.tree_, _matrix_to_rows(new), None, self.n_jobs, progress, weights)
        tree, n_threads = self._graph_tree, effective_n_threads(self.n_jobs)
        index, new = self._index.convert_queries(new)
        k = self.graph_.parameters["n_neighbors"]
        k = len(index) if k == "all" else min(k, len(index))
        neighbors, values = index.search(new, k, n_threads, progress and partial(progress, "neighbours"))
        rows = Rows(np.arange(len(neighbors) + 1, dtype=np.int64) * k, neighbors.ravel(), values.ravel())
        duplicates = index.find_equal(new, n_threads)
        vectors = None
        if tree.about["linkage"] in VECTOR_LINKAGES:
            if index.moments is None or index.moments[0] is not tree:
                index.moments = tree, node_moments(tree, index.X, weights)
            known = index.moments[1]
            vectors = QueryVectors(known, known.linkage.prepare_queries(new))
        return self._expand(attach_rows(tree, rows, duplicates, self.n_jobs, progress, weights, vectors))

    def _expand(self, new: Attached) -> Attached:
        """Convert node ids of ``_graph_tree``, with one leaf per group of duplicates, to node ids of ``tree_``."""
        if not self._duplicates.n_duplicates:
            return new
        nodes = np.append(map_nodes(self._graph_tree, self._duplicates), -1)
        leaves = np.append(self._duplicates.first, -1)
        is_duplicate = new.round == 0
        leaf = leaves[np.where(is_duplicate, new.node, -1)]
        node = np.where(is_duplicate, leaf, nodes[new.node]).astype(np.int32)
        n_before = np.int32(len(self.tree_.rounds) - len(self._graph_tree.rounds))  # 1 if duplicates add a round
        return Attached(self.tree_, node, np.where(new.round > 0, new.round + n_before, new.round), new.height)

    def _label_weightless(self, progress: Progress | None) -> None:
        """Extend ``labels_`` and ``graph_index_`` to the points of weight 0, and label these like new points."""
        assert self._weighted is not None
        n_points = len(self._weighted) + self._weightless.shape[0]
        rest = np.setdiff1d(np.arange(n_points), self._weighted, assume_unique=True)
        labels, index = np.empty(n_points, np.int64), np.full(n_points, -1)
        labels[self._weighted], index[self._weighted] = self.labels_, self.graph_index_
        labels[rest] = self._label_new(self._attach(self._weightless, progress), self.labels_)
        self.labels_, self.graph_index_ = labels, index

    def _default_rule(self) -> dict[str, Any]:
        """Return the arguments of ``tree_.cut`` that reproduce ``labels_``, if a round or height selected them."""
        return {"round": self.round_, "height": self.height if self.round_ is None else None}

    def _label_new(self, new: Attached, leaf_labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the labels of new points in the cut that gave ``labels_``, numbered as in ``leaf_labels``."""
        if self.resolution_ is not None:
            return new.labels(labels=leaf_labels)
        clusters = new.labels(**self._default_rule())  # numbered in order of first appearance
        return np.where(clusters < 0, -1, _order_of_appearance(leaf_labels)[clusters])

    def _set_weightless_aside(self, X: Any, has_weight: npt.NDArray[np.bool_]) -> Any:
        """Return the points with positive weight; store the points of weight 0, to label them after the fit."""
        if has_weight.all() and self._weighted is None:
            return X
        n_old = len(self.labels_) if hasattr(self, "labels_") else 0
        old = np.arange(n_old) if self._weighted is None else self._weighted
        self._weighted = release(np.concatenate([old, n_old + np.flatnonzero(has_weight)]))
        weightless = take_rows(X, np.flatnonzero(~has_weight))
        self._weightless = weightless if self._weightless is None else _stack(self._weightless, weightless)
        return take_rows(X, np.flatnonzero(has_weight))

    def _select_round(self, n_clusters: SupportsIndex | None, round: SupportsIndex | RoundRule | None) -> int:
        """Return the number of the round of ``tree_`` that ``n_clusters`` or ``round`` selects."""
        # Silhouettes need a tree whose leaves are the points of the graph.
        tree = self._graph_tree if round == "silhouette" else self.tree_
        selected = select_round(tree, n_clusters, round, self.graph_, weights=self._constraints.weights)
        return selected + len(self.tree_.rounds) - len(tree.rounds)

    def predict(
        self,
        X: Any,
        *,
        n_clusters: SupportsIndex | None = None,
        round: SupportsIndex | RoundRule | None = None,
        height: SupportsFloat | None = None,
        labels: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.int64]:
        """Assign new points to the clusters in ``labels_``.

        The rounds are repeated for each new point, to find the cluster that the point merges into; see
        :func:`agglo.attach`. A duplicate of a fitted point gets the label of that point. The label is -1 only if
        the point joins no cluster up to the selected level. Points of an unknown kind usually get a label. To find
        them, compare ``attach(X).height`` with the heights of points of known kinds.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features) or (n_new, n_points)
            New points, as in :meth:`attach`.
        n_clusters, round, height, labels
            Use another cut of the tree instead of ``labels_``. ``n_clusters``, ``round`` and ``height`` select the
            cut as in :meth:`agglo.Hierarchy.cut`, and number its clusters in order of first appearance. ``labels``
            is a result of that method for any rule, and its cluster numbers are kept.

        Examples
        --------
        >>> from agglo import SCC
        >>> X = [[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]
        >>> clusterer = SCC(metric="euclidean").fit(X)
        >>> clusterer.predict([[0.4], [41.0], [400.0]])
        array([ 0,  1, -1])
        >>> clusterer.predict([[0.4], [41.0], [400.0]], n_clusters=4)
        array([ 0,  3, -1])
        """
        check_is_fitted(self)
        rule = {"n_clusters": n_clusters, "round": round, "height": height}
        if labels is None:
            if all(value is None for value in rule.values()):
                leaf_labels = self.labels_ if self._weighted is None else self.labels_[self._weighted]
                return self._label_new(self.attach(X), leaf_labels)
            check_rule(self.tree_.n_leaves, **rule)  # type: ignore[arg-type]  # raise before the search
            if round is not None:
                rule["round"] = self._select_round(None, round)
        return self.attach(X).labels(**rule, labels=labels)  # type: ignore[arg-type]


def _stack(first: Any, second: Any) -> Any:
    """Concatenate the rows of two arrays or of two sparse matrices."""
    if sp.issparse(first) or sp.issparse(second):
        return sp.vstack([sp.csr_array(first), sp.csr_array(second)], format="csr")
    return np.concatenate([first, second])


def _matrix_to_rows(matrix: Any) -> Rows:
    """Convert a matrix of similarities or distances to CSR rows; a sparse matrix keeps its stored entries."""
    n_new, n_points = matrix.shape
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix)
        return Rows(matrix.indptr.astype(np.int64), matrix.indices, matrix.data)
    columns = np.broadcast_to(np.arange(n_points, dtype=np.int32), matrix.shape)
    return Rows(np.arange(n_new + 1, dtype=np.int64) * n_points, columns.ravel(), matrix.ravel())


def _order_of_appearance(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distinct labels in order of first appearance."""
    first = np.full(labels.max() + 1, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    return np.argsort(first)
