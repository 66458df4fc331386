"""How coherent clusters are, by pairs out of each: what people were asked, answered by labels or vectors."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo._validation import check_positive
from agglo.points.validation import check_labels, check_points

Ints = npt.NDArray[np.int64]
Sample = Literal["clusters", "points"]

_BACKGROUND = 20_000  # pairs of any points that those of clusters are compared with


class Coherence(NamedTuple):
    """The ratings of a sample of clusters."""

    coherent: float
    """The share of pairs that belong together."""
    neutral: float
    incoherent: float
    """The share of pairs that do not."""
    pairs: Ints
    """The pairs, a row each: the head and the tail of a cluster."""
    ratings: npt.NDArray[np.int8]
    """A rating a pair: 1, 0 or -1."""


def coherence(
    labels: npt.ArrayLike,
    *,
    y: npt.ArrayLike | None = None,
    X: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    sample: Sample = "clusters",
    n_pairs: SupportsIndex = 1200,
    quantiles: tuple[float, float] = (0.95, 0.999),
    random_state: int = 0,
) -> Coherence:
    """Shares of clusters whose head and tail are coherent, neutral and incoherent.

    The paper had people rate a (head, tail) pair of queries from each of about 1200 random clusters, from -1 to 1.
    Here labels rate the pairs where there are any, else vectors that the clustering did not see.

    Parameters
    ----------
    labels : array-like of shape (n_points,)
        The cluster of each point, 0 to k - 1; -1 for a point of none. Clusters of two points or more are sampled.
    y : array-like of shape (n_points,) or (n_levels, n_points)
        Known classes. Points of one class are coherent, others incoherent. With more levels, from fine to coarse,
        points that share a class only at a level after the first are neutral.
    X : array-like of shape (n_points, n_features)
        Held-out vectors, compared by cosine. A pair is incoherent if it is no closer than the first of
        ``quantiles`` of random pairs of points, and coherent if it is closer than the second.
    weights : array-like of shape (n_points,), optional
        How frequent each point is: the head of a cluster is then its most frequent point, else a random one. The
        tail is a random other one.
    sample : {"clusters", "points"}
        Whether a pair is of a random cluster, as in the paper, or has a random point, so that large clusters count
        for more. They differ where one clustering leaves outliers to small clusters and another spreads them.
    n_pairs : int
        How many pairs are rated, at most.
    quantiles : pair of float
        For ``X``: which shares of random pairs are farther apart.
    random_state : int
        The seed of the samples.

    Examples
    --------
    >>> from agglo import metrics
    >>> labels = [0, 0, 0, 1, 1, 2, 2, 3]
    >>> found = metrics.coherence(labels, y=["a", "a", "a", "b", "b", "a", "b", "c"])
    >>> f"{found.coherent:.2f} {found.neutral:.2f} {found.incoherent:.2f}"
    '0.67 0.00 0.33'
    """
    given = np.asarray(labels)
    clusters, size = check_labels(given, len(given), "labels")
    if (y is None) == (X is None):
        raise ValueError("coherence is rated by classes or by vectors: pass one of y and X")
    low, high = quantiles
    if not 0 <= low <= high <= 1:
        raise ValueError(
            f"quantiles={quantiles} are no shares in order: pass two numbers from 0 to 1, such as 0.95, 0.999"
        )
    if sample not in ("clusters", "points"):
        raise ValueError(f"sample={sample!r} is unknown: pass 'clusters' or 'points'")
    rng = np.random.default_rng(random_state)
    pairs = _pairs(clusters, size, weights, sample, check_positive("n_pairs", n_pairs), rng)
    ratings = (
        _by_class(y, pairs, len(given)) if y is not None else _by_vectors(X, pairs, len(given), low, high, rng)
    )
    coherent, neutral, incoherent = (float(np.mean(ratings == rating)) for rating in (1, 0, -1))
    return Coherence(coherent, neutral, incoherent, pairs, ratings)


def _pairs(clusters: Ints, size: Ints, weights: Any, sample: Sample, most: int, rng: np.random.Generator) -> Ints:
    large = np.flatnonzero(size > 1)
    if not len(large):
        raise ValueError("no cluster has two points, so there is no pair to rate: pass a coarser clustering")
    # The points of each cluster side by side, in a random order.
    members = rng.permutation(len(clusters))
    members = members[np.argsort(clusters[members], kind="stable")]
    if sample == "clusters":
        chosen = rng.permutation(large)[:most]
        first = np.searchsorted(clusters[members], chosen)
        heads, tails = members[first], members[first + 1]
    else:
        places = rng.permutation(np.flatnonzero(np.isin(clusters[members], large)))[:most]
        chosen = clusters[members[places]]
        first = np.searchsorted(clusters[members], chosen)
        others = first + (places - first + rng.integers(1, size[chosen])) % size[chosen]
        heads, tails = members[others], members[places]
    if weights is not None:
        given = np.asarray(weights, np.float64)
        if given.shape != clusters.shape or not np.isfinite(given).all():
            raise ValueError(f"weights are of shape {given.shape} or not finite: pass a number for each point")
        by_weight = np.lexsort((-given, clusters))
        best = by_weight[np.searchsorted(clusters[by_weight], chosen)]
        heads, tails = best, np.where(tails == best, heads, tails)
    return np.column_stack([heads, tails]).astype(np.int64)


def _by_class(y: npt.ArrayLike, pairs: Ints, n: int) -> npt.NDArray[np.int8]:
    levels = np.asarray(y)
    levels = levels[None] if levels.ndim == 1 else levels
    if levels.ndim != 2 or levels.shape[1] != n:
        raise ValueError(f"y is of shape {np.shape(y)}: pass a class for each of {n} points, or levels of them")
    same = levels[:, pairs[:, 0]] == levels[:, pairs[:, 1]]
    return np.where(same[0], 1, np.where(same.any(axis=0), 0, -1)).astype(np.int8)


def _by_vectors(
    X: Any, pairs: Ints, n: int, low: float, high: float, rng: np.random.Generator
) -> npt.NDArray[np.int8]:
    points = check_points(X, half=True)
    if len(points) != n:
        raise ValueError(f"X has {len(points)} points, but there are {n} labels: pass a vector for each")
    left = rng.integers(0, n, _BACKGROUND)
    right = (left + rng.integers(1, n, _BACKGROUND)) % n  # another point
    low_, high_ = np.quantile(_cosines(points, left, right), [low, high])
    values = _cosines(points, pairs[:, 0], pairs[:, 1])
    return np.where(values > high_, 1, np.where(values <= low_, -1, 0)).astype(np.int8)


def _cosines(points: npt.NDArray[Any], left: Ints, right: Ints) -> npt.NDArray[np.float64]:
    a, b = points[left].astype(np.float64), points[right].astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = np.einsum("ij,ij->i", a, b)
    cosines: npt.NDArray[np.float64] = np.divide(products, lengths, out=np.zeros(len(products)), where=lengths > 0)
    return cosines
