import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import agglo
from agglo import SCC, neighbor_graph
from agglo.evaluation import clusters as contents
from agglo.evaluation import metrics
from agglo.paper.baselines import HKM
from agglo.paper.dpmeans import SerialDPMeans
from agglo.points.frames import to_array

X = np.round(np.random.default_rng(0).normal(size=(24, 3)) + 5 * np.arange(24)[:, None] % 3, 2)
LABELS = np.arange(24) % 3


class Stream:
    """A table of some library that speaks Arrow, as a relation of DuckDB does."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def fixed_lists():
    return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)


def columns():
    return {name: X[:, i] for i, name in enumerate("abc")}


FORMS = {
    "lists": X.tolist,
    "Fortran order": lambda: np.asfortranarray(X),
    "big-endian": lambda: X.astype(">f8"),
    "longdouble": lambda: X.astype(np.longdouble),
    "strided": lambda: np.repeat(X, 2, axis=0)[::2],
    "objects": lambda: X.astype(object),
    "unmasked": lambda: np.ma.masked_array(X),
    "pandas": lambda: pd.DataFrame(columns()),
    "pandas nullable": lambda: pd.DataFrame(columns()).astype("Float64"),
    "pandas of Arrow": lambda: pd.DataFrame(columns()).astype("double[pyarrow]"),
    "pandas mixed": lambda: pd.DataFrame(columns()).astype({"b": "Float64", "c": "double[pyarrow]"}),
    "polars": lambda: pl.DataFrame(columns()),
    "Arrow table": lambda: pa.table(columns()),
    "Arrow batch": lambda: pa.record_batch(columns()),
    "Arrow stream": lambda: Stream(pa.table(columns())),
    "pandas column of lists": lambda: pd.Series(X.tolist()),
    "pandas frame of arrays": lambda: pd.DataFrame({"v": list(X)}),
    "pandas column of Arrow lists": lambda: pd.Series(X.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
    "polars List": lambda: pl.Series("v", X.tolist()),
    "polars Array": lambda: pl.Series("v", X.tolist(), dtype=pl.Array(pl.Float64, 3)),
    "polars frame of List": lambda: pl.DataFrame({"v": X.tolist()}),
    "polars frame of Array": lambda: pl.DataFrame({"v": pl.Series(X.tolist(), dtype=pl.Array(pl.Float64, 3))}),
    "Arrow lists": lambda: pa.array(X.tolist()),
    "Arrow chunks": lambda: pa.chunked_array([X[:5].tolist(), X[5:].tolist()]),
    "Arrow list views": lambda: pa.table({"v": pa.array(X.tolist(), pa.list_view(pa.float64()))}),
    "Arrow large list views": lambda: pa.table({"v": pa.array(X.tolist(), pa.large_list_view(pa.float64()))}),
    "Arrow large lists": lambda: pa.table({"v": pa.array(X.tolist(), pa.large_list(pa.float64()))}),
    "Arrow fixed-size lists": fixed_lists,
    "Arrow table of fixed-size lists": lambda: pa.table({"v": fixed_lists()}),
    "Arrow stream of fixed-size lists": lambda: Stream(pa.table({"v": fixed_lists()})),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_function_takes_points_in_every_form(form):
    given = FORMS[form]()
    fitted = SCC(metric="euclidean", n_neighbors=4).fit(given)
    expected = SCC(metric="euclidean", n_neighbors=4).fit(X)
    np.testing.assert_array_equal(fitted.labels_, expected.labels_)
    np.testing.assert_array_equal(fitted.predict(given), expected.predict(X))
    assert fitted.n_features_in_ == 3
    has_names = form in ("pandas", "pandas nullable", "pandas of Arrow", "pandas mixed", "polars")
    assert hasattr(fitted, "feature_names_in_") >= has_names
    np.testing.assert_array_equal(neighbor_graph(given, 4).weights, neighbor_graph(X, 4).weights)
    np.testing.assert_allclose(contents.centers(given, LABELS), contents.centers(X, LABELS))
    path = agglo.dp_means_path(expected.tree_, given)
    np.testing.assert_allclose(path.node_cost, agglo.dp_means_path(expected.tree_, X).node_cost)
    assert metrics.dp_means_cost(given, LABELS, 1.0) == pytest.approx(metrics.dp_means_cost(X, LABELS, 1.0))
    np.testing.assert_array_equal(
        SerialDPMeans(5.0, random_state=0).fit(given).labels_, SerialDPMeans(5.0, random_state=0).fit(X).labels_
    )
    np.testing.assert_array_equal(HKM(3, random_state=0).fit(given).labels_, HKM(3, random_state=0).fit(X).labels_)


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", ">i4", ">f2", "g"]
)
def test_numbers_of_all_types_are_points(dtype):
    given = (np.abs(X) > 2 if dtype == "?" else np.abs(X)).astype(dtype)
    expected = SCC(metric="euclidean", n_neighbors=3).fit(given.astype(np.float64))
    given.flags.writeable = False
    fitted = SCC(metric="euclidean", n_neighbors=3).fit(given)
    np.testing.assert_array_equal(fitted.labels_, expected.labels_)
    np.testing.assert_array_equal(fitted.predict(given), expected.predict(given.astype(np.float64)))


def test_a_sparse_frame_is_sparse():
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_array(np.abs(X)))
    assert sp.issparse(to_array(frame))
    expected = neighbor_graph(sp.csr_array(np.abs(X)), 3)
    np.testing.assert_allclose(neighbor_graph(frame, 3).weights, expected.weights)
    SCC(n_neighbors=3).fit(frame)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (np.asmatrix(X), TypeError, "matrix"),
        (np.ma.masked_less(X, 1), TypeError, "masked array with missing values"),
        (X + 1j, (TypeError, ValueError), "[Cc]omplex|real numbers"),
        (
            pd.DataFrame({"a": pd.array([1, None, 3], "Int64"), "b": [1.0, 2.0, 3.0]}),
            ValueError,
            "row 1 of column 'a'",
        ),
        (pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [1.0, 2.0, 3.0]}), ValueError, "NaN|nan"),
        (
            pl.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]}),
            ValueError,
            "no number in row 1 of column 'a'",
        ),
        (pa.table({"a": [1, None, 3], "b": [1.0, 2.0, 3.0]}), ValueError, "row 1 of column 'a'"),
        (
            pd.Series([[1.0, 2.0], [1.0], [3.0, 4.0]]),
            ValueError,
            "2 numbers in its first row, but 1 in row 1",
        ),
        (pd.Series([[1.0, 2.0], None, [3.0, 4.0]]), ValueError, "no vector in row 1"),
        (pl.Series([[1.0, 2.0], [1.0], [3.0, 4.0]]), ValueError, "2 numbers in its first row, but 1 in row 1"),
        (pl.Series([[1.0, 2.0], None, [3.0, 4.0]]), ValueError, "no vector in row 1"),
        (pa.array([[1.0, 2.0], [1.0, None]]), ValueError, "an empty entry in row 1"),
        (pa.array([[1.0, 2.0], [1.0, np.nan]]), ValueError, "NaN|nan"),
        (
            pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
            TypeError,
            "column ('b'|1) of X has texts, such as 'x'",
        ),
        (
            pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
            TypeError,
            "column ('b'|1) of X has texts, such as 'x'",
        ),
        (pa.table({"a": [1.0, 2.0], "b": ["x", "y"]}), TypeError, "column ('b'|1) of X has texts, such as 'x'"),
        (["a b", "c d"], TypeError, r"X has texts: pass their embeddings, or call agglo\.topics\(texts\)"),
        (pd.Series(["a b", "c d"]), TypeError, "X has texts: pass their embeddings"),
        (pl.Series(["a b", "c d"]), TypeError, "X has texts: pass their embeddings"),
        (pd.DataFrame({"d": pd.to_datetime(["2020-01-01", "2021-01-01"])}), TypeError, "real number"),
    ],
)
def test_what_is_no_table_of_numbers_is_an_error(given, error, message):
    for function in (SCC().fit, lambda X: neighbor_graph(X, 1)):
        with pytest.raises(error, match=message):
            function(given)


def test_broken_sparse_points_are_errors():
    matrix = sp.csr_array(np.abs(X))
    matrix.indices[3] = 77
    for function in (SCC().fit, lambda X: neighbor_graph(X, 3)):
        with pytest.raises(
            ValueError, match="X is not a valid CSR matrix: indices go from 0 to 77, not from 0 to 2"
        ):
            function(matrix)


def test_labels_with_gaps_take_no_memory():
    with pytest.raises(ValueError, match=r"no label is 1, but labels go up to 3000000000: .*np.unique"):
        contents.centers([[0.0], [1.0]], [0, 3_000_000_000])
    assert metrics.pairwise_f1([0, 3_000_000_000, 0], [5, 2, 5]).f1 == 1


@pytest.mark.parametrize("form", [pd.Series, pl.Series, pa.array, lambda y: pd.Series(y, dtype="string[pyarrow]")])
def test_labels_of_all_libraries_can_be_scored(form):
    given = form(["a", "a", "b", "b"])
    assert metrics.pairwise_f1(given, pd.array([1, 1, 2, 2], "Int64")).f1 == 1
    missing = form(["a", None, "b", "b"])
    with pytest.raises(ValueError, match=r"y\[1\] is .*every point needs a label"):
        metrics.pairwise_f1(missing, [1, 1, 2, 2])


def test_libraries_of_tables_are_imported_only_if_a_table_comes_from_them():
    program = (
        "import sys, agglo; agglo.neighbor_graph([[0.0], [1.0], [3.0]], 1, 'euclidean');"
        "print([name for name in ('pandas', 'polars', 'pyarrow') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
