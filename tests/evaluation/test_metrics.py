from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from forests import chain, least_common_ancestor, trees
from hypothesis import given
from hypothesis import strategies as st

from agglo import Hierarchy
from agglo.evaluation.metrics import (
    PairwiseScores,
    dendrogram_purity,
    dp_means_cost,
    pairwise_f1,
    pairwise_f1_by_round,
)
from agglo.testing import random_forest

LABELS = st.lists(st.integers(-1, 4), min_size=30, max_size=30)


def plain_purity(tree, y):
    """Compute the purity by the definition, pair by pair."""
    shares = []
    for a, b in combinations(range(tree.n_leaves), 2):
        if y[a] == y[b]:
            leaves = tree.leaves(least_common_ancestor(tree, a, b))
            shares.append(Fraction(sum(y[leaf] == y[a] for leaf in leaves.tolist()), len(leaves)))
    return float(sum(shares) / len(shares)) if shares else None


# Dendrogram purity


@given(trees(), LABELS)
def test_purity_is_the_mean_over_all_pairs(tree, y):
    y = y[: tree.n_leaves]
    expected = plain_purity(tree, y)
    if expected is None:
        with pytest.raises(ValueError, match=f"no two of the {tree.n_leaves} points have the same class"):
            dendrogram_purity(tree, y)
    else:
        assert dendrogram_purity(tree, y) == pytest.approx(expected, rel=1e-12)


@given(trees(min_points=2))
def test_one_class_is_pure_and_so_is_a_round_of_the_tree(tree):
    assert dendrogram_purity(tree, np.zeros(tree.n_leaves)) == 1.0
    if len(tree.rounds):
        assert dendrogram_purity(tree, tree.labels(round=1)) == 1.0


def test_purity_of_large_trees():
    n = 200_000
    rng = np.random.default_rng(0)
    bushy = Hierarchy.from_forest(random_forest(rng, n), kind="distance", missing="ignore")
    assert dendrogram_purity(bushy, bushy.labels(round=5)) == 1.0
    # The purity of random classes is their frequency, except in small nodes.
    assert dendrogram_purity(bushy, rng.integers(0, 4, n)) == pytest.approx(0.25, abs=1e-3)
    # In a chain whose classes alternate, the node over points 0..i is half of either.
    assert dendrogram_purity(chain(n), np.arange(n) % 2) == pytest.approx(0.5, abs=1e-4)
    # Each class is a pair of neighbours, and pair (2i, 2i + 1) meets over 2i + 2 points.
    assert dendrogram_purity(chain(n), np.arange(n) // 2) == pytest.approx(
        np.mean(2 / np.arange(2, n + 2, 2)), rel=1e-9
    )


@pytest.mark.parametrize(
    "y",
    [
        ["a", "a", "b"],
        np.array(["a", "a", "b"], dtype=object),
        [7, 7, -1],
        [0.5, 0.5, 1.5],
        [True, True, False],
        np.array(["x", "x", 3], dtype=object),
        pd.Series(["a", "a", "b"], dtype="category"),
        pd.Series([1, 1, 2], dtype="Int64"),
        pd.Series(["a", "a", "b"], dtype="string"),
        pl.Series(["a", "a", "b"]),
        np.array(["2020-01-01", "2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    ],
    ids=lambda y: f"{type(y).__name__} of {getattr(y, 'dtype', type(y[0]).__name__)}",
)
def test_labels_of_any_type(y):
    tree = chain(3)
    assert dendrogram_purity(tree, y) == 1.0
    assert pairwise_f1(y, y) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("y", "value"),
    [
        ([0.0, np.nan, 1.0], "nan"),
        (["a", None, "b"], "None"),
        (["a", float("nan"), "b"], "nan"),
        (np.array(["a", float("nan"), "b"], dtype=object), "nan"),
        (pd.Series([1, None, 2], dtype="Int64"), "(nan|<NA>)"),  # by version of pandas
        (pd.Series(["a", pd.NA, "b"], dtype=object), "<NA>"),
        (np.array(["2020", "NaT", "2021"], dtype="datetime64[Y]"), "NaT"),
    ],
    ids=["float", "None", "strings", "object", "Int64", "pandas.NA", "datetime"],
)
def test_points_without_a_label_are_errors(y, value):
    with pytest.raises(
        ValueError, match=rf"y\[1\] is {value}: every point needs a label; leave out the points without"
    ):
        dendrogram_purity(chain(3), y)
    with pytest.raises(ValueError, match=rf"labels\[1\] is {value}"):
        pairwise_f1([0, 1, 2], y)


def test_a_number_and_its_text_are_two_labels():
    assert pairwise_f1(["3", 3], [0, 0]).precision == 0.0


def test_wrong_labels_are_errors():
    tree = chain(3)
    with pytest.raises(ValueError, match="y has 2 labels, but the tree has 3 leaves: pass one label per leaf"):
        dendrogram_purity(tree, [0, 0])
    with pytest.raises(ValueError, match=r"y must be one-dimensional, one label per point, got shape \(1, 3\)"):
        dendrogram_purity(tree, [[0, 0, 1]])
    with pytest.raises(ValueError, match="y is empty: pass at least one label"):
        dendrogram_purity(tree, [])
    with pytest.raises(TypeError, match="expected a Hierarchy, got ndarray"):
        dendrogram_purity(tree.to_scipy(), [0, 0, 1])
    unhashable = np.empty(2, object)
    unhashable[:] = [[1], [1, 2]]
    with pytest.raises(TypeError, match=r"y has a value that cannot be a label .*: pass integers or strings"):
        pairwise_f1(unhashable, [0, 0])


# Pairwise F1


@given(st.lists(st.tuples(st.integers(-1, 3), st.sampled_from("abcd")), min_size=1, max_size=30))
def test_f1_counts_pairs(points):
    y, labels = zip(*points, strict=True)
    pairs = list(combinations(range(len(y)), 2))
    same_class = {(a, b) for a, b in pairs if y[a] == y[b]}
    same_cluster = {(a, b) for a, b in pairs if labels[a] == labels[b]}
    right = len(same_class & same_cluster)
    scores = pairwise_f1(y, labels)
    precision = right / len(same_cluster) if same_cluster else 1.0
    recall = right / len(same_class) if same_class else 1.0
    assert scores == PairwiseScores(scores.f1, precision, recall)
    harmonic = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    assert scores.f1 == pytest.approx(harmonic, abs=1e-15)


def test_f1_without_pairs():
    assert pairwise_f1([0, 1, 2], ["a", "b", "c"]) == (1.0, 1.0, 1.0)
    assert pairwise_f1([0, 0, 1], [0, 1, 2]) == (0.0, 1.0, 0.0)
    assert pairwise_f1([0, 1, 2], [0, 0, 0]) == (0.0, 0.0, 1.0)


def test_f1_is_exact_where_counts_pass_32_bits():
    n = 300_000
    y = np.zeros(n, int)
    labels = np.arange(n) % 2
    within, every = 2 * (n // 2) * (n // 2 - 1) // 2, n * (n - 1) // 2
    assert pairwise_f1(y, labels) == (2 * within / (within + every), 1.0, within / every)


def test_f1_needs_labels_of_one_length():
    with pytest.raises(ValueError, match="y has 3 labels and labels has 2: pass one of each per point"):
        pairwise_f1([0, 1, 2], [0, 1])


@given(trees(), LABELS)
def test_f1_by_round_is_that_of_each_round(tree, y):
    y = y[: tree.n_leaves]
    scores = pairwise_f1_by_round(tree, y)
    expected = [pairwise_f1(y, tree.labels(round=i)) for i in range(len(tree.rounds) + 1)]
    np.testing.assert_allclose(np.transpose(scores), expected, rtol=1e-15)


def test_f1_by_round_has_as_many_rounds_as_it_takes():
    n = 100_000
    scores = pairwise_f1_by_round(chain(n), np.arange(n) >= n - 1)
    assert len(scores.f1) == n
    assert scores.f1.argmax() == n - 2  # all but the last point have merged
    assert scores.f1[n - 2] == 1.0
    with pytest.raises(ValueError, match="y has 2 labels, but the tree has 3 leaves: pass one label per leaf"):
        pairwise_f1_by_round(chain(3), [0, 0])


# DP-means


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_dp_means_cost_is_its_definition(dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 5)) * 10).astype(dtype)
    labels = rng.integers(-1, 7, 200)
    within = sum(
        np.square(X[labels == c].astype(float) - X[labels == c].mean(axis=0, dtype=float)).sum()
        for c in np.unique(labels)
    )
    assert dp_means_cost(X, labels, 0.5) == pytest.approx(within + 0.5 * 8, rel=1e-12)
    assert dp_means_cost(np.asfortranarray(X), labels, 0.5) == dp_means_cost(X, labels, 0.5)
    assert dp_means_cost(X, np.arange(200), 0.5) == 100.0


def test_dp_means_cost_far_from_the_origin():
    X = np.array([[1e9], [1e9 + 1], [1e9 + 2]])
    assert dp_means_cost(X, [0, 0, 0], 0) == 2.0


def test_dp_means_cost_of_wrong_input():
    X = np.zeros((3, 2))
    with pytest.raises(ValueError, match="labels has 2 entries, but X has 3 points: pass one per point"):
        dp_means_cost(X, [0, 1], 1.0)
    for lam in (-1.0, np.nan, np.inf, "1", None):
        with pytest.raises(ValueError, match=f"lam={lam!r} is not allowed: pass a finite number"):
            dp_means_cost(X, [0, 1, 1], lam)
    with pytest.raises(ValueError, match="X contains NaN"):
        dp_means_cost([[np.nan]], [0], 1.0)
    with pytest.raises(ValueError, match="Expected 2D array"):
        dp_means_cost([1.0, 2.0], [0, 1], 1.0)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        dp_means_cost(sp.csr_array(X), [0, 1, 1], 1.0)
