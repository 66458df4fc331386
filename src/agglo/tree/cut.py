"""Cuts: rules that select one flat clustering of a hierarchy."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core

if TYPE_CHECKING:
    from agglo.neighbors.graph import NeighborGraph
    from agglo.tree.hierarchy import Hierarchy

from agglo.tree.persistence import persistent_round

RoundRule = Literal["persistent", "silhouette"]
ROUND_RULES = ("persistent", "silhouette")
Centers = Literal["means", "points"]
CENTERS = ("means", "points")
Stragglers = Literal["join", "leave"]
STRAGGLERS = ("join", "leave")


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
        from agglo.tree.dp_means import check_price, dp_means_path

        if name == "dp_means":
            check_price(rule[name])  # before the costs, which take longer
        else:
            number_of_clusters(name, rule[name], tree.n_leaves)
        path = dp_means_path(tree, help["X"], centers=help["centers"], n_jobs=help["n_jobs"])
        return path.cut(rule[name]) if name == "dp_means" else path.exactly(rule[name])
    if name == "known":
        from agglo.tree.known_classes import agreeing

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
        from agglo.tree.silhouette import silhouette_round

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
