import numpy as np
import pytest
from graphs import point_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import agglo
from agglo import HAC, SCC, Affinity
from agglo.rounds import reference_attach
from agglo.rounds.attach import QueryVectors, Rows, attach_rows, node_moments
from agglo.rounds.reference_linkage import ReferenceVectorLinkage
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, VectorLinkage
from agglo.testing import assert_same_hierarchy

CASES = [(linkage, metric) for linkage, metrics in VECTOR_LINKAGES.items() for metric in metrics]
each_case = pytest.mark.parametrize(("linkage", "metric"), CASES)


def groups(n, seed=0):
    """Eight groups of points in ten dimensions, apart in distance and in direction."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 8
    return (4 * np.eye(10)[y] + rng.normal(scale=0.3, size=(n, 10))).astype(np.float32), y


def assert_same(found, expected):
    for column in ("node", "round", "height"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column), strict=True)


# ---- the definition ----


@settings(max_examples=60)
@given(st.data(), st.sampled_from(CASES), st.sampled_from(["scc", "until-stable", "affinity", "hac"]))
def test_the_core_attaches_as_the_reference_does(data, case, method):
    linkage, metric = case
    X, graph = data.draw(point_graphs(metric))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    options, weights = {"linkage": linkage, "X": X}, None
    if method in ("scc", "until-stable"):
        options |= {"n_thresholds": 20, "advance": "until-stable" if method != "scc" else "every-round"}
        method = "scc"
    if data.draw(st.booleans()):
        weights = options["sample_weight"] = rng.choice([0.3, 1, 2.5], graph.n_points)
    if graph.n_points > 2 and data.draw(st.booleans()):
        options["must_link"] = [(0, graph.n_points - 1)]
    tree = getattr(agglo, method)(graph, **options)
    X_new = np.concatenate([X[:2], np.round(rng.normal(size=(3, X.shape[1])) * 2)]).astype(np.float32)
    # Any leaf may be named, also twice, and none; weights are like those of the graph.
    lengths = rng.integers(0, 7, len(X_new))
    targets = rng.integers(-1, graph.n_points, lengths.sum()).astype(np.int32)
    like = graph.weights if graph.n_edges else np.array([0.5], np.float32)
    rows = Rows(np.append(0, np.cumsum(lengths)), targets, rng.choice(like, len(targets)))
    expected = reference_attach.attach(tree, rows, weights, X, X_new)
    known = node_moments(tree, X, weights)
    for n_jobs in (1, 3):
        new = QueryVectors(known, known.linkage.prepare_queries(X_new))
        assert_same(attach_rows(tree, rows, None, n_jobs, None, weights, new), expected)


@each_case
def test_nodes_are_what_the_rounds_made_of_them(linkage, metric):
    X, _ = groups(60)
    weights = np.random.default_rng(0).choice([0.5, 1, 3], 60)
    tree = agglo.hac(agglo.neighbor_graph(X, 8, metric), linkage=linkage, X=X, sample_weight=weights)
    known = node_moments(tree, X, weights)
    rule = ReferenceVectorLinkage(VectorLinkage(agglo.neighbor_graph(X, 8, metric), linkage, X, weights))
    expected = reference_attach.node_moments(tree, rule, weights)
    for column in ("weight", "squared_norm", "spread"):
        values = np.concatenate([getattr(moments, column) for moments in expected])
        np.testing.assert_array_equal(getattr(known, column), values)
    means = np.concatenate([moments.mean for moments in expected[60:]])
    np.testing.assert_array_equal(known.mean.reshape(means.shape), means)
    # As the points themselves say, but for what float32 rounds off.
    points = rule.points.astype(np.float64)
    for node in range(60, tree.n_nodes):
        own, weigh = points[tree.leaves(node)], weights[tree.leaves(node)]
        center = np.average(own, axis=0, weights=weigh)
        np.testing.assert_allclose(means[node - 60], center, atol=1e-5)
        np.testing.assert_allclose(known.spread[node], weigh @ ((own - center) ** 2).sum(axis=1), rtol=1e-4)


@pytest.mark.parametrize("linkage", ["exact-average", "centroid"])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_point_that_nobody_else_looks_at_joins_as_in_a_run_with_it(linkage, seed):
    # Means of old points are not farther from each other than these are, and the new point is.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 3)).astype(np.float32)
    far = np.array([[8.0, 0, 0]], np.float32)
    both = np.concatenate([X, far])
    most = ((both[:, None] - both) ** 2).sum(axis=2)
    thresholds = np.linspace(0.1, 2 * most.max(), 60)
    tree = agglo.scc(agglo.neighbor_graph(X, "all", "sqeuclidean"), thresholds=thresholds, linkage=linkage, X=X)
    new = agglo.attach(tree, [np.arange(12)], most[[12], :12], X=X, X_new=far)
    whole = agglo.scc(
        agglo.neighbor_graph(both, "all", "sqeuclidean"), thresholds=thresholds, linkage=linkage, X=both
    )
    joined = int(whole.round[whole.parent[12]])
    mates = np.flatnonzero(whole.labels(joined)[:12] == whole.labels(joined)[12])
    label = new.labels(round=-1)[0]
    assert label >= 0
    np.testing.assert_array_equal(np.sort(tree.leaves(new.node[0])), mates)
    np.testing.assert_allclose(new.height, whole.height[whole.parent[12]], rtol=1e-5)


# ---- clusterers ----


@each_case
@pytest.mark.parametrize("clusterer", [SCC, Affinity, HAC])
def test_fitted_points_are_where_they_were(clusterer, linkage, metric):
    X, _ = groups(80)
    X = np.concatenate([X, X[:9], X[:3]])  # copies are folded
    model = clusterer(metric=metric, linkage=linkage, n_neighbors=5).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    new = model.attach(X[::-1])
    for round in range(1, len(model.tree_.rounds) + 1, 7):
        np.testing.assert_array_equal(new.labels(round=round), model.tree_.labels(round)[::-1])
    labels = model.tree_.cut(max_size=7)
    np.testing.assert_array_equal(model.predict(X, labels=labels), labels)


@each_case
def test_new_points_go_to_the_groups_that_they_are_of(linkage, metric):
    X, y = groups(400)
    model = SCC(8, metric=metric, linkage=linkage, n_neighbors=10).fit(X[:240])
    predicted = model.predict(X[240:])
    known = predicted >= 0
    assert known.mean() > 0.9
    assert adjusted_rand_score(y[240:][known], predicted[known]) > 0.95
    if metric != "cosine" and linkage != "exact-average":
        assert model.predict(np.full((1, 10), 1e4, np.float32)).tolist() == [-1]
    for n_jobs in (1, 3):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).predict(X[240:]), predicted)


@each_case
def test_more_points_give_what_a_fit_of_all_gives(linkage, metric):
    X, _ = groups(90)
    settings = {"metric": metric, "method": "exact", "n_neighbors": 6, "linkage": linkage}
    model = SCC(**settings).fit(X[:50])
    before = model.predict(X[80:])
    model.partial_fit(X[50:])
    whole = SCC(**settings).fit(X)
    assert_same_hierarchy(model.tree_, whole.tree_)
    np.testing.assert_array_equal(model.predict(X[80:]), model.labels_[80:])
    assert len(before) == 10


@pytest.mark.parametrize("linkage", VECTOR_LINKAGES)
def test_a_model_from_disk_predicts_the_same(linkage, tmp_path):
    X, _ = groups(120)
    model = SCC(metric="sqeuclidean", linkage=linkage, n_neighbors=6).fit(X[:100])
    model.save(tmp_path / "model")
    loaded = agglo.load(tmp_path / "model")
    assert_same(loaded.attach(X[100:]), model.attach(X[100:]))


# ---- what cannot be done is said ----


def test_what_cannot_be_attached_is_said():
    X = np.array([[0.0], [1.0], [10.0]])
    graph = agglo.neighbor_graph(X, 2, "sqeuclidean")
    tree = agglo.scc(graph, linkage="ward", X=X)
    for points, message in (
        ({}, "built with linkage='ward', which compares the points themselves: pass X, .* and X_new"),
        ({"X": X}, "pass X, the points of the tree, and X_new, the new points"),
        ({"X": X[:2], "X_new": [[1.0]]}, "X has 2 rows, but the graph has 3 points"),
        ({"X": X, "X_new": [[1.0], [2.0]]}, "X_new has 2 rows, but indices 1: pass the points"),
        (
            {"X": X, "X_new": [[1.0, 2.0]]},
            "2 columns, but the points of the tree have 1: pass",
        ),
        ({"X": X, "X_new": [[np.nan]]}, r"X\[0, 0\] is nan"),
        ({"X": X, "X_new": [[1e30]]}, "X holds numbers beyond 1e18.*scale X down"),
    ):
        with pytest.raises(ValueError, match=message):
            agglo.attach(tree, [[0]], [[1.0]], **points)
    assert agglo.attach(tree, [[0]], [[0.25]], X=X, X_new=[[0.5]]).labels(n_clusters=2).tolist() == [0]
    weighed = agglo.scc(graph, linkage="ward", X=X, sample_weight=[1, 2, 1])
    with pytest.raises(ValueError, match=r"weights, 4 in total.*pass the same sample_weight"):
        agglo.attach(weighed, [[0]], [[1.0]], X=X, X_new=[[1.0]])
