import csv
import gzip
import json
import sys
import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_runs import run, write
from sklearn.metrics.pairwise import cosine_similarity

import agglo
from agglo.explore import open_run
from agglo.text.vectors import lexical_features

FROGS = ["red frog", "red frogs", "tree frog", "tree frogs", "frog pond"]
SKIES = ["blue sky", "blue skies", "clear blue sky", "sky blue paint", "night sky"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f'{i},"{text}",{"frog" in text}' for i, text in enumerate([*FROGS, *SKIES, "Red  FROG", ""])]
    (tmp_path / "queries.csv").write_text("when,query,frog\n" + "\n".join(rows) + "\n\n")
    return tmp_path


# From a file to the explorer


def test_texts_become_a_run_that_can_be_explored(folder):
    out, err = run("text", "queries.csv", "--column", "query", "-k", 4, "--n-clusters", 2)
    assert "note: 1 of 12 rows have no text and were left out" in err
    assert "10 different ones in 12 rows of queries.csv" in out
    assert "written  agglo-text\n" in out
    assert (folder / "agglo-text/names.arrow").exists()
    opened = open_run(folder / "agglo-text")
    assert opened.items.texts(np.arange(10)) == [*FROGS, *SKIES]
    assert opened.items.count.tolist() == [2, *[1] * 9]
    assert opened.items.columns == ["count", "when", "frog"]
    labels = pq.read_table("agglo-text/labels.parquet")["label"].to_numpy()
    frogs, skies = labels[[0, 5]]
    assert labels.tolist() == [frogs] * 5 + [skies] * 5
    assert {frogs, skies} == {0, 1}
    nodes = opened.tree.nodes(labels)[[frogs, skies]]
    assert [opened.terms(node)[0] for node in nodes] == ["frog", "sky"]
    assert opened.name(nodes[0]).startswith("frog")
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
    assert "--model nowhere is not a folder: pass the folder of a local model; none is downloaded" in err
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    _, err = run(*words, folder, code=3)
    assert "--model needs sentence-transformers, which cannot be imported" in err
    assert "pip install sentence-transformers, or leave out --model" in err
    _, err = run(*words, folder, "--embeddings", "X.npy", code=2)
    assert "--embeddings and --model are two ways to get vectors: pass one of them" in err


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


# Features


def test_the_cosine_is_the_mean_of_those_of_words_and_letters():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [*FROGS, *SKIES]
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b").fit_transform(texts)
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), sublinear_tf=True).fit_transform(texts)
    expected = (cosine_similarity(words) + cosine_similarity(letters)) / 2
    np.testing.assert_allclose(cosine_similarity(lexical_features(texts)), expected, atol=1e-6)


def test_texts_without_common_words_are_a_warning(folder):
    identifiers = [f"q{i:05}" for i in range(200)]
    write(folder, "id,text\n" + "\n".join(f"{name},frog {i % 20}" for i, name in enumerate(identifiers)))
    _, err = run("text", "texts.csv", "--column", "id", "-o", "out", "-q")
    assert "warning: 100 % of the texts share no word with another text, as identifiers do" in err
    related = [f"{name} frog" for name in identifiers[:30]] + identifiers[30:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lexical_features(related)
        lexical_features([f"青蛙{i}" for i in range(200)])  # no spaces between words
        lexical_features(identifiers[:50])


def test_signs_without_words_have_features_too():
    X = lexical_features(["🐸🐸🐸", "🐸🐸🐸!", "???"])
    assert cosine_similarity(X)[0, 1] > 0.3
    reports = []
    lexical_features(FROGS, progress=lambda *words: reports.append(words))
    assert reports == [("features", 0, 2), ("features", 1, 2)]


def test_tables_of_rows_and_clusters_are_also_written_as_csv(folder):
    options = ("queries.csv", "--column", "query", "-k", 4, "--n-clusters", 2, "-o", "out", "-q")
    run("text", *options, "--csv")
    with open("out/rows.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = pq.read_table("out/rows.parquet").to_pylist()
    assert [(row["row"], row["cluster"], row["name"]) for row in rows] == [
        (str(row["row"]), str(row["cluster"]), row["name"] or "") for row in expected
    ]
    with open("out/clusters.csv", newline="") as file:
        clusters = list(csv.DictReader(file))
    expected = pq.read_table("out/clusters.parquet").to_pylist()
    assert [row["exemplars"] for row in clusters] == [" | ".join(row["exemplars"]) for row in expected]
    run("text", *options)  # files of the earlier run are deleted
    assert not (folder / "out/rows.csv").exists()


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_json_lines_and_compressed_texts_are_read_from_stdin(folder, compress):
    lines = "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate([*FROGS, *SKIES]))
    for content in (lines, "\n".join([*FROGS, *SKIES])):
        run("text", "-", "-k", 4, "-o", "out", "-q", "--force", stdin=compress(content.encode()))
        assert open_run(folder / "out").items.texts(np.arange(10)) == [*FROGS, *SKIES]


@pytest.mark.parametrize("option", [("--linkage", "ward"), ("--metric", "euclidean")])
def test_linkages_and_metrics_of_dense_vectors_need_embeddings(folder, option):
    _, err = run("text", "queries.csv", "--column", "query", "-k", 4, *option, code=2)
    assert f"{' '.join(option)} needs dense vectors" in err
    assert "pass vectors with --embeddings or --model" in err
