import csv
import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_runs import write
from hypothesis import given
from hypothesis import strategies as st

from agglo.text.reader import read_texts


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_lines_tables_and_parquet_hold_the_same_texts(folder):
    texts = ["one", "two, three", 'a "quote"', "ضفدع", "🐸🐸"]
    write(folder, "\n".join(texts), "texts.txt")
    write(folder, "text\n" + "\n".join('"' + text.replace('"', '""') + '"' for text in texts))
    pq.write_table(pa.table({"text": texts, "n": range(5)}), "texts.parquet")
    for name, column in (("texts.txt", None), ("texts.csv", None), ("texts.parquet", "text")):
        assert read_texts(folder / name, column).texts == texts
    write(folder, "\ufefftext\r\none\r\ntwo\r\n", "dos.csv")
    assert read_texts(folder / "dos.csv", "text").texts == ["one", "two"]
    write(folder, "text,n\none,1\ntwo,2\n".encode("utf-16"), "wide.csv")
    found = read_texts(folder / "wide.csv", "text", "utf-16")
    assert found.texts == ["one", "two"]
    assert found.columns["n"].to_pylist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("content", "column", "message"),
    [
        (
            'a,b\n1,"open\nnever closed',
            "b",
            r"has a quote in row 0 \(from 0\) that is not closed: put quotes around",
        ),
        (
            'a\n"x"y\nz\n',
            "a",
            r"has a quote in row 0 \(from 0\) that is followed by text: .* double the quotes inside",
        ),
        ('a\nx\n"say \\"hi\\" to"\n', "a", r"has a quote in row 1 \(from 0\) that is followed by text"),
        ("a,b\n1,2\n1,2,3\n", "b", r"has 3 cells in row 1 \(from 0\), but 2 columns: .*put quotes around text"),
        ("a,b\n1,2\n", "c", r"has no column 'c': name one of 'a', 'b'"),
        ("a,a\n1,2\n", "a", r"has two columns 'a': rename one of them"),
        ("a,b\n1,2\n", None, r"has the columns 'a', 'b': name the column of texts with --column"),
        ("a;b\n1;2\n", None, r"has the columns 'a', 'b': name the column of texts with --column"),
        ("", None, r"texts.csv cannot be read: the file is empty: pass a file with rows"),
        ("a\n\n \n", "a", r"has 0 different texts in column 'a': pass a file with at least two"),
        ("a\nx\nX\n", "a", r"has 1 different texts in column 'a': pass a file with at least two"),
        (
            b"a\nfine\nna\xefve\n",
            "a",
            r"is not encoded as utf-8 \(byte 0xef in line 3\): pass its encoding, such as --encoding latin-1",
        ),
        (
            "a\nx\ny\n".encode("utf-16"),
            "a",
            r"is not encoded as UTF-8: its first bytes are the byte order mark of UTF-16: pass --encoding utf-16",
        ),
    ],
)
def test_errors_of_bad_files_have_a_row_a_cause_and_a_remedy(folder, content, column, message):
    with pytest.raises(ValueError, match=message):
        read_texts(write(folder, content), column)


def test_bad_names_of_files_and_encodings_are_errors(folder):
    with pytest.raises(ValueError, match=r"files whose names end in .* are not supported: pass one of \.csv"):
        read_texts(write(folder, "a\nx\ny\n", "texts.docx"))
    with pytest.raises(FileNotFoundError, match=r"nowhere.csv cannot be read: there is no such file"):
        read_texts(folder / "nowhere.csv")
    with pytest.raises(ValueError, match=r"encoding klingon is unknown: pass one such as utf-8, latin-1"):
        read_texts(write(folder, "a\nx\ny\n"), "a", "klingon")
    pq.write_table(pa.table({"n": [1, 2]}), "n.parquet")
    with pytest.raises(ValueError, match=r"n.parquet has no texts in column 'n', but int64: name another"):
        read_texts(folder / "n.parquet", "n")


def test_compressed_files_are_read(folder):
    for name, content in (("t.csv.gz", "q,n\none,1\ntwo,2\n"), ("t.tsv.gz", "q\tn\none\t1\ntwo\t2\n")):
        found = read_texts(write(folder, gzip.compress(content.encode()), name), "q")
        assert (found.texts, found.columns["n"].to_pylist()) == (["one", "two"], [1, 2])
    assert read_texts(write(folder, gzip.compress(b"one\ntwo\n"), "t.txt.gz")).texts == ["one", "two"]
    with pytest.raises(ValueError, match=r"t\.csv\.gz cannot be read: it is damaged, truncated or not"):
        read_texts(write(folder, gzip.compress(b"q\none\ntwo\n")[:-9], "t.csv.gz"))


def test_columns_never_take_the_names_that_have_a_meaning(folder):
    found = read_texts(write(folder, "count,query,text\n7,one,x\n8,two,\n"), "query")
    assert found.table().column_names == ["text", "count", "count (given)", "text (given)"]
    assert found.columns["text (given)"].to_pylist() == ["x", None]


def test_no_column_is_lost_if_the_new_name_of_a_reserved_column_is_taken(folder):
    found = read_texts(write(folder, "count,query,count (given)\n7,one,x\n8,two,y\n"), "query")
    columns = {name: values.to_pylist() for name, values in found.columns.items()}
    assert columns == {"count (given) (given)": [7, 8], "count (given)": ["x", "y"]}


def test_parquet_columns_keep_their_types(folder):
    pq.write_table(pa.table({"q": ["one", "two"], "code": ["007", "008"], "n": [2**60, 1]}), "t.parquet")
    columns = read_texts(folder / "t.parquet", "q").columns
    assert {name: values.to_pylist() for name, values in columns.items()} == {
        "code": ["007", "008"],
        "n": [2**60, 1],
    }


@given(st.lists(st.text(max_size=12), min_size=2, max_size=12))
def test_any_texts_that_can_be_written_can_be_read(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    clean = [text.encode("utf-8", "ignore").decode() for text in texts]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "place"])
        writer.writerows((text, i) for i, text in enumerate(clean))
    folded = {" ".join(text.casefold().split()) for text in clean if text.strip()}
    if len(folded) < 2:
        return
    found = read_texts(path, "text")
    assert found.n_rows == len(clean)
    assert found.count.sum() + found.n_empty == len(clean)
    assert [clean[row].strip() for row in found.row] == found.texts
    assert found.columns["place"].to_pylist() == found.row.tolist()
