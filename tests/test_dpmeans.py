"""The solvers of DP-means against their definitions, written out point by point."""

from __future__ import annotations

import itertools
import pickle
import signal
import subprocess
import sys

import numpy as np
import pytest
from estimator_checks import run_check
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import agglo
from agglo import _core
from agglo.blas import one_blas_thread, sgemm
from agglo.dpmeans import DPMeansPlusPlus, LowRankALBCD, OCCDPMeans, SerialDPMeans, TreeDPMeans
from agglo.metrics import dp_means_cost

SOLVERS = [SerialDPMeans, OCCDPMeans, DPMeansPlusPlus, LowRankALBCD, TreeDPMeans]

each = pytest.mark.parametrize("solver", SOLVERS)


@parametrize_with_checks([solver() for solver in SOLVERS] + [DPMeansPlusPlus(refine=True)])
def test_scikit_learns_own_checks(estimator, check, request):
    run_check(estimator, check, request)


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
        labels, centers, history, converged = _core.dp_means(
            X, order.astype(np.int32), start, lam, epoch, max_iter, 0.0, sgemm(), threads, None
        )
    return labels, centers.reshape(-1, X.shape[1]), history, converged


points_with_ties = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=st.integers(-3, 3), fill=st.nothing()
)


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
    """Several blocks of points, of centres and of those that open a cluster."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 4)).astype(dtype)
    order = rng.permutation(len(X))
    start = X.mean(axis=0, dtype=np.float64)[None] if epoch == 1 else np.empty((0, 4))
    labels, _, history, _ = run_passes(X, order, start, lam, epoch, max_iter=3)
    expected, costs = plain_passes(X, order, start, lam, epoch, 3)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(history, costs, rtol=1e-9)
    assert len(set(labels)) > 2


def partitions(n):
    """Every partition of n points, as labels."""
    for labels in itertools.product(range(n), repeat=n):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield np.array(labels)


@each
@settings(max_examples=15)
@given(X=hnp.arrays(np.float64, (6, 2), elements=st.integers(-4, 4)), lam=st.sampled_from([0.0, 1.0, 4.0, 30.0]))
def test_no_cost_is_below_the_least_of_all_partitions(solver, X, lam):
    least = min(dp_means_cost(X, labels, lam) for labels in partitions(len(X)))
    fitted = solver(lam, n_init=4, random_state=0).fit(X)
    assert fitted.cost_ >= least - 1e-9
    if lam == 0:
        assert fitted.cost_ == least == 0


@each
@settings(max_examples=30)
@given(X=points_with_ties, lam=st.sampled_from([0.0, 0.7, 3.0]), seed=st.integers(0, 99))
def test_what_is_fitted_is_consistent(solver, X, lam, seed):
    fitted = solver(lam, n_init=3, random_state=seed).fit(X)
    labels = fitted.labels_
    assert fitted.cost_ == dp_means_cost(X, labels, lam) == fitted.costs_.min()
    assert fitted.costs_.shape == (3,)
    names, first = np.unique(labels, return_index=True)
    assert names.tolist() == list(range(fitted.n_clusters_))
    assert (np.diff(first) > 0).all()
    assert labels.dtype == np.int64
    assert fitted.cluster_centers_.shape == (fitted.n_clusters_, X.shape[1])
    for k, center in enumerate(fitted.cluster_centers_):
        np.testing.assert_allclose(center, X[labels == k].astype(np.float64).mean(axis=0), rtol=1e-12, atol=1e-12)
    assert len(fitted.cost_history_) == fitted.n_iter_ >= 1
    last = fitted.facility_cost_ if solver is LowRankALBCD else fitted.cost_
    assert fitted.cost_history_[-1] == pytest.approx(last, rel=1e-9, abs=1e-9)


def blobs(n=2000, d=8, seed=0):
    rng = np.random.default_rng(seed)
    return (4 * rng.standard_normal((30, d))[rng.integers(0, 30, n)] + rng.standard_normal((n, d))).astype(
        np.float32
    )


@pytest.mark.parametrize(
    "solver", [SerialDPMeans, OCCDPMeans, lambda *a, **k: DPMeansPlusPlus(*a, refine=True, **k), TreeDPMeans]
)
@pytest.mark.parametrize("lam", [1.0, 10.0, 60.0])
def test_the_cost_falls_from_pass_to_pass(solver, lam):
    fitted = solver(lam, random_state=1).fit(blobs())
    assert fitted.converged_
    assert fitted.n_iter_ >= 2
    assert (np.diff(fitted.cost_history_) <= 1e-9 * fitted.cost_).all()


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


@settings(max_examples=40)
@given(X=points_with_ties, seed=st.integers(0, 2**40))
def test_seeds_and_their_distances(X, seed):
    with one_blas_thread():
        seeds, labels, distances = _core.dp_seeds(X, 0.0, False, seed, sgemm(), 2, None)
    table = ((X[:, None].astype(np.float64) - X[seeds]) ** 2).sum(axis=2)
    assert len(seeds) == len(np.unique(X, axis=0))  # lam is 0: all that differ
    np.testing.assert_array_equal(labels, table.argmin(axis=1))
    sums = np.minimum.accumulate(table, axis=1).sum(axis=0)
    np.testing.assert_allclose(distances, sums, rtol=1e-12, atol=1e-12)
    assert distances[-1] == 0


def test_seeds_are_drawn_by_squared_distance():
    """Which of seven points is drawn last, over many seeds, against its chance summed over all sequences."""
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
        last = [_core.dp_seeds(X, 0.0, False, seed, sgemm(), 1, None)[0][-1] for seed in range(draws)]
    counts = np.bincount(last, minlength=7)
    assert ((counts - draws * chance) ** 2 / (draws * chance)).sum() < 22.5  # 0.1 % of chi-square with 6 degrees


@pytest.mark.parametrize("lam", [0.2, 5.0, 300.0])
def test_seeds_stop_where_the_rule_says(lam):
    X = blobs(1200)
    k = np.arange(1, len(X) + 1)
    with one_blas_thread():
        everything, _, distances = _core.dp_seeds(X, 0.0, False, 7, sgemm(), 2, None)
        for bound in (False, True):
            seeds, labels, shorter = _core.dp_seeds(X, lam, bound, 7, sgemm(), 2, None)
            np.testing.assert_array_equal(seeds, everything[: len(seeds)])
            np.testing.assert_allclose(shorter, distances[: len(seeds)], rtol=1e-9)
            if bound:
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


@each
@pytest.mark.parametrize("lam", [0.0, 2.0, 25.0])
def test_results_are_the_same_for_any_number_of_threads(solver, lam):
    X = blobs(3000)
    first = solver(lam, n_init=2, random_state=5, n_jobs=1).fit(X)
    for n_jobs in (2, 8):
        other = solver(lam, n_init=2, random_state=5, n_jobs=n_jobs).fit(X)
        for name in ("labels_", "cluster_centers_", "costs_", "cost_history_"):
            assert getattr(first, name).tobytes() == getattr(other, name).tobytes()


@each
def test_results_are_repeatable_and_starts_differ(solver):
    X = blobs()
    first, again = (solver(8.0, n_init=4, random_state=11).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, again.labels_)
    np.testing.assert_array_equal(first.costs_, again.costs_)
    # One may find the best from anywhere, and the other always begins with the same tree.
    assert len(set(first.costs_)) > 1 or solver in (LowRankALBCD, TreeDPMeans)
    assert first.cost_ == first.costs_.min()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).labels_, clone(first).fit(X).labels_)


def test_a_tree_is_cut_where_it_is_cheapest_and_refined():
    X = blobs()
    graph = agglo.neighbor_graph(X, 25, "euclidean")
    path = agglo.dp_means_path(agglo.scc(graph, linkage="ward", X=X), X)
    cut = TreeDPMeans(20.0, refine=False).fit(X)
    np.testing.assert_array_equal(cut.labels_, path.cut(20.0))
    assert (cut.n_iter_, cut.converged_) == (1, True)
    fitted = TreeDPMeans(20.0, random_state=0).fit(X)
    assert fitted.cost_history_[0] == cut.cost_ > fitted.cost_
    assert fitted.cost_ < SerialDPMeans(20.0, n_init=5, random_state=0).fit(X).cost_


def test_the_size_of_epochs_matters_and_one_point_an_epoch_is_serial():
    X = blobs()
    order = np.random.default_rng(0).permutation(len(X))
    nobody = np.empty((0, X.shape[1]))
    serial = run_passes(X, order, nobody, 20.0, 1)
    assert any((run_passes(X, order, nobody, 20.0, epoch)[0] != serial[0]).any() for epoch in (64, 500))
    assert OCCDPMeans(20.0, epoch_size=1, random_state=0).fit(X).converged_


@each
def test_lam_of_zero_parts_all_that_differ(solver):
    X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    fitted = solver(0).fit(X)
    assert fitted.labels_.tolist() == [0, 1, 0, 1, 2]
    assert fitted.cost_ == 0


@each
@pytest.mark.parametrize("lam", [np.inf, 1e300])
def test_lam_without_end_joins_all(solver, lam):
    fitted = solver(lam, n_init=2).fit(blobs(300))
    assert fitted.n_clusters_ == 1
    assert fitted.cost_ == (np.inf if np.isinf(lam) else pytest.approx(1e300))


@each
def test_one_point_and_equal_points(solver):
    assert solver(1.0).fit([[3.0, 4.0]]).cost_ == 1
    fitted = solver(1.0).fit(np.full((50, 3), 7.0))
    assert (fitted.n_clusters_, fitted.cost_) == (1, 1.0)


@each
@pytest.mark.parametrize("offset", [1e3, 1e7])
def test_points_far_from_the_origin(solver, offset):
    X = blobs(600).astype(np.float64).round(3)
    near, far = (solver(9.0, random_state=0).fit(Y) for Y in (X, X + offset))
    if solver is LowRankALBCD:  # its steps pass roundings on, and stop at a gap
        assert far.cost_ == pytest.approx(near.cost_, rel=0.01)
        return
    np.testing.assert_array_equal(near.labels_, far.labels_)
    assert far.cost_ == pytest.approx(near.cost_, rel=1e-6)


@each
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_points_of_any_scale(solver, scale):
    X = blobs(600).astype(np.float64)
    if solver is TreeDPMeans and scale > 1e18:
        with pytest.raises(ValueError, match=r"X holds numbers beyond 1e18.*scale X down"):
            solver().fit(X * scale)
        return
    plain, scaled = (solver(9.0 * s * s, random_state=0).fit(X * s) for s in (1.0, scale))
    assert scaled.cost_ / scale / scale == pytest.approx(plain.cost_, rel=0.01 if solver is LowRankALBCD else 1e-9)
    if solver is not LowRankALBCD:
        np.testing.assert_array_equal(plain.labels_, scaled.labels_)


@each
@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"lam": -1.0}, ValueError, r"lam=-1.0 is no price of a cluster: pass a number that is not negative"),
        ({"lam": float("nan")}, ValueError, r"lam=nan is no price of a cluster"),
        ({"lam": None}, TypeError, r"lam=None is no price of a cluster: pass a number"),
        ({"lam": "1"}, TypeError, r"lam='1' is no price"),
        ({"lam": True}, TypeError, r"lam=True is no price"),
        ({"n_init": 0}, ValueError, r"n_init=0 must be at least 1: pass a positive integer"),
        ({"n_init": 2.0}, TypeError, r"n_init=2.0 is not a whole number"),
        ({"max_iter": -3}, ValueError, r"max_iter=-3 must be at least 1"),
        ({"tol": -0.1}, ValueError, r"tol=-0.1 must be finite and not negative"),
        ({"tol": None}, TypeError, r"tol=None is not a number"),
        ({"n_jobs": 0}, ValueError, r"n_jobs=0 is not a number of threads"),
    ],
)
def test_wrong_parameters(solver, options, error, text):
    with pytest.raises(error, match=text):
        solver(**options).fit(np.eye(3))


@pytest.mark.parametrize(
    ("solver", "error", "text"),
    [
        (OCCDPMeans(epoch_size=0), ValueError, r"epoch_size=0 must be at least 1"),
        (OCCDPMeans(epoch_size=None), TypeError, r"epoch_size=None is not a whole number"),
        (DPMeansPlusPlus(stop="never"), ValueError, r"stop='never' is unknown: pass one of 'cost', 'bound'"),
        (TreeDPMeans(n_neighbors=0), ValueError, r"n_neighbors=0 must be at least 1"),
        (TreeDPMeans(refine=1), TypeError, r"refine=1 is not a choice: pass True or False"),
        (DPMeansPlusPlus(refine="yes"), TypeError, r"refine='yes' is not a choice: pass True or False"),
    ],
)
def test_wrong_parameters_of_one_solver(solver, error, text):
    with pytest.raises(error, match=text):
        solver.fit(np.eye(3))


@each
def test_bad_points(solver):
    with pytest.raises(ValueError, match="contains NaN"):
        solver().fit([[1.0], [np.nan]])
    with pytest.raises(ValueError, match=r"X\[1, 0\] is 1e\+200, and numbers beyond 1e\+100 cannot be squared"):
        solver().fit([[1.0], [1e200]])


@each
def test_integers_booleans_and_half_floats(solver):
    X = np.random.default_rng(0).integers(0, 2, (60, 4))
    labels = [
        solver(0.9, random_state=0).fit_predict(X.astype(kind))
        for kind in (np.int64, bool, np.float16, np.float64)
    ]
    for other in labels[1:]:
        np.testing.assert_array_equal(labels[0], other)


@each
def test_ctrl_c_ends_a_fit(solver):
    code = f"""
import numpy as np
from agglo.dpmeans import {solver.__name__}
X = np.random.default_rng(0).standard_normal((30_000, 200), dtype=np.float32)
print("ready", flush=True)
{solver.__name__}(0.0, n_init=1000).fit(X)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1.5)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert child.returncode != 0


def test_the_solvers_are_a_part_of_the_package():
    assert agglo.dpmeans.SerialDPMeans is SerialDPMeans
