"""gHHC: gradient-based hierarchical clustering in hyperbolic space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.cluster.hierarchy
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from agglo.paper.baselines.base import TreeBaseline, hierarchy_from_parents
from agglo.paper.baselines.hkm import draw_seeds, parents_from_top_down
from agglo.paper.baselines.online import center_and_scale
from agglo.paper.validation import check_count, check_nonnegative
from agglo.points.points import PointArray
from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_POINT_RADIUS = 0.6  # distance of points from the center of the unit ball
_NODE_RADIUS, _MAX_NODE_RADIUS = 0.36, 0.57  # initial and maximum distance of nodes from the center of the ball
_TEMPERATURE = 0.05  # temperature of the softmax over common ancestors, whose distances differ by hundredths
_NEAR = 5  # number of nearest neighbours from which the second point of a triple is drawn
_ANCHORS = 20_000  # maximum number of points whose neighbours are searched
_BLOCK = 1024
_TINY = 1e-12


@dataclass(eq=False, repr=False, kw_only=True)
class GHHC(TreeBaseline):
    """Gradient-based hyperbolic hierarchical clustering.

    This is the method of Monath et al. [1]_. Points and inner nodes lie in the unit ball, and inner nodes lie
    closer to its center. The parent of a point or node is the nearest node in hyperbolic distance. If a node is
    not closer to the center than its possible child, a penalty increases this distance. Each gradient step uses
    triples of points. The closest two points of a triple should have a lower common ancestor than all three
    points. The rows of ``X`` are centered and normalized first.

    Parameters
    ----------
    n_clusters : int, optional
        The maximum number of clusters in ``labels_``. By default the tree is cut at the most persistent round.
    n_nodes : int, optional
        The number of inner nodes, at least 2. By default, it is a fifth of the number of points, but at most 1000.
    max_iter : int, default=100
        The number of gradient steps.
    batch_size : int, default=200
        The number of triples of points per step.
    learning_rate : float, default=0.005
        The learning rate of Adam.
    margin : float, default=0.1
        A parent should be closer to the center of the ball than its child, by at least this hyperbolic distance.
    random_state : int, RandomState or None, default=None
        The random seed of the initial nodes and the triples. Pass an integer for reproducible results.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree, whose nodes may have any number of children. The height of a node is the sum of squared distances
        of its points to their mean.
    nodes_ : ndarray of float64 of shape (n_nodes, n_features)
        The positions of the inner nodes in the ball.
    losses_ : ndarray of float64 of shape (max_iter,)
        The mean loss over the triples of each step.
    n_iter_ : int
        The number of gradient steps.

    References
    ----------
    .. [1] N. Monath, M. Zaheer, D. Silva, A. McCallum and A. Ahmed, "Gradient-based Hierarchical Clustering using
       Continuous Representations of Trees in Hyperbolic Space", KDD 2019.

    Examples
    --------
    >>> from agglo.paper.baselines import GHHC
    >>> X = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1], [0.0, 1.1], [1.1, 0.0]]
    >>> GHHC(2, n_nodes=4, random_state=0).fit_predict(X)
    array([0, 0, 1, 1, 0, 1])
    """

    n_nodes: int | None = None
    max_iter: int = 100
    batch_size: int = 200
    learning_rate: float = 0.005
    margin: float = 0.1
    random_state: int | np.random.RandomState | None = None

    def _check(self) -> None:
        if self.n_nodes is not None and check_count("n_nodes", self.n_nodes) < 2:
            raise ValueError("n_nodes=1 is too small for a tree: pass at least 2")
        check_count("max_iter", self.max_iter)
        check_count("batch_size", self.batch_size)
        check_nonnegative("learning_rate", self.learning_rate)
        check_nonnegative("margin", self.margin)

    def _build_tree(self, points: PointArray) -> Hierarchy:
        n = len(points)
        rng = check_random_state(self.random_state)
        rows = _POINT_RADIUS * _normalize(center_and_scale(points)[0].astype(np.float64))
        m = int(self.n_nodes) if self.n_nodes is not None else max(2, min(n // 5, 1000))
        self.nodes_ = initial_nodes(rows, m, rng)
        self.losses_, self.n_iter_ = np.empty(0), 0
        if n >= 3:
            batches = draw_triples(rows, int(self.max_iter), int(self.batch_size), rng)
            self.nodes_, self.losses_ = optimize_nodes(rows, self.nodes_, batches, self.learning_rate, self.margin)
            self.n_iter_ = len(self.losses_)
        about: dict[str, Any] = {
            "method": "ghhc",
            "n_nodes": m,
            "max_iter": int(self.max_iter),
            "batch_size": int(self.batch_size),
            "learning_rate": float(self.learning_rate),
            "margin": float(self.margin),
        }
        return hierarchy_from_parents(_assign_parents(rows, self.nodes_, self.margin), n, points, about)


def initial_nodes(rows: Floats, m: int, rng: np.random.RandomState) -> Floats:
    """Return initial positions of ``m`` nodes: k-means++ seeds, and inner nodes of a tree over these seeds.

    Half of the nodes are seeds. The tree is built by average linkage. Higher nodes of the tree are placed closer
    to the center of the ball.
    """
    group = np.zeros(len(rows), np.int64)
    seeds = np.concatenate(draw_seeds(rows.astype(np.float32), group, (m + 1) // 2, rng)).astype(np.float64)
    sums = list(seeds)
    if len(seeds) > 1:
        for a, b in scipy.cluster.hierarchy.linkage(seeds, "average")[:, :2].astype(np.int64):
            sums.append(sums[a] + sums[b])
    inner = _normalize(np.array(sums[len(seeds) :]).reshape(-1, rows.shape[1]))
    rank = np.arange(len(inner))
    inner *= (np.log2(len(inner) + 1 - rank) / np.log2(len(inner) + 2))[:, None]
    nodes = np.zeros((m, rows.shape[1]))
    nodes[: len(seeds) + len(inner)] = _NODE_RADIUS * np.concatenate([_normalize(seeds), inner])[:m]
    # Add noise, because nodes at the same position would have the same gradient.
    nodes += 1e-3 * rng.standard_normal(nodes.shape) / np.sqrt(rows.shape[1])
    return nodes


def draw_triples(rows: Floats, steps: int, size: int, rng: np.random.RandomState) -> Ints:
    """Draw triples of points for each step: a point, one of its nearest neighbours, and a random point.

    With probability 0.1, the second point is a random point instead of a neighbour. In each triple, the two
    closest points are first.
    """
    n = len(rows)
    anchors = rng.permutation(n)[:_ANCHORS]
    k = min(_NEAR + 1, n)
    near = NearestNeighbors(n_neighbors=k).fit(rows).kneighbors(rows[anchors], return_distance=False)
    drawn = rng.randint(len(anchors), size=(steps, size))
    first = anchors[drawn]
    second = near[drawn, rng.randint(k, size=drawn.shape)]
    second = np.where(rng.random_sample(drawn.shape) < 0.1, rng.randint(n, size=drawn.shape), second)
    found = np.stack([first, second, rng.randint(n, size=drawn.shape)], axis=2)
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    squares = np.stack([((rows[found[..., a]] - rows[found[..., b]]) ** 2).sum(axis=2) for a, b in pairs], axis=2)
    order = np.array([[0, 1, 2], [1, 2, 0], [0, 2, 1]])[squares.argmin(axis=2)]
    return np.take_along_axis(found, order, axis=2)


def optimize_nodes(
    rows: Floats, nodes: Floats, batches: Ints, rate: float, margin: float
) -> tuple[Floats, Floats]:
    """Run one step of Adam per batch, with Riemannian gradients; return the nodes and the loss of each step."""
    mean, variance = np.zeros_like(nodes), np.zeros_like(nodes)
    losses = np.empty(len(batches))
    for step, batch in enumerate(batches, start=1):
        losses[step - 1], gradient = loss_and_gradient(rows[batch.T], nodes, margin)
        gradient *= ((1 - (nodes**2).sum(axis=1, keepdims=True)) ** 2) / 4
        mean = 0.9 * mean + 0.1 * gradient
        variance = 0.999 * variance + 0.001 * gradient**2
        nodes = nodes - rate * (mean / (1 - 0.9**step)) / (np.sqrt(variance / (1 - 0.999**step)) + 1e-8)
        length = np.linalg.norm(nodes, axis=1, keepdims=True)
        nodes *= np.minimum(1.0, _MAX_NODE_RADIUS / np.maximum(length, _TINY))
    return nodes, losses


class Distances(NamedTuple):
    """Distances of points to their possible parent nodes, and intermediate values for the gradient."""

    value: Floats  # hyperbolic distance times penalty
    penalty: Floats  # 1, plus the distance by which the node is too far from the center
    hyperbolic: Floats
    derivative: Floats  # derivative of the hyperbolic distance with respect to its argument
    squares: Floats


def parent_distances(x: Floats, nodes: Floats, margin: float) -> Distances:
    """Compute the distance of each row of ``x`` to each node as its possible parent."""
    rim_x, rim = (1 - (points**2).sum(axis=1) for points in (x, nodes))
    squares = np.maximum((1 - rim_x)[:, None] + (1 - rim) - 2 * (x @ nodes.T), 0.0)
    argument = 2 * squares / (rim_x[:, None] * rim)  # argument of arccosh, minus 1 for precision
    root = np.sqrt(argument * (argument + 2))
    hyperbolic = np.log1p(argument + root)
    penalty = 1 + np.maximum(0.0, _norm(nodes) - _norm(x)[:, None] + margin)
    return Distances(hyperbolic * penalty, penalty, hyperbolic, 1 / np.maximum(root, 1e-6), squares)


def loss_and_gradient(corners: Floats, nodes: Floats, margin: float) -> tuple[float, Floats]:
    """Compute the mean loss of triples of points, and its gradient with respect to the nodes.

    The lowest common ancestor of several points is a softmax over the nodes. The softmax uses the distance of each
    node to the farthest of these points. The two closest points should be closer to the ancestor of the pair than
    to the ancestor of all three points. The third point should be closer to the ancestor of all three points. The
    two ancestors must be different nodes.
    """
    parts = [parent_distances(x, nodes, margin) for x in corners]
    first, second, third = (part.value for part in parts)
    pair = np.maximum(first, second)
    three = np.maximum(pair, third)
    a = _softmax(-pair / _TEMPERATURE)
    excluded = three.copy()
    excluded[np.arange(len(pair)), pair.argmin(axis=1)] = np.inf
    b = _softmax(-excluded / _TEMPERATURE)
    w = a - b
    margins = np.stack([(w * first).sum(axis=1), (w * second).sum(axis=1), -(w * third).sum(axis=1)])
    loss = np.logaddexp(0.0, margins).sum(axis=0).mean()
    push = (1 / (1 + np.exp(-margins)) * np.array([[1], [1], [-1]]))[:, :, None] / len(pair)
    by_w = push[0] * first + push[1] * second + push[2] * third
    by_pair = -a / _TEMPERATURE * (by_w - (a * by_w).sum(axis=1, keepdims=True))
    by_three = b / _TEMPERATURE * (by_w - (b * by_w).sum(axis=1, keepdims=True))
    from_third = third > pair
    by_pair = by_pair + np.where(from_third, 0.0, by_three)
    from_second = second > first
    by_value = (
        push[0] * w + np.where(from_second, 0.0, by_pair),
        push[1] * w + np.where(from_second, by_pair, 0.0),
        push[2] * w + np.where(from_third, by_three, 0.0),
    )
    gradient = np.zeros_like(nodes)
    for x, part, slope in zip(corners, parts, by_value, strict=True):
        gradient += _node_gradient(x, nodes, part, slope)
    return float(loss), gradient


def _node_gradient(x: Floats, nodes: Floats, part: Distances, slope: Floats) -> Floats:
    """Return the gradient of ``sum(slope * distances)`` with respect to the nodes."""
    rim_x, rim = (1 - (points**2).sum(axis=1) for points in (x, nodes))
    pull = 4 * slope * part.penalty * part.derivative / (rim_x[:, None] * rim)
    radial = (pull * (1 + part.squares / rim)).sum(axis=0)
    out = slope * part.hyperbolic * (part.penalty > 1)
    length = np.maximum(np.linalg.norm(nodes, axis=1), _TINY)
    gradient: Floats = (radial + out.sum(axis=0) * 2 / (rim * length))[:, None] * nodes - pull.T @ x
    return gradient


def _normalize(points: Floats) -> Floats:
    """Normalize rows to unit length; zero rows stay zero."""
    unit: Floats = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), _TINY)
    return unit


def _norm(points: Floats) -> Floats:
    """Return the hyperbolic distance of each row from the center of the ball."""
    norm: Floats = 2 * np.arctanh(np.linalg.norm(points, axis=1))
    return norm


def _softmax(values: Floats) -> Floats:
    raised: Floats = np.exp(values - values.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised


def _assign_parents(rows: Floats, nodes: Floats, margin: float) -> Ints:
    """Return the parent of each point and node; children have smaller ids than their parents.

    The parent of a node is the nearest node that is closer to the center of the ball. The points below a node
    become the children of an extra node, so that points and inner nodes are not siblings.
    """
    m = len(nodes)
    nodes = nodes[np.argsort(np.linalg.norm(nodes, axis=1), kind="stable")]
    among = parent_distances(nodes, nodes, margin).value
    among[np.triu_indices(m)] = np.inf
    above = np.concatenate([[-1], among[1:].argmin(axis=1)])
    below = np.concatenate(
        [
            parent_distances(rows[first : first + _BLOCK], nodes, margin).value.argmin(axis=1)
            for first in range(0, len(rows), _BLOCK)
        ]
    )
    return parents_from_top_down(np.concatenate([above, np.arange(m)]), m + below)
