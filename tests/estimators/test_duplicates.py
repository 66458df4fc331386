import numpy as np
import pytest
import scipy.sparse as sp
from constraint_cases import METHODS, check_obeyed, constraints_on
from hypothesis import given, settings
from hypothesis import strategies as st

import agglo
from agglo import HAC, SCC, Affinity, NeighborGraph
from agglo.estimators.duplicates import expand_duplicates, map_constraints, separate_constrained_points
from agglo.estimators.scc import number_clusters
from agglo.points.points import Duplicates, find_duplicates
from agglo.rounds.constraints import check_constraints
from agglo.testing import assert_same_hierarchy, check_hierarchy

CLUSTERERS = {"scc": SCC, "affinity": Affinity, "hac": HAC}
DTYPES = ["float64", "float32", "float16", "int64", "int8", "uint8", "bool"]


def groups(places):
    """Sets of points with one place each, in order of first appearance."""
    seen = {}
    return [seen.setdefault(place, len(seen)) for place in places]


def constraints_of_groups(duplicates, constraints):
    """Constraints on groups of duplicates, as parameters of agglo.scc."""
    mapped = map_constraints(duplicates, constraints)
    return {
        "must_link": mapped.must,
        "cannot_link": mapped.cannot_pairs(),
        "max_cluster_size": mapped.most if np.isfinite(mapped.most) else None,
        "sample_weight": mapped.weights,
    }


@st.composite
def repeated(draw, max_points=30):
    """Points of few different rows, zeros of both signs among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, max_points)), draw(st.integers(1, 3))
    return rng.integers(0, draw(st.integers(1, 4)), shape) * rng.choice([-1.0, 1.0], shape)


@given(repeated(), st.sampled_from(DTYPES), st.booleans())
def test_equal_points_are_found(X, dtype, sparse):
    X = X.astype(np.int64).astype(dtype) if dtype in ("uint8", "bool") else X.astype(dtype)
    duplicates = find_duplicates(sp.csr_array(X) if sparse and dtype != "float16" else X)
    expected = groups(map(tuple, X.tolist()))
    assert duplicates.inverse.tolist() == expected
    assert duplicates.first.tolist() == [expected.index(place) for place in range(max(expected) + 1)]
    assert duplicates.n_duplicates == len(X) - len(duplicates.first)


def test_a_sparse_matrix_need_not_be_tidy():
    messy = sp.csr_array(([1.0, 2.0, 2.0, 1.0, 0.0, 1.5, 0.5], [0, 1, 1, 0, 2, 1, 1], [0, 2, 5, 7]), shape=(3, 3))
    before = messy.copy()
    assert find_duplicates(messy).inverse.tolist() == [0, 0, 1]
    assert (messy.data.tolist(), messy.indices.tolist()) == (before.data.tolist(), before.indices.tolist())


@settings(max_examples=200)
@given(st.data(), repeated())
def test_what_is_known_of_a_point_is_of_it_alone(data, X):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weights = rng.integers(1, 4, len(X)).astype(float)
    known = data.draw(constraints_on(len(X), weights))
    checked = check_constraints(len(X), **known, sample_weight=weights)
    duplicates = separate_constrained_points(find_duplicates(X), checked)
    assert np.bincount(duplicates.inverse, weights).max() <= checked.most
    rows = [tuple(row) for row in X.tolist()]
    assert all(rows[duplicates.first[place]] == row for place, row in zip(duplicates.inverse, rows, strict=True))
    for group in [*(known["must_link"] or []), *(known["cannot_link"] or [])]:
        assert all((duplicates.inverse == duplicates.inverse[point]).sum() == 1 for point in group)
    check_constraints(len(duplicates.first), **constraints_of_groups(duplicates, checked))  # can be met


def copied(graph, place):
    """The graph of all points: copies have the edges of the point that they are of."""
    matrix = graph.to_scipy()[place][:, place]
    return NeighborGraph.from_scipy(matrix, kind=graph.kind, missing=graph.missing)


@settings(max_examples=100)
@given(st.data(), st.sampled_from(METHODS), st.integers(2, 12))
def test_a_folded_tree_is_that_of_copies_that_are_linked(data, method, n):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sources = rng.integers(0, n, (2, 3 * n))
    graph = NeighborGraph.from_edges(*sources, rng.integers(1, 9, 3 * n) / 8, n_points=n, kind="similarity")
    place = np.array(groups(rng.integers(0, n, 2 * n)))
    graph = NeighborGraph.from_scipy(graph.to_scipy()[: place.max() + 1, : place.max() + 1], kind="similarity")
    duplicates = Duplicates(np.unique(place, return_index=True)[1], place)
    sets = [np.flatnonzero(place == each).tolist() for each in range(place.max() + 1)]
    links = [[group[0] for group in sets if len(group) == 1][:2]]
    links = links if len(links[0]) == 2 and data.draw(st.booleans()) else []
    options = {"thresholds": [0.8, 0.5, 0.2, 0.05]} if method == "scc" else {}
    known = check_constraints(len(place), must_link=links)
    tree = expand_duplicates(
        getattr(agglo, method)(graph, **options, **constraints_of_groups(duplicates, known)), duplicates, known
    )
    check_hierarchy(tree)
    same = [group for group in sets if len(group) > 1]
    expected = getattr(agglo, method)(copied(graph, place), must_link=[*same, *links], **options)
    assert tree.parent.tolist() == expected.parent.tolist()
    assert tree.round.tolist() == expected.round.tolist()
    assert tree.rounds.after.tolist() == expected.rounds.after.tolist()
    np.testing.assert_allclose(tree.height, expected.height, rtol=0, atol=1e-12)


# ---- the clusterers ----


def half_the_same(n=400):
    rng = np.random.default_rng(2)
    X = np.repeat(rng.normal(size=(6, 5)) * 5, [n // 4, n // 4, 10, 10, 10, n // 2 - 30], axis=0)
    X[: n // 2] += rng.normal(size=(n // 2, 5))
    return X  # the points of the last four are all the same


@pytest.mark.parametrize("name", CLUSTERERS)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_copies_do_not_crowd_out_neighbours(name, metric):
    X = half_the_same()
    model = CLUSTERERS[name](metric=metric, n_neighbors=5).fit(X)
    check_hierarchy(model.tree_)
    assert model.graph_.n_points == 204
    assert model.tree_.n_leaves == len(model.labels_) == len(model.graph_index_) == 400
    assert model.tree_.about["copies"] == 196
    assert (model.tree_.height[model.tree_.parent[200:400]] == 0).all()
    assert len(set(model.tree_.labels(round=1)[230:])) == 1
    left = X[[*range(201), 210, 220, 230]]
    plain = agglo.neighbor_graph(left, 5, metric, missing="mean")
    np.testing.assert_array_equal(model.graph_.weights, plain.weights)
    alone = getattr(agglo, name)(plain, sample_weight=[1.0] * 200 + [10, 10, 10, 170], connect="auto", X=left)
    assert [len(set(model.tree_.labels(round=round))) for round in range(2, len(model.tree_.rounds) + 1)] == (
        alone.rounds.after.tolist()
    )
    assert (model.tree_.labels(round=-1)[model.graph_index_ == 203] == model.tree_.labels(round=-1)[-1]).all()


@pytest.mark.parametrize("name", CLUSTERERS)
def test_a_weight_is_as_good_as_a_copy(name):
    rng = np.random.default_rng(0)
    X, numbers = rng.normal(size=(60, 4)), rng.integers(1, 5, 60)
    weighed = CLUSTERERS[name](n_neighbors=6).fit(X, sample_weight=numbers)
    copies = CLUSTERERS[name](n_neighbors=6).fit(X.repeat(numbers, axis=0))
    first = np.concatenate([[0], np.cumsum(numbers)[:-1]])
    for round in range(len(weighed.tree_.rounds) + 1):
        assert weighed.tree_.labels(round=round).tolist() == copies.tree_.labels(round=round + 1)[first].tolist()


@pytest.mark.parametrize("X", [np.ones((5, 2)), sp.csr_array(np.ones((5, 2)))])
def test_all_points_may_be_the_same(X):
    model = SCC().fit(X)
    assert model.labels_.tolist() == [0] * 5
    assert model.tree_.parent.tolist() == [5] * 5 + [-1]
    assert model.graph_.n_points == 1


def test_constraints_are_of_points_that_may_have_copies():
    X = half_the_same()
    known = {"must_link": [[200, 210, 0]], "cannot_link": [[250, 251], [1, 2]]}
    model = SCC(max_cluster_size=40, metric="euclidean").fit(X, **known)
    check_hierarchy(model.tree_)
    check_obeyed(model.tree_, **known, max_cluster_size=40)
    assert np.bincount(model.graph_index_).max() == 40
    weights = np.full(len(X), 0.5)
    model = SCC(max_cluster_size=7, metric="euclidean").fit(X, sample_weight=weights, **known)
    check_obeyed(model.tree_, **known, max_cluster_size=7, weights=weights)


def test_the_rule_that_looks_at_the_graph_counts_rounds_of_the_tree():
    model = SCC(metric="euclidean", round="silhouette").fit(half_the_same())
    expected = number_clusters(model.tree_.labels(round=model.round_), X=half_the_same())
    assert model.labels_.tolist() == expected.tolist()
    assert len(set(model.labels_[230:])) == 1


def test_a_graph_and_a_linkage_of_ones_own_have_the_points_that_they_have():
    from agglo.rounds.reference_linkage import GraphLinkage

    X = np.repeat(np.arange(4.0)[:, None], 3, axis=0)
    graph = agglo.neighbor_graph(X, 5, "euclidean")
    assert SCC(metric="precomputed").fit(graph).tree_.n_leaves == 12
    model = SCC(metric="euclidean", n_neighbors=5, linkage=GraphLinkage(graph, "average")).fit(X)
    assert model.graph_.n_points == 12
    assert model.graph_index_.tolist() == list(range(12))


def test_constraints_of_a_fit_are_checked_before_the_search():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="must_link names point 10, but there are 10 points"):
        SCC().fit(X, must_link=[(0, 10)])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\), but there are 10 points"):
        SCC().fit(X, sample_weight=[1, 2, 3])
    with pytest.raises(ValueError, match="max_cluster_size=-1 is not a size"):
        SCC(max_cluster_size=-1).fit(X)
    graph = agglo.neighbor_graph(X, 3)
    known = {"must_link": [(0, 1)], "cannot_link": [(2, 3)]}
    model = HAC(metric="precomputed", max_cluster_size=4).fit(graph, **known)
    assert_same_hierarchy(model.tree_, agglo.hac(graph, max_cluster_size=4, **known))


# ---- new points ----


@pytest.mark.parametrize("linkage", ["average", "single", "complete"])
@pytest.mark.parametrize("name", CLUSTERERS)
def test_new_points_find_what_copies_are_in(name, linkage):
    rng = np.random.default_rng(4)
    X, numbers = rng.normal(size=(60, 3)), rng.integers(1, 5, 60)
    model = CLUSTERERS[name](8, metric="euclidean", n_neighbors=6, linkage=linkage).fit(X.repeat(numbers, axis=0))
    assert model.predict(X.repeat(numbers, axis=0)).tolist() == model.labels_.tolist()
    for round in range(0, len(model.tree_.rounds) + 1, 4):
        found = model.predict(X.repeat(numbers, axis=0), round=round)
        assert round == 0 or found.tolist() == model.tree_.labels(round=round).tolist()
    new = rng.normal(size=(50, 3))
    weighed = CLUSTERERS[name](8, metric="euclidean", n_neighbors=6, linkage=linkage).fit(X, sample_weight=numbers)
    for round in range(1, len(weighed.tree_.rounds) + 1, 4):
        first = np.concatenate([[0], np.cumsum(numbers)[:-1]])
        labels, found = model.tree_.labels(round=round + 1), model.predict(new, round=round + 1)
        expected = weighed.predict(new, round=round)
        assert labels[first].tolist() == weighed.tree_.labels(round=round).tolist()
        assert found.tolist() == expected.tolist()
    assert model.predict(new, round="silhouette").shape == (50,)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_points_that_come_later_are_folded_too(form):
    rng = np.random.default_rng(0)
    X = rng.random((80, 4))[rng.integers(0, 80, 200)]
    weights = rng.integers(1, 4, 200).astype(float)
    whole = SCC(n_neighbors=4).fit(form(X), sample_weight=weights)
    model = SCC(n_neighbors=4)
    for part in np.split(np.arange(200), [60, 61, 130, 199]):
        model.partial_fit(form(X[part]), sample_weight=weights[part])
    assert model.graph_.n_points == whole.graph_.n_points < 82
    assert model.graph_index_.tolist() == whole.graph_index_.tolist()
    assert_same_hierarchy(model.tree_, whole.tree_)
    assert model.labels_.tolist() == whole.labels_.tolist()


def test_constraints_hold_when_points_come_later():
    X = np.repeat(np.random.default_rng(1).normal(size=(20, 3)), 2, axis=0)
    known = {"must_link": [[0, 7]], "cannot_link": [[2, 3], [10, 30]]}
    model = SCC(n_neighbors=4, max_cluster_size=6).fit(X, **known)
    model.partial_fit(np.concatenate([X[:5], X[:5]]))
    check_hierarchy(model.tree_)
    check_obeyed(model.tree_, **known, max_cluster_size=6)
    model = SCC(n_neighbors=4).fit(X, **known).partial_fit(X[:5])
    check_obeyed(model.tree_, **known, max_cluster_size=None)
    assert model.graph_index_[-1] == model.graph_index_[4] == model.graph_index_[5]
