"""The contract of all baselines: valid trees, labels, reproducibility, scikit-learn's conventions."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.cluster
from estimator_checks import parametrize_checks, run_check
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist

from agglo import HAC
from agglo.evaluation.metrics import dendrogram_purity
from agglo.paper.baselines import HDBSCAN, METHODS, Birch, DenseHAC
from agglo.paper.baselines.base import hierarchy_from_parents
from agglo.testing import assert_same_hierarchy, check_hierarchy

TREES = {name: method for name, method in METHODS.items() if method.hierarchical}

each = pytest.mark.parametrize("name", METHODS)
each_tree = pytest.mark.parametrize("name", TREES)


FAST = {"ghhc": {"max_iter": 10}}


def make_estimator(name, **parameters):
    """Make the estimator of a name, with a fixed random state."""
    method = METHODS[name]
    return method.estimator(**({"random_state": 0} if method.random else {}), **FAST.get(name, {}) | parameters)


def blobs(n=300, k=6, d=5, apart=8.0, seed=0):
    """Draw Gaussian blobs in random order; return the points and their blobs."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return apart * rng.standard_normal((k, d))[y] + rng.standard_normal((n, d)), y


@parametrize_checks([make_estimator(name) for name in TREES])
def test_scikit_learns_own_checks(estimator, check, request):
    run_check(estimator, check, request)


points_with_ties = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.integers(-3, 3), fill=st.nothing()
)


@each_tree
@settings(max_examples=25)
@given(X=points_with_ties)
def test_any_points_make_a_tree(name, X):
    fitted = make_estimator(name).fit(X)
    check_hierarchy(fitted.tree_)
    assert fitted.tree_.n_leaves == len(X)
    assert fitted.labels_.shape == (len(X),)
    assert_same_hierarchy(fitted.tree_, make_estimator(name).fit(X).tree_)


@each_tree
@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_duplicates_of_one_point_give_a_tree(name, n):
    fitted = make_estimator(name).fit(np.full((n, 2), 3.25))
    check_hierarchy(fitted.tree_)
    assert fitted.tree_.n_leaves == n


@pytest.mark.parametrize("name", [name for name in METHODS if "dpmeans" not in name])
def test_blobs_are_recovered(name):
    X, y = blobs()
    method = METHODS[name]
    fitted = make_estimator(name, n_clusters=6, **({"metric": "sqeuclidean"} if method.metric else {})).fit(X)
    together = (fitted.labels_[:, None] == fitted.labels_) == (y[:, None] == y)
    assert together.mean() > 0.9
    if method.hierarchical:
        assert dendrogram_purity(fitted.tree_, y) > 0.8


@each
def test_the_registry_matches_the_estimators(name):
    method = METHODS[name]
    parameters = method.estimator().get_params()
    assert ("random_state" in parameters) == method.random
    assert ("metric" in parameters) == method.metric
    assert hasattr(method.estimator().fit(blobs(60)[0]), "tree_") == method.hierarchical


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 12),
    n_inner=st.integers(0, 15),
)
def test_any_tree_is_assembled_with_all_its_clusters(seed, n, n_inner):
    """Nodes in any order, with none, one or many children: the clusters of two points or more are the same."""
    rng = np.random.default_rng(seed)
    total = n + n_inner + 1
    parent = np.array([rng.integers(max(n, i + 1), total) for i in range(total - 1)] + [-1])
    below = [{i} if i < n else set() for i in range(total)]
    for i, over in enumerate(parent[:-1]):
        below[over] |= below[i]
    tree = hierarchy_from_parents(parent, n, rng.integers(-2, 5, total), {})
    check_hierarchy(tree)
    mine = {frozenset(tree.leaves(node).tolist()) for node in range(tree.n_nodes)}
    assert mine == {frozenset(cluster) for cluster in below if cluster}


@pytest.mark.parametrize("linkage", ["average", "single", "complete"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "sqeuclidean"])
def test_dense_hac_is_that_of_the_complete_graph(linkage, metric):
    X = blobs(80)[0]
    dense = DenseHAC(linkage=linkage, metric=metric).fit(X).tree_
    ours = HAC(linkage=linkage, metric=metric, n_neighbors="all").fit(X).tree_
    np.testing.assert_allclose(dense.height, ours.height, rtol=1e-4, atol=1e-5)
    for k in range(2, 20):
        np.testing.assert_array_equal(dense.cut(n_clusters=k), ours.cut(n_clusters=k))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"linkage": "ward"}, "linkage='ward' is not defined for metric='cosine': pass metric='euclidean'"),
        ({"linkage": "mean"}, "linkage='mean' is unknown: pass one of 'average', "),
        ({"metric": "dot"}, "metric='dot' is unknown: pass one of 'cosine', 'euclidean', 'sqeuclidean'"),
        ({"n_clusters": 7}, "n_clusters=7"),
    ],
)
def test_dense_hac_refuses(parameters, message):
    with pytest.raises(ValueError, match=message):
        DenseHAC(**parameters).fit(np.eye(3))


@pytest.mark.parametrize("min_samples", [1, 3, 10])
def test_heights_of_hdbscan_are_bottlenecks_of_mutual_reachability(min_samples):
    X = blobs(60, d=2, apart=2.0)[0]
    tree = HDBSCAN(min_samples=min_samples).fit(X).tree_
    distance = cdist(X, X)
    core = np.sort(distance, axis=1)[:, min_samples - 1]
    reach = np.maximum(distance, np.maximum(core[:, None], core))
    for middle in range(len(X)):  # Floyd and Warshall's, for paths whose longest edge is shortest
        reach = np.minimum(reach, np.maximum(reach[:, [middle]], reach[middle]))
    met = np.full((len(X), len(X)), np.inf)
    for node in range(len(X), tree.n_nodes):
        inside = np.ix_(tree.leaves(node), tree.leaves(node))
        met[inside] = np.minimum(met[inside], tree.height[node])
    off = ~np.eye(len(X), dtype=bool)
    np.testing.assert_allclose(met[off], reach[off], rtol=1e-9)


def test_hdbscan_selects_what_scikit_learn_selects():
    X = blobs(200, apart=3.0)[0]
    expected = sklearn.cluster.HDBSCAN(min_cluster_size=10, copy=True).fit(X).labels_
    np.testing.assert_array_equal(HDBSCAN(min_cluster_size=10).fit(X).labels_, expected)
    assert (expected == -1).any()


def test_subclusters_of_birch_are_those_of_scikit_learn():
    X = blobs(200, apart=3.0)[0]
    ours = Birch(threshold=1.0, branching_factor=5).fit(X)
    theirs = sklearn.cluster.Birch(threshold=1.0, branching_factor=5, n_clusters=None).fit(X).labels_
    assert ((ours.labels_[:, None] == ours.labels_) == (theirs[:, None] == theirs)).all()
    for cluster in np.unique(theirs):
        points = np.flatnonzero(theirs == cluster)
        assert any(np.array_equal(ours.tree_.leaves(node), points) for node in range(ours.tree_.n_nodes))
