"""The linkages that the page on linkages of one's own builds are what it says they are."""

from dataclasses import replace

import numpy as np
import pytest
from snippets import ROOT, run

import agglo
from agglo.testing import assert_same_hierarchy


@pytest.fixture(scope="module")
def page():
    return run((ROOT / "docs/guide/own_linkage.md").read_text(encoding="utf-8"), "own_linkage.md")


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))[rng.integers(0, 30, 300)] + 0.4 * rng.normal(size=(300, 6))
    return agglo.neighbor_graph(X, n_neighbors=10)


def linkages(page, graph):
    year = np.random.default_rng(1).integers(1930, 2010, graph.n_points)
    return [page["Exponential"](8.0), page["Median"](graph), page["Learned"](page["model"], year)]


@pytest.mark.parametrize("which", range(3), ids=["exponential", "median", "learned"])
def test_engines_agree_and_reducible_is_true(page, graph, which):
    linkage = linkages(page, graph)[which]
    tree = agglo.scc(graph, linkage=linkage)
    assert_same_hierarchy(tree, agglo.reference.scc(graph, linkage=linkage))
    linkage.reducible = False
    assert_same_hierarchy(tree, agglo.scc(graph, linkage=linkage))
    linkage.reducible = True
    assert_same_hierarchy(agglo.hac(graph, linkage=linkage), agglo.reference.hac(graph, linkage=linkage))


def test_exponential_linkage_goes_from_average_to_single(page, graph):
    graph = replace(graph, missing=None)  # the exponential of a pair without an edge is that of similarity 0
    for alpha, name in [(0.0, "average"), (1000.0, "single")]:
        own, named = (agglo.hac(graph, linkage=linkage) for linkage in (page["Exponential"](alpha), name))
        np.testing.assert_allclose(np.sort(own.height), np.sort(named.height), atol=5e-3)
        known = named.cut(n_clusters=40)
        assert agglo.metrics.pairwise_f1(known, own.cut(n_clusters=40)).f1 > 0.97


def test_the_median_is_that_of_the_edges(page, graph):
    linkage = page["Median"](graph, bins=1000)
    weights = graph.weights[:25].reshape(5, 5)
    edges = linkage.of_edges(None, None, weights.ravel())
    merged = linkage.merged_edges(edges, np.arange(0, 25, 5))
    np.testing.assert_allclose(linkage.value(None, None, merged), np.median(weights, axis=1), atol=5e-3)


def test_clusterers_take_a_linkage(page):
    X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    assert agglo.SCC(2, linkage=page["Exponential"](3.0)).fit_predict(X).tolist() == [1, 1, 0, 0]
