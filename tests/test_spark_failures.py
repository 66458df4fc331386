"""What happens when processes die in the middle of a run, and when one is taken up again."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from test_spark import edges_of, nothing_is_kept

import agglo
from agglo.testing import assert_same_hierarchy

THRESHOLDS = [0.9, 0.6, 0.3]


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(3)
    return agglo.NeighborGraph.from_edges(
        rng.integers(0, 80, 300),
        rng.integers(0, 80, 300),
        rng.integers(1, 9, 300) / 8,
        n_points=80,
        kind="similarity",
    )


@pytest.fixture(scope="module")
def edges(spark, graph, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("edges") / "table")
    edges_of(spark, graph).write.parquet(path)
    return path


def wait_for(states, run, going):
    """Until a run has noted so many states, or does not go on."""
    while going() and len(list(Path(run, "log").glob("part-*"))) < states:
        time.sleep(0.05)


def fit(spark, edges, run, **options):
    options = {
        "kind": "similarity",
        "points": spark.range(80),
        "thresholds": THRESHOLDS,
        "handoff_edges": 0,
    } | options
    return agglo.spark.scc(spark.read.parquet(edges), str(run), **options)


def test_a_worker_may_die_in_the_middle_of_a_round(cluster, spark, graph, edges, tmp_path):
    ended = threading.Event()

    def kill():
        wait_for(1, tmp_path / "run", lambda: not ended.is_set())  # the first round has begun, and takes a while
        if not ended.is_set():
            cluster.kill("worker-1", signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        tree = fit(spark, edges, tmp_path / "run")
    finally:
        ended.set()
        killer.join()
    assert "worker-1" not in cluster.processes
    cluster.start_worker(1)
    assert_same_hierarchy(tree.to_hierarchy(), agglo.scc(graph, THRESHOLDS))
    assert nothing_is_kept(spark)


def test_a_driver_may_die_and_its_run_be_taken_up(spark, graph, edges, tmp_path):
    run = tmp_path / "run"
    program = f"""
        import agglo.spark
        quick = {{"spark_sql_codegen_wholeStage": "false", "spark_sql_codegen_factoryMode": "NO_CODEGEN"}}
        spark = agglo.spark.session(spark_master="local[1]", spark_sql_adaptive_enabled="false", **quick)
        agglo.spark.scc(spark.read.parquet({edges!r}), {str(run)!r}, kind="similarity", points=spark.range(80),
                        thresholds={THRESHOLDS}, handoff_edges=0)
    """
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], start_new_session=True, stderr=subprocess.DEVNULL
    )
    wait_for(2, run, lambda: driver.poll() is None)  # the first round is done, and the second has begun
    assert driver.poll() is None
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    with pytest.raises(
        ValueError, match=r"holds no run that came to its end: call agglo.spark.scc with resume=True"
    ):
        agglo.spark.SparkHierarchy(spark, str(run))
    with pytest.raises(
        FileExistsError, match="holds a run already: pass resume=True to go on with it, or another"
    ):
        fit(spark, edges, run)
    with pytest.raises(
        ValueError, match="it has linkage='average', but linkage='single' was passed; pass the same"
    ):
        fit(spark, edges, run, resume=True, linkage="single")
    with pytest.raises(ValueError, match="edges or points are not those that it was started with"):
        fit(spark, edges, run, resume=True, points=spark.range(81))

    finished = []
    tree = fit(spark, edges, run, resume=True, progress=lambda *report: finished.append(report))
    assert len(finished) < len(tree.rounds) + 1  # the first round was not done again
    assert_same_hierarchy(tree.to_hierarchy(), agglo.scc(graph, THRESHOLDS))
    again = fit(spark, edges, run, resume=True, progress=lambda *report: finished.append(None))
    assert None not in finished
    assert again.clusters_per_round == tree.clusters_per_round
