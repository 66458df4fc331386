import itertools

import numpy as np
import pytest
from forests import chain, least_common_ancestor, partitions, trees
from hypothesis import given
from hypothesis import strategies as st

import agglo
from agglo.tree.persistent_round import rescale_heights
from agglo.tree.taxonomy import compute_cophenetic_costs


@given(trees(max_points=15))
def test_costs_are_sums_over_pairs(tree):
    height = rescale_heights(tree, tree.height)
    costs = compute_cophenetic_costs(tree)
    for node in range(tree.n_nodes):
        leaves = tree.leaves(node).tolist()
        pairs = itertools.combinations(leaves, 2)
        total = sum(height[least_common_ancestor(tree, a, b)] for a, b in pairs)
        assert costs[node] == pytest.approx(total / len(leaves))


@given(trees(min_points=2, max_points=10), st.data())
def test_no_cut_with_as_few_clusters_costs_less(tree, data):
    numbers = sorted(data.draw(st.sets(st.integers(1, tree.n_leaves), min_size=1, max_size=3)))
    largest = data.draw(st.none() | st.integers(1, tree.n_leaves))
    costs = compute_cophenetic_costs(tree)
    levels = tree.taxonomy(numbers, max_size=largest).labels
    cuts = partitions(tree)
    for i, labels in enumerate(levels):
        nodes = tree.nodes(labels)
        limit = largest if largest is not None and i == len(levels) - 1 else tree.n_leaves
        if largest is None:
            rivals = cuts
        elif i == len(levels) - 1:
            rivals = [cut for cut in cuts if tree.size[list(cut)].max() <= limit]
        else:
            continue  # the next test checks that the coarser levels are nested in such a level
        rivals = [cut for cut in rivals if len(cut) <= len(nodes)]
        if rivals:  # none, if only the root has few enough clusters
            assert costs[nodes].sum() <= min(costs[list(cut)].sum() for cut in rivals) + 1e-9


@given(trees(max_points=40), st.data())
def test_levels_are_nested_and_split_into_enough_parts(tree, data):
    numbers = sorted(data.draw(st.sets(st.integers(1, tree.n_leaves), min_size=1, max_size=4)))
    fewest = data.draw(st.integers(2, 5))
    found = tree.taxonomy(numbers, min_children=fewest)
    assert found.labels.shape == (len(numbers), tree.n_leaves)
    for coarse, fine in itertools.pairwise(found.labels):
        pairs = np.unique(np.column_stack([fine, coarse]), axis=0)
        assert len(pairs) == fine.max() + 1  # each fine cluster is inside one coarse cluster
        parts = np.bincount(pairs[:, 1])
        is_root = len(parts) == 1
        assert is_root or ((parts == 1) | (parts >= fewest)).all()
    nodes = {*found.tree.size[found.tree.n_leaves :].tolist()}
    assert nodes >= {size for labels in found.labels for size in np.bincount(labels).tolist() if size > 1}


def test_clusters_of_the_finest_level_are_at_most_as_large_as_wanted():
    X = np.random.default_rng(0).normal(size=(300, 4))
    tree = agglo.hac(agglo.neighbor_graph(X, 20, "euclidean"))
    assert np.bincount(tree.taxonomy([3, 10]).labels[-1]).max() > 30
    labels = tree.taxonomy([3, 10], max_size=30).labels
    assert np.bincount(labels[-1]).max() <= 30
    assert np.bincount(labels[0]).max() > 30


def planted_groups():
    """Draw 4 groups of 3 groups of 25 points; return the points and both levels."""
    rng = np.random.default_rng(1)
    centers = 50 * rng.normal(size=(4, 1, 5)) + 8 * rng.normal(size=(4, 3, 5))
    fine = np.repeat(np.arange(12), 25)
    return centers.reshape(12, 5)[fine] + rng.normal(size=(300, 5)), fine // 3, fine


def test_planted_levels_are_found():
    X, coarse, fine = planted_groups()
    tree = agglo.hac(agglo.neighbor_graph(X, 299, "euclidean"))
    for labels, truth in zip(tree.taxonomy([4, 12]).labels, (coarse, fine), strict=True):
        np.testing.assert_array_equal(labels, truth)
    assert tree.taxonomy([4, 12]).tree.n_nodes == 300 + 12 + 4 + 1


def test_a_far_point_is_no_cluster_of_its_own():
    X, _, _ = planted_groups()
    tree = agglo.hac(agglo.neighbor_graph(np.vstack([X, X[0] + 25]), 300, "euclidean"))
    assert np.bincount(tree.taxonomy([4]).labels[0]).min() >= 75
    assert np.bincount(tree.cut(n_clusters=5)).min() == 1


@given(trees(max_points=30), st.integers(1, 5))
def test_layers_are_nested_cuts_from_fine_to_coarse(tree, n):
    layers = tree.layers(n)
    counts = layers.max(axis=1) + 1
    assert 1 <= len(layers) <= n
    assert (np.diff(counts) < 0).all()
    for fine, coarse in itertools.pairwise(layers):
        assert len(np.unique(np.column_stack([fine, coarse]), axis=0)) == fine.max() + 1
    if len(layers) > 1:
        assert 1 < counts.min() <= counts.max() < tree.n_leaves


def test_layers_have_numbers_in_geometric_progression_below_the_persistent_number():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 1, 30)) + 0.01 * rng.normal(size=(40, 20, 30))
    tree = agglo.hac(agglo.neighbor_graph(X.reshape(800, 30), 799, "euclidean"))
    assert len(set(tree.cut(round="persistent"))) == 40
    counts = tree.layers(3).max(axis=1) + 1
    assert counts[0] == 40
    assert counts[1] == pytest.approx(16, abs=2)
    assert counts[2] == pytest.approx(6, abs=1)


@pytest.mark.parametrize(
    ("numbers", "parameters", "error", "message"),
    [
        ([], {}, ValueError, r"n_clusters=\[\] must increase: pass one or more numbers, from coarse to fine"),
        ([3, 2], {}, ValueError, r"n_clusters=\[3, 2\] must increase"),
        (
            [2, 9],
            {},
            ValueError,
            r"n_clusters=\[2, 9\] is impossible: the tree has 5 leaves, so pass numbers",
        ),
        ([0, 2], {}, ValueError, r"n_clusters=\[0, 2\] is impossible"),
        ([2.5], {}, TypeError, "n_clusters=2.5 is not a number of clusters: pass an integer"),
        ([2], {"min_children": 1}, ValueError, "min_children=1 is not a number of parts: pass 2 or more"),
        ([2], {"max_size": 0}, ValueError, "max_size=0 is not a possible cluster size: pass 1 or more"),
    ],
)
def test_wrong_parameters_raise(numbers, parameters, error, message):
    with pytest.raises(error, match=message):
        chain(5).taxonomy(numbers, **parameters)
