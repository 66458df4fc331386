import contextlib
import gzip
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from children import TIMEOUT, python_child
from cli_runs import FILES, driven, names, run

import agglo
from agglo.estimators import run_folder as runfolder
from agglo.testing import assert_same_hierarchy

# What goes wrong


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("fit nope.npy", 3, r"nope\.npy cannot be read: there is no such file; check its name"),
        ("fit y.npy", 3, r"y\.npy cannot be clustered: X is one-dimensional"),
        ("fit nan.npy", 3, r"nan\.npy cannot be clustered: X contains NaN: X\[1, 0\] is nan"),
        ("fit empty.csv", 3, r"empty\.csv cannot be read: the file is empty"),
        ("fit cut.parquet", 3, r"cut\.parquet cannot be read: it is damaged, truncated"),
        ("fit X.npy --labels short.npy", 3, "there are 3 known classes for 120 points: pass one per point"),
        ("fit X.npy --labels unlike.npy", 3, "no two of 120 points are of the same known class"),
        ("fit Xy.csv --label-column no", 3, r"Xy\.csv has no column 'no': name one of 'f0'"),
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
        ("fit X.npy --round 9999", 2, "round=9999 is out of range: a tree of 120 leaves has at most 119 rounds"),
        ("fit X.npy --round -121", 2, "round=-121 is out of range"),
        ("fit nope.npy -k 0", 2, "n_neighbors=0 must be at least 1"),
        ("fit X.npy -j 999999", 2, "n_jobs=999999 is more than 1024 threads: pass the number of cores"),
        ("fit Xy.csv --columns ,", 2, "--columns , has an empty name: pass names of columns"),
        ("fit Xy.csv --columns f0,f0", 2, "--columns f0,f0 names 'f0' twice: name each once"),
        ("fit Xy.csv --columns f0 --drop f1", 2, "there is nothing to --drop: pass one of them"),
        ("fit Xy.csv --encoding utf-9", 2, "--encoding utf-9 is unknown"),
        ("fit Xy.csv --delimiter ;;", 2, "--delimiter ';;' cannot separate cells"),
        ("fit X.npy --height nan", 2, "height must not be NaN"),
        ("fit X.npy --height -1", 2, "height=-1 is not allowed: pass 0 or more"),
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
        ("cut out --n-clusters 3 -o no/labels.csv", 4, "there is no folder .*no; create it first"),
        ("cut nowhere --n-clusters 3", 3, "cannot read nowhere: there is no such folder or file"),
        ("cut . --n-clusters 3", 3, r"\. holds no run: there is no tree\.parquet in it"),
        ("cut X.npy --n-clusters 3", 3, r"X\.npy is not a tree file of agglo"),
        ("eval out --labels X.npy", 3, r"holds an array of shape \(120, 5\), but labels are one-dimensional"),
        ("predict out X.npy", 3, "holds no model, .*no model.json in it; run agglo fit again, with --keep-model"),
        (
            "predict nope X.npy",
            3,
            "nope is not a folder with a model: pass a folder that agglo fit --keep-model wrote",
        ),
        ("explore out --html a.html --items latin.csv", 3, "not encoded as utf-8 .*: save it as UTF-8"),
        (
            "text folder.csv -o t",
            3,
            r"folder\.csv cannot be read: it is a folder or a device: pass the name of a file",
        ),
        ("text semi.csv -o t", 3, r"semi.csv has the columns 'q', 'n': name the column of texts with --column"),
        ("text gz.csv -o t", 3, r"gz\.csv cannot be read as text: it is compressed by gzip: rename it"),
        ("text latin.csv -o t", 3, r"latin\.csv is not encoded as utf-8 \(byte 0xfc in line 2\): pass its enc"),
        ("text latin.csv --encoding utf-9 -o t", 2, "--encoding utf-9 is unknown"),
        ("info broken", 3, r"run\.json is damaged \(Expecting value.*\): run agglo fit again"),
    ],
)
def test_verbs_that_read_a_run_say_what_is_wrong_with_it(fitted, words, code, message):
    (fitted.parent / "broken").mkdir()
    (fitted.parent / "folder.csv").mkdir()
    (fitted.parent / "latin.csv").write_bytes("q\ngrün\n".encode("latin-1"))
    (fitted.parent / "semi.csv").write_text("q;n\nfrog;1\ntoad;2\n")
    (fitted.parent / "gz.csv").write_bytes(gzip.compress(b"q\n"))
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
    assert "will not write to mine: it is not empty and holds no run of agglo (it has 'thesis.tex')" in err
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
        import os, signal, agglo.estimators.run_folder

        def write(*args, **kwargs):  # the tree is written already, under a name of its own
            {send}

        agglo.estimators.run_folder.write_labels = write
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
    # The search takes some 20 CPU seconds, so that it still runs when the signal comes on a loaded machine.
    np.save("large.npy", np.random.default_rng(0).standard_normal((200_000, 100), dtype=np.float32))
    ours, theirs = pty.openpty()
    program, words = "import agglo.cli; agglo.cli.main()", ["fit", "large.npy", "-o", "out", "--method", "exact"]
    with python_child(program, *words, stderr=theirs, stdout=subprocess.PIPE) as child, open(ours, "rb", 0) as bar:
        os.close(theirs)
        seen = b""
        while b"neighbours" not in seen:
            assert select.select([bar], [], [], TIMEOUT)[0], seen
            seen += bar.read(1024)
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # raised when the other end is closed
            while True:  # go on reading, or the bar could block
                assert select.select([bar], [], [], TIMEOUT)[0], seen
                seen += bar.read(1024)
        assert child.communicate(timeout=TIMEOUT) == (b"", None)
    assert child.returncode == 130
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


COMMAND = [sys.executable, "-c", "import agglo.cli; agglo.cli.main()"]


def test_a_reader_that_goes_ends_a_command_without_a_word(folder):
    shut, closed = os.pipe()
    os.close(shut)
    for words in (["fit", "Xy.csv", "-o", "out"], ["info", "out", "--json"]):
        result = subprocess.run([*COMMAND, *words], stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
        assert result.returncode == 141
        assert re.fullmatch(r"(warning: Xy\.csv: left out 'kind'.*\n)?", result.stderr), result.stderr
    assert names(folder / "out") == FILES
    # A warning to a closed pipe does not end the command.
    assert subprocess.run([*COMMAND, "fit", "Xy.csv", "-o", "b", "-q"], stderr=closed, check=False).returncode == 0
    os.close(closed)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_closed(folder, closed):
    shell = ["bash", "-c", f'"$@" {closed}', "bash", *COMMAND]
    result = subprocess.run([*shell, "fit", "X.npy", "-o", "out"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert ("120 × 5" in result.stdout) == (">&-" not in closed.replace("2>&-", ""))
    assert names(folder / "out") == FILES
    result = subprocess.run([*shell, "info", "none"], capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["größe.csv", os.fsdecode(b"X\xff.csv"), os.fsdecode(b"X\xff.parquet")])
@pytest.mark.parametrize("settings", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {}])
def test_names_of_files_may_be_anything(folder, name, settings):
    frame = pd.DataFrame(np.load("X.npy"), columns=list("abcde"))
    content = frame.to_csv(index=False).encode() if name.endswith(".csv") else frame.to_parquet()
    with open(os.fsencode(name), "wb") as file:
        file.write(content)
    command = [*COMMAND, "fit", os.fsencode(name), "-o", b"out" + os.fsencode(name)]
    result = subprocess.run(command, capture_output=True, check=False, env={**os.environ, **settings})
    assert (result.returncode, result.stderr) == (0, b"")
    assert names(folder / ("out" + name)) == FILES


def test_the_folder_of_a_text_run_may_have_a_name_that_is_not_utf_8(folder):
    Path("texts.txt").write_text("".join(f"word {i} and word {i % 7}\n" for i in range(30)))
    name = os.fsdecode(b"out\xff")
    for words in (["text", "texts.txt", "-o", name, "-q"], ["explore", name, "--html", name + ".html", "-q"]):
        result = driven("", *words)
        assert (result.returncode, result.stderr) == (0, "")
    assert set(names(folder / name)) > set(FILES)


def test_no_color(fitted):
    ours, theirs = pty.openpty()
    for settings, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | settings
        subprocess.run([*COMMAND, "info", "nope"], stderr=theirs, check=False, env=environment)
        assert (b"\x1b[" in os.read(ours, 1024)) == coloured
    os.close(ours)
    os.close(theirs)


def test_too_little_memory_is_an_error_of_its_own(folder, monkeypatch):
    def exhausted(*_args, **_kwargs):
        raise MemoryError("4 TB")

    monkeypatch.setattr("agglo.estimators.scc.neighbor_graph", exhausted)
    _, err = run("fit", "X.npy", "-o", "out", code=5)
    assert err == "error: not enough memory (4 TB): take fewer points or fewer neighbours\n"
    assert not (folder / "out").exists()


@pytest.mark.parametrize(("form", "column"), [("csv", " ('class')"), ("npy", "")])
def test_points_of_one_column_have_no_cosines(folder, form, column):
    if column:
        (folder / "one.csv").write_text(
            "question,class\n" + "".join(f"what is {i % 9}?,{i % 7}\n" for i in range(40))
        )
    else:
        np.save("one.npy", np.arange(1.0, 41)[:, None])
    _, err = run("fit", f"one.{form}", "-o", "one", code=3)
    assert f"one.{form} has points of one column{column}, whose cosines are all 1" in err
    assert ("to cluster texts, run agglo text one.csv --column question" in err) == bool(column)
    assert not (folder / "one").exists()
    run("fit", f"one.{form}", "--metric", "euclidean", "-o", "one", "-q")
    assert (folder / "one/run.json").exists()
