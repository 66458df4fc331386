"""The most persistent round of a tree, and layers of distinct granularity."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._math import exp, log

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy


_LEAST = 1e-3  # of the closeness at height 0: as far as the default thresholds go
_MOST_LEVELS = 500  # rounds that layers are chosen from: a search takes the square of their number


def persistent_round(tree: Hierarchy, weights: npt.NDArray[np.float64] | None = None) -> int:
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
    last round. Rounds of a top (:mod:`agglo.rounds.roots`) do not count: the clusters that the graph ends with
    stay as long as those of a forest.

    Points that are equal or must be linked are merged before all others, whatever the structure of the data. So
    that round is no answer, and what it merged counts as single points. ``weights``, one per leaf, count in place
    of the numbers of points: a point of weight 3 counts as three equal points.
    """
    candidates = _candidates(tree)
    if len(candidates) == 0:
        return len(tree.rounds)
    clusters, stays = _stays(tree, weights)
    finer = np.cumsum(stays / clusters)
    coarser = np.cumsum((stays * clusters)[::-1])[::-1] - stays * clusters
    scores = (clusters * finer + coarser / clusters)[candidates]
    return int(candidates[len(scores) - 1 - scores[::-1].argmax()])


def layers(tree: Hierarchy, n: SupportsIndex) -> npt.NDArray[np.int64]:
    """Labels of up to ``n`` rounds of distinct granularity; see :meth:`agglo.Hierarchy.layers`."""
    try:
        wanted = operator.index(n)
    except TypeError:
        raise TypeError(f"n={n!r} is not a number of layers: pass an integer") from None
    if wanted < 1:
        raise ValueError(f"n={wanted} is not a number of layers: pass 1 or more")
    return np.stack([tree.labels(round=round) for round in layer_rounds(tree, wanted)])


def layer_rounds(tree: Hierarchy, n: int) -> list[int]:
    """The ``n`` rounds that represent the merging best, in order; all there are if that is fewer.

    The score of a set of rounds is that of :func:`persistent_round`, each round counting towards the one of the
    set to which it is closest; one round alone is the persistent one. The best set is found exactly, among at
    most 500 rounds (trees of a round a merge have more): evenly by ratios of their numbers of clusters, and the
    persistent one.
    """
    best = persistent_round(tree)
    rounds = _candidates(tree)
    if len(rounds) == 0 or n == 1:
        return [best]
    clusters, stays = _stays(tree)
    clusters = np.minimum.accumulate(clusters)  # they fall, but for rounding
    finer, coarser = np.cumsum(stays / clusters), np.cumsum(stays * clusters)
    if len(rounds) > _MOST_LEVELS:
        numbers = log(clusters[rounds])
        wanted = np.linspace(numbers[0], numbers[-1], _MOST_LEVELS - 1)
        rounds = np.union1d(rounds[np.searchsorted(-numbers, -wanted).clip(max=len(rounds) - 1)], [best])
    if len(rounds) <= n:
        return [int(round) for round in rounds]
    # Between two chosen rounds, those before `turn` are closer to the finer one: more clusters than the
    # geometric mean of theirs.
    k = clusters[rounds]
    turn = np.searchsorted(-clusters, -np.sqrt(k[:, None] * k), side="right").clip(rounds[:, None] + 1, rounds)
    near_finer = (coarser[turn - 1] - coarser[rounds][:, None]) / k[:, None]
    between = near_finer + k * (finer[rounds] - finer[turn - 1])
    between[np.tril_indices(len(rounds))] = -np.inf
    scores = k * finer[rounds]
    before = []
    for _ in range(n - 1):
        totals = scores[:, None] + between
        before.append(totals.argmax(axis=0))
        scores = totals.max(axis=0)
    scores = scores + (coarser[-1] - coarser[rounds]) / k
    chosen = [len(scores) - 1 - int(scores[::-1].argmax())]
    for previous in reversed(before):
        chosen.append(int(previous[chosen[-1]]))
    return [int(rounds[index]) for index in reversed(chosen)]


def _candidates(tree: Hierarchy) -> npt.NDArray[np.intp]:
    """Return the rounds that :func:`persistent_round` may answer with."""
    rounds = np.flatnonzero(tree.rounds.after[: _on_graph(tree)] > 1) + 1
    return rounds[rounds > _given_rounds(tree)]


def _given_rounds(tree: Hierarchy) -> int:
    """Return 1 if the first round merged points that are equal or must be linked, else 0."""
    return int(len(tree.rounds) > 0 and ("copies" in tree.about or "must_link" in tree.about))


def _stays(
    tree: Hierarchy, weights: npt.NDArray[np.float64] | None = None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The effective number of clusters after every round, and how long it stays; see :func:`persistent_round`."""
    last = _on_graph(tree)
    round = np.minimum(tree.round, last + 1)
    reached = np.zeros(last + 2)  # one more, for the explicit root of a forest, or all that is above the graph
    np.maximum.at(reached, round, tree.height)
    if last < len(tree.rounds):
        reached[-1] = 0.0 if tree.about.get("missing", "ignore") == "ignore" else _farthest(tree)
    ends = round[tree.parent[:-1]]  # the round that took up a node, for all but the root
    mass = tree.size.astype(np.float64)
    if weights is not None:
        mass = _core.sums_below(tree.parent, np.append(weights, np.zeros(tree.n_nodes - tree.n_leaves)))
    total = mass[-1]
    single = (round[:-1] <= _given_rounds(tree)) & (ends > _given_rounds(tree))
    together = np.cumsum(np.bincount(ends[single], mass[:-1][single], last + 2))[: last + 1] / total
    stays = np.diff(_time(tree, np.maximum.accumulate(reached))) * together
    information = mass * log(mass)
    made = np.bincount(round, information, last + 2)
    gone = np.bincount(ends, information[:-1], last + 2)
    clusters = total / exp(np.cumsum(made - gone)[: last + 1] / total)
    return clusters, stays


def _on_graph(tree: Hierarchy) -> int:
    """The number of rounds on the graph, which those of a top follow; of all rounds if none was on the graph."""
    found = int(np.count_nonzero(tree.rounds.after >= tree.about.get("graph_clusters", 0)))
    return found or len(tree.rounds)


def _time(tree: Hierarchy, heights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Where heights stand on the scale of :func:`persistent_round`.

    The average over all pairs loses closeness in proportion as clusters grow, for most of their pairs have no
    edge. So heights crowd below that of no edge, and it is equal ratios of closeness that are equal steps.
    """
    farthest = _farthest(tree)
    if farthest <= 0:
        return heights
    closeness: npt.NDArray[np.float64] = np.clip(1 - heights / farthest, _LEAST, 1.0)
    decades: npt.NDArray[np.float64] = -log(closeness)
    return decades


def _farthest(tree: Hierarchy) -> float:
    """The height of a pair without an edge; 0 if distances say nothing of it."""
    missing = tree.about.get("missing", "ignore")
    farthest = 0.0 if missing == "ignore" else float(missing)
    return float(tree.about["origin"]) - farthest if tree.about.get("kind") == "similarity" else farthest
