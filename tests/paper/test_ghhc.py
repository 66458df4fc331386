"""gHHC: its gradient, and its optimization."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agglo.evaluation.metrics import dendrogram_purity
from agglo.paper.baselines import GHHC
from agglo.paper.baselines.ghhc import draw_triples, loss_and_gradient, parent_distances
from agglo.testing import check_hierarchy


def in_ball(rng, *shape, radius):
    points = rng.standard_normal(shape)
    return points * radius / np.linalg.norm(points, axis=-1, keepdims=True)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), margin=st.sampled_from([0.0, 0.1, 1.0]))
def test_the_gradient_is_that_of_the_loss(seed, margin):
    rng = np.random.default_rng(seed)
    corners = in_ball(rng, 3, 4, 3, radius=0.6)
    nodes = in_ball(rng, 6, 3, radius=0.1 + 0.4 * rng.random((6, 1)))
    way = rng.standard_normal(nodes.shape)
    _, gradient = loss_and_gradient(corners, nodes, margin)
    step = 1e-6
    ahead, behind = (loss_and_gradient(corners, nodes + sign * step * way, margin)[0] for sign in (1, -1))
    assert (gradient * way).sum() == pytest.approx((ahead - behind) / (2 * step), rel=1e-4, abs=1e-6)


def test_distances_are_hyperbolic():
    middle, x = np.zeros((1, 2)), np.array([[0.5, 0.0]])
    along = np.array([[0.0, 0.0], [0.25, 0.0]])
    found = parent_distances(x, along, 0.0)
    np.testing.assert_allclose(found.hyperbolic[0], 2 * (np.arctanh(0.5) - np.arctanh([0.0, 0.25])))
    assert (found.penalty == 1).all()  # parents that are nearer to the middle
    assert parent_distances(middle, x, 0.0).penalty[0, 0] == pytest.approx(1 + 2 * np.arctanh(0.5))


def test_the_closest_two_of_a_triple_come_first():
    rows = np.random.default_rng(0).standard_normal((50, 3))
    found = draw_triples(rows, 4, 30, np.random.RandomState(0)).reshape(-1, 3)
    a, b, c = (rows[found[:, corner]] for corner in range(3))
    closest, other, third = (((p - q) ** 2).sum(axis=1) for p, q in ((a, b), (b, c), (a, c)))
    assert (closest <= np.minimum(other, third)).all()


def test_steps_lower_the_loss_and_make_a_better_tree():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 20, 400)
    X = rng.standard_normal((20, 10))[y] + 0.4 * rng.standard_normal((400, 10))
    still = GHHC(learning_rate=0.0, max_iter=1, random_state=0).fit(X)
    moved = GHHC(max_iter=80, random_state=0).fit(X)
    check_hierarchy(moved.tree_)
    assert moved.losses_[-10:].mean() < moved.losses_[0] - 0.05
    assert dendrogram_purity(moved.tree_, y) > dendrogram_purity(still.tree_, y) > 0.1
    assert moved.nodes_.shape == (80, 10)
    assert np.linalg.norm(moved.nodes_, axis=1).max() < 0.6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_nodes": 1}, "n_nodes=1 is too small for a tree: pass at least 2"),
        ({"max_iter": 0}, "max_iter=0 must be at least 1"),
        ({"margin": -1.0}, "margin=-1.0 must be finite and at least 0"),
    ],
)
def test_ghhc_refuses(parameters, message):
    with pytest.raises(ValueError, match=message):
        GHHC(**parameters).fit(np.eye(3))
