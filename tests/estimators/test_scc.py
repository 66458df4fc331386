import pickle
from contextlib import contextmanager

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from estimator_checks import parametrize_checks, run_check
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    estimator_checks_generator,
)
from sklearn.utils.validation import check_is_fitted

import agglo
from agglo import HAC, SCC, Affinity, NeighborGraph, neighbor_graph
from agglo.estimators.scc import number_clusters
from agglo.testing import assert_same_hierarchy, check_hierarchy
from agglo.tree.persistent_round import persistent_round

CLUSTERERS = {SCC: agglo.scc, Affinity: agglo.affinity, HAC: agglo.hac}

each = pytest.mark.parametrize("clusterer", CLUSTERERS)


def blobs(n=90, seed=0):
    """Three groups of points in five dimensions, far from each other in distance and in direction."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return 4 * np.eye(5)[y] + rng.normal(scale=0.3, size=(n, 5)), y


@pytest.mark.filterwarnings("ignore:[0-9]+ of [0-9]+ points are all zero:UserWarning")  # and so are some of theirs
@parametrize_checks([SCC(), Affinity(), HAC()])
def test_scikit_learns_own_checks(estimator, check, request):
    run_check(estimator, check, request)


LINKAGES = ["average", "single", "complete", "exact-average", "centroid", "ward"]


def is_about_weights_or_state(check):
    name = getattr(check, "func", check).__name__
    return "sample_weight" in name or name in ("check_dict_unchanged", "check_fit_idempotent")


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{estimator}-{check.func.__name__}")
        for clusterer in CLUSTERERS
        for linkage in LINKAGES
        for estimator in [clusterer(metric="sqeuclidean", linkage=linkage)]
        for _, check in estimator_checks_generator(estimator)
        if is_about_weights_or_state(check)
    ],
)
def test_scikit_learns_checks_of_weights_and_state_hold_for_all_linkages(estimator, check):
    check(estimator)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean"])
@each
def test_integer_weights_are_repeated_points(clusterer, metric, linkage):
    estimator = clusterer(metric=metric, linkage=linkage)
    check_sample_weight_equivalence_on_dense_data(clusterer.__name__, estimator)
    takes_sparse = metric == "cosine" and linkage in ("average", "single", "complete")
    assert get_tags(estimator).input_tags.sparse == takes_sparse
    if takes_sparse:
        check_sample_weight_equivalence_on_sparse_data(clusterer.__name__, estimator)
    else:
        with pytest.raises(TypeError, match=r"(?i)sparse .* dense.*toarray"):
            estimator.fit(sp.eye_array(5, format="csr"))


@pytest.mark.parametrize("metric", ["cosine", "dot", "sqeuclidean", "euclidean"])
@pytest.mark.parametrize("linkage", ["average", "single", "complete"])
@each
def test_a_clusterer_is_the_functions_in_order(clusterer, metric, linkage):
    X, _ = blobs()
    fitted = clusterer(metric=metric, n_neighbors=7, linkage=linkage).fit(X)
    graph = neighbor_graph(X, 7, metric, missing="mean")
    tree = CLUSTERERS[clusterer](graph, linkage=linkage, connect="auto", X=X)
    assert_same_hierarchy(fitted.tree_, tree)
    np.testing.assert_array_equal(fitted.graph_.to_scipy().toarray(), graph.to_scipy().toarray())
    assert (fitted.graph_.kind, fitted.graph_.metric) == (graph.kind, metric)
    assert fitted.tree_.about == tree.about
    check_hierarchy(fitted.tree_)


@pytest.mark.parametrize("thresholds", ["linear", "doubling", [0.5, 3.0, 9.0]])
@pytest.mark.parametrize("advance", ["every-round", "until-stable"])
def test_the_schedule_goes_to_the_rounds(thresholds, advance):
    X, _ = blobs()
    schedule = {"thresholds": thresholds, "n_thresholds": 30, "advance": advance}
    fitted = SCC(metric="euclidean", n_neighbors=5, **schedule).fit(X)
    tree = agglo.scc(neighbor_graph(X, 5, "euclidean", missing="mean"), **schedule, connect="auto", X=X)
    assert_same_hierarchy(fitted.tree_, tree)
    assert fitted.tree_.about == tree.about


@each
def test_without_a_rule_labels_are_those_of_the_persistent_resolution(clusterer):
    X, y = blobs()
    fitted = clusterer(n_neighbors=10).fit(X)
    assert fitted.round_ is None
    cut = fitted.tree_.cut(resolution=fitted.resolution_, graph=fitted.graph_)
    np.testing.assert_array_equal(fitted.labels_, number_clusters(cut, X=X))
    np.testing.assert_array_equal(fitted.labels_, number_clusters(y, X=X))
    same = clusterer(n_neighbors=10, resolution="persistent").fit(X)
    np.testing.assert_array_equal(same.labels_, fitted.labels_)
    assert same.resolution_ == fitted.resolution_


@each
def test_the_persistent_round(clusterer):
    X, y = blobs()
    fitted = clusterer(n_neighbors=10, round="persistent").fit(X)
    assert fitted.resolution_ is None
    assert fitted.round_ == persistent_round(fitted.tree_)
    np.testing.assert_array_equal(fitted.labels_, number_clusters(fitted.tree_.labels(round=fitted.round_), X=X))
    np.testing.assert_array_equal(fitted.labels_, number_clusters(y, X=X))


@each
def test_labels_follow_the_rule_that_is_given(clusterer):
    X, _ = blobs()
    for rule in ({"n_clusters": 5}, {"round": 1}, {"round": -1}, {"round": np.int64(0)}):
        fitted = clusterer(**rule).fit(X)
        np.testing.assert_array_equal(fitted.labels_, number_clusters(fitted.tree_.cut(**rule), X=X))
        np.testing.assert_array_equal(
            fitted.labels_, number_clusters(fitted.tree_.labels(round=fitted.round_), X=X)
        )
    fitted = clusterer(height=0.01).fit(X)
    np.testing.assert_array_equal(fitted.labels_, number_clusters(fitted.tree_.cut(height=0.01), X=X))
    assert fitted.round_ is None


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 90])
def test_hac_meets_any_number_of_clusters(n_clusters):
    labels = HAC(n_clusters, n_neighbors="all").fit_predict(blobs()[0])
    assert labels.max() + 1 == n_clusters


@each
def test_one_point_and_two(clusterer):
    one = clusterer().fit([[1.0, 2.0]])
    assert one.labels_.tolist() == [0]
    assert (one.tree_.n_nodes, one.graph_.n_edges, one.round_, one.resolution_) == (1, 0, None, 1.0)
    for rule, labels in (
        ({}, [0, 0]),
        ({"n_clusters": 2}, [0, 1]),
        ({"n_clusters": 1}, [0, 0]),
        ({"round": 0}, [0, 1]),
    ):
        two = clusterer(**rule).fit([[1.0, 2.0], [1.0, 3.0]])
        assert two.labels_.tolist() == labels
        assert two.graph_.parameters == {"n_neighbors": 1}


@each
def test_there_are_no_more_neighbours_than_other_points(clusterer):
    X, _ = blobs(12)
    for asked, used in ((25, 11), (12, 11), (np.int32(12), 11), (11, 11), (3, 3), ("all", "all")):
        fitted = clusterer(n_neighbors=asked).fit(X)
        assert fitted.graph_.parameters == {"n_neighbors": used}
        assert fitted.get_params()["n_neighbors"] is asked
    assert clusterer().fit(X[:1]).graph_.parameters == {"n_neighbors": "all"}


@each
@pytest.mark.parametrize("kind", ["distance", "similarity"])
def test_a_precomputed_graph_gives_the_same_as_the_points(clusterer, kind):
    X, _ = blobs(40)
    metric = {"distance": "euclidean", "similarity": "cosine"}[kind]
    expected = clusterer(metric=metric, n_neighbors="all").fit(X)
    graph = expected.graph_
    full = graph.to_scipy().toarray()
    for given, parameters in (
        (graph, {}),
        (graph, {"kind": kind}),
        (full, {"kind": kind}),
        (full.tolist(), {"kind": kind}),
        (sp.csr_array(full), {"kind": kind}),
        (sp.coo_matrix(full), {"kind": kind}),
    ):
        fitted = clusterer(metric="precomputed", **parameters).fit(given)
        assert_same_hierarchy(fitted.tree_, expected.tree_)
        np.testing.assert_array_equal(number_clusters(fitted.labels_, X=X), expected.labels_)
        assert fitted.n_features_in_ == 40
    assert clusterer(metric="precomputed").fit(graph).graph_ is graph


def test_zeros_of_a_precomputed_array_are_edges_and_its_diagonal_is_not():
    distances = np.array([[9.0, 0, 5], [0, 9, 5], [5, 5, 9]])
    fitted = HAC(metric="precomputed", kind="distance").fit(distances)
    assert fitted.graph_.n_edges == 3
    assert fitted.tree_.height.tolist() == [0, 0, 0, 0, 5]
    assert fitted.labels_.tolist() == [0, 0, 1]


def test_a_one_way_precomputed_matrix_is_united():
    one_way = sp.csr_array(np.triu(pairwise_distances(blobs(30)[0]), 1))
    both = HAC(metric="precomputed", kind="distance").fit(one_way + one_way.T)
    assert_same_hierarchy(HAC(metric="precomputed", kind="distance").fit(one_way).tree_, both.tree_)


@each
def test_tags_say_what_goes_in(clusterer):
    tags = get_tags(clusterer())
    assert tags.estimator_type == "clusterer"
    assert (tags.input_tags.pairwise, tags.input_tags.sparse) == (False, True)
    tags = get_tags(clusterer(metric="precomputed"))
    assert (tags.input_tags.pairwise, tags.input_tags.sparse) == (True, True)


@each
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint8])
def test_any_numbers_go_in(clusterer, dtype):
    X = (20 + 5 * blobs()[0]).astype(dtype)
    fitted = clusterer(metric="euclidean", n_neighbors=5).fit(X)
    graph = neighbor_graph(X, 5, "euclidean", missing="mean")
    assert_same_hierarchy(fitted.tree_, CLUSTERERS[clusterer](graph, connect="auto", X=X))


@each
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_go_in_and_their_columns_are_noted(clusterer, frame):
    X, _ = blobs()
    names = ["a", "b", "c", "d", "e"]
    fitted = clusterer().fit(frame(dict(zip(names, X.T, strict=True))))
    assert fitted.feature_names_in_.tolist() == names
    assert fitted.n_features_in_ == 5
    expected = clusterer().fit(X)
    assert not hasattr(expected, "feature_names_in_")
    np.testing.assert_array_equal(fitted.labels_, expected.labels_)


@each
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_a_pipeline_may_end_in_a_clusterer(clusterer, output):
    X, _ = blobs()
    before = make_pipeline(StandardScaler(), PCA(3))
    expected = clusterer(metric="euclidean").fit_predict(before.fit_transform(X))
    pipeline = make_pipeline(before, clusterer(metric="euclidean")).set_output(transform=output)
    np.testing.assert_array_equal(pipeline.fit_predict(X), expected)
    assert pipeline[-1].n_features_in_ == 3
    if output != "default":
        assert pipeline[-1].feature_names_in_.tolist() == ["pca0", "pca1", "pca2"]
    pipeline.set_params(**{f"{clusterer.__name__.lower()}__n_clusters": 90})
    assert pipeline.fit_predict(X).max() == 89


@each
def test_a_clone_is_unfitted_and_a_copy_is_fitted(clusterer, tmp_path):
    X, _ = blobs()
    fitted = clusterer(4, metric="euclidean", n_neighbors=8).fit(X)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "labels_")
    joblib.dump(fitted, tmp_path / "model.joblib")
    for restored in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        check_is_fitted(restored)
        assert_same_hierarchy(restored.tree_, fitted.tree_)
        np.testing.assert_array_equal(restored.labels_, fitted.labels_)
        np.testing.assert_array_equal(restored.graph_.weights, fitted.graph_.weights)
        np.testing.assert_array_equal(restored.tree_.cut(2), fitted.tree_.cut(2))


def test_joblib_fits_in_other_processes():
    X, _ = blobs()
    jobs = (joblib.delayed(SCC(k, n_jobs=1).fit_predict)(X) for k in (2, 3))
    for k, labels in zip((2, 3), joblib.Parallel(n_jobs=2)(jobs), strict=True):
        np.testing.assert_array_equal(labels, SCC(k).fit_predict(X))


def test_array_thresholds_survive_a_clone():
    X, _ = blobs()
    clusterer = SCC(thresholds=np.array([0.9, 0.5, 0.1]))
    np.testing.assert_array_equal(clone(clusterer).fit_predict(X), clusterer.fit_predict(X))


@each
def test_as_the_cluster_model_of_bertopic(clusterer):
    # BERTopic takes any model that is true, calls fit with the embeddings and y, and without y if that raises
    # TypeError; reads labels_ into the column of a frame, asks whether -1 is among them and whether there are
    # probabilities_, and orders topics by how often they occur.
    model = clusterer()
    assert model
    embeddings, _ = blobs()
    documents = pd.DataFrame({"Document": [f"text {i}" for i in range(len(embeddings))], "Topic": None})
    for y in (None, [0] * len(embeddings)):
        assert model.fit(embeddings.astype(np.float32), y=y) is model
        documents["Topic"] = model.labels_
        assert documents.Topic.dtype == np.int64
        assert -1 not in set(model.labels_)
        assert not hasattr(model, "probabilities_")
        counts = documents.groupby("Topic").Document.count()
        assert counts.sum() == len(documents)
        assert sorted(counts.index) == list(range(len(counts)))


@each
def test_threads_do_not_change_a_result(clusterer):
    X, _ = blobs(200)
    one, many = clusterer(n_jobs=1).fit(X), clusterer(n_jobs=3).fit(X)
    assert_same_hierarchy(one.tree_, many.tree_)
    np.testing.assert_array_equal(one.labels_, many.labels_)


@each
def test_a_verbose_fit_reports_both_phases(clusterer, monkeypatch):
    reports = []

    @contextmanager
    def recording(enabled):
        yield (lambda phase, done, total: reports.append(phase)) if enabled else None

    monkeypatch.setattr("agglo.estimators.scc.progress_bar", recording)
    X, _ = blobs()
    clusterer().fit(X)
    assert reports == []
    clusterer(verbose=True).fit(X)
    assert set(reports) == {"neighbours", "rounds"}
    assert reports == sorted(reports)  # one after the other


BAD = [
    ({"metric": "manhattan"}, ValueError, "metric='manhattan' is unknown: pass one of 'cosine'.*'precomputed'"),
    ({"method": "magic"}, ValueError, "method='magic' is unknown"),
    ({"linkage": "median"}, ValueError, "linkage='median' is unknown: pass one of average, single, complete"),
    ({"linkage": len}, TypeError, "linkage is a builtin_function_or_method without kind"),
    ({"linkage": "ward", "metric": "dot"}, ValueError, "linkage='ward' does not support metric='dot'"),
    ({"n_neighbors": 0}, ValueError, "n_neighbors=0 must be at least 1"),
    ({"n_neighbors": 2.5}, TypeError, "n_neighbors=2.5 is not a number"),
    ({"n_jobs": 0}, ValueError, "n_jobs=0 is not a number of threads"),
    ({"n_clusters": 0}, ValueError, "n_clusters=0 is impossible: the tree has 90 leaves.*from 1 to 90"),
    ({"n_clusters": 91}, ValueError, "n_clusters=91 is impossible"),
    ({"n_clusters": 2.5}, TypeError, "n_clusters=2.5 is not a number of clusters"),
    ({"n_clusters": 3, "round": 2}, ValueError, "one rule, got n_clusters and round"),
    ({"round": "best"}, ValueError, "round='best' is unknown: pass an integer, or one of persistent"),
    ({"round": 1.5}, TypeError, "round=1.5 is not a round"),
    ({"height": "low"}, TypeError, "height='low' is not a number"),
    ({"height": float("nan")}, ValueError, "height must not be NaN"),
    ({"height": -1.0}, ValueError, "height=-1 is not allowed: pass 0 or more"),
    ({"kind": "close"}, ValueError, "kind='close' is unknown: pass one of None, 'similarity', 'distance'"),
    (
        {"kind": "distance"},
        ValueError,
        "kind='distance' is wrong, because metric='cosine' gives .* 'similarity'",
    ),
]


@each
@pytest.mark.parametrize(("parameters", "error", "match"), BAD)
def test_wrong_parameters_are_errors_at_fit(clusterer, parameters, error, match):
    X, _ = blobs()
    estimator = clusterer(**parameters)
    with pytest.raises(error, match=match):
        estimator.fit(X)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"thresholds": "logarithmic"}, "thresholds='logarithmic' is unknown"),
        ({"thresholds": [0.1, 0.9]}, "thresholds must be strictly decreasing"),
        ({"n_thresholds": 0}, "n_thresholds=0 must be a positive integer"),
        ({"advance": "never"}, "advance='never' is unknown: pass one of 'every-round', 'until-stable'"),
        ({"linkage": "median"}, "linkage='median' is unknown"),
        ({"linkage": "exact-average", "metric": "euclidean"}, "build the graph with one of cosine, dot, sqeucl"),
        ({"n_clusters": 1000}, "n_clusters=1000 is impossible"),
    ],
)
def test_wrong_parameters_are_found_before_the_search(parameters, match, monkeypatch):
    monkeypatch.setattr("agglo.estimators.scc.neighbor_graph", lambda *_, **__: pytest.fail("searched"))
    with pytest.raises(ValueError, match=match):
        SCC(**parameters).fit(blobs()[0])


@each
def test_a_round_that_does_not_exist_is_an_error_and_leaves_the_model_as_it_was(clusterer):
    estimator = clusterer(round=5000)
    with pytest.raises(IndexError, match="round=5000 is out of range: a tree of 90 leaves has at most 89 rounds"):
        estimator.fit(blobs()[0])
    assert not hasattr(estimator, "tree_")


@each
def test_graphs_of_the_wrong_kind_are_errors(clusterer):
    graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.9, 0.5], kind="similarity")
    with pytest.raises(
        ValueError, match="kind='distance' is wrong, because the graph is one of kind 'similarity'"
    ):
        clusterer(metric="precomputed", kind="distance").fit(graph)
    with pytest.raises(TypeError, match="X is a NeighborGraph, but metric='euclidean' asks for points: pass"):
        clusterer(metric="euclidean").fit(graph)


@each
def test_precomputed_matrices_must_be_square_and_say_their_kind(clusterer):
    X, _ = blobs()
    with pytest.raises(ValueError, match=r"X has shape \(90, 5\), but .* asks for a square matrix"):
        clusterer(metric="precomputed", kind="distance").fit(X)
    for matrix in (np.eye(3), sp.eye_array(3, format="csr")):
        with pytest.raises(ValueError, match=r"does not say what the numbers .* kind='distance' .*'similarity'"):
            clusterer(metric="precomputed").fit(matrix)
    for matrix in (np.array([[0, np.nan], [np.nan, 0]]), sp.csr_array([[0, np.nan], [np.nan, 0]])):
        with pytest.raises(ValueError, match=r"X contains NaN: X\[0, 1\] is nan"):
            clusterer(metric="precomputed", kind="distance").fit(matrix)


@each
def test_points_that_are_no_points_are_errors(clusterer):
    for X, match in (
        (
            [[1.0, np.nan], [0.0, 1.0]],
            r"contains NaN: X\[0, 1\] is nan, .* drop such rows or fill in values first",
        ),
        ([[1.0, 0.0], [np.inf, 1.0]], r"contains infinity: X\[1, 0\] is inf"),
        ([1.0, 2.0], "Expected 2D array"),
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
    ):
        with pytest.raises(ValueError, match=match):
            clusterer().fit(X)
    fitted = clusterer().fit([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match=r"X contains NaN: X\[0, 1\] is nan"):
        fitted.predict([[1.0, np.nan]])
    with pytest.raises(TypeError, match="column 1 of X has texts, such as 'red': leave out this column"):
        clusterer().fit([[1.0, "red"], [2.0, "blue"]])
    with pytest.raises(TypeError, match="Sparse data was passed"):
        clusterer(metric="euclidean").fit(sp.eye_array(5, format="csr"))


def test_the_search_can_be_chosen():
    X = np.random.default_rng(3).standard_normal((600, 8))
    fitted = SCC(method="cells", recall=0.8, random_state=3).fit(X)
    assert fitted.graph_.method == "cells"
    assert fitted.graph_.parameters["recall"] == 0.8
    assert fitted.graph_.parameters["random_state"] == 3
    assert fitted.graph_.recall_estimate.value >= 0.8
    assert SCC().fit(X).graph_.method == "exact"
    assert SCC().fit(X[:, :3]).graph_.method == "kdtree"


@pytest.mark.parametrize("linkage", ["average", "ward"])
@pytest.mark.parametrize("sparse", [False, True])
@each
def test_points_of_weight_zero_have_labels_and_no_part(clusterer, linkage, sparse, tmp_path):
    X, _ = blobs()
    form = sp.csr_array if sparse else np.asarray
    metric, linkage = ("cosine", "single") if sparse else ("sqeuclidean", linkage)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    counted = weights > 0
    settings = {"metric": metric, "linkage": linkage, "n_neighbors": 4, "connect": None}
    model = clusterer(**settings).fit(form(X), sample_weight=weights)
    without = clusterer(**settings).fit(form(X[counted]), sample_weight=weights[counted])
    assert_same_hierarchy(model.tree_, without.tree_)
    np.testing.assert_array_equal(model.labels_[counted], without.labels_)
    np.testing.assert_array_equal(model.labels_[~counted], without.predict(form(X[~counted])))
    np.testing.assert_array_equal(model.predict(form(X)), without.predict(form(X)))
    np.testing.assert_array_equal(model.graph_index_[~counted], -1)
    np.testing.assert_array_equal(model.graph_index_[counted], without.graph_index_)
    model.save(tmp_path / "model")
    again = agglo.load(tmp_path / "model")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    again.partial_fit(form(X[:9] + 0.01), sample_weight=[0] * 4 + [1] * 5).partial_fit(form(X[:2]), None, [0, 0])
    model.partial_fit(form(X[:9] + 0.01), sample_weight=[0] * 4 + [1] * 5).partial_fit(form(X[:2]), None, [0, 0])
    without.partial_fit(form(X[4:9] + 0.01))
    assert len(model.labels_) == len(X) + 11
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(model.labels_[:-11][counted], without.labels_[:-5])
    np.testing.assert_array_equal(model.labels_[-7:-2], without.labels_[-5:])
    np.testing.assert_array_equal(model.labels_[:-11][~counted], without.predict(form(X[~counted])))
    np.testing.assert_array_equal(model.labels_[-2:], without.predict(form(X[:2])))


@pytest.mark.parametrize(
    ("settings", "inputs", "message"),
    [
        ({}, {"sample_weight": [0, 0, 0, 0]}, "sample_weight is zero for all points"),
        ({}, {"sample_weight": [1, -1, 0, 1]}, r"sample_weight\[1\] is -1"),
        ({}, {"sample_weight": [1, 1, np.nan, 1]}, r"sample_weight\[2\] is nan"),
        ({}, {"sample_weight": [1, 1, 0, 1], "must_link": [(1, 2)]}, "names point 2, but its sample_weight is 0"),
        ({}, {"sample_weight": [0, 1, 1, 1], "cannot_link": [[0, 1, 2, 3, 1][:4]]}, "names point 0"),
        (
            {"metric": "precomputed", "kind": "distance"},
            {"sample_weight": [1, 1, 1, 0]},
            r"sample_weight\[3\] is 0, but metric='precomputed' .*: leave it out of the graph or matrix",
        ),
    ],
)
def test_wrong_weights_are_errors(settings, inputs, message):
    with pytest.raises(ValueError, match=message):
        SCC(**settings).fit(np.eye(4), **inputs)


def test_a_graph_has_no_points_of_weight_zero():
    graph = neighbor_graph(np.eye(4), 2)
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is 0, but weights are larger than zero.*leave out"):
        agglo.scc(graph, sample_weight=[1, 0, 1, 1])


def test_duplicates_are_no_clusters_of_the_persistent_round():
    X = np.repeat(np.array([[0.0], [1.0], [10.0], [12.0], [30.0], [31.0], [42.0], [44.0]]), 3, axis=0)
    model = SCC(metric="euclidean", round="persistent").fit(X)
    weighted = SCC(metric="euclidean", round="persistent").fit(X[::3], sample_weight=[3] * 8)
    np.testing.assert_array_equal(model.labels_[::3], weighted.labels_)
    assert model.round_ == persistent_round(model.tree_) == weighted.round_ + 1


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3), np.int64(7), np.random])
def test_random_states_are_those_of_scikit_learn(random_state, tmp_path):
    X, _ = blobs()
    model = SCC(random_state=random_state, n_jobs=np.int64(2)).fit(X)
    neighbor_graph(X, random_state=random_state, n_jobs=np.int32(1))
    if random_state is not np.random:
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(agglo.load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("random_state", [-1, 1.5, "a", True, np.random.default_rng(0)])
def test_wrong_random_states_are_errors(random_state):
    X, _ = blobs()
    with pytest.raises((TypeError, ValueError), match=r"random_state=.*: pass"):
        SCC(random_state=random_state).fit(X)
