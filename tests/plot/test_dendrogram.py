import re

import numpy as np
import pytest
from forests import trees
from hypothesis import given
from hypothesis import strategies as st

import agglo
from agglo.plot import draw
from agglo.plot.dendrogram import top_branches


@given(trees(), st.integers(2, 12))
def test_the_top_covers_the_tree_with_few_ends(tree, n_ends):
    branches = top_branches(tree, n_ends)
    ends = [branch for branch in branches if branch.is_end]
    assert 1 <= len(ends) <= n_ends
    assert sum(branch.size for branch in ends) == tree.n_leaves
    assert sorted(branch.x for branch in ends) == [place + 0.5 for place in range(len(ends))]
    for place, branch in enumerate(branches):
        below = [other for other in branches if other.parent == place]
        assert branch.is_end == (not below)
        if below:
            assert sum(other.size for other in below) == branch.size
            assert min(other.x for other in below) <= branch.x <= max(other.x for other in below)
            assert max(other.height for other in below) <= branch.height


@given(trees(max_points=10))
def test_with_room_for_all_every_leaf_is_an_end(tree):
    ends = [branch for branch in top_branches(tree, 20) if branch.is_end]
    assert sorted(branch.node for branch in ends) == list(range(tree.n_leaves))


def test_siblings_without_room_stand_together():
    first = np.arange(0, 100, 2)
    graph = agglo.NeighborGraph.from_edges(first, first + 1, np.ones(50), kind="distance")
    branches = top_branches(agglo.scc(graph), 5)
    assert [(branch.size, branch.n_nodes) for branch in branches[1:]] == [(2, 1)] * 4 + [(92, 46)]


def test_single_points_of_a_large_tree_stand_together():
    graph = agglo.NeighborGraph.from_edges([0, 1], [1, 2], [1.0, 1.0], n_points=100, kind="distance")
    branches = top_branches(agglo.scc(graph), 20)
    assert [(branch.size, branch.n_nodes) for branch in branches] == [(100, 1), (3, 1), (97, 97)]


def three_groups(n=60):
    X = np.random.default_rng(0).normal(size=(3 * n, 2)) + np.repeat([[0, 0], [90, 0], [0, 400]], n, axis=0)
    return agglo.hac(agglo.neighbor_graph(X, 3 * n - 1, "euclidean"))


def test_a_dendrogram_shows_the_condensed_tree_with_the_names_of_the_full_tree():
    tree = three_groups()
    axes = draw(tree, "dendrogram", names=lambda node: f"node {node} of ${tree.size[node]}$").axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert 3 <= len(texts) <= 40
    for text in texts:
        if text.startswith("node "):
            node, size, count = map(int, re.fullmatch(r"node (\d+) of \\\$(\d+)\\\$  \((\d+)\)", text).groups())
            assert tree.size[node] == size == count
    assert sum(text.startswith("node ") for text in texts) >= 3


def test_the_size_of_a_dendrogram_follows_its_ends():
    small, large = draw(three_groups(3), "dendrogram"), draw(three_groups(100), "dendrogram")
    assert small.get_size_inches()[1] < large.get_size_inches()[1] < 9
    assert len(small.axes[0].texts) == 9, "all points of a small tree are drawn"


def test_long_names_are_truncated():
    axes = draw(three_groups(), "dendrogram", names=lambda _: "x" * 500).axes[0]
    assert max(len(text.get_text()) for text in axes.texts) < 70


@pytest.mark.parametrize("n_ends", [1, 0, 2.5, True])
def test_too_few_ends(n_ends):
    tree = agglo.hac(agglo.NeighborGraph.from_edges([0], [1], [np.float32(1)], kind="distance"))
    with pytest.raises(ValueError, match=f"n_ends={n_ends} is too few to draw a tree"):
        top_branches(tree, n_ends)
