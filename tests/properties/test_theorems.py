"""What the paper proves, as tests."""

import numpy as np
import pytest
import scipy.cluster.hierarchy as sch
from graphs import complete_graph
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import agglo
from agglo.evaluation.metrics import dp_means_cost
from agglo.paper.datasets import delta_separated, model_separated

SEEDS = st.integers(0, 2**32 - 1)


def clusters_of(tree):
    """The inner nodes as sets of points."""
    return {frozenset(tree.leaves(node).tolist()) for node in range(tree.n_leaves, tree.n_nodes)}


def clusters_of_scipy(rows, n):
    found = {i: frozenset([i]) for i in range(n)}
    for node, (left, right, *_) in enumerate(rows, start=n):
        found[node] = found[int(left)] | found[int(right)]
    return set(found.values()) - {frozenset([i]) for i in range(n)}


@settings(max_examples=50)
@given(SEEDS, st.integers(2, 40), st.sampled_from(["average", "single", "complete"]))
def test_hac_on_the_complete_graph_is_classical(seed, n, linkage):
    points = np.random.default_rng(seed).normal(size=(n, 3))
    graph = complete_graph(points)
    tree = agglo.hac(graph, linkage=linkage)
    rows = sch.linkage(graph.to_scipy().toarray()[np.triu_indices(n, 1)].astype(float), method=linkage)
    assert clusters_of(tree) == clusters_of_scipy(rows, n)
    np.testing.assert_allclose(tree.height[n:], rows[:, 2], rtol=1e-6)
    np.testing.assert_allclose(sch.cophenet(tree.to_scipy()), sch.cophenet(rows), rtol=1e-6)


@settings(max_examples=50)
@given(SEEDS, st.integers(2, 30), st.sampled_from(["average", "single", "complete"]))
def test_scc_with_thresholds_at_the_heights_of_hac_is_hac(seed, n, linkage):
    """Proposition: there are thresholds for which SCC gives the tree of HAC."""
    graph = complete_graph(np.random.default_rng(seed).normal(size=(n, 3)))
    hac = agglo.hac(graph, linkage=linkage)
    heights = hac.height[n:]
    assume((np.diff(heights.astype(np.float32)) > 0).all())  # an injective linkage
    tree = agglo.scc(graph, thresholds=heights, linkage=linkage)
    assert clusters_of(tree) == clusters_of(hac)
    np.testing.assert_array_equal(tree.parent, hac.parent)
    np.testing.assert_array_equal(tree.height, hac.height)


@settings(max_examples=60)
@given(
    SEEDS,
    st.sampled_from([("euclidean", 6.0), ("sqeuclidean", 30.0)]),
    st.lists(st.integers(1, 12), min_size=2, max_size=5),
)
def test_separated_clusters_are_a_round(seed, condition, sizes):
    """Theorem: with doubling thresholds some round is the target of δ-separated data."""
    metric, delta = condition
    made = delta_separated(sizes, delta, squared=metric == "sqeuclidean", random_state=seed)
    graph = complete_graph(made.X, metric)
    tree = agglo.scc(graph, thresholds="doubling", advance="until-stable")
    partitions = [tree.labels(round=i).tolist() for i in range(len(tree.rounds) + 1)]
    assert made.y.tolist() in partitions


def set_partitions(n):
    """All partitions of n points, as labels in order of first appearance."""

    def extend(labels, k):
        if len(labels) == n:
            yield labels
            return
        for label in range(k + 1):
            yield from extend([*labels, label], max(k, label + 1))

    yield from extend([0], 1)


@settings(max_examples=15)
@given(SEEDS, st.sampled_from([[1, 2, 3], [3, 4], [2, 2, 2], [1, 6]]))
def test_some_round_is_within_two_of_the_best_dp_means_cost(seed, sizes):
    """Theorem: for δ-separated data some round is a 2-approximation, at λ = (δ - 2) R."""
    delta = 30.0
    points = delta_separated(sizes, delta, squared=True, random_state=seed).X
    lam = delta - 2
    best = min(dp_means_cost(points, labels, lam) for labels in set_partitions(len(points)))
    tree = agglo.scc(complete_graph(points, "sqeuclidean"), thresholds="doubling", advance="until-stable")
    found = min(dp_means_cost(points, tree.labels(round=i), lam) for i in range(len(tree.rounds) + 1))
    assert found <= 2 * best


@settings(max_examples=50)
@given(
    SEEDS, st.lists(st.integers(1, 8), min_size=1, max_size=5), st.sampled_from(["average", "single", "complete"])
)
def test_model_based_separated_data_are_recovered(seed, sizes, linkage):
    """Proposition: if linkages inside the target's clusters are always closer, the tree contains the target."""
    graph, y = model_separated(sizes, random_state=seed)
    n = len(y)
    heights = agglo.hac(graph, linkage=linkage).height[n:].astype(np.float32)
    tree = agglo.scc(graph, thresholds=np.unique(heights) if n > 1 else [1.0], linkage=linkage)
    assert y.tolist() in [tree.labels(round=r).tolist() for r in range(len(tree.rounds) + 1)]


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_affinity_merges_too_much_where_scc_does_not(metric):
    """Two pairs of clusters, a bridge point: without thresholds everything is joined in the first rounds."""
    points = np.array([[0.0], [1.0], [2.1], [3.3], [10.0], [11.0], [12.1], [13.3]])
    graph = complete_graph(points, metric)
    assert [record.after for record in agglo.affinity(graph).rounds] == [2, 1]
    assert agglo.scc(graph, thresholds=[1.05, 1.5, 20]).rounds[0].after == 6
