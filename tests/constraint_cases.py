"""Constraints for tests: random ones that can be met, and a check that a tree obeys them."""

import numpy as np
from hypothesis import strategies as st

from agglo import NeighborGraph

LINKAGES = ["average", "single", "complete"]


METHODS = ["scc", "affinity", "hac"]


@st.composite
def constraints_on(draw, n, weights=None):
    """Draw constraints on ``n`` points that a hidden partition satisfies."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    hidden = rng.integers(0, draw(st.integers(1, n)), n)
    weights = np.ones(n) if weights is None else weights
    largest = np.bincount(hidden, weights).max()

    def groups(allowed, most):
        found = []
        for _ in range(draw(st.integers(0, most))):
            members = [int(i) for i in rng.permutation(n)[: int(rng.integers(2, max(3, n)))]]
            group = []
            for i in members:
                if all(allowed(i, j) for j in group):
                    group.append(i)
            if len(group) > 1:
                found.append(group)
        return found

    must = groups(lambda i, j: hidden[i] == hidden[j], 3)
    cannot = groups(lambda i, j: hidden[i] != hidden[j], 4)
    most = draw(st.sampled_from([None, 0, 1, 3]))
    return {
        "must_link": must or None,
        "cannot_link": cannot or None,
        "max_cluster_size": None if most is None else float(largest + most),
    }


def check_obeyed(tree, must_link, cannot_link, max_cluster_size, weights=None):
    """Every partition obeys the constraints, because the last does not join what none may, and the first links."""
    last = tree.labels(round=-1)
    for group in [] if cannot_link is None else cannot_link:
        assert len(set(last[group])) == len(group)
    for group in [] if must_link is None else must_link:
        assert len(set(tree.labels(round=1)[group])) == 1
    if max_cluster_size is not None:
        assert np.bincount(last, weights).max() <= max_cluster_size


def line(*weights, kind="similarity"):
    i = np.arange(len(weights))
    return NeighborGraph.from_edges(i, i + 1, weights, kind=kind)
