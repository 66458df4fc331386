import math

import numpy as np
import pytest
from forests import TREE_OF_5
from graphs import graphs
from hypothesis import given

import agglo
from agglo import NeighborGraph
from agglo.tree.silhouette import silhouette_round


def plain_score(graph, labels):
    """Compute the score of a partition by the definition, point by point and edge by edge."""
    n = graph.n_points
    far = graph.missing
    if far == "ignore":
        far = 0.0 if graph.kind == "similarity" else max(graph.weights, default=0.0)
    total = 0.0
    for i in range(n):
        shares = {}
        for edge in range(graph.indptr[i], graph.indptr[i + 1]):
            gap = float(graph.weights[edge]) - float(far)
            weight = max(0.0, gap if graph.kind == "similarity" else -gap)
            cluster = labels[graph.indices[edge]]
            shares[cluster] = shares.get(cluster, 0.0) + weight
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
def test_separate_clusters_are_found(metric):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 12
    X = np.eye(12)[y] + 0.05 * rng.normal(size=(3000, 12))
    graph = agglo.neighbor_graph(X, 20, metric)
    # The tree of hac has more than 100 rounds, and there are more points than the sample has.
    for tree in (agglo.scc(graph), agglo.hac(graph)):
        assert agglo.metrics.pairwise_f1(y, tree.cut(round="silhouette", graph=graph)).f1 > 0.99
        again = tree.cut(round="silhouette", graph=graph, random_state=7)
        np.testing.assert_array_equal(again, tree.cut(round="silhouette", graph=graph, random_state=7))


def test_clusterers_accept_the_rule():
    X = np.eye(6)[np.arange(300) % 6] + 0.01 * np.random.default_rng(1).normal(size=(300, 6))
    fitted = agglo.SCC(round="silhouette", n_neighbors=10).fit(X)
    assert fitted.round_ == silhouette_round(fitted.tree_, fitted.graph_)
    assert fitted.labels_.max() + 1 == 6


def test_a_wrong_graph_is_an_error():
    with pytest.raises(
        ValueError, match="the rule round='silhouette' needs the graph that the tree was built from: pass graph"
    ):
        TREE_OF_5.cut(round="silhouette")
    with pytest.raises(ValueError, match="the graph has 2 points, but the tree has 5 leaves"):
        TREE_OF_5.cut(round="silhouette", graph=NeighborGraph.from_edges([0], [1], [1.0], kind="distance"))
    with pytest.raises(TypeError, match="graph must be a NeighborGraph, got ndarray"):
        TREE_OF_5.cut(round="silhouette", graph=np.eye(5))


def test_the_graph_of_a_clusterer_fits_a_tree_with_duplicates():
    X = np.random.default_rng(0).normal(size=(120, 4))
    plain, repeated = agglo.SCC().fit(X), agglo.SCC().fit(np.vstack([X, X[:30]]))
    labels = repeated.tree_.cut(graph=repeated.graph_, round="silhouette")
    assert repeated.graph_.n_points == 120
    np.testing.assert_array_equal(labels[120:], labels[:30])
    assert len(set(labels)) == len(set(plain.tree_.cut(graph=plain.graph_, round="silhouette")))
