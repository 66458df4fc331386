"""Points that are kept small, or in a file: the same graph as of a copy in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import agglo
from agglo import _native
from agglo.io import points as files
from agglo.points.points import check_points

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
        assert agglo.neighbor_graph(X.astype(dtype), 5, "sqeuclidean", missing=None).missing == 4
    assert agglo.neighbor_graph(np.eye(20, dtype=np.int8), 5, "euclidean", missing=None).missing == 2
    same = np.full((20, 4), 64, np.uint8)
    assert agglo.neighbor_graph(same, 5, "sqeuclidean", missing=None).missing == 0


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_points_without_a_direction_are_told(dtype):
    X = np.ones((9000, 2), dtype)
    X[8500:8503] = 0
    with pytest.warns(UserWarning, match=r"3 of 9000 points are all zero \(the first is row 8500\)"):
        agglo.neighbor_graph(X, 2, "cosine")


# Files


@pytest.mark.parametrize("dtype", [*COMPACT, np.float32, np.float64])
@pytest.mark.parametrize("method", ["exact", "cells", "kdtree"])
def test_files_are_searched_where_they_are(tmp_path, dtype, method):
    X = compact(np.random.default_rng(4), 700, 3, dtype)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    points = check_points(mapped, compact=True)
    assert np.shares_memory(points, mapped)
    assert not points.flags.owndata
    assert_same(
        agglo.neighbor_graph(mapped, 5, "sqeuclidean", method), agglo.neighbor_graph(X, 5, "sqeuclidean", method)
    )


def test_a_search_of_a_file_needs_no_copy_of_it(tmp_path):
    """Nor any other array as large: beside the file there is the graph, and what a search notes of every point."""
    rows, columns = 6000, 2048  # 24 MB
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float16, (rows, columns))
    X[:] = np.random.default_rng(0).standard_normal((rows, columns))
    X.flush()
    program = """
import numpy as np, agglo
from agglo.neighbors.dense import DensePoints
from agglo.neighbors.search import are_unit
def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
X = np.load("X.npy", mmap_mode="r")
DensePoints.validate(X[:50], "cosine")
before = anonymous()
points = DensePoints.validate(X, "cosine", source=X)
are_unit(points.X)
print(anonymous() - before)
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(run.stdout) < rows * columns * 2 // 1024


def pages_of(name):
    """Kilobytes of a mapped file in this process's memory."""
    maps = Path("/proc/self/smaps").read_text()
    return int(maps.split(name)[1].split("Rss:")[1].split()[0])


@pytest.mark.parametrize("method", ["exact", "cells"])
def test_pages_of_a_file_are_given_back_after_the_search(tmp_path, method):
    X = np.random.default_rng(7).standard_normal((3000, 64))
    np.save(tmp_path / "forgotten.npy", X)
    mapped = np.load(tmp_path / "forgotten.npy", mmap_mode="r")
    assert mapped.sum() != 0
    assert pages_of("forgotten.npy") > 1000
    agglo.neighbor_graph(mapped[1000:], 5, "sqeuclidean", method, recall=0.5)
    assert pages_of("forgotten.npy") == 0
    np.testing.assert_array_equal(mapped, X)


def test_what_was_written_to_a_copy_of_pages_stays(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((50, 3)))
    for mode in ("c", "r+"):
        mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
        mapped[:] = np.arange(150.0).reshape(50, 3)
        agglo.neighbor_graph(mapped, 5, "sqeuclidean")
        np.testing.assert_array_equal(mapped, np.arange(150.0).reshape(50, 3))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8])
@pytest.mark.parametrize("form", ["fixed", "lists", "columns"])
@pytest.mark.parametrize("large", [False, True])
def test_parquet_is_read_by_row_groups_into_its_own_type(tmp_path, monkeypatch, dtype, form, large):
    monkeypatch.setattr(_native, "physical_memory", lambda: 0 if large else 2**40)
    X = (np.random.default_rng(5).random((250, 6)) * 100).astype(dtype)
    if form == "columns":
        table = pa.table({f"c{j}": X[:, j] for j in range(6)})
    else:
        kind = pa.list_(pa.from_numpy_dtype(dtype), 6) if form == "fixed" else pa.list_(pa.from_numpy_dtype(dtype))
        table = pa.table({"v": pa.array(list(X), kind)})
    pq.write_table(table, tmp_path / "X.parquet", row_group_size=40)
    points = files.read_points(tmp_path / "X.parquet").X
    assert points.dtype == dtype
    assert isinstance(points, np.memmap) == large
    np.testing.assert_array_equal(points, X)
    assert_same(agglo.neighbor_graph(points, 4, "euclidean"), agglo.neighbor_graph(X, 4, "euclidean"))


def test_what_is_wrong_in_a_later_row_group_is_named_by_its_row(tmp_path):
    rows = [[1.0, 2.0]] * 100
    for change, text in [
        ([1.0], r"column 'v' of .* has 2 numbers in its first row, but 1 in row 70: points need the same"),
        (None, r"1 empty cells in column 'v', the first in row 70"),
        ([1.0, None], r"column 'v' of .* has an empty entry in row 70: fill or drop it"),
    ]:
        table = pa.table({"v": [*rows[:70], change, *rows[70:]]})
        pq.write_table(table, tmp_path / "X.parquet", row_group_size=32)
        with pytest.raises(ValueError, match=text):
            files.read_points(tmp_path / "X.parquet")


def test_files_that_are_cut_short(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((100, 8), np.float16))
    pq.write_table(pa.table({"a": np.arange(1000.0)}), tmp_path / "X.parquet", row_group_size=100)
    for name in ("X.npy", "X.parquet"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=rf"{name} cannot be read: it is damaged, truncated"):
            files.read_points(tmp_path / name)


def test_numbers_that_are_not_finite_are_named_in_files_too(tmp_path):
    X = np.ones((9000, 3), np.float16)
    X[8000, 2] = np.nan
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match=r"X\[8000, 2\] is nan, but points must be finite"):
        agglo.neighbor_graph(np.load(tmp_path / "X.npy", mmap_mode="r"), 3)
