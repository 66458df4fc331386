import numpy as np
import pytest
import scipy.cluster.hierarchy as sch
from graphs import point_graphs
from hypothesis import given, settings
from hypothesis import strategies as st

import agglo
from agglo.rounds import reference_connect, reference_constraints
from agglo.rounds.vector_linkage import VECTOR_LINKAGES
from agglo.testing import assert_same_hierarchy, check_hierarchy

CASES = [(linkage, metric) for linkage, metrics in VECTOR_LINKAGES.items() for metric in metrics]
METHODS = ["scc", "affinity", "hac"]


@settings(max_examples=40)
@given(st.data(), st.sampled_from(CASES), st.sampled_from(METHODS), st.sampled_from(["average", "single"]))
def test_merged_roots_are_those_of_the_reference_and_leave_the_rounds_below(data, case, method, linkage):
    connect, metric = case
    X, graph = data.draw(point_graphs(metric))
    known = {}
    if data.draw(st.booleans()):
        known["sample_weight"] = np.random.default_rng(graph.n_points).choice([0.5, 1, 3], graph.n_points)
    if graph.n_points > 3 and data.draw(st.booleans()):
        known["cannot_link"] = [(0, graph.n_points - 1)]
    expected = getattr(reference_constraints, method)(graph, linkage=linkage, X=X, connect=connect, **known)
    check_hierarchy(expected)
    assert expected.about["connect"] == connect
    for n_jobs in (1, 2):
        tree = getattr(agglo, method)(graph, linkage=linkage, X=X, connect=connect, n_jobs=n_jobs, **known)
        assert_same_hierarchy(tree, expected)
    plain = getattr(agglo, method)(graph, linkage=linkage, **known)
    for round in range(len(plain.rounds) + 1):
        assert tree.labels(round=round).tolist() == plain.labels(round=round).tolist()
    last = tree.labels(round=-1)
    if "cannot_link" in known:
        assert last[0] != last[-1]
    else:
        assert last.max() == 0


@pytest.mark.parametrize("known", [{}, {"sample_weight": 1}, {"cannot_link": [(0, 59), (3, 20)]}])
@pytest.mark.parametrize(("connect", "metric"), CASES)
def test_roots_merge_as_the_definitions_say(connect, metric, known):
    rng = np.random.default_rng(4)
    X = (np.repeat(rng.normal(size=(12, 4)), 5, axis=0) + 0.01 * rng.normal(size=(60, 4))) * 3
    if "sample_weight" in known:
        known = {"sample_weight": rng.choice([0.5, 1, 3], len(X))}
    # Each block of five points is a component of the graph, so that all linkages of blocks are those of `connect`.
    source, target = (
        np.concatenate([first + ends for first in range(0, 60, 5)]) for ends in np.triu_indices(5, 1)
    )
    pair = {
        "cosine": lambda x, y: x @ y / np.linalg.norm(x) / np.linalg.norm(y),
        "dot": lambda x, y: x @ y,
        "sqeuclidean": lambda x, y: np.square(x - y).sum(),
        "euclidean": lambda x, y: np.linalg.norm(x - y),
    }[metric]
    kind = "similarity" if metric in ("cosine", "dot") else "distance"
    weights = [pair(X[i], X[j]) for i, j in zip(source, target, strict=True)]
    graph = agglo.NeighborGraph.from_edges(source, target, weights, kind=kind, metric=metric)
    blocks = agglo.hac(graph, linkage="single", **known)
    roots = blocks.labels(round=len(blocks.rounds))
    tree = agglo.hac(graph, linkage="single", X=X, connect=connect, **known)
    expected = reference_connect.merge_roots(
        X, roots, connect, metric, known.get("sample_weight"), known.get("cannot_link", ())
    )

    leaves = [frozenset([i]) for i in range(tree.n_leaves)]
    leaves += [frozenset()] * (len(tree.parent) - tree.n_leaves)
    height = np.zeros(len(tree.parent))  # the largest height of the children
    for node, parent in enumerate(tree.parent[:-1]):
        leaves[parent] |= leaves[node]
        height[parent] = max(height[parent], tree.height[node])
    above = [node for node in range(len(leaves)) if tree.round[node] > len(blocks.rounds)]
    merged = [node for node in above if leaves[node] in expected]
    assert {leaves[node] for node in merged} == set(expected)
    assert len(above) - len(merged) == ("cannot_link" in known)  # the root of a forest is no merge
    for node in merged:
        value = expected[leaves[node]]
        if kind == "similarity":  # heights of similarities are distances from the largest edge weight
            value = value / 2 if connect == "ward" else max(1, graph.weights.max()) - value
        np.testing.assert_allclose(tree.height[node], max(value, height[node]), rtol=1e-4, atol=1e-5)


def far_apart():
    """Twelve clusters in three groups, each so far from the others that no neighbours are in two of them."""
    rng = np.random.default_rng(0)
    groups = np.array([[0, 0], [1000, 0], [0, 3000]])
    centres = np.repeat(groups, 4, axis=0) + rng.normal(size=(12, 2)) * 50
    return np.repeat(centres, 10, axis=0) + rng.normal(size=(120, 2)), np.repeat(np.arange(3), 40)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_means_that_float32_does_not_tell_apart_are_reported(metric):
    X, groups = far_apart()
    message = r"connect='ward' merges 12 clusters by their means in float32, but .* pass connect=None"
    for scale, is_reported in ((1e6, False), (1e9, True)):
        # Points are rounded to about 0.1 or 100, and means of clusters are 50 apart.
        points = X + scale * (groups == 2)[:, None]
        graph = agglo.neighbor_graph(points, 5, metric)
        if is_reported:
            with pytest.warns(UserWarning, match=message) as found:
                agglo.hac(graph, X=points, connect="auto")
            assert found[0].filename == __file__
        else:
            agglo.hac(graph, X=points, connect="auto")
        agglo.hac(graph)


@pytest.mark.parametrize("connect", ["exact-average", "centroid", "ward"])
def test_connect_finds_the_groups_that_the_graph_leaves_apart(connect):
    X, groups = far_apart()
    graph = agglo.neighbor_graph(X, 5, "sqeuclidean")
    plain = agglo.scc(graph)
    assert plain.rounds.after[-1] == 12
    tree = agglo.scc(graph, X=X, connect=connect)
    assert tree.rounds.after.tolist() == [*plain.rounds.after.tolist(), *range(11, 0, -1)]
    labels = tree.cut(n_clusters=3)
    assert len(set(zip(labels.tolist(), groups.tolist(), strict=True))) == 3
    assert agglo.metrics.dendrogram_purity(tree, groups) > agglo.metrics.dendrogram_purity(plain, groups)


def test_merging_roots_is_classical_clustering_of_their_means():
    X, _ = far_apart()
    graph = agglo.neighbor_graph(X, 5, "euclidean", missing=None)
    tree = agglo.scc(graph, X=X, connect="ward")
    # Ward's increase for a cluster of ten is that of ten points at its mean.
    means = np.repeat(X.reshape(12, 10, 2).mean(axis=1), 10, axis=0)
    expected = sch.linkage(means, "ward")[-11:, 2]
    np.testing.assert_allclose(tree.height[-11:], expected, rtol=1e-5)


def test_many_clusters_are_compared_with_the_nearest(monkeypatch):
    monkeypatch.setattr("agglo.rounds.connect.ALL_PAIRS", 20)
    monkeypatch.setattr("agglo.rounds.connect._NEIGHBORS", 3)
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(60, 3))
    X = np.repeat(centres, 5, axis=0) + 1e-3 * rng.normal(size=(300, 3))
    tree = agglo.scc(agglo.neighbor_graph(X, 4, "cosine"), X=X, connect="exact-average")
    check_hierarchy(tree)
    assert tree.rounds.after[-1] == 1


def test_values_of_cosines_and_of_distances_have_one_scale():
    X = np.array([[1, 0], [1, 0.01], [0, 1], [0.01, 1]])
    graph = agglo.neighbor_graph(X, 1, "cosine")
    cosine = agglo.scc(graph, X=X, connect="exact-average").height[-1]
    assert cosine == pytest.approx(1, abs=0.02)  # nearly perpendicular
    assert agglo.scc(graph, linkage="ward", X=X, connect="centroid").height[-1] == pytest.approx(2, abs=0.03)
    assert agglo.scc(graph, X=X, connect="ward").height[-1] == pytest.approx(
        2, abs=0.03
    )  # twice that of two points


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"connect": "best"}, ValueError, "connect='best' is unknown: pass one of None, .auto., .exact-average"),
        ({"connect": "centroid"}, ValueError, "linkage='centroid' compares the points themselves.*pass X"),
        (
            {"connect": "exact-average", "X": np.ones((2, 2))},
            ValueError,
            "does not support metric='euclid",
        ),
    ],
)
def test_an_invalid_connect_raises(options, error, message):
    graph = agglo.NeighborGraph.from_edges([0], [1], [0.5], kind="distance", metric="euclidean")
    for method in METHODS:
        for engine in (agglo, reference_constraints):
            with pytest.raises(error, match=message):
                getattr(engine, method)(graph, **options)


@pytest.mark.parametrize("clusterer", [agglo.SCC, agglo.Affinity, agglo.HAC])
def test_estimators_merge_roots_by_connect(clusterer):
    X, groups = far_apart()
    fitted = clusterer(3, metric="sqeuclidean", n_neighbors=5, connect="ward").fit(X)
    assert len(set(zip(fitted.labels_.tolist(), groups.tolist(), strict=True))) == 3
    for wrong in ({"connect": "best"}, {"metric": "precomputed", "kind": "distance", "connect": "ward"}):
        with pytest.raises(ValueError, match=r"connect='best' is unknown|pass X, the points"):
            clusterer(**wrong).fit(np.eye(5))


@pytest.mark.parametrize("clusterer", [agglo.SCC, agglo.Affinity, agglo.HAC])
def test_clusterers_join_what_the_graph_leaves_apart_and_label_as_if_they_did_not(clusterer):
    X, groups = far_apart()
    settings = {"metric": "sqeuclidean", "n_neighbors": 5}
    fitted, plain = clusterer(**settings).fit(X), clusterer(**settings, connect=None).fit(X)
    assert fitted.tree_.about["connect"] == "ward"
    assert fitted.tree_.about["graph_clusters"] == plain.tree_.rounds.after[-1] > 3
    assert fitted.tree_.rounds.after[-1] == 1
    assert "connect" not in plain.tree_.about
    np.testing.assert_array_equal(fitted.labels_, plain.labels_)
    labels = fitted.tree_.cut(n_clusters=3)
    assert len(set(zip(labels.tolist(), groups.tolist(), strict=True))) == 3
    again = np.concatenate([X, X[:7]])  # copies are a round before all others
    labels = clusterer(**settings).fit(again).labels_[: len(X)]
    assert agglo.metrics.pairwise_f1(plain.labels_, labels).f1 == 1


def test_auto_merges_roots_only_if_the_graph_has_no_more_edges_and_points_have_means():
    X, _ = far_apart()
    graph = agglo.neighbor_graph(X, 5, "euclidean")
    assert agglo.scc(graph, X=X, connect="auto").about["connect"] == "ward"
    assert "connect" not in agglo.scc(graph, connect="auto").about
    near = agglo.scc(graph, thresholds=[1.0, 2.0], X=X, connect="auto")  # whose thresholds end before the edges
    assert "connect" not in near.about
    assert "connect" not in agglo.scc(graph, X=X, connect="auto", max_cluster_size=5).about
    assert "connect" not in agglo.scc(graph, linkage="ward", X=X, connect="auto").about
    assert "connect" not in agglo.scc(agglo.neighbor_graph(X, "all", "euclidean"), X=X, connect="auto").about
    sets = agglo.neighbor_graph(np.eye(6, dtype=bool).repeat(3, axis=0), 2, "jaccard")
    assert "connect" not in agglo.scc(sets, X=np.eye(6).repeat(3, axis=0), connect="auto").about
    expected = reference_constraints.scc(graph, X=X, connect="auto")
    assert_same_hierarchy(agglo.scc(graph, X=X, connect="auto"), expected)


def test_where_the_graph_merges_nothing_the_top_has_levels():
    X, _ = far_apart()
    graph = agglo.neighbor_graph(X, 5, "sqeuclidean")
    tree = agglo.scc(graph, thresholds=[1e-12], X=X, connect="exact-average")
    assert tree.about["graph_clusters"] == len(X)
    labels = tree.cut(round="persistent")
    assert 1 < len(set(labels.tolist())) < len(X)


@pytest.mark.parametrize("method", METHODS)
def test_top_is_a_deprecated_alias_of_connect(method):
    X, _ = far_apart()
    graph = agglo.neighbor_graph(X, 5, "sqeuclidean")
    build = getattr(agglo, method)
    for value in (None, "ward"):
        with pytest.warns(FutureWarning, match="top= is now called connect=: pass connect"):
            tree = build(graph, X=X, top=value)
        assert_same_hierarchy(tree, build(graph, X=X, connect=value))


@pytest.mark.parametrize("clusterer", [agglo.SCC, agglo.Affinity, agglo.HAC])
def test_top_is_a_deprecated_alias_of_connect_in_estimators(clusterer, tmp_path):
    X, _ = far_apart()
    settings = {"metric": "sqeuclidean", "n_neighbors": 5}
    with pytest.warns(FutureWarning, match="top= of .* is now called connect=: pass connect"):
        model = clusterer(**settings, top=None).fit(X)
    expected = clusterer(**settings, connect=None).fit(X)
    assert_same_hierarchy(model.tree_, expected.tree_)
    model.save(tmp_path / "model")
    loaded = agglo.load(tmp_path / "model")
    assert loaded.get_params()["connect"] is None
    assert_same_hierarchy(loaded.partial_fit(X[:3]).tree_, expected.partial_fit(X[:3]).tree_)


@pytest.mark.parametrize("method", METHODS)
def test_all_but_the_graph_are_keywords(method):
    graph = agglo.NeighborGraph.from_edges([0], [1], [0.5], kind="distance")
    with pytest.raises(TypeError, match="positional argument"):
        getattr(agglo, method)(graph, 10)


def nested_clusters():
    """Twelve clusters in three directions, with some edges between them."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(3), 4)
    centres = np.eye(8)[groups] + 0.35 * rng.normal(size=(12, 8))
    y = rng.integers(0, 12, 1500)
    X = centres[y] + 0.22 * rng.normal(size=(1500, 8))
    return X, groups[y]


def slowly_supported(tree, graph, weights):
    """Return for each node whether the graph supports it and all its descendants, by the definition."""
    A = np.maximum(graph.to_scipy().toarray() - graph.missing, 0) * (graph.to_scipy().toarray() != 0)
    A = A * np.outer(weights, weights)
    total, degree = A.sum(), A.sum(axis=1)
    best_cut = agglo.modularity_path(tree, graph, sample_weight=weights).cut(2 / 3)
    result = np.ones(tree.n_nodes, bool)
    for node in range(tree.n_leaves, tree.n_nodes):
        children = [tree.leaves(child) for child in tree.children(node)]
        if len(np.unique(best_cut[tree.leaves(node)])) == 1:
            continue
        weight = [A[np.ix_(own, np.setdiff1d(tree.leaves(node), own))].sum() for own in children]
        leaving = [degree[own].sum() - A[np.ix_(own, own)].sum() for own in children]
        volume = [degree[own].sum() / total for own in children]
        siblings = [sum(volume) - own for own in volume]
        if len(children) == 2:
            pairs = list(zip(weight, leaving, siblings, [1 - own for own in volume], strict=True))
        else:
            products = [(a * b, a * (1 - a)) for a, b in zip(volume, siblings, strict=True)]
            pairs = [(sum(weight), sum(leaving), sum(a for a, _ in products), sum(b for _, b in products))]
        excess = [(w / out - c / t) / (1 - c / t) if out > 0 and c < t else -1 for w, out, c, t in pairs]
        result[node] = max(excess) >= 0.4 and sum(weight) > 0 and result[tree.children(node)].all()
    return result


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_auto_keeps_the_supported_nodes_and_merges_them_by_ward(method, is_weighted):
    X, _ = nested_clusters()
    X = X[:300]
    weights = np.random.default_rng(0).choice([1.0, 2.0, 3.0], 300) if is_weighted else np.ones(300)
    known = {"sample_weight": weights} if is_weighted else {}
    graph = agglo.neighbor_graph(X, 8)
    plain = getattr(agglo, method)(graph, connect=None, **known)
    tree = getattr(agglo, method)(graph, X=X, connect="auto", **known)
    check_hierarchy(tree)
    kept = slowly_supported(plain, graph, weights)

    def members(tree, nodes):
        return {tuple(tree.leaves(node).tolist()) for node in nodes}

    expected = members(plain, np.flatnonzero(kept))
    top = np.flatnonzero(kept[:-1] & ~kept[plain.parent[:-1]])
    assert tree.about["graph_clusters"] == len(top) > 1
    assert tree.about["connect"] == "ward"
    n_rounds = int((tree.rounds.after >= len(top)).sum())
    assert members(tree, np.flatnonzero(tree.round <= n_rounds)) == expected
    assert members(tree, tree.nodes(tree.labels(round=n_rounds))) == members(plain, top)
    # Ward's linkage of the unit vectors, from the means of the clusters.
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    clusters = [np.array(own) for own in members(plain, top)]
    while len(clusters) > 1:
        sizes = np.array([weights[own].sum() for own in clusters])
        means = np.array([np.average(unit[own], axis=0, weights=weights[own]) for own in clusters])
        cost = ((means[:, None] - means) ** 2).sum(axis=2) / (1 / sizes[:, None] + 1 / sizes)
        np.fill_diagonal(cost, np.inf)
        first, second = np.unravel_index(cost.argmin(), cost.shape)
        clusters[first] = np.sort(np.concatenate([clusters[first], clusters[second]]))
        del clusters[second]
        labels = tree.cut(n_clusters=len(clusters))
        assert members(tree, tree.nodes(labels)) == {tuple(own.tolist()) for own in clusters}


def test_auto_has_coarse_levels_worth_reading():
    X, groups = nested_clusters()
    graph = agglo.neighbor_graph(X, 10)
    tree = agglo.scc(graph, X=X)
    labels = tree.cut(n_clusters=3)
    assert agglo.metrics.pairwise_f1(labels, groups).f1 > 0.9
    assert (tree.height[tree.parent[:-1]] >= tree.height[:-1]).all()
    above = tree.round > np.count_nonzero(tree.rounds.after >= tree.about["graph_clusters"])
    assert above.sum() == tree.about["graph_clusters"] - 1
    assert tree.height.max() <= 1 - graph.missing  # the height of a pair without an edge
    assert tree.height[above].min() >= tree.height[~above].max()
    assert (np.diff(tree.height[above]) >= 0).all()


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "euclidean"])
@pytest.mark.parametrize("clusterer", [agglo.SCC, agglo.HAC])
def test_models_with_replaced_merges_do_all_that_others_do(clusterer, metric, tmp_path):
    X, _ = nested_clusters()
    model = clusterer(metric=metric, n_neighbors=10).fit(X[:1000])
    tree = model.tree_
    assert tree.about["connect"] == "ward"
    assert tree.rounds.after[-1] == 1
    for k in (1, 2, 5, 12, 100):
        assert abs(tree.cut(n_clusters=k).max() + 1 - k) <= (0 if k <= tree.about["graph_clusters"] else 20)
    tree.save(tmp_path / "tree.parquet")
    assert_same_hierarchy(agglo.Hierarchy.load(tmp_path / "tree.parquet"), tree)
    np.testing.assert_array_equal(model.predict(X[:1000]), model.labels_)
    assert (model.predict(X[1000:]) >= 0).mean() > 0.9
    assert (model.predict(X[1000:], n_clusters=3) >= 0).mean() > 0.9
    assert len(tree.layers(3)) == 3
    assert tree.condense().n_leaves == 1000
    both = clusterer(metric=metric, n_neighbors=10).fit(X[:700]).partial_fit(X[700:1000])
    assert agglo.metrics.pairwise_f1(both.labels_, model.labels_).f1 == 1
    apart = clusterer(metric=metric, n_neighbors=10).fit(X[:1000], cannot_link=[[0, 1]])
    assert apart.tree_.labels(round=-1)[0] != apart.tree_.labels(round=-1)[1]
    linked = clusterer(metric=metric, n_neighbors=10).fit(X[:1000], must_link=[[0, 1], [2, 3]])
    assert linked.labels_[0] == linked.labels_[1]
    order = np.random.default_rng(0).permutation(1000)
    moved = clusterer(metric=metric, n_neighbors=10).fit(X[:1000][order])
    np.testing.assert_array_equal(moved.labels_, model.labels_[order])
    for k in (3, 8):
        pair = moved.tree_.cut(n_clusters=k), tree.cut(n_clusters=k)[order]
        assert agglo.metrics.pairwise_f1(*pair).f1 == 1


def test_auto_changes_nothing_on_a_complete_graph_or_without_means():
    X, _ = nested_clusters()
    X = X[:60]
    graph = agglo.neighbor_graph(X, "all")
    assert_same_hierarchy(agglo.scc(graph, X=X), agglo.scc(graph, connect=None))
    graph = agglo.neighbor_graph(X, 5, "dot")
    assert agglo.scc(graph, X=X).about.get("connect") in (None, "exact-average")
    graph = agglo.neighbor_graph(X, 5)
    assert agglo.scc(graph, linkage="single", X=X).about.get("connect") in (None, "exact-average")
