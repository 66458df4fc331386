import csv
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cli_runs import run

import agglo
from agglo.explore import open_run

FROGS = ["red frog", "red frogs", "tree frog", "tree frogs", "frog pond"]
SKIES = ["blue sky", "blue skies", "clear blue sky", "sky blue paint", "night sky"]
CARS = ["fast car", "fast cars", "slow car", "car wash", "used car sale"]
ROWS = [*FROGS, "", *SKIES, "RED  frog", *CARS, "  ", "car wash"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f'"{text}",{i},{i % 3}' for i, text in enumerate(ROWS)]
    (tmp_path / "texts.csv").write_text("text,number,class\n" + "\n".join(lines) + "\n")
    return tmp_path


def test_rows_are_those_of_the_input_in_its_order(folder):
    out, _ = run("text", "texts.csv", "-k", 4, "--n-clusters", 3, "-o", "out")
    rows = pq.read_table("out/rows.parquet")
    assert rows.column_names == ["row", "point", "cluster", "name", "path", "depth"]
    assert rows["row"].to_pylist() == list(range(len(ROWS)))
    assert rows["cluster"].type == pa.int64()
    cluster = rows["cluster"].to_numpy()
    labels = pq.read_table("out/labels.parquet")["label"].to_numpy()
    distinct = [*FROGS, *SKIES, *CARS]
    for row, text in enumerate(ROWS):
        key = " ".join(text.lower().split())
        expected = labels[distinct.index(key)] if key else -1
        assert cluster[row] == expected
    assert rows["path"][5].as_py() is None
    assert rows["depth"][5].as_py() == 0
    with pa.memory_map("out/items.arrow") as file:
        assert pa.ipc.open_file(file).read_all()["number"].type == pa.int64()
    clusters = pq.read_table("out/clusters.parquet").to_pylist()
    own = {row["cluster"]: row for row in clusters if row["cluster"] is not None}
    assert {row["cluster"]: row["size"] for row in own.values()} == {c: (cluster == c).sum() for c in own}
    for row in rows.to_pylist():
        if row["cluster"] >= 0:
            assert row["name"] == own[row["cluster"]]["name"]
            assert row["path"] == own[row["cluster"]]["path"]
            assert row["depth"] == own[row["cluster"]]["level"] == len(row["path"].split(" > "))
    assert len({row["name"] for row in own.values()}) == len(own)
    largest = max(own.values(), key=lambda row: row["size"])
    assert f"{largest['size']}  {largest['name']}" in out


def test_clusters_are_nested_and_share_no_word_with_the_cluster_above(folder):
    rng = np.random.default_rng(0)
    topics = [[f"{a}topic", f"{a}{b}part", f"{a}{b}{c}item"] for a in "abc" for b in "xyz" for c in "klmn"]
    texts = [" ".join(rng.permutation(words)) + f" word{i}" for i in range(4) for words in topics]
    (folder / "many.txt").write_text("\n".join(texts))
    run("text", "many.txt", "-k", 8, "--n-clusters", 36, "-o", "out", "-q")
    clusters = pq.read_table("out/clusters.parquet").to_pylist()
    by_id = {row["id"]: row for row in clusters}
    tree = agglo.Hierarchy.load("out/tree.parquet")
    below = [row for row in clusters if row["parent"] is not None]
    assert below
    for row in below:
        parent = by_id[row["parent"]]
        assert row["level"] == parent["level"] + 1
        assert set(tree.leaves(row["id"]).tolist()) < set(tree.leaves(parent["id"]).tolist())
        above, _, name = row["path"].rpartition(" > ")
        assert above == parent["path"]
        assert set(name.replace(",", "").split()).isdisjoint(above.split(" > ")[-1].replace(",", "").split())


def test_other_commands_take_tables_with_the_rows_of_the_input(folder):
    run("text", "texts.csv", "-k", 4, "-o", "out", "-q")
    out, _ = run("eval", "out", "--labels", "texts.csv", "--label-column", "class", "--json")
    scores = json.loads(out)["scores"]
    first = [i for i, text in enumerate(ROWS) if text.strip() and i not in (11, 18)]
    np.save("first.npy", np.array(first) % 3)
    alone, _ = run("eval", "out", "--labels", "first.npy", "--json")
    assert json.loads(alone)["scores"] == scores
    opened = open_run(folder / "out", folder / "texts.csv")
    assert opened.items.texts(np.arange(15)) == [*FROGS, *SKIES, *CARS]
    np.save("X.npy", np.random.default_rng(0).normal(size=(len(ROWS), 2)))
    run("plot", "out", "--data", "X.npy", "-o", "tree.png", "-q")


def test_lines_of_json_other_separators_and_stdin_are_read(folder):
    (folder / "t.jsonl").write_text("\n".join(json.dumps({"id": i, "text": text}) for i, text in enumerate(ROWS)))
    (folder / "t.csv").write_text("id;text\n" + "\n".join(f"{i};{text}" for i, text in enumerate(ROWS)))
    (folder / "t.txt").write_text("\n".join(ROWS))
    run("text", "texts.csv", "-k", 4, "-o", "expected", "-q")
    expected = pq.read_table("expected/rows.parquet")
    for name in ("t.jsonl", "t.csv", "t.txt"):
        run("text", name, "-k", 4, "-o", "out", "-q")
        assert pq.read_table("out/rows.parquet").equals(expected)
    for content, options in (("t.txt", ()), ("t.csv", ("--column", "text"))):
        run("text", "-", *options, "-k", 4, "-o", "out", "-q", stdin=(folder / content).read_bytes())
        assert pq.read_table("out/rows.parquet").equals(expected)


def test_text_has_the_options_of_fit(folder):
    options = ("--linkage", "average", "--connect", "none", "--method", "exact", "--recall", 0.9, "--seed", 3)
    np.save("X.npy", np.random.default_rng(0).normal(size=(len(ROWS), 3)))
    options += ("--embeddings", "X.npy", "--algorithm", "hac", "--keep-model")
    run("text", "texts.csv", "-k", 4, *options, "-o", "out", "-q")
    model = agglo.load(folder / "out")
    assert type(model).__name__ == "HAC"
    assert (model.linkage, model.connect, model.method, model.recall) == ("average", None, "exact", 0.9)
    assert model.random_state == 3


def test_stop_words_and_a_namer_change_the_names(folder):
    (folder / "stop.txt").write_text("frog\nsky")
    run("text", "texts.csv", "-k", 4, "--n-clusters", 3, "--stop-words", "stop.txt", "-o", "out", "-q")
    names = pq.read_table("out/clusters.parquet")["name"].to_pylist()
    assert not any("frog" in name or "sky" in name for name in names)
    (folder / "namer.py").write_text(
        "import json, sys\nopen('calls.txt', 'a').write('x')\nprint('about ' + json.load(sys.stdin)['terms'][0])\n"
    )
    command = f"{sys.executable} namer.py"
    for _ in range(2):  # the second run takes the answers of the first
        run("text", "texts.csv", "-k", 4, "--n-clusters", 3, "--namer", command, "-o", "out", "-q")
        clusters = pq.read_table("out/clusters.parquet").to_pylist()
        assert all(row["name"].startswith("about ") for row in clusters if row["texts"] > 1)
        assert len((folder / "calls.txt").read_text()) == len(json.loads((folder / "out/namer.json").read_text()))
    (folder / "namer.py").write_text("import sys; sys.exit('no model')")
    _, err = run("text", "texts.csv", "-k", 4, "--namer", f"{command} 1", "-o", "new", code=2)
    assert "namer.py 1 ended with code 1 (no model): correct it" in err
    _, err = run("text", "texts.csv", "-k", 4, "--namer", "no-such-command", "-o", "new", code=2)
    assert "--namer no-such-command cannot be run" in err
    _, err = run("text", "texts.csv", "--language", "klingon", "-o", "new", code=2)
    assert "language='klingon' is not known: pass one of english" in err


def test_topics_have_one_row_per_text_and_one_column_per_level(folder):
    found = agglo.topics(ROWS, levels=(3, 6))
    assert len(found) == len(ROWS)
    assert found.table.column_names == ["text", "level_1", "level_2"]
    assert found.table["text"].to_pylist() == ROWS
    level = found.labels[0]
    assert level[5] == -1
    assert level[0] == level[11]  # a duplicate
    assert found.table["level_1"][5].as_py() is None
    for level, labels in enumerate(found.labels, start=1):
        assert len(pc.unique(found.table[f"level_{level}"].drop_null())) == labels.max() + 1
    assert len(set(zip(*found.labels.tolist(), strict=True))) == len(set(found.labels[1].tolist()))  # nested
    found.to_csv("topics.csv")
    assert len((folder / "topics.csv").read_text().splitlines()) == len(ROWS) + 1
    assert found.to_pandas().shape == (len(ROWS), 3)
    assert repr(found) == "Topics(19 texts, 3 > 7 topics)"
    html = found._repr_html_()
    assert found.table["level_1"][0].as_py() in html
    with found.explore() as explorer:
        assert explorer.run.names.equals(found.names.to_table())
    X = np.random.default_rng(0).normal(size=(len(ROWS), 3))
    assert agglo.topics(ROWS, X, levels=[3]).tree.n_leaves == 15
    with pytest.raises(ValueError, match="X has 3 rows, but there are 19 texts: pass one row per text"):
        agglo.topics(ROWS, X[:3])
    with pytest.raises(ValueError, match=r"levels=\[90\], but there are 15 different texts: pass fewer topics"):
        agglo.topics(ROWS, levels=[90])
    assert len(agglo.topics(ROWS, levels=3).labels) == 1
    with pytest.raises(TypeError, match=r"levels=2\.5 is not a number of topics: pass an integer"):
        agglo.topics(ROWS, levels=2.5)
    with pytest.raises(TypeError, match="texts is a data frame or another table: pass one column"):
        agglo.topics(found.to_pandas())
    with pytest.raises(TypeError, match="texts is a single text: pass a list of texts"):
        agglo.topics("red apple")
    with pytest.raises(ValueError, match="texts has 1 different texts: pass at least two"):
        agglo.topics(["a", "A "])
    with pytest.raises(TypeError, match=r"texts\[1\] is None, not a text"):
        agglo.topics(["a", None])


@pytest.mark.parametrize("rule", [("--n-clusters", 3), ("--height", 0)])
def test_a_cut_has_one_row_per_row_of_the_input(folder, rule):
    run("text", "texts.csv", "-k", 4, "-o", "out", "-q")
    out, _ = run("cut", "out", *rule, "-o", "labels.csv")
    tree = agglo.Hierarchy.load("out/tree.parquet")
    by_point = tree.cut(**{rule[0][2:].replace("-", "_"): rule[1]})
    point = pq.read_table("out/rows.parquet")["point"].to_numpy()
    assert len(by_point) < len(point) == len(ROWS)  # there are duplicates and an empty text
    expected = np.where(point < 0, -1, by_point[point])
    with open("labels.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["label"]) for row in rows] == expected.tolist()
    assert rows[5] == {"label": "-1", "name": ""}
    opened = open_run(folder / "out")
    nodes = tree.nodes(by_point)
    assert [row["name"] for row in rows if row["name"]] == [opened.name(nodes[k]) for k in expected if k >= 0]
    sizes = np.bincount(expected[expected >= 0])
    assert f"largest  {sizes.max():>9,}  {opened.name(nodes[sizes.argmax()])}\n" in out
    run("cut", "out", *rule, "-o", "labels.parquet")
    names = pq.read_table("labels.parquet")["name"].to_pylist()
    assert [name or "" for name in names] == [row["name"] for row in rows]
    run("cut", "out", *rule, "-o", "labels.npy")
    assert np.load("labels.npy").tolist() == expected.tolist()
    run("cut", "out/tree.parquet", *rule, "-o", "labels.csv")  # a tree file has no rows
    assert np.loadtxt("labels.csv", skiprows=1).tolist() == by_point.tolist()


def test_new_texts_get_labels_and_names_by_their_embeddings(folder):
    X = np.random.default_rng(0).normal(size=(len(ROWS), 3))
    np.save("X.npy", X)
    options = ("text", "texts.csv", "-k", 4, "--embeddings", "X.npy", "-o", "out", "-q")
    run(*options)
    _, err = run("predict", "out", "X.npy", code=3)
    assert "run agglo text … --embeddings VECTORS --keep-model" in err
    run(*options, "--keep-model")
    run("predict", "out", "X.npy", "-o", "labels.parquet")
    rows = pq.read_table("out/rows.parquet")
    found = pq.read_table("labels.parquet")
    first = [i for i, text in enumerate(ROWS) if text.strip() and i not in (11, 18)]
    assert found.column_names == ["label", "name"]
    for new, old in (("label", "cluster"), ("name", "name")):
        assert found[new].take(first).to_pylist() == rows[old].take(first).to_pylist()
    out, _ = run("predict", "out", "X.npy", "--n-clusters", 3, "-o", "labels.parquet")
    assert f"points   {len(ROWS)}\n" in out
    run("cut", "out", "--n-clusters", 3, "-o", "cut.parquet")
    assert pq.read_table("labels.parquet").take(first).equals(pq.read_table("cut.parquet").take(first))
    (folder / "new.csv").write_text("text,class\nred frog,3\nsky,3\n")
    for name in ("new.csv", "texts.csv"):
        _, err = run("predict", "out", name, "--columns", "class" if name == "new.csv" else "text", code=3)
        assert "pass the embeddings of the new texts as .npy" in err.replace("\n", " ")


def test_words_and_letters_keep_no_model(folder):
    _, err = run("text", "texts.csv", "--keep-model", "-o", "out", code=2)
    assert "--keep-model needs vectors that new texts can have" in err
    assert not (folder / "out").exists()
