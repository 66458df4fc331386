"""The experiments of the paper: limits, stored results and reports."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from agglo.paper import __main__ as command
from agglo.paper import datasets
from agglo.paper.experiments import measures as experiments
from agglo.paper.experiments import plan, report, sets
from agglo.paper.experiments.job import Job
from agglo.paper.experiments.runner import Limits, Results, run_job

JOB = Job("trees", "set", "method")


def forever(job, folder):
    while True:
        time.process_time()


def greedy(job, folder):
    return [{"value": len(np.ones(10**9))}]


def broken(job, folder):
    raise KeyError("no such thing")


def fine(job, folder):
    return [{"value": 1}, {"method": "other", "value": 2}]


def test_a_job_gives_its_rows():
    rows = run_job(JOB, Path(), Limits(), fine)
    assert [(row["status"], row["job"], row["method"], row["value"]) for row in rows] == [
        ("ok", "method", "method", 1),
        ("ok", "method", "other", 2),
    ]


@pytest.mark.parametrize(
    ("task", "limits", "status"),
    [(forever, Limits(1, 4.0), "DNF"), (greedy, Limits(30, 1.0), "OOM"), (broken, Limits(), "error")],
)
def test_the_status_of_a_failed_job(task, limits, status):
    (row,) = run_job(JOB, Path(), limits, task)
    assert row["status"] == status
    assert row["limits"] == {"cpu_seconds": limits.cpu_seconds, "gigabytes": limits.gigabytes}
    assert status != "error" or row["message"] == "KeyError: 'no such thing'"


def entry(status="ok", cpu_seconds=60, **fields):
    limits = {"cpu_seconds": cpu_seconds, "gigabytes": 4.0}
    return {
        "experiment": "trees",
        "set": "set",
        "method": "method",
        "job": "method",
        "points": None,
        "status": status,
        "limits": limits,
        **fields,
    }


def test_results_are_kept_and_not_asked_for_again(tmp_path):
    path = tmp_path / "results.jsonl"
    results = Results(path)
    assert not results.has(JOB, Limits())
    results.add([entry()])
    results.add([entry(job="slow", status="DNF")])
    results.add([entry(job="wrong", status="error")])
    again = Results(path)
    assert again.rows == results.rows
    assert again.has(JOB, Limits(10_000))
    slow = Job("trees", "set", "slow")
    assert again.has(slow, Limits(60))
    assert not again.has(slow, Limits(61))  # more time may be enough
    assert not again.has(Job("trees", "set", "wrong"), Limits())
    assert not again.has(Job("trees", "set", "method", 5_000), Limits())
    again.add([entry(job="slow", cpu_seconds=100)])
    assert [(row["job"], row["status"]) for row in Results(path).rows] == [
        ("method", "ok"),
        ("wrong", "error"),
        ("slow", "ok"),
    ]


def test_a_broken_file_of_results_is_named(tmp_path):
    (tmp_path / "results.jsonl").write_text(json.dumps(entry()) + "\n{cut")
    with pytest.raises(
        ValueError, match=r"results.jsonl, line 2 is not a row of results: delete it, and run again"
    ):
        Results(tmp_path / "results.jsonl")


@pytest.fixture
def folder(tmp_path):
    made = datasets.dp_mixture(60, 3, random_state=1)
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "small.npz", X=made.X, y=made.y)
    np.savez(tmp_path / "data" / "unknown.npz", X=made.X)
    return tmp_path


def test_sets_are_found_and_prepared(folder):
    (folder / "data" / "speaker.tsv").write_text("a\tx\t3\t4\nb\ty\t0\t2\n")
    assert set(sets.find_sets(folder / "data")) == {"iris", "wine", "small", "unknown", "speaker"}
    small = sets.load_set(folder / "data", "small", 40)
    assert small.X.shape == (40, 3)
    np.testing.assert_allclose(np.linalg.norm(small.X, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(sets.load_set(folder / "data", "speaker").X, [[0.6, 0.8], [0, 1]])
    np.testing.assert_allclose(np.linalg.norm(sets.load_set(folder / "data", "wine").X, axis=1), 1, rtol=1e-6)
    with pytest.raises(ValueError, match=r"there is no dataset 'none' in .*: pass one of iris, wine"):
        sets.load_set(folder / "data", "none")


def test_every_table_has_jobs_and_none_is_there_twice(folder):
    found = list(plan.plan_jobs("all", folder / "data"))
    assert len(found) == len(set(found))
    assert {job.experiment for job in found} == set(plan.EXPERIMENTS.values())
    assert {job.set for job in plan.plan_jobs("purity", folder / "data", ["small"])} == {"small"}
    assert not any(job.set == "unknown" for job in found)


@pytest.mark.parametrize("method", ["on-graph", "hac", "kmeans"])
def test_scores_are_those_of_the_metrics(folder, method):
    rows = experiments.measure(Job("trees", "small", method), folder / "data")
    assert next(row.get("method", method) for row in rows) == {"on-graph": "scc"}.get(method, method)
    for row in rows:
        assert 0 < row["f1"] <= 1
        if method != "kmeans":
            assert row["f1"] <= row["best_f1"]
            assert 0 < row["purity"] <= 1
        assert row["seconds"] >= 0


def test_thresholds_make_a_row_each(folder):
    rows = experiments.measure(Job("rounds", "small", "scc"), folder / "data")
    assert len(rows) == len(experiments.SCHEDULES) * len(experiments.N_THRESHOLDS) + 1


def test_the_command_runs_goes_on_and_reports(folder, capsys):
    data, out = folder / "data", folder / "out"
    arguments = ["--data", str(data), "--out", str(out), "--sets", "small", "--jobs", "2"]
    command.main(["rounds", *arguments])
    assert "rounds small scc: ok" in capsys.readouterr().out
    command.main(["rounds", *arguments])
    assert "rounds small" not in capsys.readouterr().out
    text = (out / "tables.md").read_text()
    assert "## Dendrogram purity by number and kind of thresholds, mean over 1 sets" in text
    assert "![Dendrogram purity and best F1 by number and kind of thresholds](rounds.png)" in text
    assert (out / "rounds.png").stat().st_size > 1000
    with pytest.raises(SystemExit):
        command.main(["rounds", "--data", str(folder / "nowhere"), "--out", str(out)])
    assert "is not a folder: pass the folder of the datasets with --data" in capsys.readouterr().err


def scored(name, method, purity, **fields):
    scores = {"purity": purity, "f1": purity, "best_f1": purity, "n": 10, "classes": 2, "seconds": 1.0}
    return entry(set=name, method=method, job=method, **scores, **fields)


def test_tables_mark_the_best_and_those_that_did_not_finish(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    results.add(
        [scored("a", "scc", 0.8, graph_seconds=2.0), scored("a", "hac-graph", 0.9), scored("a", "hac", 0.7)]
    )
    results.add([scored("b", "scc", 0.5), entry(status="DNF", set="b", method="hac", job="hac")])
    results.add([scored("b", "birch", 0.6)])
    report.write_report(results, tmp_path)
    text = (tmp_path / "tables.md").read_text()
    assert "SCC is best on 1 of the 2 sets on which rivals" in text
    assert "| a | 10 | 2 | **0.800** | 0.900 | 0.700 | – |" in text
    assert "| b | 10 | 2 | 0.500 | – | DNF | **0.600** |" in text
    assert "2.00 + 1.00" in text
