from typing import NamedTuple

import numpy as np
import pytest
from graphs import graphs, thresholds_for
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import agglo
from agglo import NeighborGraph
from agglo.rounds import reference_constraints
from agglo.rounds.linkage import edge_linkages
from agglo.rounds.reference_linkage import GraphLinkage
from agglo.testing import assert_same_hierarchy, check_hierarchy


class Sizes(NamedTuple):
    size: np.ndarray


class Closest(NamedTuple):
    weight: np.ndarray


class SmallFirst:
    """Distance of the closest pair times the size of the union: no graph alone tells it."""

    kind, reducible = "distance", False

    def __init__(self, farthest):
        self.farthest = farthest

    def of_points(self, weights):
        return Sizes(weights)

    def of_edges(self, sources, targets, weights):
        assert (sources < targets).all()
        return Closest(weights.astype(float))

    def merged_clusters(self, clusters, first):
        return Sizes(np.add.reduceat(clusters.size, first))

    def merged_edges(self, edges, first):
        return Closest(np.minimum.reduceat(edges.weight, first))

    def value(self, a, b, edges):
        return edges.weight * (a.size + b.size)


@settings(max_examples=50)
@given(st.data(), graphs(), st.sampled_from(["average", "single", "complete"]))
def test_a_named_linkage_is_one_of_the_protocol(data, graph, linkage):
    assert isinstance(GraphLinkage(graph, linkage), agglo.Linkage)
    thresholds = data.draw(thresholds_for(graph))
    expected = agglo.scc(graph, thresholds=thresholds, linkage=linkage)
    tree = agglo.scc(graph, thresholds=thresholds, linkage=GraphLinkage(graph, linkage))
    assert tree.parent[: graph.n_points].tolist() == expected.parent[: graph.n_points].tolist()
    assert tree.rounds.after.tolist() == expected.rounds.after.tolist()


@settings(max_examples=50)
@given(graphs(12, ["few", "any"]), st.sampled_from(["scc", "affinity", "hac"]))
def test_a_linkage_of_ones_own_makes_trees(graph, method):
    tree = getattr(agglo, method)(graph, linkage=SmallFirst(graph.n_points * graph.max_weight))
    check_hierarchy(tree)
    components = agglo.affinity(graph, linkage="single").labels(round=-1)
    assert tree.labels(round=-1).tolist() == components.tolist()
    assert (tree.about["kind"], tree.about["linkage"]) == ("distance", "SmallFirst")
    assert_same_hierarchy(
        tree, getattr(agglo.reference, method)(graph, linkage=SmallFirst(graph.n_points * graph.max_weight))
    )


@settings(max_examples=50)
@given(st.data(), graphs(12, ["few", "any"]), st.sampled_from(["average", "single", "complete"]), st.booleans())
def test_engines_agree_under_constraints(data, graph, linkage, until_stable):
    assume(graph.n_points > 1)
    apart = st.lists(st.lists(st.integers(0, graph.n_points - 1), min_size=2, max_size=3, unique=True), max_size=3)
    known = {"cannot_link": data.draw(apart), "max_cluster_size": data.draw(st.sampled_from([None, 3]))}
    thresholds = data.draw(thresholds_for(graph))
    advance = "until-stable" if until_stable else "every-round"
    trees = [
        engine(graph, thresholds=thresholds, linkage=GraphLinkage(graph, linkage), advance=advance, **known)
        for engine in (agglo.scc, reference_constraints.scc)
    ]
    assert_same_hierarchy(*trees)
    links = [[0, graph.n_points - 1]]
    assert_same_hierarchy(
        *(
            engine(graph, linkage=SmallFirst(None), must_link=links)
            for engine in (agglo.affinity, reference_constraints.affinity)
        )
    )


def test_a_reducible_linkage_is_evaluated_where_it_has_to_be():
    rng = np.random.default_rng(0)
    graph = agglo.neighbor_graph(rng.normal(size=(2000, 3)), n_neighbors=10, metric="sqeuclidean")

    class Counting(GraphLinkage):
        def __init__(self, reducible):
            super().__init__(graph, "average")
            self.reducible, self.evaluated = reducible, 0

        def value(self, a, b, edges):
            self.evaluated += len(a.weight)
            return super().value(a, b, edges)

    lazy, eager = Counting(True), Counting(False)
    assert_same_hierarchy(agglo.scc(graph, linkage=lazy), agglo.scc(graph, linkage=eager))
    assert lazy.evaluated < 0.7 * eager.evaluated


def test_a_value_that_is_no_number_is_an_error():
    class Odd(SmallFirst):
        def value(self, a, b, edges):
            return np.where(a.size > 1, np.nan, edges.weight)

    graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.5, 1.0], kind="distance")
    with pytest.raises(ValueError, match="linkage Odd has the value nan for the clusters of points 0 and 2, but"):
        agglo.hac(graph, linkage=Odd(None))


def test_progress_tells_how_far_the_rounds_are():
    graph = NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.5, 1.0, 3.0], kind="distance")
    told = []
    agglo.scc(graph, linkage=SmallFirst(40.0), progress=lambda *said: told.append(said))
    assert told == [("rounds", 1, 4), ("rounds", 2, 4), ("rounds", 3, 4)]


def test_thresholds_span_what_a_linkage_says():
    graph = NeighborGraph.from_edges([0, 1, 2], [1, 2, 3], [0.5, 1.0, 3.0], kind="distance")
    seen = edge_linkages(graph, SmallFirst(farthest=40.0))
    assert seen.values.tolist() == [1.0, 2.0, 6.0]
    assert (seen.min_weight, seen.max_weight, seen.n_edges) == (1.0, 40.0, 3)
    assert agglo.scc(graph, linkage=SmallFirst(40.0)).rounds.after[-1] == 1
    assert agglo.scc(graph, linkage=SmallFirst(None)).about["farthest_threshold"] == 6
    single = edge_linkages(NeighborGraph.from_edges([], [], [], n_points=1, kind="distance"), SmallFirst(None))
    assert (single.min_weight, single.max_weight, single.quantile_above(0, True, 0.1)) == (0, 0, None)


def test_the_arrays_of_a_linkage_stay_as_they_were():
    graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.5, 1.0], kind="distance")

    class Keeps(SmallFirst):
        ones = np.ones(3)

        def of_points(self, weights):
            return Sizes(self.ones)

    agglo.affinity(graph, linkage=Keeps(None))
    assert Keeps.ones.tolist() == [1, 1, 1]


def test_what_is_no_linkage_is_told_what_it_lacks():
    graph = NeighborGraph.from_edges([0], [1], [0.5], kind="similarity")

    class Half:
        kind = "distance"
        reducible = True

    for method in (agglo.scc, agglo.affinity, agglo.hac):
        with pytest.raises(TypeError, match=r"a Half without farthest, of_points.*agglo\.Linkage"):
            method(graph, linkage=Half())
