import json
import os
import re
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer
from cli_runs import FILES, driven, names, run

import agglo
from agglo import _core, cli
from agglo.estimators.scc import number_clusters
from agglo.neighbors.search import METHODS, METRICS
from agglo.rounds.linkage import LINKAGES
from agglo.rounds.schedule import ADVANCES
from agglo.rounds.vector_linkage import VECTOR_LINKAGES
from agglo.testing import assert_same_hierarchy

# What the verbs do


def test_fit_writes_the_tree_that_the_library_makes(folder, blobs):
    out, err = run("fit", "X.npy", "-o", "deep/out", "-k", 10, "--labels", "y.npy", "--n-clusters", 3)
    assert names(folder / "deep/out") == FILES
    tree = agglo.Hierarchy.load("deep/out/tree.parquet")
    graph = agglo.neighbor_graph(blobs[0], n_neighbors=10, missing="mean")
    expected = agglo.scc(graph, connect="auto", X=blobs[0])
    assert_same_hierarchy(tree, expected)
    labels = pq.read_table("deep/out/labels.parquet")["label"].to_numpy()
    np.testing.assert_array_equal(labels, number_clusters(expected.cut(n_clusters=3), X=blobs[0]))
    assert err == ""
    assert re.search(r"labels +3 clusters \(round \d+, closest to 3\); largest 40 40 40\n", out)
    assert "1.000 dendrogram purity, against 3 known classes" in out
    assert re.search(r"written +deep/out\n", out)


def test_few_points_have_all_others_for_neighbors(folder, blobs):
    np.save("few.npy", blobs[0][:9])
    run("fit", "few.npy", "-o", "out")
    assert_same_hierarchy(
        agglo.Hierarchy.load("out/tree.parquet"), agglo.scc(agglo.neighbor_graph(blobs[0][:9], n_neighbors=8))
    )
    assert json.loads(Path("out/run.json").read_text())["graph"]["parameters"]["n_neighbors"] == 8


@pytest.mark.parametrize(
    ("options", "make"),
    [
        (["--metric", "sqeuclidean"], lambda graph, **up: agglo.scc(graph, **up)),
        (["--metric", "euclidean", "-k", "all"], lambda graph, **up: agglo.scc(graph, **up)),
        (
            ["--metric", "dot", "--linkage", "single"],
            lambda graph, **up: agglo.scc(graph, linkage="single", **up),
        ),
        (
            ["-a", "affinity", "--linkage", "complete"],
            lambda graph, **up: agglo.affinity(graph, linkage="complete", **up),
        ),
        (["-a", "hac", "-j", "2"], lambda graph, **up: agglo.hac(graph, **up)),
        (
            ["--thresholds", "linear", "--n-thresholds", "7"],
            lambda graph, **up: agglo.scc(graph, thresholds="linear", n_thresholds=7, **up),
        ),
        (["--thresholds", "0.9,0.5,0.1"], lambda graph, **up: agglo.scc(graph, thresholds=[0.9, 0.5, 0.1], **up)),
        (["--advance", "until-stable"], lambda graph, **up: agglo.scc(graph, advance="until-stable", **up)),
        (["--connect", "none"], lambda graph, **_: agglo.scc(graph)),
        (
            ["--linkage", "exact-average", "--connect", "ward"],
            lambda graph, X, **_: agglo.scc(graph, linkage="exact-average", connect="ward", X=X),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_option_reaches_the_algorithm(folder, blobs, options, make):
    run("fit", "X.npy", "-o", "out", *options)
    metric = options[1] if "--metric" in options else "cosine"
    graph = agglo.neighbor_graph(blobs[0], "all" if "all" in options else 25, metric=metric, missing="mean")
    assert_same_hierarchy(agglo.Hierarchy.load("out/tree.parquet"), make(graph, X=blobs[0], connect="auto"))


def test_top_is_a_deprecated_alias_of_connect(folder):
    for option in ("--connect", "--top"):
        _, told = run("fit", "X.npy", "-k", 1, option, "none", "-o", option[2:])
        assert ("--top is deprecated: use --connect" in told) == (option == "--top")
    trees = [agglo.Hierarchy.load(f"{name}/tree.parquet") for name in ("connect", "top")]
    assert_same_hierarchy(*trees)


def test_without_a_rule_labels_are_of_the_persistent_resolution(fitted, blobs):
    tree = agglo.Hierarchy.load(fitted / "tree.parquet")
    labels = pq.read_table(fitted / "labels.parquet")["label"].to_numpy()
    cut = tree.cut(resolution="persistent", graph=agglo.neighbor_graph(blobs[0], missing="mean"))
    np.testing.assert_array_equal(labels, number_clusters(cut, X=blobs[0]))


def test_a_resolution(folder):
    out, _ = run("fit", "X.npy", "--resolution", "persistent", "-o", "persistent")
    assert "(resolution" in out
    assert ", persistent)" in out
    many = json.loads(run("fit", "X.npy", "--resolution", "inf", "-o", "inf", "--json")[0])["labels"]
    assert (many["resolution"], many["round"], many["clusters"]) == ("inf", None, 120)


def test_all_formats_give_the_same_tree(folder):
    run("fit", "X.npy", "-o", "npy", "--labels", "y.npy")
    scores = json.loads((folder / "npy/run.json").read_text())["scores"]
    assert scores["classes"] == 3
    for words in (["Xy.npz", "--label-column", "y"], ["Xy.csv", "--label-column", "kind"]):
        run("fit", *words, "-o", "other")
        tree = agglo.Hierarchy.load("other/tree.parquet")
        np.testing.assert_array_equal(tree.parent, agglo.Hierarchy.load("npy/tree.parquet").parent)
        assert json.loads((folder / "other/run.json").read_text())["scores"] == scores


def test_known_classes_are_never_features(folder):
    lines = (folder / "Xy.csv").read_text().replace("class ", "").splitlines()  # classes look like numbers now
    Path("numbers.csv").write_text("\n".join(lines))
    expected = json.loads(run("fit", "numbers.csv", "--label-column", "kind", "-o", "a", "--json")[0])
    assert expected["data"]["columns"] == ["f0", "f1", "f2", "f3", "f4"]
    words = ["--labels", folder / "numbers.csv", "--label-column", "kind"]
    found = json.loads(run("fit", "numbers.csv", *words, "-o", "b", "--json")[0])
    assert found["data"] == expected["data"]
    _, err = run("fit", "numbers.csv", "--labels", "numbers.csv", "-o", "c", code=3)
    assert "numbers.csv holds points and known classes: name the column of classes with --label-column" in err


def test_an_infinite_height_joins_all_that_merge(folder):
    record = json.loads(run("fit", "X.npy", "-o", "out", "--height", "inf", "--json")[0])
    assert record["labels"]["clusters"] == record["tree"]["fewest_clusters"]
    assert record["labels"]["rule"] == {"height": "inf"}


def test_json_is_all_that_is_on_stdout_and_says_what_the_record_says(folder):
    out, err = run("fit", "X.npy", "-o", "out", "--json", "--labels", "y.npy")
    record = json.loads(out)
    digests = ("files", "checksum")  # known once the files are written
    written = json.loads((folder / "out/run.json").read_text())
    assert record == {name: value for name, value in written.items() if name not in digests}
    assert record["parameters"] == {
        "metric": "cosine",
        "n_neighbors": 25,
        "method": "auto",
        "recall": 0.95,
        "missing": "mean",
        "seed": 0,
        "algorithm": "scc",
        "linkage": "average",
        "connect": "auto",
        "max_cluster_size": None,
        "threads": len(os.sched_getaffinity(0)),
    }
    assert record["data"]["points"] == 120
    assert record["rounds"][0]["before"] == 120
    assert record["rounds"][-1]["after"] == record["tree"]["fewest_clusters"]
    assert record["labels"]["rule"] == {"resolution": "persistent"}
    assert record["labels"]["round"] is None
    assert record["labels"]["resolution"] > 0
    assert set(record["versions"]) == {"python", "numpy", "scipy", "pyarrow", "instructions"}
    assert err == ""
    for words in (["cut", "out", "--round", "-1"], ["eval", "out", "--labels", "y.npy"], ["info", "out"]):
        assert json.loads(run(*words, "--json")[0])
        assert run(*words, "--quiet") == ("", "")


def test_quiet_says_nothing(folder):
    assert run("fit", "X.npy", "-o", "out", "-q") == ("", "")


def test_warnings_are_one_line_each(folder):
    out, err = run("fit", "Xy.csv", "-o", "out", "-q")
    assert out == ""
    assert err == "warning: Xy.csv: left out 'kind', without numbers\n"


@pytest.mark.parametrize(
    "rule", [["--n-clusters", 3], ["--round", 2], ["--round", "persistent"], ["--height", 0.1]]
)
def test_cut(fitted, rule):
    option, value = rule
    tree = agglo.Hierarchy.load(fitted / "tree.parquet")
    expected = tree.cut(**{option[2:].replace("-", "_"): value})
    out, _ = run("cut", "out", *rule, "-o", "labels.csv")
    assert re.search(rf"labels +{expected.max() + 1} clusters \(.*\n.*written +labels\.csv\n", out)
    np.testing.assert_array_equal(np.loadtxt("labels.csv", skiprows=1), expected)
    run("cut", "out/tree.parquet", *rule, "-o", "labels.npy")
    np.testing.assert_array_equal(np.load("labels.npy"), expected)


def test_cut_without_a_file_writes_none(fitted):
    before = names(fitted), names(fitted.parent)
    out, _ = run("cut", "out", "--n-clusters", "3")
    assert "written  nothing; --out labels.csv writes the labels" in out
    assert (names(fitted), names(fitted.parent)) == before


def test_eval(fitted, blobs):
    tree = agglo.Hierarchy.load(fitted / "tree.parquet")
    result = json.loads(run("eval", "out", "--labels", "y.npy", "--json", "--round", 1)[0])
    scores = result["scores"]
    assert scores["dendrogram_purity"] == agglo.metrics.dendrogram_purity(tree, blobs[1])
    assert scores["labels"] == agglo.metrics.pairwise_f1(blobs[1], tree.labels(round=1))._asdict()
    best = max(range(len(tree.rounds) + 1), key=lambda i: agglo.metrics.pairwise_f1(blobs[1], tree.labels(i)).f1)
    assert scores["best_round"]["f1"] == pytest.approx(agglo.metrics.pairwise_f1(blobs[1], tree.labels(best)).f1)
    # By default the cut is at the number of classes.
    assert json.loads(run("eval", "out", "--labels", "Xy.csv", "--label-column", "kind", "--json")[0])["labels"][
        "rule"
    ] == {"n_clusters": 3}


def test_info_of_a_run_and_of_a_tree_alone(fitted):
    out, _ = run("info", "out")
    assert "120 × 5 (float32) from X.npy" in out
    assert re.search(r"\n +0 +120 *\n", out)
    alone, _ = run("info", "out/tree.parquet")
    assert "scc, average linkage" in alone
    assert "X.npy" not in alone


def test_very_many_rounds_are_not_in_the_record(folder):
    np.save("many.npy", np.random.default_rng(0).normal(size=(1500, 3)))
    record = json.loads(run("fit", "many.npy", "-o", "out", "-a", "hac", "--json")[0])
    assert record["rounds"] is None
    assert record["tree"]["rounds"] >= 1400
    run("info", "out")


def test_version():
    assert run("--version")[0] == f"agglo {agglo.__version__} (instructions: {_core.simd_level()})\n"


def test_help_answers_without_loading_anything_heavy():
    heavy = "{'numpy', 'scipy', 'sklearn', 'pyarrow', 'matplotlib', 'agglo._core'}"
    prelude = f"import sys, atexit; atexit.register(lambda: print(sorted({heavy} & set(sys.modules))))"
    result = driven(prelude, "fit", "--help")
    assert result.returncode == 0
    assert result.stdout.endswith("\n[]\n")


# The demo


def test_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, err = run("demo")
    assert err == ""
    assert "1,797 × 64" in out
    assert re.search(r"nodes +1,\d{3} in the fine tree, .*\n +\d\d in the condensed tree, to read", out)
    assert names(tmp_path / "agglo-demo") == ["labels.parquet", "picture.png", "run.json", "tree.parquet"]
    assert (tmp_path / "agglo-demo/picture.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((tmp_path / "agglo-demo/run.json").read_text())
    assert record["scores"]["dendrogram_purity"] > 0.85
    assert record["labels"]["clusters"] == 10
    offered = out.splitlines()[-1].split()[1:]  # without the name of the command
    assert offered == ["explore", "agglo-demo"]
    run(*offered, "--html", "page.html")
    assert "</html>" in (tmp_path / "page.html").read_text()


def test_demo_without_matplotlib_says_how_to_get_the_picture(tmp_path):
    result = driven("import sys; sys.modules['matplotlib'] = None", "demo", "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert result.stderr == "note: no picture: matplotlib is not installed: pip install 'agglo[plot]'\n"
    assert "dendrogram purity" in result.stdout
    assert names(tmp_path / "out") == FILES


# The command line and the rest of the project say the same


def test_the_names_to_choose_from_are_those_of_the_library():
    hints = get_type_hints(cli.fit.fit)
    assert set(get_args(hints["metric"])) == set(METRICS)
    assert get_args(hints["method"]) == METHODS
    assert set(get_args(hints["linkage"])) == set(LINKAGES)
    assert set(get_args(hints["connect"])) == {"auto", "none", *VECTOR_LINKAGES}
    assert set(get_args(get_args(hints["advance"])[0])) == set(ADVANCES)


def test_every_verb_option_and_exit_code_is_documented():
    text = (Path(__file__).parents[2] / "docs/guide/cli.md").read_text()
    for verb, command in typer.main.get_command(cli.app).commands.items():
        assert f"agglo {verb}" in text
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or f"`{option}" in text, (verb, option)
    for code in (
        cli.USAGE,
        cli.BAD_INPUT,
        cli.CANNOT_WRITE,
        cli.NO_MEMORY,
        cli.INTERRUPTED,
        cli.PIPE_CLOSED,
        cli.TERMINATED,
    ):
        assert f"| {code} |" in text


def test_plot_draws_a_run(folder):
    run("fit", "X.npy", "-o", "out", "-k", "10", "--quiet")
    for kind, points in (("overview", []), ("treemap", []), ("dendrogram", []), ("dp-means", ["--data", "X.npy"])):
        told, _ = run("plot", "out", "--kind", kind, *points, "-o", f"{kind}.png", "--json")
        assert json.loads(told)["written"] == f"{kind}.png"
        assert Path(f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert "--kind dp-means needs the points" in run("plot", "out", "--kind", "dp-means", code=cli.USAGE)[1]
    np.save("few.npy", np.ones((3, 5)))
    _, errors = run("plot", "out", "--kind", "dp-means", "--data", "few.npy", code=cli.BAD_INPUT)
    assert "few.npy has 3 points, but the tree has 120: pass the points of the tree" in errors
    assert "end the name in .png" in run("plot", "out", "-o", "tree.txt", code=cli.CANNOT_WRITE)[1]


def test_the_search_is_told_in_summary_record_and_info(folder):
    options = ["--method", "cells", "--recall", "0.9", "--seed", "5"]
    told, _ = run("fit", "X.npy", "-o", "out", "-k", "10", *options)
    assert re.search(r"search +cells: recall [01]\.\d+ ± \d\.\d+, measured; cell_size \d+", told)
    record = json.loads((folder / "out/run.json").read_text())
    assert (record["parameters"]["recall"], record["parameters"]["seed"]) == (0.9, 5)
    assert record["graph"]["method"] == "cells"
    assert record["graph"]["parameters"]["random_state"] == 5
    assert record["graph"]["recall_estimate"]["value"] >= 0.9
    assert "search   cells: recall" in run("info", "out")[0]
    assert json.loads(run("info", "out", "--json")[0]) == record
    told, _ = run("fit", "X.npy", "-o", "out", "-k", "10")
    assert "search   kdtree (chosen by auto): all neighbours" in told
    assert json.loads((folder / "out/run.json").read_text())["graph"]["recall_estimate"] is None
    _, errors = run("fit", "X.npy", "-o", "out", "--recall", "2", code=cli.USAGE)
    assert "recall=2.0 is not a share of the neighbours" in errors


def test_compact_files_are_clustered_as_they_are(folder, blobs):
    np.save("half.npy", blobs[0].astype(np.float16))
    told, _ = run("fit", "half.npy", "-o", "out", "-k", "10", "--json")
    assert json.loads(told)["data"]["dtype"] == "float16"
    run("plot", "out", "--data", "half.npy", "-o", "tree.png")
