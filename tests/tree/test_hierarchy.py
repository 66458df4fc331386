import copy
import pickle
import re
import sys

import numpy as np
import pytest
from forests import COLUMNS, ROUNDS, TREE, ancestors, chain, forests, least_common_ancestor, trees
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy as sch
from scipy.spatial.distance import squareform

from agglo import Hierarchy
from agglo.testing import assert_same_hierarchy, check_hierarchy, random_forest
from agglo.tree.forest import Forest
from agglo.tree.hierarchy import Round, Rounds


def alone():
    empty = np.empty(0)
    return Hierarchy([-1], [0.0], [1], [0], Rounds(empty, empty, empty, empty))


def pair(missing="ignore"):
    """Return the tree of two points that never merged."""
    empty = np.empty(0)
    forest = Forest(
        np.array([-1, -1], np.int32),
        np.array([np.nan, np.nan]),
        np.ones(2, np.int32),
        np.zeros(2, np.int32),
        empty,
        empty.astype(np.int64),
        empty.astype(np.int64),
        empty,
    )
    return Hierarchy.from_forest(forest, kind="similarity", missing=missing, origin=2.0)


# The type and its invariants


def test_columns_have_the_documented_types_and_about_is_json():
    assert [getattr(TREE, name).dtype for name in COLUMNS] == [np.int32, np.float64, np.int32, np.int32]
    assert TREE.about == {"kind": "distance", "thresholds": [1, 2]}
    assert (TREE.n_leaves, TREE.n_nodes) == (4, 6)
    assert repr(TREE) == "Hierarchy(4 leaves, 6 nodes, 2 rounds, height 0.75)"


def test_rounds_are_a_sequence_of_records():
    assert ROUNDS[0] == Round(threshold=0.5, before=4, after=3, seconds=0.1)
    assert [record.after for record in ROUNDS] == [3, 1]
    assert list(ROUNDS[1:]) == [ROUNDS[-1]]
    assert repr(ROUNDS) == "Rounds(2 rounds, 4 to 1 clusters)"
    assert type(ROUNDS[0].before) is int
    with pytest.raises(IndexError):
        ROUNDS[2]
    with pytest.raises(ValueError, match="of the same length"):
        Rounds([1.0], [2], [1], [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": [4, 4, 5, 5, 3, -1]}, "node 4 has parent 3, which is not an inner node of a larger id"),
        ({"parent": [4, 4, 5, 5, 5, 5]}, "the last node must be the root, with parent -1, but has parent 5"),
        ({"parent": [4, 4, -1, 5, 5, -1]}, "node 2 has parent -1"),
        ({"parent": [5, 4, 5, 5, 5, -1]}, "node 4 has 1 children, fewer than 2"),
        ({"height": [0, 0, 0, 0, 0.25, 0.125]}, "node 4 is higher than its parent 5"),
        ({"height": [0, 0, 0, 0, np.nan, 0.5]}, "node 4 has height nan"),
        ({"height": [0, 0, 0, 0, 0.25, np.inf]}, "node 5 has height inf"),
        ({"height": [0, 0.125, 0, 0, 0.25, 0.5]}, "leaf 1 has height"),
        ({"size": [1, 1, 1, 1, 3, 4]}, "node 4 has size 3, but its children have 2 leaves"),
        ({"size": [1, 1, 2, 1, 2, 4]}, "leaf 2 has size 2, not 1"),
        ({"round": [0, 0, 0, 0, 2, 2]}, "node 4 of round 2 has a parent of round 2"),
        ({"round": [0, 0, 0, 0, 1, 4]}, r"node 5 is of round 4, outside 1\.\.3"),
        ({"round": [0, 0, 0, 0, 1, 3]}, "no node is of round 2"),
        ({"round": [1, 0, 0, 0, 1, 2]}, "node 0 must be a leaf"),
        (
            {"rounds": Rounds([0, 0], [4, 3], [2, 1], [0, 0])},
            "round 1 is recorded with 4 clusters before and 2",
        ),
        ({"size": [1, 1, 1, 1, 2]}, r"have the same length, got lengths \[6, 6, 5, 6\]"),
        ({"size": [[1, 1, 1, 1, 2, 4]]}, "size must be one-dimensional"),
        ({"parent": [4, 4, 5, 5, 5, 2**40]}, f"parent holds {2**40}, which does not fit int32"),
        ({name: [] for name in COLUMNS}, "it has no nodes"),
    ],
)
def test_broken_invariants_are_errors(change, message):
    with pytest.raises(ValueError, match=message):
        Hierarchy(**({**COLUMNS, "rounds": ROUNDS} | change))


def test_wrong_types_are_errors():
    with pytest.raises(TypeError, match="parent must be numbers of dtype int32, got dtype float64"):
        Hierarchy(**(COLUMNS | {"parent": [4.0, 4, 5, 5, 5, -1]}), rounds=ROUNDS)
    with pytest.raises(TypeError, match="rounds must be a Rounds, got list"):
        Hierarchy(**COLUMNS, rounds=list(ROUNDS))
    with pytest.raises(TypeError, match="about must hold values that JSON can store"):
        Hierarchy(**COLUMNS, rounds=ROUNDS, about={"schedule": np.arange(3)})
    with pytest.raises(TypeError, match="about must hold values that JSON can store"):
        Hierarchy(**COLUMNS, rounds=ROUNDS, about={"missing": np.inf})


def test_columns_are_read_only_and_the_given_arrays_stay_writeable():
    size = np.array(COLUMNS["size"], np.int32)
    tree = Hierarchy(**(COLUMNS | {"size": size}), rounds=ROUNDS)
    with pytest.raises(ValueError, match="read-only"):
        tree.size[0] = 2
    with pytest.raises(ValueError, match="read-only"):
        tree.rounds.after[0] = 2
    assert size.flags.writeable
    size[0] = 7
    assert tree.size[0] == 1


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree, 2))])
def test_columns_of_copies_and_pickles_are_read_only(duplicate):
    TREE.children(4)  # derived columns are not copied
    tree = duplicate(TREE)
    columns = (tree.parent, tree.height, tree.size, tree.round, tree.rounds.after, tree.order, tree.start)
    for column in columns:
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            column.flags.writeable = True
    assert_same_hierarchy(tree, TREE)


def test_pickling_keeps_the_tree():
    TREE.children(4)  # fills the cache, which is not pickled
    assert_same_hierarchy(pickle.loads(pickle.dumps(TREE)), TREE)


# From an engine's forest


@given(forests(), st.sampled_from(["similarity", "distance"]), st.sampled_from(["ignore", -1.0, 0.0, 0.5, 4.0]))
def test_forests_become_trees(forest, kind, missing):
    origin = 1.5
    tree = Hierarchy.from_forest(forest, kind=kind, missing=missing, origin=origin, about={"engine": "x"})
    check_hierarchy(tree)
    assert tree.about["engine"] == "x"
    assert tree.about["missing"] == missing
    assert tree.about.get("origin") == (origin if kind == "similarity" else None)

    roots = np.flatnonzero(forest.parent < 0)
    n, explicit = len(forest.parent), len(roots) > 1
    assert tree.n_nodes == n + explicit
    np.testing.assert_array_equal(
        tree.parent[:n], np.where(forest.parent < 0, n if explicit else -1, forest.parent)
    )
    np.testing.assert_array_equal(tree.round[:n], forest.round)
    own = origin - forest.value if kind == "similarity" else forest.value
    for node in range(tree.n_leaves, n):
        under = [below for below in range(n) if node in ancestors(tree, below) and below >= tree.n_leaves]
        assert tree.height[node] == max(0.0, own[under].max())
    if explicit:
        assert (tree.round[-1], tree.size[-1]) == (len(tree.rounds) + 1, tree.n_leaves)
        highest = tree.height[:-1].max()
        if missing == "ignore":
            assert tree.height[-1] == highest
        else:
            assert tree.height[-1] == max(highest, origin - missing if kind == "similarity" else missing)


def test_forest_of_unknown_kind_is_an_error():
    forest = random_forest(np.random.default_rng(0), 3)
    with pytest.raises(ValueError, match="kind='cosine' is unknown: pass 'similarity' or 'distance'"):
        Hierarchy.from_forest(forest, kind="cosine", missing=0.0)


@pytest.mark.parametrize("parent", [-2, 0, 4])
def test_forests_of_wrong_parents_are_errors(parent):
    forest = random_forest(np.random.default_rng(0), 3, shrink=0.0)
    wrong = forest._replace(parent=np.array([3, parent, 3, -1], np.int32))
    with pytest.raises(
        ValueError, match=f"node 1 has parent {parent}, which is neither -1 nor a node of a larger"
    ):
        Hierarchy.from_forest(wrong, kind="distance", missing="ignore")
    with pytest.raises(ValueError, match="could not be broadcast"):
        Hierarchy.from_forest(forest._replace(value=np.zeros(3)), kind="distance", missing="ignore")


def test_the_given_forest_is_not_changed():
    forest = random_forest(np.random.default_rng(0), 20, max_rounds=1)
    before = [column.copy() for column in forest]
    Hierarchy.from_forest(forest, kind="similarity", missing=0.0)
    for column, old in zip(forest, before, strict=True):
        np.testing.assert_array_equal(column, old)


def test_one_and_two_points():
    assert repr(alone()) == "Hierarchy(1 leaves, 1 nodes, 0 rounds, height 0)"
    assert alone().labels(round=0).tolist() == alone().labels(round=-1).tolist() == [0]
    assert alone().leaves(0).tolist() == [0]
    assert alone().children(0).tolist() == []
    assert alone().to_newick() == "0;"
    assert pair().height.tolist() == [0, 0, 0]
    assert pair(missing=0.5).height.tolist() == [0, 0, 1.5]
    assert pair().labels(round=0).tolist() == [0, 1]
    assert pair().to_newick() == "(0:0.0,1:0.0);"
    check_hierarchy(alone())
    check_hierarchy(pair())


def test_negative_zero_heights_become_zero():
    forest = random_forest(np.random.default_rng(0), 2)
    forest.value[2] = -0.0
    tree = Hierarchy.from_forest(forest, kind="distance", missing="ignore")
    assert not np.signbit(tree.height).any()


# Children and leaves


@given(trees())
def test_children_and_leaves(tree):
    for node in range(tree.n_nodes):
        assert tree.children(node).tolist() == np.flatnonzero(tree.parent == node).tolist()
        assert tree.leaves(node).tolist() == [
            leaf for leaf in range(tree.n_leaves) if node in ancestors(tree, leaf)
        ]


def test_children_and_leaves_return_copies():
    TREE.children(5)[:] = 0
    TREE.leaves(5)[:] = 0
    assert TREE.children(np.int64(5)).tolist() == [2, 3, 4]
    assert TREE.leaves(5).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("node", [-1, 6])
def test_nodes_out_of_range_are_errors(node):
    with pytest.raises(IndexError, match=f"node={node} is out of range: the tree has 6 nodes, 0 to 5"):
        TREE.children(node)
    with pytest.raises(IndexError, match="of which the first 4 are leaves"):
        TREE.leaves(node)
    with pytest.raises(TypeError, match=r"node=1\.5 is not a node"):
        TREE.leaves(1.5)


# Other formats


@given(trees(min_points=2))
def test_scipy_gets_a_valid_linkage_with_the_same_cophenetic_heights(tree):
    Z = tree.to_scipy()
    assert sch.is_valid_linkage(Z, throw=True)
    assert sch.is_monotonic(Z)
    assert (Z[:, 0] < Z[:, 1]).all()
    heights = squareform(sch.cophenet(Z))
    for a in range(tree.n_leaves):
        for b in range(a):
            assert heights[a, b] == tree.height[least_common_ancestor(tree, a, b)]


def test_wide_nodes_stay_shallow_in_scipy():
    star = Hierarchy.from_forest(
        random_forest(np.random.default_rng(0), 50_000, max_rounds=0), kind="distance", missing=1.0
    )
    assert len(sch.leaves_list(star.to_scipy())) == 50_000
    assert sch.dendrogram(star.to_scipy(), no_plot=True, p=4, truncate_mode="level")["ivl"]


def test_scipy_needs_two_leaves():
    with pytest.raises(ValueError, match="a tree of 1 leaf has no linkage matrix"):
        alone().to_scipy()


@given(trees())
def test_networkx_gets_the_whole_tree(tree):
    graph = tree.to_networkx()
    assert len(graph) == tree.n_nodes
    for node in range(tree.n_nodes):
        assert graph.nodes[node] == {
            "height": tree.height[node],
            "size": tree.size[node],
            "round": tree.round[node],
        }
        assert sorted(graph.successors(node)) == tree.children(node).tolist()
    for parent, child, length in graph.edges(data="length"):
        assert length == tree.height[parent] - tree.height[child]


@pytest.mark.parametrize(("module", "method"), [("networkx", "to_networkx"), ("pandas", "to_frame")])
def test_a_missing_library_is_an_error(monkeypatch, module, method):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ImportError, match=f"{method} needs {module}, which is not installed: pip install {module}"
    ):
        getattr(TREE, method)()


def test_a_frame_has_one_row_per_node():
    frame = TREE.to_frame()
    assert frame.index.name == "node"
    assert frame.to_dict("list") == COLUMNS
    frame.loc[0, "parent"] = 5
    assert TREE.parent[0] == 4


def read_newick(text):
    """Parse Newick text into nested lists [(content, length), ...]; ``content`` is a name or a list."""
    tokens = re.findall(r"'(?:[^']|'')*'|[(),;]|:[^(),;]+|[^(),:;']+", text)
    stack = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append([done, None])
        elif token.startswith(":"):
            stack[-1][-1][1] = float(token[1:])
        elif token not in ",;":
            name = token[1:-1].replace("''", "'") if token.startswith("'") else token.replace("_", " ")
            stack[-1].append([name, None])
    assert len(stack) == len(stack[0]) == 1
    return stack[0][0]


NAMES = st.lists(st.text("ab_ '(),:;[]\té-.0", max_size=5), min_size=30, max_size=30)


@given(trees(), NAMES)
def test_newick_reads_back(tree, names):
    names = names[: tree.n_leaves]
    todo = [(read_newick(tree.to_newick(names)), tree.n_nodes - 1)]
    seen = 0
    while todo:
        (content, length), node = todo.pop()
        seen += 1
        parent = tree.parent[node]
        assert length == (tree.height[parent] - tree.height[node] if parent >= 0 else None)
        if node < tree.n_leaves:
            assert content == names[node]
        else:
            todo += zip(content, tree.children(node).tolist(), strict=True)
    assert seen == tree.n_nodes


def test_newick_needs_one_name_per_leaf():
    with pytest.raises(ValueError, match="names has 1 entries, but the tree has 4 leaves"):
        TREE.to_newick(["a"])


# Depth


def test_deep_trees_take_no_recursion():
    n = 100_000
    tree = chain(n)
    assert tree.labels(round=n // 2).max() == n - n // 2 - 1
    assert tree.cut(height=10.0).max() == n - 11
    assert len(tree.leaves(n + 999)) == 1001
    assert tree.to_scipy()[-1].tolist() == [n - 1, 2 * n - 3, n - 1, n]
    assert tree.to_networkx().number_of_edges() == 2 * n - 2
    newick = tree.to_newick()
    assert newick.startswith(f"({n - 1}:{n - 1}.0,({n - 2}:")
    assert newick.count("(") == n - 1
