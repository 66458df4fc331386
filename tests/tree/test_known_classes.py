import numpy as np
import pandas as pd
import pytest
from forests import TREE_OF_5, chain, partitions, trees
from hypothesis import given
from hypothesis import strategies as st

from agglo.tree.known_classes import cut_by_known_classes


def labels_of(tree, nodes):
    merged = np.zeros(tree.n_nodes, bool)
    merged[list(nodes)] = True
    return tree.partition(merged)


def agreement(labels, known):
    """Count the pairs of points of known class that agree, pair by pair."""
    points = list(known)
    return sum(
        (labels[a] == labels[b]) == (known[a] == known[b]) for i, a in enumerate(points) for b in points[:i]
    )


@given(trees(max_points=9), st.data())
def test_no_partition_agrees_on_more_pairs(tree, data):
    known = data.draw(
        st.dictionaries(st.integers(0, tree.n_leaves - 1), st.sampled_from(["a", "b", "c"]), min_size=1)
    )
    labels = tree.cut(known_classes=known)
    assert len(tree.nodes(labels)) == labels.max() + 1
    best = max((agreement(labels_of(tree, nodes), known), -len(nodes)) for nodes in partitions(tree))
    assert (agreement(labels, known), -(labels.max() + 1)) == best


def test_known_classes_may_be_mappings_lists_arrays_or_series():
    expected = [0, 0, 1, 1, 2]
    nan = float("nan")
    for known in (
        {0: "x", 1: "x", 2: "y"},
        {np.int32(0): 5, 1: 5, 2: -1},  # in a mapping every class counts
        ["x", "x", "y", None, None],
        ["x", "x", "y", nan, nan],
        [7, 7, 3, -1, -1],
        np.array([7, 7, 3, -1, -1], np.int8),
        np.array([1.0, 1.0, 2.0, nan, -1.0]),
        np.array([True, True, False, None, None], object),
        pd.Series(["x", "x", "y", None, None]),
        pd.array([1, 1, 2, None, None]),
    ):
        assert TREE_OF_5.cut(known_classes=known).tolist() == expected
    assert TREE_OF_5.cut(known_classes={0: "x"}).tolist() == [0] * 5  # one cluster agrees with one class
    assert TREE_OF_5.cut(known_classes={0: "x", 1: "y"}).tolist() == [0, 1, 2, 2, 3]
    assert TREE_OF_5.cut(known_classes={0: "x", 4: "x", 2: "y"}).tolist() == [
        0,
        0,
        1,
        1,
        2,
    ]  # a tie: 1 pair, 2 pairs apart


def test_deep_trees_take_no_recursion():
    labels = chain(100_000).cut(known_classes={0: 1, 1: 1, 99_998: 2, 99_999: 2})
    assert labels.max() == 2
    assert (labels[:99_998] == 0).all()


@pytest.mark.parametrize(
    ("known", "error", "words"),
    [
        ({}, ValueError, "known_classes has no class of any point: pass at least one"),
        ([-1, -1, -1, -1, -1], ValueError, "known_classes has no class of any point"),
        ({5: "x"}, IndexError, "known_classes has the point 5, but points go from 0 to 4"),
        ({-1: "x"}, IndexError, "known_classes has the point -1, but points go from 0 to 4"),
        ({"0": "x"}, TypeError, "a key of known_classes='0' is not a point: pass an integer"),
        ({0: ["x"]}, TypeError, "known_classes has a value that cannot be a class .*: pass integers or strings"),
        ([1, 2], ValueError, r"known_classes has shape \(2,\): pass one entry for each of 5 leaves"),
        ("xxyy", ValueError, r"known_classes has shape \(\): pass one entry for each of 5 leaves"),
    ],
)
def test_wrong_classes_are_errors(known, error, words):
    with pytest.raises(error, match=words):
        TREE_OF_5.cut(known_classes=known)


def test_the_function_and_the_rule_agree():
    np.testing.assert_array_equal(
        cut_by_known_classes(TREE_OF_5, {0: 1, 1: 2}), TREE_OF_5.cut(known_classes={0: 1, 1: 2})
    )
