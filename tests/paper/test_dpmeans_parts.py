"""Passes and seeds of DP-means against their definitions, written out point by point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist

from agglo import _core
from agglo._native import one_blas_thread, sgemm
from agglo.paper.dpmeans import DPMeansPlusPlus, OCCDPMeans, SerialDPMeans

points_with_ties = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.integers(-3, 3), fill=st.nothing()
)


def blobs(n=2000, d=8, seed=0):
    rng = np.random.default_rng(seed)
    return (4 * rng.standard_normal((30, d))[rng.integers(0, 30, n)] + rng.standard_normal((n, d))).astype(
        np.float32
    )


def squares(x, centers):
    return ((np.asarray(centers) - x) ** 2).sum(axis=1)


def plain_passes(X, order, start, lam, epoch, max_iter):
    """The definition: one point after the other. Labels and costs after each pass."""
    X = X.astype(np.float64)
    centers, labels, costs = list(start), np.full(len(X), -1), []
    for _ in range(max_iter):
        before, opened = labels.copy(), []
        standing = list(range(len(centers)))
        for place, i in enumerate(order):
            seen = standing + [k for p, k in opened if p // epoch < place // epoch]
            own = [k for p, k in opened if p // epoch == place // epoch]
            for visible in (seen, seen + own):
                if not visible:
                    continue
                found = squares(X[i], [centers[k] for k in visible])
                if found.min() <= lam:
                    labels[i] = visible[int(found.argmin())]
                    break
            else:
                labels[i] = len(centers)
                opened.append((place, len(centers)))
                centers.append(X[i])
        names, renamed = np.unique(labels, return_inverse=True)
        changed = (labels != before).any() or len(names) < len(centers)
        labels = renamed
        centers = [X[labels == k].mean(axis=0) for k in range(len(names))]
        within = sum(squares(centers[k], X[labels == k]).sum() for k in range(len(names)))
        costs.append(within + lam * len(names))
        if not changed:
            break
    return labels, np.array(costs)


def run_passes(X, order, start, lam, epoch, max_iter=40, threads=2):
    with one_blas_thread():
        labels, centers, history, converged = _core.solve_dp_means(
            X, order.astype(np.int32), start, lam, epoch, max_iter, 0.0, sgemm(), threads, None
        )
    return labels, centers.reshape(-1, X.shape[1]), history, converged


@settings(max_examples=150)
@given(
    X=points_with_ties,
    lam=st.sampled_from([0.0, 0.5, 1.0, 2.0, 9.0, 1e6]),
    epoch=st.sampled_from([1, 2, 7, 100]),
    starts=st.integers(0, 3),
    seed=st.integers(0, 1000),
)
def test_passes_are_those_of_the_definition(X, lam, epoch, starts, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    start = X[rng.integers(0, len(X), starts)].astype(np.float64).reshape(starts, X.shape[1])
    labels, centers, history, _ = run_passes(X, order, start, lam, epoch)
    expected, costs = plain_passes(X, order, start, lam, epoch, 40)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(history, costs[: len(history)], rtol=1e-9, atol=1e-9)
    for k, center in enumerate(centers):
        np.testing.assert_allclose(center, X[labels == k].astype(np.float64).mean(axis=0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("epoch", [1, 50, 1000])
@pytest.mark.parametrize("lam", [0.3, 1.5, 6.0])
def test_passes_over_many_blocks(dtype, epoch, lam):
    """Several blocks of points, of centers and of those that open a cluster."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 4)).astype(dtype)
    order = rng.permutation(len(X))
    start = X.mean(axis=0, dtype=np.float64)[None] if epoch == 1 else np.empty((0, 4))
    labels, _, history, _ = run_passes(X, order, start, lam, epoch, max_iter=3)
    expected, costs = plain_passes(X, order, start, lam, epoch, 3)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(history, costs, rtol=1e-9)
    assert len(set(labels)) > 2


@pytest.mark.parametrize("solver", [SerialDPMeans, OCCDPMeans])
@pytest.mark.parametrize("lam", [0.5, 5.0, 40.0])
def test_at_the_end_every_point_is_within_lam_of_its_nearest_centre(solver, lam):
    X = blobs()
    fitted = solver(lam, random_state=2).fit(X)
    table = cdist(X.astype(np.float64), fitted.cluster_centers_, "sqeuclidean")
    own = table[np.arange(len(X)), fitted.labels_]
    assert fitted.converged_
    assert (own <= lam * (1 + 1e-12)).all()
    np.testing.assert_allclose(own, table.min(axis=1), rtol=1e-12)


def test_passes_end_at_max_iter_or_below_tol():
    X = blobs()
    whole = SerialDPMeans(20.0, random_state=0).fit(X)
    short = SerialDPMeans(20.0, random_state=0, max_iter=2).fit(X)
    assert (short.n_iter_, short.converged_) == (2, False)
    np.testing.assert_array_equal(short.cost_history_, whole.cost_history_[:2])
    rough = SerialDPMeans(20.0, random_state=0, tol=0.01).fit(X)
    assert 2 <= rough.n_iter_ < whole.n_iter_
    assert rough.converged_
    drops = -np.diff(rough.cost_history_) / rough.cost_history_[:-1]
    assert (drops[:-1] > 0.01).all()
    assert drops[-1] <= 0.01


def test_the_size_of_epochs_matters_and_one_point_an_epoch_is_serial():
    X = blobs()
    order = np.random.default_rng(0).permutation(len(X))
    nobody = np.empty((0, X.shape[1]))
    serial = run_passes(X, order, nobody, 20.0, 1)
    assert any((run_passes(X, order, nobody, 20.0, epoch)[0] != serial[0]).any() for epoch in (64, 500))
    assert OCCDPMeans(20.0, epoch_size=1, random_state=0).fit(X).converged_


@settings(max_examples=40)
@given(X=points_with_ties, seed=st.integers(0, 2**40))
def test_seeds_and_their_distances(X, seed):
    with one_blas_thread():
        seeds, labels, distances = _core.draw_dp_seeds(X, 0.0, "cost", seed, sgemm(), 2, None)
    table = ((X[:, None].astype(np.float64) - X[seeds]) ** 2).sum(axis=2)
    assert len(seeds) == len(np.unique(X, axis=0))  # lam is 0: all that differ
    np.testing.assert_array_equal(labels, table.argmin(axis=1))
    sums = np.minimum.accumulate(table, axis=1).sum(axis=0)
    np.testing.assert_allclose(distances, sums, rtol=1e-12, atol=1e-12)
    assert distances[-1] == 0


def test_seeds_are_drawn_by_squared_distance():
    """Which of seven points is drawn last, over many seeds, against its probability summed over all sequences."""
    x = np.array([0.0, 1.0, 1.5, 4.0, 4.2, 7.0, 11.0])
    table = (x[:, None] - x) ** 2
    chance = np.zeros(7)

    def follow(sequence, odds):
        if len(sequence) == 7:
            chance[sequence[-1]] += odds
            return
        nearest = table[list(sequence)].min(axis=0)
        for i in np.flatnonzero(nearest):
            follow((*sequence, i), odds * nearest[i] / nearest.sum())

    for i in range(7):
        follow((i,), 1 / 7)
    draws = 4000
    with one_blas_thread():
        X = x[:, None]
        last = [_core.draw_dp_seeds(X, 0.0, "cost", seed, sgemm(), 1, None)[0][-1] for seed in range(draws)]
    counts = np.bincount(last, minlength=7)
    assert ((counts - draws * chance) ** 2 / (draws * chance)).sum() < 22.5  # 0.1 % of chi-square with 6 degrees


@pytest.mark.parametrize("lam", [0.2, 5.0, 300.0])
def test_seeds_stop_where_the_rule_says(lam):
    X = blobs(1200)
    k = np.arange(1, len(X) + 1)
    with one_blas_thread():
        everything, _, distances = _core.draw_dp_seeds(X, 0.0, "cost", 7, sgemm(), 2, None)
        for rule in ("cost", "bound"):
            seeds, labels, shorter = _core.draw_dp_seeds(X, lam, rule, 7, sgemm(), 2, None)
            np.testing.assert_array_equal(seeds, everything[: len(seeds)])
            np.testing.assert_allclose(shorter, distances[: len(seeds)], rtol=1e-9)
            if rule == "bound":
                enough = distances <= 16 * lam * k * (np.log2(k) + 2)
                assert len(seeds) == 1 + enough.argmax()
            else:
                assert len(seeds) == 1 + (distances + lam * k).argmin()
            table = cdist(X.astype(np.float64), X[seeds].astype(np.float64), "sqeuclidean")
            np.testing.assert_array_equal(labels, table.argmin(axis=1))


def test_seed_indices_belong_to_the_clusters():
    X = blobs(500)
    fitted = DPMeansPlusPlus(20.0, random_state=3).fit(X)
    np.testing.assert_array_equal(fitted.labels_[fitted.seed_indices_], np.arange(fitted.n_clusters_))
    refined = DPMeansPlusPlus(20.0, random_state=3, refine=True).fit(X)
    assert not hasattr(refined, "seed_indices_")
    assert refined.cost_history_[0] == pytest.approx(fitted.cost_, rel=1e-12)
    assert refined.cost_ <= fitted.cost_
