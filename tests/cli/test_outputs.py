"""Outputs that cannot be written are found before any input is read."""

import errno
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from cli_runs import FILES, driven, names, run

from agglo.estimators import run_folder as runfolder
from agglo.explore.mapped_tree import load_mapped


@pytest.fixture
def outputs(tmp_path, monkeypatch):
    """A folder with links, files and folders in the way."""
    monkeypatch.chdir(tmp_path)
    Path("dangling").symlink_to("nowhere")
    Path("far").symlink_to("no/where/labels.csv")
    Path("loop").symlink_to("loop")
    Path("loop.csv").symlink_to("loop.csv")
    Path("file").touch()
    Path("in-file.csv").symlink_to("file/labels.csv")
    Path("folder.csv").mkdir()
    Path("taken/tree.parquet").mkdir(parents=True)
    return tmp_path


FOLDERS = [
    ("file", r"cannot write to file: it is a file; pass the name of a folder"),
    ("file/deep", r"cannot write to file/deep: \S*file is a file; pass the name of a folder"),
    (
        "dangling",
        r"dangling: it is a link to \S*nowhere, which does not exist; create that folder, or remove",
    ),
    (
        "dangling/deep",
        r"dangling/deep: \S*dangling is a link to \S*nowhere, which does not exist; create that folder",
    ),
    ("x" * 300, r"cannot write to x+: File name too long; choose another folder"),
    ("loop", r"cannot write to loop: it is a link to itself; remove it"),
    ("loop/deep", r"loop.* link to itself; remove it"),
    ("/proc/agglo", r"cannot write to /proc: .*; choose another folder"),  # not even for root
    ("taken", r"cannot write taken/tree\.parquet: it is a folder; remove it, or choose another folder"),
]
NAMES = [
    ("no/labels.csv", r"there is no folder \S*no; create it first"),
    ("far/labels.csv", r"cannot write"),
    ("loop.csv", r"cannot write loop\.csv: it is a link to itself; remove it"),
    ("folder.csv", r"folder\.csv: it is a folder; pass the name of a file"),
    ("x" * 300 + ".csv", r"cannot write x+\.csv: File name too long; choose another file"),
    ("in-file.csv", r"cannot write in-file\.csv: \S*/file is a file; pass the name of a folder"),
    ("file/labels.csv", r"cannot write file/labels\.csv: file is a file; pass the name of a folder"),
    ("/proc/labels.csv", r"cannot write to /proc: .*; choose another folder"),
]


@pytest.mark.parametrize(("out", "message"), FOLDERS)
@pytest.mark.parametrize("verb", [("fit", "missing.npy"), ("text", "missing.txt"), ("demo",)])
def test_a_folder_that_cannot_be_written(outputs, verb, out, message):
    before = names(outputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agglo.SCC.fit", lambda *_args, **_kwargs: pytest.fail("the work has begun"))
        _, err = run(*verb, "-o", out, *(["--force"] if out == "taken" else []), code=4)
    assert re.search(message, err), err
    assert names(outputs) == before


@pytest.mark.parametrize(("out", "message"), NAMES)
@pytest.mark.parametrize(
    "verb", [("cut", "missing", "--round", "0", "-o"), ("predict", "missing", "missing.npy", "-o")]
)
def test_a_file_that_cannot_be_written(outputs, verb, out, message):
    _, err = run(*verb, out, code=4)
    assert re.search(message, err), err


def test_pictures_and_pages_that_cannot_be_written(outputs):
    for words in (("plot", "missing", "-o", "no/tree.png"), ("explore", "missing", "--html", "no/page.html")):
        _, err = run(*words, code=4)
        assert "there is no folder" in err


def test_a_full_disk_is_found_before_the_work_and_named(outputs, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr(os, "fsync", full)
    for words in (("fit", "missing.npy", "-o", "new"), ("cut", "missing", "--round", "0", "-o", "labels.csv")):
        _, err = run(*words, code=4)
        assert err == f"error: there is no space left in {outputs}: free some, or choose another folder\n"
    assert not Path("new").exists()


def test_a_full_temporary_folder_is_no_damaged_file(folder, monkeypatch):

    run("fit", "X.npy", "-j", "1", "-o", "out")

    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"there is no space left in .*TMPDIR") as caught:
        load_mapped("out/tree.parquet")
    assert caught.value.errno == errno.ENOSPC
    assert tempfile.gettempdir() in str(caught.value)
    _, err = run("explore", "out", "--html", "page.html", code=4)
    assert "there is no space left in" in err
    assert "damaged" not in err


def test_names_that_are_not_utf8_are_written_and_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", np.random.default_rng(0).normal(size=(40, 3)))
    out = Path(os.fsdecode(b"run-\xff"))
    labels = os.fsdecode(b"l-\xff.")
    for words in (
        ("fit", "X.npy", "-k", "5", "-j", "1", "-o", out),
        *(("cut", out, "--round", "1", "-o", labels + form) for form in ("csv", "npy", "parquet")),
        ("explore", out, "--html", labels + "html"),
    ):
        result = driven("", *words)
        assert (result.returncode, result.stderr) == (0, "")
    assert names(out) == FILES
    assert [Path(labels + form).stat().st_size > 20 for form in ("csv", "npy", "parquet", "html")] == [True] * 4
    assert runfolder.load_tree(out).n_leaves == 40
    result = driven("", "fit", "X.npy", "-o", labels + "npy")
    assert result.returncode == 4
    assert "it is a file; pass the name of a folder" in result.stderr
