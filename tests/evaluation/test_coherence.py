import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglo import metrics


@given(st.lists(st.integers(-1, 5), min_size=2, max_size=40), st.booleans(), st.integers(0, 100))
def test_pairs_are_a_head_and_another_point_of_each_sampled_cluster(raw, weighted, seed):
    kept = sorted({label for label in raw if label >= 0})
    labels = np.array([kept.index(label) if label >= 0 else -1 for label in raw])
    sizes = np.bincount(labels[labels >= 0]) if kept else np.zeros(1, int)
    weights = np.random.default_rng(seed).integers(0, 4, len(labels)) if weighted else None
    y = np.random.default_rng(seed + 1).integers(0, 3, len(labels))
    if not (sizes > 1).any():
        with pytest.raises(ValueError, match="cluster"):
            metrics.coherence(labels, y=y)
        return
    found = metrics.coherence(labels, y=y, weights=weights, random_state=seed)
    heads, tails = found.pairs.T
    assert (heads != tails).all()
    assert (labels[heads] == labels[tails]).all()
    assert sorted(labels[heads]) == np.flatnonzero(sizes > 1).tolist()
    np.testing.assert_array_equal(found.ratings, np.where(y[heads] == y[tails], 1, -1))
    assert found.coherent + found.neutral + found.incoherent == pytest.approx(1)
    if weighted:
        assert all(weights[head] == weights[labels == labels[head]].max() for head in heads)
    by_point = metrics.coherence(labels, y=y, weights=weights, sample="points", random_state=seed).pairs
    assert (by_point[:, 0] != by_point[:, 1]).all()
    assert (labels[by_point[:, 0]] == labels[by_point[:, 1]]).all()
    np.testing.assert_array_equal(np.bincount(labels[by_point[:, 0]], minlength=len(sizes)), sizes * (sizes > 1))
    again = metrics.coherence(labels, y=y, weights=weights, random_state=seed)
    np.testing.assert_array_equal(again.pairs, found.pairs)
    assert len(metrics.coherence(labels, y=y, n_pairs=1).pairs) == 1


def test_coarser_classes_make_pairs_neutral():
    labels = [0, 0, 1, 1, 2, 2]
    fine, coarse = ["a", "a", "a", "b", "a", "c"], ["x", "x", "x", "x", "x", "y"]
    found = metrics.coherence(labels, y=[fine, coarse])
    assert (found.coherent, found.neutral, found.incoherent) == (1 / 3, 1 / 3, 1 / 3)


def test_vectors_rate_pairs_by_quantiles_of_random_pairs():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(300, 20))
    X = np.repeat(centers, 4, axis=0) + 0.1 * rng.normal(size=(1200, 20))
    true = np.repeat(np.arange(300), 4)
    good = metrics.coherence(true, X=X, quantiles=(0.9, 0.95))
    assert good.coherent == 1.0
    bad = metrics.coherence(rng.permutation(true), X=X, quantiles=(0.9, 0.95))
    assert bad.incoherent == pytest.approx(0.9, abs=0.06)
    assert bad.coherent == pytest.approx(0.05, abs=0.04)
    scaled = metrics.coherence(true, X=(X * 7).astype(np.float32), quantiles=(0.9, 0.95))
    np.testing.assert_array_equal(scaled.ratings, good.ratings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "coherence is rated by classes or by vectors: pass exactly one of y and X"),
        ({"y": [0, 0], "X": [[1.0], [2.0]]}, "pass exactly one of y and X"),
        ({"y": [0]}, r"y has shape \(1,\): pass one class for each of 2 points"),
        ({"X": [[1.0]]}, "X has 1 points, but there are 2 labels"),
        (
            {"y": [0, 0], "weights": [1]},
            r"weights have shape \(1,\) or are not finite: pass one number per point",
        ),
        ({"y": [0, 0], "quantiles": (0.9, 0.5)}, r"quantiles=\(0.9, 0.5\) are not in order or not from 0 to 1"),
        ({"y": [0, 0], "sample": "pairs"}, "sample='pairs' is unknown: pass 'clusters' or 'points'"),
        ({"y": [0, 0], "n_pairs": 0}, "n_pairs"),
    ],
)
def test_wrong_input_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        metrics.coherence([0, 0], **options)


def test_single_points_have_no_pairs():
    with pytest.raises(ValueError, match="no cluster has two points, so there is no pair to rate"):
        metrics.coherence([0, 1, 2], y=[0, 0, 0])
