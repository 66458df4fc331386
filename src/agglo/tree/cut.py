"""Cuts: rules that select one flat clustering of a hierarchy."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, SupportsFloat, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._validation import (
    check_cluster_size,
    check_height,
    check_n_clusters,
    check_nonnegative_number,
    check_round,
)
from agglo.tree.default_level import ResolutionRule, check_resolution_rule, modularity_path
from agglo.tree.dp_means_path import dp_means_path
from agglo.tree.known_classes import cut_by_known_classes
from agglo.tree.persistent_round import persistent_round
from agglo.tree.silhouette import silhouette_round

if TYPE_CHECKING:
    from agglo.neighbors.graph import NeighborGraph
    from agglo.tree.hierarchy import Hierarchy

RoundRule = Literal["persistent", "silhouette"]
ROUND_RULES = ("persistent", "silhouette")
Noise = Literal["merge", "label"]
NOISE = ("merge", "label")

EXACT = "n_clusters with exact=True"
SILHOUETTE = "round='silhouette'"
_INPUTS: dict[str, tuple[Any, tuple[str, ...]]] = {  # parameter: (its default, the rules that use it)
    "exact": (False, (EXACT,)),
    "X": (None, ("dp_means", EXACT)),
    "centers": ("means", ("dp_means", EXACT)),
    "graph": (None, ("resolution", SILHOUETTE)),
    "random_state": (0, (SILHOUETTE,)),
    "noise": ("merge", ("min_size",)),
}


def cut(
    tree: Hierarchy, rules: Mapping[str, Any], inputs: Mapping[str, Any], n_jobs: int | None = None
) -> npt.NDArray[np.int64]:
    """Cut the tree by the only rule that is not None; return the label of each point.

    ``rules`` maps the name of every rule to its value or None. ``inputs`` maps the names of the other parameters,
    which only some rules use, to their values. See :meth:`agglo.Hierarchy.cut`.
    """
    rule = _find_rule(rules)
    _check_inputs(rule, rules, inputs)
    value = rules[rule]
    if rule in ("min_size", "max_size"):
        return cut_by_size(tree, rules["min_size"], rules["max_size"], inputs["noise"])
    if rule == "known_classes":
        return cut_by_known_classes(tree, value)
    if rule == "dp_means" or inputs["exact"]:
        # Validate the value first: computing the costs takes much longer.
        if rule == "dp_means":
            check_nonnegative_number("lam", value)
        else:
            check_n_clusters(value, tree.n_leaves)
        path = dp_means_path(tree, inputs["X"], centers=inputs["centers"], n_jobs=n_jobs)
        return path.cut(value) if rule == "dp_means" else path.cut_exactly(value)
    if rule == "resolution":
        resolution = check_resolution_rule(value)
        modularity = modularity_path(tree, inputs["graph"])
        return modularity.cut(modularity.persistent_resolution() if resolution == "persistent" else resolution)
    check_rule(tree.n_leaves, rules["n_clusters"], rules["round"], rules["height"])
    if rule == "height":
        # The explicit root of a forest has the round number after the last round. This root is not a merge.
        return tree.partition((tree.height <= check_height(value)) & (tree.round <= len(tree.rounds)))
    chosen = select_round(tree, rules["n_clusters"], rules["round"], inputs["graph"], inputs["random_state"])
    return tree.labels(round=chosen)


def _find_rule(rules: Mapping[str, Any]) -> str:
    """Return the name of the only rule whose value is not None; raise if there are none or several.

    Only ``min_size`` and ``max_size`` may be combined. They count as one rule.
    """
    given = [name for name, value in rules.items() if value is not None]
    if "min_size" in given and "max_size" in given:
        given.remove("max_size")
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise ValueError(f"a cut follows one rule, got {got}: pass exactly one of {', '.join(rules)}")
    return given[0]


def _check_inputs(rule: str, rules: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    """Raise if ``rule`` does not use a parameter that was passed, or needs a parameter that was not passed."""
    if rule == "n_clusters" and inputs["exact"]:
        rule = EXACT
    elif rule == "round" and rules[rule] == "silhouette":
        rule = SILHOUETTE
    for name, (default, users) in _INPUTS.items():
        is_default = inputs[name] is None if default is None else inputs[name] == default
        if not is_default and rule not in users:
            raise ValueError(f"{name} is given, but the rule {rule} does not use it: leave it out")
        if is_default and name == "X" and rule in users:
            raise ValueError(f"the rule {rule} needs the points that the tree was built from: pass X")
        if is_default and name == "graph" and rule in users:
            raise ValueError(f"the rule {rule} needs the graph that the tree was built from: pass graph")


def check_rule(
    n_leaves: int,
    n_clusters: SupportsIndex | None,
    round: SupportsIndex | RoundRule | None,
    height: SupportsFloat | None,
    resolution: SupportsFloat | ResolutionRule | None = None,
) -> None:
    """Raise unless exactly one rule is not None and its value is valid for a tree with ``n_leaves`` leaves."""
    _find_rule({"n_clusters": n_clusters, "round": round, "height": height, "resolution": resolution})
    if n_clusters is not None:
        check_n_clusters(n_clusters, n_leaves)
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
        check_height(height)
    elif resolution is not None:
        check_resolution_rule(resolution)


def select_round(
    tree: Hierarchy,
    n_clusters: SupportsIndex | None,
    round: SupportsIndex | RoundRule | None,
    graph: NeighborGraph | None = None,
    random_state: int = 0,
    weights: npt.NDArray[np.float64] | None = None,
) -> int:
    """Return the number of the round that ``n_clusters`` or ``round`` selects. One of the two must be None.

    ``weights`` are the weights of the leaves, for ``round="persistent"``.
    """
    if n_clusters is not None:
        counts = np.concatenate(([tree.n_leaves], tree.rounds.after))  # strictly decreasing
        # If two rounds are equally close, argmin takes the finer one.
        return int(np.abs(counts - check_n_clusters(n_clusters, tree.n_leaves)).argmin())
    if round == "silhouette":
        if graph is None:
            raise ValueError(f"the rule {SILHOUETTE} needs the graph that the tree was built from: pass graph")
        return silhouette_round(tree, graph, random_state=random_state)
    if isinstance(round, str):
        return persistent_round(tree, weights)
    assert round is not None
    return check_round(round, len(tree.rounds))


def cut_by_size(
    tree: Hierarchy, min_size: SupportsIndex | None, max_size: SupportsIndex | None, noise: Noise
) -> npt.NDArray[np.int64]:
    """Cut the tree into clusters of ``min_size`` to ``max_size`` points; see :meth:`agglo.Hierarchy.cut`."""
    if noise not in NOISE:
        raise ValueError(f"noise={noise!r} is unknown: pass 'merge' or 'label'")
    smallest = 1 if min_size is None else check_cluster_size("min_size", min_size, tree.n_leaves)
    largest = tree.n_leaves if max_size is None else check_cluster_size("max_size", max_size)
    if smallest > largest:
        raise ValueError(
            f"min_size={smallest} is more than max_size={largest}: pass a min_size of at most {largest}"
        )
    if max_size is not None:
        merged = tree.size <= largest
    elif noise == "merge":
        smallest_child = np.full(tree.n_nodes, tree.n_leaves, np.int32)
        np.minimum.at(smallest_child, tree.parent[:-1], tree.size[:-1])
        merged = smallest_child < smallest
    else:
        large_children = np.bincount(tree.parent[:-1][tree.size[:-1] >= smallest], minlength=tree.n_nodes)
        merged = _core.sum_descendants(tree.parent, (large_children > 1).astype(np.int64)) == 0
    labels = tree.partition(merged)
    is_small = np.bincount(labels) < smallest
    if not is_small.any():
        return labels
    if noise == "merge":
        raise ValueError(
            f"min_size={smallest} and max_size={largest} exclude each other in this tree: {is_small.sum()} "
            "clusters are too small, but their parents are too large. Pass noise='label' to label their points "
            "-1, or pass only one of the two sizes"
        )
    new_labels = np.where(is_small, -1, np.cumsum(~is_small) - 1)
    return new_labels[labels]


def find_cluster_nodes(tree: Hierarchy, labels: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Return the tree node of each cluster in ``labels``; see :meth:`agglo.Hierarchy.nodes`."""
    given = np.asarray(labels)
    if given.shape != (tree.n_leaves,) or given.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be an integer for each of {tree.n_leaves} leaves, "
            f"got {given.dtype} of shape {given.shape}"
        )
    if given.min() < -1 or not 0 <= given.max() < tree.n_leaves:
        raise ValueError(
            f"labels go from {given.min()} to {given.max()}: number the clusters 0, 1, ..., at most "
            f"{tree.n_leaves} of them, and label points outside all clusters -1"
        )
    nodes: npt.NDArray[np.int32] = _core.find_cluster_nodes(
        tree.parent, tree.size, given.astype(np.int64, copy=False), int(given.max()) + 1
    )
    if nodes.min() < 0:
        cluster = int(nodes.argmin())
        raise ValueError(
            f"cluster {cluster} of {np.count_nonzero(given == cluster)} points is not a node of the tree: "
            "pass labels of a cut of this tree"
        )
    return nodes


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_OLD_NAMES = {"exactly": "n_clusters", "known": "known_classes", "stragglers": "noise"}
_OLD_NOISE = {"join": "merge", "leave": "label"}


def accept_old_names(method: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate ``method`` to accept old parameter names, each with a FutureWarning."""

    @functools.wraps(method)
    def wrapper(*args: _Parameters.args, **parameters: _Parameters.kwargs) -> _Result:
        _rename_old_parameters(parameters)
        return method(*args, **parameters)

    return wrapper


def _rename_old_parameters(parameters: dict[str, Any]) -> None:
    """Replace old parameter names and values of :meth:`agglo.Hierarchy.cut` by new ones, in place."""
    for old in [name for name in _OLD_NAMES if name in parameters]:
        new, value = _OLD_NAMES[old], parameters.pop(old)
        _warn_of_old_name(f"{old} is deprecated: pass {EXACT if old == 'exactly' else new}")
        if old == "stragglers":
            value = _OLD_NOISE.get(value, value)
        if value is None:  # None is the default, so the old name was not used
            continue
        if new in parameters:
            raise TypeError(f"{old} is the old name of {new}, and both are given: pass {new} alone")
        parameters[new] = value
        if old == "exactly":
            parameters["exact"] = True
    noise = parameters.get("noise")
    if isinstance(noise, str) and noise in _OLD_NOISE:
        parameters["noise"] = _OLD_NOISE[noise]
        _warn_of_old_name(f"noise={noise!r} is deprecated: pass noise={_OLD_NOISE[noise]!r}")


def _warn_of_old_name(message: str) -> None:
    # stacklevel=4 makes the warning refer to the caller of the wrapped method.
    warnings.warn(f"{message}; the old name will not be accepted in the next release", FutureWarning, stacklevel=4)
