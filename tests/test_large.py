"""Points that are kept small, or in a file: the same graph as of a copy in memory."""

from __future__ import annotations

import numpy as np
import pytest

import agglo

COMPACT = [np.float16, np.int8, np.uint8, bool]


def compact(rng, n, d, dtype):
    """Points that each of the types holds, some of them twice."""
    values = rng.integers(0, 2, (n, d)) if dtype is bool else rng.integers(0, 100, (n, d))
    X = values.astype(dtype)
    if dtype is np.int8:
        X -= 50
    if dtype is np.float16:
        X = (X / 7 - 5).astype(np.float16)
    X[:, 0] = 1  # none without a direction
    X[rng.integers(n, size=n // 5)] = X[0]
    return X


def assert_same(one, two):
    np.testing.assert_array_equal(one.indptr, two.indptr)
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.missing == two.missing


@pytest.mark.parametrize("metric", ["cosine", "dot", "sqeuclidean", "euclidean"])
@pytest.mark.parametrize("dtype", COMPACT)
@pytest.mark.parametrize(("method", "d"), [("exact", 3), ("exact", 20), ("cells", 17)])
def test_the_graph_of_compact_numbers_is_that_of_float32(dtype, metric, method, d):
    X = compact(np.random.default_rng(1), 900, d, dtype)
    wide = agglo.neighbor_graph(X.astype(np.float32), 7, metric, method)
    assert_same(agglo.neighbor_graph(X, 7, metric, method), wide)
    if method == "exact":
        complete = agglo.neighbor_graph(X[:50].astype(np.float32), "all", metric)
        assert_same(agglo.neighbor_graph(X[:50], "all", metric), complete)


def test_half_precision_is_searched_over_its_whole_range():
    bits = np.random.default_rng(2).integers(0, 1 << 16, 6000).astype(np.uint16)
    X = bits.view(np.float16)
    X = X[np.isfinite(X)][:5000].reshape(500, 10)
    for metric in ("cosine", "sqeuclidean"):
        assert_same(agglo.neighbor_graph(X, 5, metric), agglo.neighbor_graph(X.astype(np.float32), 5, metric))


def test_unit_length_is_found_out_in_every_precision():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 40))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for dtype in (np.float16, np.float32, np.float64):
        assert agglo.neighbor_graph(X.astype(dtype), 5, "sqeuclidean").missing == 4
    assert agglo.neighbor_graph(np.eye(20, dtype=np.int8), 5, "euclidean").missing == 2
    assert agglo.neighbor_graph(np.full((20, 4), 64, np.uint8), 5, "sqeuclidean").missing == 0


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_points_without_a_direction_are_told(dtype):
    X = np.ones((9000, 2), dtype)
    X[8500:8503] = 0
    with pytest.warns(UserWarning, match=r"3 of 9000 points are all zero \(the first is row 8500\)"):
        agglo.neighbor_graph(X, 2, "cosine")
