import numpy as np
import pytest
from graphs import graphs, thresholds_for
from hypothesis import given, settings
from hypothesis import strategies as st

import agglo
from agglo import Hierarchy
from agglo.rounds import reference_attach
from agglo.rounds.attach import Rows, attach_rows
from agglo.rounds.linkage import GRAPH_LINKAGES
from agglo.testing import random_forest


@st.composite
def trees(draw):
    """Trees of every algorithm and linkage, on graphs of all kinds, and their graphs."""
    graph = draw(graphs())
    linkage = draw(st.sampled_from(GRAPH_LINKAGES))
    links = [[0, graph.n_points - 1]] if graph.n_points > 1 and draw(st.booleans()) else None
    algorithm = draw(st.sampled_from(["scc", "affinity", "hac"]))
    if algorithm == "scc":
        advance = draw(st.sampled_from(["every-round", "until-stable"]))
        thresholds = draw(st.one_of(st.just("odds"), thresholds_for(graph)))
        return agglo.scc(graph, thresholds=thresholds, linkage=linkage, advance=advance, must_link=links), graph
    return getattr(agglo, algorithm)(graph, linkage=linkage, must_link=links), graph


@st.composite
def rows_for(draw, tree, graph):
    """Neighbours of new points: none, few or all of the leaves, at weights like those of the graph."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = rng.integers(0, min(tree.n_leaves, 6) + 1, draw(st.integers(0, 8)))
    targets = [rng.permutation(tree.n_leaves)[:length] for length in lengths]
    like = graph.weights if graph.n_edges else np.array([0.5], np.float32)
    weights = rng.choice(like, lengths.sum()) * rng.choice([1.0, 1.0, 0.5], lengths.sum())
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Rows(indptr, np.concatenate([*targets, np.empty(0, np.int64)]).astype(np.int32), weights.astype("f4"))


@settings(max_examples=100)
@given(st.data())
def test_the_core_attaches_as_the_reference_does(data):
    tree, graph = data.draw(trees())
    rows = data.draw(rows_for(tree, graph))
    expected = reference_attach.attach(tree, rows)
    for n_jobs in (1, 3):
        found = attach_rows(tree, rows, n_jobs=n_jobs)
        np.testing.assert_array_equal(found.node, expected.node, strict=True)
        np.testing.assert_array_equal(found.round, expected.round, strict=True)
        np.testing.assert_array_equal(found.height, expected.height, strict=True)


@settings(max_examples=30)
@given(st.data())
def test_labels_follow_from_the_node(data):
    tree, graph = data.draw(trees())
    new = attach_rows(tree, data.draw(rows_for(tree, graph)))
    for round in range(len(tree.rounds) + 1):
        labels, found = tree.labels(round), new.labels(round=round)
        for node, joined, label in zip(new.node, new.round, found, strict=True):
            there = node >= 0 and joined <= round and tree.round[node] <= round
            assert label == (labels[tree.leaves(node)[0]] if there else -1)
    for height in (*np.unique(tree.height), np.inf):
        labels, found = tree.cut(height=height), new.labels(height=height)
        for node, joined, label in zip(new.node, new.height, found, strict=True):
            assert label == (labels[tree.leaves(node)[0]] if node >= 0 and joined <= height else -1)
    largest = data.draw(st.integers(1, tree.n_leaves))
    labels = tree.cut(max_size=largest)
    clusters = [set(np.flatnonzero(labels == label)) for label in range(labels.max() + 1)]
    for node, label in zip(new.node, new.labels(labels=labels), strict=True):
        inside = [c for c, members in enumerate(clusters) if node >= 0 and set(tree.leaves(node)) <= members]
        assert [label] == (inside or [-1])


@settings(max_examples=30)
@given(st.data())
def test_a_copy_is_where_its_leaf_is_in_every_cut(data):
    tree, _ = data.draw(trees())
    leaves = np.arange(tree.n_leaves)
    new = agglo.attach(tree, np.zeros((tree.n_leaves, 1), int), np.ones((tree.n_leaves, 1)), copies=leaves)
    for round in range(len(tree.rounds) + 1):
        np.testing.assert_array_equal(new.labels(round=round), tree.labels(round))
    np.testing.assert_array_equal(new.labels(height=0), tree.cut(height=0))
    np.testing.assert_array_equal(new.labels(labels=tree.cut(max_size=2)), tree.cut(max_size=2))


@pytest.mark.parametrize("linkage", GRAPH_LINKAGES)
@pytest.mark.parametrize("kind", ["similarity", "distance"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_a_point_that_nobody_else_looks_at_joins_as_in_a_run_with_it(linkage, kind, seed):
    # No old cluster joins the new point of its own accord if that is farther than all old pairs are.
    rng = np.random.default_rng(seed)
    n = 12
    i, j = np.triu_indices(n, 1)
    old = rng.choice(np.arange(1, 40), len(i)) / 100
    far = rng.choice(np.arange(60, 100), n) / 100
    if kind == "similarity":
        old, far = 1 - old, 1 - far
    thresholds = np.linspace(0.05, 1, 20)
    thresholds = 1 - thresholds if kind == "similarity" else thresholds
    missing = {"similarity": 0.0, "distance": 1.0}[kind]
    graph = agglo.NeighborGraph.from_edges(i, j, old, kind=kind, missing=missing)
    tree = agglo.scc(graph, thresholds=thresholds, linkage=linkage)
    new = agglo.attach(tree, [np.arange(n)], [far])
    more = agglo.NeighborGraph.from_edges(
        np.append(i, np.arange(n)), np.append(j, np.full(n, n)), np.append(old, far), kind=kind, missing=missing
    )
    whole = agglo.scc(more, thresholds=thresholds, linkage=linkage)
    for step, threshold in enumerate(tree.rounds.threshold, start=1):
        labels = whole.labels(int((whole.rounds.threshold <= threshold).sum()))
        if kind == "similarity":
            labels = whole.labels(int((whole.rounds.threshold >= threshold).sum()))
        mates = np.flatnonzero(labels[:n] == labels[n])
        if step == len(tree.rounds):  # lasts until the end of the schedule
            mates = np.flatnonzero(whole.labels(-1)[:n] == whole.labels(-1)[n])
        label = new.labels(round=step)[0]
        assert (label == -1) == (not len(mates))
        if len(mates):
            np.testing.assert_array_equal(np.flatnonzero(tree.labels(step) == label), mates)


def test_affinity_and_hac_have_rules_of_their_own():
    graph = agglo.neighbor_graph([[0.0], [1.0], [10.0], [13.0]], 3, "euclidean")
    near_and_far = {"indices": [[1, 0], [3, 2]], "values": [[2.5, 3.5], [20.0, 23.0]]}
    new = agglo.attach(agglo.affinity(graph, linkage="single"), **near_and_far)
    assert (new.node.tolist(), new.round.tolist(), new.height.tolist()) == ([1, 3], [1, 1], [2.5, 20.0])
    tree = agglo.hac(graph, linkage="single")  # merges at 1, 3 and 9
    new = agglo.attach(tree, **near_and_far)
    assert (new.node.tolist(), new.round.tolist(), new.height.tolist()) == ([4, 6], [2, 3], [2.5, 20.0])
    assert new.labels(n_clusters=3).tolist() == [-1, -1]
    assert new.labels(n_clusters=2).tolist() == [0, -1]
    assert new.labels(n_clusters=1).tolist() == [0, 0]
    assert new.labels(height=19.5).tolist() == [0, -1]


def test_what_is_out_of_reach_is_new():
    graph = agglo.neighbor_graph([[0.0], [1.0], [10.0]], 2, "euclidean")
    tree = agglo.scc(graph, thresholds=[1.0, 5.0])
    new = agglo.attach(tree, [[1, 0], [2, -1], [-1, -1]], [[0.5, 1.5], [5.5, np.inf], [np.nan, 0.0]])
    assert (new.node.tolist(), new.round.tolist()) == ([1, -1, -1], [1, -1, -1])
    assert new.height.tolist() == [0.5, np.inf, np.inf]
    for cut in ({"round": -1}, {"height": np.inf}, {"labels": [0, 0, 0]}):
        assert new.labels(**cut).tolist() == [0, -1, -1]
    assert agglo.attach(tree, np.empty((0, 3), int), np.empty((0, 3))).labels(round=0).tolist() == []


def test_what_cannot_be_attached_is_said():
    tree = agglo.scc(agglo.neighbor_graph([[0.0], [1.0], [10.0]], 2, "euclidean"))
    for indices, values, message in (
        ([0], [1.0], r"must be \(points, neighbours\) arrays, got \(1,\) and \(1,\)"),
        ([[0, 1]], [[1.0]], r"got \(1, 2\) and \(1, 1\)"),
        ([[3]], [[1.0]], r"indices holds 3, outside 0\.\.2; -1 stands for no neighbour"),
        ([[-2]], [[1.0]], "indices holds -2"),
        ([[1]], [[np.nan]], "not finite float32 numbers: leave such neighbours out"),
    ):
        with pytest.raises(ValueError, match=message):
            agglo.attach(tree, indices, values)
    with pytest.raises(TypeError, match=r"indices must be integers .*, got dtype float64"):
        agglo.attach(tree, [[0.0]], [[1.0]])
    for copies, message in (([3], "must be leaves: pass numbers up to 2"), ([[0]], r"got int64 of \(1, 1\)")):
        with pytest.raises(ValueError, match=message):
            agglo.attach(tree, [[0]], [[1.0]], copies=copies)
    forest = random_forest(np.random.default_rng(0), 5)
    with pytest.raises(ValueError, match=r"no record of its linkage, .* pass a tree of agglo\.scc"):
        agglo.attach(Hierarchy.from_forest(forest, kind="distance", missing=1.0), [[0]], [[1.0]])
    tree_of_other = Hierarchy.from_forest(forest, kind="distance", missing=1.0, about={"linkage": "Mine"})
    with pytest.raises(ValueError, match=r"built with linkage='Mine', .* cannot be replayed .* average"):
        agglo.attach(tree_of_other, [[0]], [[1.0]])
    graph = agglo.neighbor_graph([[0.0], [1.0], [10.0]], 2, "euclidean")
    agglo.attach(agglo.scc(graph, linkage="single", sample_weight=[1, 2, 1]), [[0]], [[1.0]])
    about = {"linkage": "average"}
    unsorted = forest._replace(threshold=np.linspace(1, 0, len(forest.threshold)))
    with pytest.raises(ValueError, match="do not go from near to far"):
        agglo.attach(Hierarchy.from_forest(unsorted, kind="distance", missing=1.0, about=about), [[0]], [[1.0]])
    new = agglo.attach(tree, [[0]], [[1.0]])
    with pytest.raises(ValueError, match="labels are a cut already: leave out n_clusters, round and height"):
        new.labels(2, labels=[0, 0, 1])
    with pytest.raises(ValueError, match=r"cluster 0 of 2 points is not a node of the tree"):
        new.labels(labels=[0, 1, 0])


@pytest.mark.parametrize("weights", [None, [1, 2, 1, 3, 1]])
def test_a_new_point_with_edges_of_very_different_lengths_joins_the_nearest(weights):
    ends = [0, 2], [1, 3], [1e-32, 1e-32]
    graph = agglo.NeighborGraph.from_edges(*ends, n_points=5, kind="distance", missing="ignore")
    tree = agglo.scc(graph, thresholds=[1e-31, 1e20], sample_weight=weights)
    rows = [[0, 2, 4], [0, 2, 4]], [[2e-30, 1e-30, 1e10], [1e-41, 2e-41, 1e10]]
    found = agglo.attach(tree, *rows, sample_weight=weights)
    assert found.node.tolist() == [tree.parent[2], 0]
    assert found.height.tolist() == pytest.approx([1e-30, 1e-41], rel=1e-3, abs=0)
