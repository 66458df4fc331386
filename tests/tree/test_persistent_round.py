"""The most persistent round."""

import math

import numpy as np
import pytest
from forests import trees
from hypothesis import given

import agglo
from agglo import NeighborGraph
from agglo.tree.persistent_round import persistent_round


def same_partition(a, b):
    pairs = np.unique(np.column_stack([a, b]), axis=0)
    return len(pairs) == len(np.unique(a)) == len(np.unique(b))


def plain_persistence(tree):
    """Compute the persistence and the number of clusters of every round by the definition, point by point."""
    missing = tree.about["missing"]
    if tree.about["kind"] == "similarity":
        missing_height = tree.about["origin"] - (0.0 if missing == "ignore" else missing)
    else:
        missing_height = math.inf if missing in ("ignore", 0.0) else missing

    def rescale(height):
        if missing_height == math.inf:
            return height
        return -math.log(min(1, max(0.001, 1 - height / missing_height)))

    last = len(tree.rounds)
    reached = [max(tree.height[tree.round <= index]) for index in range(last + 2)]
    persistence, numbers = [], []
    for index in range(last + 1):
        sizes = np.bincount(tree.labels(round=index))
        shares = sizes / sizes.sum()
        numbers.append(math.exp(-(shares * np.log(shares)).sum()))
        persistence.append((rescale(reached[index + 1]) - rescale(reached[index])) * shares[sizes > 1].sum())
    return persistence, numbers


def plain_scores(tree):
    """Compute the score of every round, pair by pair of rounds."""
    persistence, numbers = plain_persistence(tree)
    return [
        sum(length * min(k, m) / max(k, m) for length, k in zip(persistence, numbers, strict=True))
        for m in numbers
    ]


@given(trees())
def test_the_persistent_round_has_the_highest_score(tree):
    round_ = persistent_round(tree)
    np.testing.assert_array_equal(tree.cut(round="persistent"), tree.labels(round=round_))
    scores = plain_scores(tree)
    between = [index for index, record in enumerate(tree.rounds, start=1) if record.after > 1]
    if between:
        assert round_ in between
        assert scores[round_] >= max(scores[index] for index in between) - 1e-9
    else:
        assert round_ == len(tree.rounds)


def planted(rng, n, centers, spread):
    """Draw points around ``centers``; return them and the center of each."""
    y = np.arange(n) % len(centers)
    return centers[y] + spread * rng.normal(size=(n, centers.shape[1])), y


# With fewer points in a cluster than neighbours, Affinity merges finished clusters before others are: not tried.
@pytest.mark.parametrize(("name", "n"), [("scc", 40), ("hac", 40), ("scc", 900), ("hac", 900), ("affinity", 900)])
@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean", "euclidean"])
def test_separate_clusters_are_the_persistent_ones(name, n, metric):
    X, y = planted(np.random.default_rng(n), n, np.eye(8), 0.01)
    tree = getattr(agglo, name)(agglo.neighbor_graph(X, 10, metric))
    assert same_partition(tree.cut(round="persistent"), y)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_close_pair_and_an_outlier_do_not_change_the_selection(metric):
    # Two nearly equal points and one far from all others. By ratios of heights, the level at which only the pair
    # has merged would be the most persistent; by differences, the level of the far point against the rest.
    X, y = planted(np.random.default_rng(5), 600, np.eye(6), 0.05)
    X = np.vstack([X, X[0] + 1e-6, -5 * np.ones(6)])
    tree = agglo.hac(agglo.neighbor_graph(X, 25, metric))
    assert same_partition(tree.cut(round="persistent")[:600], y)


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
def test_the_unit_of_distances_does_not_matter(factor):
    X = np.random.default_rng(2).normal(size=(300, 3))
    here = agglo.hac(agglo.neighbor_graph(X, 10, "euclidean"))
    there = agglo.hac(agglo.neighbor_graph(factor * X, 10, "euclidean"))
    assert persistent_round(here) == persistent_round(there)


def test_trees_without_a_round_between_single_points_and_one_cluster():
    pair = NeighborGraph.from_edges([0], [1], [0.5], kind="distance")
    assert agglo.scc(pair).cut(round="persistent").tolist() == [0, 0]
    apart = NeighborGraph.from_edges([], [], [], n_points=3, kind="distance")
    assert agglo.scc(apart).cut(round="persistent").tolist() == [0, 1, 2]
    alone = NeighborGraph.from_edges([], [], [], n_points=1, kind="similarity")
    assert agglo.scc(alone).cut(round="persistent").tolist() == [0]


def test_duplicates_without_other_neighbours_are_the_clusters():
    graph = NeighborGraph.from_edges([0, 1, 3], [1, 2, 4], [0, 0, 0], kind="distance")  # missing is 0 as well
    assert agglo.scc(graph, thresholds=[0.0]).cut(round="persistent").tolist() == [0, 0, 0, 1, 1]
