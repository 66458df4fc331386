import numpy as np
import pytest
from constraint_cases import LINKAGES, METHODS, check_obeyed, constraints_on, line
from graphs import graphs, thresholds_for
from hypothesis import given, settings
from hypothesis import strategies as st

import agglo
from agglo import NeighborGraph
from agglo.rounds import reference_constraints
from agglo.rounds.constraints import check_constraints
from agglo.testing import assert_same_hierarchy, check_hierarchy


@settings(max_examples=200)
@given(
    st.data(),
    graphs(),
    st.sampled_from(LINKAGES),
    st.sampled_from(METHODS),
    st.sampled_from(["every-round", "until-stable"]),
)
def test_constraints_are_obeyed_and_engines_agree(data, graph, linkage, method, advance):
    options = {"linkage": linkage}
    if method == "scc":
        options |= {"thresholds": data.draw(thresholds_for(graph)), "advance": advance}
    known = data.draw(constraints_on(graph.n_points))
    expected = getattr(reference_constraints, method)(graph, **options, **known)
    check_hierarchy(expected)
    check_obeyed(expected, **known)
    for n_jobs in (1, 2, 8):
        assert_same_hierarchy(getattr(agglo, method)(graph, **options, **known, n_jobs=n_jobs), expected)


def blobs(n=600, centres=12):
    rng = np.random.default_rng(5)
    labels = rng.integers(centres, size=n)
    points = rng.normal(size=(centres, 4))[labels] + 0.3 * rng.normal(size=(n, 4))
    return agglo.neighbor_graph(points, 10), labels, rng


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("method", METHODS)
def test_engines_agree_on_a_graph_of_some_size(linkage, method):
    graph, labels, rng = blobs()
    pairs = rng.integers(0, len(labels), (600, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    sources = [np.flatnonzero(np.arange(len(labels)) % 50 == source) for source in range(3)]
    cannot = [
        *pairs[~same].tolist(),
        *(source[np.unique(labels[source], return_index=True)[1]] for source in sources),
    ]
    known = {"must_link": pairs[same][:20], "cannot_link": cannot, "max_cluster_size": 150}
    expected = getattr(reference_constraints, method)(graph, linkage=linkage, **known)
    check_obeyed(expected, **known)
    for n_jobs in (1, 2, 8):
        assert_same_hierarchy(getattr(agglo, method)(graph, linkage=linkage, **known, n_jobs=n_jobs), expected)


# ---- what a user relies on ----


def test_a_forbidden_nearest_neighbour_does_not_block():
    graph = line(0.9, 0.8)
    tree = agglo.scc(graph, thresholds=[0.5], linkage="single", cannot_link=[(0, 1)])
    assert tree.labels(round=1).tolist() == [0, 1, 1]


def test_the_closest_pair_goes_first():
    graph = line(0.7, 0.8, 0.9, 0.75)
    tree = agglo.affinity(graph, linkage="single", max_cluster_size=3)
    # 1 joins 2, which joins 3, as does 4: of all these, 3 and 2 are the closest, then 1; 0 and 4 come too late.
    assert tree.labels(round=-1).tolist() == [0, 1, 1, 1, 2]
    assert tree.height[-2] == pytest.approx(0.2)


def test_what_must_be_linked_is_a_node_at_height_0():
    tree = agglo.hac(line(0.9, 0.2, 0.8), linkage="single", must_link=[[0, 3], [3, 2]])
    assert tree.parent.tolist() == [4, 5, 4, 4, 5, -1]
    assert tree.height.tolist() == pytest.approx([0, 0, 0, 0, 0, 0.1])
    assert tree.round.tolist() == [0, 0, 0, 0, 1, 2]
    assert np.isnan(tree.rounds.threshold[0])
    assert tree.about["must_link"] == 2
    tree = agglo.scc(line(5.0, 1.0, kind="distance"), must_link=[[0, 1]])
    assert tree.height[3] == 0
    assert tree.labels(round=1).tolist() == [0, 0, 1]


def test_links_need_no_edges():
    graph = NeighborGraph.from_edges([], [], [], n_points=3, kind="distance")
    assert agglo.scc(graph, must_link=[(0, 2)]).labels(round=-1).tolist() == [0, 1, 0]
    assert agglo.hac(graph, must_link=[(0, 1, 2)]).parent.tolist() == [3, 3, 3, -1]


def test_two_clean_sources_are_matched_one_to_one():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3))
    both = np.concatenate([points, points + 0.01 * rng.normal(size=points.shape)])
    graph = agglo.neighbor_graph(both, 8, "euclidean")
    tree = agglo.scc(graph, linkage="single", cannot_link=[range(40), range(40, 80)])
    labels = tree.labels(round=-1)
    assert (np.bincount(labels) <= 2).all()
    assert (labels[:40] == labels[40:]).mean() > 0.9


def test_no_constraints_change_nothing():
    graph, _, _ = blobs(200)
    plain = agglo.scc(graph)
    assert_same_hierarchy(agglo.scc(graph, must_link=[], cannot_link=[], max_cluster_size=200), plain)


@pytest.mark.parametrize(
    ("known", "error", "message"),
    [
        ({"must_link": [(0, 9)]}, ValueError, "must_link names point 9, but there are 5 points: .* 0 to 4"),
        ({"cannot_link": np.array([[-1, 0]])}, ValueError, "cannot_link names point -1"),
        (
            {"must_link": [(0, 1), (2, 2)]},
            ValueError,
            r"must_link has the group \[2, 2\], which names a point twice",
        ),
        ({"cannot_link": [[1, 2, 1]]}, ValueError, r"cannot_link has the group \[1, 2, 1\], which names a point"),
        ({"must_link": [[3]]}, ValueError, r"must_link has the group \[3\], a single point: pass two"),
        (
            {"must_link": [(0.5, 1)]},
            TypeError,
            "must_link has groups of dtype float64, but points are named by int",
        ),
        ({"must_link": [(True, False)]}, TypeError, "must_link has groups of dtype bool"),
        (
            {"must_link": [0, 1]},
            TypeError,
            r"must_link\[0\] is 0, but must_link has groups of points: pass a list",
        ),
        ({"cannot_link": 3}, TypeError, "cannot_link=3 is not a list of groups"),
        ({"cannot_link": "ab"}, TypeError, "cannot_link='ab' is not a list of groups"),
        (
            {"must_link": [(0, 1)], "cannot_link": [(1, 0)]},
            ValueError,
            "cannot_link separates points 0 and 1, but must_link puts both into one group of 2 points: drop",
        ),
        (
            {"must_link": [(0, 1), (1, 2)], "cannot_link": [(2, 0)]},
            ValueError,
            "cannot_link separates points 0 and 2, but must_link puts both into one group of 3 points",
        ),
        (
            {"must_link": [(0, 1), (1, 4)], "cannot_link": [range(5)]},
            ValueError,
            "cannot_link separates points 0 and 1",
        ),
        (
            {"must_link": [(0, 1, 2)], "max_cluster_size": 2},
            ValueError,
            r"must_link puts 3 points with a total weight of 3 into one group \(point 0 .*_size=2: increase",
        ),
        ({"max_cluster_size": 0}, ValueError, "max_cluster_size=0 is not a size: pass a positive number, or None"),
        ({"max_cluster_size": float("nan")}, ValueError, "max_cluster_size=nan is not a size"),
        ({"max_cluster_size": 0.5}, ValueError, "max_cluster_size=0.5 is less than a point"),
        ({"max_cluster_size": "2"}, TypeError, "max_cluster_size='2' is not a size: pass a number"),
        ({"max_cluster_size": True}, TypeError, "max_cluster_size=True is not a size"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_met_is_an_error(known, error, message, method):
    with pytest.raises(error, match=message):
        getattr(agglo, method)(line(0.9, 0.8, 0.7, 0.6), **known)


def test_groups_are_kept_as_pairs_while_that_is_short():
    made = check_constraints(20, cannot_link=[(0, 1, 2), range(10)])
    assert len(made.cannot) == 3
    assert len(made.groups) == 10
    assert len(made.cannot_pairs()) == 3 + 45
