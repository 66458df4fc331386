"""Writers that are killed at any point leave the old run or model, or the new one, and never a mixture."""

import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from cli_runs import run

import agglo
from agglo import cli
from agglo.estimators import run_folder as runfolder
from agglo.estimators.scc import load
from agglo.explore.run import open_run
from agglo.io.atomic import JOURNAL, resolve_file

KILLS = 16  # of each writer
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch):
    """Do not wait for the disk: what processes see does not depend on it."""
    monkeypatch.setattr(os, "fsync", lambda _file: None)


@pytest.fixture(scope="module", autouse=True)
def _imports(tmp_path_factory):
    """Run every writer once, so that processes forked from this one need not import what it needs."""
    folder = write_inputs(tmp_path_factory.mktemp("once"))
    run("fit", folder / "X.npy", "-k", "5", "-j", "1", "--keep-model", "-o", folder / "out")
    run("text", folder / "texts.txt", "-k", "5", "-j", "1", "-o", folder / "out")


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder with points and texts to work in."""
    monkeypatch.chdir(tmp_path)
    return write_inputs(tmp_path)


def write_inputs(folder):
    rng = np.random.default_rng(0)
    X = (4 * np.eye(5)[np.arange(80) % 5] + rng.normal(size=(80, 5))).astype(np.float32)
    np.save(folder / "X.npy", X)
    np.save(folder / "few.npy", X[:50])
    texts = [f"{word} number {i}" for i in range(15) for word in ("frog", "rhino", "snow leopard")]
    (folder / "texts.txt").write_text("\n".join(texts))
    return folder


def command(*words):
    def main():
        sys.argv = ["agglo", *words, "--jobs", "1", "--quiet", "-o", "out"]
        cli.main()

    return main


def save():
    agglo.SCC(n_neighbors=5, n_jobs=1).fit(np.load("few.npy")).save("out")


def add_points():
    model = agglo.load("out") if Path("out/model.json").exists() else agglo.SCC(n_neighbors=5, n_jobs=1)
    model.partial_fit(np.load("X.npy")).save("out")


FIT = command("fit", "X.npy", "-k", "5")
FIT_FEW = command("fit", "few.npy", "-k", "5")
FIT_MODEL = command("fit", "X.npy", "-k", "5", "--keep-model")
TEXT = command("text", "texts.txt", "-k", "5")


def fork(work, hook=None):
    """Start ``work`` in a process of its own; return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        messages = os.open("messages", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(messages, stream)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if hook is not None:
            sys.addaudithook(hook)
        work()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except KeyboardInterrupt:
        code = cli.INTERRUPTED
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def is_step(event, args):
    """Whether an audit event is about to change or open something in the folder ``out``."""
    return event in EVENTS and isinstance(args[0], str | bytes) and "out" in Path(os.fsdecode(args[0])).parts


def signal_at(wanted, number):
    """Return a hook that sends this process a signal before its ``wanted``-th step in the folder ``out``."""
    count = 0

    def hook(event, args):
        nonlocal count
        if is_step(event, args):
            count += 1
            if count == wanted:
                os.kill(os.getpid(), number)

    return hook


def count_steps(work):
    """Return the number of steps of ``work`` in the folder ``out``."""
    reader, writer = os.pipe()

    def hook(event, args):
        if is_step(event, args):
            os.write(writer, b".")

    assert os.waitpid(fork(work, hook), 0)[1] == 0
    os.close(writer)
    with open(reader, "rb") as pipe:
        return len(pipe.read())


def state(folder):
    """What our own readers find in a folder: everything that tells one run from another, all of it verified."""
    if not resolve_file(folder, runfolder.TREE).exists():
        return None

    def read(files):
        found = {name: files.find(name) is not None for name in runfolder.FILES - set(runfolder.RECORDS)}
        labels = files.find(runfolder.LABELS)
        n_labels = None if labels is None else len(agglo.io.points.read_labels(labels))
        return found, n_labels, files.record["files"]

    found, n_labels, digests = runfolder.read_run(folder, read)
    tree, record = runfolder.load_run(folder)
    opened = open_run(folder)
    assert opened.tree.n_leaves == tree.n_leaves
    assert n_labels in (None, tree.n_leaves)
    assert record is None or record["data"]["points"] == tree.n_leaves
    model = None
    if resolve_file(folder, runfolder.MODEL).exists():
        model = load(folder)
        assert model.tree_.n_leaves == len(model.labels_) == tree.n_leaves
    kind = (tree.n_leaves, opened.items.has_text, opened.names is not None, record is None, model is None)
    return kind, sorted(found.items()), digests


def assert_next_run_is_clean(folder):
    """Another writer completes or removes what was left behind, and the folder has its files and foreign ones."""
    tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    runfolder.save_run(folder, tree, tree.cut(2), {"agglo": "0", "data": {"points": 3}})
    names = {entry.name for entry in folder.iterdir()}
    assert names - {"mine"} == {runfolder.TREE, runfolder.LABELS, runfolder.RECORD}


@pytest.mark.slow  # starts and kills more than a hundred processes
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, FIT),
        (FIT_FEW, FIT),
        (TEXT, FIT),
        (FIT_FEW, TEXT),
        (FIT_MODEL, FIT_FEW),
        (FIT_FEW, FIT_MODEL),
        (None, save),
        (save, add_points),
    ],
    ids=[
        "a first fit",
        "fit after fit",
        "fit after text",
        "text after fit",
        "fit after fit with model",
        "fit with model after fit",
        "a first save",
        "partial_fit and save",
    ],
)
def test_a_killed_writer_leaves_the_old_state_or_the_new_one(work, old, new):
    out, before = work / "out", work / "before"
    if old is not None:
        assert os.waitpid(fork(old), 0)[1] == 0
        (out / "mine").write_text("a foreign file")
        shutil.copytree(out, before)
    was = state(out)
    n_steps = count_steps(new)
    became = state(out)
    assert became is not None
    assert was is None or was[0] != became[0]
    rng = np.random.default_rng(n_steps)
    steps = [1, n_steps - 5, *(rng.choice(n_steps, KILLS - 5, replace=False) + 1).tolist()]
    kinds = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
    points = [(step, kinds[i % 4]) for i, step in enumerate(steps)]
    seen = []
    for step, number in [*points, *[(None, signal.SIGKILL)] * 3]:
        shutil.rmtree(out, ignore_errors=True)
        if old is not None:
            shutil.copytree(before, out)
        if step is None:  # at any time
            child = fork(new)
            time.sleep(rng.uniform(0, 0.2))
            os.kill(child, number)
        else:
            child = fork(new, signal_at(step, number))
        status = os.waitpid(child, 0)[1]
        if step is not None and number == signal.SIGKILL:
            assert os.WIFSIGNALED(status), (step, status, Path("messages").read_text())
        found = state(out)
        is_old = found == was
        is_new = found is not None and found[:2] == became[:2]
        assert is_old or is_new, (step, number, found)
        if os.WIFEXITED(status) and is_old:  # it could clean up
            left = {entry.name for entry in out.iterdir()} if out.exists() else None
            assert left == ({entry.name for entry in before.iterdir()} if old is not None else None)
        if old is not None:
            assert (out / "mine").read_text() == "a foreign file"
        seen.append((step, is_new, (out / JOURNAL).exists()))
        if out.exists():
            assert_next_run_is_clean(out)
    assert {is_new for step, is_new, _ in seen if step} == {False, True}  # kills before the switch, and after
    assert any(journal for _, _, journal in seen)  # and in the middle of it
