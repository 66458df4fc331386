"""The solvers of DP-means: results, inputs and parameters."""

from __future__ import annotations

import functools
import itertools
import pickle
import signal
import subprocess

import numpy as np
import pytest
from children import TIMEOUT, python_child
from estimator_checks import parametrize_checks, run_check
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from test_dpmeans_parts import blobs, points_with_ties

import agglo
from agglo.evaluation.metrics import dp_means_cost
from agglo.paper.dpmeans import DPMeansPlusPlus, LowRankALBCD, OCCDPMeans, SerialDPMeans, TreeDPMeans

SOLVERS = [SerialDPMeans, OCCDPMeans, DPMeansPlusPlus, LowRankALBCD, TreeDPMeans]

each = pytest.mark.parametrize("solver", SOLVERS)


@parametrize_checks([solver() for solver in SOLVERS] + [DPMeansPlusPlus(refine=True)])
def test_scikit_learns_own_checks(estimator, check, request):
    run_check(estimator, check, request)


@functools.cache
def partitions(n):
    """Yield every partition of n points, as labels."""
    return [
        np.array(labels)
        for labels in itertools.product(range(n), repeat=n)
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels))
    ]


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


@pytest.mark.parametrize(
    "solver", [SerialDPMeans, OCCDPMeans, lambda *a, **k: DPMeansPlusPlus(*a, refine=True, **k), TreeDPMeans]
)
@pytest.mark.parametrize("lam", [1.0, 10.0, 60.0])
def test_the_cost_falls_from_pass_to_pass(solver, lam):
    fitted = solver(lam, random_state=1).fit(blobs())
    assert fitted.converged_
    assert fitted.n_iter_ >= 2
    assert (np.diff(fitted.cost_history_) <= 1e-9 * fitted.cost_).all()


@each
@pytest.mark.parametrize("lam", [0.0, 2.0, 25.0])
def test_results_are_the_same_for_any_number_of_threads(solver, lam):
    X = blobs(1500)
    first = solver(lam, n_init=2, random_state=5, n_jobs=1).fit(X)
    for n_jobs in (2, 8):
        other = solver(lam, n_init=2, random_state=5, n_jobs=n_jobs).fit(X)
        for name in ("labels_", "cluster_centers_", "costs_", "cost_history_"):
            assert getattr(first, name).tobytes() == getattr(other, name).tobytes()


@each
def test_results_are_repeatable_and_starts_differ(solver):
    X = blobs(1000)
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
        ({"lam": -1.0}, ValueError, r"lam=-1.0 is negative or NaN: pass a number of at least 0"),
        ({"lam": float("nan")}, ValueError, r"lam=nan is negative or NaN"),
        ({"lam": None}, TypeError, r"lam=None is not a number: pass a number"),
        ({"lam": "1"}, TypeError, r"lam='1' is not a number"),
        ({"lam": True}, TypeError, r"lam=True is not a number"),
        ({"n_init": 0}, ValueError, r"n_init=0 must be at least 1: pass a positive integer"),
        ({"n_init": 2.0}, TypeError, r"n_init=2.0 is not an integer"),
        ({"max_iter": -3}, ValueError, r"max_iter=-3 must be at least 1"),
        ({"tol": -0.1}, ValueError, r"tol=-0.1 must be finite and at least 0"),
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
        (OCCDPMeans(epoch_size=None), TypeError, r"epoch_size=None is not an integer"),
        (DPMeansPlusPlus(stop="never"), ValueError, r"stop='never' is unknown: pass one of 'cost', 'bound'"),
        (TreeDPMeans(n_neighbors=0), ValueError, r"n_neighbors=0 must be at least 1"),
        (TreeDPMeans(refine=1), TypeError, r"refine=1 is not a bool: pass True or False"),
        (DPMeansPlusPlus(refine="yes"), TypeError, r"refine='yes' is not a bool: pass True or False"),
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
    program = f"""
        import numpy as np
        from agglo.paper.dpmeans import {solver.__name__}
        X = np.random.default_rng(0).standard_normal((30_000, 200), dtype=np.float32)
        {solver.__name__}(0.0, n_init=1).fit(X[:100])
        print("ready", flush=True)
        {solver.__name__}(0.0, n_init=1000).fit(X)
        """
    with python_child(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1.5)  # so that the fit is under way
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=TIMEOUT)
    assert b"KeyboardInterrupt" in errors
    assert child.returncode != 0


def test_the_solvers_are_a_part_of_the_package():
    assert agglo.paper.dpmeans.SerialDPMeans is SerialDPMeans
