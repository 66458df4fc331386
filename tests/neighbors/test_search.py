"""The neighbour graph of points against its definition: every pair compared, in float64."""

from __future__ import annotations

import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from children import TIMEOUT, python_child
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbor_cases import points_with_ties
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_info

import agglo
from agglo.neighbors import dense
from agglo.neighbors.dense import SearchParams, search_exact
from agglo.points.points import check_points

METRICS = ["cosine", "dot", "sqeuclidean", "euclidean"]
SIMILARITIES = ["cosine", "dot"]


def closeness(X, metric):
    """Every pair's value in float64, the larger the closer; the diagonal is farthest of all."""
    Y = np.asarray(X).astype(np.float64)
    table = Y @ Y.T if metric in SIMILARITIES else -cdist(Y, Y, "sqeuclidean")
    if metric == "cosine":
        squares = (Y * Y).sum(axis=1)
        inverse = np.where(squares > 0, 1 / np.sqrt(np.where(squares > 0, squares, 1)), 0)
        table *= inverse[:, None] * inverse
    np.fill_diagonal(table, -np.inf)
    return table


def values_of(table, metric):
    """Closeness as the metric's own values."""
    if metric == "cosine":
        return np.clip(table, -1, 1).astype(np.float32)
    if metric == "euclidean":
        return np.sqrt(-table).astype(np.float32)
    return (table if metric == "dot" else -table).astype(np.float32)


def search(X, k, metric, n_jobs=2):
    return search_exact(check_points(X), SearchParams(k, metric, n_jobs))[:2]


def check_exact(X, k, metric):
    """The lists are those of the definition, smaller indices first among ties.

    For points of small integers only: every sum is then exact, in whatever order it is made.
    """
    indices, values = search(X, k, metric)
    table = closeness(X, metric)
    expected = np.argsort(-table, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, values_of(np.take_along_axis(table, expected, 1), metric))


def check_close(X, k, metric):
    """The lists are in order, and nobody left out is closer than the last, but for roundings of float64."""
    indices, values = search(X, k, metric)
    table = closeness(X, metric)
    rounding = 1e-13 * np.abs(table[np.isfinite(table)]).max()
    chosen = np.take_along_axis(table, indices.astype(np.int64), 1)
    np.testing.assert_allclose(values, values_of(chosen, metric), rtol=1e-6, atol=1e-30)
    assert (np.diff(chosen, axis=1) <= rounding).all()
    assert all(len(set(row)) == k for row in indices.tolist())
    np.put_along_axis(table, indices.astype(np.int64), -np.inf, 1)
    assert (table.max(axis=1) <= chosen[:, -1] + rounding).all()


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=60, deadline=None)
@given(X=points_with_ties(90, 20, 2), data=st.data())
def test_lists_of_points_with_many_ties(metric, X, data):
    check_exact(X, data.draw(st.integers(1, len(X) - 1), label="k"), metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(2, 1, 1), (3, 1, 2), (3, 2, 1), (1025, 3, 25), (2500, 17, 10), (700, 1500, 5), (700, 8, 650)],
)
def test_lists_of_every_shape(metric, n, d, k):
    rng = np.random.default_rng(n)
    check_exact(rng.integers(-9, 10, (n, d)), k, metric)
    check_close(rng.standard_normal((n, d)).astype(np.float32), k, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_lists_of_every_dtype(metric, dtype):
    check_close(np.random.default_rng(1).standard_normal((1500, 30)).astype(dtype), 12, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_lists_are_the_same_for_any_number_of_threads(metric):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((5000, 24)).astype(np.float32)
    X[rng.integers(0, 5000, 900)] = X[7]
    first = search(X, 20, metric, n_jobs=1)
    for n_jobs in (2, 8):
        for one, other in zip(first, search(X, 20, metric, n_jobs), strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("metric", METRICS)
def test_lists_of_duplicates_only(metric):
    X = np.tile(np.random.default_rng(3).standard_normal(10), (1500, 1))
    indices, values = search(X, 5, metric)
    assert indices[0].tolist() == [1, 2, 3, 4, 5]
    assert indices[3].tolist() == [0, 1, 2, 4, 5]
    assert indices[1499].tolist() == [0, 1, 2, 3, 4]
    expected = {"cosine": 1, "dot": (X[0] ** 2).sum(), "sqeuclidean": 0, "euclidean": 0}[metric]
    assert set(values.ravel()) == {np.float32(expected)}


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("offset", [1e3, 1e8])
def test_distances_far_from_the_origin(metric, offset):
    check_close(np.random.default_rng(4).standard_normal((1500, 8)) + offset, 10, metric)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_distances_of_tight_groups_far_apart(metric):
    """Where float32 products say nothing: each group's spread is far below the rounding of its position."""
    rng = np.random.default_rng(5)
    X = np.repeat([[1.0, 0.0], [-1.0, 0.5], [0.0, -3.0]], 500, axis=0)
    check_close(X + 1e-9 * rng.standard_normal(X.shape), 10, metric)


@pytest.mark.parametrize("scale", [1e-15, 1e15])
@pytest.mark.parametrize("metric", METRICS)
def test_points_of_any_scale(metric, scale):
    check_close(scale * np.random.default_rng(6).standard_normal((300, 6)), 5, metric)


def test_an_outlier_does_not_change_the_other_lists():
    X = np.random.default_rng(7).standard_normal((2000, 10)).astype(np.float32)
    X[1234] = 1e12
    for metric in METRICS:
        check_close(X, 10, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_lists_of_points_on_a_grid(metric):
    """Few columns and many points: most leaves are excluded by their distance, where ties abound."""
    grid = np.stack(np.meshgrid(np.arange(45), np.arange(45)), axis=-1).reshape(-1, 2)
    check_exact(np.random.default_rng(13).permutation(grid) + 1, 9, metric)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("width", [1, 3, 10, 20])
def test_lists_do_not_depend_on_sketches(metric, width, monkeypatch):
    rng = np.random.default_rng(width)
    X = rng.integers(-5, 6, (1500, 20)) * np.where(np.arange(20) < 4, 10, 1)
    basis, _ = np.linalg.qr(np.cov(X.T)[:, :width])
    monkeypatch.setattr(dense, "choose_sketch_basis", lambda *given: np.ascontiguousarray(basis.T))
    check_exact(X, 15, metric)
    check_close(X + rng.standard_normal(X.shape) * 1e-3, 15, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_sketches_are_used_if_they_pay(metric, monkeypatch):
    monkeypatch.setattr(dense, "_MIN_SECONDS", 0)
    rng = np.random.default_rng(14)
    flat = rng.standard_normal((2000, 6)) @ rng.standard_normal((6, 100)) + 0.01 * rng.standard_normal((2000, 100))
    basis = dense.choose_sketch_basis(flat, metric, 10)
    assert 4 <= len(basis) <= 16
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-13)
    check_close(flat.astype(np.float32), 10, metric)
    assert len(dense.choose_sketch_basis(rng.standard_normal((2000, 100)), metric, 10)) == 0


@pytest.mark.parametrize("metric", METRICS)
def test_graph_is_the_union_of_the_lists(metric):
    X = np.random.default_rng(8).integers(-9, 10, (400, 5)).astype(np.int8)
    graph = agglo.neighbor_graph(X, 7, metric, "exact")
    indices, _ = search(X, 7, metric)
    listed = np.zeros((400, 400), bool)
    np.put_along_axis(listed, indices.astype(np.int64), True, 1)
    weights = graph.to_scipy()
    edges = weights.tocoo()
    np.testing.assert_array_equal(np.argwhere(listed | listed.T), np.stack([edges.row, edges.col], axis=1))
    np.testing.assert_array_equal(weights.toarray(), weights.toarray().T)
    assert graph.kind == ("similarity" if metric in SIMILARITIES else "distance")
    assert (graph.metric, graph.method, graph.parameters) == (metric, "exact", {"n_neighbors": 7})


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [1, 2, 3, 60])
def test_all_neighbours_make_the_complete_graph(metric, n):
    X = np.random.default_rng(n).integers(1, 9, (n, 4))
    graph = agglo.neighbor_graph(X, "all", metric)
    assert graph.n_edges == n * (n - 1) // 2
    assert graph.parameters == {"n_neighbors": "all"}
    table = closeness(X, metric)
    np.fill_diagonal(table, 0)
    expected = values_of(table, metric)
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(graph.to_scipy().toarray(), expected)


def test_missing_pairs():
    X = np.random.default_rng(9).standard_normal((200, 6))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for points, metric, expected in [
        (X, "cosine", 0.0),
        (unit, "dot", 0.0),
        (unit, "sqeuclidean", 4.0),
        (unit.astype(np.float16), "sqeuclidean", 4.0),
        (unit, "euclidean", 2.0),
    ]:
        assert agglo.neighbor_graph(points, 5, metric, missing=None).missing == expected
    for metric in ("sqeuclidean", "euclidean"):
        graph = agglo.neighbor_graph(X, 5, metric, missing=None)
        assert graph.missing == graph.weights.max()


def test_all_zero_points_have_no_direction():
    X = np.random.default_rng(10).standard_normal((50, 4))
    X[[11, 30]] = 0
    with pytest.warns(UserWarning, match=r"2 of 50 points are all zero \(the first is row 11\).*Leave them out"):
        graph = agglo.neighbor_graph(X, "all", "cosine")
    assert not graph.to_scipy().toarray()[[11, 30]].any()
    agglo.neighbor_graph(X, 3, "euclidean")  # where zero is a point like any other


@pytest.mark.parametrize(
    ("n_neighbors", "error", "text"),
    [
        (
            4,
            ValueError,
            r"n_neighbors=4 is too many for 4 points, because a point is not.*: pass at most 3, or 'all'",
        ),
        (25, ValueError, r"n_neighbors=25 is too many"),
        (0, ValueError, r"n_neighbors=0 must be at least 1"),
        (-3, ValueError, r"n_neighbors=-3 must be at least 1: pass a positive integer or 'all'"),
        (2.0, TypeError, r"n_neighbors=2.0 is not a number: pass a positive integer"),
        (True, TypeError, r"n_neighbors=True is not a number"),
        (None, TypeError, r"n_neighbors=None is not a number"),
        ("some", ValueError, r"n_neighbors='some' is unknown: pass a positive integer or 'all'"),
    ],
)
def test_wrong_numbers_of_neighbours(n_neighbors, error, text):
    with pytest.raises(error, match=text):
        agglo.neighbor_graph(np.eye(4), n_neighbors)


def test_one_point_has_no_neighbours():
    with pytest.raises(ValueError, match=r"n_neighbors=1 is too many for 1 point, .*: pass n_neighbors='all'"):
        agglo.neighbor_graph([[1.0]], 1)


def test_a_complete_graph_must_fit_into_memory(monkeypatch):
    monkeypatch.setattr("agglo.neighbors.search.physical_memory", lambda: 16e9)
    X = np.broadcast_to(np.float32(1), (50_000, 1))
    with pytest.raises(ValueError, match=r"50000 points, which takes 20.0 GB, more than half .*\(8.0 GB\): pass"):
        agglo.neighbor_graph(X, "all")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"metric": "manhattan"}, r"metric='manhattan' is unknown: pass one of 'cosine', 'dot', 'euclidean'"),
        ({"method": "guess"}, r"method='guess' is unknown: pass one of 'auto', 'exact'"),
        ({"n_jobs": 0}, r"n_jobs=0 is not a number of threads"),
    ],
)
def test_unknown_names(options, text):
    with pytest.raises(ValueError, match=text):
        agglo.neighbor_graph(np.eye(4), 2, **options)


@pytest.mark.parametrize("n_neighbors", [1, "all"])
def test_values_beyond_float32(n_neighbors):
    with pytest.raises(ValueError, match=r"exceed float32: scale X down"):
        agglo.neighbor_graph([[0.0], [1e30], [2e30]], n_neighbors, "sqeuclidean")


def test_too_many_columns():
    with pytest.raises(ValueError, match=r"at most 4194304 columns can be searched, got 4194305; reduce"):
        agglo.neighbor_graph(np.broadcast_to(np.float32(1), (3, 2**22 + 1)), 1)


def test_progress_is_reported_and_can_stop_the_search():
    X = np.random.default_rng(11).standard_normal((6000, 64), dtype=np.float32)
    seen = []
    agglo.neighbor_graph(X, 5, progress=lambda *report: seen.append(report))
    assert seen
    assert all(name == "neighbours" and 0 <= done <= total == seen[0][2] for name, done, total in seen)

    def stop(*report):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        agglo.neighbor_graph(X, 5, progress=stop)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_concurrent_searches_restore_the_blas_limit():
    before = blas_threads()
    X = np.random.default_rng(12).standard_normal((3000, 32), dtype=np.float32)
    runs = [threading.Thread(target=agglo.neighbor_graph, args=(X[i:],)) for i in range(0, 1000, 250)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        agglo.neighbor_graph(X, progress=lambda *report: 1 / 0)
    assert blas_threads() == before


def test_ctrl_c_ends_a_search():
    """Interrupted soon after its first report, the search stops long before its end."""
    program = """
        import signal, threading
        import numpy as np, agglo
        X = np.random.default_rng(0).standard_normal((60_000, 300), dtype=np.float32)
        agglo.neighbor_graph(X[:3000], method="exact")
        # The child interrupts itself: on a loaded machine, a signal of another process may come too late.
        ctrl_c = threading.Timer(0.1, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])

        def report(name, done, total):
            print(f"{done} {total}", flush=True)  # a single write, so that Ctrl-C does not split it
            if ctrl_c.ident is None:
                ctrl_c.start()

        agglo.neighbor_graph(X, method="exact", progress=report)
        """
    with python_child(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        reports, errors = child.communicate(timeout=TIMEOUT)
    assert b"KeyboardInterrupt" in errors
    assert child.returncode != 0
    done, total = map(int, reports.splitlines()[-1].split())
    assert done < total / 2


def test_more_threads_than_the_system_starts_are_an_error():
    code = """
import resource, numpy as np, agglo
graph = agglo.neighbor_graph(np.eye(9), 2)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
try:
    agglo.scc(graph, n_jobs=1000)
except ValueError as error:
    print(error)
print(agglo.scc(graph, n_jobs=2).n_leaves)
"""
    command = [sys.executable, "-c", code]
    child = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    expected = r"n_jobs=1000, but the system started only \d+ threads \(Resource .*\): pass fewer\n9\n"
    assert re.fullmatch(expected, child.stdout), child.stderr
