"""LowRankALBCD against facility location by brute force, and the relaxation by a general solver."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from agglo.paper.dpmeans import LowRankALBCD


def table(X):
    return cdist(X, X, "sqeuclidean")


def facility_cost(squares, exemplars, lam):
    return squares[:, exemplars].min(axis=1).sum() + lam * len(exemplars)


def least_facility_cost(squares, lam):
    """Over all sets of exemplars."""
    sets = (
        list(some) for k in range(1, len(squares) + 1) for some in itertools.combinations(range(len(squares)), k)
    )
    return min(facility_cost(squares, some, lam) for some in sets)


def relaxation(squares, lam):
    """The least value of the linear program, shares first and then the largest share of each exemplar."""
    n = len(squares)
    values = np.concatenate([squares.ravel(), np.full(n, lam)])
    sums = sp.hstack([sp.kron(sp.eye(n), np.ones((1, n))), sp.csr_array((n, n))])
    below = sp.hstack([sp.eye(n * n), -sp.kron(np.ones((n, 1)), sp.eye(n))])
    return linprog(values, A_ub=below, b_ub=np.zeros(n * n), A_eq=sums, b_eq=np.ones(n), method="highs").fun


@settings(max_examples=60)
@given(
    X=hnp.arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(1, 2)), elements=st.integers(-4, 4)),
    lam=st.sampled_from([0.0, 0.5, 2.0, 9.0, 40.0, 1e5]),
    seed=st.integers(0, 99),
)
def test_the_least_cost_lies_between_the_bound_and_the_exemplars(X, lam, seed):
    solver = LowRankALBCD(lam, random_state=seed, tol=1e-3).fit(X)
    least = least_facility_cost(table(X), lam)
    close = 1e-9 * (1 + least)
    assert solver.lower_bound_ <= least + close
    assert least <= solver.facility_cost_ + close
    assert solver.cost_ <= solver.facility_cost_ + close  # means serve no worse than exemplars
    assert solver.facility_cost_ == pytest.approx(facility_cost(table(X), solver.exemplar_indices_, lam))
    np.testing.assert_array_equal(solver.labels_[solver.exemplar_indices_], np.arange(solver.n_clusters_))


@pytest.mark.parametrize("lam", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_relaxation_is_solved_as_far_as_tol_says(lam, dtype):
    X = np.random.default_rng(4).normal(size=(40, 2)).astype(dtype)
    value = relaxation(table(X.astype(np.float64)), lam)
    solver = LowRankALBCD(lam, tol=1e-4, random_state=0).fit(X)
    assert solver.converged_
    assert value * (1 - 1e-4) - 1e-9 <= solver.lower_bound_ <= value * (1 + 1e-6)
    assert 0 <= solver.gap_ <= 1e-4


@pytest.mark.parametrize("n", [30, 1200])
def test_separated_clusters_are_found_and_known_to_be_the_best(n):
    """Centers far apart and points within 1 of theirs: the relaxation itself has whole exemplars."""
    rng = np.random.default_rng(n)
    y = np.arange(n) % 6
    offset = rng.normal(size=(n, 3))
    X = 60 * np.eye(6, 3, k=0)[y] + 60 * np.eye(6, 3, k=-3)[y] * [-1, -1, -1]
    X += offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1)
    lam = 5.0 * n  # more than splitting a cluster saves, less than uniting two costs
    solver = LowRankALBCD(lam, random_state=1).fit(X)
    np.testing.assert_array_equal(solver.labels_, y)
    assert solver.converged_
    assert solver.lower_bound_ == pytest.approx(solver.facility_cost_, rel=0.01)
    best = [np.flatnonzero(y == k)[table(X[y == k]).sum(axis=0).argmin()] for k in range(6)]
    assert solver.facility_cost_ == pytest.approx(facility_cost(table(X), best, lam))


@pytest.mark.parametrize("lam", [0.3, 4.0])
def test_exemplars_of_many_blocks(lam):
    """More points than any block has; every point goes to the nearest exemplar, and none can go for less."""
    X = np.random.default_rng(2).normal(size=(1500, 3))
    solver = LowRankALBCD(lam, random_state=0).fit(X)
    squares = cdist(X, X[solver.exemplar_indices_], "sqeuclidean")
    np.testing.assert_array_equal(squares.argmin(axis=1), solver.labels_)
    assert solver.facility_cost_ == pytest.approx(squares.min(axis=1).sum() + lam * solver.n_clusters_)
    assert solver.lower_bound_ <= solver.facility_cost_ <= 1.03 * solver.lower_bound_
    assert (np.diff(solver.cost_history_) <= 0).all()
    for k in range(solver.n_clusters_):
        without = np.delete(squares, k, axis=1).min(axis=1).sum() + lam * (solver.n_clusters_ - 1)
        assert without >= solver.facility_cost_ - 1e-9


def test_duplicates_are_weighted():
    X = np.repeat([[0.0], [1.0], [5.0]], [1, 40, 3], axis=0)
    solver = LowRankALBCD(2.0).fit(X)
    assert solver.exemplar_indices_.tolist() == [1, 41]
    assert solver.facility_cost_ == 1 + 2 * 2
    assert solver.labels_.tolist() == [0] * 41 + [1] * 3


def test_too_few_iterations_give_a_warning():
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 iterations left a gap of .* than tol=1e-09: pass a"):
        solver = LowRankALBCD(3.0, max_iter=1, tol=1e-9, random_state=0).fit(X)
    assert not solver.converged_
    assert solver.n_iter_ == 1
    assert solver.gap_ > 1e-9
