import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from agglo.paper import datasets
from agglo.paper.datasets import Dataset

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@settings(max_examples=30)
@given(SEEDS, st.integers(1, 400), st.integers(1, 5), st.floats(0.1, 20))
def test_a_mixture_has_the_points_asked_for_and_classes_without_gaps(seed, n, d, concentration):
    made = datasets.dp_mixture(n, d, concentration=concentration, random_state=seed)
    again = datasets.dp_mixture(n, d, concentration=concentration, random_state=seed)
    assert made.X.shape == (n, d)
    assert set(made.y) == set(range(made.n_classes))
    np.testing.assert_array_equal(made.X, again.X)
    np.testing.assert_array_equal(made.y, again.y)


def test_the_classes_of_a_mixture_are_as_many_as_the_process_has():
    counts = [datasets.dp_mixture(2000, 1, concentration=5.0, random_state=i).n_classes for i in range(40)]
    expected = (5.0 / (5.0 + np.arange(2000))).sum()  # of the Chinese restaurant's tables
    assert abs(np.mean(counts) - expected) < 4 * np.sqrt(expected / 40)


def test_the_spread_of_a_mixture_is_one_about_centers_that_are_apart():
    made = datasets.dp_mixture(20_000, 4, separation=10.0, random_state=3)
    largest = np.bincount(made.y).argmax()
    np.testing.assert_allclose(made.X[made.y == largest].std(axis=0), 1, atol=0.05)


@settings(max_examples=40)
@given(SEEDS, SIZES, st.sampled_from([(6.0, False), (30.0, True)]))
def test_separated_data_are(seed, sizes, condition):
    delta, squared = condition
    made = datasets.delta_separated(sizes, delta, squared=squared, random_state=seed)
    k = len(sizes)
    assert np.bincount(made.y).tolist() == sizes
    power = 2 if squared else 1
    centers = np.zeros((k, k + 1))
    centers[:, :k] = np.eye(k) * np.sqrt(delta if squared else delta**2) / np.sqrt(2)
    assert (np.linalg.norm(made.X - centers[made.y], axis=1) ** power).max() <= 1 + 1e-6
    apart = np.linalg.norm(centers[:, None] - centers, axis=2)[~np.eye(k, dtype=bool)] ** power
    np.testing.assert_allclose(apart, delta)


@settings(max_examples=30)
@given(SEEDS, SIZES)
def test_model_separated_distances_are_smaller_within_a_class(seed, sizes):
    graph, y = datasets.model_separated(sizes, random_state=seed)
    n = sum(sizes)
    assert graph.n_edges == n * (n - 1) // 2
    rows = np.repeat(np.arange(n), n - 1)
    same = y[rows] == y[graph.indices]
    assert ((graph.weights <= 2) == same).all()
    assert (graph.weights[~same] >= 3).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: datasets.dp_mixture(0), "n_points=0 must be at least 1"),
        (lambda: datasets.dp_mixture(5, concentration=0.0), "concentration=0.0 must be positive"),
        (lambda: datasets.dp_mixture(5, separation=np.inf), "separation=inf must be positive and finite"),
        (lambda: datasets.delta_separated([]), r"sizes=\[\] must have one size of at least 1 per class"),
        (lambda: datasets.delta_separated([2, 0]), r"sizes=\[2, 0\] must have one size"),
        (lambda: datasets.delta_separated([2], -1.0), "delta=-1.0 must be positive"),
        (lambda: datasets.model_separated([0]), r"sizes=\[0\] must have one size"),
        (
            lambda: Dataset("empty", np.empty((0, 3))),
            r"empty has points of shape \(0, 3\): expected at least one row and one column",
        ),
        (
            lambda: Dataset("bad", np.array([[0.0], [np.nan]])),
            "bad has a number that is not finite in row 1: remove",
        ),
        (lambda: Dataset("odd", np.eye(2), np.zeros(3)), "odd has 2 points, but y has 3 entries"),
        (lambda: Dataset("odd", np.eye(2), texts=("a",)), "odd has 2 points, but texts has 1 entries"),
        (lambda: datasets.load_iris().prepare("log"), "how='log' is unknown: pass one of 'unit', 'standard'"),
        (lambda: datasets.load_iris().sample(0), "n_points=0 must be at least 1"),
    ],
)
def test_errors_of_datasets(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_preparations_scale_rows_and_columns():
    raw = Dataset("raw", np.array([[3, 4, 7], [0, 0, 7], [6, 8, 7]], np.int16), np.array([0, 1, 0]))
    unit = raw.prepare()
    np.testing.assert_allclose(np.linalg.norm(unit.X, axis=1), 1, rtol=1e-6)
    assert unit.X.dtype == np.float32
    scaled = (raw.X - raw.X.mean(axis=0)) / np.array([np.sqrt(6), np.sqrt(32 / 3), 1])
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    np.testing.assert_allclose(raw.prepare("standard").X, scaled / lengths, atol=1e-6)
    assert raw.X.tolist() == [[3, 4, 7], [0, 0, 7], [6, 8, 7]]


def test_a_sample_keeps_points_classes_levels_and_texts_together():
    y = np.arange(50)
    full = Dataset("full", y[:, None] * 2.0, y, levels={"half": y // 2}, texts=tuple(map(str, y)))
    some = full.sample(20, random_state=1)
    assert len(some.X) == 20
    np.testing.assert_array_equal(some.X[:, 0], 2 * some.y)
    np.testing.assert_array_equal(some.levels["half"], some.y // 2)
    assert some.texts == tuple(map(str, some.y))
    assert (np.diff(some.y) > 0).all()
    assert full.sample(50) is full


def test_the_sets_of_scikit_learn():
    iris, wine = datasets.load_iris(), datasets.load_wine()
    assert iris.X.shape == (150, 4)
    assert wine.X.shape == (178, 13)
    assert np.bincount(wine.y).tolist() == [59, 71, 48]


def covtype_lines():
    rng = np.random.default_rng(0)
    return "".join(",".join(map(str, [*rng.integers(0, 300, 54), label])) + "\n" for label in [5, 1, 7, 5])


@pytest.mark.parametrize("packed", [False, True])
def test_covtype(tmp_path, packed):
    path = tmp_path / ("covtype.data.gz" if packed else "covtype.data")
    with gzip.open(path, "wt") if packed else path.open("w") as file:
        file.write(covtype_lines())
    found = datasets.load_covtype(path)
    assert found.X.shape == (4, 54)
    assert found.y.tolist() == [1, 0, 2, 1]
    assert found.X[0].tolist() == [float(value) for value in covtype_lines().split("\n")[0].split(",")[:-1]]


def test_aloi(tmp_path):
    path = tmp_path / "aloi"
    path.write_text("3 1:0.5 100:2\n0 7:1\n3 2:1\n")
    found = datasets.load_aloi(path)
    assert found.X.shape == (3, 128)
    assert found.y.tolist() == [1, 0, 1]
    assert found.X[0, [0, 99]].tolist() == [0.5, 2.0]
    assert np.count_nonzero(found.X) == 4


def test_tsv(tmp_path):
    path = tmp_path / "speaker.tsv"
    path.write_text("u1\tann\t0.5\t1\nu2\tbob\t-2\t3\nu3\tann\t1e-3\t4\n")
    found = datasets.load_tsv(path)
    assert found.name == "speaker"
    np.testing.assert_allclose(found.X, [[0.5, 1], [-2, 3], [1e-3, 4]])
    assert found.y.tolist() == [0, 1, 0]


def test_features(tmp_path):
    np.save(tmp_path / "inception.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    np.save(tmp_path / "labels.npy", np.array(["b", "a", "b"]))
    found = datasets.load_features(tmp_path / "inception.npy", tmp_path / "labels.npy")
    assert found.y.tolist() == [1, 0, 1]
    assert found.X.tolist() == [[0, 1], [2, 3], [4, 5]]
    np.save(tmp_path / "labels.npy", np.eye(3))
    with pytest.raises(ValueError, match=r"labels.npy has an array of shape \(3, 3\), but a class for each point"):
        datasets.load_features(tmp_path / "inception.npy", tmp_path / "labels.npy")


def test_npz(tmp_path):
    path = tmp_path / "set.npz"
    lines = np.frombuffer("eins\nzwei\ndreißig".encode(), np.uint8)
    np.savez(path, X=np.eye(3, dtype=np.float16), y=[7, 2, 7], y_parent=[1, 1, 0], texts=lines, label_names=["a"])
    found = datasets.load_npz(path)
    assert found.X.dtype == np.float32
    assert found.y.tolist() == [1, 0, 1]
    assert found.levels["parent"].tolist() == [1, 1, 0]
    assert found.texts == ("eins", "zwei", "dreißig")


def test_sparse_npz(tmp_path):
    dense = np.array([[0, 1.5, 0], [2, 0, 0]], np.float32)
    rows = sp.csr_matrix(dense)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": rows.shape}
    np.savez(tmp_path / "set.npz", **parts, texts=np.array(["a", "b"]))
    found = datasets.load_npz(tmp_path / "set.npz")
    np.testing.assert_array_equal(found.X, dense)
    assert found.texts == ("a", "b")
    assert (found.y, found.n_classes) == (None, 0)
    assert "no classes" in repr(found)


@pytest.mark.parametrize(
    ("load", "text", "message"),
    [
        (datasets.load_covtype, "1,2,3\n", "has 3 columns, but 54 and the cover type was expected"),
        (datasets.load_covtype, "1,2\n3\n", "is damaged, incomplete or of another format"),
        (
            datasets.load_covtype,
            covtype_lines().replace("5\n", "x\n"),
            "entries that are not numbers in feature 54",
        ),
        (datasets.load_aloi, "0 129:1\n", "has features up to 129, but at most 128 was expected"),
        (datasets.load_aloi, "none\n", "is damaged, incomplete or of another format"),
        (datasets.load_tsv, "a\tb\n", "has 2 columns, but a name, a class and numbers was expected"),
        (datasets.load_tsv, "a\tb\tc\n", "entries that are not numbers in feature 0"),
        (datasets.load_npz, "PK", "is damaged, incomplete or of another format"),
    ],
)
def test_errors_of_wrong_files(tmp_path, load, text, message):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_an_archive_without_points_is_reported(tmp_path):
    np.savez(tmp_path / "set.npz", y=[1], data=[1])
    with pytest.raises(
        ValueError, match="has the arrays y, data, but X, or data, indices, indptr, shape was expected"
    ):
        datasets.load_npz(tmp_path / "set.npz")


@pytest.mark.parametrize("load", [datasets.load_covtype, datasets.load_aloi, datasets.load_tsv, datasets.load_npz])
def test_a_missing_file_is_named(load):
    with pytest.raises(
        FileNotFoundError, match="nowhere cannot be read: there is no such file; download it first"
    ):
        load("nowhere")
