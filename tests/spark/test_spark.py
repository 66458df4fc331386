import os
import shutil

import numpy as np
import pyarrow as pa
import pytest
from graphs import graphs, thresholds_for
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import agglo
from agglo.neighbors.graph import FixedPoint, fixed_point_for
from agglo.rounds.schedule import affinity_plan, scc_plan
from agglo.spark.handoff import plan_handoff, warn_many_rounds
from agglo.spark.linkage import SqlLinkage
from agglo.spark.round import contract, find_hubs
from agglo.spark.session import java_home
from agglo.testing import assert_same_hierarchy

pytestmark = pytest.mark.spark

# Each example takes seconds; more of them can be asked for.
EXAMPLES = int(os.environ.get("AGGLO_SPARK_EXAMPLES", "3"))


def edge_table(spark, graph, names=None):
    """Return the edges of a graph as a table, each in one direction, with indices or names as ids."""
    rows = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr))
    once = rows < graph.indices
    ends = rows[once], graph.indices[once].astype(np.int64)
    if names is not None:
        ends = [pa.array([names[i] for i in end]) for end in ends]
    return spark.createDataFrame(pa.table({"src": ends[0], "dst": ends[1], "weight": graph.weights[once]}))


def table(spark, *rows):
    """Return a table of edges from rows of (src, dst, weight)."""
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], []]
    types = [pa.string() if columns[0] and isinstance(columns[0][0], str) else pa.int64()] * 2 + [pa.float64()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return spark.createDataFrame(pa.table(dict(zip(("src", "dst", "weight"), arrays, strict=True))))


def nothing_is_cached(spark):
    """Return whether no table is cached."""
    return not spark.sparkContext._jsc.getPersistentRDDs().size()


# ---- the same tree as everywhere ----


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=set(Phase) - {Phase.shrink},  # which would take minutes
)
@given(
    st.data(),
    graphs(60),
    st.sampled_from(["average", "single", "complete"]),
    st.sampled_from(["every-round", "until-stable"]),
    st.sampled_from([0, 8, 40]),
)
def test_scc_is_that_of_the_core(spark, tmp_path, data, graph, linkage, advance, handoff_edges):
    thresholds = data.draw(thresholds_for(graph))[:4]
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    options = {"thresholds": thresholds, "linkage": linkage, "advance": advance}
    tree = agglo.spark.scc(
        edge_table(spark, graph),
        f"{tmp_path}/run",
        kind=graph.kind,
        missing=graph.missing,
        points=spark.range(graph.n_points),
        handoff_edges=handoff_edges,
        **options,
    )
    assert_same_hierarchy(tree.to_hierarchy(), agglo.scc(graph, **options))
    assert nothing_is_cached(spark)


@pytest.mark.parametrize(("n", "n_edges", "handoff_edges"), [(4, 6, 0), (30, 70, 30)])
def test_very_many_thresholds_cost_what_their_merges_do(spark, tmp_path, n, n_edges, handoff_edges):
    rng = np.random.default_rng(7)
    ends = rng.integers(0, n, (2, n_edges))
    graph = agglo.NeighborGraph.from_edges(*ends, rng.random(n_edges), n_points=n, kind="similarity")
    expected = agglo.scc(graph, n_thresholds=40_000)
    context = spark.sparkContext
    context.setJobGroup(str(tmp_path), "")
    options = {"kind": "similarity", "points": spark.range(n), "handoff_edges": handoff_edges}
    options["n_thresholds"] = 40_000
    tree = agglo.spark.scc(edge_table(spark, graph), f"{tmp_path}/run", **options)
    jobs = len(context.statusTracker().getJobIdsForGroup(str(tmp_path)))
    context.setLocalProperty("spark.jobGroup.id", None)
    assert_same_hierarchy(tree.to_hierarchy(), expected)
    steps = tree.folder.read_states()[1:]
    assert jobs <= 25 * (len(steps) + 1)
    if handoff_edges:  # the graph does not fit the core, but what takes part in some rounds does
        assert max(len(step.rounds) for step in steps if not step.done) > 2
        assert len(steps) < len(expected.rounds) / 3


def test_a_handoff_has_as_many_rounds_as_fit(spark, monkeypatch):
    rng = np.random.default_rng(2)
    value, degree, thresholds = rng.random(200), rng.integers(1, 9, 200), np.linspace(0.99, 0.01, 50)
    nearest = spark.createDataFrame(pa.table({"value": value, "degree": degree}))
    most = max(end for end in range(51) if degree[value >= thresholds[end - 1]].sum() <= 2 * 200)

    def found(linkage, missing, n_edges=200, step=3):
        linkage = SqlLinkage(linkage, "similarity", missing, FixedPoint(0, False))
        return plan_handoff(nearest, 200, linkage, thresholds, step, n_edges)

    assert found("single", 0.0) == most > 3
    assert found("average", "ignore") == most
    # Averages with pairs that have no edge come no closer only up to the value of these.
    assert found("average", 0.8) == (thresholds > 0.8).sum() < most
    assert found("complete", 0.0, n_edges=1) == 3
    monkeypatch.setattr("agglo.spark.handoff._SAMPLE", 60)
    assert 3 < found("single", 0.0) <= most


def test_many_rounds_on_spark_give_a_warning():
    few = agglo.NeighborGraph.from_edges(np.arange(201), np.arange(1, 202), np.ones(201), kind="distance")
    many = agglo.NeighborGraph.from_edges(np.arange(999), np.arange(1, 1000), np.ones(999), kind="distance")
    for graph, number, advance, room in [(few, 40, "until-stable", 3), (many, 200, "every-round", 0)]:
        warn_many_rounds(scc_plan(graph, "linear", number, "single", advance), graph, room)  # says nothing
    warn_many_rounds(affinity_plan("average"), many, 0)
    for advance, number, room, most in [("every-round", 300, 0, 300), ("until-stable", 9, 0, 999)]:
        plan = scc_plan(many, np.arange(1.0, number + 1), None, "single", advance)
        with pytest.warns(
            UserWarning, match=f"up to {most} rounds .* pass n_thresholds=200 or fewer, or handoff_edges"
        ):
            warn_many_rounds(plan, many, room)
    plan = scc_plan(many, np.arange(1.0, 301), None, "single", "every-round")
    with pytest.warns(UserWarning, match="up to 222 rounds .* or handoff_edges greater than 9, up to what"):
        warn_many_rounds(plan, many, 9)


def test_edges_of_clusters_that_stay_alone_are_dropped(spark, tmp_path):
    rows = [(0, 1, 0.95), (1, 2, 0.6), (2, 3, 0.7), (3, 10, 0.2)] + [(i, i + 1, 0.1) for i in range(10, 20)]
    tree = agglo.spark.scc(
        table(spark, *rows), f"{tmp_path}/run", kind="similarity", thresholds=[0.9, 0.5], handoff_edges=0
    )
    assert [(state.n_edges, state.n_unreachable) for state in tree.folder.read_states()[:2]] == [(14, 11), (2, 1)]
    place = {name: i for i, name in enumerate([*range(4), *range(10, 21)])}
    edges = [(place[a], place[b], weight) for a, b, weight in rows]
    graph = agglo.NeighborGraph.from_edges(*zip(*edges, strict=True), kind="similarity")
    assert_same_hierarchy(tree.to_hierarchy(), agglo.scc(graph, thresholds=[0.9, 0.5]))


@pytest.mark.parametrize("kind", ["similarity", "distance"])
def test_sums_of_128_bits_and_a_schedule_of_its_own(spark, tmp_path, kind):
    rng = np.random.default_rng(5)
    graph = agglo.NeighborGraph.from_edges(
        rng.integers(0, 20, 50),
        rng.integers(0, 20, 50),
        10.0 ** rng.uniform(-14, 14, 50),
        n_points=20,
        kind=kind,
    )
    assert fixed_point_for(graph).limbs == 2
    tree = agglo.spark.scc(
        edge_table(spark, graph),
        f"{tmp_path}/run",
        kind=kind,
        points=spark.range(20),
        n_thresholds=2,
        handoff_edges=10,
    )
    assert_same_hierarchy(tree.to_hierarchy(), agglo.scc(graph, n_thresholds=2))


def test_weights_too_far_apart_for_decimals_are_an_error_unless_the_driver_sums(spark, tmp_path):
    graph = agglo.NeighborGraph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], [1.0, 1e-43, 1e-40, 0], kind="similarity")
    edges = edge_table(spark, graph)
    with pytest.raises(
        ValueError, match=r"from 9.94922e-44 to 1 in magnitude, .* 4 such weights .* handoff_edges"
    ):
        agglo.spark.scc(edges, f"{tmp_path}/no", kind="similarity", n_thresholds=2, handoff_edges=0)
    tree = agglo.spark.scc(edges, f"{tmp_path}/run", kind="similarity", n_thresholds=2)
    assert_same_hierarchy(tree.to_hierarchy(), agglo.scc(graph, n_thresholds=2))


@pytest.mark.parametrize("handoff_edges", [14, 17])  # edges once cleaned, and rows
def test_names_loops_and_duplicate_edges(spark, tmp_path, handoff_edges):
    names = ["p" + chr(0x263A + i) if i % 3 else f"q{i:02}" for i in range(12)]
    rows = [(names[i], names[0], 0.9 - i / 20) for i in range(1, 12)]  # a hub
    rows += [(names[0], names[1], 0.1), (names[1], names[0], 0.95), ("alone", "alone", 1.0)]
    rows += [(names[i], names[i + 1], 0.93) for i in (2, 5, 8)]
    assert len(rows) == 17
    tree = agglo.spark.scc(
        table(spark, *rows),
        f"{tmp_path}/run",
        kind="similarity",
        thresholds=[0.92, 0.4],
        handoff_edges=handoff_edges,
    )
    assert tree.graph.count() == 14
    place = {name: i for i, name in enumerate(sorted([*names, "alone"]))}
    edges = [(place[a], place[b], weight) for a, b, weight in rows]
    expected = agglo.scc(
        agglo.NeighborGraph.from_edges(*zip(*edges, strict=True), kind="similarity"), thresholds=[0.92, 0.4]
    )
    assert_same_hierarchy(tree.to_hierarchy(), expected)
    for round in (0, -1):
        labels = {row.id: row.cluster for row in tree.labels(round).collect()}
        found = expected.labels(round)
        first = [sorted(place, key=place.get)[int((found == label).argmax())] for label in found]
        assert [labels[name] for name in sorted(place)] == first
    assert tree.clusters_per_round == [13, *expected.rounds.after]
    rounds, left = len(expected.rounds), expected.rounds.after[-1]
    assert repr(tree) == f"SparkHierarchy(13 points, {rounds} rounds, {left} clusters left)"
    assert nothing_is_cached(spark)


# ---- what cannot be used ----


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "there are no edges: the table is empty; pass at least one"),
        ([(1, None, 0.5), (1, 2, 0.5)], "1 of 2 edges have a dst that is null: remove them with filter"),
        ([(None, 2, 0.5)], "1 of 1 edges have a src that is null"),
        ([(1, 2, None)], "1 of 1 edges have a weight that is null"),
        (
            [(1, 2, float("nan")), (2, 3, 1e300)],
            r"2 of 2 edges have a weight that is not finite \(NaN, or too large",
        ),
    ],
)
def test_bad_edges_are_counted(spark, tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        agglo.spark.scc(table(spark, *rows), f"{tmp_path}/run", kind="similarity")


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (
            lambda e: e.withColumnRenamed("src", "a"),
            {},
            ValueError,
            "no column 'src', only a, dst, weight: rename",
        ),
        (lambda e: e.selectExpr("src", "string(dst)", "weight"), {}, TypeError, "src is long and dst is string"),
        (
            lambda e: e.selectExpr("double(src)", "dst", "weight"),
            {},
            TypeError,
            "src must be integers or str",
        ),
        (
            lambda e: e.selectExpr("src", "dst", "string(weight)"),
            {},
            TypeError,
            "weight must be numeric, got str",
        ),
        (lambda e: [(1, 2, 0.5)], {}, TypeError, "expected a Spark DataFrame with columns src, dst.*got list"),
        (lambda e: e, {"kind": "near"}, ValueError, "kind='near' is unknown"),
        (lambda e: e, {"missing": "none"}, ValueError, "missing='none' is unknown"),
        (lambda e: e, {"missing": float("inf")}, ValueError, "missing=inf must be finite"),
        (
            lambda e: e,
            {"linkage": "ward"},
            ValueError,
            "linkage='ward': not supported on Spark, which has the linkages average, single, complete and no",
        ),
        (lambda e: e, {"linkage": "median"}, ValueError, "linkage='median' is unknown: pass one of average, sin"),
        (
            lambda e: e,
            {"linkage": FixedPoint(0, False)},
            ValueError,
            "^a linkage that is a FixedPoint: not supported on Spark",
        ),
        (
            lambda e: e,
            {"must_link": [[0, 1]], "cannot_link": None, "max_cluster_size": 3, "sample_weight": [1, 2]},
            ValueError,
            r"^must_link, max_cluster_size, sample_weight: not supported on Spark.*; collect the graph, rows = "
            r"edges.toArrow\(\), and pass agglo.NeighborGraph.from_edges\(rows\['src'\].* to agglo.scc$",
        ),
        (lambda e: e, {"linkage": "centroid", "connect": "ward"}, ValueError, "^linkage='centroid', connect: no"),
        (lambda e: e, {"n_treshold": 3}, TypeError, "unknown argument 'n_treshold': see help"),
        (lambda e: e, {"handoff_edges": -1}, ValueError, "handoff_edges=-1 must be an integer of at least 0"),
    ],
)
def test_bad_calls_say_what_is_wrong(spark, tmp_path, change, options, error, message):
    edges = change(spark.range(1).selectExpr("id AS src", "id + 1 AS dst", "0.5 AS weight"))
    with pytest.raises(error, match=message):
        agglo.spark.scc(edges, f"{tmp_path}/run", **({"kind": "similarity"} | options))


# ---- Java ----


def test_java_is_found_or_the_message_says_what_to_do(monkeypatch, tmp_path):
    assert (java_home() / "bin" / "java").exists()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"needs Java 17 or newer, but none was found: install it .*JAVA_HOME"):
        java_home()
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(RuntimeError, match="JAVA_HOME is /nowhere, but it contains no bin/java"):
        java_home()


def test_contraction_does_not_depend_on_broadcast_or_hubs(spark):
    rng = np.random.default_rng(4)
    graph = agglo.NeighborGraph.from_edges(np.zeros(40, int), np.arange(1, 41), rng.random(40), kind="similarity")
    linkage = SqlLinkage("average", "similarity", 0.0, fixed_point_for(graph))
    edges = linkage.from_points(edge_table(spark, graph).toDF("lo", "hi", "weight"))
    assert find_hubs(edges, 40_000) == []
    moves = spark.createDataFrame(
        pa.table({"child": [0, 1, 2, 5, 6], "cluster": [0, 0, 0, 5, 5], "size": [3, 3, 3, 2, 2]})
    )
    found = [
        sorted(contract(edges, moves, linkage, None, few, hubs).collect())
        for few, hubs in [(True, []), (False, []), (False, [0, 5])]
    ]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 37
