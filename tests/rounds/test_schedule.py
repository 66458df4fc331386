from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import agglo
from agglo import NeighborGraph
from agglo.rounds.schedule import schedule, threshold_range


def graph(weights, kind="similarity", **options):
    i = np.arange(len(weights))
    return NeighborGraph.from_edges(i, i + 1, weights, n_points=len(weights) + 1, kind=kind, **options)


def test_cosines_go_from_one_to_a_thousandth():
    values = schedule(graph([0.9, 0.5, -0.3]), "geometric")
    assert (len(values), values[0], values[-1]) == (200, 1.0, 0.001)
    np.testing.assert_allclose(values[1:] / values[:-1], 0.001 ** (1 / 199))


def test_unit_length_squared_distances_go_from_a_thousandth_to_four():
    values = schedule(graph([0.5, 2.0], "distance", metric="sqeuclidean", missing=4), "geometric")
    assert (values[0], values[-1]) == (0.001, 4.0)


def test_other_ranges_come_from_the_weights():
    assert threshold_range(graph([50.0, 3.0])) == (50.0, 0.05)
    assert threshold_range(graph([0.5, 8.0], "distance")) == (0.5, 8.0)
    assert threshold_range(graph([0.5, 8.0], "distance", missing=20)) == (0.5, 20.0)
    assert threshold_range(graph([0.0, 8.0], "distance", missing="ignore")) == (8.0, 8.0)
    assert threshold_range(graph([1e-12] + [2.0] * 1000 + [8.0], "distance")) == (2.0, 8.0)
    assert threshold_range(graph([], "distance", metric="euclidean")) == (0.0, 0.0)


@pytest.mark.parametrize("thresholds", ["odds", "geometric", "linear", "doubling"])
@pytest.mark.parametrize("linkage", ["average", "single", "complete", "exact-average"])
def test_the_tree_of_dot_products_does_not_depend_on_the_scale_of_the_points(thresholds, linkage):
    rng = np.random.default_rng(0)
    X = (3 * rng.normal(size=(5, 6))[np.arange(100) % 5] + rng.normal(size=(100, 6))).astype(np.float32)

    def grow(scale):
        points = X * np.float32(scale)
        tree = agglo.scc(agglo.neighbor_graph(points, 8, "dot"), thresholds=thresholds, linkage=linkage, X=points)
        return tree.parent.tolist(), tree.round.tolist()

    expected = grow(1)
    assert len(set(expected[1])) > 2
    assert grow(2.0**-20) == grow(2.0**20) == expected  # powers of two, so that all roundings are the same


def odds(values, closest, missing):
    distances = np.abs(values - closest) / abs(missing - closest)
    return (1 - distances) / distances


@pytest.mark.parametrize(
    ("weights", "options", "closest", "missing"),
    [
        ([0.9, 0.5, -0.3], {"kind": "similarity"}, 1.0, 0.0),
        ([0.9, 0.5, 0.6], {"kind": "similarity", "missing": 0.4}, 1.0, 0.4),
        ([50.0, 3.0], {"kind": "similarity"}, 50.0, 0.0),
        ([0.5, 8.0], {"kind": "distance", "missing": 20.0}, 0.0, 20.0),
        ([0.5, 2.0, 8.0], {"kind": "distance"}, 0.0, 8.0),
        ([-3.0, -2.0], {"kind": "distance", "missing": -1.0}, -3.0, -1.0),
    ],
)
def test_odds_fall_in_a_twentieth_of_the_finest_step_of_the_paper(weights, options, closest, missing):
    made = graph(weights, **options)
    values = schedule(made)
    assert (np.diff(values) * np.sign(missing - closest) > 0).all()
    if missing != 0:
        assert values[-1] == missing
        values = values[:-1]
    found = odds(values, closest, missing)
    ratio = found[0] / found[1]
    np.testing.assert_allclose(found[:-1] / found[1:], ratio, rtol=1e-6)
    assert 0.95 * np.log(1000) / 15980 < np.log(ratio) <= 1.001 * np.log(1000) / 15980
    assert found[-1] == pytest.approx(0.001 if missing == 0 else 0.001 * ratio, rel=1e-6)
    assert len(schedule(made, "odds", 5)) == 5


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.sampled_from(["similarity", "distance"]))
def test_odds_reach_all_that_has_an_edge(seed, n, kind):
    rng = np.random.default_rng(seed)
    ends = rng.integers(n, size=(2, 2 * n))
    made = NeighborGraph.from_edges(
        *ends, rng.uniform(0.1, 0.9, 2 * n), n_points=n, kind=kind, missing=kind == "distance"
    )
    tree = agglo.scc(made)
    components = connected_components(made.to_scipy())[0]
    assert tree.rounds[-1].after == components if len(tree.rounds) else components == n


def test_odds_of_linkages_that_stay_among_the_weights_are_ratios_of_distances():
    for linkage, missing in [("single", 0.0), ("complete", 0.0), ("average", "ignore")]:
        values = schedule(graph([0.99, 0.9, 0.2], missing=missing), "odds", 3, linkage)
        np.testing.assert_allclose(1 - values, np.geomspace(0.01, 0.8, 3), rtol=1e-5)


def test_odds_of_copies_and_of_no_edges():
    assert schedule(graph([1.0, 1.0])).tolist()[-1] == pytest.approx(0.001, rel=0.01)
    assert schedule(graph([], "distance")).tolist() == [0.0]
    assert schedule(graph([0.0], "distance")).tolist() == [0.0]
    assert schedule(graph([0.5], "distance"))[-1] == 0.5
    assert schedule(graph([0.5, 0.6]), "odds", 1) == pytest.approx([0.001], rel=0.01)


def test_linear_steps_are_equal():
    np.testing.assert_allclose(schedule(graph([2.0, 10.0], "distance"), "linear", 5), [2, 4, 6, 8, 10])


def test_doubling_covers_the_range():
    assert schedule(graph([0.75, 10.0], "distance"), "doubling").tolist() == [0.75, 1.5, 3, 6, 12]
    halves = schedule(graph([0.5]), "doubling")
    assert halves[0] == 1
    assert halves[-1] <= 0.001 < halves[-2]
    assert (halves[1:] * 2 == halves[:-1]).all()


def test_one_threshold_is_the_farthest():
    assert schedule(graph([0.5, 8.0], "distance"), "geometric", 1).tolist() == [8.0]


def test_all_weights_zero():
    assert schedule(graph([0.0, 0.0], "distance")).tolist() == [0.0]


@pytest.mark.parametrize("values", [[0.9, 0.5], (0.9, 0.5), np.array([0.9, 0.5], np.float32)])
def test_thresholds_are_taken_as_given(values):
    np.testing.assert_allclose(schedule(graph([0.5]), values), [0.9, 0.5])


@pytest.mark.parametrize(
    ("thresholds", "count", "message"),
    [
        ("log", 200, "thresholds='log' is unknown: pass one of odds, geometric, linear, doubling, or an array"),
        ("geometric", 0, "n_thresholds=0 must be a positive integer"),
        ("geometric", 2.5, "n_thresholds=2.5 must be"),
        ([0.5, 0.9], 0, r"strictly decreasing \(similarities\).*thresholds\[0\]=0.5 is followed by 0.9: sort"),
        ([0.9, 0.9], 0, r"strictly decreasing.*drop duplicates"),
        ([0.9, np.nan], 0, r"thresholds\[1\] is nan, but thresholds are finite: leave it out"),
        ([0.9, -np.inf], 0, r"thresholds\[1\] is -inf, but thresholds are finite"),
        ([], 0, "one-dimensional array of numbers"),
        ([[0.9]], 0, r"shape \(1, 1\)"),
        (["a"], 0, "got dtype"),
        (None, 0, "got dtype object"),
    ],
)
def test_bad_thresholds(thresholds, count, message):
    with pytest.raises(ValueError, match=message):
        schedule(graph([0.5]), thresholds, count)


def test_distances_need_increasing_thresholds():
    with pytest.raises(ValueError, match=r"strictly increasing \(distances\)"):
        schedule(graph([0.5], "distance"), [2.0, 1.0])


def test_no_positive_range_for_ratios():
    negative = graph([-3.0, -2.0], "distance", missing=-1.0)
    with pytest.raises(ValueError, match=r"geometric thresholds need a positive range.*pass thresholds='linear'"):
        schedule(negative, "geometric")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 1.0])
@pytest.mark.parametrize("bound", [0.0, -0.5, 1e30, 3e38])
def test_what_lies_beyond_a_bound_is_found_by_its_rank(share, bound):
    rng = np.random.default_rng(0)
    weights = np.concatenate([10.0 ** rng.uniform(-38, 38, 500), -rng.random(50), np.zeros(7)])
    made = graph(weights.astype(np.float32), "distance")
    above, below = made.weights[made.weights > bound], made.weights[made.weights < bound]
    assert made.quantile_above(bound, True, share) == (
        np.quantile(above, share, method="lower") if len(above) else None
    )
    assert made.quantile_above(bound, False, share) == (
        -np.quantile(-below, share, method="lower") if len(below) else None
    )


@pytest.mark.parametrize("kind", ["similarity", "distance"])
def test_weights_of_all_magnitudes_have_thresholds(kind):
    values = schedule(graph([1e-20, 1.0, 1e20], kind), n_thresholds=5)
    assert len(values) == 5
    assert np.isfinite(values).all()
    assert (np.diff(values) * (1 if kind == "distance" else -1) > 0).all()


@pytest.mark.parametrize("largest", [1.0, 0.9, 0.51])
@pytest.mark.parametrize("factor", [10, 100, 1000, 10**9])
def test_similarities_in_a_larger_unit_have_the_same_tree(largest, factor):
    rng = np.random.default_rng(5)
    points, k = 200, 6
    neighbors = (np.arange(points)[:, None] + rng.integers(1, 20, (points, k))) % points
    weights = rng.integers(1, 1024, (points, k)) / 1024
    weights *= largest / weights.max()
    pairs = np.repeat(np.arange(points), k), neighbors.ravel()
    full = agglo.NeighborGraph.from_edges(*pairs, weights.ravel(), kind="similarity")
    scaled = agglo.NeighborGraph.from_edges(*pairs, weights.ravel() * factor, kind="similarity")
    # The schedule differs only by the rounding of the weights in float32.
    np.testing.assert_allclose(schedule(scaled), schedule(full) * factor, rtol=1e-3)
    labels = [agglo.SCC(metric="precomputed").fit_predict(each) for each in (full, scaled)]
    np.testing.assert_array_equal(*labels)


def test_rounding_of_the_largest_cosine_does_not_change_the_unit():
    above = float(np.nextafter(np.float32(1), np.float32(2)))
    exact, rounded = schedule(graph([1.0, 0.5, 0.1])), schedule(graph([above, 0.5, 0.1]))
    np.testing.assert_allclose(rounded, exact, rtol=1e-5)


@pytest.mark.parametrize("missing", [None, "mean", "ignore"])
@pytest.mark.parametrize("power", [1, 3, 40])
def test_similarities_in_a_smaller_unit_have_the_same_tree(missing, power):
    X = np.random.default_rng(3).normal(size=(200, 4))
    full = agglo.neighbor_graph(X, 6, missing=missing)
    scaled = replace(
        full,
        weights=np.ldexp(full.weights, -power),
        missing=full.missing if missing == "ignore" else full.missing / 2**power,
    )
    np.testing.assert_allclose(schedule(scaled), np.ldexp(schedule(full), -power), rtol=1e-14)
    tree, other = agglo.scc(full), agglo.scc(scaled)
    np.testing.assert_array_equal(tree.parent, other.parent)
    labels = [agglo.SCC(metric="precomputed").fit_predict(each) for each in (full, scaled)]
    np.testing.assert_array_equal(*labels)
