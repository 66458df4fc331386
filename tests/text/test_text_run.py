import gzip
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_runs import run
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

import agglo
from agglo.explore import open_run
from agglo.text.features import lexical_features
from agglo.text.reader import read_texts

FROGS = ["red frog", "red frogs", "tree frog", "tree frogs", "frog pond"]
SKIES = ["blue sky", "blue skies", "clear blue sky", "sky blue paint", "night sky"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f'{i},"{text}",{"frog" in text}' for i, text in enumerate([*FROGS, *SKIES, "Red  FROG", ""])]
    (tmp_path / "queries.csv").write_text("when,query,frog\n" + "\n".join(rows) + "\n\n")
    return tmp_path


def write(folder, content, name="texts.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# From a file to the explorer


def test_texts_become_a_run_that_can_be_explored(folder):
    out, err = run("text", "queries.csv", "--column", "query", "-k", 4, "--n-clusters", 2)
    assert "note: 1 of 12 rows have no text and were left out" in err
    assert "10 different ones in 12 rows of queries.csv" in out
    assert "agglo-text/names.arrow" in out
    opened = open_run(folder / "agglo-text")
    assert opened.items.texts(np.arange(10)) == [*FROGS, *SKIES]
    assert opened.items.count.tolist() == [2, *[1] * 9]
    assert opened.items.columns == ["count", "when", "frog"]
    labels = pq.read_table("agglo-text/labels.parquet")["label"].to_numpy()
    frogs, skies = labels[[0, 5]]
    assert labels.tolist() == [frogs] * 5 + [skies] * 5
    assert {frogs, skies} == {0, 1}
    nodes = opened.tree.nodes(labels)[[frogs, skies]]
    assert [opened.terms(node)[0] for node in nodes] == ["frog", "blue"]
    assert opened.name(nodes[0]).startswith("frog, ")
    record = json.loads((folder / "agglo-text/run.json").read_text())
    assert record["data"]["features_from"] == "words and letters"
    assert (record["data"]["rows"], record["data"]["rows_without_text"]) == (12, 1)
    assert record["seconds"].keys() == {"search", "rounds", "names"}


def test_the_tree_is_that_of_the_features(folder):
    run("text", "queries.csv", "--column", "query", "-k", 4, "-o", "out", "-q")
    expected = agglo.scc(agglo.neighbor_graph(lexical_features([*FROGS, *SKIES]), 4, missing="mean"))
    np.testing.assert_array_equal(agglo.Hierarchy.load("out/tree.parquet").parent, expected.parent)


def test_embeddings_are_taken_by_row(folder):
    X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    X[11] = np.nan  # of the row without a text
    np.save("X.npy", X)
    run("text", "queries.csv", "--column", "query", "--embeddings", "X.npy", "-k", 4, "-o", "out")
    expected = agglo.scc(agglo.neighbor_graph(X[:10], 4, missing="mean"))
    np.testing.assert_array_equal(agglo.Hierarchy.load("out/tree.parquet").parent, expected.parent)
    assert json.loads((folder / "out/run.json").read_text())["data"]["features_from"] == "X.npy"
    X[3], X[5] = 0, np.nan
    np.save("X.npy", X)
    _, err = run("text", "queries.csv", "--column", "query", "--embeddings", "X.npy", "-o", "new", code=3)
    assert "X.npy has no embedding in row 3 (2 such rows: NaN, infinite or all 0): embed these texts too" in err
    np.save("X.npy", X[:10])
    _, err = run("text", "queries.csv", "--column", "query", "--embeddings", "X.npy", "-o", "new", code=3)
    assert "X.npy has an array of shape (10, 3), but there are 12 rows of texts: pass one row of numbers" in err
    assert not (folder / "new").exists()


def test_a_model_must_be_here_and_so_must_what_runs_it(folder, monkeypatch):
    words = ["text", "queries.csv", "--column", "query", "-o", "out", "--model"]
    _, err = run(*words, "nowhere", code=3)
    assert "--model nowhere is no folder: pass that of a model on this machine; none is downloaded" in err
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    _, err = run(*words, folder, code=3)
    assert "--model needs sentence-transformers, which cannot be imported" in err
    assert "pip install sentence-transformers, or leave out --model" in err
    _, err = run(*words, folder, "--embeddings", "X.npy", code=2)
    assert "--embeddings and --model are two ways to get vectors: pass one of them" in err


# Files of texts


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
        ("a;b\n1;2\n", None, r"has one column, 'a;b', that looks separated by ';': pass --delimiter ';', or"),
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


def test_embeddings_in_a_table_warn_without_options_that_text_lacks(folder):
    rows = "\n".join(f"{i / 7},{i * i % 5 + 0.5},name" for i in range(12))
    write(folder, "a,b,name\n" + rows + "\n", "X.csv")
    _, err = run("text", "queries.csv", "--column", "query", "--embeddings", "X.csv", "-k", 4, "-o", "out")
    assert "warning: X.csv: left out 'name', without numbers\n" in err
    write(folder, "a,b\n" + "x,1\n1,1\n" * 6, "X.csv")
    _, err = run("text", "queries.csv", "--column", "query", "--embeddings", "X.csv", "-o", "new", code=3)
    assert "X.csv has 'x' in column 'a', row 0 (from 0), among numbers: pass the vectors alone" in err
    assert "--drop" not in err


def test_a_cell_of_ten_megabytes_is_read_and_clustered(folder):
    long = "frog " * 2_000_000
    write(folder, "query\n" + "\n".join([*FROGS, f'"{long}"', *SKIES]) + "\n")
    run("text", "texts.csv", "-k", 3, "-o", "out", "-q")
    opened = open_run(folder / "out")
    assert len(opened.items.rows(np.array([5]))["text"][0].as_py()) == len(long.strip())
    assert len(opened.items.texts(np.array([5]))[0]) == 2000


@given(st.lists(st.text(max_size=12), min_size=2, max_size=12))
def test_any_texts_that_can_be_written_can_be_read(tmp_path_factory, texts):
    import csv

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


# Features


def test_the_cosine_is_the_mean_of_those_of_words_and_letters():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [*FROGS, *SKIES]
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b").fit_transform(texts)
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True).fit_transform(texts)
    expected = (cosine_similarity(words) + cosine_similarity(letters)) / 2
    np.testing.assert_allclose(cosine_similarity(lexical_features(texts)), expected, atol=1e-6)


def test_signs_without_words_have_features_too():
    X = lexical_features(["🐸🐸🐸", "🐸🐸🐸!", "???"])
    assert cosine_similarity(X)[0, 1] > 0.3
    told = []
    lexical_features(FROGS, progress=lambda *words: told.append(words))
    assert told == [("features", 0, 2), ("features", 1, 2)]
