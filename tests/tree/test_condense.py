import itertools
import json

import numpy as np
import pytest
from forests import ancestors, chain, trees
from hypothesis import given
from hypothesis import strategies as st

import agglo
from agglo import Hierarchy
from agglo.tree.condense import default_min_size, select_nodes
from agglo.tree.persistent_round import rescale_heights


def plain_levels(tree):
    """Return the level of each node by the definition."""
    rounds = range(int(tree.round[-1]) + 1)
    mean = [np.mean([np.log(tree.size[cluster_at(tree, i, r)]) for i in range(tree.n_leaves)]) for r in rounds]
    height = rescale_heights(tree, tree.height) * np.log(tree.n_leaves)
    height = height / (rescale_heights(tree, tree.height)[-1] or 1.0)
    return [(np.log(tree.size[v]) + mean[tree.round[v]] + height[v]) / 3 for v in range(tree.n_nodes)]


def cluster_at(tree, leaf, round):
    return [node for node in ancestors(tree, leaf) if tree.round[node] <= round][-1]


def plain_cost(tree, level, kept, branching):
    """Return the cost of keeping a set of nodes by the definition."""
    cost = 0.0
    for node in range(tree.n_leaves, tree.n_nodes):
        if node in kept:
            cost += np.log(branching) ** 2 / 2 * tree.size[node]
        else:
            shares = tree.size[tree.children(node)] / tree.size[node]
            reader = next(above for above in ancestors(tree, node) if above in kept)
            cost -= tree.size[node] * (shares * np.log(shares)).sum() * (level[reader] - level[node])
    return cost


@given(trees(min_points=2, max_points=10), st.sampled_from([1.1, 1.5, 2.0, 3.0, 8.0]), st.integers(1, 4))
def test_no_set_of_nodes_costs_less(tree, branching, min_size):
    level, root = plain_levels(tree), tree.n_nodes - 1
    free = [v for v in range(tree.n_leaves, root) if tree.size[v] >= min_size]
    subsets = itertools.chain.from_iterable(itertools.combinations(free, k) for k in range(len(free) + 1))
    best = min(plain_cost(tree, level, {root, *subset}, branching) for subset in subsets)
    found = set(select_nodes(tree, branching, min_size).tolist())
    assert root in found
    assert found <= {root, *free}
    assert plain_cost(tree, level, found, branching) == pytest.approx(best)


@given(trees(max_points=40), st.sampled_from([1.2, 2.0, 4.0]), st.none() | st.integers(1, 9))
def test_condensed_trees_have_the_kept_nodes_with_their_leaves_and_heights(tree, branching, min_size):
    small = tree.condense(branching=branching, min_size=min_size)
    assert small.n_leaves == tree.n_leaves
    if tree.n_leaves == 1:
        return
    nodes = select_nodes(tree, branching, min_size or default_min_size(tree.n_leaves))
    assert len(nodes) == small.n_nodes - small.n_leaves
    for position, node in enumerate(nodes):
        twin = tree.n_leaves + position
        np.testing.assert_array_equal(small.leaves(twin), tree.leaves(node))
        assert small.height[twin] == tree.height[node]
    assert small.about["condensed"] == {
        "branching": branching,
        "min_size": min_size or default_min_size(tree.n_leaves),
    }


def test_a_condensed_tree_can_be_saved_cut_condensed_and_converted(tmp_path):
    tree = two_groups().condense(branching=2, min_size=3)
    tree.save(tmp_path / "tree.parquet")
    loaded = Hierarchy.load(tmp_path / "tree.parquet")
    np.testing.assert_array_equal(loaded.parent, tree.parent)
    assert loaded.about == json.loads(json.dumps(dict(tree.about)))
    assert len(set(tree.cut(max_size=79))) > 1
    assert len(tree.to_scipy()) == tree.n_leaves - 1
    assert tree.condense(min_size=3).n_nodes <= tree.n_nodes


def two_groups(n=40):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (n, 2)), rng.normal(30, 1, (n, 2))])
    return agglo.hac(agglo.neighbor_graph(X, 79, "euclidean"), linkage="average")


def test_separated_groups_are_the_children_of_the_root():
    tree = two_groups().condense(branching=4, min_size=5)
    assert sorted(tree.size[tree.children(tree.n_nodes - 1)]) == [40, 40]


def test_small_parts_become_points_of_their_parent():
    tree = two_groups().condense(min_size=6)
    assert tree.size[tree.n_leaves :].min() >= 6


def test_a_chain_of_single_points_is_a_few_nodes():
    assert chain(100).condense(branching=4).n_nodes <= 106


def test_a_larger_branching_keeps_fewer_nodes():
    counts = [two_groups().condense(branching=b).n_nodes for b in (1.1, 2, 4, 16)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_facts_about_rounds_of_the_full_tree_are_left_out():
    X = np.repeat([[0.0], [1.0], [5.0], [6.0]], 3, axis=0)
    tree = agglo.SCC(n_neighbors=3, metric="euclidean").fit(X).tree_
    assert "copies" in tree.about
    assert "copies" not in tree.condense().about


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"branching": 1}, ValueError, "branching=1 is not a typical number of children: pass a finite number"),
        ({"branching": float("nan")}, ValueError, "branching=nan is not a typical number of children"),
        ({"branching": "two"}, TypeError, "branching='two' is not a number: pass a number above 1"),
        ({"min_size": 0}, ValueError, "min_size=0 is not a possible cluster size: pass 1 or more"),
        ({"min_size": 1.5}, TypeError, "min_size=1.5 is not a number of points: pass an integer"),
    ],
)
def test_wrong_parameters_raise(parameters, error, message):
    with pytest.raises(error, match=message):
        chain(5).condense(**parameters)


def test_the_default_size_grows_with_the_number_of_points():
    assert [default_min_size(n) for n in (1, 100, 8_000, 1_000_000, 100_000_000)] == [2, 2, 3, 13, 59]
