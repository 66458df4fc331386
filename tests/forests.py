"""Forests and trees for tests, and slow reference functions on them."""

import itertools

import numpy as np
from hypothesis import strategies as st

from agglo import Hierarchy
from agglo.testing import random_forest
from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Rounds

ROUNDS = Rounds(threshold=[0.5, 1.0], before=[4, 3], after=[3, 1], seconds=[0.1, 0.2])
COLUMNS = {
    "parent": [4, 4, 5, 5, 5, -1],
    "height": [0, 0, 0, 0, 0.25, 0.75],
    "size": [1, 1, 1, 1, 2, 4],
    "round": [0, 0, 0, 0, 1, 2],
}
# Points 0 and 1 merge, then everything.
TREE = Hierarchy(**COLUMNS, rounds=ROUNDS, about={"kind": "distance", "thresholds": (1, 2)})

# 0 and 1 are a node, 2 and 3 another, and the root has both and 4.
TREE_OF_5 = Hierarchy(
    parent=[5, 5, 6, 6, 7, 7, 7, -1],
    height=[0, 0, 0, 0, 0, 0.1, 0.2, 0.5],
    size=[1, 1, 1, 1, 1, 2, 2, 5],
    round=[0, 0, 0, 0, 0, 1, 2, 3],
    rounds=Rounds([0.1, 0.2, 0.5], [5, 4, 3], [4, 3, 1], [0, 0, 0]),
)


@st.composite
def forests(draw, min_points=1, max_points=30):
    """Draw forests of all shapes: few to many children per node, one to many roots, tied and inverted values."""
    return random_forest(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        draw(st.integers(min_points, max_points)),
        max_rounds=draw(st.none() | st.integers(0, 4)),
        shrink=draw(st.sampled_from([0.1, 0.5, 0.9])),
        decimals=draw(st.sampled_from([0, 1, 8])),
    )


@st.composite
def trees(draw, min_points=1, max_points=30):
    """Draw trees of such forests, of distances and of similarities."""
    return Hierarchy.from_forest(
        draw(forests(min_points, max_points)),
        kind=draw(st.sampled_from(["similarity", "distance"])),
        missing=draw(st.sampled_from(["ignore", 0.0, 0.25, 4.0])),
    )


def chain(n):
    """Return the deepest tree over n points: points 0 and 1 merge, then point 2 merges with them, and so on."""
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
    """Return the node and all its ancestors, from the bottom up."""
    path = [node]
    while tree.parent[path[-1]] >= 0:
        path.append(int(tree.parent[path[-1]]))
    return path


def least_common_ancestor(tree, a, b):
    """Return the least common ancestor of two nodes."""
    above = set(ancestors(tree, a))
    return next(node for node in ancestors(tree, b) if node in above)


def partitions(tree, node=None):
    """Return all partitions of the leaves of a small tree into nodes, as sorted tuples of nodes."""
    node = tree.n_nodes - 1 if node is None else node
    children = [partitions(tree, child) for child in tree.children(node).tolist()]
    split = itertools.product(*children) if children else ()
    return [(node,), *(tuple(sorted(itertools.chain.from_iterable(parts))) for parts in split)]
