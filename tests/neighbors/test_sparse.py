"""Neighbours of sparse rows against the dense search, and against every pair compared in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbor_cases import check_threads, points_with_ties

import agglo
from agglo.neighbors.dense import SearchParams, search_exact
from agglo.neighbors.sparse import SparsePoints
from agglo.points.points import check_points

METRICS = ["cosine", "dot"]
each_metric = pytest.mark.parametrize("metric", METRICS)
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


def search(X, k, metric, workers=2):
    points = SparsePoints(X, metric, check_scale=False)
    return points.search("exact", SearchParams(k, metric, workers))[:2]


def check_as_dense(X, k, metric):
    """The lists are those of the dense search to the bit, up to the first similarity that is not above 0."""
    indices, values = search(sp.csr_array(X), k, metric)
    dense = search_exact(check_points(np.asarray(X)), SearchParams(k, metric, 2))
    kept = dense.values > 0
    np.testing.assert_array_equal(indices, np.where(kept, dense.indices, -1))
    np.testing.assert_array_equal(values, np.where(kept, dense.values, 0))


def texts(n, seed, vocabulary=600, length=12):
    """Rows like those of short texts: few words each, some words in many of them, the rarer the heavier."""
    rng = np.random.default_rng(seed)
    columns = np.minimum(rng.zipf(1.3, (n, length)) - 1, vocabulary - 1)
    X = sp.csr_array((np.ones(n * length), (np.repeat(np.arange(n), length), columns.ravel())), (n, vocabulary))
    idf = np.log(n / (1 + np.bincount(X.indices, minlength=vocabulary))) + 1
    return sp.csr_array(X.multiply(idf).astype(np.float32))


@each_metric
@settings(max_examples=80, deadline=None)
@given(X=points_with_ties(60, 25, 3), data=st.data())
def test_lists_are_those_of_dense_points(metric, X, data):
    check_as_dense(X, data.draw(st.integers(1, len(X) - 1), label="k"), metric)


@each_metric
@pytest.mark.parametrize(("n", "k"), [(300, 25), (5000, 10)])
@pytest.mark.parametrize("sign", [1, -1])
def test_sparse_and_dense_texts_have_the_same_lists(metric, n, k, sign):
    X = texts(n, seed=n)
    X.data[::7] *= sign
    check_as_dense(X.toarray(), k, metric)


@each_metric
def test_values_of_every_magnitude(metric):
    rng = np.random.default_rng(5)
    X = texts(400, seed=3).astype(np.float64)
    check_as_dense(sp.csr_array(X.multiply(10.0 ** rng.integers(-12, 12, (400, 1)))).toarray(), 8, metric)


@each_metric
def test_rows_without_common_columns_are_no_neighbours(metric):
    X = sp.block_diag([sp.coo_array(np.ones((2, 2))), np.ones((3, 1)), [[1.0]]])
    indices, values = search(X, 3, metric)
    assert indices.tolist() == [[1, -1, -1], [0, -1, -1], [3, 4, -1], [2, 4, -1], [2, 3, -1], [-1, -1, -1]]
    assert (values[indices < 0] == 0).all()
    graph = agglo.neighbor_graph(X, 3, metric, missing=None)
    assert (graph.n_edges, graph.missing, graph.method) == (4, 0.0, "exact")


@each_metric
def test_lists_are_the_same_for_any_number_of_threads(metric):
    X = texts(3000, seed=1)
    check_threads(lambda n_threads: search(X, 15, metric, n_threads))


def test_half_of_the_rows_are_duplicates():
    X = sp.vstack([texts(2000, seed=2)[[5] * 2000], texts(2000, seed=2)]).tocsr()
    check_as_dense(X.toarray(), 6, "cosine")


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_gives_the_same_graph(format_):
    X = texts(120, seed=4)
    expected = agglo.neighbor_graph(X, 5)
    graph = agglo.neighbor_graph(X.asformat(format_), 5)
    assert (graph.to_scipy() != expected.to_scipy()).nnz == 0
    assert graph.parameters == {"n_neighbors": 5}


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint16, np.float32, np.float64])
def test_every_type_of_number(dtype):
    X = (texts(150, seed=6) > 0).astype(dtype)
    graph = agglo.neighbor_graph(X, 5, "dot")
    expected = agglo.neighbor_graph(X.astype(np.float32), 5, "dot")
    np.testing.assert_array_equal(graph.weights, expected.weights)


def test_repeated_unsorted_and_zero_entries():
    rows, columns = [0, 0, 0, 1, 1, 2, 2], [3, 1, 3, 1, 0, 3, 2]
    values = [1.0, 2.0, 0.5, 1.0, 0.0, 2.0, 0.0]
    X = sp.csr_array((values, columns, [0, 3, 5, 7]), (3, 4))
    before = X.data.copy(), X.indices.copy()
    dense = sp.coo_array((values, (rows, columns)), (3, 4)).toarray()
    indices, found = search(X, 2, "dot")
    assert indices.tolist() == [[2, 1], [0, -1], [0, -1]]
    assert found.tolist() == [[3, 2], [2, 0], [3, 0]]
    np.testing.assert_array_equal(X.data, before[0])  # what was given stays as it was
    np.testing.assert_array_equal(X.indices, before[1])
    check_as_dense(dense, 2, "dot")


@pytest.mark.parametrize("columns", [2**31 - 1, 2**31, 2**40])
@each_metric
def test_very_many_columns_with_long_indices(columns, metric):
    X = texts(200, seed=7)
    spread = X.indices + 8 * (columns // 10_000) * (X.indices.astype(np.int64) // 8)  # in the same sums as before
    wide = sp.csr_array((X.data, spread, X.indptr), (200, columns))
    for one, other in zip(search(wide, 9, metric), search(X, 9, metric), strict=True):
        np.testing.assert_array_equal(one, other)


@each_metric
def test_all_pairs(metric):
    X = texts(90, seed=8)
    X.data[::5] *= -1
    graph = agglo.neighbor_graph(X, "all", metric)
    dense = agglo.neighbor_graph(X.toarray(), "all", metric)
    np.testing.assert_array_equal(graph.weights, dense.weights)
    np.testing.assert_array_equal(graph.indices, dense.indices)


def test_rows_of_zeros():
    X = sp.csr_array(np.array([[0, 0], [1, 1], [0, 0], [1, 0]], np.float32))
    with pytest.warns(UserWarning, match=r"2 of 4 points are all zero \(the first is row 0\)"):
        graph = agglo.neighbor_graph(X, 2, "cosine")
    assert graph.n_edges == 1
    assert agglo.neighbor_graph(sp.csr_array((5, 3)), 2, "dot").n_edges == 0


def test_progress_and_a_stop():
    X = texts(4000, seed=9)
    seen = []
    agglo.neighbor_graph(X, 5, n_jobs=2, progress=lambda *state: seen.append(state))
    assert seen == sorted(seen)
    assert {name for name, _, _ in seen} == {"neighbours"}

    class EnoughError(Exception):
        pass

    def stop(*_state):
        raise EnoughError

    with pytest.raises(EnoughError):
        agglo.neighbor_graph(X, 5, n_jobs=2, progress=stop)


def broken():
    X = sp.csr_array(np.eye(3))
    X.indices[1] = 7
    return X


@pytest.mark.parametrize(
    ("X", "options", "error", "text"),
    [
        (
            sp.csr_array([[1.0, np.nan], [1.0, 2.0]]),
            {},
            ValueError,
            r"X\[0, 1\] is nan, but points must be finite",
        ),
        (sp.csr_array([[1.0, 2.0], [np.inf, 2.0]]), {}, ValueError, r"X\[1, 0\] is inf"),
        (sp.csr_array([[1.0, 2.0], [1e120, 2.0]]), {}, ValueError, r"X\[1, 0\] is 1e\+120, .*scale X down"),
        (sp.csr_array(np.eye(3, dtype=complex)), {}, TypeError, r"dtype complex128.*real numbers"),
        (sp.csr_array((0, 3)), {}, ValueError, r"empty, of shape \(0, 3\)"),
        (broken(), {}, ValueError, r"X is not a valid CSR matrix: indices go from 0 to 7"),
        (sp.eye(4), {"metric": "euclidean"}, TypeError, r"metric='euclidean' needs dense points.*TruncatedSVD"),
        (sp.eye(4), {"method": "cells"}, ValueError, r"method='cells' is for dense points.*pass method='exact'"),
        (sp.eye(4), {"n_neighbors": 4}, ValueError, r"n_neighbors=4 is too many for 4 points"),
        (sp.eye(4) * 1e30, {"metric": "dot", "n_neighbors": "all"}, None, ""),
        (sp.csr_array(np.full((3, 1), 1e30)), {"metric": "dot"}, ValueError, r"exceed float32: scale X down"),
    ],
)
def test_unsupported_input_is_an_error(X, options, error, text):
    options = {"n_neighbors": 1, **options}
    if error is None:
        assert agglo.neighbor_graph(X, **options).n_points == 4
        return
    with pytest.raises(error, match=text):
        agglo.neighbor_graph(X, **options)
