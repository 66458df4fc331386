"""gHHC: a tree whose inner nodes are points of hyperbolic space, moved by gradients."""

from __future__ import annotations

from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.cluster.hierarchy
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from agglo.paper.baselines.base import TreeBaseline, assembled
from agglo.paper.baselines.hkm import k_means_seeds, upside_down
from agglo.paper.baselines.online import centered
from agglo.paper.dpmeans.base import check_count, check_share
from agglo.points.validation import Points
from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SHELL = 0.6  # how far from the middle of the ball points are,
_START, _INSIDE = 0.36, 0.57  # and nodes are, at first and at most
_TEMPERATURE = 0.05  # of the softmax over common ancestors, whose distances differ by hundredths
_NEAR = 5  # nearest neighbours that the close pair of a triple is drawn from
_ANCHORS = 20_000  # points whose neighbours are looked up at most
_BLOCK = 1024
_TINY = 1e-12


class GHHC(TreeBaseline):
    """Gradient-based hyperbolic hierarchical clustering.

    The method of Monath and others [1]_. Points lie near the rim of the unit ball, the inner nodes of the tree
    inside it, and a child's parent is the node that is closest in hyperbolic distance, dearer the less it lies
    nearer to the middle. Nodes move so that of three points the two closest have their lowest common ancestor
    nearer than that of all three. Directions count, not lengths: rows are centred and normalised.

    Parameters
    ----------
    n_clusters : int, optional
        The most clusters of ``labels_``; by default those of the persistent round.
    n_nodes : int, optional
        Number of inner nodes, at least 2; by default a fifth of the points, but no more than 1000.
    max_iter : int, default=100
        Gradient steps.
    batch_size : int, default=200
        Triples of points in a step.
    learning_rate : float, default=0.005
        Of the steps, which are Adam's.
    margin : float, default=0.1
        How much nearer to the middle of the ball than its child a parent should be.
    random_state : int, RandomState or None, default=None
        Where seeds and triples come from. An integer makes results repeatable.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree, of any number of children; the height of a node is the sum of squared distances of its points to
        their mean.
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point.
    nodes_ : ndarray of float64 of shape (n_nodes, n_features)
        Where the inner nodes are in the ball.
    losses_ : ndarray of float64 of shape (max_iter,)
        The mean loss of a triple in each step.
    n_iter_ : int
        Number of steps.
    n_features_in_ : int
        Number of columns of ``X``.

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

    def __init__(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        n_nodes: int | None = None,
        max_iter: int = 100,
        batch_size: int = 200,
        learning_rate: float = 0.005,
        margin: float = 0.1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_nodes = n_nodes
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.margin = margin
        self.random_state = random_state

    def _check(self) -> None:
        if self.n_nodes is not None and check_count("n_nodes", self.n_nodes) < 2:
            raise ValueError("n_nodes=1 makes no tree: pass at least 2")
        check_count("max_iter", self.max_iter)
        check_count("batch_size", self.batch_size)
        check_share("learning_rate", self.learning_rate)
        check_share("margin", self.margin)

    def _tree(self, points: Points) -> Hierarchy:
        n = len(points)
        chance = check_random_state(self.random_state)
        rows = _SHELL * _unit(centered(points)[0].astype(np.float64))
        m = int(self.n_nodes) if self.n_nodes is not None else max(2, min(n // 5, 1000))
        self.nodes_ = first_nodes(rows, m, chance)
        self.losses_, self.n_iter_ = np.empty(0), 0
        if n >= 3:
            batches = triples(rows, int(self.max_iter), int(self.batch_size), chance)
            self.nodes_, self.losses_ = descend(rows, self.nodes_, batches, self.learning_rate, self.margin)
            self.n_iter_ = len(self.losses_)
        about: dict[str, Any] = {
            "method": "ghhc",
            "n_nodes": m,
            "max_iter": int(self.max_iter),
            "batch_size": int(self.batch_size),
            "learning_rate": float(self.learning_rate),
            "margin": float(self.margin),
        }
        return assembled(_parents(rows, self.nodes_, self.margin), n, points, about)


def first_nodes(rows: Floats, m: int, chance: np.random.RandomState) -> Floats:
    """Half of the nodes are points, seeds of k-means; the others stand over them as in a tree of average linkage.

    The higher in that tree, the nearer to the middle of the ball.
    """
    group = np.zeros(len(rows), np.int64)
    seeds = np.concatenate(k_means_seeds(rows.astype(np.float32), group, (m + 1) // 2, chance)).astype(np.float64)
    sums = list(seeds)
    if len(seeds) > 1:
        for a, b in scipy.cluster.hierarchy.linkage(seeds, "average")[:, :2].astype(np.int64):
            sums.append(sums[a] + sums[b])
    over = _unit(np.array(sums[len(seeds) :]).reshape(-1, rows.shape[1]))
    rank = np.arange(len(over))
    over *= (np.log2(len(over) + 1 - rank) / np.log2(len(over) + 2))[:, None]
    nodes = np.zeros((m, rows.shape[1]))
    nodes[: len(seeds) + len(over)] = _START * np.concatenate([_unit(seeds), over])[:m]
    # Nodes in one place would stay together for ever.
    nodes += 1e-3 * chance.standard_normal(nodes.shape) / np.sqrt(rows.shape[1])
    return nodes


def triples(rows: Floats, steps: int, size: int, chance: np.random.RandomState) -> Ints:
    """Triples of points, the closest two first, for each step: a point, mostly one near it, and any other."""
    n = len(rows)
    anchors = chance.permutation(n)[:_ANCHORS]
    k = min(_NEAR + 1, n)
    near = NearestNeighbors(n_neighbors=k).fit(rows).kneighbors(rows[anchors], return_distance=False)
    drawn = chance.randint(len(anchors), size=(steps, size))
    first = anchors[drawn]
    second = near[drawn, chance.randint(k, size=drawn.shape)]
    second = np.where(chance.random_sample(drawn.shape) < 0.1, chance.randint(n, size=drawn.shape), second)
    found = np.stack([first, second, chance.randint(n, size=drawn.shape)], axis=2)
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    squares = np.stack([((rows[found[..., a]] - rows[found[..., b]]) ** 2).sum(axis=2) for a, b in pairs], axis=2)
    order = np.array([[0, 1, 2], [1, 2, 0], [0, 2, 1]])[squares.argmin(axis=2)]
    return np.take_along_axis(found, order, axis=2)


def descend(rows: Floats, nodes: Floats, batches: Ints, rate: float, margin: float) -> tuple[Floats, Floats]:
    """The nodes after a step for each batch, by Adam on Riemannian gradients, and the mean loss of each."""
    slope, spread = np.zeros_like(nodes), np.zeros_like(nodes)
    losses = np.empty(len(batches))
    for step, batch in enumerate(batches, start=1):
        losses[step - 1], gradient = loss_and_gradient(rows[batch.T], nodes, margin)
        gradient *= ((1 - (nodes**2).sum(axis=1, keepdims=True)) ** 2) / 4
        slope = 0.9 * slope + 0.1 * gradient
        spread = 0.999 * spread + 0.001 * gradient**2
        nodes = nodes - rate * (slope / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
        length = np.linalg.norm(nodes, axis=1, keepdims=True)
        nodes *= np.minimum(1.0, _INSIDE / np.maximum(length, _TINY))
    return nodes, losses


class Distances(NamedTuple):
    """How far points are from nodes as their parents, and what the gradient of that needs."""

    value: Floats  # hyperbolic distance, times 1 and what the node is too far out
    dearer: Floats  # that factor
    hyperbolic: Floats
    stretch: Floats  # the derivative of the hyperbolic distance by its argument
    squares: Floats


def parent_distances(x: Floats, nodes: Floats, margin: float) -> Distances:
    """Of each row of ``x`` to each node."""
    rim_x, rim = (1 - (points**2).sum(axis=1) for points in (x, nodes))
    squares = np.maximum((1 - rim_x)[:, None] + (1 - rim) - 2 * (x @ nodes.T), 0.0)
    argument = 2 * squares / (rim_x[:, None] * rim)  # less 1, which keeps small ones exact
    root = np.sqrt(argument * (argument + 2))
    hyperbolic = np.log1p(argument + root)
    dearer = 1 + np.maximum(0.0, _norm(nodes) - _norm(x)[:, None] + margin)
    return Distances(hyperbolic * dearer, dearer, hyperbolic, 1 / np.maximum(root, 1e-6), squares)


def loss_and_gradient(corners: Floats, nodes: Floats, margin: float) -> tuple[float, Floats]:
    """The mean loss of triples, given by their three corners, and its gradient by the nodes.

    A node is the common ancestor of points as far as it is near to the farthest of them: a softmax. The closest
    pair shall expect it nearer than the ancestor of all three, for which the pair's own is out of the question,
    and the third point the other way round.
    """
    parts = [parent_distances(x, nodes, margin) for x in corners]
    first, second, third = (part.value for part in parts)
    pair = np.maximum(first, second)
    three = np.maximum(pair, third)
    a = _softmax(-pair / _TEMPERATURE)
    elsewhere = three.copy()
    elsewhere[np.arange(len(pair)), pair.argmin(axis=1)] = np.inf
    b = _softmax(-elsewhere / _TEMPERATURE)
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
        gradient += _by_nodes(x, nodes, part, slope)
    return float(loss), gradient


def _by_nodes(x: Floats, nodes: Floats, part: Distances, slope: Floats) -> Floats:
    """The gradient by the nodes of the sum of ``slope`` times the distances."""
    rim_x, rim = (1 - (points**2).sum(axis=1) for points in (x, nodes))
    pull = 4 * slope * part.dearer * part.stretch / (rim_x[:, None] * rim)
    radial = (pull * (1 + part.squares / rim)).sum(axis=0)
    out = slope * part.hyperbolic * (part.dearer > 1)
    length = np.maximum(np.linalg.norm(nodes, axis=1), _TINY)
    gradient: Floats = (radial + out.sum(axis=0) * 2 / (rim * length))[:, None] * nodes - pull.T @ x
    return gradient


def _unit(points: Floats) -> Floats:
    """The rows at length 1; those of zeros stay."""
    unit: Floats = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), _TINY)
    return unit


def _norm(points: Floats) -> Floats:
    """The hyperbolic distance from the middle of the ball."""
    norm: Floats = 2 * np.arctanh(np.linalg.norm(points, axis=1))
    return norm


def _softmax(values: Floats) -> Floats:
    raised: Floats = np.exp(values - values.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised


def _parents(rows: Floats, nodes: Floats, margin: float) -> Ints:
    """The tree of nodes and points: parents, children first.

    A node's parent is the closest of those nearer to the middle. Its own points are below a node of their own,
    beside its inner children.
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
    return upside_down(np.concatenate([above, np.arange(m)]), m + below)
