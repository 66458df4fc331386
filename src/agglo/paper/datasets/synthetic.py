"""Generate data with known classes: a Dirichlet-process mixture, and separated data of the paper's theorems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from agglo.neighbors.graph import NeighborGraph
from agglo.paper.datasets.dataset import Dataset, encode_classes


def dp_mixture(
    n_points: int,
    n_features: int = 10,
    *,
    concentration: float = 5.0,
    separation: float = 3.0,
    random_state: int = 0,
) -> Dataset:
    """Draw points from a Dirichlet-process mixture of Gaussians, as in the paper's comparison with HAC.

    Class probabilities come from stick-breaking: each class takes a Beta(1, ``concentration``) share of the
    remaining probability. The center of a class is Gaussian with standard deviation ``separation`` in each column.
    The points of a class are Gaussian around its center, with standard deviation 1.

    Parameters
    ----------
    n_points, n_features : int
        The shape of ``X``.
    concentration : float, default=5.0
        The concentration of the Dirichlet process. Larger values give more classes: their number is about
        ``concentration * log(n_points / concentration)``.
    separation : float, default=3.0
        The standard deviation of the class centers, relative to the standard deviation of points within a class.
    random_state : int, default=0
        The random seed.

    Examples
    --------
    >>> from agglo.paper.datasets import dp_mixture
    >>> dp_mixture(200, 2, random_state=1)
    Dataset(dp-mixture: 200 points, 2 columns, 20 classes, euclidean)
    """
    for name, value in [("n_points", n_points), ("n_features", n_features)]:
        if value < 1:
            raise ValueError(f"{name}={value} must be at least 1")
    for name, number in [("concentration", concentration), ("separation", separation)]:
        if not 0 < number < np.inf:
            raise ValueError(f"{name}={number} must be positive and finite")
    rng = np.random.default_rng(random_state)
    draws = rng.uniform(size=n_points)
    left = np.ones(1)  # the remaining probability after each class
    while 1 - left[-1] <= draws.max():
        left = np.append(left, left[-1] * rng.beta(concentration, 1.0, size=64).cumprod())
    y = encode_classes(np.searchsorted(1 - left[1:], draws, side="right"))
    centers = separation * rng.normal(size=(int(y.max()) + 1, n_features))
    return Dataset("dp-mixture", centers[y] + rng.normal(size=(n_points, n_features)), y, "euclidean")


def delta_separated(
    sizes: Sequence[int], delta: float = 6.0, *, squared: bool = False, random_state: int = 0
) -> Dataset:
    """Draw δ-separated points: within distance 1 of class centers that are at least ``delta`` apart.

    The paper's first theorem holds for such points. It assumes the complete graph, and a ``delta`` of at least 6
    for distances, or 30 for squared distances. Then one round of SCC with doubling thresholds ends with the true
    classes as its clusters.

    Parameters
    ----------
    sizes : sequence of int
        The size of each class.
    delta : float, default=6.0
        The minimum distance of two centers, relative to the maximum distance of a point to its center.
    squared : bool, default=False
        Whether ``delta`` is a ratio of squared distances.
    random_state : int, default=0
        The random seed.

    Examples
    --------
    >>> from agglo.paper.datasets import delta_separated
    >>> delta_separated([3, 4])
    Dataset(delta-separated: 7 points, 3 columns, 2 classes, euclidean)
    """
    y = _classes_of_sizes(sizes)
    if not 0 < delta < np.inf:
        raise ValueError(f"delta={delta} must be positive and finite")
    rng = np.random.default_rng(random_state)
    k = len(sizes)
    centers = np.zeros(
        (k, k + 1)
    )  # one axis per center, and one more, so that the points of a single class are not collinear
    apart = np.sqrt(delta) if squared else delta
    centers[np.arange(k), np.arange(k)] = apart / np.sqrt(2) * (1 + 1e-9)
    offsets = rng.normal(size=(len(y), k + 1))
    offsets *= rng.uniform(0, 1, (len(y), 1)) / np.linalg.norm(offsets, axis=1, keepdims=True)
    return Dataset("delta-separated", centers[y] + offsets, y, "sqeuclidean" if squared else "euclidean")


def model_separated(sizes: Sequence[int], *, random_state: int = 0) -> tuple[NeighborGraph, npt.NDArray[np.int64]]:
    """Build a complete graph whose classes are model-based separated; return it and the class of each point.

    Two points of one class have a random distance from 1 to 2. Two points of different classes have a random
    distance from 3 to 4. So for average, single and complete linkage, two subsets of the same class are closer
    than subsets of two classes. This is the paper's definition with a complete latent graph per class. By the
    paper's proposition, the tree of HAC contains the true classes. For some thresholds, the tree of SCC also
    contains them.

    Parameters
    ----------
    sizes : sequence of int
        The size of each class.
    random_state : int, default=0
        The random seed.

    Examples
    --------
    >>> from agglo.paper.datasets import model_separated
    >>> graph, y = model_separated([2, 3])
    >>> graph.n_edges, y
    (10, array([0, 0, 1, 1, 1]))
    """
    y = _classes_of_sizes(sizes)
    rng = np.random.default_rng(random_state)
    i, j = np.triu_indices(len(y), 1)
    distances = np.where(y[i] == y[j], rng.uniform(1, 2, len(i)), rng.uniform(3, 4, len(i)))
    return NeighborGraph.from_edges(i, j, distances, n_points=len(y), kind="distance"), y


def _classes_of_sizes(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    if len(sizes) == 0 or min(sizes) < 1:
        raise ValueError(f"sizes={list(sizes)} must have one size of at least 1 per class, and at least one class")
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
