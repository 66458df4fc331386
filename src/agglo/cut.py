"""Cuts: rules that choose one flat clustering out of a hierarchy."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.elementary import exp, log

if TYPE_CHECKING:
    from agglo.graph import NeighborGraph
    from agglo.tree import Hierarchy

RoundRule = Literal["persistent", "silhouette"]
ROUND_RULES = ("persistent", "silhouette")
Centers = Literal["means", "points"]
CENTERS = ("means", "points")
Stragglers = Literal["join", "leave"]
STRAGGLERS = ("join", "leave")

_LEAST = 1e-3  # of the closeness at height 0: as far as the default thresholds go
_MOST_LEVELS = 500  # rounds that layers are chosen from: a search takes the square of their number


def cut(tree: Hierarchy, rule: Mapping[str, Any], **help: Any) -> npt.NDArray[np.int64]:
    """Labels of the clusters that the one given rule chooses; see :meth:`agglo.Hierarchy.cut`.

    ``rule`` has all rules, None being not given, and ``help`` what some of them need beside the tree.
    """
    given = {name for name, value in rule.items() if value is not None}
    name = _only_rule(rule, given - {"max_size"} if "min_size" in given else given)
    _check_help("silhouette" if name == "round" and rule[name] == "silhouette" else name, help)
    if name in ("min_size", "max_size"):
        return by_size(tree, rule["min_size"], rule["max_size"], help["stragglers"])
    if name in ("dp_means", "exactly"):
        from agglo.path import check_price, dp_means_path

        if name == "dp_means":
            check_price(rule[name])  # before the costs, which take longer
        else:
            number_of_clusters(name, rule[name], tree.n_leaves)
        path = dp_means_path(tree, help["X"], centers=help["centers"], n_jobs=help["n_jobs"])
        return path.cut(rule[name]) if name == "dp_means" else path.exactly(rule[name])
    if name == "known":
        from agglo.evidence import agreeing

        return agreeing(tree, rule[name])
    check_rule(tree.n_leaves, rule["n_clusters"], rule["round"], rule["height"])
    if name == "height":
        return tree.partition(up_to_height(tree, rule[name]))
    graph, seed = help["graph"], help["random_state"]
    return tree.labels(round=chosen_round(tree, rule["n_clusters"], rule["round"], graph, seed))


def _only_rule(rules: Mapping[str, Any], given: set[str]) -> str:
    if len(given) != 1:
        got = " and ".join(name for name in rules if name in given) if given else "none"
        raise ValueError(f"a cut follows one rule, got {got}: pass exactly one of {', '.join(rules)}")
    return next(iter(given))


_HELP = {  # what only some rules look at, and how it is when not given
    "X": (None, ("dp_means", "exactly")),
    "centers": ("means", ("dp_means", "exactly")),
    "graph": (None, ("silhouette",)),
    "random_state": (0, ("silhouette",)),
    "stragglers": ("join", ("min_size",)),
}


def _check_help(rule: str, help: Mapping[str, Any]) -> None:
    """Raise if ``rule`` is given something that it would ignore, or has no points where it needs them."""
    for name, (default, rules) in _HELP.items():
        absent = help[name] is None if default is None else help[name] == default
        if not absent and rule not in rules:
            raise ValueError(f"{name} is given, but the rule {rule} does not look at it: leave it out")
        if absent and name == "X" and rule in rules:
            raise ValueError(f"the rule {rule} needs the points that the tree was made of: pass X")


def check_rule(
    n_leaves: int,
    n_clusters: SupportsIndex | None,
    round: SupportsIndex | RoundRule | None,
    height: SupportsFloat | None,
) -> None:
    """Raise unless exactly one rule is given, and one that makes sense for a tree of ``n_leaves``."""
    rules = {"n_clusters": n_clusters, "round": round, "height": height}
    _only_rule(rules, {name for name, value in rules.items() if value is not None})
    if n_clusters is not None:
        number_of_clusters("n_clusters", n_clusters, n_leaves)
    elif isinstance(round, str) and round not in ROUND_RULES:
        raise ValueError(f"round={round!r} is unknown: pass an integer, or one of {', '.join(ROUND_RULES)}")
    elif round is not None and not isinstance(round, str) and not hasattr(round, "__index__"):
        raise TypeError(f"round={round!r} is not a round: pass an integer")
    elif isinstance(round, SupportsIndex) and not -n_leaves <= operator.index(round) < n_leaves:
        raise IndexError(
            f"round={operator.index(round)} is out of range: a tree of {n_leaves} leaves has at most "
            f"{n_leaves - 1} rounds, so pass a number below {n_leaves}, or -1 for the last round"
        )
    elif height is not None:
        _limit(height)


def chosen_round(
    tree: Hierarchy,
    n_clusters: SupportsIndex | None,
    round: SupportsIndex | RoundRule | None,
    graph: NeighborGraph | None = None,
    random_state: int = 0,
    weights: npt.NDArray[np.float64] | None = None,
) -> int:
    """The round that ``n_clusters`` or ``round`` asks for, whichever is given; ``weights`` are of the leaves."""
    if n_clusters is not None:
        return closest_round(tree, n_clusters)
    if round == "silhouette":
        from agglo.evidence import silhouette_round

        if graph is None:
            raise ValueError("the rule silhouette needs the graph that the tree was made of: pass graph")
        return silhouette_round(tree, graph, random_state=random_state)
    if isinstance(round, str):
        return persistent_round(tree, weights)
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
    last round. Rounds of a top (:mod:`agglo.top`) do not count: the clusters that the graph ends with stay as long
    as those of a forest.

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


def by_size(
    tree: Hierarchy, min_size: SupportsIndex | None, max_size: SupportsIndex | None, stragglers: Stragglers
) -> npt.NDArray[np.int64]:
    """Labels of clusters of at least and at most so many points; see :meth:`agglo.Hierarchy.cut`."""
    if stragglers not in STRAGGLERS:
        raise ValueError(f"stragglers={stragglers!r} is unknown: pass 'join' or 'leave'")
    least = 1 if min_size is None else _size("min_size", min_size, tree.n_leaves)
    most = tree.n_leaves if max_size is None else _size("max_size", max_size, None)
    if least > most:
        raise ValueError(f"min_size={least} is more than max_size={most}: no cluster can have such a size")
    if max_size is not None:
        joined = tree.size <= most
    elif stragglers == "join":
        smallest = np.full(tree.n_nodes, tree.n_leaves, np.int32)  # of a node's children
        np.minimum.at(smallest, tree.parent[:-1], tree.size[:-1])
        joined = smallest < least
    else:
        large = np.bincount(tree.parent[:-1][tree.size[:-1] >= least], minlength=tree.n_nodes)  # children
        joined = _core.sums_below(tree.parent, (large > 1).astype(np.int64)) == 0
    labels = tree.partition(joined)
    small = np.bincount(labels) < least
    if not small.any():
        return labels
    if stragglers == "join":
        raise ValueError(
            f"min_size={least} and max_size={most} exclude each other in this tree, which leaves {small.sum()} "
            "clusters too small that the next node would make too large: pass stragglers='leave' to label "
            "their points -1, or only one of the two"
        )
    names = np.where(small, -1, np.cumsum(~small) - 1)
    return names[labels]


def _size(name: str, given: SupportsIndex, most: int | None) -> int:
    try:
        size = operator.index(given)
    except TypeError:
        raise TypeError(f"{name}={given!r} is not a number of points: pass an integer") from None
    if size < 1 or (most is not None and size > most):
        upper = "" if most is None else f" to {most}, the number of leaves"
        raise ValueError(f"{name}={size} is no size of a cluster: pass a number from 1{upper or ' up'}")
    return size


def up_to_height(tree: Hierarchy, height: SupportsFloat) -> npt.NDArray[np.bool_]:
    """Which nodes are merges of at most ``height``; the root of a forest is none, whatever its height."""
    return (tree.height <= _limit(height)) & (tree.round <= len(tree.rounds))


def nodes_of(tree: Hierarchy, labels: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """The node that each cluster of a cut is; see :meth:`agglo.Hierarchy.nodes`."""
    given = np.asarray(labels)
    if given.shape != (tree.n_leaves,) or given.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be an integer for each of {tree.n_leaves} leaves, "
            f"got {given.dtype} of shape {given.shape}"
        )
    if given.min() < -1 or not 0 <= given.max() < tree.n_leaves:
        raise ValueError(
            f"labels go from {given.min()} to {given.max()}, but clusters are numbered 0, 1, ..., "
            f"at most {tree.n_leaves} of them, and -1 is for points of none"
        )
    nodes: npt.NDArray[np.int32] = _core.tree_nodes(
        tree.parent, tree.size, given.astype(np.int64, copy=False), int(given.max()) + 1
    )
    if nodes.min() < 0:
        cluster = int(nodes.argmin())
        raise ValueError(
            f"cluster {cluster} of {np.count_nonzero(given == cluster)} points is no node of the tree: "
            "pass labels of a cut of this tree"
        )
    return nodes


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
