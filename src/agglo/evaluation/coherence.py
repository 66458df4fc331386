"""Measure the coherence of clusters: rate sampled pairs of points by known classes or by held-out vectors."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo._validation import check_labels, check_positive
from agglo.points.points import check_points

Ints = npt.NDArray[np.int64]
Sample = Literal["clusters", "points"]

_N_RANDOM_PAIRS = 20_000  # number of random pairs of points; quantiles of their cosines are the thresholds


class Coherence(NamedTuple):
    """Ratings of sampled pairs of points; see :func:`coherence`.

    Examples
    --------
    >>> from agglo import metrics
    >>> metrics.coherence([0, 0, 1, 1], y=["a", "a", "b", "b"]).coherent
    1.0
    """

    coherent: float
    """The share of pairs with the rating 1 (coherent)."""
    neutral: float
    """The share of pairs with the rating 0 (neutral)."""
    incoherent: float
    """The share of pairs with the rating -1 (incoherent)."""
    pairs: Ints
    """The indices of two points of one cluster, the head and the tail, with one row per pair."""
    ratings: npt.NDArray[np.int8]
    """The rating of each pair: 1, 0 or -1."""


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
    """Rate sampled pairs of points of one cluster as coherent, neutral or incoherent.

    In the SCC paper, people rated pairs of web queries as -1, 0 or 1. One (head, tail) pair was drawn from each of
    about 1200 random clusters. Here, known classes or held-out vectors replace the people.

    Parameters
    ----------
    labels : array-like of shape (n_points,)
        The cluster of each point, from 0 to k - 1. Points with the label -1 are in no cluster. Only clusters of at
        least two points are sampled.
    y : array-like of shape (n_points,) or (n_levels, n_points)
        Known classes. A pair of points with the same class is coherent. Any other pair is incoherent. If there are
        several levels of classes, order them from fine to coarse. A pair that has the same class only at a coarser
        level is neutral.
    X : array-like of shape (n_points, n_features)
        Held-out vectors, which were not used for the clustering. A pair is rated by the cosine of its vectors. The
        thresholds are two quantiles of the cosines of random pairs. If the cosine is above the second quantile,
        the pair is coherent. If it is not above the first quantile, the pair is incoherent.
    weights : array-like of shape (n_points,), optional
        The frequency of each point. If given, the head of a pair is the most frequent point of the cluster.
        Otherwise the head is a random point of the cluster. The tail is another random point of the cluster.
    sample : {"clusters", "points"}
        ``"clusters"`` samples random clusters and one pair from each, as in the SCC paper. ``"points"`` samples
        random points and pairs each with another point of its cluster. So large clusters have more influence. The
        two results differ if a clustering has many small clusters of outliers.
    n_pairs : int
        The maximum number of pairs to rate.
    quantiles : pair of float
        The two quantiles of the cosines of random pairs that are the thresholds. They are used only with ``X``.
    random_state : int
        The random seed of the samples.

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
        raise ValueError("coherence is rated by classes or by vectors: pass exactly one of y and X")
    low, high = quantiles
    if not 0 <= low <= high <= 1:
        raise ValueError(
            f"quantiles={quantiles} are not in order or not from 0 to 1: pass two numbers, such as (0.95, 0.999)"
        )
    if sample not in ("clusters", "points"):
        raise ValueError(f"sample={sample!r} is unknown: pass 'clusters' or 'points'")
    rng = np.random.default_rng(random_state)
    pairs = _sample_pairs(clusters, size, weights, sample, check_positive("n_pairs", n_pairs), rng)
    if y is not None:
        ratings = _rate_by_classes(y, pairs, len(given))
    else:
        ratings = _rate_by_vectors(X, pairs, len(given), low, high, rng)
    coherent, neutral, incoherent = (float(np.mean(ratings == rating)) for rating in (1, 0, -1))
    return Coherence(coherent, neutral, incoherent, pairs, ratings)


def _sample_pairs(
    clusters: Ints, size: Ints, weights: Any, sample: Sample, n_pairs: int, rng: np.random.Generator
) -> Ints:
    large = np.flatnonzero(size > 1)
    if not len(large):
        raise ValueError("no cluster has two points, so there is no pair to rate: pass a coarser clustering")
    # Sort the points by cluster, in random order within each cluster.
    members = rng.permutation(len(clusters))
    members = members[np.argsort(clusters[members], kind="stable")]
    if sample == "clusters":
        chosen = rng.permutation(large)[:n_pairs]
        first = np.searchsorted(clusters[members], chosen)
        heads, tails = members[first], members[first + 1]
    else:
        places = rng.permutation(np.flatnonzero(np.isin(clusters[members], large)))[:n_pairs]
        chosen = clusters[members[places]]
        first = np.searchsorted(clusters[members], chosen)
        others = first + (places - first + rng.integers(1, size[chosen])) % size[chosen]
        heads, tails = members[others], members[places]
    if weights is not None:
        given = np.asarray(weights, np.float64)
        if given.shape != clusters.shape or not np.isfinite(given).all():
            raise ValueError(f"weights have shape {given.shape} or are not finite: pass one number per point")
        by_weight = np.lexsort((-given, clusters))
        best = by_weight[np.searchsorted(clusters[by_weight], chosen)]
        heads, tails = best, np.where(tails == best, heads, tails)
    return np.column_stack([heads, tails]).astype(np.int64)


def _rate_by_classes(y: npt.ArrayLike, pairs: Ints, n: int) -> npt.NDArray[np.int8]:
    levels = np.asarray(y)
    levels = levels[None] if levels.ndim == 1 else levels
    if levels.ndim != 2 or levels.shape[1] != n:
        raise ValueError(
            f"y has shape {np.shape(y)}: pass one class for each of {n} points, or one row of classes per level"
        )
    same = levels[:, pairs[:, 0]] == levels[:, pairs[:, 1]]
    return np.where(same[0], 1, np.where(same.any(axis=0), 0, -1)).astype(np.int8)


def _rate_by_vectors(
    X: Any, pairs: Ints, n: int, low: float, high: float, rng: np.random.Generator
) -> npt.NDArray[np.int8]:
    points = check_points(X, half=True)
    if len(points) != n:
        raise ValueError(f"X has {len(points)} points, but there are {n} labels: pass one vector per point")
    left = rng.integers(0, n, _N_RANDOM_PAIRS)
    right = (left + rng.integers(1, n, _N_RANDOM_PAIRS)) % n  # a random point other than the left point
    low_cosine, high_cosine = np.quantile(_cosines(points, left, right), [low, high])
    values = _cosines(points, pairs[:, 0], pairs[:, 1])
    return np.where(values > high_cosine, 1, np.where(values <= low_cosine, -1, 0)).astype(np.int8)


def _cosines(points: npt.NDArray[Any], left: Ints, right: Ints) -> npt.NDArray[np.float64]:
    a, b = points[left].astype(np.float64), points[right].astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = np.einsum("ij,ij->i", a, b)
    cosines: npt.NDArray[np.float64] = np.divide(products, lengths, out=np.zeros(len(products)), where=lengths > 0)
    return cosines
