import numpy as np
import pytest
from forests import trees
from hypothesis import given
from hypothesis import strategies as st

import agglo
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
    graph = agglo.NeighborGraph.from_edges([], [], [], n_points=100, kind="distance")
    branches = top_branches(agglo.scc(graph), 5)
    assert [(branch.size, branch.n_nodes) for branch in branches[1:]] == [(1, 1)] * 4 + [(96, 96)]


@pytest.mark.parametrize("n_ends", [1, 0, 2.5, True])
def test_too_few_ends(n_ends):
    tree = agglo.hac(agglo.NeighborGraph.from_edges([0], [1], [np.float32(1)], kind="distance"))
    with pytest.raises(ValueError, match=f"n_ends={n_ends} is too few to draw a tree"):
        top_branches(tree, n_ends)
