import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import graphs
from hypothesis import given
from hypothesis import strategies as st

from agglo import NeighborGraph


@given(graphs())
def test_graphs_keep_their_invariants(graph):
    checked = NeighborGraph(graph.indptr, graph.indices, graph.weights, graph.kind, graph.missing)
    assert checked.n_edges == graph.n_edges
    matrix = graph.to_scipy().toarray()
    np.testing.assert_array_equal(matrix, matrix.T)


@given(graphs())
def test_scipy_round_trip(graph):
    again = NeighborGraph.from_scipy(graph.to_scipy(), kind=graph.kind, missing=graph.missing)
    np.testing.assert_array_equal(again.indptr, graph.indptr)
    np.testing.assert_array_equal(again.indices, graph.indices)
    np.testing.assert_array_equal(again.weights, graph.weights)
    assert again.missing == graph.missing


@given(st.integers(0, 2**32 - 1), st.sampled_from(["similarity", "distance"]), st.sampled_from([1, 2, 8]))
def test_union_keeps_the_closest_of_parallel_edges_and_drops_self_loops(seed, kind, n_jobs):
    rng = np.random.default_rng(seed)
    n, m = 8, 60
    i, j, w = rng.integers(0, n, m), rng.integers(0, n, m), (rng.integers(-3, 4, m) / 2).astype(np.float32)
    graph = NeighborGraph.from_edges(i, j, w, n_points=n, kind=kind, n_jobs=n_jobs)
    closest = max if kind == "similarity" else min
    expected = {}
    for a, b, weight in zip(i.tolist(), j.tolist(), w.tolist(), strict=True):
        if a != b:
            pair = (min(a, b), max(a, b))
            expected[pair] = closest(weight, expected.get(pair, weight))
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    found = {
        (a, b): v for a, b, v in zip(rows.tolist(), graph.indices.tolist(), graph.weights.tolist(), strict=True)
    }
    assert found == expected | {(b, a): v for (a, b), v in expected.items()}


def test_neighbour_lists_with_gaps():
    graph = NeighborGraph.from_neighbors(
        [[1, 2], [0, -1], [-1, -1]], [[0.5, 0.25], [0.5, 9], [9, 9]], kind="similarity"
    )
    assert graph.to_scipy().toarray().tolist() == [[0, 0.5, 0.25], [0.5, 0, 0], [0.25, 0, 0]]


def test_explicit_zeros_are_edges():
    matrix = sp.coo_array((np.zeros(1), ([0], [1])), shape=(3, 3))
    assert NeighborGraph.from_scipy(matrix, kind="distance").n_edges == 1


def test_missing_by_default():
    assert NeighborGraph.from_edges([0], [1], [3.0], kind="similarity").missing == 0
    assert NeighborGraph.from_edges([0, 1], [1, 2], [3.0, 7.0], kind="distance").missing == 7
    assert NeighborGraph.from_edges([0], [1], [3.0], kind="distance", missing=9).missing == 9
    assert NeighborGraph.from_edges([], [], [], n_points=2, kind="distance").missing == 0


def test_pickle():
    graph = NeighborGraph.from_edges([0], [1], [3.0], kind="similarity", metric="dot")
    again = pickle.loads(pickle.dumps(graph))
    assert repr(again) == repr(graph)
    assert again.metric == "dot"


def arrays(indptr, indices, weights):
    return np.array(indptr, np.int64), np.array(indices, np.int32), np.array(weights, np.float32)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0, 1, 1], [1], [1]), r"edge \(0, 1\) has no edge \(1, 0\) to match.*from_scipy"),
        (([0, 1, 2], [1, 0], [1, 2]), r"edges \(0, 1\) and \(1, 0\) differ in weight"),
        (([0, 1, 2], [0, 0], [1, 1]), "point 0 has an edge to itself"),
        (([0, 2, 3, 4], [2, 1, 0, 0], [1, 1, 1, 1]), "indices of row 0 are not strictly increasing"),
        (([0, 1, 2], [5, 0], [1, 1]), r"edge \(0, 5\) names a point outside 0\.\.1"),
        (([0, 1, 2], [-1, 0], [1, 1]), r"edge \(0, -1\) names a point outside"),
        (([0, 2, 1], [1, 0], [1, 1]), "indptr decreases at row 1"),
        (([1, 1, 2], [1, 0], [1, 1]), "indptr must start at 0"),
        (([0, 1, 3], [1, 0], [1, 1]), "indptr ends at 3 but there are 2 indices and 2 weights"),
        (([0], [], []), "the graph is empty"),
        (([0, 1, 2], [1, 0], [np.nan, np.nan]), r"weights\[0\] is nan: weights must be finite"),
    ],
)
def test_broken_arrays_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        NeighborGraph(*arrays(*columns), kind="similarity")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: NeighborGraph.from_edges([0], [1], [1.0], kind="sim"), ValueError, "kind='sim' is unknown"),
        (lambda: NeighborGraph.from_edges([0], [1, 2], [1.0], kind="distance"), ValueError, "of one length"),
        (lambda: NeighborGraph.from_edges([0.5], [1], [1.0], kind="distance"), TypeError, "must be integers"),
        (lambda: NeighborGraph.from_edges([-1], [1], [1.0], kind="distance"), ValueError, "sources holds -1"),
        (
            lambda: NeighborGraph.from_edges([0], [9], [1.0], n_points=3, kind="distance"),
            ValueError,
            "names point 9",
        ),
        (lambda: NeighborGraph.from_edges([], [], [], kind="distance"), ValueError, "graph is empty"),
        (lambda: NeighborGraph.from_edges([2**31], [0], [1], kind="distance"), ValueError, r"at most 2\^30"),
        (
            lambda: NeighborGraph.from_edges([0], [1], [np.inf], kind="distance"),
            ValueError,
            r"weights\[0\] is inf",
        ),
        (lambda: NeighborGraph.from_edges([0], [1], [1e300], kind="distance"), ValueError, "finite float32"),
        (lambda: NeighborGraph.from_edges([0], [1], ["a"], kind="distance"), TypeError, "must be numbers"),
        (
            lambda: NeighborGraph.from_edges([0], [1], [1], kind="distance", missing="no"),
            ValueError,
            "missing='no'",
        ),
        (lambda: NeighborGraph.from_edges([0], [1], [1], kind="distance", missing=np.nan), ValueError, "finite"),
        (
            lambda: NeighborGraph.from_scipy(np.eye(3), kind="distance"),
            TypeError,
            "SciPy sparse matrix, got ndarray",
        ),
        (lambda: NeighborGraph.from_scipy(sp.eye_array(2, 3), kind="distance"), ValueError, r"square.*\(2, 3\)"),
        (
            lambda: NeighborGraph.from_neighbors([1, 0], [1, 1], kind="distance"),
            ValueError,
            r"\(points, neighbours\)",
        ),
        (
            lambda: NeighborGraph.from_neighbors([[7]], [[1.0]], kind="distance"),
            ValueError,
            r"holds 7, outside 0\.\.0",
        ),
        (lambda: NeighborGraph.from_neighbors([[0.0]], [[1.0]], kind="distance"), TypeError, "must be integers"),
        (lambda: NeighborGraph.from_edges([0], [1], [1], kind="distance", n_jobs=0), ValueError, "n_jobs=0"),
    ],
)
def test_bad_input_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("hole", [np.inf, np.nan, np.finfo(np.float32).max])
def test_neighbours_that_were_not_found_may_have_any_value(hole):
    graph = NeighborGraph.from_neighbors(
        [[0, 1, -1], [1, 0, 2], [-1, -1, -1]], [[0, 2, hole], [0, 2, 3], [hole] * 3], kind="distance"
    )
    assert graph.to_scipy().toarray().tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]
    assert graph.missing == 3


@pytest.mark.parametrize("cells", [[0, 1], [0, 1, 3], [0, -1, 1]])
def test_cells_must_be_one_a_point(cells):
    with pytest.raises(ValueError, match="cells must be a number from 0 to 2 for each of 3 points"):
        NeighborGraph([0, 0, 0, 0], np.empty(0, np.int32), np.empty(0, np.float32), "distance", cells=cells)
