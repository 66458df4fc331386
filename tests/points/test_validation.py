"""Points from outside: what is taken, as what, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from agglo._validation import effective_n_threads
from agglo.points.points import as_core_array, check_points

ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_pass_without_a_copy(dtype):
    X = np.array(ROWS, dtype)
    assert np.shares_memory(check_points(X), X)
    assert check_points(X).dtype == dtype


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8, bool, np.float32, np.float64])
def test_compact_numbers_stay_where_they_are(dtype):
    X = np.array(ROWS, dtype)
    points = check_points(X, compact=True)
    assert np.shares_memory(points, X)
    assert points.dtype == (np.uint8 if dtype is bool else dtype)
    assert as_core_array(points).dtype == (np.uint16 if dtype is np.float16 else points.dtype)


@pytest.mark.parametrize("dtype", [">f2", ">f4", np.int16, np.float128])
def test_other_numbers_are_converted_even_then(dtype):
    points = check_points(np.array(ROWS, dtype), compact=True)
    assert points.dtype == (np.float64 if dtype is np.float128 else np.float32)
    np.testing.assert_array_equal(points, ROWS)


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int16, np.int32, np.int64, np.uint64, bool])
def test_small_numbers_become_float32(dtype):
    points = check_points(np.array(ROWS, dtype))
    assert points.dtype == np.float32
    np.testing.assert_array_equal(points, np.array(ROWS, dtype).astype(np.float32))


@pytest.mark.parametrize("value", [2**24 + 1, -(2**24) - 1])
def test_integers_that_float32_cannot_hold_become_float64(value):
    assert check_points(np.array([[value, 0]]))[0, 0] == value


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        np.asfortranarray,
        lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
        lambda rows: pl.DataFrame(rows, schema=["a", "b"], orient="row"),
        lambda rows: pa.table({"a": [r[0] for r in rows], "b": [r[1] for r in rows]}),
        lambda rows: np.array(rows).repeat(2, axis=0)[::2],
    ],
)
def test_tables_of_all_makers(make):
    points = check_points(make(ROWS))
    assert points.flags.c_contiguous
    np.testing.assert_array_equal(points, ROWS)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_first_number_that_is_not_finite_is_named(value, dtype):
    X = np.zeros((10_000, 3), dtype)
    X[9_000, 1] = X[9_500, 0] = value
    for compact in (False, True):
        what = "NaN" if np.isnan(value) else "infinity"
        text = rf"X contains {what}: X\[9000, 1\] is {value}, but points must be finite: drop such rows"
        with pytest.raises(ValueError, match=text):
            check_points(X, compact=compact)


def test_numbers_too_large_to_square():
    with pytest.raises(ValueError, match=r"X\[1, 0\] is -1e\+200, and numbers beyond 1e\+100 .*scale X down"):
        check_points([[1.0, 2.0], [-1e200, 3.0]])


@pytest.mark.parametrize(
    ("X", "error", "text"),
    [
        (
            np.zeros(5),
            ValueError,
            r"one-dimensional, of shape \(5,\).*X\.reshape\(-1, 1\) if it has one column",
        ),
        (pd.Series([1.0, 2.0]), ValueError, r"one-dimensional, of shape \(2,\)"),
        (np.float64(3.0), ValueError, r"X has 0 dimensions, shape \(\)"),
        (np.zeros((2, 3, 4)), ValueError, r"3 dimensions, shape \(2, 3, 4\).*X\.reshape\(len\(X\), -1\)"),
        (np.zeros((0, 4)), ValueError, r"empty, of shape \(0, 4\): pass at least one point"),
        (np.zeros((4, 0)), ValueError, r"empty, of shape \(4, 0\)"),
        ([], ValueError, r"one-dimensional, of shape \(0,\)"),
        ([[1.0, 2.0], [3.0]], ValueError, r"not a table of numbers .*rows of one length"),
        (np.array([["1"], ["2"]]), TypeError, r"dtype <U1, but points must be real numbers: convert it"),
        (
            np.array([["a"], ["b"]]),
            TypeError,
            r"X has texts: pass their embeddings, or call agglo\.topics\(texts\)",
        ),
        (["a b", "c d"], TypeError, r"X has texts: pass their embeddings"),
        (np.array([[1, None]]), ValueError, r"X\[0, 1\] is nan, but points must be finite"),
        (np.array([[1, 1j]], object), TypeError, r"dtype object .*leave out or encode columns"),
        (np.array([[1, "x"]], object), TypeError, r"column 1 of X has texts, such as 'x': leave out this column"),
        (pd.DataFrame({"a": ["1"], "b": ["x"]}), TypeError, r"column 'b' of X has texts, such as 'x'"),
        (np.zeros((2, 2), complex), TypeError, r"dtype complex128"),
        (np.zeros((2, 2), "M8[s]"), TypeError, r"dtype datetime64\[s\]"),
        (None, TypeError, r"dtype object"),
        (
            sp.csr_array(np.eye(3)),
            TypeError,
            r"sparse csr_array, but points must be dense here: pass X\.toa",
        ),
        (sp.coo_matrix(np.eye(3)), TypeError, r"sparse coo_matrix"),
        (np.ma.masked_less(np.eye(3), 1), TypeError, r"masked array.*X\.filled"),
    ],
)
def test_what_is_not_a_table_of_numbers(X, error, text):
    with pytest.raises(error, match=text):
        check_points(X)


def test_threads_count_as_scikit_learn_does():
    everything = effective_n_threads(None)
    assert everything >= 1
    assert effective_n_threads(-1) == everything
    assert effective_n_threads(-everything - 5) == 1
    assert effective_n_threads(3) == 3


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two", True])
def test_what_is_not_a_number_of_threads(n_jobs):
    with pytest.raises(ValueError, match=rf"n_jobs={n_jobs!r} is not a number of threads: pass a positive"):
        effective_n_threads(n_jobs)
