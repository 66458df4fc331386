import copy
import dataclasses
import pickle
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import graphs
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import agglo
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
def test_invalid_arrays_are_errors(columns, message):
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
            "an edge has index 9",
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
def test_errors_name_the_invalid_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("hole", [np.inf, np.nan, np.finfo(np.float32).max])
def test_values_of_missing_neighbours_are_ignored(hole):
    graph = NeighborGraph.from_neighbors(
        [[0, 1, -1], [1, 0, 2], [-1, -1, -1]], [[0, 2, hole], [0, 2, 3], [hole] * 3], kind="distance"
    )
    assert graph.to_scipy().toarray().tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]
    assert graph.missing == 3


@pytest.mark.parametrize("cells", [[0, 1], [0, 1, 3], [0, -1, 1]])
def test_cells_must_have_one_entry_per_point(cells):
    with pytest.raises(ValueError, match="cells must have one integer from 0 to 2 for each of 3 points"):
        NeighborGraph([0, 0, 0, 0], np.empty(0, np.int32), np.empty(0, np.float32), "distance", cells=cells)


def path_of_four():
    return NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 2.0, 3.0], kind="distance")


def joblib_copy(graph, folder):
    """Return the graph as a process of joblib gets it: with arrays that are mapped from a file."""
    joblib.dump(graph, folder / "graph.joblib")
    return joblib.load(folder / "graph.joblib", mmap_mode="r")


@pytest.mark.parametrize(
    "duplicate",
    [
        lambda graph, folder: graph,
        lambda graph, folder: copy.copy(graph),
        lambda graph, folder: copy.deepcopy(graph),
        lambda graph, folder: dataclasses.replace(graph, missing=9.0),
        lambda graph, folder: pickle.loads(pickle.dumps(graph)),
        lambda graph, folder: pickle.loads(pickle.dumps(graph, protocol=2)),
        joblib_copy,
    ],
)
@pytest.mark.parametrize("of_core", [True, False])
def test_arrays_of_a_graph_are_read_only(duplicate, of_core, tmp_path):
    graph = path_of_four()
    if not of_core:
        columns = (column.copy() for column in (graph.indptr, graph.indices, graph.weights))
        graph = NeighborGraph(*columns, kind="distance", cells=np.zeros(4, np.int32))
    graph = duplicate(graph, tmp_path)
    for column in (graph.indptr, graph.indices, graph.weights, graph.cells):
        if column is not None:
            with pytest.raises(ValueError, match="read-only"):
                column[0] = 1
            with pytest.raises(ValueError, match="WRITEABLE"):
                column.flags.writeable = True
    assert agglo.scc(graph).n_leaves == 4


def test_a_graph_copies_writable_arrays():
    model = path_of_four()
    columns = [column.copy() for column in (model.indptr, model.indices, model.weights)]
    views = [column.view() for column in columns]
    for view in views:
        view.flags.writeable = False
    for arrays in (columns, views):
        graph = NeighborGraph(*arrays, kind="distance")
        for column, kept in zip(columns, (graph.indptr, graph.indices, graph.weights), strict=True):
            assert not np.shares_memory(column, kept)


def test_a_graph_keeps_read_only_arrays_without_a_copy():
    graph = path_of_four()
    again = NeighborGraph(graph.indptr, graph.indices, graph.weights, kind="distance")
    assert np.shares_memory(again.weights, graph.weights)
    assert np.shares_memory(again.indices, graph.indices)


def test_buffers_of_a_pickle_cannot_be_written_through():
    buffers = []
    data = pickle.dumps(path_of_four(), protocol=5, buffer_callback=buffers.append)
    memory = [bytearray(buffer.raw()) for buffer in buffers]
    graph = pickle.loads(data, buffers=memory)
    for buffer in memory:
        buffer[:] = b"\xff" * len(buffer)
    np.testing.assert_array_equal(graph.indices, path_of_four().indices)
    np.testing.assert_array_equal(graph.weights, path_of_four().weights)


def test_scipy_matrix_shares_read_only_arrays_and_its_copy_can_be_written():
    graph = path_of_four()
    matrix = graph.to_scipy()
    assert np.shares_memory(matrix.data, graph.weights)
    assert np.shares_memory(matrix.indices, graph.indices)
    with pytest.raises(ValueError, match="read-only"):
        matrix.data[0] = np.nan
    assert connected_components(matrix)[0] == 1
    changed = matrix.copy()
    changed.data[:] = 0
    changed.eliminate_zeros()
    assert changed.nnz == 0
    assert graph.weights.all()


def test_only_arrays_of_the_core_are_trusted():
    with pytest.raises(ValueError, match="not a neighbour graph"):
        NeighborGraph([0, 1, 2], [7, 0], [1.0, 1.0], kind="distance", checked=True)


@pytest.mark.parametrize("share", [2, -0.1, float("nan")])
def test_a_quantile_is_from_0_to_1(share):
    with pytest.raises(ValueError, match="is not a quantile: pass a number from 0 to 1"):
        path_of_four().quantile_above(0.0, True, share)


def broken(format, **arrays):
    """Return a SciPy matrix whose arrays were replaced after it was made, as SciPy allows."""
    matrix = sp.csr_array(np.ones((3, 3), np.float32)).asformat(format)
    for name, values in arrays.items():
        setattr(matrix, name, np.array(values))
    return matrix


@pytest.mark.parametrize(
    ("matrix", "cause"),
    [
        (broken("csr", indptr=[0, 6, 3, 9]), "indptr does not start at 0, or decreases"),
        (broken("csc", indptr=[0, 6, 3, 9]), "not a valid CSC matrix: indptr does not start at 0, or decreases"),
        (broken("csr", indptr=[0, 3, 6, 90]), "indptr ends at 90, with 9 indices and 9 values"),
        (broken("csr", indptr=[0, 3, 9]), "indptr has 3 entries, not 4"),
        (broken("csr", indices=[0, 1, 7] * 3), "indices go from 0 to 7, not from 0 to 2"),
        (broken("csc", indices=[0, 1, -1] * 3), "indices go from -1 to 1"),
        (broken("csr", data=[1.0]), "with 9 indices and 1 values"),
    ],
)
def test_invalid_matrices_are_errors(matrix, cause):
    with pytest.raises(ValueError, match=cause):
        NeighborGraph.from_scipy(matrix, kind="distance")


def test_ids_with_gaps_give_a_warning():
    with pytest.warns(UserWarning, match="has 5000001 points, of which at least 4999999 have no edge.*np.unique"):
        NeighborGraph.from_edges([5_000_000], [7], [1.0], kind="distance")
    with warnings.catch_warnings(action="error"):
        NeighborGraph.from_edges([5_000_000], [7], [1.0], kind="distance", n_points=5_000_001)
        NeighborGraph.from_edges([12], [7], [1.0], kind="distance")
