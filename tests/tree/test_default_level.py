import numpy as np
import pytest
from forests import chain, least_common_ancestor, partitions, trees
from graphs import scale
from hypothesis import given
from hypothesis import strategies as st

import agglo
from agglo import NeighborGraph


@st.composite
def trees_with_graphs(draw, max_points=9, kinds=("similarity", "distance")):
    """Draw small trees with graphs over their leaves: sparse to complete, some with tied weights."""
    tree = draw(trees(max_points=max_points))
    n = tree.n_leaves
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first, second = np.triu_indices(n, 1)
    kept = rng.random(len(first)) < draw(st.sampled_from([0.2, 0.6, 1.0]))
    values = draw(st.sampled_from([rng.integers(1, 4, len(first)), rng.random(len(first)), np.ones(len(first))]))
    graph = NeighborGraph.from_edges(
        first[kept],
        second[kept],
        values[kept],
        n_points=n,
        kind=draw(st.sampled_from(kinds)),
        missing=draw(st.sampled_from([None, "ignore", 0.5])),
    )
    return tree, graph


def dense_weights(graph):
    """Return the edge weights of the modularity as a matrix, by the definition."""
    present = np.zeros((graph.n_points, graph.n_points), bool)
    rows = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))
    present[rows, graph.indices] = True
    values = np.zeros(present.shape)
    values[rows, graph.indices] = graph.weights
    farthest = graph.weights.max(initial=0.0)
    if graph.kind == "similarity":
        return np.where(present, np.maximum(values - (0 if graph.missing == "ignore" else graph.missing), 0), 0)
    missing = farthest if graph.missing == "ignore" else graph.missing
    if (values[present] == missing).all():
        return present.astype(float)
    return np.where(present, np.maximum(missing - values, 0), 0)


def plain_modularity(tree, weights, nodes, resolution):
    total = weights.sum() or 1.0
    best = 0.0
    for node in nodes:
        leaves = tree.leaves(node)
        best += weights[np.ix_(leaves, leaves)].sum() / total
        best -= resolution * (weights[leaves].sum() / total) ** 2
    return best


@given(trees_with_graphs(), st.floats(0, 30))
def test_the_path_is_the_largest_modularity_of_all_partitions(given_, resolution):
    tree, graph = given_
    weights = dense_weights(graph)
    path = agglo.modularity_path(tree, graph)
    found = partitions(tree)
    middles = (path.resolutions[1:-1] + path.resolutions[:-2]) / 2
    for gamma in (0.0, resolution, 1e4, *path.resolutions[:-1], *middles):
        close = 1e-12 * (1 + gamma)
        values = np.array([plain_modularity(tree, weights, nodes, gamma) for nodes in found])
        assert path.modularity(gamma) == pytest.approx(values.max(), abs=close)
        labels = path.cut(gamma)
        nodes = tree.nodes(labels)
        assert plain_modularity(tree, weights, nodes, gamma) == pytest.approx(values.max(), abs=close)
        assert len(nodes) == path.n_clusters[np.searchsorted(path.resolutions, gamma)]
        np.testing.assert_array_equal(tree.cut(resolution=gamma, graph=graph), labels)
    assert path.resolutions[-1] == np.inf
    assert (np.diff(path.resolutions) > 0).all()
    assert (np.diff(path.n_clusters) > 0).all()
    assert path.cut(0.0).max() == 0
    assert path.modularity([0.0, resolution]).shape == (2,)


@pytest.mark.parametrize("n", range(3, 30))
def test_cuts_have_the_clusters_of_the_path_if_breakpoints_are_equal_but_for_rounding(n):
    # All merges of a complete graph with equal weights have the same resolution in exact arithmetic.
    graph = agglo.NeighborGraph.from_edges(*np.triu_indices(n, 1), np.ones(n * (n - 1) // 2), kind="similarity")
    path = agglo.modularity_path(agglo.hac(graph), graph)
    for resolution, n_clusters in zip(path.resolutions, path.n_clusters, strict=True):
        assert len(set(path.cut(resolution))) == n_clusters


@given(trees_with_graphs())
def test_node_sums_follow_from_the_edges(given_):
    tree, graph = given_
    weights = dense_weights(graph)
    path = agglo.modularity_path(tree, graph)
    total = weights.sum() or 1.0
    for node in range(tree.n_nodes):
        leaves = tree.leaves(node)
        assert path.node_inside[node] == pytest.approx(weights[np.ix_(leaves, leaves)].sum() / total, abs=1e-12)
        assert path.node_volume[node] == pytest.approx(weights[leaves].sum() / total, abs=1e-12)


@given(trees_with_graphs(max_points=30), st.integers(-20, 20))
def test_weights_times_a_power_of_two_have_the_same_path(given_, power):
    tree, graph = given_
    path, other = agglo.modularity_path(tree, graph), agglo.modularity_path(tree, scale(graph, power))
    np.testing.assert_array_equal(path.resolutions, other.resolutions)
    np.testing.assert_array_equal(path.node_resolution, other.node_resolution)
    np.testing.assert_array_equal(path.inside, other.inside)


@given(trees_with_graphs(max_points=6), st.data())
def test_a_point_of_weight_3_counts_as_three_points(given_, data):
    tree, graph = given_
    copies = np.array(data.draw(st.lists(st.integers(1, 3), min_size=tree.n_leaves, max_size=tree.n_leaves)))
    weights = dense_weights(graph)
    point = np.repeat(np.arange(tree.n_leaves), copies)
    expanded = weights[np.ix_(point, point)]
    path = agglo.modularity_path(tree, graph, sample_weight=copies)
    total = expanded.sum() or 1.0
    for gamma in (0.5, 1.0, 3.0):
        values = []
        for nodes in partitions(tree):
            label = np.empty(tree.n_leaves, int)
            for cluster, node in enumerate(nodes):
                label[tree.leaves(node)] = cluster
            same = label[point][:, None] == label[point]
            shares = np.bincount(label[point], expanded.sum(axis=1) / total)
            values.append(expanded[same].sum() / total - gamma * (shares**2).sum())
        assert path.modularity(gamma) == pytest.approx(max(values), abs=1e-12)


def test_parts_without_an_edge_are_merged_at_resolution_0_only():
    graph = NeighborGraph.from_edges([0, 2], [1, 3], [1.0, 1.0], n_points=5, kind="similarity")
    tree = agglo.scc(graph)
    path = agglo.modularity_path(tree, graph)
    assert path.cut(1e-300).tolist() == [0, 0, 1, 1, 2]
    assert path.cut(0).tolist() == [0] * 5
    empty = NeighborGraph.from_edges([], [], [], n_points=3, kind="similarity")
    assert agglo.modularity_path(agglo.scc(empty), empty).n_clusters.tolist() == [1, 3]


def test_duplicates_and_links_are_always_merged():
    X = np.array([[0.0], [0.0], [1.0], [1.5], [1.0], [9.0], [9.5]])
    model = agglo.SCC(metric="euclidean", n_neighbors=3).fit(X)
    assert model.graph_.n_points == 5
    path = agglo.modularity_path(model.tree_, model.graph_)
    assert path.cut(np.inf).tolist() == [0, 0, 1, 2, 1, 3, 4]
    # The tree of the groups with their weights has the same path.
    plain = agglo.modularity_path(model._graph_tree, model.graph_, sample_weight=[2, 2, 1, 1, 1])
    for gamma in (0.3, 1.0, 2.0, 5.0):
        np.testing.assert_array_equal(path.cut(gamma), plain.cut(gamma)[model._duplicates.inverse])
        assert path.modularity(gamma) == pytest.approx(plain.modularity(gamma))
    linked = agglo.scc(model.graph_, must_link=[[0, 4]])
    assert agglo.modularity_path(linked, model.graph_).cut(np.inf).tolist() == [0, 1, 2, 3, 0]


def test_a_deep_tree():
    n = 100_000
    tree = chain(n)
    step = np.arange(n - 1)
    graph = NeighborGraph.from_edges(step, step + 1, np.ones(n - 1), kind="similarity")
    path = agglo.modularity_path(tree, graph)
    assert path.n_clusters[0] == 1
    assert path.n_clusters[-1] == n
    assert least_common_ancestor(chain(5), 1, 3) == 7


def test_wrong_inputs():
    graph = NeighborGraph.from_edges([0, 1], [1, 2], [1.0, 1.0], kind="similarity")
    tree = agglo.scc(graph)
    path = agglo.modularity_path(tree, graph)
    with pytest.raises(TypeError, match="expected a Hierarchy, got int"):
        agglo.modularity_path(3, graph)
    with pytest.raises(TypeError, match="graph must be a NeighborGraph, got csr_array"):
        agglo.modularity_path(tree, graph.to_scipy())
    with pytest.raises(ValueError, match="the graph has 2 points, but the tree has 3 leaves"):
        agglo.modularity_path(tree, NeighborGraph.from_edges([0], [1], [1.0], kind="similarity"))
    with pytest.raises(ValueError, match="one number for each of 3 leaves"):
        agglo.modularity_path(tree, graph, sample_weight=[1.0])
    with pytest.raises(ValueError, match="finite and positive"):
        agglo.modularity_path(tree, graph, sample_weight=[1.0, 0.0, 2.0])
    with pytest.raises(ValueError, match="resolution=-1 is not allowed"):
        path.cut(-1)
    with pytest.raises(ValueError, match="resolution=nan is not allowed"):
        path.modularity(np.nan)
    with pytest.raises(TypeError, match="resolution='a' is not a number"):
        path.cut("a")
    with pytest.raises(TypeError, match="resolution must be one number"):
        path.cut([1.0, 2.0])
