import numpy as np
import pytest
import scipy.cluster.hierarchy as sch
import scipy.sparse as sp
from graphs import point_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist

import agglo
from agglo import NeighborGraph
from agglo.rounds import reference_constraints
from agglo.rounds.linkage import rows
from agglo.rounds.reference_linkage import ReferenceVectorLinkage, row_products, sum_segments
from agglo.rounds.vector_linkage import VECTOR_LINKAGES, VectorLinkage
from agglo.testing import assert_same_hierarchy, check_hierarchy

CASES = [(linkage, metric) for linkage, metrics in VECTOR_LINKAGES.items() for metric in metrics]
each_case = pytest.mark.parametrize(("linkage", "metric"), CASES)


def blobs(seed=0, n=120, d=5, k=6):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(k, d))[rng.integers(k, size=n)] + 0.2 * rng.normal(size=(n, d))).astype(np.float32)


# ---- the definition ----


def by_definition(linkage, metric, A, B):
    """How close two sets of points are, with no statistics in between."""
    if metric == "cosine":
        A, B = (P / np.linalg.norm(P, axis=1, keepdims=True) for P in (A, B))
    if linkage == "exact-average":
        return (cdist(A, B, "sqeuclidean") if metric == "sqeuclidean" else A @ B.T).mean()
    a, b = A.mean(axis=0), B.mean(axis=0)
    if linkage == "centroid" and metric == "cosine":
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    square = ((a - b) ** 2).sum()
    if linkage == "ward":
        both = np.concatenate([A, B])
        square = 2 * sum(s * ((P - P.mean(axis=0)) ** 2).sum() for s, P in ((1, both), (-1, A), (-1, B)))
    return np.sqrt(max(square, 0)) if metric == "euclidean" else square


@each_case
def test_a_merged_cluster_is_as_close_as_its_points_are(linkage, metric):
    X = blobs().astype(float)
    rule = ReferenceVectorLinkage(VectorLinkage(agglo.neighbor_graph(X, 3, metric), linkage, X))
    assert isinstance(rule, agglo.Linkage)
    moments = rule.of_points(np.ones(len(X)))
    sets = [np.arange(0, 4), np.arange(4, 11), np.arange(11, 12), np.arange(12, 40)]
    # Merged at once, and in two steps.
    large = rule.merged_clusters(rows(moments, np.arange(4, 11)), np.array([0]))
    two = rule.merged_clusters(rows(moments, np.arange(12, 40)), np.array([0, 20]))
    clusters = [
        rule.merged_clusters(rows(moments, sets[0]), np.array([0])),
        large,
        rows(moments, sets[2]),
        rule.merged_clusters(two, np.array([0])),
    ]
    for i, a in enumerate(clusters):
        for j, b in enumerate(clusters):
            if i != j:
                edges = rule.of_edges(np.array([0]), np.array([1]), np.array([np.nan], np.float32))
                found = rule.value(a, b, edges)[0]
                assert found == rule.value(b, a, edges)[0]
                expected = by_definition(linkage, metric, X[sets[i]], X[sets[j]])
                assert found == pytest.approx(expected, rel=2e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_on_the_complete_graph_hac_is_classical(seed):
    X = np.random.default_rng(seed).normal(size=(90, 4))
    cases = [
        ("ward", "euclidean", sch.linkage(X, "ward")),
        ("exact-average", "sqeuclidean", sch.linkage(pdist(X, "sqeuclidean"), "average")),
        ("exact-average", "cosine", sch.linkage(pdist(X, "cosine"), "average")),
    ]
    for linkage, metric, expected in cases:
        tree = agglo.hac(agglo.neighbor_graph(X, "all", metric), linkage=linkage, X=X)
        np.testing.assert_allclose(tree.height[90:], expected[:, 2], rtol=1e-4)
        for k in (2, 5, 20):
            labels = tree.cut(n_clusters=k)
            assert len(set(zip(labels, sch.fcluster(expected, k, "maxclust"), strict=True))) == k


def test_copies_are_at_distance_zero_however_far_from_the_origin():
    X = np.repeat(1e4 + np.random.default_rng(0).normal(size=(8, 6)), 9, axis=0)
    for linkage, metric in CASES:
        if metric in ("sqeuclidean", "euclidean"):
            tree = agglo.hac(agglo.neighbor_graph(X, 8, metric), linkage=linkage, X=X)
            assert sorted(tree.rounds.after[tree.height[72 : 72 + 64] < 1e-3])[0] == 8


def two_sites(apart, share=0.5, seed=0):
    """Ten clusters of points, a share of them at a site that is so far away in each column."""
    rng = np.random.default_rng(seed)
    y = rng.integers(5, size=300) + 5 * (np.arange(300) < 300 * share)
    centers = rng.uniform(0, 10, (10, 2)) + apart * (np.arange(10) >= 5)[:, None]
    return centers[y] + 0.15 * rng.normal(size=(300, 2)), y


TOO_COARSE = (
    r"linkage='{}' keeps means in float32, but \d+% of the edges are shorter than 10 times its rounding: it "
    r"rounds their points by up to 8\.\d, because these are up to 7\.\de\+07 from the mean of all\. Clusters may "
    r"be wrong: move groups of points .* or pass linkage='average'"
)


@pytest.mark.parametrize("n_neighbors", [10, "all"])
@pytest.mark.parametrize(("linkage", "metric"), [case for case in CASES if "euclidean" in case[1]])
def test_points_that_float32_does_not_tell_apart_are_reported(linkage, metric, n_neighbors):
    X, y = two_sites(1e8)
    graph = agglo.neighbor_graph(X, n_neighbors, metric)
    with pytest.warns(UserWarning, match=TOO_COARSE.format(linkage)) as found:
        agglo.scc(graph, linkage=linkage, X=X)
    assert found[0].filename == __file__
    # What the message advises: sites that are less far apart, one site alone, and another linkage.
    for points in (X - (1e8 - 100) * (y >= 5)[:, None], X[y >= 5]):
        agglo.scc(agglo.neighbor_graph(points, n_neighbors, metric), linkage=linkage, X=points)
    agglo.scc(graph, linkage="average")


def test_a_small_site_is_reported_as_well():
    X, _ = two_sites(1e9, 0.1)
    with pytest.warns(UserWarning, match="float32"):
        agglo.SCC(10, metric="euclidean", linkage="ward", n_neighbors=8).fit(X)


@pytest.mark.parametrize("apart", [0, 1e3, 1e4])
@each_case
def test_ordinary_points_are_not_reported(linkage, metric, apart):
    X, _ = two_sites(apart)
    X = np.concatenate([X, X[:5], X[:1] + 1e-9])  # duplicates and near duplicates
    if "euclidean" in metric:
        X = np.concatenate([X, X[:1] + 1e5])  # and a point that is far from all
    agglo.hac(agglo.neighbor_graph(X, 10, metric), linkage=linkage, X=X)


def test_sums_have_the_order_that_they_say():
    rng = np.random.default_rng(0)
    values = rng.normal(size=40) * 10.0 ** rng.integers(-8, 8, 40)
    first = np.array([0, 1, 4, 20])
    expected = [sum(group[1:], start=group[0]) for group in np.split(values, first[1:])]
    assert sum_segments(values, first).tolist() == expected
    x, y = rng.normal(size=(2, 1, 21)).astype(np.float32)
    lane = [0.0] * 8
    for j, (a, b) in enumerate(zip(x[0].tolist(), y[0].tolist(), strict=True)):
        lane[j % 8] += a * b
    total = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]))
    assert row_products(x, y).tolist() == [total]


# ---- what a user relies on ----


@each_case
def test_named_thresholds_reach_the_last_merge(linkage, metric):
    X = blobs(n=200)
    graph = agglo.neighbor_graph(X, 8, metric)
    components = agglo.affinity(graph, linkage="single").rounds.after[-1]
    tree = agglo.scc(graph, linkage=linkage, X=X)
    assert tree.rounds.after[-1] == components
    check_hierarchy(tree)
    assert tree.about["linkage"] == linkage
    assert tree.about["kind"] == VectorLinkage(graph, linkage, X).kind


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_any_table_of_numbers_will_do(dtype):
    X = np.random.default_rng(0).integers(-5, 6, (50, 4)).astype(np.float32)
    graph = agglo.neighbor_graph(X, 5, "sqeuclidean")
    expected = agglo.scc(graph, linkage="ward", X=X)
    assert_same_hierarchy(agglo.scc(graph, linkage="ward", X=X.astype(dtype)), expected)
    assert_same_hierarchy(agglo.scc(graph, linkage="ward", X=X.tolist()), expected)


@each_case
def test_clusterers_take_their_points(linkage, metric):
    X = blobs()
    for clusterer, method in ((agglo.SCC, agglo.scc), (agglo.Affinity, agglo.affinity), (agglo.HAC, agglo.hac)):
        fitted = clusterer(metric=metric, linkage=linkage, n_neighbors=7).fit(X)
        assert_same_hierarchy(fitted.tree_, method(fitted.graph_, linkage=linkage, X=X))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ValueError, "linkage='ward' compares the points themselves.*pass X"),
        ({"X": np.ones((3, 2))}, ValueError, "X has 3 rows, but the graph has 2 points"),
        ({"X": sp.eye_array(2, format="csr")}, TypeError, "X is a SciPy sparse csr_array, but the mean"),
        ({"X": [[1.0], [np.nan]]}, ValueError, r"X\[1, 0\] is nan"),
        ({"X": [[1e30], [0.0]]}, ValueError, "X holds numbers beyond 1e18.*scale X down"),
    ],
)
def test_bad_points_are_told(options, error, message):
    graph = NeighborGraph.from_edges([0], [1], [0.5], kind="distance", metric="sqeuclidean")
    for method in ("scc", "affinity", "hac"):
        for engine in (agglo, agglo.reference):
            with pytest.raises(error, match=message):
                getattr(engine, method)(graph, linkage="ward", **options)


@pytest.mark.parametrize(
    ("linkage", "metric"),
    [("ward", "dot"), ("centroid", "jaccard"), ("exact-average", "euclidean"), ("ward", None)],
)
def test_what_is_no_function_of_means_is_told(linkage, metric):
    graph = NeighborGraph.from_edges([0], [1], [0.5], kind="distance", metric=metric)
    with pytest.raises(ValueError, match=f"linkage='{linkage}' does not support metric={metric!r}: build"):
        agglo.scc(graph, linkage=linkage, X=np.ones((2, 2)))


def test_a_precomputed_graph_has_no_points():
    graph = agglo.neighbor_graph(blobs(), 5, "sqeuclidean")
    with pytest.raises(ValueError, match="compares the points themselves"):
        agglo.SCC(metric="precomputed", linkage="ward").fit(graph)


@settings(max_examples=20)
@given(st.data(), st.sampled_from(CASES), st.sampled_from(["scc", "affinity", "hac"]))
def test_trees_are_trees(data, case, method):
    linkage, metric = case
    X, graph = data.draw(point_graphs(metric))
    check_hierarchy(getattr(agglo.reference, method)(graph, linkage=linkage, X=X))


# ---- engines agree ----


@settings(max_examples=60)
@given(st.data(), st.sampled_from(CASES), st.sampled_from(["scc", "until-stable", "affinity", "hac"]))
def test_the_core_is_its_reference(data, case, method):
    linkage, metric = case
    X, graph = data.draw(point_graphs(metric))
    options = {"linkage": linkage, "X": X}
    if method in ("scc", "until-stable"):
        options["n_thresholds"] = data.draw(st.sampled_from([3, 20, 100]))
        options["advance"] = "until-stable" if method == "until-stable" else "every-round"
        method = "scc"
    if data.draw(st.booleans()):
        options["sample_weight"] = np.random.default_rng(graph.n_points).choice([0.3, 1, 2.5], graph.n_points)
    if data.draw(st.booleans()):
        options["max_cluster_size"] = data.draw(st.integers(3, 9))
    if graph.n_points > 3 and data.draw(st.booleans()):
        options["cannot_link"] = [(0, 2)]
        options["must_link"] = [(0, 1)] if "max_cluster_size" not in options else []
    expected = getattr(reference_constraints, method)(graph, **options)
    check_hierarchy(expected)
    for n_jobs in (1, 2, 8):
        assert_same_hierarchy(getattr(agglo, method)(graph, **options, n_jobs=n_jobs), expected)


@each_case
def test_engines_agree_on_a_graph_of_some_size(linkage, metric):
    X = np.round(blobs(n=1000, d=19, k=30), 2)
    graph = agglo.neighbor_graph(X, 10, metric)
    expected = agglo.reference.scc(graph, linkage=linkage, X=X, n_thresholds=60)
    for n_jobs in (1, 2, 8):
        assert_same_hierarchy(agglo.scc(graph, linkage=linkage, X=X, n_thresholds=60, n_jobs=n_jobs), expected)
    assert_same_hierarchy(agglo.hac(graph, linkage=linkage, X=X), agglo.reference.hac(graph, linkage=linkage, X=X))
