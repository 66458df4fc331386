from dataclasses import replace

import numpy as np
import pytest
from forests import ancestors, least_common_ancestor, partitions, trees
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster

import agglo
from agglo import Hierarchy
from agglo.testing import random_forest
from agglo.tree.hierarchy import Rounds

# 6 points merge into 4 clusters, then 2; the explicit root over them is not a merge.
FOREST = Hierarchy(
    parent=[6, 6, 7, 7, 8, 8, 8, 9, 9, -1],
    height=[0, 0, 0, 0, 0, 0, 0.2, 0.1, 0.2, 0.2],
    size=[1, 1, 1, 1, 1, 1, 2, 2, 4, 6],
    round=[0, 0, 0, 0, 0, 0, 1, 1, 2, 3],
    rounds=Rounds([0.2, 0.2], [6, 4], [4, 2], [0, 0]),
)


def same_partition(a, b):
    pairs = np.unique(np.column_stack([a, b]), axis=0)
    return len(pairs) == len(np.unique(a)) == len(np.unique(b))


@given(trees(), st.data())
def test_the_round_of_the_closest_count_is_chosen(tree, data):
    wanted = data.draw(st.integers(1, tree.n_leaves))
    counts = [tree.n_leaves, *tree.rounds.after.tolist()]
    closest = min(abs(count - wanted) for count in counts)
    finest = max(count for count in counts if abs(count - wanted) == closest)
    labels = tree.cut(n_clusters=wanted)
    assert labels.max() + 1 == finest
    np.testing.assert_array_equal(labels, tree.labels(round=counts.index(finest)))


def test_of_two_rounds_equally_close_the_finer_is_chosen():
    assert FOREST.cut(3).max() + 1 == 4
    assert FOREST.cut(np.int64(5)).max() + 1 == 6


def test_a_forest_gives_its_last_round_for_fewer_clusters():
    np.testing.assert_array_equal(FOREST.cut(n_clusters=1), FOREST.labels(round=-1))


@given(trees())
def test_labels_of_a_round_apply_all_merges_by_then(tree):
    last = len(tree.rounds)
    for index in range(last + 1):
        labels = tree.labels(round=index)
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(labels, tree.labels(round=index - last - 1))
        np.testing.assert_array_equal(labels, tree.cut(round=index))
        for a in range(tree.n_leaves):
            for b in range(a):
                assert (labels[a] == labels[b]) == (tree.round[least_common_ancestor(tree, a, b)] <= index)


@given(trees(min_points=2), st.floats(0, 4.5))
def test_a_height_applies_all_merges_up_to_it(tree, height):
    explicit = tree.round[-1] > len(tree.rounds)
    for limit in (height, *np.unique(tree.height)):
        labels = tree.cut(height=limit)
        assert labels[0] == 0
        assert (np.diff(np.unique(labels, return_index=True)[1]) > 0).all()
        for a in range(tree.n_leaves):
            for b in range(a):
                node = least_common_ancestor(tree, a, b)
                merged = not (explicit and node == tree.n_nodes - 1)
                assert (labels[a] == labels[b]) == (merged and tree.height[node] <= limit)
        if not explicit and limit >= 0:
            assert same_partition(labels, fcluster(tree.to_scipy(), limit, "distance"))


def test_the_root_of_a_forest_is_not_a_merge_at_any_height():
    assert FOREST.cut(height=np.inf).tolist() == [0, 0, 1, 1, 0, 0]
    assert FOREST.cut(height=0.2).tolist() == [0, 0, 1, 1, 0, 0]
    assert FOREST.cut(height=0.1).tolist() == [0, 1, 2, 2, 3, 4]


def test_a_partition_of_any_nodes():
    merged = np.zeros(10, bool)
    merged[8] = True  # nodes below it are merged, too
    assert FOREST.partition(merged).tolist() == [0, 0, 1, 2, 0, 0]
    with pytest.raises(ValueError, match=r"merged has shape \(3,\): pass one entry for each of 10 nodes"):
        FOREST.partition(np.zeros(3, bool))


def test_large_trees_are_cut():
    tree = Hierarchy.from_forest(random_forest(np.random.default_rng(0), 200_000), kind="similarity", missing=0.0)
    assert tree.cut(n_clusters=1).max() == 0
    assert tree.labels(round=1).max() + 1 == tree.rounds[0].after


@pytest.mark.parametrize("given", [{}, {"n_clusters": 2, "round": 1}, {"round": 0, "height": 0.0}])
def test_a_cut_follows_exactly_one_rule(given):
    got = " and ".join(given) or "none"
    with pytest.raises(ValueError, match=f"one rule, got {got}: pass exactly one of n_clusters, round, height"):
        FOREST.cut(**given)


@pytest.mark.parametrize("number", [0, -3, 7])
def test_impossible_numbers_of_clusters_are_errors(number):
    with pytest.raises(ValueError, match=f"n_clusters={number} is impossible: the tree has 6 leaves.*from 1 to 6"):
        FOREST.cut(n_clusters=number)


@pytest.mark.parametrize("index", [3, -4])
def test_rounds_out_of_range_are_errors(index):
    with pytest.raises(IndexError, match=rf"round={index} is out of range: the tree has 2 rounds.*to 2.*to -3"):
        FOREST.labels(round=index)
    with pytest.raises(IndexError, match="is out of range"):
        FOREST.cut(round=index)


def test_wrong_types_are_errors():
    with pytest.raises(TypeError, match=r"n_clusters=2\.5 is not a number of clusters: pass an integer"):
        FOREST.cut(n_clusters=2.5)
    with pytest.raises(TypeError, match=r"round=1\.0 is not a round: pass an integer"):
        FOREST.cut(round=1.0)
    with pytest.raises(TypeError, match="height='low' is not a number"):
        FOREST.cut(height="low")
    with pytest.raises(ValueError, match="height must not be NaN: pass a number"):
        FOREST.cut(height=float("nan"))
    with pytest.raises(ValueError, match="height=-1 is not allowed: pass 0 or more"):
        FOREST.cut(height=-1)


def test_trees_without_a_record_are_cut_too():
    assert replace(FOREST, about={}).cut(round="persistent").tolist() == FOREST.cut(round=2).tolist()


def test_an_unknown_rule_for_the_round_is_an_error():
    with pytest.raises(ValueError, match="round='best' is unknown: pass an integer, or one of persistent"):
        FOREST.cut(round="best")


def sizes_of(tree, nodes):
    return [int(tree.size[node]) for node in nodes]


@given(trees(max_points=9), st.data())
def test_sizes_bound_the_clusters(tree, data):
    found = partitions(tree)
    most = data.draw(st.integers(1, tree.n_leaves + 2))
    least = data.draw(st.integers(1, tree.n_leaves))
    small_enough = [nodes for nodes in found if max(sizes_of(tree, nodes)) <= most]
    large_enough = [nodes for nodes in found if min(sizes_of(tree, nodes)) >= least]
    coarsest = min(small_enough, key=len)
    assert tuple(sorted(tree.nodes(tree.cut(max_size=most)))) == coarsest
    assert tuple(sorted(tree.nodes(tree.cut(min_size=least)))) == max(large_enough, key=len)
    if least <= most:
        if coarsest in large_enough:
            labels = tree.cut(min_size=least, max_size=most)
            assert tuple(sorted(tree.nodes(labels))) == coarsest
        else:
            assert not set(small_enough) & set(large_enough)
            with pytest.raises(ValueError, match=f"min_size={least} and max_size={most} exclude each other"):
                tree.cut(min_size=least, max_size=most)


@given(trees(max_points=12), st.integers(1, 12))
def test_noise_may_be_labelled(tree, least):
    if least > tree.n_leaves:
        return
    labels = tree.cut(min_size=least, noise="label")
    kept = labels[labels >= 0]
    assert (np.bincount(kept) >= least).all()
    assert (np.diff(np.unique(kept, return_index=True)[1]) > 0).all()  # in order of first appearance
    # A node is split if it, or a node below it, has two children that are large enough.
    splits = [
        node for node in range(tree.n_leaves, tree.n_nodes) if (tree.size[tree.children(node)] >= least).sum() > 1
    ]
    split = {above for node in splits for above in ancestors(tree, node)}
    for point in range(tree.n_leaves):
        top = max(node for node in ancestors(tree, point) if node not in split) if point not in split else point
        members = np.zeros(tree.n_leaves, bool)
        members[tree.leaves(top)] = True
        expected = members & (labels == labels[point]) if labels[point] >= 0 else members
        assert (tree.size[top] >= least) == (labels[point] >= 0)
        np.testing.assert_array_equal(expected, members)
    both = tree.cut(min_size=least, max_size=least, noise="label")
    assert set(np.bincount(both[both >= 0])) <= {least}


def test_one_late_point_keeps_a_node_whole_unless_noise_is_labelled():
    # Two clusters of three points, and a point that merges with both at the root.
    parent, size = [7, 7, 7, 8, 8, 8, 9, 9, 9, -1], [1] * 7 + [3, 3, 7]
    level = [0] * 7 + [1, 1, 2]
    tree = Hierarchy(parent, level, size, level, Rounds([1, 2], [7, 3], [3, 1], [0, 0]))
    assert tree.cut(min_size=2).tolist() == [0] * 7
    assert tree.cut(min_size=2, noise="label").tolist() == [0, 0, 0, 1, 1, 1, -1]
    assert tree.cut(min_size=4, noise="label").tolist() == [0] * 7
    assert tree.cut(max_size=3).tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert tree.cut(min_size=2, max_size=3, noise="label").tolist() == [0, 0, 0, 1, 1, 1, -1]


@pytest.mark.parametrize(
    ("rule", "error", "words"),
    [
        (
            {"min_size": 0},
            ValueError,
            "min_size=0 is not a possible cluster size: pass a number from 1 to 6, the number",
        ),
        (
            {"min_size": 7},
            ValueError,
            "min_size=7 is not a possible cluster size: pass a number from 1 to 6, the number",
        ),
        ({"max_size": 0}, ValueError, "max_size=0 is not a possible cluster size: pass 1 or more"),
        ({"max_size": 2.0}, TypeError, r"max_size=2\.0 is not a number of points: pass an integer"),
        ({"min_size": 4, "max_size": 3}, ValueError, "min_size=4 is more than max_size=3"),
        (
            {"min_size": 2, "noise": "drop"},
            ValueError,
            "noise='drop' is unknown: pass 'merge' or 'label'",
        ),
        (
            {"max_size": 2, "noise": "label"},
            ValueError,
            "noise is given, but the rule max_size does not",
        ),
        ({"min_size": 2, "height": 1}, ValueError, "one rule, got height and min_size: pass exactly one of"),
        (
            {"n_clusters": 2, "exact": True},
            ValueError,
            "the rule n_clusters with exact=True needs the points that the tree was built from: pass X",
        ),
        ({"dp_means": 2}, ValueError, "the rule dp_means needs the points that the tree was built from: pass X"),
        ({"height": 2, "exact": True}, ValueError, "exact is given, but the rule height does not use it"),
        ({"height": 2, "X": np.ones((6, 1))}, ValueError, "X is given, but the rule height does not use it"),
        (
            {"round": 2, "centers": "points"},
            ValueError,
            "centers is given, but the rule round does not use it",
        ),
        (
            {"round": "persistent", "graph": 0},
            ValueError,
            "graph is given, but the rule round does not use it",
        ),
        ({"dp_means": -1.0, "X": 0}, ValueError, "lam=-1 is not allowed: pass 0 or more"),
        ({"dp_means": np.nan, "X": 0}, ValueError, "lam=nan is not allowed: pass 0 or more"),
        ({"dp_means": [], "X": 0}, TypeError, r"lam must be one number, got an array of shape \(0,\)"),
        (
            {"n_clusters": 0, "exact": True, "X": 0},
            ValueError,
            "n_clusters=0 is impossible: the tree has 6 leaves.*from 1 to 6",
        ),
        (
            {"n_clusters": 7, "exact": True, "X": 0},
            ValueError,
            "n_clusters=7 is impossible: the tree has 6 leaves",
        ),
        (
            {"n_clusters": 1, "exact": True, "X": np.ones((5, 1))},
            ValueError,
            "X has 5 rows, but the tree has 6 leaves",
        ),
        ({"dp_means": 1, "X": np.ones((6, 1)), "centers": "x"}, ValueError, "centers='x' is unknown"),
    ],
)
def test_wrong_rules_and_inputs_are_errors(rule, error, words):
    with pytest.raises(error, match=words):
        FOREST.cut(**rule)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            {"exactly": 4, "X": np.arange(6.0)[:, None]},
            {"n_clusters": 4, "exact": True, "X": np.arange(6.0)[:, None]},
            "exactly is deprecated: pass n_clusters with exact=True",
        ),
        (
            {"known": {0: "a", 2: "b"}},
            {"known_classes": {0: "a", 2: "b"}},
            "known is deprecated: pass known_classes",
        ),
        (
            {"min_size": 2, "stragglers": "leave"},
            {"min_size": 2, "noise": "label"},
            "stragglers is deprecated: pass noise",
        ),
        ({"n_clusters": 4, "exactly": None}, {"n_clusters": 4}, "exactly is deprecated"),
        ({"min_size": 2, "noise": "leave"}, {"min_size": 2, "noise": "label"}, "noise='leave' is deprecated"),
        ({"min_size": 2, "noise": "join"}, {"min_size": 2}, "noise='join' is deprecated: pass noise='merge'"),
    ],
)
def test_old_parameter_names_warn_and_give_the_same_cut(old, new, words):
    with pytest.warns(FutureWarning, match=words) as record:
        labels = FOREST.cut(**old)
    assert record[0].filename == __file__
    np.testing.assert_array_equal(labels, FOREST.cut(**new))


def test_an_old_name_beside_the_new_one_is_an_error():
    with (
        pytest.warns(FutureWarning, match="known is deprecated"),
        pytest.raises(TypeError, match="known is the old name of known_classes, and both are given"),
    ):
        FOREST.cut(known={0: 1}, known_classes={0: 1})


def test_the_old_method_of_a_path_warns():
    path = agglo.dp_means_path(FOREST, np.arange(6.0)[:, None])
    with pytest.warns(FutureWarning, match="exactly is deprecated: call cut_exactly"):
        labels = path.exactly(4)
    np.testing.assert_array_equal(labels, path.cut_exactly(4))


def test_costs_choose_the_nodes():
    X = [[0.0], [0.0], [5.0], [6.0], [1.0], [2.0]]
    path = agglo.dp_means_path(FOREST, X)
    for lam in (0, 0.4, 0.5, 3, 50, np.inf):
        np.testing.assert_array_equal(FOREST.cut(dp_means=lam, X=X), path.cut(lam))
    for k in (1, 2, 4, 5, 6):
        np.testing.assert_array_equal(FOREST.cut(n_clusters=k, exact=True, X=X), path.cut_exactly(k))
    assert FOREST.cut(n_clusters=1, exact=True, X=X).tolist() == [0] * 6
    assert FOREST.cut(n_clusters=6, exact=True, X=X).tolist() == [0, 1, 2, 3, 4, 5]
    assert FOREST.cut(dp_means=0, X=X).tolist() == [0, 0, 1, 2, 3, 4]
    assert FOREST.cut(dp_means=np.inf, X=X).tolist() == [0] * 6  # all nodes count, the root of a forest too
    points = agglo.dp_means_path(FOREST, X, centers="points")
    np.testing.assert_array_equal(FOREST.cut(dp_means=0.8, X=X, centers="points"), points.cut(0.8))


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_impossible_numbers_of_layers_are_errors(n, error):
    with pytest.raises(error, match=f"n={n} is not a number of layers: pass"):
        FOREST.layers(n)


def test_nodes_of_a_cut():
    assert FOREST.nodes([0, 0, 1, 1, 0, 0]).tolist() == [8, 7]
    assert FOREST.nodes(np.zeros(6, np.int8)).tolist() == [9]
    with pytest.raises(ValueError, match="cluster 1 of 2 points is not a node of the tree: pass labels of a cut"):
        FOREST.nodes([0, 1, 1, 2, 3, 4])
    with pytest.raises(ValueError, match="cluster 1 of 0 points is not a node"):
        FOREST.nodes([0, 0, 2, 2, 0, 0])
    with pytest.raises(ValueError, match=r"an integer for each of 6 leaves, got int64 of shape \(2,\)"):
        FOREST.nodes([0, 1])
    with pytest.raises(ValueError, match=r"an integer for each of 6 leaves, got float64 of shape \(6,\)"):
        FOREST.nodes(np.zeros(6))
    assert FOREST.nodes([-1, -1, 0, 0, -1, 1]).tolist() == [7, 5]
    for labels in ([-1] * 6, [0, 0, 0, 0, 0, -2], [0, 0, 0, 0, 0, 6]):
        with pytest.raises(
            ValueError, match=f"labels go from {min(labels)} to {max(labels)}: number the clusters"
        ):
            FOREST.nodes(labels)
