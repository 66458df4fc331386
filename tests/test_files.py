import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agglo.files import read_labels, read_points, write_labels

X = np.array([[1.0, 2.0], [3.5, 4.0], [5.0, 6.0]])
KINDS = ["a", "b", "a"]


@pytest.fixture
def frame():
    return pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "kind": KINDS})


# What can be read


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", "?", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_are_mapped_as_they_are(tmp_path, dtype, order):
    np.save(tmp_path / "a.npy", np.asarray(X.astype(dtype), order=order))
    points = read_points(tmp_path / "a.npy")
    assert isinstance(points.X, np.memmap)
    assert points.X.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(points.X, X.astype(dtype))
    assert (points.columns, points.labels) == (None, None)


def test_npz_files_have_an_array_x_or_the_only_fitting_one(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=X, Z=X + 1, y=[7, 8, 9])
    np.testing.assert_array_equal(read_points(path).X, X)
    np.testing.assert_array_equal(read_points(path, array="Z").X, X + 1)
    np.testing.assert_array_equal(read_points(path, label_column="y").labels, [7, 8, 9])
    np.testing.assert_array_equal(read_labels(path), [7, 8, 9])
    np.savez_compressed(path, embedding=X, ids=[1, 2, 3])
    np.testing.assert_array_equal(read_points(path).X, X)
    np.testing.assert_array_equal(read_labels(path), [1, 2, 3])


def test_tables_give_their_numeric_columns(tmp_path, frame):
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    for name in ("a.parquet", "a.csv", "a.tsv"):
        with pytest.warns(UserWarning, match=rf"{name}: left out 'kind', not being numbers; .* --columns"):
            points = read_points(tmp_path / name)
        np.testing.assert_array_equal(points.X, X)
        assert points.columns == ["x", "y"]
        labelled = read_points(tmp_path / name, label_column="kind")
        np.testing.assert_array_equal(labelled.X, X)
        assert labelled.labels.tolist() == KINDS
        assert read_labels(tmp_path / name, column="kind").tolist() == KINDS
        chosen = read_points(tmp_path / name, columns=["y"])
        np.testing.assert_array_equal(chosen.X, X[:, 1:])


def test_an_index_that_pandas_stored_is_no_feature(tmp_path, frame):
    frame[["x", "y"]].set_index(pd.Index([30, 10, 20])).to_parquet(tmp_path / "a.parquet")
    assert read_points(tmp_path / "a.parquet").columns == ["x", "y"]


def test_columns_of_several_types_become_one_that_holds_them_all(tmp_path):
    columns = {
        "small": pa.array([1, 2], pa.int8()),
        "half": pa.array(np.array([0.5, 1.5], "f2")),
        "yes": pa.array([True, False]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    points = read_points(tmp_path / "a.parquet").X
    assert points.dtype == np.float16
    np.testing.assert_array_equal(points, [[1, 0.5, 1], [2, 1.5, 0]])
    columns["price"] = pa.array([decimal.Decimal("1.25"), decimal.Decimal("2.5")])
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    np.testing.assert_array_equal(read_points(tmp_path / "a.parquet").X[:, 3], [1.25, 2.5])


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 2)])
def test_a_column_of_lists_is_a_table_of_its_own(tmp_path, kind):
    table = pa.table({"vector": pa.array(X.tolist(), kind), "name": KINDS})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    points = read_points(tmp_path / "a.parquet", label_column="name")
    np.testing.assert_array_equal(points.X, X.astype(kind.value_type.to_pandas_dtype()))
    assert points.columns == ["vector"]


def test_polars_files_are_read(tmp_path):
    pl.DataFrame({"v": X.tolist(), "kind": pl.Series(KINDS, dtype=pl.Categorical)}).write_parquet(
        tmp_path / "a.parquet"
    )
    points = read_points(tmp_path / "a.parquet", label_column="kind")
    np.testing.assert_array_equal(points.X, X)
    assert points.labels.tolist() == KINDS


def test_csv_without_a_header(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    points = read_points(tmp_path / "a.csv", header=False)
    np.testing.assert_array_equal(points.X, [[1, 2], [3, 4]])
    assert points.columns == ["f0", "f1"]
    np.testing.assert_array_equal(read_labels(tmp_path / "a.csv", column="f1", header=False), [2, 4])


def test_decimals_may_come_late_in_a_csv_column(tmp_path):
    lines = ["x,y"] + ["1,2"] * 5_000_000 + ["0.5,2"]  # past the first block, which decides on types
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert read_points(tmp_path / "a.csv").X[-1, 0] == 0.5


def test_labels_that_were_written_are_read_again(tmp_path):
    labels = np.array([0, 1, 0, 2])
    for name in ("a.parquet", "a.csv", "a.npy", "A.CSV"):
        write_labels(labels, tmp_path / name)
        np.testing.assert_array_equal(read_labels(tmp_path / name), labels)
    assert (tmp_path / "a.csv").read_text() == "label\n0\n1\n0\n2\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["A.CSV", "a.csv", "a.npy", "a.parquet"]
    with pytest.raises(
        ValueError, match=r"labels cannot be written to .*a\.txt: end the name in one of \.parquet"
    ):
        write_labels(labels, tmp_path / "a.txt")


def test_labels_in_a_table_have_a_column_of_that_name(tmp_path):
    (tmp_path / "a.csv").write_text("id,label\n5,x\n6,y\n")
    assert read_labels(tmp_path / "a.csv").tolist() == ["x", "y"]


# What cannot


def test_files_that_are_not_there_or_of_no_known_kind(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"nope\.npy cannot be read: there is no such file; check its name"
    ):
        read_points(tmp_path / "nope.npy")
    with pytest.raises(ValueError, match=r"a\.txt is of no format that can be read: end its name in one of \.npy"):
        read_points(tmp_path / "a.txt")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="it is a folder or a device; pass the name of a file"):
        read_labels(tmp_path / "folder.csv")


def written(tmp_path, name):
    """A good file of that format, as bytes."""
    path = tmp_path / name
    if path.suffix == ".npy":
        np.save(path, np.arange(600.0).reshape(300, 2))
    elif path.suffix == ".npz":
        np.savez_compressed(path, X=np.arange(600.0).reshape(300, 2))
    else:
        pq.write_table(pa.table({"x": np.arange(300.0), "y": np.arange(300)}), path, write_page_checksum=True)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.parquet"])
def test_empty_truncated_and_foreign_files_are_errors(tmp_path, name):
    whole = written(tmp_path, name)
    for content in (b"", b"hello, world\n", b"\0" * 5000, *(whole[:n] for n in range(1, len(whole) - 1, 61))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            ValueError, match=rf"{name} cannot be read: it is damaged, cut short or no .* make it again"
        ):
            read_points(tmp_path / name)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.parquet"])
def test_damage_anywhere_is_an_error_or_does_no_harm(tmp_path, name):
    whole = written(tmp_path, name)
    noticed = 0
    for where in np.random.default_rng(0).integers(0, len(whole) if name != "a.npy" else 128, 200):
        (tmp_path / name).write_bytes(whole[:where] + bytes([whole[where] ^ 0x55]) + whole[where + 1 :])
        try:
            read_points(tmp_path / name)
        except ValueError as error:
            assert name in str(error)  # noqa: PT017
            noticed += 1
    assert noticed > 50


def test_arrays_of_objects_are_errors_and_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"a\.npy cannot be read: .* Python objects"):
        read_points(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", X=np.array([{}, 1], dtype=object))
    with pytest.raises(ValueError, match=r"a\.npz cannot be read: .*Object arrays cannot be loaded"):
        read_points(tmp_path / "a.npz")


def test_arrays_that_are_not_in_an_npz_file(tmp_path):
    np.savez(tmp_path / "a.npz", A=X, B=X, c=[1, 2])
    with pytest.raises(ValueError, match="has no array 'Z', but 'A', 'B', 'c': name one of them with --array"):
        read_points(tmp_path / "a.npz", array="Z")
    with pytest.raises(ValueError, match="has 2 arrays of 2 dimensions, but 'A', 'B', 'c': name one"):
        read_points(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"has no array 'y', but .*: name one of them with --label-column"):
        read_points(tmp_path / "a.npz", array="A", label_column="y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Empty CSV file"),
        ("x,y\n", "has no rows"),
        ("x,y\n1,2\n3\n", "Expected 2 columns, got 1"),
        ("x,x\n1,2\n", "has two columns 'x': give each a name of its own"),
        ("1,2\n3,4\n", r"starts with numbers \(1, 2\), not with the names of columns: pass --no-header"),
        ("x,y\n1,\n2,3\n", "has 1 empty entries in column 'y', the first in row 0: fill in values or drop"),
        ("x,y\n1,2\n2,NA\n", "column 'y', the first in row 1"),
        ("name\nfred\n", "has no numeric columns, but 'name': there are no points"),
    ],
)
def test_wrong_csv_files_are_errors(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_points(tmp_path / "a.csv")
    assert str(tmp_path / "a.csv") in str(caught.value)


def test_text_late_in_a_numeric_csv_column_is_an_error(tmp_path):
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 9_000_000 + "oops\n")
    with pytest.raises(ValueError, match=r"a\.csv cannot be read: .*'oops'.*; mend that line"):
        read_points(tmp_path / "a.csv")


def test_wrong_columns_are_errors(tmp_path, frame):
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    with pytest.raises(ValueError, match="has no column 'z', but 'x', 'y', 'kind'"):
        read_points(path, columns=["x", "z"])
    with pytest.raises(ValueError, match="has no column 'class', but 'x', 'y', 'kind'"):
        read_points(path, label_column="class")
    with pytest.raises(ValueError, match=r"has text or other things in column 'kind' \(type (large_)?string"):
        read_points(path, columns=["x", "kind"])
    with pytest.raises(ValueError, match="has no column 'label', but 'x', 'y', 'kind'"):
        read_labels(path)


def test_lists_that_are_not_points(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0]]}), path)
    with pytest.raises(ValueError, match="has 2 numbers in the first row of 'v', but 1 in row 1"):
        read_points(path)
    pq.write_table(pa.table({"v": [[1.0, 2.0], None]}), path)
    with pytest.raises(ValueError, match="has 1 empty entries in column 'v', the first in row 1"):
        read_points(path)
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0, None]]}), path)
    with pytest.raises(ValueError, match="has an empty entry in row 1 of 'v'"):
        read_points(path)
    pq.write_table(pa.table({"v": [[1.0, 2.0]], "x": [1.0]}), path)
    with pytest.raises(
        ValueError, match=r"has columns of lists \('v'\) and others \('x'\): name those .* --columns"
    ):
        read_points(path)


def test_options_that_mean_nothing_to_a_format_are_errors(tmp_path, frame):
    np.save(tmp_path / "a.npy", X)
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="has no columns with names, so none can be chosen: leave out --columns"):
        read_points(tmp_path / "a.npy", columns=["x"])
    with pytest.raises(
        ValueError, match="holds one array and no column 'y': pass a file of the classes with --labels"
    ):
        read_points(tmp_path / "a.npy", label_column="y")
    with pytest.raises(ValueError, match=r"is no \.npz file, so it has no array 'X': leave out --array"):
        read_points(tmp_path / "a.csv", array="X")
    with pytest.raises(ValueError, match="holds one array and no column 'y': leave out --label-column"):
        read_labels(tmp_path / "a.npy", column="y")
    with pytest.raises(ValueError, match=r"holds an array of shape \(3, 2\): labels are one-dimensional"):
        read_labels(tmp_path / "a.npy")


def test_labels_with_holes_are_errors(tmp_path):
    (tmp_path / "a.csv").write_text("label\n1\nNA\n")
    with pytest.raises(ValueError, match="has 1 empty entries in column 'label', the first in row 1"):
        read_labels(tmp_path / "a.csv")
