import json

import numpy as np
import pytest
from cli_runs import run

import agglo
from agglo.io.points import read_labels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: points, a third of which are copies, and what is known of them."""
    rng = np.random.default_rng(0)
    X = (4 * np.eye(5)[np.arange(80) % 5] + rng.normal(scale=0.3, size=(80, 5))).astype(np.float32)
    np.save(tmp_path / "X.npy", X[np.arange(120) % 80])
    (tmp_path / "must.csv").write_text("a,b\n0,1\n1,7\n")
    np.save(tmp_path / "cannot.npy", np.array([[2, 3, 12], [4, 9, 14]]))
    (tmp_path / "weights.csv").write_text("\n".join(["weight", *(str(1 + i % 3) for i in range(120))]) + "\n")
    (tmp_path / "wrong.csv").write_text("a,b\n0,1\n1.5,7\n")
    (tmp_path / "text.csv").write_text("a\nx\n")
    (tmp_path / "far.csv").write_text("a,b\n0,120\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_known_comes_from_files(folder):
    words = ["--must-link", "must.csv", "--cannot-link", "cannot.npy", "--sample-weight", "weights.csv"]
    out, _ = run("fit", "X.npy", *words, "--max-cluster-size", "60", "-o", "out", "--json", "--keep-model")
    record = json.loads(out)
    assert record["data"]["points"] == 120
    assert record["data"]["must_link"] == "must.csv"
    assert record["parameters"]["max_cluster_size"] == 60
    assert record["tree"]["copies"] == 120 - record["data"]["distinct"]
    model = agglo.SCC(max_cluster_size=60).fit(
        np.load("X.npy"),
        must_link=[[0, 1, 7]],
        cannot_link=[[2, 3, 12], [4, 9, 14]],
        sample_weight=1 + np.arange(120) % 3,
    )
    assert read_labels("out/labels.parquet").tolist() == model.labels_.tolist()
    np.testing.assert_array_equal(agglo.Hierarchy.load("out/tree.parquet").height, model.tree_.height)
    loaded = agglo.load("out")
    assert loaded.predict(np.load("X.npy")).tolist() == model.predict(np.load("X.npy")).tolist()


def test_copies_are_told_of(folder):
    out, _ = run("fit", "X.npy", "-o", "out")
    assert "120 × 5 (float32) from X.npy, 80 of them different" in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["--must-link", "wrong.csv"],
            3,
            "wrong.csv holds no groups of points, but numbers that are not whole: pass a table with one row per",
        ),
        (["--must-link", "text.csv"], 3, "text.csv has no columns of numbers, but 'a': pass a table with one row"),
        (["--sample-weight", "must.csv"], 3, "pass a file with one column, the weight of each point"),
        (["--cannot-link", "far.csv"], 3, "cannot_link names point 120, but there are 120 points"),
        (["--sample-weight", "must.csv"], 3, "has no column 'label'"),
        (["--max-cluster-size", "0"], 2, "max_cluster_size=0.0 is not a size"),
        (
            ["--must-link", "must.csv", "--max-cluster-size", "2"],
            2,
            "must_link puts 3 points with a total weight of 3 into one group",
        ),
    ],
)
def test_what_is_wrong_is_told(folder, words, code, message):
    _, err = run("fit", "X.npy", "-o", "out", *words, code=code)
    assert message in err
