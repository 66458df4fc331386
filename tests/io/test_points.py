import decimal
import errno
import gzip
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglo.io.points import read_labels, read_points, write_labels
from agglo.io.tables import CsvOptions

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
        with pytest.warns(UserWarning, match=rf"{name}: left out 'kind', without numbers$"):
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
    with pytest.warns(UserWarning, match="left out '__index_level_0__', the index of its rows"):
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
    points = read_points(tmp_path / "a.csv", csv=CsvOptions(header=False))
    np.testing.assert_array_equal(points.X, [[1, 2], [3, 4]])
    assert points.columns == ["f0", "f1"]
    np.testing.assert_array_equal(
        read_labels(tmp_path / "a.csv", column="f1", csv=CsvOptions(header=False)), [2, 4]
    )


def test_compressed_csv_files_are_read(tmp_path):
    for name, mark in (("a.csv.gz", ","), ("A.TSV.GZ", "\t")):
        (tmp_path / name).write_bytes(gzip.compress(f'x{mark}y\n1{mark}"2"\n3{mark}4\n'.encode()))
        np.testing.assert_array_equal(read_points(tmp_path / name).X, [[1, 2], [3, 4]])
    whole = (tmp_path / "a.csv.gz").read_bytes()
    for content in (whole[:-5], whole[:12], b"x,y\n1,2\n"):
        (tmp_path / "a.csv.gz").write_bytes(content)
        with pytest.raises(
            ValueError, match=r"a\.csv\.gz cannot be read: it is damaged, truncated or not a valid CSV"
        ):
            read_points(tmp_path / "a.csv.gz")


def test_decimals_may_come_late_in_a_csv_column(tmp_path, monkeypatch):
    monkeypatch.setattr("agglo.io.tables._BLOCK", 100)  # bytes that decide on types
    lines = ["x,y"] + ["1,2"] * 100 + ["0.5,2"]
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


def written_text(path, text="x\n"):
    path.write_text(text)
    return path


def test_files_that_are_not_there_or_of_no_known_kind(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"nope\.npy cannot be read: there is no such file; check its name"
    ):
        read_points(tmp_path / "nope.npy")
    with pytest.raises(
        ValueError,
        match=r"a\.txt cannot be read: files whose names end in '\.txt' are not supported: pass one of \.npy",
    ):
        read_points(written_text(tmp_path / "a.txt"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="it is a folder or a device: pass the name of a file"):
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
            ValueError, match=rf"{name} cannot be read: it is damaged, truncated or not a .* create it again"
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
    with pytest.raises(ValueError, match=r"a\.npz cannot be read: it holds Python objects .*: save numbers"):
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
        ("", "the file is empty: pass a file with rows"),
        ("x,y\n", "has no rows"),
        ("x,y\n1,2\n3\n", r"has 1 cells in row 1 \(from 0\), but 2 columns: correct that row"),
        ("x,x\n1,2\n", "has two columns 'x': rename one of them"),
        ("1,2\n3,4\n", r"starts with numbers \(1, 2\), data or names of columns: pass --no-header if"),
        (
            "x,y\n1,\n2,3\n",
            r"has 1 empty cells in column 'y', the first in row 0 \(from 0\): fill in values, or drop",
        ),
        ("x,y\n1,2\n2,NA\n", "column 'y', the first in row 1"),
        ("name\nfred\n", "has no columns of numbers, but 'name': points need numbers"),
    ],
)
def test_wrong_csv_files_are_errors(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_points(tmp_path / "a.csv")
    assert str(tmp_path / "a.csv") in str(caught.value)


@pytest.mark.parametrize("row", [0, 7, 600, 999])
def test_one_bad_cell_is_an_error_wherever_it_is(tmp_path, monkeypatch, row):
    monkeypatch.setattr("agglo.io.tables._BLOCK", 2000)  # bytes that decide on the types: about 300 rows
    lines = [f"{i % 7},{i % 5}.5,name {i}" for i in range(1000)]
    lines[row] = "1,oops,name"
    path = written_text(tmp_path / "a.csv", "\n".join(["x,y,name", *lines]) + "\n")
    message = rf"a\.csv has 'oops' in column 'y', row {row} \(from 0\), among numbers: .* with --drop y"
    for options in ({"drop": ["name"]}, {"columns": ["x", "y"]}):
        with pytest.raises(ValueError, match=message):
            read_points(path, **options)
    with pytest.warns(UserWarning, match="left out 'name', without numbers"):
        assert read_points(path, drop=["y"]).X.shape == (1000, 1)
    lines[row] = "1,2"
    path.write_text("\n".join(["x,y,name", *lines]) + "\n")
    with pytest.raises(ValueError, match=rf"has 2 cells in row {row} \(from 0\), but 3 columns: correct"):
        read_points(path, drop=["name"])
    with pytest.raises(ValueError, match=rf"has 2 cells in row {row} \(from 0\), but 3 columns: correct"):
        read_labels(path, column="name")


def test_truth_values_among_numbers_are_an_error(tmp_path):
    path = written_text(tmp_path / "a.csv", "x,y\n1.5,1\ntrue,2\n")
    with pytest.raises(ValueError, match=r"has 'true' in column 'x', row 1"):
        read_points(path)


# Columns that are no features


@pytest.mark.parametrize("header", ["", "Unnamed: 0", ' ,"Unnamed: 0"'])
def test_an_index_without_a_name_is_no_feature(tmp_path, header):
    count = header.count(",") + 1
    lines = ["7," * count + f"{a},{b}" for a, b in X]
    path = written_text(tmp_path / "a.csv", "\n".join([f"{header},x,y", *lines]))
    with pytest.warns(UserWarning, match=r"a\.csv: left out .*, the index of its rows$"):
        points = read_points(path)
    assert points.columns == ["x", "y"]
    np.testing.assert_array_equal(points.X, X)


def test_an_index_is_no_feature_though_its_metadata_are_lost(tmp_path):
    pq.write_table(pa.table({"x": [1.0, 3.0], "__index_level_0__": [4, 4]}), tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="left out '__index_level_0__', the index of its rows"):
        assert read_points(tmp_path / "a.parquet").columns == ["x"]
    pq.write_table(pa.table({"Unnamed: 0": [7, 7], "x": [1.0, 3.0]}), tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="left out 'Unnamed: 0', the index of its rows"):
        assert read_points(tmp_path / "a.parquet").columns == ["x"]


@st.composite
def row_numbers(draw):
    """Names and numbers of a column that only tells rows apart."""
    n = draw(st.integers(10, 60))
    first = draw(st.sampled_from([0, 1, 1000]))
    name = draw(st.sampled_from(["n", "id", "Index", "ROW_ID", "a b"]))
    return name, draw(st.permutations(range(first, first + n)))


@given(row_numbers(), st.sampled_from(["a.csv", "a.parquet"]))
@settings(max_examples=25)
def test_a_column_that_numbers_the_rows_is_an_error(tmp_path_factory, column, file):
    name, numbers = column
    path = tmp_path_factory.mktemp("tables") / file
    frame = pd.DataFrame({"x": np.linspace(0, 0.5, len(numbers)), name: numbers})
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    with pytest.raises(
        ValueError, match=rf"has a column '{name}' that .*: leave it out with --drop '?{name}'?, or"
    ):
        read_points(path)
    assert read_points(path, drop=[name]).columns == ["x"]
    assert read_points(path, label_column=name).columns == ["x"]
    np.testing.assert_array_equal(read_points(path, columns=[name, "x"]).X[:, 0], numbers)


def test_columns_named_like_identifiers_are_features_if_they_are_not_whole(tmp_path):
    path = written_text(tmp_path / "a.csv", "x,index\n1,1.52\n1,1.5\n")
    assert read_points(path).columns == ["x", "index"]
    path.write_text("x,index\n1,2\n1,2\n")
    with pytest.raises(ValueError, match="column 'index' that is named like an identifier"):
        read_points(path)


@pytest.mark.parametrize("name", ["customer_id", "user id", "userId", "UserID", "doc.uuid", "row", "#"])
def test_whole_numbers_named_like_identifiers_are_a_warning(tmp_path, name):
    for numbers in ([70, 30], [70, 70], np.random.default_rng(0).permutation(50) ** 2):
        frame = pd.DataFrame({"x": 0.5, name: numbers})
        frame.to_csv(tmp_path / "a.csv", index=False)
        with pytest.warns(UserWarning, match=f"'{name}' has whole numbers and is named like .*--drop '?{name}"):
            assert read_points(tmp_path / "a.csv").columns == ["x", name]
    pd.DataFrame({"x": [0.5, 1.5], "paid": [3, 4], "grid": [4, 7], "GRID": [8, 7], name: [0.5, 0.25]}).to_csv(
        tmp_path / "a.csv", index=False
    )
    assert len(read_points(tmp_path / "a.csv").columns) == 5  # no warning, which would be an error


def test_sorted_whole_numbers_without_repeats_are_a_warning(tmp_path):
    lines = [f"{2 * i * i},{i % 3}" for i in range(30)]
    path = written_text(tmp_path / "a.csv", "\n".join(["t,x", *lines]))
    with pytest.warns(
        UserWarning,
        match="column 't' has whole numbers and is sorted.*; leave it out with --drop t if",
    ):
        assert read_points(path).columns == ["t", "x"]


def test_whole_numbers_that_repeat_and_a_column_alone_are_features(tmp_path):
    path = written_text(tmp_path / "a.csv", "\n".join(["a,b", *(f"{i % 20},{(i * i) % 20}" for i in range(40))]))
    assert read_points(path).columns == ["a", "b"]
    path.write_text("\n".join(["id", *map(str, range(40))]))
    assert read_points(path).columns == ["id"]


# Encodings, delimiters and headers


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings(tmp_path, encoding, newline):
    path = tmp_path / "a.csv"
    path.write_bytes(newline.join(["größe,x,kind", "1,2,ä", "3,4,ö", ""]).encode(encoding))
    points = read_points(path, label_column="kind", csv=CsvOptions(encoding=encoding))
    assert points.columns == ["größe", "x"]
    assert points.labels.tolist() == ["ä", "ö"]
    if not encoding.startswith("utf-8"):
        with pytest.raises(ValueError, match=rf"{path} .*: pass .*--encoding {encoding.removesuffix('-be')}"):
            read_points(path)


def test_bytes_that_are_not_utf8_late_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("agglo.io.tables._START", 100)
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,kind\n" + b"1,a\n" * 100 + b"2,\xe4\n")
    message = r"a\.csv is not encoded as UTF-8 in column 'kind', row 100 \(from 0\): .*--encoding latin-1"
    with pytest.raises(ValueError, match=message):
        read_labels(path, column="kind")
    assert read_labels(path, column="kind", csv=CsvOptions(encoding="latin-1"))[-1] == "ä"


def test_encodings_and_delimiters_that_are_none():
    with pytest.raises(ValueError, match="--encoding utf-9 is unknown: pass one such as utf-8"):
        CsvOptions(encoding="utf-9")
    for delimiter in ("", ";;", "\n", '"', "ä"):
        with pytest.raises(ValueError, match=r"--delimiter .* cannot separate cells: pass one character"):
            CsvOptions(delimiter=delimiter)


@pytest.mark.parametrize(("mark", "shown"), [(";", "';'"), ("|", r"'\|'"), ("\t", "'tab'")])
def test_delimiters(tmp_path, mark, shown):
    path = written_text(tmp_path / "a.csv", f"x{mark}y\n1{mark}2\n")
    with pytest.raises(ValueError, match=rf"that looks separated by {shown}: pass --delimiter {shown}"):
        read_points(path)
    np.testing.assert_array_equal(read_points(path, csv=CsvOptions(delimiter=mark)).X, [[1, 2]])
    path.write_text(f"x{mark}y\n1,5{mark}2\n")  # decimal commas
    with pytest.raises(ValueError, match=rf"that looks separated by {shown}: pass --delimiter {shown}"):
        read_points(path)


def test_names_of_columns_may_be_numbers(tmp_path):
    pd.DataFrame(X).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="pass --no-header if they are data, --header if they are names"):
        read_points(tmp_path / "a.csv")
    np.testing.assert_array_equal(read_points(tmp_path / "a.csv", csv=CsvOptions(header=True)).X, X)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"x\n1\n", mtime=0), "it is compressed by gzip: rename it so that its name ends in .gz"),
        (b"PK\x03\x04...", "it is a zip archive or an Excel workbook: extract it, or save its sheet as CSV"),
        (b"PAR1...", r"it is a Parquet file: rename it"),
        (b"x,y\n\0,1\n", "it has NUL bytes: pass --encoding utf-16 if"),
    ],
)
def test_other_formats_named_csv(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_points(tmp_path / "a.csv")


def test_newlines_in_quotes_may_be_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr("agglo.io.tables._BLOCK", 500)
    rows = [f'{i % 7},{i % 3},"a\n""b"", {i}"' for i in range(300)]
    path = written_text(tmp_path / "a.csv", "\n".join(["x,y,text", *rows]))
    points = read_points(path, label_column="text")
    np.testing.assert_array_equal(points.X, [[i % 7, i % 3] for i in range(300)])
    assert points.labels[299] == 'a\n"b", 299'


@pytest.mark.parametrize("row", [0, 40, 98])
def test_a_quote_that_is_not_closed_is_an_error(tmp_path, row):
    lines = [f"{i % 7},name {i}" for i in range(100)]
    lines[row] = '1,"open'
    path = written_text(tmp_path / "a.csv", "\n".join(["x,name", *lines]) + "\n")
    with pytest.raises(
        ValueError, match=rf"has a quote in row {row} \(from 0\) that is not closed: put quotes around"
    ):
        read_points(path, label_column="name")
    lines[row] = '1,5" pipe'  # quotes inside of a text mean nothing
    path.write_text("\n".join(["x,name", *lines]) + "\n")
    assert read_points(path, label_column="name").labels[row] == '5" pipe'


def test_large_whole_numbers_stay_different_labels(tmp_path):
    path = written_text(tmp_path / "a.csv", f"label\n{2**53}\n{2**53 + 1}\n")
    assert read_labels(path).tolist() == [2**53, 2**53 + 1]


def test_labels_of_any_type_may_come_late(tmp_path, monkeypatch):
    monkeypatch.setattr("agglo.io.tables._BLOCK", 100)
    path = written_text(tmp_path / "a.csv", "label\n" + "1\n" * 200 + "other\n")
    assert read_labels(path).tolist() == ["1"] * 200 + ["other"]


def test_labels_as_pandas_writes_a_series(tmp_path):
    pd.Series(KINDS).to_csv(tmp_path / "a.csv")
    assert read_labels(tmp_path / "a.csv").tolist() == KINDS


def test_a_full_temporary_folder_is_no_damage(tmp_path, frame, monkeypatch):
    def reserve(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    frame[["x", "y"]].to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr("agglo._native.physical_memory", lambda: 1)
    monkeypatch.setattr(os, "posix_fallocate", reserve, raising=False)
    with pytest.raises(OSError, match="TMPDIR") as caught:
        read_points(tmp_path / "a.parquet")
    assert caught.value.errno == errno.ENOSPC


def test_wrong_columns_are_errors(tmp_path, frame):
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    with pytest.raises(ValueError, match="has no column 'z': name one of 'x', 'y', 'kind'"):
        read_points(path, columns=["x", "z"])
    with pytest.raises(ValueError, match="has no column 'class': name one of 'x', 'y', 'kind'"):
        read_points(path, label_column="class")
    with pytest.raises(ValueError, match=r"has no numbers in column 'kind', but (large_)?string: name only"):
        read_points(path, columns=["x", "kind"])
    with pytest.raises(
        ValueError, match="has no column 'label', but 'x', 'y', 'kind': name one with --label-column"
    ):
        read_labels(path)


def test_lists_that_are_not_points(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0]]}), path)
    with pytest.raises(ValueError, match=r"'v' of .* has 2 numbers in its first row, but 1 in row 1"):
        read_points(path)
    pq.write_table(pa.table({"v": [[1.0, 2.0], None]}), path)
    with pytest.raises(ValueError, match="has 1 empty cells in column 'v', the first in row 1"):
        read_points(path)
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0, None]]}), path)
    with pytest.raises(ValueError, match=r"'v' of .* has an empty entry in row 1"):
        read_points(path)
    pq.write_table(pa.table({"v": [[1.0, 2.0]], "x": [1.0]}), path)
    with pytest.raises(
        ValueError, match=r"has columns of lists \('v'\) and others \('x'\): name the columns .* --columns"
    ):
        read_points(path)


def test_options_that_mean_nothing_to_a_format_are_errors(tmp_path, frame):
    np.save(tmp_path / "a.npy", X)
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="has no named columns: leave out --columns and --drop"):
        read_points(tmp_path / "a.npy", columns=["x"])
    with pytest.raises(
        ValueError, match="holds one array and no column 'y': pass a file of the classes with --labels"
    ):
        read_points(tmp_path / "a.npy", label_column="y")
    with pytest.raises(ValueError, match=r"is not an \.npz file, so it has no array 'X': leave out --array"):
        read_points(tmp_path / "a.csv", array="X")
    with pytest.raises(ValueError, match="holds one array and no column 'y': leave out --label-column"):
        read_labels(tmp_path / "a.npy", column="y")
    with pytest.raises(ValueError, match=r"holds an array of shape \(3, 2\), but labels are one-dimensional"):
        read_labels(tmp_path / "a.npy")


def test_labels_with_holes_are_errors(tmp_path):
    (tmp_path / "a.csv").write_text("label\n1\nNA\n")
    with pytest.raises(ValueError, match="has 1 empty cells in column 'label', the first in row 1"):
        read_labels(tmp_path / "a.csv")
