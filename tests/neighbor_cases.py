"""Inputs and checks that the tests of several neighbour searches share."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp


def points_with_ties(max_points, max_columns, largest):
    """Draw points of small integers, many of them equal or at equal distances."""
    shape = st.tuples(st.integers(2, max_points), st.integers(1, max_columns))
    return hnp.arrays(np.float32, shape, elements=st.integers(-2, largest), fill=st.just(0))


def check_threads(search):
    """Check that ``search(n_threads)`` returns the same bits for any number of threads."""
    first = search(1)
    for n_threads in (2, 8):
        for one, other in zip(first, search(n_threads), strict=True):
            assert one.tobytes() == other.tobytes()


def check_progress(search):
    """Check that ``search(report)`` reports rising numbers, and that an exception of ``report`` stops it."""
    seen = []
    search(lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert all(0 <= done <= total for done, total in seen)

    class EnoughError(Exception):
        pass

    def stop(done, total):
        raise EnoughError

    with pytest.raises(EnoughError):
        search(stop)
