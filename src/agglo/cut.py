"""Cuts: rules that choose one flat clustering out of a hierarchy."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Literal, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from agglo.tree import Hierarchy

RoundRule = Literal["persistent"]
ROUND_RULES = ("persistent",)

_LEAST = 1e-3  # of the closeness at height 0: as far as the default thresholds go


def cut(
    tree: Hierarchy,
    n_clusters: SupportsIndex | None = None,
    *,
    round: SupportsIndex | RoundRule | None = None,
    height: SupportsFloat | None = None,
) -> npt.NDArray[np.int64]:
    """Labels of the clusters that one rule chooses; see :meth:`agglo.Hierarchy.cut`."""
    check_rule(tree.n_leaves, n_clusters, round, height)
    if height is not None:
        return tree.partition(up_to_height(tree, height))
    return tree.labels(round=chosen_round(tree, n_clusters, round))


def check_rule(
    n_leaves: int,
    n_clusters: SupportsIndex | None,
    round: SupportsIndex | RoundRule | None,
    height: SupportsFloat | None,
) -> None:
    """Raise unless exactly one rule is given, and one that makes sense for a tree of ``n_leaves``."""
    given = {"n_clusters": n_clusters, "round": round, "height": height}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        got = " and ".join(named) if named else "none"
        raise ValueError(f"a cut follows one rule, got {got}: pass exactly one of {', '.join(given)}")
    if n_clusters is not None:
        number_of_clusters("n_clusters", n_clusters, n_leaves)
    elif isinstance(round, str) and round not in ROUND_RULES:
        raise ValueError(f"round={round!r} is unknown: pass an integer, or one of {', '.join(ROUND_RULES)}")
    elif round is not None and not isinstance(round, str) and not hasattr(round, "__index__"):
        raise TypeError(f"round={round!r} is not a round: pass an integer")
    elif height is not None:
        _limit(height)


def chosen_round(
    tree: Hierarchy, n_clusters: SupportsIndex | None, round: SupportsIndex | RoundRule | None
) -> int:
    """The round that ``n_clusters`` or ``round`` asks for, whichever is given."""
    if n_clusters is not None:
        return closest_round(tree, n_clusters)
    if isinstance(round, str):
        return persistent_round(tree)
    assert round is not None
    return round_number(tree, round)


def round_number(tree: Hierarchy, round: SupportsIndex) -> int:
    """The number of a round, from 0 to the last, where negative ones count from the end."""
    last = len(tree.rounds)
    try:
        index = operator.index(round)
    except TypeError:
        raise TypeError(f"round={round!r} is not a round: pass an integer") from None
    if not -last - 1 <= index <= last:
        raise IndexError(
            f"round={index} is out of range: the tree has {last} rounds, so pass a number from 0 "
            f"(single points) to {last}, or from -1 (the last) to {-last - 1}"
        )
    return index if index >= 0 else index + last + 1


def closest_round(tree: Hierarchy, n_clusters: SupportsIndex) -> int:
    """The round whose number of clusters is closest to ``n_clusters``; the finer of two equally close."""
    wanted = number_of_clusters("n_clusters", n_clusters, tree.n_leaves)
    counts = np.concatenate(([tree.n_leaves], tree.rounds.after))  # strictly decreasing
    return int(np.abs(counts - wanted).argmin())


def persistent_round(tree: Hierarchy) -> int:
    """The round near whose number of clusters the merging stays longest.

    1. A round stays from the height that it reached until that which the next one reaches (the last of a
       forest: until the root's), on the scale of ``-log(1 - h / H)``, ``H`` being the height of a pair without
       an edge: what is lost of closeness in equal ratios, as geometric thresholds of similarities go. If such
       pairs are ignored, ``H`` is the height of similarity 0, and heights of distances are taken as they are.
    2. The stay counts in proportion to the points that are in clusters of two or more by then.
    3. The number of clusters is the effective one, the exponential of the entropy of the clusters' shares of
       the points, which stragglers hardly change.
    4. The score of a round is the sum of the stays of all rounds, each times the ratio of the smaller to the
       larger number of clusters of the two. The highest wins, and the coarser of equals.

    Single points and one cluster for all are no answers, unless there is no round between them: then it is the
    last round.
    """
    n, last = tree.n_leaves, len(tree.rounds)
    candidates = np.flatnonzero(tree.rounds.after > 1) + 1
    if len(candidates) == 0:
        return last
    reached = np.zeros(last + 2)  # one more, for the explicit root of a forest
    np.maximum.at(reached, tree.round, tree.height)
    ends = tree.round[tree.parent[:-1]]  # the round that took up a node, for all but the root
    together = np.cumsum(np.bincount(ends[:n], minlength=last + 2))[: last + 1] / n
    stays = np.diff(_time(tree, np.maximum.accumulate(reached))) * together
    information = tree.size * np.log(tree.size)
    made = np.bincount(tree.round, information, last + 2)
    gone = np.bincount(ends, information[:-1], last + 2)
    clusters = n / np.exp(np.cumsum(made - gone)[: last + 1] / n)
    finer = np.cumsum(stays / clusters)
    coarser = np.cumsum((stays * clusters)[::-1])[::-1] - stays * clusters
    scores = (clusters * finer + coarser / clusters)[candidates]
    return int(candidates[len(scores) - 1 - scores[::-1].argmax()])


def _time(tree: Hierarchy, heights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Where heights stand on the scale of :func:`persistent_round`.

    The average over all pairs loses closeness in proportion as clusters grow, for most of their pairs have no
    edge. So heights crowd below that of no edge, and it is equal ratios of closeness that are equal steps.
    """
    missing = tree.about.get("missing", "ignore")
    farthest = 0.0 if missing == "ignore" else float(missing)
    if tree.about.get("kind") == "similarity":
        farthest = float(tree.about["origin"]) - farthest
    if farthest <= 0:
        return heights
    closeness: npt.NDArray[np.float64] = np.clip(1 - heights / farthest, _LEAST, 1.0)
    return -np.log(closeness)


def up_to_height(tree: Hierarchy, height: SupportsFloat) -> npt.NDArray[np.bool_]:
    """Which nodes are merges of at most ``height``; the root of a forest is none, whatever its height."""
    return (tree.height <= _limit(height)) & (tree.round <= len(tree.rounds))


def number_of_clusters(name: str, given: SupportsIndex, n_leaves: int) -> int:
    """``given`` as an integer, if a tree of ``n_leaves`` can have so many clusters at all."""
    try:
        wanted = operator.index(given)
    except TypeError:
        raise TypeError(f"{name}={given!r} is not a number of clusters: pass an integer") from None
    if not 1 <= wanted <= n_leaves:
        raise ValueError(
            f"{name}={wanted} is impossible: the tree has {n_leaves} leaves, so pass a number from 1 to {n_leaves}"
        )
    return wanted


def _limit(height: SupportsFloat) -> float:
    try:
        limit = float(height)
    except (TypeError, ValueError):
        raise TypeError(f"height={height!r} is not a number") from None
    if math.isnan(limit):
        raise ValueError("height=nan cuts nowhere: pass a number (heights are distances, 0 at the leaves)")
    return limit
