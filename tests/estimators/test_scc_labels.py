"""Numbers of clusters: by weight, then by the smallest row, whatever the order of the points."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import agglo
from agglo import HAC, SCC, Affinity
from agglo.estimators.prediction import _order_of_appearance
from agglo.estimators.scc import number_clusters


def number_by_definition(labels, weights, X):
    """Sort the clusters by total weight, largest first, then by smallest row, then by label."""
    clusters = range(labels.max() + 1)
    total = [-weights[labels == c].sum() for c in clusters]
    smallest = [min(X[labels == c].tolist()) for c in clusters]
    order = sorted(clusters, key=lambda c: (total[c], smallest[c], c))
    return np.argsort(order)[labels]


@st.composite
def partitions(draw):
    """Points of few different rows, some of them equal, in clusters of which many are of equal weight."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    X = draw(npst.arrays(np.float64, (n, d), elements=st.sampled_from([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0])))
    labels = np.unique(draw(npst.arrays(np.int64, n, elements=st.integers(0, n))), return_inverse=True)[1]
    weights = draw(st.none() | npst.arrays(np.float64, n, elements=st.sampled_from([1.0, 2.0, 3.0])))
    return X, labels, weights


@given(partitions(), st.sampled_from([np.float64, np.float32, np.float16, np.int8]))
def test_dense_and_sparse_rows_give_the_numbers_of_the_definition(partition, dtype):
    X, labels, weights = partition
    X = X.astype(dtype)
    expected = number_by_definition(labels, np.ones(len(X)) if weights is None else weights, X)
    distinct, rows = np.unique(X, axis=0, return_inverse=True)
    rows = len(distinct) - 1 - rows.ravel()
    for form in (np.asarray, sp.csr_array):
        form = form if X.dtype != np.float16 else np.asarray  # SciPy has no such matrices
        np.testing.assert_array_equal(number_clusters(labels, weights, form(X)), expected)
        np.testing.assert_array_equal(
            number_clusters(labels, weights, form(distinct[::-1].copy()), rows), expected
        )


@given(partitions())
def test_booleans_and_disordered_sparse_rows_are_ordered_like_dense_ones(partition):
    X, labels, weights = partition
    expected = number_clusters(labels, weights, X != 0)
    np.testing.assert_array_equal(number_clusters(labels, weights, sp.csr_array(X != 0)), expected)
    row, column = np.indices(X.shape).reshape(2, -1)[:, ::-1]  # each entry twice, columns descending, zeros stored
    entries = X[row, column] / 2
    n_columns = X.shape[1]
    twice = (np.tile(entries, (2, 1)).T.ravel(), np.repeat(column, 2))
    order = np.argsort(np.repeat(row, 2), kind="stable")
    indptr = np.arange(len(X) + 1) * 2 * n_columns
    disordered = sp.csr_array((twice[0][order], twice[1][order], indptr), shape=X.shape)
    np.testing.assert_array_equal(disordered.toarray(), X)
    np.testing.assert_array_equal(
        number_clusters(labels, weights, disordered), number_clusters(labels, weights, X)
    )


@given(partitions(), st.randoms(use_true_random=False))
def test_numbers_do_not_depend_on_the_order_of_points(partition, random):
    X, labels, _ = partition
    distinct = np.column_stack([X, np.arange(len(X))])  # so that no tie is left
    weights = np.array([random.choice([0.1, 0.2, 0.3, 0.7]) for _ in labels])
    order = np.array(random.sample(range(len(X)), len(X)))
    renamed = np.unique(labels, return_index=True)[1].argsort()[labels]
    expected = number_clusters(labels, weights, distinct)
    np.testing.assert_array_equal(
        number_clusters(renamed[order], weights[order], distinct[order]), expected[order]
    )


def test_distinct_weights_compare_no_rows():
    class Unread:
        shape = (6, 2)

        def __getitem__(self, key):
            pytest.fail("read a row")

    assert number_clusters(np.array([0, 0, 1, 2, 2, 2]), None, Unread()).tolist() == [1, 1, 2, 0, 0, 0]


def test_clusters_that_share_one_row_keep_their_order_and_are_not_compared():
    class OneColumn:
        shape = (2, 1000)

        def __getitem__(self, key):
            assert key[1] == slice(0, 1)
            return np.array([[5.0], [3.0]])[key[0]]

    labels, rows = np.arange(5), np.array([0, 1, 0, 1, 1])
    assert number_clusters(labels, None, OneColumn(), rows).tolist() == [3, 0, 4, 1, 2]


def test_without_rows_ties_keep_their_order():
    assert number_clusters(np.array([0, 1, 2, 2, 1])).tolist() == [2, 0, 1, 1, 0]
    assert _order_of_appearance(np.array([2, 0, 0, 1])).tolist() == [2, 0, 1]


@pytest.mark.parametrize("linkage", ["average", "single", "complete", "exact-average", "ward"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clusterer", [SCC, Affinity, HAC])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_labels_of_shuffled_points_are_the_shuffled_labels(clusterer, linkage, weighted, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4)) + 3 * np.eye(4)[rng.integers(0, 4, 30)]
    weights = rng.integers(0, 4, 30).astype(float) if weighted else None
    order = rng.permutation(30)
    shuffled_weights = None if weights is None else weights[order]
    for n_clusters in (None, 8):
        settings_ = {"n_clusters": n_clusters, "linkage": linkage, "n_neighbors": "all"}  # missing pairs would tie
        model = clusterer(**settings_).fit(X, sample_weight=weights)
        shuffled = clusterer(**settings_).fit(X[order], sample_weight=shuffled_weights)
        np.testing.assert_array_equal(shuffled.labels_, model.labels_[order])
        np.testing.assert_array_equal(shuffled.predict(X), model.predict(X))
        sizes = np.bincount(
            model.labels_[model.labels_ >= 0], None if weights is None else weights[model.labels_ >= 0]
        )
        assert (np.diff(sizes) <= 0).all()


@pytest.mark.parametrize("clusterer", [SCC, Affinity, HAC])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1))
def test_dense_and_sparse_points_have_the_same_labels(clusterer, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.6)
    X[:, 0] = 0.5 + rng.random(30)
    # Dense neighbours of negative similarity are none of sparse rows: all pairs have the same graph.
    given = {"n_clusters": 9, "n_neighbors": "all", "connect": None}
    dense, sparse = clusterer(**given).fit(X), clusterer(**given).fit(sp.csr_array(X))
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(sp.csr_array(X)))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_predict_loaded_models_and_more_points_have_the_same_numbers(form, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [4, 9, 6])
    X = 4 * np.eye(5)[y] + rng.normal(scale=0.2, size=(19, 5))
    weights = np.where(np.arange(19) % 4 == 2, 0, 1)
    model = SCC(3).fit(form(X), sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, np.array([2, 0, 1])[y])
    np.testing.assert_array_equal(model.predict(form(X)), model.labels_)
    counted = weights > 0
    first = model.tree_.cut(n_clusters=3)
    np.testing.assert_array_equal(first, y[counted])
    np.testing.assert_array_equal(model.predict(form(X), n_clusters=3)[counted], first)
    model.save(tmp_path / "model")
    again = agglo.load(tmp_path / "model")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.predict(form(X)), model.labels_)
    more = 4 * np.eye(5)[[0] * 9] + rng.normal(scale=0.2, size=(9, 5))
    both = again.partial_fit(form(more))
    np.testing.assert_array_equal(both.labels_, np.append(np.array([0, 1, 2])[y], [0] * 9))
    np.testing.assert_array_equal(both.predict(form(X)), both.labels_[:19])
