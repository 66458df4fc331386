"""The search by a k-d tree against the exact one: the same lists and values, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import agglo
from agglo.neighbors.dense import SearchParams, search_exact, search_kdtree
from agglo.points.points import check_points

METRICS = ["cosine", "dot", "sqeuclidean", "euclidean"]


def assert_exact(X, k, metric, workers=2):
    points = check_points(X, compact=True)
    params = SearchParams(k, metric, workers)
    found, right = search_kdtree(points, params), search_exact(points, params)
    np.testing.assert_array_equal(found.indices, right.indices)
    np.testing.assert_array_equal(found.values, right.values)
    assert found.recall_estimate is None


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(METRICS))
def test_ties_go_to_the_smaller_index(data, metric):
    shape = data.draw(st.tuples(st.integers(2, 70), st.integers(1, 4)), label="shape")
    X = data.draw(hnp.arrays(np.int8, shape, elements=st.integers(-2, 2)), label="X")
    assert_exact(X, data.draw(st.integers(1, len(X) - 1), label="k"), metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 3, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.uint8])
def test_points_of_every_type(metric, d, dtype):
    X = (np.random.default_rng(d).random((1500, d)) * 200).astype(dtype)
    X[:, 0] += 1
    assert_exact(X, 12, metric)


def half_identical(rng):
    X = rng.standard_normal((6000, 3))
    X[rng.permutation(6000)[:3000]] = X[0]
    return X


def on_a_grid(rng):
    return rng.permutation(np.stack(np.meshgrid(*[np.arange(14)] * 3), axis=-1).reshape(-1, 3))


def far_away(rng):
    return (1e6 + rng.standard_normal((3000, 2))).astype(np.float32)


def tiny_and_huge(rng):
    return rng.standard_normal((2000, 3)) * 10.0 ** rng.integers(-30, 30, (2000, 1))


def on_a_sphere(rng):
    X = rng.standard_normal((4000, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "dot"])
@pytest.mark.parametrize("make", [half_identical, on_a_grid, far_away, tiny_and_huge, on_a_sphere])
def test_points_of_awkward_shapes(make, metric):
    X = make(np.random.default_rng(4))
    assert_exact(X[X.any(axis=1)], 9, metric)


def test_all_points_identical():
    assert_exact(np.ones((300, 2)), 7, "euclidean")


def test_zero_rows_are_equally_far_from_all_points():
    X = np.random.default_rng(0).standard_normal((200, 2))
    X[50:80] = 0
    assert_exact(X, 20, "cosine")


def test_the_graph_does_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(5).standard_normal((5000, 3))
    graphs = [agglo.neighbor_graph(X, 8, "euclidean", "kdtree", n_jobs) for n_jobs in (1, 2, 8)]
    for graph in graphs[1:]:
        np.testing.assert_array_equal(graph.indices, graphs[0].indices)
        np.testing.assert_array_equal(graph.weights, graphs[0].weights)


def test_auto_chooses_the_kdtree_for_few_columns():
    X = np.random.default_rng(6).standard_normal((300, 6))
    for d, metric, method in [(5, "cosine", "kdtree"), (6, "cosine", "exact"), (3, "dot", "exact")]:
        graph = agglo.neighbor_graph(X[:, :d], 5, metric)
        assert (graph.method, graph.recall_estimate) == (method, None)


def test_progress_and_stopping():
    points, seen = np.random.default_rng(7).standard_normal((20000, 3)), []
    search_kdtree(points, SearchParams(5, "euclidean", 2, lambda done, total: seen.append((done, total))))
    assert seen
    assert seen == sorted(seen)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_kdtree(points, SearchParams(5, "euclidean", 2, stop))
