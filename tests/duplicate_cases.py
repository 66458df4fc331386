"""Points with duplicates, for tests."""

import numpy as np
from hypothesis import strategies as st


def number_groups(keys):
    """Number groups of equal keys in order of first appearance."""
    seen = {}
    return [seen.setdefault(key, len(seen)) for key in keys]


@st.composite
def repeated_points(draw, max_points=30):
    """Points with few distinct rows, including zeros of both signs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, max_points)), draw(st.integers(1, 3))
    return rng.integers(0, draw(st.integers(1, 4)), shape) * rng.choice([-1.0, 1.0], shape)
