import numpy as np
import scipy.sparse as sp
from duplicate_cases import number_groups, repeated_points
from hypothesis import given
from hypothesis import strategies as st

from agglo.points.dedup import find_duplicates

DTYPES = ["float64", "float32", "float16", "int64", "int8", "uint8", "bool"]


@given(repeated_points(), st.sampled_from(DTYPES), st.booleans())
def test_duplicates_are_found(X, dtype, sparse):
    X = X.astype(np.int64).astype(dtype) if dtype in ("uint8", "bool") else X.astype(dtype)
    duplicates = find_duplicates(sp.csr_array(X) if sparse and dtype != "float16" else X)
    expected = number_groups(map(tuple, X.tolist()))
    assert duplicates.inverse.tolist() == expected
    assert duplicates.first.tolist() == [expected.index(place) for place in range(max(expected) + 1)]
    assert duplicates.n_duplicates == len(X) - len(duplicates.first)


def test_sparse_matrices_may_have_unsorted_and_repeated_entries():
    unsorted = sp.csr_array(
        ([1.0, 2.0, 2.0, 1.0, 0.0, 1.5, 0.5], [0, 1, 1, 0, 2, 1, 1], [0, 2, 5, 7]), shape=(3, 3)
    )
    before = unsorted.copy()
    assert find_duplicates(unsorted).inverse.tolist() == [0, 0, 1]
    assert (unsorted.data.tolist(), unsorted.indices.tolist()) == (before.data.tolist(), before.indices.tolist())
