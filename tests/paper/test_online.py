"""Perch and Grinch: their theorems, and the exactness of their searches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from agglo.evaluation.metrics import dendrogram_purity
from agglo.paper.baselines import DenseHAC, Grinch, Perch
from agglo.paper.baselines.online import find_earlier_neighbors
from agglo.testing import assert_same_hierarchy, check_hierarchy


def separated(seed, n, k, d, copies=False):
    """Draw points of k classes in random order, each closer to all of its class than to any other point."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    centers = np.zeros((k, d))
    centers[:, 0] = 2.5 * np.arange(k)
    noise = rng.standard_normal((n, d))
    noise *= rng.random((n, 1)) / (2 * np.linalg.norm(noise, axis=1, keepdims=True))
    if copies:
        noise = np.round(4 * noise) / 4 / np.sqrt(d)
    return centers[y] + noise, y


# The arguments of `separated`.
SEPARATED = {
    "seed": st.integers(0, 2**32 - 1),
    "n": st.integers(2, 80),
    "k": st.integers(1, 8),
    "d": st.integers(1, 6),
}
AS_IN_THE_THEOREM = {"metric": "sqeuclidean", "linkage": "single", "n_neighbors": "all", "shuffle": False}


def has_pairs(y):
    return np.bincount(y).max() > 1


@settings(max_examples=60)
@given(
    **SEPARATED,
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


@settings(max_examples=60)
@given(
    **SEPARATED,
    linkage=st.sampled_from(["average", "single", "complete"]),
)
def test_grinch_keeps_separated_classes_together_in_any_order(seed, n, k, d, linkage):
    """Any two parts of a class are closer than parts of two: what the theorem calls model-based separation."""
    X, y = separated(seed, n, k, d)
    tree = Grinch(metric="sqeuclidean", linkage=linkage, n_neighbors="all", shuffle=False).fit(X).tree_
    check_hierarchy(tree)
    if has_pairs(y):
        assert dendrogram_purity(tree, y) == 1.0


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), lengths=st.lists(st.integers(1, 25), min_size=1, max_size=5))
def test_grinch_under_single_linkage_recovers_chains_in_any_order(seed, lengths):
    """Separation by a graph: neighbours in a chain are closer than any two chains, its ends far apart."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(lengths)), lengths)
    steps = np.concatenate([[2.0], np.where(np.diff(y) > 0, 2.0, 1.0 - 0.5 * rng.random(len(y) - 1))])
    order = rng.permutation(len(y))
    X, y = np.cumsum(steps)[order, None], y[order]
    tree = Grinch(**AS_IN_THE_THEOREM).fit(X).tree_
    check_hierarchy(tree)
    if has_pairs(y):
        assert dendrogram_purity(tree, y) == 1.0


def test_grinch_needs_grafts_for_clusters_of_any_shape():
    X = 6 * np.random.default_rng(2).random((150, 2))
    y = connected_components(cdist(X, X) < 0.6)[1]
    without, with_grafts = (
        dendrogram_purity(Grinch(graft=graft, **AS_IN_THE_THEOREM).fit(X).tree_, y) for graft in (False, True)
    )
    assert without < 1.0
    assert with_grafts == 1.0


def overlapping(n=600, k=30, d=10):
    rng = np.random.default_rng(4)
    y = rng.integers(0, k, n)
    return rng.standard_normal((k, d))[y] + 0.5 * rng.standard_normal((n, d)), y


def test_grafts_bring_grinch_close_to_hac():
    X, y = overlapping()
    hac = dendrogram_purity(DenseHAC().fit(X).tree_, y)
    with_grafts, without, few, capped, eliminated = (
        dendrogram_purity(Grinch(random_state=0, **parameters).fit(X).tree_, y)
        for parameters in (
            {"n_neighbors": "all"},
            {"graft": False},
            {"n_neighbors": 10},
            {"cap": 50},
            {"single_elimination": True},
        )
    )
    assert with_grafts > without
    assert min(with_grafts, few, capped, eliminated) > hac - 0.08


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean"])
@pytest.mark.parametrize("linkage", ["average", "centroid", "single", "complete"])
def test_heights_of_grinch_are_linkages(metric, linkage):
    X = np.random.default_rng(7).standard_normal((60, 3)) + 1
    tree = Grinch(metric=metric, linkage=linkage, random_state=0).fit(X).tree_
    rows = X / np.linalg.norm(X, axis=1, keepdims=True) if metric == "cosine" else X
    table = cdist(X, X, metric)
    for node in range(60, tree.n_nodes):
        a, b = (tree.leaves(child) for child in tree.children(node))
        pairs = table[np.ix_(a, b)]
        ends = [rows[part].mean(axis=0)[None] for part in (a, b)]
        value = {
            "average": pairs.mean(),
            "single": pairs.min(),
            "complete": pairs.max(),
            "centroid": cdist(*ends, metric).item(),
        }[linkage]
        expected = max(value, *tree.height[tree.children(node)])
        assert tree.height[node] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    ("baseline", "parameters", "message"),
    [
        (
            Grinch,
            {"linkage": "ward"},
            "linkage='ward' is unknown: pass one of 'average', 'centroid', 'single', 'complete'",
        ),
        (Grinch, {"metric": "dot"}, "metric='dot' is unknown: pass one of 'cosine', 'sqeuclidean'"),
        (Grinch, {"n_neighbors": 0}, "n_neighbors=0 must be at least 1"),
        (Grinch, {"cap": 0}, "cap=0 must be at least 1"),
        (Perch, {"search": "kd"}, "search='kd' is unknown: pass one of 'exact', 'boxes', 'beam'"),
        (Perch, {"masking": "none"}, "masking='none' is unknown: pass one of 'exact', 'boxes'"),
        (Perch, {"beam_width": 0}, "beam_width=0 must be at least 1"),
        (Perch, {"max_leaves": 1}, "max_leaves=1 is too small for a tree: pass at least 2, or None"),
    ],
)
def test_online_baselines_refuse(baseline, parameters, message):
    with pytest.raises(ValueError, match=message):
        baseline(**parameters).fit(np.eye(3))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 70), k=st.integers(1, 9), dot=st.booleans())
def test_find_earlier_neighbors_are_the_nearest_before(seed, n, k, dot):
    rows = np.random.default_rng(seed).integers(-5, 6, (n, 2)).astype(np.float32)
    close = rows @ rows.T if dot else -cdist(rows, rows, "sqeuclidean")
    for i, found in enumerate(find_earlier_neighbors(rows, k, dot=dot)):
        known = found[found >= 0]
        assert len(known) == min(i, k)
        np.testing.assert_array_equal(known, np.argsort(-close[i, :i], kind="stable")[:k])


def test_find_earlier_neighbors_in_blocks(monkeypatch):
    rows = np.random.default_rng(3).standard_normal((200, 4)).astype(np.float32)
    whole = find_earlier_neighbors(rows, 5, dot=False)
    monkeypatch.setattr("agglo.paper.baselines.online._BLOCK", 7)
    np.testing.assert_array_equal(find_earlier_neighbors(rows, 5, dot=False), whole)
