import json

import numpy as np
import pytest
from cli_runs import run

import agglo
from agglo import SCC, cli
from agglo.io.points import read_labels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with old and new points in files of two kinds."""
    rng = np.random.default_rng(0)
    X = (4 * np.eye(5)[np.arange(150) % 5] + rng.normal(scale=0.3, size=(150, 5))).astype(np.float32)
    for name, rows in (("old", X[:100]), ("new", X[100:])):
        np.save(tmp_path / f"{name}.npy", rows)
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,c,d,e", *lines]) + "\n")
    turned = [",".join(map(str, [*row[::-1], 9])) for row in X[100:]]
    (tmp_path / "turned.csv").write_text("\n".join(["e,d,c,b,a,more", *turned]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-k", "6", "--n-clusters", "7"],
        ["-a", "hac", "--height", "0.2"],
        ["--linkage", "ward", "--metric", "sqeuclidean", "--n-clusters", "5"],
    ],
)
def test_new_points_are_predicted_from_files(folder, options):
    run("fit", "old.npy", "-o", "run", "--keep-model", "-q", *options)
    out, _ = run("predict", "run", "new.npy", "-o", "labels.npy", "--json")
    model = agglo.load("run")
    expected = model.predict(np.load("new.npy"))
    np.testing.assert_array_equal(np.load("labels.npy"), expected)
    np.testing.assert_array_equal(model.labels_, read_labels("run/labels.parquet"))
    assert json.loads(out)["new"] == (expected < 0).sum()
    whole = type(model)(**model.get_params()).fit(np.load("old.npy"))
    np.testing.assert_array_equal(whole.labels_, model.labels_)
    run("predict", "run", "new.npy", "--n-clusters", "3", "-q")
    np.testing.assert_array_equal(read_labels("labels.parquet"), model.predict(np.load("new.npy"), n_clusters=3))


def test_columns_are_those_of_the_run(folder):
    run("fit", "old.csv", "-o", "run", "--keep-model", "-q")
    for name in ("new.csv", "turned.csv"):
        out, _ = run("predict", "run", name, "-o", "labels.csv")
        assert "points   50" in out
        np.testing.assert_array_equal(
            read_labels("labels.csv"), SCC().fit(np.load("old.npy")).predict(np.load("new.npy"))
        )


def test_a_model_from_python_is_read(folder):
    model = SCC(4, metric="euclidean").fit(np.load("old.npy"))
    model.save("model")
    run("predict", "model", "new.npy", "-o", "labels.npy", "-j", "1")
    np.testing.assert_array_equal(np.load("labels.npy"), model.predict(np.load("new.npy")))


def test_what_cannot_be_predicted_is_said(folder):
    run("fit", "old.npy", "-o", "run", "-q")
    assert (
        "there is no model.json in it; run agglo fit again, with --keep-model"
        in run("predict", "run", "new.npy", code=cli.BAD_INPUT)[1]
    )
    run("fit", "old.npy", "-o", "run", "-q", "--keep-model")
    np.save("wide.npy", np.ones((3, 6)))
    assert "points of 6 columns, but those of the run have 5" in run(
        "predict", "run", "wide.npy", code=cli.BAD_INPUT
    )[1].replace("\n", " ")
    assert "end the name in one of" in run("predict", "run", "new.npy", "-o", "labels.txt", code=cli.USAGE)[1]
    run("predict", "run", "new.npy", "--n-clusters", "101", code=cli.USAGE)
    assert not (folder / "labels.parquet").exists()
