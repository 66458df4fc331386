"""Help for tests of code that makes or uses hierarchies: random ones, and checks by the plain definition."""

from __future__ import annotations

import numpy as np

from agglo.tree.hierarchy import Forest, Hierarchy


def random_forest(
    rng: np.random.Generator, n: int, *, max_rounds: int | None = None, shrink: float = 0.5, decimals: int = 1
) -> Forest:
    """A random forest over ``n`` points, such as an engine returns.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where chance comes from.
    n : int
        Number of points.
    max_rounds : int, optional
        Stop after so many rounds, with a forest; by default go on until one cluster is left.
    shrink : float
        About how many groups the clusters of a round are dealt into, as a share of them: near 0 makes few
        rounds with many children a node, near 1 many rounds with few merges.
    decimals : int
        Linkage values are rounded to that many, so that they tie; they may fall from child to parent.

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
    alive, sizes = np.arange(n), np.ones(n, np.int32)  # the clusters, in order of smallest point
    n_nodes = n
    while len(alive) > 1 and (max_rounds is None or len(after) < max_rounds):
        groups = min(len(alive) - 1, max(1, round(len(alive) * shrink)))
        dealt = rng.integers(0, groups, len(alive))
        _, first, inverse = np.unique(dealt, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # groups in order of their smallest point
        group = rank[inverse]
        number = np.bincount(group)
        merged = number > 1
        node = np.empty(len(number), np.int64)
        node[merged] = n_nodes + np.arange(merged.sum())
        node[~merged] = alive[np.sort(first)[~merged]]
        joins = merged[group]
        made = np.concatenate(parent)
        made[alive[joins]] = node[group[joins]]
        sizes = np.bincount(group, weights=sizes).astype(np.int32)
        alive = node
        n_nodes += int(merged.sum())
        after.append(len(alive))
        parent = [made, np.full(merged.sum(), -1, np.int32)]
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
    """Raise AssertionError unless ``tree`` keeps its invariants and its rounds are nested partitions.

    A second, plain reading of the notes of :class:`agglo.Hierarchy`, in time of nodes and of points × rounds.
    """
    n = tree.n_leaves
    last = len(tree.rounds)
    below: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    for node, parent in enumerate(tree.parent.tolist()):
        assert (parent == -1) == (node == tree.n_nodes - 1), f"node {node} has parent {parent}"
        if parent >= 0:
            assert parent > node, f"node {node} comes after its parent {parent}"
            below[parent].append(node)
    for node, children in enumerate(below):
        height, size, made = tree.height[node], tree.size[node], tree.round[node]
        if node < n:
            assert (len(children), height, size, made) == (0, 0, 1, 0), f"leaf {node} is no leaf"
            continue
        assert len(children) > 1, f"node {node} has {len(children)} children"
        assert size == tree.size[children].sum(), f"node {node} has size {size}"
        assert np.isfinite(height), f"node {node} has height {height}"
        assert height >= tree.height[children].max(), f"node {node} is lower than a child"
        assert made > tree.round[children].max(), f"node {node} is not of a later round than its children"
        assert made <= last + (node == tree.n_nodes - 1), f"node {node} is of round {made} of {last}"
    finer = tree.labels(round=0)
    assert finer.tolist() == list(range(n)), "round 0 is not of single points"
    for index, record in enumerate(tree.rounds, start=1):
        labels = tree.labels(round=index)
        names, first = np.unique(labels, return_index=True)
        assert names.tolist() == list(range(len(names))), f"labels of round {index} are not 0..k-1"
        assert (np.diff(first) > 0).all(), f"labels of round {index} are not in order of appearance"
        assert len(names) == record.after < record.before == finer.max() + 1, f"round {index}: {record}"
        pairs = np.unique(np.column_stack([finer, labels]), axis=0)
        assert len(pairs) == record.before, f"round {index} splits a cluster"
        finer = labels


def assert_same_hierarchy(left: Hierarchy, right: Hierarchy) -> None:
    """Raise AssertionError unless both trees are the same to the last bit, but for the seconds of rounds."""
    for name in ("parent", "height", "size", "round"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name, strict=True)
    for name in ("threshold", "before", "after"):
        mine, other = getattr(left.rounds, name), getattr(right.rounds, name)
        np.testing.assert_array_equal(mine, other, err_msg=f"rounds.{name}", strict=True)
