"""Processes that die during a run, and runs that are resumed."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from spark_cluster import submit
from test_spark import edge_table, nothing_is_cached

import agglo
from agglo.spark.folder import Folder, Owner, State
from agglo.testing import assert_same_hierarchy

pytestmark = pytest.mark.spark

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
    edge_table(spark, graph).write.parquet(path)
    return path


def wait_for(states, run, going):
    """Wait until a run has written this number of ``states``, or makes no progress."""
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


@pytest.mark.slow  # a cluster of its own processes takes a minute of processor time to start
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
    assert_same_hierarchy(tree.to_hierarchy(), agglo.scc(graph, thresholds=THRESHOLDS))
    assert nothing_is_cached(spark)


@pytest.mark.slow  # two more drivers start Java
def test_a_submitted_driver_may_die_and_its_run_be_taken_up(request, spark, graph, edges, tmp_path):
    run = tmp_path / "run"
    spark.range(80).write.parquet(f"{tmp_path}/points")
    words = ["fit", edges, "--out", run, "--kind", "similarity", "--points", f"{tmp_path}/points"]
    words += ["--thresholds", ",".join(map(str, THRESHOLDS)), "--handoff-edges", 0]
    local = os.environ.get("AGGLO_SPARK_MASTER")
    driver = submit(local or request.getfixturevalue("cluster").url, tmp_path, *words)
    wait_for(2, run, lambda: driver.poll() is None)  # the first round is done, and the second has begun
    assert driver.poll() is None, driver.communicate()
    with pytest.raises(
        FileExistsError, match=rf"process \d+ on \S+ is working on the run in {run}: wait for it or stop it"
    ):
        fit(spark, edges, run, resume=True)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.communicate()
    with pytest.raises(ValueError, match=r"contains no finished run: call agglo.spark.scc with resume=True"):
        agglo.spark.SparkHierarchy(spark, str(run))
    with pytest.raises(FileExistsError, match="contains a run already: pass resume=True to resume it, or another"):
        fit(spark, edges, run)
    with pytest.raises(
        ValueError, match="it has linkage='average', but linkage='single' was passed; pass the same"
    ):
        fit(spark, edges, run, resume=True, linkage="single")
    with pytest.raises(ValueError, match="edges or points differ from those that it was started with"):
        fit(spark, edges, run, resume=True, points=spark.range(81))

    done = len(Folder(spark, str(run)).read_states())
    driver = submit("local[1]", tmp_path, *words, "--resume", "--json")
    told, errors = driver.communicate()
    assert driver.returncode == 0, errors
    tree = agglo.spark.SparkHierarchy(spark, str(run))
    assert json.loads(told) == {"run": str(run), "points": 80, "rounds": 3, "clusters": tree.clusters_per_round}
    assert_same_hierarchy(tree.to_hierarchy(), agglo.scc(graph, thresholds=THRESHOLDS))
    # The first round was not done again: the states of the two drivers follow on each other.
    owners = [state.merges.rpartition("-")[2] for state in tree.folder.read_states() if state.merges]
    assert [owners.count(owner) for owner in dict.fromkeys(owners)] == [done - 1, 3 - (done - 1)]
    finished = []
    fit(spark, edges, run, resume=True, progress=lambda *report: finished.append(report))
    assert not finished


def test_only_the_owner_adds_to_the_log(spark, tmp_path):
    old, new = (Folder(spark, str(tmp_path)) for _ in range(2))
    state = State(0, "graph", 0, None, 1, 0)
    with old.lock.acquire():
        old.append_state(state)
        new.lock._append(json.dumps(Owner(2, new.lock.token, "elsewhere", 1)._asdict()))
        with pytest.raises(FileExistsError, match="taken over by process 1 on elsewhere: this process stops"):
            old.append_state(state._replace(number=1))
    new.append_state(state._replace(number=2))
    assert [found.number for found in new.read_states()] == [0, 2]


def test_a_run_of_another_format_is_refused(spark, tmp_path):
    Folder(spark, str(tmp_path))._append("head", json.dumps({"format": 2}))
    with pytest.raises(ValueError, match="has format 2, but this version of agglo reads 3: use the version that"):
        agglo.spark.SparkHierarchy(spark, str(tmp_path))
