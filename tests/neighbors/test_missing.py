"""What a pair without an edge is taken to be: as far as can be, or as pairs are on average."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from cli_runs import run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

import agglo
from agglo import HAC, SCC, NeighborGraph

SCIPY = {"cosine": lambda X: 1 - pdist(X, "cosine"), "dot": lambda X: (X @ X.T)[np.triu_indices(len(X), 1)]}
METRICS = ["cosine", "dot", "sqeuclidean", "euclidean", "jaccard", "hamming"]


def points_of(metric, n=60, seed=0):
    X = np.random.default_rng(seed).normal(1.0, 2.0, (n, 8)).astype(np.float32)
    if metric == "jaccard":
        X[:, :2] = 1  # small sets are far from all others
    return X > 0 if metric in ("jaccard", "hamming") else X


def mean_pair(X, metric):
    return SCIPY.get(metric, lambda X: pdist(X, metric))(X).mean()


@pytest.mark.parametrize("metric", METRICS)
def test_the_mean_is_that_of_all_pairs(metric):
    X = points_of(metric, 400)
    graph = agglo.neighbor_graph(X, 3, metric, missing="mean")
    mean, edge = mean_pair(X, metric), graph.min_weight if graph.kind == "similarity" else graph.max_weight
    assert edge > mean if graph.kind == "similarity" else edge < mean
    assert graph.missing == pytest.approx(mean, abs=1e-5)
    usual = agglo.neighbor_graph(X, 3, metric)
    assert np.array_equal(graph.weights, usual.weights)
    if metric in ("cosine", "jaccard", "hamming"):
        wide = agglo.neighbor_graph(sp.csr_array(X), 3, metric, missing="mean")
        assert wide.missing == pytest.approx(graph.missing, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(2, 40),
    metric=st.sampled_from(METRICS),
    share=st.floats(0.1, 1.0),
)
def test_missing_pairs_are_not_closer_than_edges(seed, n, metric, share):
    X = points_of(metric, n, seed)
    X[: n // 4] = ~X[: n // 4] if X.dtype == bool else -50 * X[: n // 4]  # which stretch edges beyond the mean
    graph = agglo.neighbor_graph(X, max(1, int(share * (n - 1))), metric, missing="mean")
    if 2 * graph.n_edges == n * (n - 1):  # then nothing is missing
        assert graph.missing == agglo.neighbor_graph(X, "all", metric).missing
    elif graph.kind == "similarity":
        assert graph.missing <= graph.min_weight
    else:
        assert graph.missing >= graph.max_weight


def test_the_mean_of_many_points_is_estimated_from_a_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 16)).astype(np.float32) + 1
    found = [agglo.neighbor_graph(X, 5, n_jobs=jobs, missing="mean").missing for jobs in (1, 2, 8)]
    assert len(set(found)) == 1
    assert found[0] == pytest.approx(mean_pair(X, "cosine"), abs=0.02)
    other = agglo.neighbor_graph(X, 5, missing="mean", random_state=1).missing
    assert other != found[0]
    assert other == pytest.approx(found[0], abs=0.02)


def test_cosines_and_distances_of_unit_points_give_one_tree():
    X = np.random.default_rng(1).normal(size=(200, 6)) + 1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    cosines, distances = HAC().fit(X), HAC(metric="sqeuclidean").fit(X)
    assert distances.graph_.missing == pytest.approx(2 - 2 * cosines.graph_.missing, abs=1e-5)
    assert np.array_equal(cosines.tree_.parent, distances.tree_.parent)


def test_estimators_and_the_function_take_the_mean_by_default():
    X = points_of("cosine")
    mean = agglo.neighbor_graph(X, 3, missing="mean").missing
    assert SCC(n_neighbors=3).fit(X).graph_.missing == agglo.neighbor_graph(X, 3).missing == mean != 0
    farthest = agglo.neighbor_graph(X, 3, missing=None).missing
    assert SCC(n_neighbors=3, missing=None).fit(X).graph_.missing == farthest == 0
    assert SCC(n_neighbors=3, missing=0.25).fit(X).graph_.missing == 0.25
    assert SCC(n_neighbors=3, missing="ignore").fit(X).graph_.missing == "ignore"
    matrix = agglo.neighbor_graph(X, 3).to_scipy()
    for missing, expected in [("mean", 0), (None, 0), (0.5, 0.5)]:
        clusterer = SCC(metric="precomputed", kind="similarity", missing=missing)
        assert clusterer.fit(matrix).graph_.missing == expected


def test_partial_fit_includes_new_points_in_the_mean(tmp_path):
    X = points_of("cosine", 80)
    grown = SCC(n_neighbors=5).fit(X[:50]).partial_fit(X[50:])
    whole = SCC(n_neighbors=5).fit(X)
    assert grown.graph_.missing == whole.graph_.missing
    assert np.array_equal(grown.tree_.parent, whole.tree_.parent)
    whole.save(tmp_path / "model")
    loaded = agglo.load(tmp_path / "model")
    assert (loaded.missing, loaded.graph_.missing) == ("mean", whole.graph_.missing)


def test_on_the_command_line(tmp_path):
    np.save(tmp_path / "X.npy", points_of("cosine"))
    for words, expected in [([], "mean"), (["--missing", "0.25"], 0.25), (["--missing", "ignore"], "ignore")]:
        out, _ = run("fit", tmp_path / "X.npy", "-k", "3", *words, "-o", tmp_path / "out", "--force", "--json")
        record = json.loads(out)
        assert record["parameters"]["missing"] == expected
        if words:
            assert record["graph"]["missing"] == expected


@pytest.mark.parametrize("missing", ["median", np.nan, np.inf, True, [0.5]])
def test_an_invalid_value_is_an_error(missing):
    X = points_of("cosine")
    with pytest.raises(ValueError, match="is neither a finite number nor 'mean', 'ignore' or None: pass one"):
        agglo.neighbor_graph(X, 3, missing=missing)
    with pytest.raises(ValueError, match="is neither a finite number"):
        SCC(missing=missing).fit(X)


def test_a_graph_keeps_its_own_value():
    graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.9, 0.5], kind="similarity")
    with pytest.raises(ValueError, match=r"missing=0.5, but the graph has a value of its own, 0.0: leave it out"):
        SCC(metric="precomputed", missing=0.5).fit(graph)


def test_duplicates_of_one_point_and_a_single_point():
    assert agglo.neighbor_graph(np.ones((4, 2)), 2, missing="mean").missing == 1
    assert SCC().fit(np.ones((3, 2))).labels_.tolist() == [0, 0, 0]
    assert agglo.neighbor_graph(np.ones((4, 2)), 2, "euclidean", missing="mean").missing == 0
