"""The search by cells against the exact one: recall, values, its own estimate, and nothing left to time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbor_cases import check_progress

import agglo
from agglo.neighbors import dense
from agglo.neighbors import search as neighbors
from agglo.neighbors.dense import SearchParams, search_cells, search_exact
from agglo.points.points import check_points

METRICS = ("cosine", "dot", "euclidean", "sqeuclidean")


def clustered(rng, n, d, n_clusters=30, spread=0.3):
    centers = rng.standard_normal((n_clusters, d))
    return centers[rng.integers(n_clusters, size=n)] + spread * rng.standard_normal((n, d))


def one_huge(rng, n, d):
    tiny = [
        np.repeat(rng.standard_normal((1, d)) * 20, 5, axis=0) + rng.standard_normal((5, d))
        for _ in range(n // 50)
    ]
    rest = n - 5 * len(tiny)
    return np.concatenate([*tiny, 1e-3 * rng.standard_normal((rest, d))])


def half_identical(rng, n, d):
    X = clustered(rng, n, d)
    X[rng.permutation(n)[: n // 2]] = X[0]
    return X


def nearly_identical(rng, n, d):
    X = np.ones((n, d))
    X[:, 0] += 1e-5 * rng.integers(0, 40, n)
    return X


def constant_columns(rng, n, d):
    X = clustered(rng, n, d)
    X[:, ::2] = 7
    return X


def some_zero(rng, n, d):
    X = clustered(rng, n, d)
    X[: n // 10] = 0
    return X


SHAPES = [
    (clustered, 6000, 24),
    (lambda rng, n, d: rng.random((n, d)), 5000, 6),
    (half_identical, 6000, 16),
    (nearly_identical, 4000, 5),
    (constant_columns, 5000, 20),
    (one_huge, 5000, 12),
    (some_zero, 4000, 12),
    (clustered, 5000, 1),
    (clustered, 5000, 2),
    (clustered, 5000, 3),
    (clustered, 3000, 1024),
    (clustered, 1500, 4096),
    (clustered, 40, 8),
    (lambda rng, n, d: np.ones((n, d)), 300, 4),
]


LIST_OPTIONS = ("list_size", "n_probes", "n_candidates", "sample")


def cells(points, k, metric, n_threads, report, **options):
    chosen = {name: options.pop(name) for name in LIST_OPTIONS if name in options}
    return search_cells(points, SearchParams(k, metric, n_threads, report, **options), **chosen)


def both(X, k, metric, **options):
    points = check_points(X.astype(np.float32))
    exact = search_exact(points, SearchParams(k, metric, 2))[:2]
    return exact, cells(points, k, metric, 2, None, **options)


def shares_right(exact, found, metric):
    """The share of every point's neighbours that are as close as the true k-th."""
    last = exact[1][:, -1:]
    near = found[1] >= last if neighbors.METRICS[metric] == "similarity" else found[1] <= last
    return near.mean(axis=1)


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "euclidean"])
@pytest.mark.parametrize(("make", "n", "d"), SHAPES)
def test_the_requested_recall_is_reached(make, n, d, metric):
    X = make(np.random.default_rng(7), n, d)
    exact, found = both(X, 10, metric, recall=0.95)
    share = shares_right(exact, found, metric)
    estimate = found[2]
    assert estimate.value >= 0.95
    assert abs(share.mean() - estimate.value) <= estimate.error


@pytest.mark.parametrize(("spread", "recall"), [(1.0, 0.9), (0.6, 0.99)])
def test_the_recall_estimate_is_within_its_error(spread, recall):
    """Of chosen efforts: 60 times, with another sample each time, and not too high on the whole."""
    points = check_points(clustered(np.random.default_rng(8), 3000, 12, 20, spread).astype(np.float32))
    exact = search_exact(points, SearchParams(10, "sqeuclidean", 2))
    differences, errors = [], []
    for seed in range(60):
        found = cells(points, 10, "sqeuclidean", 2, None, recall=recall, seed=seed, list_size=44, sample=100)
        differences.append(found.recall_estimate.value - shares_right(exact, found, "sqeuclidean").mean())
        errors.append(found.recall_estimate.error)
        assert found.recall_estimate.value >= recall
    assert (np.abs(differences) <= errors).sum() >= 58
    assert abs(np.mean(differences)) <= np.mean(errors) / 5


def test_cells_support_dot_products():
    X = clustered(np.random.default_rng(3), 5000, 16)
    exact, found = both(X, 10, "dot", recall=0.9)
    assert shares_right(exact, found, "dot").mean() > 0.85


@pytest.mark.parametrize("metric", METRICS)
def test_values_equal_those_of_the_exact_search(metric):
    X = clustered(np.random.default_rng(5), 3000, 16)
    exact, found = both(X, 12, metric, n_probes=2)
    compared = 0
    for one, two, p, q in zip(exact[0].tolist(), found[0].tolist(), *(v[1] for v in (exact, found)), strict=True):
        known = dict(zip(one, p, strict=True))
        assert len(set(two)) == 12
        for index, value in zip(two, q, strict=True):
            if index in known:
                assert value == known[index]
                compared += 1
    assert compared > 3000 * 12 / 2
    order = -1 if neighbors.METRICS[metric] == "similarity" else 1
    assert (np.diff(order * found[1], axis=1) >= 0).all()


def test_ties_are_in_order_of_the_index():
    X = np.random.default_rng(0).integers(0, 3, (3000, 3))
    _, found = both(X, 8, "sqeuclidean")
    tied = np.diff(found[1], axis=1) == 0
    assert tied.any()
    assert (np.diff(found[0], axis=1)[tied] > 0).all()


@pytest.mark.parametrize("options", [{}, {"n_probes": 3, "n_candidates": 30}, {"recall": 0.999}])
def test_the_result_does_not_depend_on_the_number_of_threads(options):
    points = check_points(clustered(np.random.default_rng(1), 8000, 12, 200, 1.0).astype(np.float32))
    one, *others = (cells(points, 9, "cosine", workers, None, **options) for workers in (1, 2, 8))
    for other in others:
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
        assert one[2:4] == other[2:4]
        np.testing.assert_array_equal(one.cells, other.cells)


def test_the_result_depends_on_the_seed_alone():
    points = check_points(clustered(np.random.default_rng(1), 6000, 24, 300, 1.5).astype(np.float32))
    one, again, other = (cells(points, 9, "sqeuclidean", 2, None, seed=seed, n_probes=1)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 600), st.integers(1, 40), st.sampled_from(METRICS))
def test_few_points_are_searched_exactly(seed, n, k, metric):
    """Points that fit one cell are all compared, so the lists are the exact ones, ties and copies included."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, 3))
    X = X[rng.integers(0, n, n)]
    k = min(k, n - 1)
    exact, found = both(X, k, metric, list_size=600)
    np.testing.assert_array_equal(exact[0], found[0])
    np.testing.assert_array_equal(exact[1], found[1])


def test_auto_is_exact_while_that_is_cheap():
    X = clustered(np.random.default_rng(2), 2000, 8)
    graph = agglo.neighbor_graph(X, 5, method="auto")
    assert graph.method == "exact"
    assert graph.recall_estimate is None
    np.testing.assert_array_equal(graph.weights, agglo.neighbor_graph(X, 5).weights)


def test_auto_reports_its_method(monkeypatch):
    monkeypatch.setattr(dense, "_CHEAP", 0.0)
    X = clustered(np.random.default_rng(2), 3000, 8)
    graph = agglo.neighbor_graph(X, 5, method="auto", recall=0.9, random_state=5)
    assert graph.method == "cells"
    assert graph.parameters["recall"] == 0.9
    assert graph.parameters["random_state"] == 5
    assert graph.parameters["visits"] >= 1
    assert graph.recall_estimate.value >= 0.9
    assert graph.recall_estimate.sample == 256
    assert agglo.neighbor_graph(X, 5, method="auto", recall=1.0).method == "exact"


def test_auto_searches_exactly_if_cells_miss_the_recall(monkeypatch):
    monkeypatch.setattr(dense, "_CHEAP", 0.0)
    monkeypatch.setattr(dense, "MAX_ATTEMPTS", 1)
    X = np.random.default_rng(2).standard_normal((12000, 100))
    graph = agglo.neighbor_graph(X, 5, method="auto", recall=0.9999)
    assert graph.method == "exact"
    assert graph.recall_estimate is None
    with pytest.warns(UserWarning, match=r"less than recall=0\.9999.*method='auto'"):
        short = agglo.neighbor_graph(X, 5, method="cells", recall=0.9999)
    assert short.method == "cells"
    assert short.recall_estimate.value < 0.9999


def test_stop_early_skips_probes_that_cannot_reach_the_recall():
    points = check_points(np.random.default_rng(2).standard_normal((40000, 60)).astype(np.float32))
    none = cells(points, 5, "cosine", 2, None, recall=0.99, list_size=64, stop_early=True)
    assert none.indices.shape == none.values.shape == (0, 5)
    assert none.parameters["rounds"] == 0
    assert none.recall_estimate.value < 0.99
    some = cells(points, 5, "cosine", 2, None, recall=0.99, list_size=64)
    assert some.indices.shape == (40000, 5)
    assert (
        abs(some.recall_estimate.value - none.recall_estimate.value)
        <= some.recall_estimate.error + none.recall_estimate.error
    )


def test_stop_early_skips_probes_that_cost_more_than_an_exact_search():
    points = check_points(np.random.default_rng(2).standard_normal((20000, 64)).astype(np.float32))
    none = cells(points, 5, "cosine", 2, None, recall=0.9, stop_early=True)
    assert none.indices.shape == none.values.shape == (0, 5)
    assert none.parameters["rounds"] == 0
    some = cells(points, 5, "cosine", 2, None, recall=0.9)
    assert some.indices.shape == (20000, 5)
    assert some.recall_estimate.value >= 0.9


def test_auto_chooses_by_the_cost_of_the_recall(monkeypatch, caplog):
    monkeypatch.setattr(dense, "_CHEAP", 0.0)
    caplog.set_level("INFO", "agglo.neighbors.search")
    rng = np.random.default_rng(2)
    noise, groups = rng.standard_normal((20000, 64)), clustered(rng, 20000, 64)
    methods = [agglo.neighbor_graph(groups, 5, recall=recall).method for recall in (0.8, 0.95)]
    assert methods == ["cells", "cells"]
    graph = agglo.neighbor_graph(noise, 5, recall=0.9)
    assert graph.method == "exact"
    assert graph.recall_estimate is None
    assert "costs more than an exact search" in caplog.text


def test_progress_is_monotone_and_can_stop_the_search():
    points = check_points(clustered(np.random.default_rng(4), 20000, 32, 400, 1.0).astype(np.float32))
    check_progress(lambda report: cells(points, 10, "cosine", 2, report))


@pytest.mark.parametrize(
    ("wish", "error", "text"),
    [
        ({"recall": 0}, ValueError, r"recall=0 is not a share.*above 0, at most 1"),
        ({"recall": 1.5}, ValueError, r"recall=1\.5 is not a share"),
        ({"random_state": -1}, ValueError, r"random_state=-1 is out of range"),
        ({"random_state": 0.5}, TypeError, r"random_state=0\.5 is not an integer"),
        ({"method": "cells", "n_neighbors": "all"}, ValueError, r"n_neighbors='all' compares all pairs"),
        ({"method": "tree"}, ValueError, r"method='tree' is unknown: pass one of 'auto', 'exact', 'kdtree'"),
    ],
)
def test_invalid_parameters_are_errors(wish, error, text):
    with pytest.raises(error, match=text):
        agglo.neighbor_graph(np.eye(30), **{"n_neighbors": 3, **wish})


@pytest.mark.parametrize("shape", [clustered, one_huge, half_identical, nearly_identical])
def test_many_lists_give_the_same_result_for_any_number_of_threads(shape):
    X = check_points(shape(np.random.default_rng(3), 12_000, 4).astype(np.float32))
    found = [cells(X, 3, "euclidean", workers, None, list_size=16, recall=0.9) for workers in (1, 2, 8)]
    assert found[0].recall_estimate.value >= 0.9
    for other in found[1:]:
        np.testing.assert_array_equal(other.indices, found[0].indices)
        np.testing.assert_array_equal(other.values, found[0].values)


def test_many_separate_clusters_need_few_probes():
    rng = np.random.default_rng(4)
    X = check_points(clustered(rng, 30_000, 32, n_clusters=1500, spread=0.4).astype(np.float32))
    found = cells(X, 5, "euclidean", 2, None, list_size=24, recall=0.95)
    assert found.recall_estimate.value >= 0.95
    assert found.parameters["visits"] <= 32


def test_groups_smaller_than_a_list_need_few_probes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 64))[rng.integers(600, size=60_000)] + 0.8 * rng.normal(size=(60_000, 64))
    found = cells(check_points(X.astype(np.float32)), 25, "euclidean", 2, None)
    assert found.parameters["visits"] <= 16
    assert found.recall_estimate.value >= 0.95


def test_the_best_lists_are_returned_if_the_recall_is_out_of_reach():
    X = np.random.default_rng(0).normal(size=(50_000, 64)).astype(np.float32)
    usual = cells(X, 10, "euclidean", 2, None, recall=0.99, list_size=256)
    found = cells(X, 10, "euclidean", 2, None, recall=0.99)
    assert usual.recall_estimate.value < 0.99
    assert found.parameters["cell_size"] == 256
    np.testing.assert_array_equal(found.indices, usual.indices)
