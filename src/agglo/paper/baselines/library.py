"""Methods of SciPy and scikit-learn whose trees are converted to a Hierarchy: dense HAC, Birch and HDBSCAN."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.cluster.hierarchy
import scipy.spatial.distance
import sklearn.cluster
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

from agglo._validation import check_choice
from agglo.paper.baselines.base import TreeBaseline, hierarchy_from_parents
from agglo.paper.validation import relabel_by_appearance
from agglo.points.points import PointArray
from agglo.tree.hierarchy import Hierarchy

LINKAGES = ("average", "centroid", "complete", "single", "ward", "weighted")
METRICS = ("cosine", "euclidean", "sqeuclidean")


@dataclass(eq=False, repr=False, kw_only=True)
class DenseHAC(TreeBaseline):
    """Hierarchical agglomerative clustering on all pairwise distances, by SciPy.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters in ``labels_``. By default the tree is cut at the most persistent round.
    linkage : {"average", "centroid", "complete", "single", "ward", "weighted"}, default="average"
        The linkage. ``"centroid"`` and ``"ward"`` are defined for ``metric="euclidean"`` only.
    metric : {"cosine", "euclidean", "sqeuclidean"}, default="cosine"
        The metric. The cosine of a zero vector and any point is 0.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree. The height of a node is the linkage of its two children.

    Notes
    -----
    The method takes O(n²) time and 4·n² bytes of memory. For average, single and complete linkage,
    :class:`agglo.HAC` with ``n_neighbors="all"`` gives the same tree.

    Examples
    --------
    >>> from agglo.paper.baselines import DenseHAC
    >>> DenseHAC(2, metric="euclidean").fit_predict([[0.0], [1.0], [10.0], [12.0]])
    array([0, 0, 1, 1])
    """

    linkage: str = "average"
    metric: str = "cosine"

    def _check(self) -> None:
        check_choice("linkage", self.linkage, LINKAGES)
        check_choice("metric", self.metric, METRICS)
        if self.linkage in ("centroid", "ward") and self.metric != "euclidean":
            raise ValueError(
                f"linkage={self.linkage!r} is not defined for metric={self.metric!r}: pass metric='euclidean' "
                "(and normalize the points to compare directions)"
            )

    def _build_tree(self, points: PointArray) -> Hierarchy:
        about = {"method": "dense HAC", "linkage": self.linkage, "metric": self.metric}
        n = len(points)
        if n == 1:
            return hierarchy_from_parents([-1], 1, [0.0], about)
        distances = scipy.spatial.distance.pdist(points, self.metric)
        if self.metric == "cosine":
            distances[np.isnan(distances)] = 1.0
            np.clip(distances, 0.0, 2.0, out=distances)
        return hierarchy_from_linkage(scipy.cluster.hierarchy.linkage(distances, self.linkage), about)


@dataclass(eq=False, repr=False, kw_only=True)
class Birch(TreeBaseline):
    """scikit-learn's Birch, whose tree of clustering features is converted to a Hierarchy.

    The parent of a point is the subcluster with the nearest center, as in scikit-learn.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters in ``labels_``. If given, scikit-learn merges the subclusters by Ward's method. By
        default, each subcluster is a cluster.
    threshold : float, default=0.5
        The maximum radius of a subcluster, greater than 0.
    branching_factor : int, default=50
        The maximum number of subclusters in a node.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree; the height of a node is the sum of squared distances of its points to their mean.

    Examples
    --------
    >>> from agglo.paper.baselines import Birch
    >>> Birch(threshold=1.0).fit_predict([[0.0], [1.0], [10.0], [12.0]])
    array([0, 0, 1, 1])
    """

    threshold: float = 0.5
    branching_factor: int = 50

    def _build_tree(self, points: PointArray) -> Hierarchy:
        model = sklearn.cluster.Birch(
            threshold=self.threshold, branching_factor=self.branching_factor, n_clusters=None
        ).fit(points)
        centers: list[npt.NDArray[Any]] = []
        above: list[int] = []  # the parent of each subcluster, which has a smaller id; -1 if it is the root
        lowest: list[int] = []
        stack = [(entry, -1) for entry in model.root_.subclusters_]
        while stack:
            entry, over = stack.pop()
            above.append(over)
            if entry.child_ is None:
                lowest.append(len(above) - 1)
                centers.append(entry.centroid_)
            else:
                stack += [(inner, len(above) - 1) for inner in entry.child_.subclusters_]
        nearest = pairwise_distances_argmin(points, np.asarray(centers, points.dtype))
        self._model = model
        # Reverse the ids, so that children come before their parents and the root is last.
        last = len(points) + len(above)
        subclusters = last - 1 - np.asarray(above[::-1])
        leaves = last - 1 - np.asarray(lowest)[nearest]
        about = {
            "method": "birch",
            "threshold": float(self.threshold),
            "branching_factor": int(self.branching_factor),
        }
        return hierarchy_from_parents(np.concatenate([leaves, subclusters, [-1]]), len(points), points, about)

    def _build_labels(self, points: PointArray) -> npt.NDArray[np.int64]:
        if self.n_clusters is not None:
            self._model.set_params(n_clusters=operator.index(self.n_clusters)).partial_fit()
        return relabel_by_appearance(self._model.predict(points))[0]


@dataclass(eq=False, repr=False, kw_only=True)
class HDBSCAN(TreeBaseline):
    """scikit-learn's HDBSCAN, with the tree of single linkage on mutual reachability distances.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters in ``labels_``. If given, the tree is cut into this number of clusters, and there is
        no noise. By default, HDBSCAN selects the clusters, and noise has the label -1.
    min_cluster_size : int, default=5
        The minimum number of points of a cluster that HDBSCAN selects. It must be at least 2.
    min_samples : int, optional
        The core distance of a point is the distance to its ``min_samples``-th nearest point, counting the point
        itself. The default is ``min_cluster_size``, but at most the number of points.
    cluster_selection_method : {"eom", "leaf"}, default="eom"
        The method by which HDBSCAN selects clusters, as in scikit-learn.

    Attributes
    ----------
    tree_ : Hierarchy
        The single-linkage tree of all points. The heights of its nodes are mutual reachability distances.

    Notes
    -----
    scikit-learn does not expose its tree. So this class builds the minimum spanning tree by Prim's algorithm, in
    O(n²) time and O(n) memory. Without ``n_clusters``, scikit-learn builds the tree again to select clusters.

    Examples
    --------
    >>> from agglo.paper.baselines import HDBSCAN
    >>> fitted = HDBSCAN(min_cluster_size=3).fit([[0.0], [1.0], [2.0], [10.0], [12.0], [14.0], [60.0]])
    >>> fitted.labels_
    array([ 0,  0,  0,  1,  1,  1, -1])
    >>> fitted.tree_.height[-6:]
    array([ 2.,  2.,  4.,  4.,  8., 48.])
    """

    min_cluster_size: int = 5
    min_samples: int | None = None
    cluster_selection_method: Literal["eom", "leaf"] = "eom"

    def _build_tree(self, points: PointArray) -> Hierarchy:
        min_samples = self.min_cluster_size if self.min_samples is None else self.min_samples
        samples = min(min_samples, len(points))
        about = {"method": "hdbscan", "min_samples": int(samples)}
        if len(points) == 1:
            return hierarchy_from_parents([-1], 1, [0.0], about)
        near = NearestNeighbors(n_neighbors=samples).fit(points).kneighbors(points)[0]
        return hierarchy_from_linkage(_single_linkage(points, near[:, -1]), about)

    def _build_labels(self, points: PointArray) -> npt.NDArray[np.int64]:
        if self.n_clusters is not None:
            return super()._build_labels(points)
        if len(points) == 1:
            return np.array([-1])
        model = sklearn.cluster.HDBSCAN(
            min_cluster_size=self.min_cluster_size,
            min_samples=self.tree_.about["min_samples"],
            cluster_selection_method=self.cluster_selection_method,
            copy=True,
        )
        labels: npt.NDArray[np.int64] = model.fit(points).labels_.astype(np.int64)
        return labels


def hierarchy_from_linkage(rows: npt.NDArray[np.float64], about: dict[str, Any]) -> Hierarchy:
    """Convert a SciPy linkage matrix to a Hierarchy."""
    n = len(rows) + 1
    parent = np.full(2 * n - 1, -1, np.int32)
    parent[rows[:, :2].astype(np.int64)] = np.arange(n, 2 * n - 1)[:, None]
    return hierarchy_from_parents(parent, n, np.concatenate([np.zeros(n), rows[:, 2]]), about)


def _single_linkage(points: PointArray, core: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Compute the linkage matrix of single linkage on mutual reachability distances, by Prim's algorithm."""
    n = len(points)
    centered = points - points.mean(axis=0, dtype=np.float64)  # reduces rounding errors of the products
    squares = np.einsum("ij,ij->i", centered, centered)
    best, nearest = np.full(n, np.inf), np.zeros(n, np.int64)
    edges = np.empty((n - 1, 3))
    out = np.arange(n) > 0
    newest = 0
    for step in range(n - 1):
        square = squares + squares[newest] - 2 * (centered @ centered[newest])
        reach = np.maximum(np.sqrt(np.maximum(square, 0)), np.maximum(core, core[newest]))
        closer = out & (reach < best)
        best[closer], nearest[closer] = reach[closer], newest
        newest = int(np.where(out, best, np.inf).argmin())
        edges[step] = nearest[newest], newest, best[newest]
        out[newest] = False
    return _linkage_from_edges(edges[np.argsort(edges[:, 2], kind="stable")])


def _linkage_from_edges(edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Convert the edges of a spanning tree, sorted by ascending weight, to a SciPy linkage matrix."""
    n = len(edges) + 1
    rows = np.empty((n - 1, 4))
    cluster, size = list(range(2 * n - 1)), [1] * n
    for step, (a, b, length) in enumerate(edges.tolist()):
        left, right = _find(cluster, int(a)), _find(cluster, int(b))
        rows[step] = left, right, length, size[left] + size[right]
        size.append(size[left] + size[right])
        cluster[left] = cluster[right] = n + step
    return rows


def _find(cluster: list[int], node: int) -> int:
    while cluster[node] != node:
        cluster[node] = cluster[cluster[node]]  # path halving
        node = cluster[node]
    return node
