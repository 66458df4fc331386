"""Forests and trees for tests."""

import itertools

import numpy as np
from hypothesis import strategies as st

from agglo import Hierarchy
from agglo.testing import random_forest
from agglo.tree.hierarchy import Forest


@st.composite
def forests(draw, min_points=1, max_points=30):
    """Forests of all shapes: bushy to thin, one tree to many, values that tie and fall."""
    return random_forest(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        draw(st.integers(min_points, max_points)),
        max_rounds=draw(st.none() | st.integers(0, 4)),
        shrink=draw(st.sampled_from([0.1, 0.5, 0.9])),
        decimals=draw(st.sampled_from([0, 1, 8])),
    )


@st.composite
def trees(draw, min_points=1, max_points=30):
    """Trees of such forests, of distances and of similarities."""
    return Hierarchy.from_forest(
        draw(forests(min_points, max_points)),
        kind=draw(st.sampled_from(["similarity", "distance"])),
        missing=draw(st.sampled_from(["ignore", 0.0, 0.25, 4.0])),
    )


def chain(n):
    """The deepest tree over n points: point 1 joins point 0, then point 2 joins them, and so on."""
    step = np.arange(1, n)
    nan = np.full(n - 1, np.nan)
    forest = Forest(
        parent=np.concatenate([[n], n - 1 + step, n + step[:-1], [-1]]).astype(np.int32),
        value=np.concatenate([np.zeros(n), step]),
        size=np.concatenate([np.ones(n), step + 1]).astype(np.int32),
        round=np.concatenate([np.zeros(n), step]).astype(np.int32),
        threshold=nan,
        before=n + 1 - step,
        after=n - step,
        seconds=nan,
    )
    return Hierarchy.from_forest(forest, kind="distance", missing="ignore")


def ancestors(tree, node):
    """The node and all above it, bottom up."""
    path = [node]
    while tree.parent[path[-1]] >= 0:
        path.append(int(tree.parent[path[-1]]))
    return path


def meet(tree, a, b):
    """The least common ancestor of two nodes."""
    above = set(ancestors(tree, a))
    return next(node for node in ancestors(tree, b) if node in above)


def partitions(tree, node=None):
    """All sets of nodes that split the leaves of a small tree, as sorted tuples."""
    node = tree.n_nodes - 1 if node is None else node
    children = [partitions(tree, child) for child in tree.children(node).tolist()]
    split = itertools.product(*children) if children else ()
    return [(node,), *(tuple(sorted(itertools.chain.from_iterable(parts))) for parts in split)]
