"""Neighbours by other libraries: exact values of what they find, a recall that is true, and clear errors."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import agglo
from agglo import _core, neighbors
from agglo.blas import sgemm
from agglo.inputs import for_core
from agglo.search import libraries
from agglo.search.exact import exact

SEEDED = ["faiss", "hnswlib"]
LIBRARIES = [*SEEDED, *(["scann"] if sys.platform == "linux" else [])]


def clustered(rng, n, d):
    centers = rng.standard_normal((60, d))
    return (centers[rng.integers(60, size=n)] + 0.3 * rng.standard_normal((n, d))).astype(np.float32)


def assert_found(found, X, k, metric, recall):
    """What was found is sorted, exactly valued, without the point itself, and as good as it says."""
    right = exact(X, k, metric, 2, None)
    table = agglo.neighbor_graph(X, "all", metric).weights.reshape(len(X), -1)
    similarity = neighbors.METRICS[metric] == "similarity"
    shares = []
    for i, (others, values) in enumerate(zip(found.indices, found.values, strict=True)):
        there = others[others >= 0]
        assert i not in there
        assert len(set(there.tolist())) == len(there)
        np.testing.assert_array_equal(values[: len(there)], table[i, there - (there > i)])
        steps = np.diff(values[: len(there)])
        assert np.all(steps <= 0 if similarity else steps >= 0)
        last = right.values[i, -1]
        shares.append(np.sum(values[: len(there)] >= last if similarity else values[: len(there)] <= last) / k)
    assert found.estimate.value >= recall
    assert abs(np.mean(shares) - found.estimate.value) <= found.estimate.error


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "dot"])
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("few", [True, False])
def test_libraries_find_neighbours_with_exact_values(library, metric, few, monkeypatch):
    X = clustered(np.random.default_rng(1), 2000, 12)
    monkeypatch.setattr(libraries, "_FLAT", 10_000 if few else 500)
    found = neighbors.SEARCHES[library](X, 10, metric, 2, None, recall=0.9, random_state=3)
    assert_found(found, X, 10, metric, 0.9)
    assert found.parameters["recall"] == 0.9


@pytest.mark.slow  # pynndescent is compiled as it is called, which takes over a minute
def test_pynndescent():
    X = clustered(np.random.default_rng(2), 1500, 8)
    found = libraries.pynndescent(X, 10, "cosine", 2, None, recall=0.9, random_state=4)
    assert_found(found, X, 10, "cosine", 0.9)
    assert found.parameters["list_length"] >= 11


class NNDescent:
    """A stand-in for pynndescent's: lists of 100 and more are exact, shorter ones are wrong."""

    def __init__(self, data, metric, n_neighbors, random_state, n_jobs):
        assert metric == "euclidean"
        assert random_state == 4
        near = np.argsort(((data[:, None] - data[None]) ** 2).sum(axis=2), axis=1, kind="stable")
        lists = near[:, :n_neighbors] if n_neighbors >= 100 else near[:, -n_neighbors:]
        self.neighbor_graph = (lists, None)


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean"])
def test_the_lists_of_pynndescent_are_made_longer_until_recall_is_reached(metric, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynndescent", types.SimpleNamespace(NNDescent=NNDescent))
    X = clustered(np.random.default_rng(2), 500, 8)
    found = libraries.pynndescent(X, 10, metric, 2, None, recall=0.9, random_state=4)
    assert_found(found, X, 10, metric, 0.9)
    assert found.parameters["list_length"] == 120  # after 30 and 60
    with pytest.raises(ValueError, match=r"metric='dot' is none that pynndescent searches by: pass another"):
        agglo.neighbor_graph(X, 10, "dot", "pynndescent")


@pytest.mark.parametrize("library", SEEDED)
def test_a_seed_gives_one_graph_whatever_the_threads(library, monkeypatch):
    monkeypatch.setattr(libraries, "_FLAT", 500)
    X = clustered(np.random.default_rng(1), 3000, 12)
    one, two = (agglo.neighbor_graph(X, 10, "cosine", library, n_jobs, random_state=9) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.recall_estimate == two.recall_estimate


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_compact_points_are_valued_as_they_are(dtype):
    X = (clustered(np.random.default_rng(1), 400, 12) * 20).astype(dtype)
    graph = agglo.neighbor_graph(X, 5, "sqeuclidean", "faiss")
    np.testing.assert_array_equal(graph.weights, agglo.neighbor_graph(X, 5, "sqeuclidean", "exact").weights)


def test_effort_is_added_until_recall_is_reached(monkeypatch):
    monkeypatch.setattr(libraries, "_FLAT", 500)
    X = np.random.default_rng(1).standard_normal((4000, 24)).astype("f4")
    efforts = [libraries.faiss(X, 10, "cosine", 2, None, recall=r).parameters["nprobe"] for r in (0.3, 0.99)]
    assert efforts[0] < efforts[1]


def test_lists_that_fall_short_are_told(monkeypatch):
    X = np.random.default_rng(1).standard_normal((3000, 30)).astype("f4")
    monkeypatch.setattr(libraries, "_ATTEMPTS", 1)
    monkeypatch.setattr(libraries, "_FLAT", 500)
    with pytest.warns(
        UserWarning, match=r"less than recall=0\.999: .* structure that faiss needs\. Pass method='auto'"
    ):
        graph = agglo.neighbor_graph(X, 10, "cosine", "faiss", recall=0.999)
    assert graph.recall_estimate.value < 0.999


@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_the_measurement_knows_holes_copies_and_the_point_itself(n_jobs):
    rng = np.random.default_rng(6)
    X = rng.integers(0, 4, (800, 3)).astype(np.float16)  # each of them many times
    right = exact(X, 6, "euclidean", 2, None)
    lists = np.concatenate([right.indices, np.arange(800)[:, None], right.indices[:, :2]], axis=1).astype(np.int32)
    lists = np.ascontiguousarray(rng.permuted(lists, axis=1))
    sample = (len(X), 1, sgemm(), n_jobs, None)
    indices, values, reached = _core.rescored(for_core(X), lists, 6, "euclidean", *sample)
    np.testing.assert_array_equal(indices.reshape(right.indices.shape), right.indices)
    np.testing.assert_array_equal(values.reshape(right.values.shape), right.values)
    assert reached[0] == 1
    holes = right.indices.copy()
    holes[::2, :3] = -1
    _, _, reached = _core.rescored(for_core(X), holes, 6, "euclidean", *sample)
    assert reached[0] == 0.75
    _, _, reached = _core.rescored(for_core(X), np.full_like(holes, -1), 6, "euclidean", *sample)
    assert reached[0] == 0


@pytest.mark.parametrize("name", ["faiss", "hnswlib", "pynndescent", "scann"])
def test_a_library_that_is_not_there(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    package = "faiss-cpu" if name == "faiss" else name
    text = rf"method='{name}' needs the package {package}, .*: pip install 'agglo\[{name}\]', or pass method="
    with pytest.raises(ImportError, match=text):
        agglo.neighbor_graph(np.eye(30), 3, method=name)
