"""The scale of the points does not change the labels, unless it is too small or too large, which is an error."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import agglo
from agglo.points.points import MIN_LENGTH, MIN_SCALE

METRICS = ("cosine", "dot", "euclidean", "sqeuclidean")


def blobs(seed, n=40, columns=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)) + 4 * rng.normal(size=(5, columns))[rng.integers(5, size=n)]


def labels(X, metric, **options):
    return agglo.SCC(n_neighbors=5, metric=metric, n_clusters=5, **options).fit(X).labels_


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@settings(max_examples=30)
@given(
    exponent=st.integers(-120, 110) | st.integers(-1000, 300),
    seed=st.integers(0, 20),
    method=st.sampled_from(["exact", "kdtree"]),
)
@example(exponent=-140, seed=0, method="exact")
@example(exponent=-531, seed=0, method="exact")
@example(exponent=-531, seed=0, method="kdtree")
@example(exponent=-996, seed=0, method="exact")
@example(exponent=-45, seed=0, method="exact")
@example(exponent=60, seed=0, method="kdtree")
def test_a_graph_scales_with_its_points_or_is_an_error(metric, dtype, exponent, seed, method):
    X = blobs(seed).astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(X, exponent)
    assume(np.isfinite(scaled).all() and (np.ldexp(scaled.astype("f8"), -exponent) == X).all())
    power = {"cosine": 0, "euclidean": 1}.get(metric, 2)
    problem = ""
    try:
        graph = agglo.neighbor_graph(scaled, 5, metric, method)
    except ValueError as error:
        problem = str(error)
    if problem:
        assert ("scale X up" if exponent < 0 else "scale X down") in problem
        assert not (-90 / power if power else -490) <= exponent <= (115 / power if power else 300)
    else:
        expected = agglo.neighbor_graph(X, 5, metric, method)
        np.testing.assert_array_equal(graph.indptr, expected.indptr)
        np.testing.assert_array_equal(graph.indices, expected.indices)
        np.testing.assert_array_equal(graph.weights, np.ldexp(expected.weights, power * exponent))


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("exponent", [-45, 55])
def test_labels_do_not_depend_on_the_scale(metric, exponent):
    X = blobs(1)
    np.testing.assert_array_equal(labels(np.ldexp(X, exponent), metric), labels(X, metric))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("factor", [1e-160, 1e-300])
@pytest.mark.parametrize("n_neighbors", [5, "all"])
def test_points_that_are_too_small(metric, factor, n_neighbors):
    what = "row 0 of X" if metric == "cosine" else "largest range" if "euclid" in metric else "largest magnitude"
    with pytest.raises(ValueError, match=rf"{what}.*e-\d+.*scale X up"):
        agglo.neighbor_graph(factor * blobs(2), n_neighbors, metric)


@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_sparse_points_that_are_too_small(metric):
    X = np.abs(blobs(3))
    small = sp.csr_array(1e-160 * X)
    with pytest.raises(ValueError, match="scale X up"):
        agglo.neighbor_graph(small, 5, metric)
    model = agglo.SCC(metric=metric, n_neighbors=5, linkage="average").fit(sp.csr_array(X))
    if metric == "cosine":
        with pytest.raises(ValueError, match=r"row 40 of X.*scale X up"):
            model.predict(small)


def test_cosines_of_the_smallest_float32():
    X = np.ldexp(np.random.default_rng(4).integers(-8, 9, size=(30, 4)), -149).astype(np.float32)
    X = X[X.any(axis=1)]
    graphs = [agglo.neighbor_graph(rows, 4, method="exact") for rows in (X, np.ldexp(X, 149))]
    np.testing.assert_array_equal(graphs[0].indices, graphs[1].indices)
    np.testing.assert_array_equal(graphs[0].weights, graphs[1].weights)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_nearly_equal_points_among_others_are_allowed(metric):
    X = np.array([[0.0, 0.0], [1e-30, 0.0], [1e-200, 0.0], [3.0, 1.0], [4.0, 1.0]])
    graph = agglo.neighbor_graph(X, 2, metric)
    assert graph.max_weight >= 1
    model = agglo.SCC(metric=metric, n_neighbors=2, linkage="average").fit(X[2:])
    assert model.predict([[1e-200, 1e-200]]) == model.labels_[0]
    model.partial_fit(X[:2] * 1e-130)
    assert len(model.labels_) == 5


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_the_distance_from_the_origin_is_no_scale(metric):
    tiny = np.array([[1.0, 0.0], [1.0, 1e-40], [1.0, 3e-40]])
    with pytest.raises(ValueError, match=r"largest range of a column of X is 3e-40.*scale X up"):
        agglo.neighbor_graph(tiny, 1, metric)
    agglo.neighbor_graph(np.ones((4, 2)), 1, metric)


def test_queries_that_are_too_small():
    X = blobs(5)
    for metric in ("cosine", "dot"):
        model = agglo.SCC(metric=metric, n_neighbors=5, linkage="average").fit(X)
        for ask in (model.predict, model.partial_fit):
            with pytest.raises(ValueError, match="scale X up"):
                ask(1e-160 * X[:3])
    model = agglo.SCC(metric="cosine", n_neighbors=5, linkage="average").fit(X.astype(np.float32))
    with pytest.raises(ValueError, match=r"row 0 of X is .*float32, the type of the fitted points.*scale X up"):
        model.predict(1e-60 * X[:3])


@pytest.mark.parametrize("linkage", ["exact-average", "centroid", "ward"])
@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean"])
def test_vector_linkages_of_points_that_are_too_small(linkage, metric):
    X = blobs(6)
    graph = agglo.neighbor_graph(X, 5, metric)
    with pytest.raises(ValueError, match="scale X up"):
        agglo.scc(graph, linkage=linkage, X=1e-160 * X)


def test_the_bounds_keep_weights_precise():
    least = np.finfo(np.float32).tiny
    assert MIN_SCALE["euclidean"] * 2.0**-26 >= least
    assert MIN_SCALE["sqeuclidean"] ** 2 * 2.0**-26 >= least
    assert np.finfo(np.float64).tiny <= MIN_LENGTH**2 * 2.0**-22
