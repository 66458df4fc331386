"""Perch and Grinch: their theorems, and that shortcuts which claim to be exact are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from agglo.baselines import Perch
from agglo.baselines.online import earlier_neighbors
from agglo.metrics import dendrogram_purity
from agglo.testing import assert_same_hierarchy, check_hierarchy


def separated(seed, n, k, d, copies=False):
    """Points of k classes, in random order, each closer to all of its class than to anyone of another."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    centers = np.zeros((k, d))
    centers[:, 0] = 2.5 * np.arange(k)
    noise = rng.standard_normal((n, d))
    noise *= rng.random((n, 1)) / (2 * np.linalg.norm(noise, axis=1, keepdims=True))
    if copies:
        noise = np.round(4 * noise) / 4 / np.sqrt(d)
    return centers[y] + noise, y


def has_pairs(y):
    return np.bincount(y).max() > 1


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 80),
    k=st.integers(1, 8),
    d=st.integers(1, 6),
    copies=st.booleans(),
    search=st.sampled_from(["exact", "boxes"]),
    balance=st.booleans(),
)
def test_perch_keeps_separated_classes_together_in_any_order(seed, n, k, d, copies, search, balance):
    X, y = separated(seed, n, k, d, copies)
    between = cdist(X, X)[y[:, None] != y].min(initial=np.inf)
    assert cdist(X, X)[y[:, None] == y].max() < between
    tree = Perch(search=search, balance=balance, shuffle=False).fit(X).tree_
    check_hierarchy(tree)
    if has_pairs(y):
        assert dendrogram_purity(tree, y) == 1.0


def test_perch_keeps_large_separated_classes_together():
    X, y = separated(5, 3000, 12, 20)
    for seed in range(2):
        assert dendrogram_purity(Perch(random_state=seed).fit(X).tree_, y) == 1.0


def test_a_search_by_boxes_makes_the_tree_of_an_exact_search():
    X = np.random.default_rng(0).standard_normal((400, 3))
    exact = Perch(random_state=1).fit(X).tree_
    assert_same_hierarchy(exact, Perch(random_state=1, search="boxes").fit(X).tree_)
    assert_same_hierarchy(exact, Perch(random_state=1, search="beam", beam_width=400).fit(X).tree_)


def test_balance_makes_the_tree_of_perch_shallower():
    X = np.sort(np.random.default_rng(0).random((500, 1)), axis=0)  # in order, so that each joins the one before

    def depth(tree):
        below = np.zeros(tree.n_nodes, int)
        for node in range(tree.n_nodes - 2, -1, -1):
            below[node] = below[tree.parent[node]] + 1
        return below[: tree.n_leaves].mean()

    thin, bushy = (Perch(balance=balance, shuffle=False).fit(X).tree_ for balance in (False, True))
    assert depth(bushy) < 0.2 * depth(thin)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    max_leaves=st.integers(2, 20),
    search=st.sampled_from(["exact", "boxes", "beam"]),
    masking=st.sampled_from(["exact", "boxes"]),
)
def test_perch_with_few_leaves_is_a_tree_of_all_points(seed, n, max_leaves, search, masking):
    X = np.random.default_rng(seed).integers(-4, 5, (n, 2)).astype(float)
    model = Perch(search=search, masking=masking, max_leaves=max_leaves, beam_width=3, shuffle=False)
    tree = model.fit(X).tree_
    check_hierarchy(tree)
    assert tree.n_leaves == n
    inner = tree.n_nodes - n
    assert inner <= max(0, n - 1)
    assert inner <= 2 * max_leaves - 1


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 70), k=st.integers(1, 9), dot=st.booleans())
def test_earlier_neighbors_are_the_nearest_before(seed, n, k, dot):
    rows = np.random.default_rng(seed).integers(-5, 6, (n, 2)).astype(np.float32)
    close = rows @ rows.T if dot else -cdist(rows, rows, "sqeuclidean")
    for i, found in enumerate(earlier_neighbors(rows, k, dot=dot)):
        known = found[found >= 0]
        assert len(known) == min(i, k)
        assert (known < i).all()
        np.testing.assert_allclose(close[i, known], np.sort(close[i, :i])[::-1][:k])


def test_earlier_neighbors_in_blocks(monkeypatch):
    rows = np.random.default_rng(3).standard_normal((200, 4)).astype(np.float32)
    whole = earlier_neighbors(rows, 5, dot=False)
    monkeypatch.setattr("agglo.baselines.online._BLOCK", 7)
    np.testing.assert_array_equal(earlier_neighbors(rows, 5, dot=False), whole)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"search": "kd"}, "search='kd' is unknown: pass one of exact, boxes, beam"),
        ({"masking": "none"}, "masking='none' is unknown: pass one of exact, boxes"),
        ({"beam_width": 0}, "beam_width=0 must be at least 1"),
        ({"max_leaves": 1}, "max_leaves=1 leaves no tree: pass at least 2, or None"),
    ],
)
def test_perch_refuses(parameters, message):
    with pytest.raises(ValueError, match=message):
        Perch(**parameters).fit(np.eye(3))
