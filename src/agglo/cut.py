"""Cuts: rules that choose one flat clustering out of a hierarchy."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from agglo.tree import Hierarchy


def cut(
    tree: Hierarchy,
    n_clusters: SupportsIndex | None = None,
    *,
    round: SupportsIndex | None = None,
    height: SupportsFloat | None = None,
) -> npt.NDArray[np.int64]:
    """Labels of the clusters that one rule chooses; see :meth:`agglo.Hierarchy.cut`."""
    given = {"n_clusters": n_clusters, "round": round, "height": height}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        got = " and ".join(named) if named else "none"
        raise ValueError(f"a cut follows one rule, got {got}: pass exactly one of {', '.join(given)}")
    if n_clusters is not None:
        return tree.labels(round=closest_round(tree, n_clusters))
    if round is not None:
        return tree.labels(round=round)
    assert height is not None
    return tree.partition(up_to_height(tree, height))


def closest_round(tree: Hierarchy, n_clusters: SupportsIndex) -> int:
    """The round whose number of clusters is closest to ``n_clusters``; the finer of two equally close."""
    try:
        wanted = operator.index(n_clusters)
    except TypeError:
        raise TypeError(f"n_clusters={n_clusters!r} is not a number of clusters: pass an integer") from None
    if not 1 <= wanted <= tree.n_leaves:
        raise ValueError(
            f"n_clusters={wanted} is impossible: the tree has {tree.n_leaves} leaves, "
            f"so pass a number from 1 to {tree.n_leaves}"
        )
    counts = np.concatenate(([tree.n_leaves], tree.rounds.after))  # strictly decreasing
    return int(np.abs(counts - wanted).argmin())


def up_to_height(tree: Hierarchy, height: SupportsFloat) -> npt.NDArray[np.bool_]:
    """Which nodes are merges of at most ``height``; the root of a forest is none, whatever its height."""
    try:
        limit = float(height)
    except (TypeError, ValueError):
        raise TypeError(f"height={height!r} is not a number") from None
    if math.isnan(limit):
        raise ValueError("height=nan cuts nowhere: pass a number (heights are distances, 0 at the leaves)")
    return (tree.height <= limit) & (tree.round <= len(tree.rounds))
