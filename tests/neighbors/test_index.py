import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from agglo import neighbor_graph
from agglo.neighbors.index import NeighborIndex

DENSE = ("cosine", "dot", "sqeuclidean", "euclidean")
SPARSE = ("cosine", "dot", "jaccard", "hamming")


def fitted(X, metric, method="exact", parameters=None, recall=0.95):
    return NeighborIndex(X, metric, method, parameters or {}, recall, 0)


def check(X, new, k, metric, found):
    """Lists must hold what the complete graph of the old points and each new one says; ties are in any order."""
    for i, (indices, values) in enumerate(zip(*found, strict=True)):
        both = sp.vstack([X, new[[i]]]).tocsr() if sp.issparse(X) else np.concatenate([X, new[[i]]])
        graph = neighbor_graph(both, "all", metric)
        edges = graph.weights[graph.indptr[-2] :]
        closeness = edges if graph.kind == "similarity" else -edges
        floor = {"jaccard": -1.0}.get(metric, 0.0 if sp.issparse(X) and metric != "hamming" else -np.inf)
        order = np.argsort(-closeness, kind="stable")[: min(k, (closeness > floor).sum())]
        filled = np.append(edges[order], [0.0] * (k - len(order)))
        np.testing.assert_array_equal(values, filled.astype(np.float32))
        assert (indices[len(order) :] == -1).all()
        there = indices[: len(order)]
        assert len(set(there)) == len(there)
        np.testing.assert_array_equal(edges[there], values[: len(order)])


@st.composite
def points(draw, dtypes=("f2", "f4", "f8", "i1", "u1")):
    """Old and new points with many ties and copies, some of them far away, and a number of neighbours."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, more, d = draw(st.integers(1, 40)), draw(st.integers(1, 12)), draw(st.integers(1, 9))
    dtype = draw(st.sampled_from(dtypes))
    values = rng.integers(0, 4, (n + more, d)) if draw(st.booleans()) else 30 * rng.random((n + more, d))
    values[rng.integers(n, n + more)] = values[rng.integers(n)]
    both = values.astype(dtype)
    return both[:n], both[n:], draw(st.integers(1, n))


@pytest.mark.filterwarnings("ignore:[0-9]+ of [0-9]+ points are all zero:UserWarning")
@pytest.mark.parametrize("method", ["exact", "kdtree", "cells"])
@pytest.mark.parametrize("metric", DENSE)
@given(given_points=points())
@settings(max_examples=25)
def test_queries_find_the_neighbours_of_the_complete_graph(method, metric, given_points):
    X, new, k = given_points
    found = fitted(X, metric, method).search(new, k, 1, None)
    check(X, new, k, metric, found)
    np.testing.assert_array_equal(found, fitted(X, metric, method).search(new, k, 3, None))
    if method != "exact":
        np.testing.assert_array_equal(found, fitted(X, metric).search(new, k, 2, None))


@pytest.mark.filterwarnings("ignore:[0-9]+ of [0-9]+ points are all zero:UserWarning")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("metric", SPARSE)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_sparse_queries_find_the_neighbours_of_the_complete_graph(metric, form, seed):
    rng = np.random.default_rng(seed)
    n, more = rng.integers(1, 30), rng.integers(1, 10)
    both = (rng.random((n + more, rng.integers(1, 12))) < 0.4).astype(np.float32)
    if metric in ("cosine", "dot"):
        form = sp.csr_array
        both *= rng.integers(1, 5, both.shape)
    both[n] = both[0]
    X, new, k = form(both[:n]), form(both[n:]), int(rng.integers(1, n + 1))
    check(X, new, k, metric, fitted(X, metric).search(new, k, 2, None))
    assert fitted(X, metric).find_equal(new, 2)[0] == 0


@pytest.mark.parametrize("metric", DENSE)
def test_cells_reach_the_recall_for_each_query_independently(metric):
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(30, 24))
    both = (centers[rng.integers(30, size=5000)] + 0.3 * rng.normal(size=(5000, 24))).astype(np.float32)
    X, new = both[:4000], both[4000:]
    exact, _ = fitted(X, metric).search(new, 10, 2, None)
    graph = neighbor_graph(X, 10, metric, "cells")
    for known, homes in ((graph.parameters, graph.cells), (graph.parameters, None), ({}, None)):
        cells = NeighborIndex(X, metric, "cells", known, 0.95, 0, homes)
        found, values = cells.search(new, 10, 1, None)
        assert np.mean([len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)]) > 9.3
        again, same = cells.search(cells.convert_queries(new[::-7])[1], 10, 3, None)
        np.testing.assert_array_equal(again, found[::-7])
        np.testing.assert_array_equal(same, values[::-7])
        again, _ = pickle.loads(pickle.dumps(cells)).search(new, 10, 2, None)
        np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("method", ["exact", "kdtree", "cells"])
@pytest.mark.parametrize("length", [1e3, 1e9, 1e17])
def test_distant_queries_have_neighbours(method, length):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 6)).astype(np.float32)
    new = np.concatenate([X[:5] + np.float32(0.01), length * X[:5]]).astype(np.float32)
    found, values = fitted(X, "euclidean", method, recall=0.99).search(new, 4, 2, None)
    assert np.isfinite(values).all()
    exact = np.sort(np.linalg.norm(X[None].astype(float) - new[:, None], axis=2), axis=1)[:, :4]
    np.testing.assert_allclose(values, exact, rtol=1e-3 if method == "cells" else 1e-6)
    assert found[:5, 0].tolist() == [0, 1, 2, 3, 4]


def test_values_beyond_float32_are_an_error():
    with pytest.raises(ValueError, match=r"largest magnitude in X is 1e\+30, .*exceed float32: scale X down"):
        fitted(np.ones((3, 2)), "sqeuclidean").search(np.full((1, 2), 1e30), 1, 1, None)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1"])
def test_equal_points_are_found(dtype):
    X = np.array([[1, 2], [3, 4], [1, 2], [5, 6]], dtype)
    points = fitted(X, "dot")
    _, new = points.convert_queries([[5, 6], [1, 2], [2, 1]])
    assert points.find_equal(new, 2).tolist() == [3, 0, -1]
    assert fitted(sp.csr_array(X), "cosine").find_equal(sp.csr_array(new), 2).tolist() == [3, 0, -1]


def test_queries_are_converted_to_the_dtype_of_the_fitted_points():
    points = fitted(np.ones((3, 2), np.float32), "euclidean")
    assert points.convert_queries(np.full((1, 2), 0.1))[1].dtype == np.float32
    with pytest.raises(ValueError, match=r"X\[0, 0\] is inf"):
        points.convert_queries([[1e50, 0.0]])
    bits = fitted(np.ones((3, 2), np.uint8), "euclidean")
    same, new = bits.convert_queries([[1.0, 0.0]])
    assert same is bits
    assert new.dtype == np.uint8
    floats, new = bits.convert_queries([[0.5, 0.0]])
    assert floats.X.dtype == new.dtype == np.float32
    assert bits.X.dtype == np.uint8
