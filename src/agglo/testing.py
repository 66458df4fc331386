"""Test helpers for hierarchies: generate random trees, check invariants, and compare trees."""

from __future__ import annotations

import numpy as np

from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Hierarchy


def random_forest(
    rng: np.random.Generator, n: int, *, max_rounds: int | None = None, shrink: float = 0.5, decimals: int = 1
) -> Forest:
    """Generate a random result of the rounds: a tree or several trees over ``n`` points.

    Parameters
    ----------
    rng : numpy.random.Generator
        The random generator.
    n : int
        The number of points.
    max_rounds : int, optional
        The maximum number of rounds; the forest may then have several roots. By default, rounds continue until one
        cluster is left.
    shrink : float
        The approximate number of clusters after a round divided by the number before it. Near 0, there are few
        rounds, and nodes have many children. Near 1, there are many rounds with few merges.
    decimals : int
        Linkage values are rounded to this number of decimals, so that ties occur. The value of a parent may be
        closer than the value of its child.

    Examples
    --------
    >>> import numpy as np
    >>> from agglo import Hierarchy
    >>> from agglo.testing import random_forest
    >>> forest = random_forest(np.random.default_rng(0), 10)
    >>> Hierarchy.from_forest(forest, kind="distance", missing="ignore").n_leaves
    10
    """
    parent = [np.full(n, -1, np.int32)]
    size = [np.ones(n, np.int32)]
    round_ = [np.zeros(n, np.int32)]
    after: list[int] = []
    alive, sizes = np.arange(n), np.ones(n, np.int32)  # nodes of the current clusters, in order of smallest point
    n_nodes = n
    while len(alive) > 1 and (max_rounds is None or len(after) < max_rounds):
        n_groups = min(len(alive) - 1, max(1, round(len(alive) * shrink)))
        drawn = rng.integers(0, n_groups, len(alive))
        _, first, inverse = np.unique(drawn, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # groups in order of their smallest point
        group = rank[inverse]
        merged = np.bincount(group) > 1
        node = np.empty(len(merged), np.int64)
        node[merged] = n_nodes + np.arange(merged.sum())
        node[~merged] = alive[np.sort(first)[~merged]]
        is_merged = merged[group]
        parents = np.concatenate(parent)
        parents[alive[is_merged]] = node[group[is_merged]]
        sizes = np.bincount(group, weights=sizes).astype(np.int32)
        alive = node
        n_nodes += int(merged.sum())
        after.append(len(alive))
        parent = [parents, np.full(merged.sum(), -1, np.int32)]
        size.append(sizes[merged])
        round_.append(np.full(merged.sum(), len(after), np.int32))
    value = np.round(rng.random(n_nodes), decimals)
    value[:n] = np.nan
    counts = np.array([n, *after], np.int64)
    return Forest(
        np.concatenate(parent),
        value,
        np.concatenate(size),
        np.concatenate(round_),
        np.round(rng.random(len(after)), decimals),
        counts[:-1],
        counts[1:],
        rng.random(len(after)),
    )


def check_hierarchy(tree: Hierarchy) -> None:
    """Raise AssertionError unless ``tree`` satisfies its invariants and its rounds are nested partitions.

    The checks of :class:`agglo.Hierarchy` are implemented independently of its constructor. They take time
    proportional to the number of nodes plus points × rounds.

    Examples
    --------
    >>> import agglo
    >>> from agglo.testing import check_hierarchy
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> check_hierarchy(tree)
    """
    n = tree.n_leaves
    last = len(tree.rounds)
    children_of: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    for node, parent in enumerate(tree.parent.tolist()):
        assert (parent == -1) == (node == tree.n_nodes - 1), f"node {node} has parent {parent}"
        if parent >= 0:
            assert parent > node, f"node {node} comes after its parent {parent}"
            children_of[parent].append(node)
    for node, children in enumerate(children_of):
        height, size, round_ = tree.height[node], tree.size[node], tree.round[node]
        if node < n:
            assert (len(children), height, size, round_) == (0, 0, 1, 0), f"node {node} is not a leaf"
            continue
        assert len(children) > 1, f"node {node} has {len(children)} children"
        assert size == tree.size[children].sum(), f"node {node} has size {size}"
        assert np.isfinite(height), f"node {node} has height {height}"
        assert height >= tree.height[children].max(), f"node {node} is lower than a child"
        assert round_ > tree.round[children].max(), f"node {node} is not in a later round than its children"
        assert round_ <= last + (node == tree.n_nodes - 1), f"node {node} has round {round_} of {last}"
    finer = tree.labels(round=0)
    assert finer.tolist() == list(range(n)), "round 0 does not consist of single points"
    for index, record in enumerate(tree.rounds, start=1):
        labels = tree.labels(round=index)
        ids, first = np.unique(labels, return_index=True)
        assert ids.tolist() == list(range(len(ids))), f"labels of round {index} are not 0 to k - 1"
        assert (np.diff(first) > 0).all(), f"labels of round {index} are not in order of appearance"
        assert len(ids) == record.after < record.before == finer.max() + 1, f"round {index}: {record}"
        pairs = np.unique(np.column_stack([finer, labels]), axis=0)
        assert len(pairs) == record.before, f"round {index} splits a cluster"
        finer = labels


def assert_same_hierarchy(left: Hierarchy, right: Hierarchy) -> None:
    """Raise AssertionError unless both trees are bit-identical, except for the durations of the rounds.

    Examples
    --------
    >>> import agglo
    >>> from agglo.testing import assert_same_hierarchy
    >>> graph = agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean")
    >>> assert_same_hierarchy(agglo.hac(graph), agglo.hac(graph))
    """
    for name in ("parent", "height", "size", "round"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name, strict=True)
    for name in ("threshold", "before", "after"):
        mine, other = getattr(left.rounds, name), getattr(right.rounds, name)
        np.testing.assert_array_equal(mine, other, err_msg=f"rounds.{name}", strict=True)
