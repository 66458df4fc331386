import numpy as np
import pytest
import scipy.cluster.hierarchy as sch
from graphs import point_graphs
from hypothesis import given, settings
from hypothesis import strategies as st

import agglo
from agglo.rounds.vector_linkage import VECTOR_LINKAGES
from agglo.testing import assert_same_hierarchy, check_hierarchy

CASES = [(linkage, metric) for linkage, metrics in VECTOR_LINKAGES.items() for metric in metrics]
METHODS = ["scc", "affinity", "hac"]


@settings(max_examples=40)
@given(st.data(), st.sampled_from(CASES), st.sampled_from(METHODS), st.sampled_from(["average", "single"]))
def test_a_top_is_its_reference_and_leaves_what_is_below(data, case, method, linkage):
    top, metric = case
    X, graph = data.draw(point_graphs(metric))
    known = {}
    if data.draw(st.booleans()):
        known["sample_weight"] = np.random.default_rng(graph.n_points).choice([0.5, 1, 3], graph.n_points)
    if graph.n_points > 3 and data.draw(st.booleans()):
        known["cannot_link"] = [(0, graph.n_points - 1)]
    expected = getattr(agglo.reference, method)(graph, linkage=linkage, X=X, top=top, **known)
    check_hierarchy(expected)
    assert expected.about["top"] == top
    for n_jobs in (1, 2):
        tree = getattr(agglo, method)(graph, linkage=linkage, X=X, top=top, n_jobs=n_jobs, **known)
        assert_same_hierarchy(tree, expected)
    plain = getattr(agglo, method)(graph, linkage=linkage, **known)
    for round in range(len(plain.rounds) + 1):
        assert tree.labels(round=round).tolist() == plain.labels(round=round).tolist()
    last = tree.labels(round=-1)
    if "cannot_link" in known:
        assert last[0] != last[-1]
    else:
        assert last.max() == 0


def far_apart():
    """Twelve clusters in three groups, each so far from the others that no neighbours are in two of them."""
    rng = np.random.default_rng(0)
    groups = np.array([[0, 0], [1000, 0], [0, 3000]])
    centres = np.repeat(groups, 4, axis=0) + rng.normal(size=(12, 2)) * 50
    return np.repeat(centres, 10, axis=0) + rng.normal(size=(120, 2)), np.repeat(np.arange(3), 40)


@pytest.mark.parametrize(("metric", "top"), [("sqeuclidean", "exact-average"), ("euclidean", "centroid")])
def test_means_that_float32_does_not_tell_apart_are_reported(metric, top):
    X, groups = far_apart()
    message = rf"top='{top}' merges 12 clusters by their means in float32, but .* pass top=None"
    for scale, is_reported in ((1e6, False), (1e9, True)):
        # Points are rounded to about 0.1 or 100, and means of clusters are 50 apart.
        points = X + scale * (groups == 2)[:, None]
        graph = agglo.neighbor_graph(points, 5, metric)
        if is_reported:
            with pytest.warns(UserWarning, match=message) as found:
                agglo.hac(graph, X=points, top="auto")
            assert found[0].filename == __file__
        else:
            agglo.hac(graph, X=points, top="auto")
        agglo.hac(graph)


@pytest.mark.parametrize("top", ["exact-average", "centroid", "ward"])
def test_the_top_finds_what_the_graph_cannot(top):
    X, groups = far_apart()
    graph = agglo.neighbor_graph(X, 5, "sqeuclidean")
    plain = agglo.scc(graph)
    assert plain.rounds.after[-1] == 12
    tree = agglo.scc(graph, X=X, top=top)
    assert tree.rounds.after.tolist() == [*plain.rounds.after.tolist(), *range(11, 0, -1)]
    labels = tree.cut(n_clusters=3)
    assert len(set(zip(labels.tolist(), groups.tolist(), strict=True))) == 3
    assert agglo.metrics.dendrogram_purity(tree, groups) > agglo.metrics.dendrogram_purity(plain, groups)


def test_the_top_is_classical_clustering_of_what_is_left():
    X, _ = far_apart()
    graph = agglo.neighbor_graph(X, 5, "euclidean")
    tree = agglo.scc(graph, X=X, top="ward")
    # Ward's increase for a cluster of ten is that of ten points at its mean.
    means = np.repeat(X.reshape(12, 10, 2).mean(axis=1), 10, axis=0)
    expected = sch.linkage(means, "ward")[-11:, 2]
    np.testing.assert_allclose(tree.height[-11:], expected, rtol=1e-5)


def test_many_clusters_are_compared_with_the_nearest(monkeypatch):
    monkeypatch.setattr("agglo.rounds.roots.ALL_PAIRS", 20)
    monkeypatch.setattr("agglo.rounds.roots._NEIGHBORS", 3)
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(60, 3))
    X = np.repeat(centres, 5, axis=0) + 1e-3 * rng.normal(size=(300, 3))
    tree = agglo.scc(agglo.neighbor_graph(X, 4, "cosine"), X=X, top="exact-average")
    check_hierarchy(tree)
    assert tree.rounds.after[-1] == 1


def test_values_of_cosines_and_of_distances_have_one_scale():
    X = np.array([[1, 0], [1, 0.01], [0, 1], [0.01, 1]])
    graph = agglo.neighbor_graph(X, 1, "cosine")
    cosine = agglo.scc(graph, X=X, top="exact-average").height[-1]
    assert cosine == pytest.approx(1, abs=0.02)  # nearly perpendicular
    assert agglo.scc(graph, linkage="ward", X=X, top="centroid").height[-1] == pytest.approx(2, abs=0.03)
    assert agglo.scc(graph, X=X, top="ward").height[-1] == pytest.approx(2, abs=0.03)  # twice that of two points


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"top": "best"}, ValueError, "top='best' is unknown: pass None, .auto. or one of exact-average"),
        ({"top": "centroid"}, ValueError, "linkage='centroid' compares the points themselves.*pass X"),
        ({"top": "exact-average", "X": np.ones((2, 2))}, ValueError, "not known for a graph with metric='euclid"),
    ],
)
def test_bad_tops_are_told(options, error, message):
    graph = agglo.NeighborGraph.from_edges([0], [1], [0.5], kind="distance", metric="euclidean")
    for method in METHODS:
        for engine in (agglo, agglo.reference):
            with pytest.raises(error, match=message):
                getattr(engine, method)(graph, **options)


@pytest.mark.parametrize("clusterer", [agglo.SCC, agglo.Affinity, agglo.HAC])
def test_clusterers_have_a_top(clusterer):
    X, groups = far_apart()
    fitted = clusterer(3, metric="sqeuclidean", n_neighbors=5, top="ward").fit(X)
    assert len(set(zip(fitted.labels_.tolist(), groups.tolist(), strict=True))) == 3
    for wrong in ({"top": "best"}, {"metric": "precomputed", "kind": "distance", "top": "ward"}):
        with pytest.raises(ValueError, match=r"top='best' is unknown|pass X, the points"):
            clusterer(**wrong).fit(np.eye(5))


@pytest.mark.parametrize("clusterer", [agglo.SCC, agglo.Affinity, agglo.HAC])
def test_clusterers_join_what_the_graph_leaves_apart_and_label_as_if_they_did_not(clusterer):
    X, groups = far_apart()
    settings = {"metric": "sqeuclidean", "n_neighbors": 5}
    fitted, plain = clusterer(**settings).fit(X), clusterer(**settings, top=None).fit(X)
    assert fitted.tree_.about["top"] == "exact-average"
    assert fitted.tree_.about["graph_clusters"] == plain.tree_.rounds.after[-1] > 3
    assert fitted.tree_.rounds.after[-1] == 1
    assert "top" not in plain.tree_.about
    np.testing.assert_array_equal(fitted.labels_, plain.labels_)
    np.testing.assert_array_equal(fitted.tree_.layers(3), plain.tree_.layers(3))
    labels = fitted.tree_.cut(n_clusters=3)
    assert len(set(zip(labels.tolist(), groups.tolist(), strict=True))) == 3
    again = np.concatenate([X, X[:7]])  # copies are a round before all others
    labels = clusterer(**settings).fit(again).labels_[: len(X)]
    assert agglo.metrics.pairwise_f1(plain.labels_, labels).f1 == 1


def test_the_usual_top_is_for_graphs_that_end_of_points_that_have_means():
    X, _ = far_apart()
    graph = agglo.neighbor_graph(X, 5, "euclidean")
    assert agglo.scc(graph, X=X, top="auto").about["top"] == "centroid"
    assert "top" not in agglo.scc(graph, top="auto").about
    assert "top" not in agglo.scc(graph, [1.0, 2.0], X=X, top="auto").about  # it is the thresholds that end
    assert "top" not in agglo.scc(graph, X=X, top="auto", max_cluster_size=5).about
    assert "top" not in agglo.scc(graph, linkage="ward", X=X, top="auto").about
    assert "top" not in agglo.scc(agglo.neighbor_graph(X, "all", "euclidean"), X=X, top="auto").about
    sets = agglo.neighbor_graph(np.eye(6, dtype=bool).repeat(3, axis=0), 2, "jaccard")
    assert "top" not in agglo.scc(sets, X=np.eye(6).repeat(3, axis=0), top="auto").about
    expected = agglo.reference.scc(graph, X=X, top="auto")
    assert_same_hierarchy(agglo.scc(graph, X=X, top="auto"), expected)


def test_where_the_graph_merges_nothing_the_top_has_levels():
    X, _ = far_apart()
    graph = agglo.neighbor_graph(X, 5, "sqeuclidean")
    tree = agglo.scc(graph, [1e-12], X=X, top="exact-average")
    assert tree.about["graph_clusters"] == len(X)
    labels = tree.cut(round="persistent")
    assert 1 < len(set(labels.tolist())) < len(X)
