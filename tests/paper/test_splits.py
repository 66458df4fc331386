"""HKM and RHC: splits and merges by their definitions, and the theorem of RHC."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from agglo.evaluation.metrics import dendrogram_purity
from agglo.paper.baselines import HKM, RHC, DenseHAC
from agglo.paper.baselines.rhc import _SharedNeighbors
from agglo.testing import check_hierarchy


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    branching=st.integers(2, 5),
    leaf_size=st.integers(1, 8),
    max_iter=st.integers(1, 5),
)
def test_hkm_splits_until_nodes_are_small(seed, n, branching, leaf_size, max_iter):
    X = np.random.default_rng(seed).integers(-3, 4, (n, 2)).astype(float)
    tree = HKM(branching=branching, leaf_size=leaf_size, max_iter=max_iter, random_state=0).fit(X).tree_
    check_hierarchy(tree)
    for node in range(n, tree.n_nodes):
        children = tree.children(node)
        if (children >= n).any():
            assert len(children) <= branching
        elif len(children) > max(leaf_size, branching):  # no k-means could tell them apart
            assert len(np.unique(X[children], axis=0)) <= branching


def test_a_split_of_hkm_is_one_of_k_means():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((200, 3)), rng.standard_normal((100, 3)) + 3])
    tree = HKM(max_iter=100, random_state=0).fit(X).tree_
    for node in range(tree.n_nodes - 1, tree.n_nodes - 6, -1):
        parts = [tree.leaves(child) for child in tree.children(node)]
        inside = cdist(X[np.concatenate(parts)], [X[part].mean(axis=0) for part in parts])
        np.testing.assert_array_equal(inside.argmin(axis=1), np.repeat([0, 1], [len(part) for part in parts]))


def test_hkm_refuses():
    with pytest.raises(ValueError, match="branching=1 splits nothing: pass at least 2"):
        HKM(branching=1).fit(np.eye(3))
    with pytest.raises(ValueError, match="leaf_size=0 must be at least 1"):
        HKM(leaf_size=0).fit(np.eye(3))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 25))
def test_shared_neighbors_are_counted_for_any_number_of_them(seed, n):
    X = np.random.default_rng(seed).integers(-4, 5, (n, 2)).astype(np.float64)
    shared = _SharedNeighbors(X)
    for t in sorted(np.random.default_rng(seed).integers(1, n + 1, 4).tolist()):
        near = [set(shared.order[x, :t].tolist()) for x in range(n)]
        expected = [[len(a & b) for b in near] for a in near]
        np.testing.assert_array_equal(shared.count(t), expected)


def with_noise(seed, sizes=(60, 50, 40), n_noise=3):
    """Separated classes and some points anywhere, which are of no class: -1."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(n_noise, -1)])
    X = rng.standard_normal((len(y), 3))
    X[y >= 0] = 0.5 * X[y >= 0] + 9 * np.eye(3)[y[y >= 0]]
    X[y < 0] = rng.uniform(-2, 11, (n_noise, 3))
    order = rng.permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("seed", range(6))
def test_rhc_finds_classes_among_noise(seed):
    """The theorem's setting: good points have their class, and at most alpha others, for neighbours."""
    X, y = with_noise(seed)
    n = len(y)
    alpha = nu = 3 / n
    assert 6 * (alpha + nu) * n < np.bincount(y[y >= 0]).min()
    order = cdist(X, X).argsort(axis=1)
    for c, size in enumerate(np.bincount(y[y >= 0])):
        assert ((y[order[y == c, :size]] != c).sum(axis=1) <= alpha * n).all()
    tree = RHC(alpha=alpha, nu=nu).fit(X).tree_
    check_hierarchy(tree)
    good = [frozenset(i for i in tree.leaves(v).tolist() if y[i] >= 0) for v in range(tree.n_nodes)]
    for c in range(3):
        assert frozenset(np.flatnonzero(y == c).tolist()) in good


def bridged(seed=0):
    """Two classes and a thin bridge of noise between them, along which single linkage walks."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.standard_normal((80, 2)), rng.standard_normal((80, 2)) + np.array([12.0, 0.0])])
    bridge = np.column_stack([np.linspace(2, 10, 9), rng.normal(0, 0.05, 9)])
    return np.concatenate([X, bridge]), np.repeat([0, 1], [80, 80])


def test_rhc_is_not_misled_by_a_bridge():
    X, y = bridged()

    def classes_are_nodes(tree):
        good = {frozenset(i for i in tree.leaves(v).tolist() if i < 160) for v in range(tree.n_nodes)}
        return [frozenset(np.flatnonzero(y == c).tolist()) in good for c in range(2)]

    assert classes_are_nodes(RHC(alpha=0.02, nu=0.04).fit(X).tree_) == [True, True]
    assert classes_are_nodes(DenseHAC(linkage="single", metric="euclidean").fit(X).tree_) != [True, True]


def test_rhc_on_plain_blobs():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(4), 30)
    X = 8.0 * np.eye(4)[y] + rng.standard_normal((120, 4))
    assert dendrogram_purity(RHC().fit(X).tree_, y) == 1.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.1, "nu": 0.1}, r"alpha \+ nu is 0.2, but classes must have more .* less than 1/6"),
        ({"alpha": -0.1}, "alpha=-0.1 must be finite and at least 0"),
    ],
)
def test_rhc_refuses(parameters, message):
    with pytest.raises(ValueError, match=message):
        RHC(**parameters).fit(np.eye(3))
