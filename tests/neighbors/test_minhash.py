"""The search of sets by MinHash against the exact one: recall, values, its own estimate, nothing left to time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbor_cases import check_progress

import agglo
from agglo.neighbors import sparse
from agglo.neighbors.dense import SearchParams
from agglo.neighbors.sparse import SparsePoints, search_minhash


def sets_of(lists, columns):
    """A sparse matrix whose rows have these members."""
    rows = [np.unique(np.asarray(members, np.int32)) for members in lists]
    indptr = np.cumsum([0, *map(len, rows)])
    return sp.csr_array((np.ones(indptr[-1]), np.concatenate(rows), indptr), shape=(len(rows), columns))


def grouped(n, seed=0, kept=0.7, columns=3000):
    """Sets that share most members with those of their group, and the frequent ones with many."""
    rng = np.random.default_rng(seed)
    bases = rng.integers(0, columns, (n // 20 + 1, 20))
    return sets_of(
        [
            np.concatenate(
                [base[rng.random(20) < kept], np.minimum(rng.zipf(1.5, rng.integers(1, 9)), columns - 1)]
            )
            for base in bases[rng.integers(len(bases), size=n)]
        ],
        columns,
    )


def half_equal(n, seed=0):
    X = grouped(n, seed).tolil()
    X[::2] = X[[4]]
    return X.tocsr()


def with_empty(n, seed=0):
    X = grouped(n, seed).tolil()
    X[::7] = 0
    return X.tocsr()


def all_alike(n, seed=0):
    """Sixty members that all have, and one of their own: no MinHash tells them apart."""
    return sets_of([[*range(60), 60 + i] for i in range(n)], 60 + n)


def of_one_or_two(n, seed=0):
    rng = np.random.default_rng(seed)
    return sets_of(rng.integers(0, 300, (n, 2)), 300)


def large_sets(n, seed=0):
    """Larger than images can tell."""
    rng = np.random.default_rng(seed)
    bases = rng.random((n // 20 + 1, 4000)) < 0.2
    return sp.csr_array([base & (rng.random(4000) < 0.8) for base in bases[rng.integers(len(bases), size=n)]])


SHAPES = [grouped, half_equal, with_empty, all_alike, of_one_or_two]


def minhash(points, k, n_threads=2, report=None, *, bucket_size=0, n_bands=0, **params):
    params = SearchParams(k, "jaccard", n_threads, report, **params)
    return search_minhash(points, params, bucket_size=bucket_size, n_bands=n_bands)


def both(X, k, n_threads=2, **options):
    points = SparsePoints(X, "jaccard")
    exact = points.search("exact", SearchParams(k, "jaccard", n_threads))[:2]
    return exact, minhash(points, k, n_threads, **options)


def shares_right(exact, found):
    """The share of every set's neighbours that are as close as the last of its true list."""
    there = exact[0] >= 0
    last = np.where(there, exact[1], -1).max(axis=1, keepdims=True)
    right = ((found.values <= last) & (found.indices >= 0)).sum(axis=1)
    return np.where(there.any(axis=1), right / np.maximum(there.sum(axis=1), 1), 1)


@pytest.mark.parametrize(("make", "n"), [*((make, 4000) for make in SHAPES), (large_sets, 1500)])
def test_the_requested_and_estimated_recall_is_reached(make, n):
    exact, found = both(make(n), 10, recall=0.9)
    share = shares_right(exact, found)
    assert found.recall_estimate.value >= 0.9
    assert found.recall_estimate.sample == 256
    assert abs(share.mean() - found.recall_estimate.value) <= found.recall_estimate.error


@pytest.mark.parametrize("make", SHAPES)
def test_values_equal_those_of_the_exact_search(make):
    X = make(1500, seed=1)
    table = X.astype(np.float64)
    _, found = both(X, 8, n_bands=6)
    rows = np.repeat(np.arange(1500), 8)
    kept = found.indices.ravel() >= 0
    i, j = rows[kept], found.indices.ravel()[kept]
    common = np.asarray(table[i].multiply(table[j]).sum(axis=1)).ravel()
    sizes = np.diff(X.indptr)
    union = sizes[i] + sizes[j] - common
    expected = np.where(union > 0, (union - common) / np.maximum(union, 1), 0).astype(np.float32)
    np.testing.assert_array_equal(found.values.ravel()[kept], expected)
    assert (i != j).all()
    assert (expected < 1).all()
    for row, values in zip(found.indices.tolist(), found.values.tolist(), strict=True):
        there = [(v, r) for v, r in zip(values, row, strict=True) if r >= 0]
        assert there == sorted(set(there))
        assert all(r == -1 for r in row[len(there) :])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(st.integers(0, 12)), min_size=2, max_size=60), st.data())
def test_few_sets_are_searched_exactly(lists, data):
    X = sets_of([sorted(members) for members in lists], 13)
    exact, found = both(X, data.draw(st.integers(1, len(lists) - 1), label="k"))
    np.testing.assert_array_equal(found.indices, exact[0])
    np.testing.assert_array_equal(found.values, exact[1])
    assert found.recall_estimate.value == 1


def test_many_duplicates_of_few_sets_are_searched_exactly():
    rng = np.random.default_rng(0)
    X = grouped(300)[rng.integers(300, size=5000)]
    exact, found = both(X, 12)
    np.testing.assert_array_equal(found.indices, exact[0])
    np.testing.assert_array_equal(found.values, exact[1])


def test_recall_1_finds_all_neighbours():
    exact, found = both(grouped(2500, seed=3), 10, recall=1.0)
    assert found.recall_estimate.value == 1
    assert shares_right(exact, found).mean() > 0.999


@pytest.mark.parametrize("options", [{}, {"n_bands": 5}, {"recall": 0.99}])
@pytest.mark.parametrize("make", [grouped, all_alike])
def test_the_result_does_not_depend_on_the_number_of_threads(make, options):
    rows = SparsePoints(make(3000, seed=2), "jaccard")
    one, *others = (minhash(rows, 9, workers, None, **options) for workers in (1, 2, 8))
    for other in others:
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.values, other.values)
        assert one[2:] == other[2:]


def test_the_result_depends_on_the_seed_alone():
    rows = SparsePoints(grouped(3000), "jaccard")
    one, again, other = (minhash(rows, 9, 2, None, seed=seed, n_bands=2).indices for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_auto_is_exact_while_that_is_cheap_and_reports_its_method(monkeypatch):
    X = grouped(2000)
    exact = agglo.neighbor_graph(X, 8, "jaccard")
    assert (exact.method, exact.recall_estimate) == ("exact", None)
    monkeypatch.setattr(sparse, "_CHEAP_PAIRS", 1e3)
    monkeypatch.setattr(sparse, "_CHEAP_PAIRS_PER_SET", 10)
    graph = agglo.neighbor_graph(X, 8, "jaccard", recall=0.9, missing=None, random_state=5)
    assert (graph.method, graph.metric, graph.missing) == ("minhash", "jaccard", 1.0)
    assert graph.parameters["recall"] == 0.9
    assert graph.parameters["random_state"] == 5
    assert graph.parameters["bands"] >= 4
    assert graph.recall_estimate.value >= 0.9
    assert agglo.neighbor_graph(X, 8, "jaccard", recall=1.0).method == "exact"
    assert agglo.neighbor_graph(X, 8, "hamming").method == "exact"


def test_auto_searches_exactly_if_bands_miss_the_recall(monkeypatch):
    monkeypatch.setattr(sparse, "_CHEAP_PAIRS", 1e3)
    monkeypatch.setattr(sparse, "_CHEAP_PAIRS_PER_SET", 10)
    monkeypatch.setattr(sparse, "MAX_BANDS", 1)
    X = sp.random_array((3000, 2000), density=0.01, random_state=np.random.default_rng(0), format="csr")
    graph = agglo.neighbor_graph(X, 5, "jaccard", recall=0.99)
    assert (graph.method, graph.recall_estimate) == ("exact", None)
    with pytest.warns(UserWarning, match=r"less than recall=0\.99.*minhash needs.*method='auto'") as warned:
        short = agglo.neighbor_graph(X, 5, "jaccard", "minhash", recall=0.99)
    assert warned[0].filename == __file__
    assert short.method == "minhash"
    assert short.recall_estimate.value < 0.99


def test_stop_early_ends_when_the_recall_is_out_of_reach(monkeypatch):
    monkeypatch.setattr(sparse, "MAX_BANDS", 12)
    rows = SparsePoints(
        sp.random_array((4000, 2000), density=0.01, random_state=np.random.default_rng(0), format="csr"), "jaccard"
    )
    patient, short = (
        minhash(rows, 5, recall=0.999, bucket_size=20, stop_early=stop_early) for stop_early in (False, True)
    )
    assert (patient.parameters["bands"], short.parameters["bands"]) == (12, 4)
    assert 0 < short.recall_estimate.value < patient.recall_estimate.value < 0.999


def test_the_cost_of_an_exact_search_depends_on_shared_members():
    apart, alike = sp.eye_array(50_000, format="csr"), sp.csr_array(np.ones((50_000, 1)))
    assert not SparsePoints(apart, "jaccard").exact_is_expensive()
    assert SparsePoints(alike, "jaccard").exact_is_expensive()


def test_progress_is_monotone_and_can_stop_the_search():
    rows = SparsePoints(grouped(3000), "jaccard")
    check_progress(lambda report: minhash(rows, 10, 2, report))


@pytest.mark.parametrize(
    ("X", "options", "text"),
    [
        (np.eye(4), {"metric": "cosine"}, r"method='minhash' compares sets, but metric='cosine': pass"),
        (np.eye(4), {"metric": "hamming"}, r"method='minhash' is for metric='jaccard', and X is a table"),
        (sp.csr_array(np.eye(4)), {"metric": "cosine"}, r"is for metric='jaccard', and X is a SciPy sparse"),
        (np.eye(4), {"n_neighbors": "all"}, r"n_neighbors='all' compares all pairs, which is method='exact'"),
        (np.eye(4), {"n_neighbors": 9}, r"n_neighbors=9 is too many for 4 points"),
        (np.full((3, 2), 0.5), {}, r"X\[0, 0\] is 0\.5, but these metrics compare zeros and ones"),
        (np.eye(4), {"recall": 0}, r"recall=0 is not a share"),
        (np.eye(4), {"method": "cells"}, r"method='cells' is for dense points.*'minhash' or 'exact' or 'auto'"),
    ],
)
def test_unsupported_input_is_an_error(X, options, text):
    with pytest.raises(ValueError, match=text):
        agglo.neighbor_graph(X, **{"n_neighbors": 1, "metric": "jaccard", "method": "minhash", **options})
