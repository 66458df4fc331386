"""Neighbour graphs, scores and exemplars on Spark, and the command line."""

import json

import numpy as np
import pyarrow as pa
import pytest
from cli_runs import run
from test_spark import edge_table, nothing_is_cached

import agglo
from agglo.evaluation import metrics
from agglo.spark.folder import Folder

pytestmark = pytest.mark.spark

THRESHOLDS = np.linspace(0.9, 0.2, 20)  # makes a deep tree


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(8)
    i, j = rng.integers(0, 60, 200), rng.integers(0, 60, 200)
    same = i % 4 == j % 4
    return agglo.NeighborGraph.from_edges(
        i, j, np.where(same, 0.6, 0.1) + rng.integers(0, 7, 200) / 20, n_points=60, kind="similarity"
    )


@pytest.fixture(scope="module")
def tree(spark, graph, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("tables") / "run")
    points = spark.range(60)
    return agglo.spark.scc(edge_table(spark, graph), path, kind="similarity", thresholds=THRESHOLDS, points=points)


def test_rows_of_the_driver_arrive_as_they_are(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("agglo.spark.folder._LIST_ROWS", 3)
    monkeypatch.setattr("agglo.spark.folder._BATCH_LISTS", 2)
    for n in (0, 1, 6, 20):
        names = pa.chunked_array(
            [[f"p{i}" for i in range(n // 2)], [f"q{i}" for i in range(n - n // 2)]], pa.string()
        )
        table = pa.table({"id": np.arange(n), "name": names, "weight": np.arange(n, dtype=np.float32) / 7})
        found = Folder(spark, str(tmp_path)).upload(table).toArrow()
        assert found.schema.types == table.schema.types
        assert found.sort_by("id").to_pylist() == table.to_pylist()


@pytest.fixture(scope="module")
def classes():
    return np.array([f"class {i % 4}" for i in range(60)])


def test_scores_are_those_of_the_tree_in_memory(spark, graph, tree, classes):
    table = spark.createDataFrame(pa.table({"id": np.arange(60), "class": classes}))
    expected = agglo.scc(graph, thresholds=THRESHOLDS)
    found = agglo.spark.scores(tree, table)
    assert found.dendrogram_purity == pytest.approx(metrics.dendrogram_purity(expected, classes), rel=1e-12)
    for mine, theirs in zip(found.by_round, metrics.pairwise_f1_by_round(expected, classes), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    last = agglo.spark.pairwise_f1(tree, table, -1)
    assert last == pytest.approx(metrics.pairwise_f1(classes, expected.labels(-1)))
    with pytest.raises(
        ValueError, match="classes have 59 rows for 59 of 60 points: every point needs exactly one class"
    ):
        agglo.spark.scores(tree, table.limit(59))
    assert nothing_is_cached(spark)


def test_exemplars_have_the_closest_edges_inside_their_cluster(graph, tree):
    labels = agglo.scc(graph, thresholds=THRESHOLDS).labels(-1)
    matrix = graph.to_scipy().toarray().astype(np.float64)
    inside = (matrix * (labels[:, None] == labels[None, :])).sum(axis=1)
    rows = agglo.spark.exemplars(tree, -1, n=2).collect()
    found = {(row.cluster, row["rank"]): row.id for row in rows}
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        best = members[np.lexsort((members, -inside[members]))][:2]
        assert [found[members[0], rank + 1] for rank in range(len(best))] == best.tolist()
    with pytest.raises(ValueError, match="n=0 must be a positive integer"):
        agglo.spark.exemplars(tree, -1, n=0)


@pytest.mark.parametrize("names", [False, True])
def test_vectors_find_their_neighbours_in_buckets(spark, tmp_path, names):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(12, 6))[rng.integers(0, 12, 300)] + 0.1 * rng.normal(size=(300, 6))).astype(np.float32)
    X[:90] = X[0]  # copies, which no plane tells apart
    points = spark.createDataFrame(
        pa.table({"id": np.arange(300), "vector": pa.array(X.tolist(), pa.list_(pa.float32()))})
    )
    if names:
        points = points.selectExpr("concat('p', id) AS id", "vector")
    found = agglo.spark.neighbor_graph(
        points, f"{tmp_path}/graph", 4, "euclidean", repetitions=4, bucket_size=60, sample=40
    )
    assert (found.kind, found.metric) == ("distance", "euclidean")
    assert found.parameters["split"] > 0  # the copies
    number = "int(substr({0}, 2)) AS {0}" if names else "{0}"
    edges = found.edges.selectExpr(number.format("src"), number.format("dst"), "weight").toArrow()
    degrees = np.bincount(edges["src"].to_numpy(), minlength=300)
    assert degrees.max() <= 4
    assert (degrees > 0).mean() > 0.95
    exact = np.linalg.norm(X[edges["src"].to_numpy()] - X[edges["dst"].to_numpy()], axis=1)
    np.testing.assert_allclose(edges["weight"].to_numpy(), exact, rtol=1e-5, atol=1e-5)
    true = np.sort(np.linalg.norm(X[:, None] - X[None], axis=2) + np.diag(np.full(300, np.inf)), axis=1)[:, :4]
    bar = true[:, -1] * (1 + 1e-5) + 1e-6
    hits = np.bincount(edges["src"].to_numpy(), edges["weight"].to_numpy() <= bar[edges["src"].to_numpy()], 300)
    assert found.recall_estimate.sample == 40
    assert found.recall_estimate.value == pytest.approx((hits / 4).mean(), abs=0.15)
    assert found.recall_estimate.value > 0.6
    assert nothing_is_cached(spark)


def test_texts_find_their_neighbours_by_minhash(spark, tmp_path):
    rng = np.random.default_rng(2)
    words = [[f"w{t}" for t in rng.choice(20, 8, replace=False) + 30 * (i % 5)] for i in range(60)] + [[]]
    ids = [f"text {i}" for i in range(61)]
    sets = spark.createDataFrame(pa.table({"id": ids, "tokens": pa.array(words, pa.list_(pa.string()))}))
    found = agglo.spark.set_graph(sets, f"{tmp_path}/graph", 3, bands=12, rows=1, bucket_size=50, sample=61)
    rows = found.edges.collect()
    for row in rows:
        a, b = set(words[ids.index(row.src)]), set(words[ids.index(row.dst)])
        assert row.weight == pytest.approx(1 - len(a & b) / len(a | b), abs=1e-6)
    assert (found.kind, found.missing, found.metric) == ("distance", 1.0, "jaccard")
    assert found.recall_estimate.value > 0.7


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("id, array(1.0) AS vectors", "no column 'vector', only id, vectors"),
        ("double(id), array(1.0) AS vector", "id must be integers or strings, got double: cast it"),
        ("id, 1.0 AS vector", "vector must be array<float>, got decimal"),
        ("id, array(float(null)) AS vector WHERE id > 9", "the table of points is empty: pass at least one"),
    ],
)
def test_points_that_cannot_be_compared(spark, tmp_path, columns, message):
    select, _, where = columns.partition(" WHERE ")
    points = spark.range(3).where(where or "true").selectExpr(*select.split(", "))
    with pytest.raises((ValueError, TypeError), match=message):
        agglo.spark.neighbor_graph(points, f"{tmp_path}/graph")


def test_the_command_line_writes_a_run_and_labels(spark, graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    edge_table(spark, graph).write.parquet(f"{tmp_path}/edges")
    fit = ["spark", "fit", f"{tmp_path}/edges", "-o", f"{tmp_path}/run", "--kind", "similarity"]
    told, _ = run(*fit, "--json")
    assert json.loads(told)["clusters"][0] == len(set(graph.indices.tolist()))
    told, _ = run("spark", "labels", f"{tmp_path}/run", "--round", -1, "-o", f"{tmp_path}/labels")
    assert "clusters" in told
    assert spark.read.parquet(f"{tmp_path}/labels").columns == ["id", "cluster"]
    nowhere = ["spark", "fit", "nowhere", "-o", "x", "--kind", "distance"]
    assert "contains a run already" in run(*fit, code=3)[1]
    assert "names 2 columns: pass three" in run(*fit, "--columns", "a,b", code=2)[1]
    assert "has no column 'a', only src, dst, weight" in run(*fit, "--columns", "a,dst,weight", code=3)[1]
    assert "cannot read nowhere as Parquet" in run(*nowhere, code=3)[1]
    assert "neither a number nor 'ignore'" in run(*fit, "--missing", "none", code=2)[1]
