import math

import numpy as np
import pandas as pd
import pytest
from forests import chain, partitions, trees
from graphs import graphs
from hypothesis import given
from hypothesis import strategies as st

import agglo
from agglo import Hierarchy, NeighborGraph
from agglo.tree.forest import Rounds
from agglo.tree.known_classes import cut_by_known_classes
from agglo.tree.silhouette import silhouette_round

# 0 and 1 are a node, 2 and 3 another, and the root has both and 4.
TREE = Hierarchy(
    parent=[5, 5, 6, 6, 7, 7, 7, -1],
    height=[0, 0, 0, 0, 0, 0.1, 0.2, 0.5],
    size=[1, 1, 1, 1, 1, 2, 2, 5],
    round=[0, 0, 0, 0, 0, 1, 2, 3],
    rounds=Rounds([0.1, 0.2, 0.5], [5, 4, 3], [4, 3, 1], [0, 0, 0]),
)


def labels_of(tree, nodes):
    joined = np.zeros(tree.n_nodes, bool)
    joined[list(nodes)] = True
    return tree.partition(joined)


def agreement(labels, known):
    """The number of pairs of known points that agree, pair by pair."""
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


def test_what_is_known_may_come_in_many_ways():
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
        assert TREE.cut(known_classes=known).tolist() == expected
    assert TREE.cut(known_classes={0: "x"}).tolist() == [0] * 5  # nothing speaks against one cluster
    assert TREE.cut(known_classes={0: "x", 1: "y"}).tolist() == [0, 1, 2, 2, 3]
    assert TREE.cut(known_classes={0: "x", 4: "x", 2: "y"}).tolist() == [
        0,
        0,
        1,
        1,
        2,
    ]  # a tie: 1 pair, 2 pairs apart


def test_deep_trees_agree_too():
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
        TREE.cut(known_classes=known)


def plain_score(graph, labels):
    """The score of a partition, as the definition says it, point by point and edge by edge."""
    n = graph.n_points
    far = graph.missing
    if far == "ignore":
        far = 0.0 if graph.kind == "similarity" else max(graph.weights, default=0.0)
    total = 0.0
    for i in range(n):
        shares = {}
        for edge in range(graph.indptr[i], graph.indptr[i + 1]):
            gap = float(graph.weights[edge]) - float(far)
            closeness = max(0.0, gap if graph.kind == "similarity" else -gap)
            cluster = labels[graph.indices[edge]]
            shares[cluster] = shares.get(cluster, 0.0) + closeness
        whole = sum(shares.values()) or 1.0
        own = shares.pop(labels[i], 0.0)
        size = (labels == labels[i]).sum()
        total += (own - max(shares.values(), default=0.0)) / whole * math.log(n / size) / math.log(n)
    return total / n


@given(graphs(styles=("few", "decimal", "negative", "any", "all alike")))
def test_the_round_of_the_highest_score_is_chosen(graph):
    tree = agglo.scc(graph)
    chosen = silhouette_round(tree, graph)
    np.testing.assert_array_equal(tree.cut(round="silhouette", graph=graph), tree.labels(round=chosen))
    between = [index for index, record in enumerate(tree.rounds, start=1) if record.after > 1]
    if between:
        scores = {index: plain_score(graph, tree.labels(round=index)) for index in between}
        assert scores[chosen] == pytest.approx(max(scores.values()), abs=1e-9)
    else:
        assert chosen == len(tree.rounds)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_separate_clusters_are_told_apart(metric):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 12
    X = np.eye(12)[y] + 0.05 * rng.normal(size=(3000, 12))
    graph = agglo.neighbor_graph(X, 20, metric)
    for tree in (agglo.scc(graph), agglo.hac(graph)):  # of many rounds, and more points than a sample
        assert agglo.metrics.pairwise_f1(y, tree.cut(round="silhouette", graph=graph)).f1 > 0.99
        again = tree.cut(round="silhouette", graph=graph, random_state=7)
        np.testing.assert_array_equal(again, tree.cut(round="silhouette", graph=graph, random_state=7))


def test_the_clusterers_know_the_rule():
    X = np.eye(6)[np.arange(300) % 6] + 0.01 * np.random.default_rng(1).normal(size=(300, 6))
    fitted = agglo.SCC(round="silhouette", n_neighbors=10).fit(X)
    assert fitted.round_ == silhouette_round(fitted.tree_, fitted.graph_)
    assert fitted.labels_.max() + 1 == 6


def test_a_wrong_graph_is_an_error():
    with pytest.raises(
        ValueError, match="the rule round='silhouette' needs the graph that the tree was built from: pass graph"
    ):
        TREE.cut(round="silhouette")
    with pytest.raises(ValueError, match="the graph has 2 points, but the tree has 5 leaves"):
        TREE.cut(round="silhouette", graph=NeighborGraph.from_edges([0], [1], [1.0], kind="distance"))
    with pytest.raises(TypeError, match="graph must be a NeighborGraph, got ndarray"):
        TREE.cut(round="silhouette", graph=np.eye(5))


def test_the_function_and_the_rule_agree():
    np.testing.assert_array_equal(cut_by_known_classes(TREE, {0: 1, 1: 2}), TREE.cut(known_classes={0: 1, 1: 2}))
