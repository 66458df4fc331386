import numpy as np
from forests import chain, partitions, trees
from hypothesis import given
from hypothesis import strategies as st

from agglo.explore.view import (
    MAX_CLUSTERS,
    Outline,
    expand_coarsest,
    path_from_root,
    split_nodes,
    thin_steps,
    visible_boxes,
)
from agglo.tree.taxonomy import compute_cophenetic_costs


@given(trees(max_points=60), st.data())
def test_boxes_nest_and_count_every_point_once(tree, data):
    outline = Outline.of(tree)
    node = data.draw(st.integers(0, tree.n_nodes - 1))
    order, steps = split_nodes(outline, node)
    step = data.draw(st.sampled_from(steps))
    share = data.draw(st.sampled_from([0.0, 0.05, 0.3]))
    found = visible_boxes(outline, node, set(order[: step.splits]), share)
    assert found[0] == (node, -1, tree.size[node], 1)
    shown = [box.node for box in found if box.node >= 0]
    assert len(set(shown)) == len(shown)
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
        assert place == 0 or outline.is_kept[found[place].node], "only nodes of the condensed tree enclose boxes"
        sizes = [part.size for part in parts if part.node >= 0]
        assert sizes == sorted(sizes, reverse=True)
    if share == 0:
        assert sum(box.number for place, box in enumerate(found) if place not in inside) == step.clusters


@given(trees(min_points=2, max_points=10))
def test_the_clusters_of_a_step_are_the_best_cut(tree):
    outline, costs = Outline.of(tree), compute_cophenetic_costs(tree)
    order, steps = split_nodes(outline, tree.n_nodes - 1)
    for step in steps:
        split = set(order[: step.splits])
        clusters = [v for v in range(tree.n_nodes - 1) if v not in split and tree.parent[v] in split]
        assert len(clusters) == step.clusters
        rivals = [cut for cut in partitions(tree) if len(cut) <= step.clusters]
        assert costs[clusters].sum() <= min(costs[list(cut)].sum() for cut in rivals) + 1e-9


@given(trees(max_points=60))
def test_every_position_of_the_slider_has_more_clusters(tree):
    steps = thin_steps(split_nodes(Outline.of(tree), tree.n_nodes - 1)[1])
    clusters = np.array([step.clusters for step in steps])
    assert (clusters[1:] >= 1.1 * clusters[:-1]).all()


def test_a_view_has_a_bounded_number_of_clusters():
    tree = chain(30_000)
    order, steps = split_nodes(Outline.of(tree), tree.n_nodes - 1)
    assert len(order) <= 5000
    assert steps[0].clusters >= 2
    assert steps[-1].clusters >= MAX_CLUSTERS or len(steps) == 1


@given(trees(), st.data())
def test_crumbs_lead_from_the_root_to_a_node_by_steps_that_shrink(tree, data):
    node = data.draw(st.integers(0, tree.n_nodes - 1))
    path = path_from_root(Outline.of(tree), node)
    assert (path[0], path[-1]) == (tree.n_nodes - 1, node)
    assert (np.diff(tree.size[path]) < 0).all()


def test_the_path_in_a_long_chain_is_short():
    assert len(path_from_root(Outline.of(chain(30_000)), 0)) < 50


@given(trees(max_points=60), st.integers(2, 40))
def test_the_top_of_a_tree_counts_every_point_once(tree, limit):
    outline = Outline.of(tree)
    found = expand_coarsest(outline, limit)
    inside = {}
    for place, box in enumerate(found[1:], start=1):
        assert 0 <= box.parent < place
        inside.setdefault(box.parent, []).append(box.size)
    assert all(sum(sizes) == found[place].size for place, sizes in inside.items())
    assert len(inside) <= limit
    expanded = [found[place].node for place in inside]
    ends = [box.node for place, box in enumerate(found) if place not in inside and box.node >= tree.n_leaves]
    limits = outline.split_limit
    assert min(limits[expanded], default=np.inf) >= max(limits[ends], default=0.0), "coarse cuts are complete"
