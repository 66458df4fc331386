import numpy as np
import pytest
from forests import chain, partitions, trees
from hypothesis import given
from hypothesis import strategies as st

import agglo
from agglo import Hierarchy
from agglo.testing import random_forest
from agglo.tree.hierarchy import Rounds

# A node of three points, one of two, and a root over both and a sixth point.
TREE = Hierarchy(
    parent=[6, 6, 6, 7, 7, 8, 8, 8, -1],
    height=[0, 0, 0, 0, 0, 0, 1, 1, 2],
    size=[1, 1, 1, 1, 1, 1, 3, 2, 6],
    round=[0, 0, 0, 0, 0, 0, 1, 1, 2],
    rounds=Rounds([1, 2], [6, 3], [3, 1], [0, 0]),
)
POINTS = [[0.0], [1.0], [2.0], [10.0], [10.5], [20.0]]


@st.composite
def trees_with_points(draw, max_points=9):
    """Draw small trees with points that often coincide, of all types that are not copied."""
    tree = draw(trees(max_points=max_points))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (tree.n_leaves, draw(st.integers(1, 3)))
    X = draw(st.sampled_from([rng.integers(0, 3, shape), rng.normal(size=shape), rng.normal(1e3, 1, shape)]))
    return tree, X.astype(draw(st.sampled_from([np.float16, np.float32, np.float64])))


def plain_cost(points, centers):
    """Compute the cost of points as one cluster by the definition."""
    points = points.astype(np.float64)
    if centers == "means":
        return ((points - points.mean(axis=0)) ** 2).sum()
    return min(((points - center) ** 2).sum() for center in points)


def all_partitions(tree, X, centers):
    """Return the number of clusters and the sum of squared distances of every partition of the tree."""
    cost = [plain_cost(X[tree.leaves(node)], centers) for node in range(tree.n_nodes)]
    found = partitions(tree)
    return np.array([len(nodes) for nodes in found]), np.array([sum(cost[v] for v in nodes) for nodes in found])


def within(tree, X, labels, centers):
    return sum(plain_cost(X[labels == cluster], centers) for cluster in range(labels.max() + 1))


@given(trees_with_points(), st.sampled_from(["means", "points"]), st.floats(0, 20))
def test_the_path_is_the_least_cost_of_all_partitions(given_, centers, lam):
    tree, X = given_
    path = agglo.dp_means_path(tree, X, centers=centers)
    number, cost = all_partitions(tree, X, centers)
    close = 1e-9 * (1 + cost.max())
    middles = (path.lambdas[1:] + path.lambdas[:-1]) / 2
    for value in (0.0, lam, 1e4, *path.lambdas, *middles):
        least = (cost + value * number).min()
        assert path.cost(value) == pytest.approx(least, abs=close + 1e-12 * value)
        labels = path.cut(value)
        k = labels.max() + 1
        assert within(tree, X, labels, centers) + value * k == pytest.approx(least, abs=close + 1e-12 * value)
        assert len(tree.nodes(labels)) == k == path.n_clusters[np.searchsorted(path.lambdas, value, "right") - 1]
        # Of equals, the fewest clusters; next to a breakpoint rounding may decide.
        fewest = number[cost + value * number <= least + close].min()
        assert k == fewest or np.abs(path.lambdas - value).min() < 1e-6 * (1 + value)


@given(trees_with_points(), st.sampled_from(["means", "points"]))
def test_every_number_of_clusters_is_met_at_least_cost(given_, centers):
    tree, X = given_
    path = agglo.dp_means_path(tree, X, centers=centers)
    number, cost = all_partitions(tree, X, centers)
    possible = np.unique(number)
    for k in range(1, tree.n_leaves + 1):
        if k in possible:
            labels = path.cut_exactly(k)
            assert labels.max() + 1 == k
            assert len(tree.nodes(labels)) == k
            least = cost[number == k].min()
            assert within(tree, X, labels, centers) == pytest.approx(least, abs=1e-9 * (1 + cost.max()))
        else:
            below, above = possible[possible < k].max(), possible[possible > k].min()
            with pytest.raises(
                ValueError, match=f"n_clusters={k} is impossible.*the nearest are {below} and {above}"
            ):
                path.cut_exactly(k)


@given(trees(), st.integers(0, 2**32 - 1), st.sampled_from(["means", "points"]))
def test_the_path_is_concave_and_never_above_a_round(tree, seed, centers):
    X = np.random.default_rng(seed).normal(size=(tree.n_leaves, 2))
    path = agglo.dp_means_path(tree, X, centers=centers)
    assert path.lambdas[0] == 0
    assert (np.diff(path.lambdas) > 0).all()
    assert (np.diff(path.n_clusters) < 0).all()  # the slopes: concave
    assert (np.diff(path.within) > 0).all()
    assert path.n_clusters[-1] == 1
    ends = path.within[:-1] + path.lambdas[1:] * path.n_clusters[:-1]
    np.testing.assert_allclose(ends, path.costs[1:], rtol=1e-12)  # pieces meet
    for lam in (0.0, *path.lambdas, 0.5, 3.0, 1e6):
        costs = path.round_costs(lam)
        for round_, cost in enumerate(costs):
            labels = tree.labels(round=round_)
            plain = within(tree, X, labels, centers) + lam * (labels.max() + 1)
            assert cost == pytest.approx(plain, rel=1e-9, abs=1e-9)
        best = path.best_round(lam)
        assert costs[best] == costs.min()
        assert not (costs[best + 1 :] <= costs[best]).any()
        assert path.cost(lam) <= costs[best] * (1 + 1e-12) + 1e-12


@given(trees_with_points(max_points=30), st.sampled_from(["means", "points"]))
def test_node_costs_follow_from_their_points(given_, centers):
    tree, X = given_
    path = agglo.dp_means_path(tree, X, centers=centers)
    for node in range(tree.n_nodes):
        leaves = tree.leaves(node)
        expected = plain_cost(X[leaves], centers)
        assert path.node_cost[node] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        if centers == "points":
            center = path.node_center[node]
            assert center in leaves
            served = ((X[leaves].astype(float) - X[center].astype(float)) ** 2).sum()
            assert served == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if centers == "means":
        assert path.node_center is None


def big_tree(n, seed=0):
    forest = random_forest(np.random.default_rng(seed), n, shrink=0.8)
    return Hierarchy.from_forest(forest, kind="distance", missing="ignore")


@pytest.mark.parametrize("centers", ["means", "points"])
def test_the_number_of_threads_does_not_change_the_result(centers):
    tree = big_tree(60_000)  # large enough for several tasks
    X = np.random.default_rng(1).normal(size=(60_000, 5)).astype(np.float32)
    one, two, eight = (agglo.dp_means_path(tree, X, centers=centers, n_jobs=n) for n in (1, 2, 8))
    for path in (two, eight):
        for name in ("lambdas", "within", "n_clusters", "node_cost", "critical"):
            np.testing.assert_array_equal(getattr(path, name), getattr(one, name))
        if centers == "points":
            np.testing.assert_array_equal(path.node_center, one.node_center)
    X64 = X.astype(np.float64)
    for node in np.flatnonzero(tree.size > 3000):
        points = X64[tree.leaves(node)]
        mean = points.mean(axis=0)
        squares = ((points - mean) ** 2).sum(axis=1)
        expected = squares.sum() + (len(points) * squares.min() if centers == "points" else 0)
        assert one.node_cost[node] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_types_and_files_make_no_difference(dtype, tmp_path):
    X = np.random.default_rng(3).normal(size=(300, 7)).astype(dtype)
    tree = big_tree(300)
    expected = agglo.dp_means_path(tree, X.astype(np.float64))
    np.save(tmp_path / "points.npy", X)
    for points in (X, np.asfortranarray(X), X.tolist(), np.load(tmp_path / "points.npy", mmap_mode="r")):
        path = agglo.dp_means_path(tree, points)
        np.testing.assert_array_equal(path.node_cost, expected.node_cost)
        np.testing.assert_array_equal(path.lambdas, expected.lambdas)


def test_points_far_from_the_origin_keep_their_digits():
    X = np.random.default_rng(4).normal(size=(500, 3))
    tree = big_tree(500)
    near, far = agglo.dp_means_path(tree, X), agglo.dp_means_path(tree, X + 1e7)
    np.testing.assert_allclose(far.node_cost, near.node_cost, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("centers", ["means", "points"])
def test_deep_trees_take_no_recursion(centers):
    n = 100_000
    X = np.random.default_rng(5).normal(size=(n, 2)).astype(np.float32)
    tree = chain(n)
    path = agglo.dp_means_path(tree, X, centers=centers)
    assert path.cut(np.inf).max() == 0
    for k in (1, 2, 777, n - 1, n):
        assert len(tree.nodes(path.cut_exactly(k))) == k
    for lam in (0.1, 2.0, 50.0):
        assert path.cost(lam) <= path.round_costs(lam).min()


def test_known_numbers():
    path = agglo.dp_means_path(TREE, POINTS)
    assert path.lambdas.tolist() == [0, 0.125, 1, 148.875]
    assert path.n_clusters.tolist() == [6, 5, 3, 1]
    assert path.cost(0.5) == 0.125 + 5 * 0.5
    assert path.cut(0.5).tolist() == [0, 1, 2, 3, 3, 4]
    assert path.cut(1).tolist() == [0, 0, 0, 1, 1, 2]  # at a breakpoint, the fewer clusters
    assert path.best_round(0.5) == 0  # 6 singles cost 3, the first round 3.625
    assert repr(path) == "DPMeansPath(6 leaves, 6 to 1 clusters, breakpoints 0, 0.125, 1, 148.9)"
    points = agglo.dp_means_path(TREE, POINTS, centers="points")
    assert points.node_center.tolist() == [0, 1, 2, 3, 4, 5, 1, 3, 3]
    assert points.node_cost[-3:].tolist() == [2, 0.25, 345.25]


def test_lam_of_zero_and_infinity():
    path = agglo.dp_means_path(TREE, POINTS)
    assert path.cost(0) == 0
    assert path.cut(0).tolist() == [0, 1, 2, 3, 4, 5]
    assert path.cost(np.inf) == np.inf
    assert path.cut(np.inf).tolist() == [0] * 6
    assert path.best_round(0) == 0
    assert path.best_round(np.inf) == 2
    assert path.cost([]).tolist() == []
    assert path.cost([[0.5], [1]]).tolist() == [[2.625], [5.125]]


def test_duplicates_merge_at_lam_zero():
    path = agglo.dp_means_path(TREE, [[5.0], [5.0], [5.0], [1.0], [2.0], [3.0]])
    assert path.cut(0).tolist() == [0, 0, 0, 1, 2, 3]
    assert path.lambdas[0] == 0
    assert path.n_clusters[0] == 4
    assert path.cut_exactly(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert path.cut_exactly(5).tolist() == [0, 1, 2, 3, 3, 4]
    assert agglo.dp_means_path(TREE, np.ones((6, 2))).cut(0).tolist() == [0] * 6


def test_numbers_between_tied_merges_select_some_of_them():
    n = 50_000  # pairs of duplicates below one root
    step = np.arange(n // 2)
    tree = Hierarchy(
        parent=np.concatenate([np.repeat(n + step, 2), np.full(n // 2, n + n // 2), [-1]]),
        height=np.concatenate([np.zeros(n + n // 2), [1.0]]),
        size=np.concatenate([np.ones(n, int), np.full(n // 2, 2), [n]]),
        round=np.concatenate([np.zeros(n, int), np.ones(n // 2, int), [2]]),
        rounds=Rounds([0, 1], [n, n // 2], [n // 2, 1], [0, 0]),
    )
    path = agglo.dp_means_path(tree, np.repeat(step, 2).reshape(-1, 1))
    labels = path.cut_exactly(30_000)
    assert labels.max() + 1 == len(tree.nodes(labels)) == 30_000


def test_one_point_is_one_cluster():
    alone = Hierarchy([-1], [0.0], [1], [0], Rounds([], [], [], []))
    path = agglo.dp_means_path(alone, [[3.0, 4.0]])
    assert path.lambdas.tolist() == [0]
    assert path.cost(2.5) == 2.5
    assert path.cut(0).tolist() == path.cut_exactly(1).tolist() == [0]


@pytest.mark.parametrize("lam", [-1, -0.5, np.nan])
def test_negative_lam_and_nan_are_errors(lam):
    path = agglo.dp_means_path(TREE, POINTS)
    for method in (path.cost, path.cut, path.best_round, path.round_costs):
        with pytest.raises(ValueError, match=f"lam={lam:g} is not allowed: pass 0 or more"):
            method(lam)
    with pytest.raises(ValueError, match=f"lam={lam:g} is not allowed"):
        path.cost([1.0, lam])


def test_wrong_input_is_an_error():
    path = agglo.dp_means_path(TREE, POINTS)
    with pytest.raises(TypeError, match="lam='low' is not a number: pass 0 or more"):
        path.cut("low")
    with pytest.raises(TypeError, match=r"lam must be one number, got an array of shape \(2,\)"):
        path.cut([1.0, 2.0])
    for k in (0, -1, 7):
        with pytest.raises(ValueError, match=f"n_clusters={k} is impossible: the tree has 6 leaves.*from 1 to 6"):
            path.cut_exactly(k)
    with pytest.raises(TypeError, match=r"n_clusters=2\.0 is not a number of clusters: pass an integer"):
        path.cut_exactly(2.0)
    with pytest.raises(ValueError, match=r"n_clusters=2 is impossible.*the nearest are 1 and 3"):
        path.cut_exactly(2)
    with pytest.raises(
        ValueError, match="X has 5 rows, but the tree has 6 leaves: pass the points that it was built"
    ):
        agglo.dp_means_path(TREE, POINTS[:5])
    with pytest.raises(ValueError, match=r"X\[2, 0\] is nan, but points must be finite"):
        agglo.dp_means_path(TREE, np.array([[0], [1], [np.nan], [3], [4], [5]], np.float16))
    with pytest.raises(ValueError, match="centers='medians' is unknown: pass 'means' or 'points'"):
        agglo.dp_means_path(TREE, POINTS, centers="medians")
    with pytest.raises(TypeError, match="expected a Hierarchy, got ndarray"):
        agglo.dp_means_path(np.zeros(3), POINTS)
