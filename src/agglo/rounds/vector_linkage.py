"""Vector linkages (exact-average, centroid, ward), which compare the vectors of the points, not their edges.

A cluster is stored as its weight, its mean in float32, and the sum of squared distances of its points to the mean
(the spread). These three values determine all three linkages. Only clusters with an edge between them are
compared. The C++ core compares them; :class:`agglo.rounds.reference_linkage.ReferenceVectorLinkage` is the slow
reference implementation.
"""

from __future__ import annotations

import copy
import warnings
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo.neighbors.graph import Kind, NeighborGraph
from agglo.points.points import PointArray, Points, check_points, iter_blocks
from agglo.rounds.linkage import EdgeLinkages, Float

VectorLinkageName = Literal["exact-average", "centroid", "ward"]
ConnectName = VectorLinkageName | Literal["auto"]

# The metrics that each linkage supports: the linkage value must be a function of weights, means and spreads.
VECTOR_LINKAGES: dict[str, tuple[str, ...]] = {
    "exact-average": ("cosine", "dot", "sqeuclidean"),
    "centroid": ("cosine", "sqeuclidean", "euclidean"),
    "ward": ("cosine", "sqeuclidean", "euclidean"),
}

_ROUNDING = 1 + 1e-5  # by rounding, a mean may be farther from the origin than all points, by this factor
EPSILON = float(np.finfo(np.float32).eps)  # twice the relative rounding error of a point in float32
CLEAR = 10  # a distance must be at least this many times the rounding error of its points
FEW = 0.05  # warn if a larger share of the edges is too short; a few near duplicates are allowed
_EDGES = 1 << 20  # approximate number of edges per block


class MetricSpec(NamedTuple):
    """A metric and a number of points, in place of a graph, to create a vector linkage without a graph."""

    metric: str | None
    n_points: int


def check_vector_linkage(linkage: str, metric: str | None, X: Any) -> None:
    """Raise if the vector linkage ``linkage`` does not support ``metric``, or if ``X`` is missing or sparse."""
    metrics = VECTOR_LINKAGES[linkage]
    if X is None:
        raise ValueError(
            f"linkage={linkage!r} compares the points themselves, and a graph has none: pass X, the points "
            "that the graph was built from"
        )
    if metric not in metrics:
        raise ValueError(
            f"linkage={linkage!r} does not support metric={metric!r}: build the graph with one of "
            f"{', '.join(metrics)}, or pass linkage='average', which needs only the graph"
        )
    check_is_dense(X)


def check_is_dense(X: Any) -> None:
    """Raise if ``X`` is sparse, because the means of sparse points are dense."""
    if sp.issparse(X):
        raise TypeError(
            f"X is a SciPy sparse {type(X).__name__}, but the mean of sparse points is dense: pass X.toarray(), "
            "or pass linkage='average', which needs only the graph"
        )


def vector_linkage_kind(linkage: str, metric: str) -> Kind:
    """Return whether the values of a vector linkage are similarities or distances."""
    return "similarity" if metric in ("cosine", "dot") and linkage != "ward" else "distance"


class VectorLinkage:
    """A linkage that compares two clusters by the vectors of their points.

    ``exact-average`` is the mean squared distance, cosine or dot product over all pairs of points. ``centroid`` is
    the squared distance or the cosine of the two means. ``ward`` is twice the increase of the sum of squared
    distances to the means when the two clusters merge. For two single points, ``ward`` is their squared distance.
    With metric ``euclidean``, ``centroid`` and ``ward`` are square roots, as in SciPy. ``ward`` with metric
    ``cosine`` normalizes the points to length 1, and its values are distances.

    Parameters
    ----------
    graph : NeighborGraph or MetricSpec
        A graph of the points, with the metric cosine, dot, sqeuclidean or euclidean.
    linkage : {"exact-average", "centroid", "ward"}
        The name of the linkage.
    X : array-like of shape (n_points, n_features)
        The points.
    weights : ndarray of float64 of shape (n_points,), optional
        The weights of the points.

    Notes
    -----
    The linkage of two single points is the weight of their edge. The mean of a merged cluster is computed in
    float64 from the means of its parts, in order of their ids, and stored in float32. For distances, the mean of
    all points is subtracted first, because float32 is most precise near the origin. If neighbours are much closer
    to each other than to that mean, float32 cannot separate them, and :meth:`warn_of_rounding` warns.
    """

    def __init__(
        self, graph: NeighborGraph | MetricSpec, linkage: str, X: Any, weights: Float | None = None
    ) -> None:
        check_vector_linkage(linkage, graph.metric, X)
        assert graph.metric is not None
        self.linkage = linkage
        self.metric: str = graph.metric
        given: PointArray = X.X if isinstance(X, Points) else check_points(X, half=True, metric=self.metric)
        self.center = _center(given, self.metric)
        self.points = _normalize_or_center(given, self.metric, self.center)
        self.spreads: Float | None = None
        self.lost = 0.0  # share of edges shorter than CLEAR times the rounding error
        self.rounding = 0.0  # largest rounding error of the points of these edges
        if len(self.points) != graph.n_points:
            raise ValueError(
                f"X has {len(self.points)} rows, but the graph has {graph.n_points} points: pass the points that "
                "it was built from, in the same order"
            )
        self.kind: Kind = vector_linkage_kind(linkage, self.metric)
        self._weights = weights
        if self.metric in ("sqeuclidean", "euclidean") and isinstance(graph, NeighborGraph):
            self.lost, self.rounding = _lost_edges(graph, EPSILON * np.sqrt(self._squares))

    @cached_property
    def _squares(self) -> Float:
        """The squared length of each point."""
        # Unlike einsum, sum(axis=1) adds in an order that does not depend on the processor.
        return np.concatenate(
            [np.square(rows, dtype=np.float64).sum(axis=1) for _, rows in iter_blocks(self.points)]
        )

    @cached_property
    def farthest(self) -> float:
        """A value that is at least as far as every linkage of two clusters; see :attr:`agglo.Linkage.farthest`."""
        if self.kind == "similarity":
            return -_ROUNDING * (1.0 if self.metric == "cosine" else float(self._squares.max()))
        # No mean is farther from the origin than the farthest point.
        # No merge increases the sum of squared distances to the means by more than the sum of all squares.
        weighed = self._squares if self._weights is None else self._weights * self._squares
        most = 2 * weighed.sum() if self.linkage == "ward" else 4 * self._squares.max()
        return float(np.sqrt(most) if self.metric == "euclidean" else most) * _ROUNDING

    def warn_of_rounding(self, stacklevel: int) -> None:
        """Warn if the rounding of points to float32 is large compared with the distances of neighbours."""
        if self.lost > FEW:
            warnings.warn(
                f"linkage={self.linkage!r} keeps means in float32, but {self.lost:.0%} of the edges are shorter "
                f"than {CLEAR} times its rounding: it rounds their points by up to {self.rounding:.2g}, because "
                f"these are up to {self.rounding / EPSILON:.2g} from the mean of all. Clusters may be wrong: "
                "move groups of points that are far apart closer together, cluster each of them alone, or pass "
                "linkage='average', which compares points by the weights of the graph alone",
                stacklevel=stacklevel + 1,
            )

    def release_points(self) -> npt.NDArray[np.float32]:
        """Return the points and remove them from this object, which is then unusable: the core overwrites them."""
        points, self.points = self.points, self.points[:0]
        return points

    def prepare_queries(self, X: Any) -> npt.NDArray[np.float32]:
        """Normalize or center new points in the same way as the points of the linkage; return them in float32."""
        # Distances of new points may be arbitrarily small. So new points can be too small only for similarities.
        check_is_dense(X)
        scaled_metric = self.metric if self.metric in ("cosine", "dot") else None
        given = check_points(X, half=True, metric=scaled_metric)
        if given.shape[1] != len(self.center):
            raise ValueError(
                f"the new points have {given.shape[1]} columns, but the points of the tree have "
                f"{len(self.center)}: pass points with the same columns"
            )
        return _normalize_or_center(given, self.metric, self.center)

    def with_clusters(self, means: npt.NDArray[np.float32], spreads: Float) -> VectorLinkage:
        """Return the same linkage on clusters instead of points, given the means and spreads of the clusters."""
        other = copy.copy(self)
        other.points, other.spreads = means, spreads
        return other

    def __str__(self) -> str:
        return self.linkage

    def edge_linkages(self, graph: NeighborGraph, weights: Float | None = None) -> EdgeLinkages:
        """Return the linkage of the two points of each edge; ``weights`` are the weights of the points.

        See :func:`agglo.rounds.linkage.edge_linkages`.
        """
        values = graph.weights
        if weights is None:
            values = 2 - 2 * values if self.linkage == "ward" and self.metric == "cosine" else values
        else:
            source = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))
            once = source < graph.indices
            values = values[once]
            if self.linkage == "ward":
                a, b, weight = weights[source[once]], weights[graph.indices[once]], values.astype(np.float64)
                squares = {"cosine": 2 - 2 * weight, "sqeuclidean": weight, "euclidean": weight * weight}
                linkages = 2 * (a * b / (a + b)) * squares[self.metric]
                values = (np.sqrt(linkages) if self.metric == "euclidean" else linkages).astype(np.float32)
        compared = values if weights is None else values.astype(np.float64)
        ends = [float(compared.min(initial=self.farthest)), float(compared.max(initial=self.farthest))]
        return EdgeLinkages(self.kind, graph.metric, graph.n_points, values, *ends)


def _center(points: PointArray, metric: str) -> Float:
    """Return the mean of the points if the metric is a distance, otherwise zeros."""
    center = np.zeros(points.shape[1])
    if metric in ("sqeuclidean", "euclidean"):
        for _, rows in iter_blocks(points):
            center += rows.sum(axis=0, dtype=np.float64) / len(points)
    return center


def _normalize_or_center(points: PointArray, metric: str, center: Float) -> npt.NDArray[np.float32]:
    """Return the points in float32: normalized for cosines, minus ``center`` for distances."""
    prepared = np.empty(points.shape, np.float32)
    for first, rows in iter_blocks(points):
        moved = rows - center
        if metric == "cosine":
            length = np.linalg.norm(moved, axis=1, keepdims=True)
            moved /= np.where(length > 0, length, 1.0)
        largest = np.abs(moved).max(initial=0.0)
        if largest > 1e18:
            raise ValueError(
                f"X holds numbers beyond 1e18, up to {largest:g}, too large for means in float32: scale X down"
            )
        prepared[first : first + len(rows)] = moved
    return prepared


def _lost_edges(graph: NeighborGraph, rounding: Float) -> tuple[float, float]:
    """Return the share of edges that are too short for float32, and the largest rounding error of their points.

    ``rounding`` is the rounding error of each point. An edge of positive length is too short if it is shorter than
    ``CLEAR`` times the rounding error of its point. If a quick check shows that the share is at most ``FEW``, both
    results are 0.
    """
    squared = graph.metric == "sqeuclidean"
    bounds = np.square(CLEAR * rounding) if squared else CLEAR * rounding
    short = graph.quantile_above(0.0, True, FEW)
    if short is None or short >= bounds.max():
        return 0.0, 0.0
    lost = positive = 0
    largest = 0.0
    step = max(1, _EDGES * graph.n_points // len(graph.weights))
    for first in range(0, graph.n_points, step):
        starts = graph.indptr[first : first + step + 1]
        weights = graph.weights[starts[0] : starts[-1]]
        point = np.repeat(np.arange(first, first + len(starts) - 1), np.diff(starts))
        is_lost = (weights > 0) & (weights < bounds[point])
        positive += int(np.count_nonzero(weights > 0))
        lost += int(np.count_nonzero(is_lost))
        largest = max(largest, float(rounding[point[is_lost]].max(initial=0.0)))
    return lost / positive, largest
