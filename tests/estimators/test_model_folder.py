import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import agglo
from agglo import HAC, SCC, Affinity, neighbor_graph
from agglo.estimators.model_folder import GRAPH, GRAPH_TREE, KNOWN, MODEL, POINTS, SPARSE_POINTS, TREE
from agglo.io.files import add_checksum
from agglo.testing import assert_same_hierarchy

FILES = [GRAPH, KNOWN, MODEL, POINTS, TREE]


def groups(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return (4 * np.eye(6)[np.arange(n) % 6] + rng.normal(scale=0.3, size=(n, 6))).astype(np.float32)


def assert_same_model(left, right, new):
    assert (type(left), repr(left)) == (type(right), repr(right))
    assert (left.round_, left.n_features_in_, left.query_method_) == (
        right.round_,
        right.n_features_in_,
        right.query_method_,
    )
    assert_same_hierarchy(left.tree_, right.tree_)
    assert left.tree_.about == right.tree_.about
    np.testing.assert_array_equal(left.labels_, right.labels_)
    for name in ("indptr", "indices", "weights"):
        np.testing.assert_array_equal(getattr(left.graph_, name), getattr(right.graph_, name), strict=True)
    np.testing.assert_array_equal(left.graph_.cells, right.graph_.cells)
    for name in ("kind", "missing", "metric", "method", "parameters", "recall_estimate"):
        assert getattr(left.graph_, name) == getattr(right.graph_, name)
    np.testing.assert_array_equal(left.predict(new), right.predict(new))


@pytest.mark.parametrize(
    "model",
    [
        SCC(metric="euclidean"),
        SCC(n_neighbors=4, thresholds=[0.9, 0.5, 0.1], advance="until-stable", height=0.3),
        SCC(6, method="cells", recall=0.9, random_state=3),
        Affinity(metric="dot", linkage="single", n_jobs=1),
        HAC(n_neighbors="all", height=np.inf, linkage="complete"),
    ],
    ids=repr,
)
def test_what_was_saved_comes_back(model, tmp_path):
    X = groups()
    model.fit(X[:100])
    files = model.save(tmp_path / "deep" / "model")
    assert (
        sorted(path.name for path in files) == FILES == sorted(p.name for p in (tmp_path / "deep/model").iterdir())
    )
    loaded = agglo.load(tmp_path / "deep" / "model")
    assert_same_model(loaded, model, X[100:])
    assert_same_model(loaded.partial_fit(X[100:]), model.partial_fit(X[100:]), X)
    loaded.save(tmp_path / "deep" / "model")  # over what it was loaded from
    assert_same_model(agglo.load(tmp_path / "deep" / "model"), model, X)


@pytest.mark.parametrize("metric", ["cosine", "jaccard", "hamming"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_sparse_points_and_bits_come_back(metric, form, tmp_path):
    X = form((groups() > 0.2).astype(np.float32))
    model = SCC(metric=metric, n_neighbors=5).fit(X[:100])
    model.save(tmp_path)
    assert (tmp_path / SPARSE_POINTS).exists() == sp.issparse(X)
    loaded = agglo.load(tmp_path)
    assert_same_model(loaded, model, X[100:])
    assert_same_model(loaded.partial_fit(X[100:]), model.partial_fit(X[100:]), X)


def test_names_of_columns_and_a_graph_come_back(tmp_path):
    frame = pd.DataFrame(groups(), columns=list("abcdef"))
    model = SCC().fit(frame)
    model.save(tmp_path / "named")
    loaded = agglo.load(tmp_path / "named")
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(loaded.predict(frame), model.labels_)
    given = SCC(np.int64(6), thresholds=np.array([0.9, 0.5]), n_neighbors=np.int32(4)).fit(groups())
    given.save(tmp_path / "arrays")
    parameters = agglo.load(tmp_path / "arrays").get_params()
    assert [parameters[name] for name in ("n_clusters", "thresholds", "n_neighbors")] == [6, [0.9, 0.5], 4]
    graph = neighbor_graph(groups(), 5)
    model = SCC(metric="precomputed").fit(graph)
    model.save(tmp_path / "graph")
    rows = graph.to_scipy()[:3]
    assert_same_model(agglo.load(tmp_path / "graph"), model, rows)
    with pytest.raises(ValueError, match="points is given, but the model is of a graph and has none"):
        model.save(tmp_path / "graph", points=tmp_path / "named" / POINTS)


def test_another_process_goes_on_where_this_one_ended(tmp_path):
    X = groups()
    np.save(tmp_path / "new.npy", X[80:])
    model = SCC(6, n_neighbors=5).fit(X[:80])
    model.save(tmp_path / "model")
    program = """
import sys, numpy as np, agglo
folder = sys.argv[1]
model, new = agglo.load(folder + "/model"), np.load(folder + "/new.npy")
np.save(folder + "/predicted.npy", model.predict(new[20:]))
model.partial_fit(new[:20]).partial_fit(new[20:]).save(folder + "/model")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program, tmp_path], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "predicted.npy"), model.predict(X[100:]))
    assert_same_model(agglo.load(tmp_path / "model"), model.partial_fit(X[80:]), X)
    assert_same_hierarchy(model.tree_, SCC(6, n_neighbors=5).fit(X).tree_)


def test_points_can_stay_where_they_are(tmp_path):
    X = groups()
    np.save(tmp_path / "X.npy", X)
    model = SCC(n_neighbors=5).fit(np.load(tmp_path / "X.npy", mmap_mode="r"))
    model.save(tmp_path / "model", points=tmp_path / "X.npy")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [GRAPH, KNOWN, MODEL, TREE]
    assert_same_model(agglo.load(tmp_path / "model"), model, X[:5] + np.float32(0.1))
    for other in (X[:-1], X.astype(np.float64), X + np.float32(1)):
        np.save(tmp_path / "other.npy", other)
        with pytest.raises(ValueError, match=r"other\.npy holds an array .* that is not the points of the model"):
            model.save(tmp_path / "model", points=tmp_path / "other.npy")
    np.save(tmp_path / "X.npy", X + np.float32(1))
    with pytest.raises(ValueError, match=r"X\.npy does not hold the points that were fitted any more"):
        agglo.load(tmp_path / "model")
    (tmp_path / "X.npy").unlink()
    with pytest.raises(ValueError, match=r"saved by reference, and .*X\.npy is not there any more: bring it back"):
        agglo.load(tmp_path / "model")
    sparse = SCC().fit(sp.csr_array(X > 1))
    with pytest.raises(ValueError, match="sparse points cannot be saved by reference: leave points out"):
        sparse.save(tmp_path / "sparse", points=tmp_path / "other.npy")


def test_what_cannot_be_saved_leaves_nothing_behind(tmp_path):
    class Mine:
        kind, farthest, reducible = "similarity", None, False

    X = groups()
    model = SCC().fit(X)
    model.linkage = Mine()
    with pytest.raises(TypeError, match="linkage is a Mine, which cannot be saved"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    with pytest.raises(FileExistsError, match="is not empty and holds no model; choose another folder"):
        SCC().fit(X).save(tmp_path / "other")
    with pytest.raises(FileExistsError, match=r"letter\.txt: it is a file; pass the name of a folder"):
        SCC().fit(X).save(tmp_path / "other" / "letter.txt")


@pytest.fixture
def saved(tmp_path):
    SCC(n_neighbors=5).fit(groups()).save(tmp_path)
    return tmp_path


def test_a_folder_that_is_no_model_says_so(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no model: there is no model\.json in it"):
        agglo.load(tmp_path / "nowhere")
    for name in (TREE, GRAPH, POINTS):
        data = (saved / name).read_bytes()
        (saved / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(ValueError, match=f"{name} is damaged, or belongs to another run than model.json"):
            agglo.load(saved)
        (saved / name).unlink()
        with pytest.raises(FileNotFoundError, match=f"is incomplete: model.json lists {name}, which is missing"):
            agglo.load(saved)
        (saved / name).write_bytes(data)
    agglo.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(version=99), "it is of version 99, and this agglo reads version 1"),
        (lambda r: r.pop("files"), "it does not list the files of a model"),
        (lambda r: r["files"].update({"../../passwd": ""}), "it does not list the files of a model"),
        (lambda r: r.update({"class": "os"}), "KeyError: 'os'"),
        (lambda r: r["parameters"].update(colour=1), "unexpected keyword argument 'colour'"),
        (lambda r: r["graph"].update(kind="nearness"), "kind='nearness' is unknown"),
        (lambda r: r.update(features=5), r"the points are of shape \(120, 6\)"),
        (lambda r: r.update(resolution=None, round=10**6), "round=1000000 is out of range"),
        (lambda r: r.update(resolution=-1), "resolution=-1 is not allowed"),
        (lambda r: r["points"].update(method="magic"), "method 'magic' is unknown"),
        (lambda r: r.update(points=7), "TypeError"),
    ],
)
def test_a_record_that_was_tampered_with_is_an_error(saved, change, message):
    record = json.loads((saved / MODEL).read_text())
    change(record)
    del record["checksum"]
    (saved / MODEL).write_text(json.dumps(add_checksum(record)))
    with pytest.raises(ValueError, match=rf"model\.json is no model of agglo's: .*{message}.*; save it again"):
        agglo.load(saved)


def test_a_record_that_is_no_json_is_an_error(saved):
    for text in ("", "{", "[]", "\0"):
        (saved / MODEL).write_text(text)
        with pytest.raises(ValueError, match=r"model\.json is damaged \(.*\): save the model again"):
            agglo.load(saved)


def test_files_of_two_saves_are_told_apart(saved, tmp_path):
    SCC(n_neighbors=5).fit(groups(seed=1)).save(tmp_path / "other")
    (tmp_path / "other" / TREE).replace(saved / TREE)
    with pytest.raises(ValueError, match=r"tree\.parquet is damaged, or belongs to another run"):
        agglo.load(saved)


@pytest.mark.parametrize("by_reference", [False, True])
def test_what_was_known_of_the_points_comes_back(by_reference, tmp_path):
    X = groups()[np.arange(100) % 70]
    np.save(tmp_path / "X.npy", X)
    known = {
        "must_link": [[0, 6]],
        "cannot_link": [[1, 7], list(range(2, 8))],
        "sample_weight": 1 + np.arange(100) % 3,
    }
    model = SCC(n_neighbors=4, max_cluster_size=50).fit(X, **known)
    files = model.save(tmp_path / "model", points=tmp_path / "X.npy" if by_reference else None)
    assert (GRAPH_TREE in {path.name for path in files}, model.graph_.n_points) == (True, 78)
    loaded = agglo.load(tmp_path / "model")
    assert_same_model(loaded, model, groups(30, 1))
    assert loaded.graph_index_.tolist() == model.graph_index_.tolist()
    assert_same_model(loaded.partial_fit(groups(30, 2)), model.partial_fit(groups(30, 2)), groups(30, 1))
    assert len(set(loaded.labels_[2:8])) == 6
