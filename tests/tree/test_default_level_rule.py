"""The most persistent cut of the modularity path, and the default labels."""

import dataclasses

import numpy as np
import pytest
from forests import chain
from graphs import scale
from hypothesis import given
from hypothesis import strategies as st
from test_default_level import trees_with_graphs

import agglo
from agglo import NeighborGraph


def same_partition(a, b):
    pairs = np.unique(np.column_stack([a, b]), axis=0)
    return len(pairs) == len(np.unique(a)) == len(np.unique(b))


def score_cuts(path, weights):
    """Return for each piece of the path its largest resolution, its labels and its score, by the definition."""
    pieces = []
    for lower, upper in zip(path.resolutions[:-1], path.resolutions[1:], strict=True):
        labels = path.cut(upper)
        shares = np.bincount(labels, weights) / weights.sum()
        in_company = weights[np.bincount(labels)[labels] > 1].sum() / weights.sum()
        n_clusters = np.exp(-(shares * np.log(shares)).sum())
        length = np.log(max(upper, 0.25)) - np.log(max(lower, 0.25)) if np.isfinite(upper) else 0.0
        pieces.append((upper, labels, n_clusters, length * in_company * (n_clusters > 1.1)))
    return [
        (upper, labels, sum(min(k, other) / max(k, other) * length for _, _, other, length in pieces) * (own > 0))
        for upper, labels, k, own in pieces
    ]


@given(trees_with_graphs(max_points=12), st.data())
def test_the_selected_cut_has_the_highest_score(given_, data):
    tree, graph = given_
    n = tree.n_leaves
    weights = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), float)
    path = agglo.modularity_path(tree, graph, sample_weight=weights)
    if path.resolutions[0] > 0:  # the first piece starts at 0
        path = dataclasses.replace(path, resolutions=np.append(0.0, path.resolutions))
    cuts = score_cuts(path, weights)
    best = max((score for _, _, score in cuts), default=0.0)
    selected = path.persistent_resolution()
    if best == 0:  # no cut qualifies: the coarsest cut at a positive resolution
        np.testing.assert_array_equal(path.cut(selected), path.cut(1e-300))
        return
    chosen = next((labels, score) for upper, labels, score in cuts if upper == selected)
    assert chosen[1] == pytest.approx(best)
    coarser = [score for upper, _, score in cuts if upper < selected]
    assert max(coarser, default=0.0) < best * (1 - 1e-10)


@given(trees_with_graphs(max_points=30), st.integers(-20, 20))
def test_weights_times_a_power_of_two_select_the_same_cut(given_, power):
    tree, graph = given_
    path, other = agglo.modularity_path(tree, graph), agglo.modularity_path(tree, scale(graph, power))
    assert path.persistent_resolution() == other.persistent_resolution()


@given(trees_with_graphs(max_points=12), st.sampled_from([0.5, 3.0, 1000.0]))
def test_sample_weights_times_a_factor_select_the_same_cut(given_, factor):
    tree, graph = given_
    weights = np.arange(1.0, tree.n_leaves + 1)
    path = agglo.modularity_path(tree, graph, sample_weight=weights)
    scaled = agglo.modularity_path(tree, graph, sample_weight=weights * factor)
    assert scaled.persistent_resolution() == pytest.approx(path.persistent_resolution(), rel=1e-9)


@pytest.mark.parametrize("linkage", ["average", "ward", "exact-average", "centroid", "single"])
@pytest.mark.parametrize("clusterer", [agglo.SCC, agglo.HAC, agglo.Affinity])
def test_separate_clusters_are_found_with_every_linkage(clusterer, linkage):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 12, 600)
    X = rng.normal(size=(12, 8))[y] * 9 + rng.normal(size=(600, 8))
    model = clusterer(metric="sqeuclidean", n_neighbors=15, linkage=linkage).fit(X)
    assert same_partition(model.labels_, y)
    assert model.round_ is None
    assert same_partition(model.tree_.cut(resolution=model.resolution_, graph=model.graph_), y)


@pytest.mark.parametrize("factor", [0.5, 3.0, 1000.0])
def test_the_unit_of_the_weights_does_not_matter(factor, blobs):
    graph = agglo.neighbor_graph(blobs[0], 10)
    tree = agglo.scc(graph)
    scaled = dataclasses.replace(graph, weights=graph.weights * np.float32(factor), missing=graph.missing * factor)
    np.testing.assert_array_equal(
        tree.cut(resolution="persistent", graph=graph), tree.cut(resolution="persistent", graph=scaled)
    )


def test_the_order_of_the_points_does_not_matter():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))[rng.integers(0, 40, 500)] * 2 + rng.normal(size=(500, 6))
    first = agglo.SCC().fit(X)
    order = rng.permutation(500)
    second = agglo.SCC().fit(X[order])
    np.testing.assert_array_equal(second.labels_, first.labels_[order])
    assert second.resolution_ == pytest.approx(first.resolution_, rel=1e-9)


def test_weights_count_as_duplicates():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(8, 4))[rng.integers(0, 8, 90)] * 4 + rng.normal(size=(90, 4))
    weights = rng.integers(1, 4, 90)
    weighted = agglo.SCC(n_neighbors=8).fit(X, sample_weight=weights)
    repeated = agglo.SCC(n_neighbors=8).fit(np.repeat(X, weights, axis=0))
    assert repeated.resolution_ == pytest.approx(weighted.resolution_)
    np.testing.assert_array_equal(repeated.labels_, np.repeat(weighted.labels_, weights))


def test_graphs_without_a_choice():
    def select(n, sources=(), targets=()):
        graph = NeighborGraph.from_edges(
            list(sources), list(targets), np.ones(len(sources)), n_points=n, kind="similarity"
        )
        return agglo.scc(graph).cut(resolution="persistent", graph=graph).tolist()

    assert select(1) == [0]
    assert select(2) == [0, 1]
    assert select(2, [0], [1]) == [0, 0]
    assert select(3) == [0, 1, 2]
    assert select(3, [0], [1]) == [0, 0, 1]
    assert select(3, [0, 0, 1], [1, 2, 2]) == [0, 0, 0]
    assert select(4, [0, 2], [1, 3]) == [0, 0, 1, 1]
    assert agglo.SCC(metric="euclidean").fit_predict([[1.0]] * 5).tolist() == [0] * 5


def test_duplicates_and_links_are_no_clusters():
    # Each point has a duplicate, and the groups are alone: only the two pairs of groups are clusters.
    X = np.repeat([[0.0], [1.0], [10.0], [11.0]], 2, axis=0)
    model = agglo.SCC(metric="euclidean").fit(X)
    assert model.labels_.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    linked = agglo.SCC(metric="euclidean").fit([[0.0], [1.0], [10.0], [11.0]], must_link=[[0, 1]])
    assert linked.labels_.tolist() == [0, 0, 1, 1]
    both = agglo.SCC(metric="euclidean").fit(X, must_link=[[0, 2]])
    assert both.labels_.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_constraints_hold():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5, 4))[rng.integers(0, 5, 100)] * 5 + rng.normal(size=(100, 4))
    model = agglo.SCC(max_cluster_size=10).fit(X, cannot_link=[[0, 1], [2, 3]])
    assert np.bincount(model.labels_).max() <= 10
    assert model.labels_[0] != model.labels_[1]
    assert model.labels_[2] != model.labels_[3]


def test_one_cluster_and_a_few_points_are_ignored():
    # Two points far away are a component of their own, but this separates less than 2 % of the points.
    rng = np.random.default_rng(4)
    X = rng.normal(size=(4, 3))[rng.integers(0, 4, 400)] * 9 + rng.normal(size=(400, 3))
    X[-2:] += 900
    model = agglo.SCC(metric="euclidean", n_neighbors=10).fit(X)
    assert len(np.unique(model.labels_)) > 3


def test_new_points_join_the_clusters(tmp_path, blobs):
    X, y = blobs
    model = agglo.SCC(n_neighbors=10).fit(X[::2])
    assert same_partition(model.labels_, y[::2])
    np.testing.assert_array_equal(model.predict(X[::2]), model.labels_)
    assert same_partition(model.predict(X[1::2]), y[1::2])
    model.save(tmp_path / "model")
    loaded = agglo.load(tmp_path / "model")
    assert loaded.resolution_ == model.resolution_
    assert loaded.round_ is None
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    model.partial_fit(X[1::2])
    assert same_partition(model.labels_, np.concatenate([y[::2], y[1::2]]))


def test_a_deep_tree():
    n = 100_000
    step = np.arange(n - 1)
    graph = NeighborGraph.from_edges(step, step + 1, np.ones(n - 1), kind="similarity")
    labels = chain(n).cut(resolution="persistent", graph=graph)
    assert len(labels) == n


def test_wrong_inputs(blobs):
    graph = agglo.neighbor_graph(blobs[0], 5)
    tree = agglo.scc(graph)
    with pytest.raises(ValueError, match="the rule resolution needs the graph that the tree was built from"):
        tree.cut(resolution=1.0)
    with pytest.raises(ValueError, match="resolution='best' is unknown: pass a number or 'persistent'"):
        tree.cut(resolution="best", graph=graph)
    with pytest.raises(ValueError, match="resolution=-2 is not allowed: pass 0 or more"):
        agglo.SCC(resolution=-2).fit(blobs[0])
    with pytest.raises(ValueError, match="a cut follows one rule, got n_clusters and resolution"):
        agglo.SCC(3, resolution=1.0).fit(blobs[0])
