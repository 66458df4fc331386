"""Neighbours of sets and of bits against SciPy's distances of every pair."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from neighbor_cases import check_threads
from scipy.spatial.distance import cdist

import agglo
from agglo.neighbors.dense import SearchParams
from agglo.neighbors.sparse import SparsePoints

METRICS = ["jaccard", "hamming"]

tables = hnp.arrays(
    bool, st.tuples(st.integers(2, 70), st.integers(1, 140)), elements=st.booleans(), fill=st.just(False)
)


def search(X, k, metric, workers=2):
    found = SparsePoints(X, metric).search("exact", SearchParams(k, metric, workers))
    return found.indices, found.values


def check_exact(X, k, metric):
    """The first k by (distance, index), those with nothing in common left out if sets are compared."""
    indices, values = search(X, k, metric)
    table = cdist(X, X, metric)
    np.fill_diagonal(table, np.inf)
    expected = np.argsort(table, axis=1, kind="stable")[:, :k]
    chosen = np.take_along_axis(table, expected, 1)
    kept = (chosen < 1) | (metric == "hamming")
    np.testing.assert_array_equal(indices, np.where(kept, expected, -1))
    np.testing.assert_array_equal(values, np.where(kept, chosen, 0).astype(np.float32))


def some_sets(n, seed, size=9):
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 300), bool)
    for row in X:
        row[np.minimum(rng.zipf(1.4, rng.integers(1, 2 * size)) - 1, 299)] = True
    return X


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=80, deadline=None)
@given(X=tables, data=st.data())
def test_lists_of_any_bits(metric, X, data):
    check_exact(X, data.draw(st.integers(1, len(X) - 1), label="k"), metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (200, 20), (900, 7)])
def test_lists_of_sets_like_those_of_texts(metric, n, k):
    check_exact(some_sets(n, seed=n), k, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_half_of_the_points_are_duplicates(metric):
    X = some_sets(500, seed=1)
    X[::2] = X[4]
    check_exact(X, 10, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_lists_are_the_same_for_any_number_of_threads(metric):
    X = some_sets(2500, seed=2)
    check_threads(lambda n_threads: search(X, 12, metric, n_threads))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "make",
    [sp.csr_array, sp.coo_matrix, lambda X: X.astype(np.int64), lambda X: X.astype(np.float64), np.ndarray.tolist],
)
def test_sparse_and_dense_of_any_type_give_the_same_graph(metric, make):
    X = some_sets(150, seed=3)
    graph, expected = (agglo.neighbor_graph(points, 6, metric, missing=None) for points in (make(X), X))
    assert (graph.kind, graph.missing, graph.method, graph.metric) == ("distance", 1.0, "exact", metric)
    np.testing.assert_array_equal(graph.indices, expected.indices)
    np.testing.assert_array_equal(graph.weights, expected.weights)


@pytest.mark.parametrize("metric", METRICS)
def test_all_pairs(metric):
    X = some_sets(60, seed=4)
    X[7] = X[9] = False
    graph = agglo.neighbor_graph(X, "all", metric)
    np.testing.assert_array_equal(graph.to_scipy().toarray(), cdist(X, X, metric).astype(np.float32))
    assert graph.n_edges == 60 * 59 / 2


def test_nonzeros_of_a_sparse_matrix_are_members():
    X = sp.csr_array([[0.5, -2.0, 0.0], [3.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    graph = agglo.neighbor_graph(X, 1, "jaccard")
    assert graph.to_scipy().toarray().tolist() == [
        [0, 0.5, np.float32(2 / 3)],
        [0.5, 0, 0],
        [np.float32(2 / 3), 0, 0],
    ]


def test_empty_sets_are_duplicates():
    indices, values = search(np.array([[0, 0], [1, 0], [0, 0], [1, 1], [0, 0]], bool), 2, "jaccard")
    assert indices.tolist() == [[2, 4], [3, -1], [0, 4], [1, -1], [0, 2]]
    assert values[0].tolist() == [0, 0]


@pytest.mark.parametrize("bits", [1, 63, 64, 65, 128, 200, 256, 1000])
def test_rows_of_every_width(bits):
    check_exact(np.random.default_rng(bits).random((130, bits)) < 0.4, 5, "hamming")


@pytest.mark.parametrize(
    ("X", "options", "error", "text"),
    [
        (np.arange(6).reshape(3, 2), {}, ValueError, r"X\[1, 0\] is 2, but these metrics compare zeros and ones"),
        (np.full((3, 2), 0.5), {}, ValueError, r"X\[0, 0\] is 0\.5, .*pass X != 0"),
        ([[0, np.nan], [1, 1]], {}, ValueError, r"X\[0, 1\] is nan, but points must be finite"),
        (np.eye(4), {"method": "cells"}, ValueError, r"method='cells' is for dense points of other metrics"),
        (np.eye(4), {"n_neighbors": 9}, ValueError, r"n_neighbors=9 is too many for 4 points"),
    ],
)
@pytest.mark.parametrize("metric", METRICS)
def test_unsupported_input_is_an_error(metric, X, options, error, text):
    with pytest.raises(error, match=text):
        agglo.neighbor_graph(X, **{"n_neighbors": 1, "metric": metric, **options})


def test_only_zeros_and_ones_of_a_sparse_matrix_are_bits():
    with pytest.raises(ValueError, match=r"X\[1, 1\] is 3, but these metrics compare zeros and ones"):
        agglo.neighbor_graph(sp.csr_array([[1, 0], [0, 3]]), 1, "hamming")
