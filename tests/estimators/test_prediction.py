import pickle
import sys

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import get_config
from sklearn.metrics import adjusted_rand_score

import agglo
from agglo import HAC, SCC, Affinity, neighbor_graph
from agglo.estimators.scc import number_clusters
from agglo.rounds.reference_linkage import GraphLinkage
from agglo.testing import assert_same_hierarchy

CLUSTERERS = [SCC, Affinity, HAC]
METRICS = ["cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming"]

each = pytest.mark.parametrize("clusterer", CLUSTERERS)


def groups(n=160, seed=0, scale=0.3):
    """Eight groups of points in ten dimensions, apart in distance and in direction."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 8
    return (4 * np.eye(10)[y] + rng.normal(scale=scale, size=(n, 10))).astype(np.float32), y


def made_up(metric, n=160, seed=0):
    """Such points, or zeros and ones where the metric compares these."""
    X, y = groups(n, seed)
    if metric in ("jaccard", "hamming"):
        rng = np.random.default_rng(seed)
        X = (rng.random((8, 60)) < 0.5)[y] ^ (rng.random((n, 60)) < 0.1)
    return X.astype(np.float32), y


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("linkage", ["average", "single", "complete"])
@each
def test_fitted_points_are_where_they_were(clusterer, linkage, metric):
    X, _ = made_up(metric)
    X = np.unique(X, axis=0)
    model = clusterer(metric=metric, linkage=linkage, n_neighbors=5).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    new = model.attach(X[::-1])
    for round in range(0, len(model.tree_.rounds) + 1, 5):
        np.testing.assert_array_equal(new.labels(round=round), model.tree_.labels(round)[::-1])
    for cut in ({"height": 0.05}, {"max_size": 7}, {"dp_means": 1.0, "X": X}):
        labels = model.tree_.cut(**cut)
        np.testing.assert_array_equal(model.predict(X, labels=labels), labels)
    for rule in ({"n_clusters": 8}, {"round": -2}, {"round": "silhouette"}, {"height": 0.1}):
        cut = {**rule, "graph": model.graph_} if rule.get("round") == "silhouette" else rule
        np.testing.assert_array_equal(model.predict(X, **rule), model.tree_.cut(**cut))


@pytest.mark.parametrize("metric", METRICS)
@each
def test_new_points_go_to_the_groups_that_they_are_of(clusterer, metric):
    X, y = made_up(metric, 400)
    model = clusterer(8, metric=metric, n_neighbors=10).fit(X[:240])
    predicted = model.predict(X[240:])
    known = predicted >= 0
    assert known.mean() > 0.9
    assert adjusted_rand_score(y[240:][known], predicted[known]) > 0.95


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_sparse_points_are_predicted_as_dense_ones_are(form):
    X, _ = groups()
    X = np.maximum(X, 0)
    model = SCC(n_neighbors=5).fit(sp.csr_array(X[:120]))
    expected = SCC(n_neighbors=5).fit(X[:120]).predict(X[120:])
    np.testing.assert_array_equal(model.predict(form(X[120:])), expected)
    np.testing.assert_array_equal(model.predict(form(X[:120])), model.labels_)


@each
def test_the_prediction_is_of_each_point_alone(clusterer):
    X, _ = groups(200)
    model = clusterer(n_neighbors=6, method="cells", recall=0.5).fit(X[:150])
    assert model.query_method_ == "cells"
    whole = model.predict(X[150:])
    np.testing.assert_array_equal(np.concatenate([model.predict(X[[i]]) for i in range(150, 200)]), whole)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X[150:]), whole)
    np.testing.assert_array_equal(model.set_params(n_jobs=1).predict(X[150:]), whole)


def test_what_is_far_from_everything_is_new():
    X, _ = groups()
    model = SCC(metric="euclidean", n_neighbors=5).fit(X)
    assert model.predict(X[:3] + 1000).tolist() == [-1, -1, -1]
    assert model.predict(X[:3] + 1000, height=np.inf).tolist() == [-1, -1, -1]


def test_how_new_points_are_searched_is_said():
    X, _ = groups()
    for method, queried in (("exact", "exact"), ("kdtree", "kdtree"), ("cells", "cells")):
        assert SCC(method=method).fit(X).query_method_ == queried
    assert SCC(metric="jaccard", method="minhash").fit(X > 1).query_method_ == "exact"
    assert SCC(metric="precomputed").fit(neighbor_graph(X)).query_method_ is None


@each
@pytest.mark.parametrize("kind", ["distance", "similarity"])
def test_a_precomputed_model_takes_values(clusterer, kind):
    X, _ = groups(60)
    metric = {"distance": "euclidean", "similarity": "cosine"}[kind]
    model = clusterer(metric=metric, n_neighbors="all").fit(X[:50])
    full = neighbor_graph(X, "all", metric).to_scipy().toarray()
    other = clusterer(metric="precomputed", kind=kind).fit(full[:50, :50])
    # A graph has no rows to order equally large clusters by.
    clusters = model.tree_.cut(resolution=model.resolution_, graph=model.graph_)
    expected = model.predict(X[50:], labels=number_clusters(clusters))
    np.testing.assert_array_equal(other.predict(full[50:, :50]), expected)
    np.testing.assert_array_equal(other.predict(sp.csr_array(full[50:, :50])), expected)
    with pytest.raises(ValueError, match=r"X has 60 features, but .* is expecting 50 features"):
        other.predict(full[50:])
    with pytest.raises(ValueError, match=r"metric='precomputed' has no points .* build the graph of all points"):
        other.partial_fit(full[50:, :50])


def test_a_linkage_that_cannot_be_replayed_says_so():
    X, _ = groups(40)
    model = SCC(n_neighbors=5, linkage=GraphLinkage(neighbor_graph(X, 5), "average")).fit(X)
    with pytest.raises(ValueError, match="built with linkage='GraphLinkage', whose rounds cannot be replayed"):
        model.predict(X)


def test_wrong_wishes_are_found_before_the_search():
    X, _ = groups(40)
    model = SCC().fit(X)
    for wish, message in (
        ({"n_clusters": 3, "round": 1}, "a cut follows one rule, got n_clusters and round"),
        ({"round": "best"}, "round='best' is unknown"),
        ({"n_clusters": 41}, "n_clusters=41"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(X, **wish)


@pytest.mark.parametrize("method", ["exact", "kdtree"])
@pytest.mark.parametrize("metric", ["cosine", "dot", "sqeuclidean", "euclidean"])
@each
def test_more_points_give_what_a_fit_of_all_gives(clusterer, metric, method):
    X, _ = groups(90)
    settings = {"metric": metric, "method": method, "n_neighbors": 6}
    model = clusterer(**settings)
    for first, last in ((0, 4), (4, 40), (40, 41), (41, 90)):
        model.partial_fit(X[first:last])
        whole = clusterer(**settings).fit(X[:last])
        assert_same_graph(model.graph_, whole.graph_)
        assert_same_hierarchy(model.tree_, whole.tree_)
        np.testing.assert_array_equal(model.labels_, whole.labels_)
        assert (model.round_, model.tree_.about) == (whole.round_, whole.tree_.about)
    np.testing.assert_array_equal(model.predict(X), whole.labels_)


def assert_same_graph(left, right):
    for name in ("indptr", "indices", "weights"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), strict=True)
    for name in ("kind", "missing", "metric", "method", "parameters", "recall_estimate"):
        assert getattr(left, name) == getattr(right, name)
    assert left.cells is right.cells is None  # which only an approximate search has


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("metric", ["cosine", "dot", "jaccard", "hamming"])
def test_sparse_points_sets_and_bits_are_added_alike(metric, form):
    X, _ = made_up(metric, 90)
    X = form(np.maximum(X, 0))
    model = SCC(metric=metric, n_neighbors=6).fit(X[:50])
    for first, last in ((50, 51), (51, 90)):
        model.partial_fit(X[first:last])
        whole = SCC(metric=metric, n_neighbors=6).fit(X[:last])
        assert_same_graph(model.graph_, whole.graph_)
        assert_same_hierarchy(model.tree_, whole.tree_)


def test_copies_and_ties_are_added_alike():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (120, 3)).astype(float)
    model = HAC(metric="sqeuclidean", n_neighbors=4, linkage="single").fit(X[:70]).partial_fit(X[70:])
    whole = HAC(metric="sqeuclidean", n_neighbors=4, linkage="single").fit(X)
    assert_same_graph(model.graph_, whole.graph_)
    assert_same_hierarchy(model.tree_, whole.tree_)


def near_ties(metric, form, n=120, seed=5):
    """Points whose float64 values often differ by less than float32 can hold."""
    rng = np.random.default_rng(seed)
    if metric != "jaccard":
        return form(rng.integers(1, 4, (n, 3)) * (1 + 1e-9 * rng.random((n, 3))))
    # Three large sets, and sets at Jaccard distances 1/2 - 1/2 / (40001 + 2 * more) from the first of them.
    X = np.zeros((n, 40_500), np.uint8)
    X[:3, :40_001] = 1
    X[[1, 2], [0, 1]] = 0
    for row, more in zip(X[3:], rng.permutation(n - 3), strict=True):
        row[: 20_001 + more] = 1
        row[40_001 : 40_001 + 2 * more] = 1
    return form(X)


@pytest.mark.parametrize(
    ("metric", "method", "form"),
    [
        *((m, s, np.asarray) for m in ("cosine", "dot", "sqeuclidean", "euclidean") for s in ("exact", "kdtree")),
        *((m, "exact", sp.csr_array) for m in ("cosine", "dot", "jaccard")),
        ("jaccard", "exact", np.asarray),
    ],
)
def test_near_ties_are_added_alike(metric, method, form):
    X = near_ties(metric, form)
    settings = {"metric": metric, "method": method, "n_neighbors": 4}
    model = SCC(**settings).fit(X[:60])
    for first, last in ((60, 61), (61, 90), (90, X.shape[0])):
        model.partial_fit(X[first:last])
        assert_same_graph(model.graph_, SCC(**settings).fit(X[:last]).graph_)


@pytest.mark.parametrize("n_neighbors", ["all", 200])
def test_few_points_have_all_others_for_neighbours(n_neighbors):
    X, _ = groups(30)
    model = SCC(metric="euclidean", n_neighbors=n_neighbors).fit(X[:1]).partial_fit(X[1:2]).partial_fit(X[2:])
    whole = SCC(metric="euclidean", n_neighbors=n_neighbors).fit(X)
    assert_same_graph(model.graph_, whole.graph_)
    assert_same_hierarchy(model.tree_, whole.tree_)


def test_the_length_of_points_is_looked_at_again():
    X = np.eye(6, dtype=np.float32)
    settings = {"metric": "sqeuclidean", "n_neighbors": 2, "missing": None}
    model = SCC(**settings).fit(X[:3])
    assert model.graph_.missing == 4
    assert model.partial_fit(X[3:]).graph_.missing == 4
    assert model.partial_fit(3 * X[:1]).graph_.missing == SCC(**settings).fit([*X, 3 * X[0]]).graph_.missing


def test_by_cells_the_graph_is_nearly_that_of_a_fit():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 40, 4000)
    X = (rng.normal(size=(40, 16))[y] + 0.25 * rng.normal(size=(4000, 16))).astype(np.float32)
    model = SCC(40, method="cells", n_neighbors=10).fit(X[:3000])
    for first in range(3000, 4000, 500):
        model.partial_fit(X[first : first + 500])
    whole = SCC(40, method="exact", n_neighbors=10).fit(X)
    assert model.graph_.recall_estimate.value > 0.9
    assert model.graph_.recall_estimate.sample == 256
    found = model.graph_.to_scipy().astype(bool)
    true = whole.graph_.to_scipy().astype(bool)
    assert found.multiply(true).nnz / true.nnz > 0.9
    assert_same_hierarchy(model.tree_, agglo.scc(model.graph_, connect="auto", X=X))
    assert adjusted_rand_score(y, model.labels_) > adjusted_rand_score(y, whole.labels_) - 0.02
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_wrong_points_leave_the_model_as_it_was():
    X, _ = groups(40)
    model = SCC(n_neighbors=5).fit(X)
    for wrong, message in ((X[:, :4], "X has 4 features, but SCC is expecting 10"), (X * np.nan, "NaN")):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(wrong)
        with pytest.raises(ValueError, match=message):
            model.predict(wrong)
    assert_same_hierarchy(model.tree_, SCC(n_neighbors=5).fit(X).tree_)
    with pytest.raises(ValueError, match="Expected 2D array, got"):
        SCC(metric="precomputed").fit(model.graph_).predict(model.graph_)


@each
def test_tops_take_no_new_points_in_that_the_graph_did_not(clusterer):
    X, _ = groups(80)
    settings = {"metric": "sqeuclidean", "n_neighbors": 3}
    plain, topped = clusterer(**settings, connect=None).fit(X), clusterer(**settings, connect="ward").fit(X)
    np.testing.assert_array_equal(topped.predict(X), topped.labels_)
    last = len(plain.tree_.rounds)
    new = X[:20] + np.float32(0.2)
    np.testing.assert_array_equal(topped.predict(new, round=last - 1), plain.predict(new, round=last - 1))
    assert (topped.predict(new, round=-1) >= -1).all()


class Interrupter:
    """A profiler that raises ``error`` at the event of number ``at``.

    Events are those at which Python itself handles Ctrl-C: the start of a Python function, and the return of a
    function of C.
    """

    def __init__(self, at, error):
        self.at = at
        self.error = error
        self.count = 0

    def __call__(self, frame, event, argument):
        self.count += event in ("call", "c_return")
        if self.count == self.at and event in ("call", "c_return"):
            raise self.error

    def run(self, action):
        """Run ``action``; return whether it ended without an error."""
        sys.setprofile(self)
        try:
            action()
        except (KeyboardInterrupt, Exception):  # libraries may turn the error into another one
            return False
        finally:
            sys.setprofile(None)
        return True


def state(model):
    """Return all that must change at once, as one value that can be compared."""
    if not hasattr(model, "tree_"):
        assert not [name for name in vars(model) if name.endswith("_") or name.startswith("_")]
        return None
    columns = (model.labels_, model.tree_.parent, model.graph_.indices, model._index.X, model.graph_index_)
    return (model.n_features_in_, *(column.tobytes() for column in columns))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file of threadpoolctl
@pytest.mark.parametrize("linkage", ["average", "ward"])
@pytest.mark.parametrize("start", ["unfitted", "fitted", "partial_fit"])
def test_an_exception_leaves_the_old_model_or_the_new_one(start, linkage):
    X = np.vstack([groups(24)[0], groups(24)[0][:4]])

    def model():
        made = SCC(metric="sqeuclidean", linkage=linkage, n_neighbors=3, n_jobs=1)
        return made if start == "unfitted" else made.fit(X[:12, :7] if start == "fitted" else X[:12])

    def change(some):
        return some.partial_fit(X[8:]) if start == "partial_fit" else some.fit(X)

    old, new = state(model()), state(change(model()))
    counter = Interrupter(-1, None)
    counter.run(lambda: change(model()))
    outcomes = set()
    for at in np.linspace(1, counter.count, 30).astype(int):
        some = model()
        Interrupter(at, (KeyboardInterrupt, MemoryError)[at % 2]()).run(lambda some=some: change(some))
        found = state(some)
        assert found in (old, new)
        outcomes.add(found)
        if found is not None:
            assert (some.predict(X[:12, : some.n_features_in_])[:8] >= 0).all()
        if found == old:
            interrupted = some
    assert old in outcomes
    assert state(change(interrupted)) == new  # the second try takes each point once


def test_fit_does_not_change_the_settings_of_scikit_learn():
    expected, found = get_config(), []
    sys.setprofile(lambda *event: found.append(get_config()))
    try:
        SCC(n_neighbors=3).fit(groups(24)[0])
    finally:
        sys.setprofile(None)
    assert all(settings == expected for settings in found)  # so Ctrl-C cannot leave other settings behind


def test_what_is_saved_after_an_exception_can_be_loaded(tmp_path):
    X, _ = groups(40)
    model = SCC(n_neighbors=3).fit(X[:20])
    model.save(tmp_path / "model")
    counter = Interrupter(-1, MemoryError())
    counter.run(lambda: pickle.loads(pickle.dumps(model)).partial_fit(X[20:]))
    for share in (0.3, 0.6, 0.9):
        assert not Interrupter(int(share * counter.count), MemoryError()).run(lambda: model.partial_fit(X[20:]))
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(agglo.load(tmp_path / "model").labels_, model.labels_)


@pytest.mark.parametrize("linkage", ["average", "ward"])
@pytest.mark.parametrize("form", [np.array, np.asfortranarray, lambda X: X.astype(np.int8), sp.csr_array, list])
def test_a_model_does_not_share_the_points_that_were_given(form, linkage, tmp_path):
    X, _ = groups(40)
    given = form(np.rint(X * 8))
    if sp.issparse(given) and linkage == "ward":
        linkage = "single"
    model = SCC(metric="cosine", linkage=linkage, n_neighbors=3, connect=None).fit(given)
    new = np.rint(X * 8) + 0.25
    before = model.predict(new)
    for column in (given.data, given.indices) if sp.issparse(given) else [given]:
        column[:] = column[::-1] if isinstance(column, list) else column[::-1].copy()
    np.testing.assert_array_equal(model.predict(new), before)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(agglo.load(tmp_path / "model").predict(new), before)


def test_points_in_a_read_only_file_are_not_copied(tmp_path):
    X, _ = groups(40)
    np.save(tmp_path / "X.npy", X)
    for mode, shared in (("r", True), ("c", False), ("r+", False)):
        given = np.load(tmp_path / "X.npy", mmap_mode=mode)
        model = SCC(n_neighbors=3).fit(given)
        assert np.shares_memory(model._index.X, given) == shared


@pytest.mark.parametrize("linkage", ["average", "ward"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_prediction_does_not_change_the_model(dtype, linkage):
    X, _ = groups(40)
    model = SCC(metric="sqeuclidean", linkage=linkage, n_neighbors=3).fit((8 * X).astype(dtype))
    names, hash = dict(vars(model)), joblib.hash(model)
    model.predict(8 * X + 0.3)
    model.attach(8 * X + 0.3)
    assert joblib.hash(model) == hash
    assert vars(model) == names
