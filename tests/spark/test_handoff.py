import numpy as np
from graphs import graphs, thresholds_for
from hypothesis import given, settings
from hypothesis import strategies as st

import agglo
from agglo.neighbors.graph import fixed_point_for
from agglo.rounds.reference_linkage import GraphLinkage
from agglo.rounds.reference_tree import build_forest
from agglo.rounds.schedule import scc_plan
from agglo.spark.handoff import ContractedGraph, run_remaining_rounds


def contracted(graph, labels, linkage):
    """Contract a graph by the definition; labels are in order of first appearance."""
    rows = labels[np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))]
    columns = labels[graph.indices]
    once = rows < columns
    pairs, which = np.unique(np.column_stack([rows[once], columns[once]]), axis=0, return_inverse=True)
    # A row of the matrix lists an edge from either end, but only one end is in the smaller cluster.
    rule = GraphLinkage(graph, linkage)
    order = np.argsort(which.ravel(), kind="stable")
    edges = rule.of_edges(rows[once][order], columns[once][order], graph.weights[once][order])
    merged = rule.merged_edges(edges, np.searchsorted(which.ravel()[order], np.arange(len(pairs))))
    return ContractedGraph(np.bincount(labels), pairs[:, 0], pairs[:, 1], merged)


@settings(max_examples=200)
@given(
    st.data(),
    graphs(),
    st.sampled_from(["average", "single", "complete"]),
    st.sampled_from(["every-round", "until-stable"]),
)
def test_the_rest_of_a_run_is_what_it_would_have_been(data, graph, linkage, advance):
    thresholds = data.draw(thresholds_for(graph))
    done = data.draw(st.integers(0, len(thresholds) - 1))
    plan = scc_plan(graph, thresholds, 0, linkage, advance)
    whole = build_forest(graph.n_points, agglo.reference.scc_partitions(graph, plan))
    tree = agglo.Hierarchy.from_forest(whole, kind=graph.kind, missing=graph.missing)
    before = int(np.isin(whole.threshold, thresholds[:done]).sum())
    labels = tree.labels(round=before)
    for n_jobs in (1, 2):
        about = {"kind": graph.kind, "missing": graph.missing, "n_jobs": n_jobs}
        forest = run_remaining_rounds(
            contracted(graph, labels, linkage), plan, thresholds[done:], fixed_point_for(graph), **about
        )
        for name in ("threshold", "before", "after"):
            assert getattr(forest, name).tolist() == getattr(whole, name)[before:].tolist()
        assert forest.value[forest.round > 0].tolist() == whole.value[whole.round > before].tolist()
        coarse = agglo.Hierarchy.from_forest(forest, kind=graph.kind, missing=graph.missing)
        for round in range(1, len(forest.threshold) + 1):
            assert coarse.labels(round=round)[labels].tolist() == tree.labels(round=before + round).tolist()


def test_clusters_may_be_of_more_points_than_a_core_can_number():
    graph = agglo.NeighborGraph.from_edges([0, 1], [1, 2], [0.5, 0.25], kind="similarity")
    plan = scc_plan(graph, [0.4, 0.1], 0, "single", "every-round")
    rows, columns = np.array([0, 1]), np.array([1, 2])
    edges = GraphLinkage(graph, "single").of_edges(rows, columns, np.array([0.5, 0.25], np.float32))
    start = ContractedGraph(np.array([2**40, 3, 2**40]), rows, columns, edges)
    forest = run_remaining_rounds(start, plan, [0.4, 0.1], fixed_point_for(graph), kind="similarity", missing=0.0)
    assert forest.parent.tolist() == [3, 3, 4, 4, -1]
