import numpy as np
from forests import chain, trees
from hypothesis import given
from hypothesis import strategies as st

from agglo.explore.view import path_from_root, visible_boxes


@given(trees(max_points=60), st.data())
def test_boxes_nest_and_count_every_point_once(tree, data):
    node = data.draw(st.integers(0, tree.n_nodes - 1))
    round = data.draw(st.integers(0, len(tree.rounds) + 1))
    limit = data.draw(st.integers(2, 40))
    share = data.draw(st.sampled_from([0.0, 0.05, 0.3]))
    depth = data.draw(st.integers(1, 5))
    found = visible_boxes(tree, node, round, limit=limit, depth=depth, share=share)
    assert found[0] == (node, -1, tree.size[node], 1)
    shown = [box.node for box in found if box.node >= 0]
    assert len(set(shown)) == len(shown) <= limit
    inside = {}
    for place, box in enumerate(found[1:], start=1):
        assert 0 <= box.parent < place
        inside.setdefault(box.parent, []).append(box)
        if box.node >= 0:
            assert box.size == tree.size[box.node]
            assert set(tree.leaves(box.node)) <= set(tree.leaves(found[box.parent].node))
            assert box.parent == 0 or box.size >= share * found[0].size
    for place, parts in inside.items():
        assert sum(part.size for part in parts) == found[place].size
        assert [part.number == 1 or part.node == -1 for part in parts] == [True] * len(parts)
        assert place == 0 or tree.round[found[place].node] > round, "a cluster of the round was opened"
        sizes = [part.size for part in parts if part.node >= 0]
        assert sizes == sorted(sizes, reverse=True)


@given(trees(min_points=2), st.data())
def test_with_room_for_all_the_innermost_boxes_are_the_partition_of_the_round(tree, data):
    round = data.draw(st.integers(0, len(tree.rounds)))
    root = tree.n_nodes - 1
    found = visible_boxes(tree, root, round, limit=5000, depth=20, share=0.0)
    outer = {box.parent for box in found}
    innermost = [box.node for place, box in enumerate(found) if place not in outer]
    if round < tree.round[root]:  # else the root alone would be seen, and is opened
        expected = set(tree.nodes(tree.labels(round=round)).tolist())
        assert set(innermost) == expected


@given(trees(), st.data())
def test_crumbs_lead_from_the_root_to_a_node_by_steps_that_shrink(tree, data):
    node = data.draw(st.integers(0, tree.n_nodes - 1))
    path = path_from_root(tree, node)
    assert (path[0], path[-1]) == (tree.n_nodes - 1, node)
    assert (np.diff(tree.size[path]) < 0).all()


def test_a_child_that_is_nearly_all_of_a_node_is_passed_over():
    tree = chain(1000)  # each node is a point and the node before
    found = visible_boxes(tree, tree.n_nodes - 1, 0, limit=400, depth=2, share=0.0)
    assert found[1].node == tree.n_nodes - 1 - 200  # the first of no more than 0.8 of all
    assert found[-1].node == -1 or found[-1].number == 1
    assert sum(box.size for box in found if box.parent == 0) == 1000


def test_very_long_chains_are_opened_in_steps():
    tree = chain(30_000)
    found = visible_boxes(tree, tree.n_nodes - 1, 0, limit=400, depth=3, share=0.0005)
    assert found[1].size == 30_000 - 500 - 1
    assert 10 < len(path_from_root(tree, 0)) < 50, "by ratios, not by single points"
