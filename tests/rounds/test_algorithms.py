import inspect
import signal
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from children import TIMEOUT, python_child
from graphs import complete_graph, graphs, thresholds_for
from hypothesis import given, settings
from hypothesis import strategies as st

import agglo
from agglo import NeighborGraph
from agglo.rounds import reference_constraints
from agglo.testing import assert_same_hierarchy, check_hierarchy

LINKAGES = ["average", "single", "complete"]


# ---- engines agree ----


@settings(max_examples=300)
@given(st.data(), graphs(), st.sampled_from(LINKAGES), st.sampled_from(["every-round", "until-stable"]))
def test_scc_is_its_reference(data, graph, linkage, advance):
    options = {"thresholds": data.draw(thresholds_for(graph)), "linkage": linkage, "advance": advance}
    expected = agglo.reference.scc(graph, **options)
    check_hierarchy(expected)
    for n_jobs in (1, 2, 8):
        assert_same_hierarchy(agglo.scc(graph, **options, n_jobs=n_jobs), expected)


@settings(max_examples=150)
@given(graphs(), st.sampled_from(LINKAGES), st.sampled_from(["affinity", "hac"]))
def test_affinity_and_hac_are_their_references(graph, linkage, method):
    expected = getattr(agglo.reference, method)(graph, linkage=linkage)
    check_hierarchy(expected)
    for n_jobs in (1, 2, 8):
        assert_same_hierarchy(getattr(agglo, method)(graph, linkage=linkage, n_jobs=n_jobs), expected)


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("decimals", [1, 7])
def test_engines_agree_on_a_graph_of_some_size(linkage, decimals):
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(40, 5))
    points = centres[rng.integers(40, size=1500)] + 0.2 * rng.normal(size=(1500, 5))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    similarity = np.round(points @ points.T, decimals)
    np.fill_diagonal(similarity, -2)
    neighbours = np.argsort(-similarity, axis=1, kind="stable")[:, :10]
    graph = NeighborGraph.from_neighbors(
        neighbours, np.take_along_axis(similarity, neighbours, 1), kind="similarity"
    )
    for advance in ("every-round", "until-stable"):
        expected = agglo.reference.scc(graph, linkage=linkage, n_thresholds=50, advance=advance)
        for n_jobs in (1, 2, 8):
            tree = agglo.scc(graph, linkage=linkage, n_thresholds=50, advance=advance, n_jobs=n_jobs)
            assert_same_hierarchy(tree, expected)
    assert_same_hierarchy(agglo.hac(graph, linkage=linkage), agglo.reference.hac(graph, linkage=linkage))


# ---- the definition, replayed on whole matrices with exact arithmetic ----


def linkage_by_definition(graph, weights, linkage, a, b):
    """The linkage of two sets of points as a fraction, larger being closer, or None without an edge."""
    sign = 1 if graph.kind == "similarity" else -1
    present = [weights[i, j] for i in a for j in b if (i, j) in weights]
    if not present:
        return None
    values = [sign * value for value in present]
    if linkage != "single" and graph.missing != "ignore":
        values += [sign * Fraction(graph.missing)] * (len(a) * len(b) - len(present))
    return {"average": lambda v: sum(v) / len(v), "single": max, "complete": min}[linkage](values)


@st.composite
def wide_graphs(draw):
    """Small graphs with weights from the whole range of float32, subnormal numbers and zeros among them."""
    n = draw(st.integers(2, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m = draw(st.integers(1, 3 * n))
    span = draw(st.sampled_from([20, 40, 60, 126, 149]))
    weights = np.ldexp(1 + rng.integers(0, 2**23, m) / 2**23, rng.integers(-span, min(span, 127) + 1, m))
    weights *= rng.choice(draw(st.sampled_from([[1.0], [1.0, -1.0], [1.0, 0.0]])), m)
    kind = draw(st.sampled_from(["similarity", "distance"]))
    missing = draw(st.sampled_from([None, "ignore"]))
    ends = rng.integers(0, n, m), rng.integers(0, n, m)
    return NeighborGraph.from_edges(*ends, weights, n_points=n, kind=kind, missing=missing)


def exact_averages(graph, sizes=None):
    """Compute rounds of Affinity with exact sums of weights: a list of partitions."""
    sizes = [1] * graph.n_points if sizes is None else sizes
    rows = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr)).tolist()
    weights = dict(zip(zip(rows, graph.indices.tolist(), strict=True), graph.weights.tolist(), strict=True))
    sign = 1 if graph.kind == "similarity" else -1

    def value(a, b):
        present = [(i, j) for i in a for j in b if (i, j) in weights]
        if not present:
            return None
        total = float(sum(Fraction(weights[i, j]) * sizes[i] * sizes[j] for i, j in present))
        count = float(sum(sizes[i] * sizes[j] for i, j in present))
        pairs = float(sum(sizes[i] for i in a) * sum(sizes[j] for j in b))
        if graph.missing == "ignore":
            return sign * total / count
        return (sign * total + sign * graph.missing * (pairs - count)) / pairs

    clusters, partitions = [[i] for i in range(graph.n_points)], []
    while True:
        up = {a[0]: a[0] for a in clusters}
        for a in clusters:
            near = [(value(a, b), -b[0]) for b in clusters if b is not a]
            near = [entry for entry in near if entry[0] is not None]
            if near:
                old, new = sorted((up[a[0]], up[-max(near)[1]]))
                up = {name: old if root == new else root for name, root in up.items()}
        if all(name == root for name, root in up.items()):
            return partitions
        roots = sorted(set(up.values()))
        clusters = [sorted(i for a in clusters if up[a[0]] == root for i in a) for root in roots]
        partitions.append(clusters)


@settings(max_examples=200)
@given(wide_graphs(), st.booleans())
def test_averages_are_exact_over_the_whole_range_of_float32(graph, weighed):
    sizes = [1 + i % 3 for i in range(graph.n_points)] if weighed else None
    expected = exact_averages(graph, sizes)
    for engine in (agglo, reference_constraints):
        tree = engine.affinity(graph, sample_weight=sizes)
        found = [tree.cut(round=i + 1) for i in range(len(tree.rounds))]
        assert [
            [np.flatnonzero(labels == c).tolist() for c in range(labels.max() + 1)] for labels in found
        ] == expected


@settings(max_examples=100)
@given(st.data(), graphs(10, ["few", "negative", "all alike"]), st.sampled_from(LINKAGES), st.booleans())
def test_every_round_is_the_definition(data, graph, linkage, until_stable):
    thresholds = data.draw(thresholds_for(graph))
    advance = "until-stable" if until_stable else "every-round"
    tree = agglo.scc(graph, thresholds=thresholds, linkage=linkage, advance=advance)
    rows = np.repeat(np.arange(graph.n_points), np.diff(graph.indptr)).tolist()
    edges = zip(rows, graph.indices.tolist(), graph.weights.tolist(), strict=True)
    weights = {(i, j): Fraction(w) for i, j, w in edges}
    sign = 1 if graph.kind == "similarity" else -1

    clusters = [[i] for i in range(graph.n_points)]
    expected, step = [], 0
    while step < len(thresholds):
        joins = []
        for a in clusters:
            values = [(linkage_by_definition(graph, weights, linkage, a, b), b) for b in clusters if b is not a]
            values = [(value, -b[0], b) for value, b in values if value is not None]
            if values:
                value, _, b = max(values, key=lambda entry: (float(entry[0]), entry[1]))
                if np.float32(value) >= np.float32(sign * thresholds[step]):
                    joins.append((a[0], b[0]))
        if joins:
            label = list(range(graph.n_points))
            for a, b in joins * len(joins):
                label[a] = label[b] = min(label[a], label[b])
            merged = {}
            for cluster in clusters:
                merged.setdefault(label[cluster[0]], []).extend(cluster)
            clusters = [sorted(cluster) for _, cluster in sorted(merged.items())]
            expected.append((thresholds[step], clusters))
        if not joins or not until_stable:
            step += 1

    assert tree.rounds.threshold.tolist() == [threshold for threshold, _ in expected]
    for index, (_, partition) in enumerate(expected, start=1):
        labels = tree.labels(round=index)
        found = [np.flatnonzero(labels == label).tolist() for label in range(labels.max() + 1)]
        assert found == partition


# ---- what a user relies on ----


@pytest.mark.parametrize("kind", ["similarity", "distance"])
@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_threshold_holds_when_reached(kind, tenths):
    graph = NeighborGraph.from_edges([0], [1], [tenths / 10], kind=kind)
    assert agglo.scc(graph, thresholds=[tenths / 10]).cut(round=-1).tolist() == [0, 0]
    farther = (tenths + 0.001) / 10 if kind == "similarity" else (tenths - 0.001) / 10
    assert agglo.scc(graph, thresholds=[farther]).cut(round=-1).tolist() == [0, 1]


def test_ties_go_to_the_smaller_index():
    graph = NeighborGraph.from_edges([1, 1, 0, 2], [0, 2, 3, 4], [0.5, 0.5, 0.9, 0.9], kind="similarity")
    tree = agglo.scc(graph, thresholds=[0.9, 0.25], linkage="single")
    assert tree.labels(round=1).tolist() == [0, 1, 2, 0, 2]
    graph = NeighborGraph.from_edges([1, 1], [0, 2], [0.5, 0.5], kind="similarity")
    assert agglo.hac(graph, linkage="single").parent.tolist() == [3, 3, 4, 4, -1]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("method", ["scc", "affinity", "hac"])
def test_few_points(n, method):
    i = np.arange(n - 1)
    graph = NeighborGraph.from_edges(i, i + 1, np.full(n - 1, 0.5), n_points=n, kind="similarity")
    tree = getattr(agglo, method)(graph)
    check_hierarchy(tree)
    assert tree.n_leaves == n
    assert tree.labels(round=-1).tolist() == [0] * n


def test_no_edges_leave_a_forest_under_one_root():
    graph = NeighborGraph.from_edges([], [], [], n_points=4, kind="distance")
    tree = agglo.scc(graph)
    assert len(tree.rounds) == 0
    assert tree.parent.tolist() == [4, 4, 4, 4, -1]


def test_what_was_done_is_on_record():
    graph = complete_graph(np.random.default_rng(0).normal(size=(10, 2)))
    about = agglo.scc(graph, thresholds="linear", n_thresholds=7).about
    assert about["method"] == "scc"
    assert about["thresholds"] == "linear"
    assert about["n_thresholds"] == 7
    assert about["nearest_threshold"] == pytest.approx(graph.weights.min())
    assert about["farthest_threshold"] == pytest.approx(graph.weights.max())
    assert (about["kind"], about["linkage"], about["metric"]) == ("distance", "average", "euclidean")


def test_heights_of_similarities_are_distances():
    graph = NeighborGraph.from_edges([0, 1], [1, 2], [0.75, 0.5], kind="similarity")
    assert agglo.hac(graph, linkage="single").height.tolist() == [0, 0, 0, 0.25, 0.5]
    graph = NeighborGraph.from_edges([0, 1], [1, 2], [30.0, 20.0], kind="similarity")
    assert agglo.hac(graph, linkage="single").height.tolist() == [0, 0, 0, 0, 10]


def test_progress_is_reported_and_may_stop_the_work():
    rng = np.random.default_rng(0)
    n = 20_000
    graph = NeighborGraph.from_edges(
        np.arange(n - 1), np.arange(1, n), rng.random(n - 1), n_points=n, kind="similarity"
    )
    seen = []
    agglo.scc(graph, progress=lambda *report: seen.append(report))
    assert seen
    assert all(phase == "rounds" and 0 <= done <= total == n for phase, done, total in seen)

    def stop(phase, done, total):
        raise KeyboardInterrupt

    for n_jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            agglo.scc(graph, progress=stop, n_jobs=n_jobs)


def test_ctrl_c_stops_the_rounds():
    program = """
        import numpy as np, agglo
        rng = np.random.default_rng(0)
        n = 100_000
        graph = agglo.NeighborGraph.from_neighbors(
            (np.arange(n)[:, None] + rng.integers(1, 1000, (n, 10))) % n, rng.random((n, 10)), kind="similarity")
        agglo.scc(graph)
        print("ready", flush=True)
        while True:
            agglo.scc(graph)
    """
    with python_child(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=TIMEOUT)
    assert "KeyboardInterrupt" in errors
    assert child.returncode != 0


def test_help_shows_the_shared_parameters():
    shown = {name: inspect.signature(getattr(agglo, name)).parameters for name in ("scc", "affinity", "hac")}
    assert list(shown["affinity"]) == list(shown["hac"])
    assert set(shown["scc"]) - set(shown["hac"]) == {"thresholds", "n_thresholds", "advance"}
    assert (shown["scc"]["connect"].default, shown["scc"]["linkage"].default) == ("auto", "average")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: agglo.scc(g, linkage="median"), ValueError, "linkage='median' is unknown: pass one of average"),
        (lambda g: agglo.hac(g, linkage="median"), ValueError, "linkage='median' is unknown"),
        (lambda g: agglo.affinity(g, linkage="median"), ValueError, "linkage='median' is unknown"),
        (
            lambda g: agglo.scc(g, advance="never"),
            ValueError,
            "advance='never' is unknown: pass one of 'every-round",
        ),
        (lambda g: agglo.scc(g.to_scipy()), TypeError, "expected a NeighborGraph, got csr_array.*from_scipy"),
        (
            lambda g: agglo.scc(np.eye(2)),
            TypeError,
            r"expected a NeighborGraph, got ndarray.*agglo\.neighbor_graph",
        ),
        (lambda g: agglo.hac(g, thresholds=[0.5]), TypeError, r"^hac\(\) got an unexpected .* see help"),
        (lambda g: agglo.scc(g, n_jobs=0), ValueError, "n_jobs=0 is not a number of threads"),
        (lambda g: agglo.scc(g, n_jobs=1.5), ValueError, "n_jobs=1.5"),
    ],
)
def test_bad_input_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(NeighborGraph.from_edges([0], [1], [0.5], kind="similarity"))


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("max_cluster_size", [None, 1000])
def test_hac_of_a_long_chain_takes_no_pass_over_all_points_for_each_merge(linkage, max_cluster_size):
    # Each round merges one pair. With a pass over all points per round, one of these runs takes a minute or more.
    n = 100_000
    ends = np.arange(n - 1), np.arange(1, n)
    graph = NeighborGraph.from_edges(*ends, np.arange(1, n) / n, kind="similarity")
    tree = agglo.hac(graph, linkage=linkage, max_cluster_size=max_cluster_size)
    assert tree.n_leaves == n
    assert len(tree.rounds) == n - tree.rounds.after[-1]  # one merge each


# ---- hubs: clusters with many neighbours ----


def star(n, weights, hub):
    """A graph of one hub and n leaves."""
    return NeighborGraph.from_edges(np.full(n, hub), np.delete(np.arange(n + 1), hub), weights, kind="similarity")


def tied_grid(side, ids, kind):
    ids = ids.reshape(side, side)
    ends = (np.r_[ids[:, :-1].ravel(), ids[:-1].ravel()], np.r_[ids[:, 1:].ravel(), ids[1:].ravel()])
    return NeighborGraph.from_edges(*ends, np.full(len(ends[0]), 0.5), kind=kind)


def caterpillar(n, legs):
    """A graph of a path of n points, which merges from its end, and a leg at each of them."""
    spine = np.arange(n)
    ends = np.r_[spine[:-1], spine], np.r_[spine[1:], spine + n]
    return NeighborGraph.from_edges(*ends, np.r_[1 + spine[1:] / n, legs], kind="similarity")


def wheel(n, weights, kind):
    """A graph of a path of n - 1 points and a hub, which is their common neighbour."""
    rim = np.arange(1, n)
    return NeighborGraph.from_edges(np.r_[0 * rim, rim[:-1]], np.r_[rim, rim[1:]], weights, kind=kind)


def bipartite(n, weights, kind):
    """A complete bipartite graph with 4 points on one side."""
    left, right = np.repeat(np.arange(4), n - 4), np.tile(np.arange(4, n), 4)
    return NeighborGraph.from_edges(left, right, weights, kind=kind)


def random_hubs(n, rng, decimals, kind, missing):
    ends = np.r_[rng.integers(0, n, n), rng.integers(0, 3, n)], np.r_[rng.integers(0, n, n), rng.integers(0, n, n)]
    weights = np.round(rng.random(2 * n), decimals) + 0.1
    return NeighborGraph.from_edges(*ends, weights, n_points=n, kind=kind, missing=missing)


def hub_graphs():
    rng = np.random.default_rng(3)
    n = 300
    yield "star", star(n, rng.random(n), 0)
    yield "star of the last point", star(n, np.sort(rng.random(n)), n)
    yield "star with ties", star(n, np.full(n, 0.5), 150)
    yield "caterpillar", caterpillar(n // 2, rng.random(n // 2))
    for kind in ("similarity", "distance"):
        yield f"grid, {kind}", tied_grid(18, np.arange(18 * 18), kind)
        yield f"shuffled grid, {kind}", tied_grid(18, rng.permutation(18 * 18), kind)
        yield f"wheel with ties, {kind}", wheel(n, np.full(2 * n - 3, 0.1), kind)
        yield f"bipartite with ties, {kind}", bipartite(80, rng.choice([0.1, 0.7], 4 * 76), kind)
        for decimals in (1, 7):
            for missing in (None, "ignore", 0.6):
                graph = random_hubs(n, rng, decimals, kind, missing)
                yield f"random, {kind}, {decimals} decimals, missing={missing}", graph


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("graph", [pytest.param(graph, id=name) for name, graph in hub_graphs()])
def test_hac_of_hubs_is_its_reference(graph, linkage):
    n = graph.n_points
    pairs = np.arange(n // 2 * 2).reshape(2, -1).T[:: n // 40]
    options = {"max_cluster_size": n // 3}, {"cannot_link": pairs}, {"sample_weight": 1 + np.arange(n) % 3 / 2}
    for known in ({}, *options):
        tree = agglo.hac(graph, linkage=linkage, **known)
        assert_same_hierarchy(tree, reference_constraints.hac(graph, linkage=linkage, **known))


@pytest.mark.parametrize("linkage", LINKAGES)
def test_hac_of_a_large_star_reads_no_list_of_all_leaves_for_each_merge(linkage):
    # Each round merges one leaf. If it read all the other leaves, one of these runs would take minutes.
    n = 200_000
    weights = np.random.default_rng(0).permutation(n).astype(np.float32) / n
    tree = agglo.hac(star(n, weights, 0), linkage=linkage)
    assert len(tree.rounds) == n
    if linkage == "single":
        np.testing.assert_allclose(tree.height[n + 1 :], 1 - np.sort(weights)[::-1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("known", [{}, {"cannot_link": [[0, 1]]}, {"max_cluster_size": 50_000}])
def test_hac_of_tied_distances_reads_no_list_of_all_neighbours_for_each_merge(known):
    # All linkages equal `missing`, so a hub grows by one point per round. The core's tests count its steps.
    side = 250
    graph = tied_grid(side, np.random.default_rng(0).permutation(side * side), "distance")
    tree = agglo.hac(graph, **known)
    assert len(tree.rounds) > side * side // 10
    np.testing.assert_array_equal(tree.height[side * side : -1], 0.5)
