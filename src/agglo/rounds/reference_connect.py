"""Slow reference implementation of merging roots (``connect``) in NumPy; tests compare the fast code with it.

A cluster is a list of points. The linkage of two clusters is computed from their points by its definition. In each
round, all pairs of mutual nearest neighbours merge. The rounds end when no two clusters may merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def merge_roots(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    linkage: str,
    metric: str,
    weights: npt.ArrayLike | None = None,
    cannot_link: Sequence[tuple[int, int]] = (),
) -> dict[frozenset[int], float]:
    """Merge roots by HAC; return a dict from the points of each new cluster to the linkage of its two parts.

    ``labels`` assigns the points to the roots. The linkage is a similarity or a distance, see :func:`link`.
    """
    points = np.asarray(X, np.float64)
    if metric == "cosine":
        points = points / np.linalg.norm(points, axis=1, keepdims=True)
    mass = np.ones(len(points)) if weights is None else np.asarray(weights, np.float64)
    sign = 1 if linkage != "ward" and metric in ("cosine", "dot") else -1
    clusters = sorted((np.flatnonzero(labels == label) for label in np.unique(labels)), key=min)
    merged: dict[frozenset[int], float] = {}
    while True:
        similarity = np.full((len(clusters), len(clusters)), -np.inf)
        for (i, a), (j, b) in combinations(enumerate(clusters), 2):
            if not any((p in a and q in b) or (p in b and q in a) for p, q in cannot_link):
                similarity[i, j] = similarity[j, i] = sign * link(points, mass, a, b, linkage, metric)
        nearest = similarity.argmax(axis=1)  # if tied, the cluster with the smallest point
        pairs = [(i, j) for i, j in enumerate(nearest) if i < j and nearest[j] == i and similarity[i, j] > -np.inf]
        if not pairs:
            return merged
        for i, j in pairs:
            clusters[i] = np.union1d(clusters[i], clusters[j])
            merged[frozenset(clusters[i].tolist())] = float(sign * similarity[i, j])
        clusters = [cluster for i, cluster in enumerate(clusters) if i not in {j for _, j in pairs}]


def link(points: Floats, weights: Floats, a: Ints, b: Ints, linkage: str, metric: str) -> Any:
    """Return the linkage of two clusters: a similarity for ``cosine`` and ``dot``, otherwise a distance.

    Ward's linkage is always a distance.
    """
    if linkage == "exact-average":
        inner = points[a] @ points[b].T
        squares = np.square(points[a][:, None] - points[b]).sum(axis=2)
        return np.average(squares if metric == "sqeuclidean" else inner, weights=np.outer(weights[a], weights[b]))
    u, v = (np.average(points[own], axis=0, weights=weights[own]) for own in (a, b))
    square = np.square(u - v).sum()
    if linkage == "ward":
        square *= 2 / (1 / weights[a].sum() + 1 / weights[b].sum())
    elif metric == "cosine":
        return u @ v / np.sqrt((u @ u) * (v @ v))
    return np.sqrt(square) if metric == "euclidean" else square
