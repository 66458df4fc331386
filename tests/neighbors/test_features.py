"""Sparse points, sets and bits from one end to the other: clusterers and command line."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runs import run

from agglo import HAC, SCC, Affinity
from agglo.io.points import read_points


def blocks(seed=0):
    """Thirty points in three groups that have no feature in common."""
    rng = np.random.default_rng(seed)
    groups = [(rng.random((10, 12)) < 0.7) | np.eye(10, 12, dtype=bool) for _ in range(3)]
    return sp.block_diag([sp.coo_array(group) for group in groups], format="csr").astype(np.float32)


@pytest.mark.parametrize("clusterer", [SCC, Affinity, HAC])
@pytest.mark.parametrize("metric", ["cosine", "dot", "jaccard", "hamming"])
def test_clusterers_support_sparse_points(clusterer, metric):
    X = blocks()
    model = clusterer(3, metric=metric, n_neighbors=8).fit(X)
    assert model.graph_.metric == metric
    assert model.n_features_in_ == 36
    dense = clusterer(3, metric=metric, n_neighbors=8).fit(X.toarray())
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    if metric != "hamming":
        np.testing.assert_array_equal(model.labels_, np.repeat([2, 1, 0], 10))


def test_clusterers_reject_sparse_points_for_dense_metrics():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        SCC(metric="euclidean").fit(blocks())


@pytest.mark.parametrize("format_", ["csr", "csc", "coo", "bsr"])
def test_files_of_sparse_matrices(tmp_path, format_):
    X = blocks()
    sp.save_npz(tmp_path / "points.npz", X.asformat(format_))
    points = read_points(tmp_path / "points.npz")
    assert (points.X != X).nnz == 0


def test_files_of_the_arrays_of_a_matrix_with_classes(tmp_path):
    X = blocks()
    y = np.repeat([0, 1, 2], 10)
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape), "y": y}
    np.savez(tmp_path / "points.npz", **arrays)
    points = read_points(tmp_path / "points.npz", label_column="y")
    assert (points.X != X).nnz == 0
    np.testing.assert_array_equal(points.labels, y)


@pytest.mark.parametrize(("metric", "code"), [("cosine", 0), ("jaccard", 0), ("hamming", 0), ("euclidean", 2)])
def test_command_line(tmp_path, metric, code):
    sp.save_npz(tmp_path / "points.npz", blocks())
    command = ["fit", tmp_path / "points.npz", "--metric", metric, "-k", 9, "-o", tmp_path / "run", "-q"]
    _, error = run(*command, code=code)
    if code:
        assert "Sparse data was passed for X, but dense data is required" in error


def test_command_line_with_a_matrix_that_is_not_finite(tmp_path):
    X = blocks()
    X.data[3] = np.nan
    sp.save_npz(tmp_path / "points.npz", X)
    _, error = run("fit", tmp_path / "points.npz", "-o", tmp_path / "run", code=3)
    assert "but points must be finite" in error
