import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import agglo
from agglo import cli, runfolder
from agglo.linkage import LINKAGES
from agglo.neighbors import METHODS, METRICS
from agglo.rounds import ADVANCES
from agglo.testing import assert_same_hierarchy

FILES = ["labels.parquet", "run.json", "tree.parquet"]


def run(*words, code=0):
    """What a command prints on stdout and stderr, in this process; it must end with ``code``."""
    result = CliRunner().invoke(cli.app, [str(word) for word in words], prog_name="agglo")
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def driven(prelude, *words):
    """The command in a process of its own, after a few lines of Python have been run there."""
    program = f"{textwrap.dedent(prelude)}\nimport agglo.cli\nagglo.cli.main()"
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    return (rng.normal(size=(3, 5))[y] * 20 + rng.normal(size=(120, 5))).astype(np.float32), y


@pytest.fixture
def folder(tmp_path, blobs, monkeypatch):
    """A folder to work in, with points and their classes in every format."""
    X, y = blobs
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "Xy.npz", X=X, y=y)
    names = [f"f{j}" for j in range(5)]
    lines = [",".join([*map(str, row), f"class {c}"]) for row, c in zip(X, y, strict=True)]
    (tmp_path / "Xy.csv").write_text("\n".join([",".join([*names, "kind"]), *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fitted(folder):
    run("fit", "X.npy", "-o", "out", "--n-neighbors", "10")
    return folder / "out"


def names(path):
    return sorted(entry.name for entry in path.iterdir())


# What the verbs do


def test_fit_writes_the_tree_that_the_library_makes(folder, blobs):
    out, err = run("fit", "X.npy", "-o", "deep/out", "-k", 10, "--labels", "y.npy", "--n-clusters", 3)
    assert names(folder / "deep/out") == FILES
    tree = agglo.Hierarchy.load("deep/out/tree.parquet")
    expected = agglo.scc(agglo.neighbor_graph(blobs[0], n_neighbors=10))
    assert_same_hierarchy(tree, expected)
    labels = pq.read_table("deep/out/labels.parquet")["label"].to_numpy()
    np.testing.assert_array_equal(labels, expected.cut(n_clusters=3))
    assert err == ""
    assert re.search(r"labels +3 clusters \(round \d+, closest to 3\); largest 40 40 40\n", out)
    assert "1.000 dendrogram purity, against 3 known classes" in out
    assert re.search(r"written +deep/out/tree\.parquet, deep/out/labels\.parquet, deep/out/run\.json\n", out)


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
        (["--metric", "sqeuclidean"], lambda graph: agglo.scc(graph)),
        (["--metric", "euclidean", "-k", "all"], lambda graph: agglo.scc(graph)),
        (["--metric", "dot", "--linkage", "single"], lambda graph: agglo.scc(graph, linkage="single")),
        (["-a", "affinity", "--linkage", "complete"], lambda graph: agglo.affinity(graph, linkage="complete")),
        (["-a", "hac", "-j", "2"], lambda graph: agglo.hac(graph)),
        (["--thresholds", "linear", "--n-thresholds", "7"], lambda graph: agglo.scc(graph, "linear", 7)),
        (["--thresholds", "0.9,0.5,0.1"], lambda graph: agglo.scc(graph, [0.9, 0.5, 0.1])),
        (["--advance", "until-stable"], lambda graph: agglo.scc(graph, advance="until-stable")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_option_reaches_the_algorithm(folder, blobs, options, make):
    run("fit", "X.npy", "-o", "out", *options)
    metric = options[1] if "--metric" in options else "cosine"
    graph = agglo.neighbor_graph(blobs[0], "all" if "all" in options else 25, metric=metric)
    assert_same_hierarchy(agglo.Hierarchy.load("out/tree.parquet"), make(graph))


def test_without_a_rule_labels_are_of_the_persistent_round(fitted):
    tree = agglo.Hierarchy.load(fitted / "tree.parquet")
    labels = pq.read_table(fitted / "labels.parquet")["label"].to_numpy()
    np.testing.assert_array_equal(labels, tree.cut(round="persistent"))


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
    assert record == json.loads((folder / "out/run.json").read_text())
    assert record["parameters"] == {
        "metric": "cosine",
        "n_neighbors": 25,
        "method": "auto",
        "recall": 0.95,
        "seed": 0,
        "algorithm": "scc",
        "linkage": "average",
        "threads": len(os.sched_getaffinity(0)),
    }
    assert record["data"]["points"] == 120
    assert record["rounds"][0]["before"] == 120
    assert record["rounds"][-1]["after"] == record["tree"]["fewest_clusters"]
    assert record["labels"]["rule"] == {"round": "persistent"}
    assert set(record["versions"]) == {"python", "numpy", "scipy", "pyarrow"}
    assert err == ""
    for words in (["cut", "out", "--round", "-1"], ["eval", "out", "--labels", "y.npy"], ["info", "out"]):
        assert json.loads(run(*words, "--json")[0])
        assert run(*words, "--quiet") == ("", "")


def test_quiet_says_nothing(folder):
    assert run("fit", "X.npy", "-o", "out", "-q") == ("", "")


def test_warnings_are_one_line_each(folder):
    out, err = run("fit", "Xy.csv", "-o", "out", "-q")
    assert out == ""
    assert err == "warning: Xy.csv: left out 'kind', not being numbers; choose columns with --columns\n"


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
    assert "written  nothing; --out labels.csv keeps the labels" in out
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
    assert run("--version")[0] == f"agglo {agglo.__version__}\n"


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
    assert names(tmp_path / "agglo-demo") == ["labels.parquet", "picture.png", "run.json", "tree.parquet"]
    assert (tmp_path / "agglo-demo/picture.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((tmp_path / "agglo-demo/run.json").read_text())
    assert record["scores"]["dendrogram_purity"] > 0.85
    assert record["labels"]["clusters"] == 10


def test_demo_without_matplotlib_says_how_to_get_the_picture(tmp_path):
    result = driven("import sys; sys.modules['matplotlib'] = None", "demo", "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert result.stderr == "note: no picture, for matplotlib is not installed: pip install 'agglo[plot]'\n"
    assert "dendrogram purity" in result.stdout
    assert names(tmp_path / "out") == FILES


# What goes wrong


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("fit nope.npy", 3, r"nope\.npy cannot be read: there is no such file; check its name"),
        ("fit y.npy", 3, r"y\.npy holds no points that can be clustered: X is one-dimensional"),
        ("fit nan.npy", 3, r"nan\.npy holds no points that can be clustered: X\[1, 0\] is nan"),
        ("fit empty.csv", 3, r"empty\.csv cannot be read: .*Empty CSV file"),
        ("fit cut.parquet", 3, r"cut\.parquet cannot be read: it is damaged, cut short"),
        ("fit X.npy --labels short.npy", 3, "there are 3 known classes for 120 points: pass one a point"),
        ("fit X.npy --labels unlike.npy", 3, "no two of 120 points are of the same known class"),
        ("fit Xy.csv --label-column no", 3, r"Xy\.csv has no column 'no', but 'f0'"),
        ("fit X.npy -k 0", 2, "n_neighbors=0 must be at least 1"),
        ("fit X.npy -k many", 2, "--n-neighbors many is neither a whole number nor 'all'"),
        ("fit X.npy --metric manhattan", 2, "'manhattan' is not one of 'cosine'"),
        ("fit X.npy --thresholds 0.1,0.9", 2, "thresholds must be strictly decreasing"),
        ("fit X.npy --thresholds 0.9,x", 2, "--thresholds 0.9,x is neither a name nor a list of numbers"),
        ("fit X.npy --thresholds cubic", 2, "thresholds='cubic' is unknown: pass one of odds"),
        ("fit X.npy --n-thresholds 0", 2, "n_thresholds=0 must be a positive integer"),
        ("fit X.npy -a hac --n-thresholds 5", 2, "--algorithm hac has no thresholds: leave out --n-thresholds"),
        ("fit X.npy --n-clusters 121", 2, "n_clusters=121 is impossible: the tree has 120 leaves"),
        ("fit X.npy --n-clusters 3 --height 1", 2, "a cut follows one rule, got --n-clusters and --height"),
        ("fit X.npy --round last", 2, "--round last is neither a whole number nor 'persistent'"),
        ("fit X.npy --round 9999", 2, "round=9999 is out of range"),
        ("fit X.npy --height nan", 2, "height=nan cuts nowhere"),
        ("fit X.npy -j 0", 2, "n_jobs=0 is not a number of threads"),
    ],
)
def test_a_run_that_fails_says_why_and_writes_nothing(folder, words, code, message):
    np.save("nan.npy", np.array([[1.0, 2.0], [np.nan, 3.0]]))
    np.save("short.npy", np.arange(3))
    np.save("unlike.npy", np.arange(120))
    Path("empty.csv").touch()
    Path("cut.parquet").write_bytes(b"PAR1 and then no more")
    before = names(folder)
    out, err = run(*words.split(), "-o", "out/deep", code=code)
    assert out == ""
    plain = re.sub(r"\s+", " ", re.sub(r"[│╭╮╰╯─]", "", err))
    assert re.search(message, plain), err
    assert names(folder) == before


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("cut out", 2, "a cut needs a rule: pass one of --n-clusters, --round and --height"),
        ("cut out --n-clusters 0", 2, "n_clusters=0 is impossible"),
        ("cut out --n-clusters 3 -o labels.txt", 2, r"labels cannot be written to labels\.txt: end the name"),
        ("cut out --n-clusters 3 -o no/labels.csv", 4, "there is no folder .*no; make it first"),
        ("cut nowhere --n-clusters 3", 3, "cannot read nowhere: there is no such folder or file"),
        ("cut . --n-clusters 3", 3, r"\. holds no run: there is no tree\.parquet in it"),
        ("cut X.npy --n-clusters 3", 3, r"X\.npy holds no tree of agglo's"),
        ("eval out --labels X.npy", 3, r"holds an array of shape \(120, 5\): labels are one-dimensional"),
        ("info broken", 3, r"run\.json is damaged \(Expecting value.*\): run agglo fit again"),
    ],
)
def test_verbs_that_read_a_run_say_what_is_wrong_with_it(fitted, words, code, message):
    (fitted.parent / "broken").mkdir()
    (fitted.parent / "broken/run.json").touch()
    (fitted.parent / "broken/tree.parquet").write_bytes((fitted / "tree.parquet").read_bytes())
    out, err = run(*words.split(), code=code)
    assert out == ""
    assert err.startswith("error: ")
    assert re.search(message, err)


def test_usage_errors():
    for words in ([], ["frobnicate"], ["fit"], ["fit", "X.npy"], ["fit", "X.npy", "-o", "out", "--what"]):
        run(*words, code=2)


def test_a_folder_with_other_things_in_it_is_left_alone(folder):
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("words")
    _, err = run("fit", "X.npy", "-o", "mine", code=4)
    assert "will not write to mine: it is not empty and no run of agglo's (it has 'thesis.tex')" in err
    assert names(folder / "mine") == ["thesis.tex"]
    run("fit", "X.npy", "-o", "mine", "--force")
    assert names(folder / "mine") == [*FILES[:2], "thesis.tex", FILES[2]]
    Path("mine/run.json").write_text('{"something": "else"}')
    run("fit", "X.npy", "-o", "mine", code=4)
    _, err = run("fit", "X.npy", "-o", "X.npy", code=4)
    assert "cannot write to X.npy: it is a file; pass the name of a folder" in err


def test_a_run_replaces_a_run_and_fills_an_empty_folder(folder):
    Path("out").mkdir()
    run("fit", "X.npy", "-o", "out")
    run("fit", "X.npy", "-o", "out", "-a", "hac")
    assert json.loads((folder / "out/run.json").read_text())["parameters"]["algorithm"] == "hac"
    assert names(folder / "out") == FILES


# The end can come at any time


def signalled(where, name):
    """Lines of Python that send this process a signal in the middle of something."""
    send = f"os.kill(os.getpid(), signal.{name})"
    if where == "searching":
        return f"""
            import os, signal, contextlib, agglo.progress

            @contextlib.contextmanager
            def bar(enabled=True):
                def show(phase, done, total):
                    if phase == "neighbours":
                        {send}
                yield show

            agglo.progress.progress_bar = bar
            """
    return f"""
        import os, signal, agglo.runfolder

        def write(*args, **kwargs):  # the tree is written already, under a name of its own
            {send}

        agglo.runfolder.write_labels = write
        """


@pytest.mark.parametrize("where", ["searching", "writing"])
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGKILL", -9)])
def test_a_run_that_is_stopped_leaves_nothing_that_looks_whole(folder, where, name, code):
    before = names(folder)
    result = driven(signalled(where, name), "fit", "X.npy", "-o", "out")
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    if name == "SIGKILL":  # nobody can clean up after that, but no file has its name yet
        assert not any((folder / "out" / file).exists() for file in FILES)
    else:
        assert names(folder) == before
    if name == "SIGINT":
        assert result.stderr == "error: interrupted\n"
    run("fit", "X.npy", "-o", "out")
    assert_same_hierarchy(runfolder.load_tree(folder / "out"), agglo.Hierarchy.load("out/tree.parquet"))


def test_ctrl_c_at_a_terminal_while_the_bar_is_drawn(folder):
    np.save("large.npy", np.random.default_rng(0).normal(size=(60_000, 64)).astype(np.float32))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "import agglo.cli; agglo.cli.main()", "fit", "large.npy", "-o", "out"]
    process = subprocess.Popen(command, stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    seen = b""
    while b"neighbours" not in seen:
        assert select.select([ours], [], [], 60)[0], seen
        seen += os.read(ours, 1024)
    process.send_signal(signal.SIGINT)
    try:
        while True:  # go on reading, or the bar could block
            assert select.select([ours], [], [], 60)[0], seen
            seen += os.read(ours, 1024)
    except OSError:  # the other end is closed
        os.close(ours)
    assert process.communicate(timeout=60) == (b"", None)
    assert process.returncode == 130
    assert seen.endswith(b"interrupted\r\n")
    assert not (folder / "out").exists()


def test_a_full_disk_is_an_error_that_leaves_no_file(folder):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    before = names(folder)
    result = driven(full, "fit", "X.npy", "-o", "deep/out")
    assert result.returncode == 4
    assert re.fullmatch(r"error: nothing was written to deep/out: .*File too large.*\n", result.stderr), (
        result.stderr
    )
    assert names(folder) == before
    run("fit", "X.npy", "-o", "out", "-a", "hac")
    whole = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert driven(full, "fit", "X.npy", "-o", "out").returncode == 4
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == whole  # the old run stays
    result = driven(full, "cut", "out", "--round", "0", "-o", "labels.csv", "-q")
    assert result.returncode == 0  # small enough


def test_a_result_that_cannot_be_printed_is_an_error(fitted):
    command = [sys.executable, "-c", "import agglo.cli; agglo.cli.main()", "info", str(fitted)]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 4
    assert result.stderr == "error: the result could not be printed: No space left on device\n"


def test_too_little_memory_is_an_error_of_its_own(folder, monkeypatch):
    def exhausted(*_args, **_kwargs):
        raise MemoryError("4 TB")

    monkeypatch.setattr("agglo.pipeline.neighbor_graph", exhausted)
    _, err = run("fit", "X.npy", "-o", "out", code=5)
    assert err == "error: not enough memory (4 TB): take fewer points or fewer neighbours\n"
    assert not (folder / "out").exists()


# The command line and the rest of the project say the same


def test_the_names_to_choose_from_are_those_of_the_library():
    hints = get_type_hints(cli.fit.fit)
    assert set(get_args(hints["metric"])) == set(METRICS)
    assert get_args(hints["method"]) == METHODS
    assert set(get_args(hints["linkage"])) == set(LINKAGES)
    assert set(get_args(get_args(hints["advance"])[0])) == set(ADVANCES)


def test_every_verb_option_and_exit_code_is_documented():
    text = (Path(__file__).parent.parent / "docs/cli.md").read_text()
    for verb, command in typer.main.get_command(cli.app).commands.items():
        assert f"agglo {verb}" in text
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or f"`{option}" in text, (verb, option)
    for code in (cli.USAGE, cli.BAD_INPUT, cli.CANNOT_WRITE, cli.NO_MEMORY, cli.INTERRUPTED, cli.TERMINATED):
        assert f"| {code} |" in text


def test_plot_draws_a_run(folder):
    run("fit", "X.npy", "-o", "out", "-k", "10", "--quiet")
    for kind, points in (("overview", []), ("dendrogram", []), ("dp-means", ["--data", "X.npy"])):
        told, _ = run("plot", "out", "--kind", kind, *points, "-o", f"{kind}.png", "--json")
        assert json.loads(told)["written"] == f"{kind}.png"
        assert Path(f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert "--kind dp-means needs the points" in run("plot", "out", "--kind", "dp-means", code=cli.USAGE)[1]
    np.save("few.npy", np.ones((3, 5)))
    _, errors = run("plot", "out", "--kind", "dp-means", "--data", "few.npy", code=cli.BAD_INPUT)
    assert "few.npy has 3 points, but the tree has 120: pass its own" in errors
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
