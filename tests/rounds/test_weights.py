from itertools import pairwise

import numpy as np
import pytest
from constraint_cases import LINKAGES, METHODS, check_obeyed, constraints_on, line
from graphs import graphs, thresholds_for
from hypothesis import given, settings
from hypothesis import strategies as st
from test_attach import rows_for

import agglo
from agglo import NeighborGraph
from agglo.neighbors.graph import FixedPoint, fixed_point_for
from agglo.rounds import reference_attach, reference_constraints
from agglo.rounds.attach import Rows, attach_rows
from agglo.rounds.constraints import check_weights
from agglo.testing import assert_same_hierarchy, check_hierarchy


def copied(graph, numbers):
    """The graph in which point ``i`` is ``numbers[i]`` points, and the first of each."""
    first = np.concatenate([[0], np.cumsum(numbers)])
    sources, targets, weights = [], [], []
    matrix = graph.to_scipy().tocoo()
    for i, j, weight in zip(matrix.row, matrix.col, matrix.data, strict=True):
        for a in range(first[i], first[i + 1]):
            for b in range(first[j], first[j + 1]):
                sources.append(a)
                targets.append(b)
                weights.append(weight)
    about = {"kind": graph.kind, "missing": graph.missing, "n_points": int(first[-1])}
    return NeighborGraph.from_edges(np.array(sources, int), np.array(targets, int), weights, **about), first


@settings(max_examples=150)
@given(
    st.data(),
    graphs(10, ["few", "negative"]),
    st.sampled_from(LINKAGES),
    st.sampled_from(METHODS),
    st.sampled_from(["every-round", "until-stable"]),
)
def test_a_weight_is_as_good_as_copies_that_are_linked(data, graph, linkage, method, advance):
    numbers = data.draw(st.lists(st.integers(1, 4), min_size=graph.n_points, max_size=graph.n_points))
    many, first = copied(graph, numbers)
    options = {"linkage": linkage, "max_cluster_size": data.draw(st.sampled_from([None, 4, 7]))}
    if method == "scc":
        options |= {"thresholds": data.draw(thresholds_for(graph)), "advance": advance}
    copies = [list(range(start, end)) for start, end in pairwise(first) if end - start > 1]
    expected = getattr(agglo, method)(many, must_link=copies, **options)
    tree = getattr(agglo, method)(graph, sample_weight=numbers, **options)
    before = int(len(copies) > 0)  # the round that links
    assert len(tree.rounds) == len(expected.rounds) - before
    for round in range(len(tree.rounds) + 1):
        labels = expected.labels(round=round + before)
        assert tree.labels(round=round).tolist() == labels[first[:-1]].tolist()
    merged = np.sort(expected.height[expected.round > before])
    np.testing.assert_allclose(np.sort(tree.height[tree.round > 0]), merged, rtol=1e-12, atol=1e-12)


@settings(max_examples=150)
@given(
    st.data(),
    graphs(),
    st.sampled_from(LINKAGES),
    st.sampled_from(METHODS),
    st.sampled_from([(0.1, 1.0), (1.0, 3.0), (1e-3, 1e3), (7.5e20, 8e20)]),
)
def test_engines_agree_on_any_weights(data, graph, linkage, method, range_):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weights = check_weights(graph.n_points, rng.uniform(*range_, graph.n_points))
    options = {"linkage": linkage, "sample_weight": weights}
    if method == "scc":
        options["thresholds"] = data.draw(st.one_of(st.just("odds"), thresholds_for(graph)))
    known = data.draw(constraints_on(graph.n_points, weights))
    expected = getattr(reference_constraints, method)(graph, **options, **known)
    check_hierarchy(expected)
    check_obeyed(expected, **known, weights=weights)
    for n_jobs in (1, 2, 8):
        assert_same_hierarchy(getattr(agglo, method)(graph, **options, **known, n_jobs=n_jobs), expected)


@pytest.mark.parametrize("kind", ["similarity", "distance"])
def test_engines_agree_on_weights_of_a_graph_of_some_size(kind):
    rng = np.random.default_rng(3)
    neighbours = (np.arange(1200)[:, None] + rng.integers(1, 40, (1200, 6))) % 1200
    graph = NeighborGraph.from_neighbors(neighbours, rng.random((1200, 6)), kind=kind)
    weights = rng.pareto(1.0, 1200) + 0.01
    expected = reference_constraints.scc(graph, n_thresholds=40, sample_weight=weights)
    for n_jobs in (1, 2, 8):
        assert_same_hierarchy(agglo.scc(graph, n_thresholds=40, sample_weight=weights, n_jobs=n_jobs), expected)


@settings(max_examples=60)
@given(st.data(), graphs(12), st.sampled_from(LINKAGES), st.sampled_from(METHODS))
def test_new_points_join_weighed_clusters_as_the_reference_says(data, graph, linkage, method):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weights = check_weights(graph.n_points, rng.uniform(0.1, 3.0, graph.n_points))
    tree = getattr(agglo, method)(graph, linkage=linkage, sample_weight=weights)
    rows = data.draw(rows_for(tree, graph))
    expected = reference_attach.attach(tree, rows, weights)
    for n_jobs in (1, 2):
        found = attach_rows(tree, rows, n_jobs=n_jobs, leaf_weights=weights)
        assert found.node.tolist() == expected.node.tolist()
        np.testing.assert_array_equal(found.height, expected.height)


def test_new_points_with_edges_of_very_different_weights_join_as_the_reference_says():
    graph = NeighborGraph.from_edges([0, 2], [1, 3], [7e19, 4.5e-9], kind="distance")
    edges = np.array([3.6e19, 4.5e-9, 4.5e-9, 4.5e-9], np.float32)
    rows = Rows(np.array([0, 4]), np.array([3, 2, 0, 1], np.int32), edges)
    for seed in range(10):
        weights = check_weights(4, np.random.default_rng(seed).uniform(0.1, 3.0, 4))
        tree = agglo.scc(graph, sample_weight=weights)
        found = attach_rows(tree, rows, leaf_weights=weights)
        expected = reference_attach.attach(tree, rows, weights)
        assert (found.node, found.height) == (expected.node, expected.height)


# ---- what a user relies on ----


def test_averages_weigh():
    graph = NeighborGraph.from_edges([0, 0, 1], [1, 2, 2], [0.9, 0.6, 0.2], kind="similarity")
    assert agglo.hac(graph).height[-1] == pytest.approx(1 - 0.4)
    assert agglo.hac(graph, sample_weight=[3, 1, 7.5]).height[-1] == pytest.approx(1 - 0.5)
    for linkage in ("single", "complete"):
        expected = agglo.hac(graph, linkage=linkage)
        assert_same_hierarchy(agglo.hac(graph, linkage=linkage, sample_weight=[3, 1, 7.5]), expected)


@settings(max_examples=50)
@given(graphs(10, ["few", "negative"]), st.integers(-60, 60), st.sampled_from(METHODS))
def test_only_ratios_of_weights_matter_to_averages(graph, power, method):
    weights = 1 + np.arange(graph.n_points) % 3
    expected = getattr(agglo, method)(graph, sample_weight=weights)
    assert_same_hierarchy(getattr(agglo, method)(graph, sample_weight=weights * 2.0**power), expected)


def test_weights_of_one_are_none():
    graph = line(0.9, 0.8, 0.3)
    tree = agglo.scc(graph, sample_weight=np.ones(4, np.float32))
    assert_same_hierarchy(tree, agglo.scc(graph))
    assert "weight" not in tree.about
    assert agglo.scc(graph, sample_weight=[1, 2, 1, 1]).about["weight"] == 5


def test_named_thresholds_reach_as_far_as_averages_of_weights_do():
    for weights in ([1, 1, 500, 400], [1e-4, 1e-4, 0.05, 0.04]):
        tree = agglo.scc(line(0.9, 0.8, 0.7), sample_weight=weights)
        assert tree.labels(round=-1).tolist() == [0, 0, 0, 0]


def test_the_size_of_a_cluster_is_its_weight():
    tree = agglo.scc(line(0.9, 0.8, 0.7), linkage="single", sample_weight=[1, 1, 2.5, 1], max_cluster_size=3.5)
    assert tree.labels(round=-1).tolist() == [0, 0, 1, 1]
    assert tree.size.tolist() == [1, 1, 1, 1, 2, 2, 4]


def test_sums_of_weights_are_exact():
    rng = np.random.default_rng(1)
    weights = check_weights(1000, rng.random(1000))
    sums = {float(rng.permutation(weights).cumsum()[-1]) for _ in range(20)}
    assert len(sums) == 1
    whole = rng.integers(1, 2**40, 1000)
    assert check_weights(1000, whole).tolist() == whole.tolist()


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1, 2], ValueError, r"sample_weight has shape \(2,\), but there are 4 points: pass a weight for each"),
        (np.ones((4, 1)), ValueError, r"sample_weight has shape \(4, 1\)"),
        (
            [1, 0, 1, 1],
            ValueError,
            r"sample_weight\[1\] is 0, but weights are larger than zero.*leave out points",
        ),
        ([1, 1, -2.5, 1], ValueError, r"sample_weight\[2\] is -2.5"),
        ([1, 1, 1, np.nan], ValueError, r"sample_weight\[3\] is nan"),
        ([1, 1, 1, np.inf], ValueError, r"sample_weight\[3\] is inf"),
        (
            [1, 1, 1, 1e-60],
            ValueError,
            r"sample_weight\[3\] is 1e-60, but weights are .* from 1e-50 to 1e\+50",
        ),
        (["a", "b", "c", "d"], TypeError, "sample_weight has dtype <U1, but weights are numbers"),
        (
            [1, 1, 1, 1e-20],
            ValueError,
            r"sample_weight\[3\] is 1e-20, which is lost beside the weight of all .*, 3",
        ),
        (
            [1, 1, 1e9, 1e-3],
            ValueError,
            "sample_weight goes from .* to 1e\\+09, and sums over 3 edges of so differ",
        ),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_bad_weights_are_errors(weights, error, message, method):
    with pytest.raises(error, match=message):
        getattr(agglo, method)(line(0.9, 0.8, 0.7), sample_weight=weights)


def test_a_point_may_be_too_heavy():
    with pytest.raises(
        ValueError, match="point 2 weighs 5, which is more than max_cluster_size=4: raise the size"
    ):
        agglo.scc(line(0.9, 0.8), sample_weight=[1, 1, 5], max_cluster_size=4)


def test_the_fixed_point_format_has_bits_for_weights():
    graph = line(0.9, 0.8, 0.7)
    assert fixed_point_for(graph, np.ones(4)) == FixedPoint(fixed_point_for(graph).shift, 1, 60)
    assert fixed_point_for(graph, np.array([1.0, 2, 3, 4])).limbs == 1
    assert fixed_point_for(graph, np.array([1.0, 2, 1e6, 4])).limbs == 2


def test_a_new_point_is_told_what_the_leaves_weigh():
    graph = NeighborGraph.from_edges([0, 0, 1], [1, 2, 2], [0.9, 0.6, 0.2], kind="similarity")
    weights = [1, 3, 2]
    tree = agglo.scc(graph, thresholds=[0.8, 0.1], sample_weight=weights)
    with pytest.raises(ValueError, match=r"built with point weights, 6 in total, which averages depend on: pass"):
        agglo.attach(tree, [[0]], [[0.5]])
    new = agglo.attach(tree, [[0], [1]], [[0.5], [0.5]], sample_weight=weights)
    assert new.height.tolist() == pytest.approx([1 - 0.125, 1 - 0.375])
