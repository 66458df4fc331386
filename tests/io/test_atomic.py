import os
import signal
from pathlib import Path

import pytest

from agglo.io.atomic import JOURNAL, LOCK, read_consistently, replace_file, replace_files, resolve_file


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch):
    """Do not wait for the disk: what processes see does not depend on it."""
    monkeypatch.setattr(os, "fsync", lambda _file: None)


def write(folder, text, *names, removed=()):
    with replace_files(folder, names, lambda: removed) as temporary:
        for name in names:
            (temporary / name).write_text(text)


def read(folder):
    """What a reader finds in a folder that may have a journal."""
    names = ("a", "b", "c")
    return {name: resolve_file(folder, name).read_text() for name in names if resolve_file(folder, name).exists()}


def test_several_files_are_switched_together(tmp_path):
    folder = tmp_path / "deep" / "er"
    write(folder, "old", "a", "b")
    (folder / "mine").touch()
    with replace_files(folder, ["b", "c"], lambda: ["a", "b"]) as temporary:
        (temporary / "b").write_text("new")
        (temporary / "c").write_text("new")
        assert read(folder) == {"a": "old", "b": "old"}
    assert read(folder) == {"b": "new", "c": "new"}
    assert sorted(entry.name for entry in folder.iterdir()) == ["b", "c", "mine"]


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
@pytest.mark.parametrize("is_new", [False, True])
def test_if_one_file_cannot_be_written_all_stay_as_they_were(tmp_path, error, is_new):
    folder = tmp_path / "new" / "deep" if is_new else tmp_path
    if not is_new:
        write(folder, "old", "a")

    def fail():
        with replace_files(folder, ["a", "b"], list) as temporary:
            (temporary / "a").write_text("new")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert list(tmp_path.iterdir()) == ([] if is_new else [tmp_path / "a"])
    assert read(folder) == ({} if is_new else {"a": "old"})


def test_a_file_that_was_not_written_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), replace_files(tmp_path, ["a", "b"], list) as temporary:
        (temporary / "a").touch()
    assert list(tmp_path.iterdir()) == []


def start_child(work):
    """Do ``work`` in a process of its own, which ends by a signal or with code 0 or 1; return its id."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def in_child(work):
    """Do ``work`` in a process of its own; return its status at the end."""
    return os.waitpid(start_child(work), 0)[1]


def kill_at_event(wanted, before):
    """Return a hook that kills the process at the ``wanted``-th call that changes a folder or flushes a file."""
    calls = 0

    def kill(call):
        def counted(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == wanted and before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **kwargs)
            if calls == wanted:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counted

    for name in ("open", "fsync", "mkdir", "rename", "replace", "unlink", "rmdir"):
        setattr(os, name, kill(getattr(os, name)))


def test_a_writer_killed_anywhere_leaves_the_old_files_or_the_new_ones(tmp_path):
    seen = []
    for wanted in range(1, 200):
        folder = tmp_path / str(wanted)
        write(folder, "old", "a", "b")
        (folder / "mine").touch()

        def work(folder=folder, wanted=wanted):
            kill_at_event(wanted, before=True)
            write(folder, "new", "b", "c", removed=["a", "b"])

        status = in_child(work)
        found = read(folder)
        assert found in ({"a": "old", "b": "old"}, {"b": "new", "c": "new"})
        seen.append(found["b"])
        write(folder, "newest", "a", removed=["a", "b", "c"])  # no leftovers disturb the next writer, or stay
        assert sorted(entry.name for entry in folder.iterdir()) == ["a", "mine"]
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
    else:
        raise AssertionError("the writer never came to its end")
    assert len(seen) > 20  # kills
    assert seen == sorted(seen, reverse=True)  # the switch is at one point: old before it, new after


def test_writers_of_one_folder_wait_for_each_other_and_leave_no_lock(tmp_path):
    def work():
        for _ in range(20):
            write(tmp_path, str(os.getpid()), "a", "b")

    children = [start_child(work) for _ in range(4)]
    mixtures = 0
    while children:
        found = read_consistently(tmp_path, ["a"], lambda: read(tmp_path))
        mixtures += len(set(found.values())) > 1
        done, status = os.waitpid(children[0], os.WNOHANG)
        if done:
            assert status == 0
            children.pop(0)
    assert mixtures == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b"]


def test_leftovers_are_removed_but_not_those_of_a_writer_at_work(tmp_path):
    (tmp_path / ".agglo-0123.tmp").touch()
    with replace_file(tmp_path / "a") as partial:
        assert not (tmp_path / ".agglo-0123.tmp").exists()
        partial.write_text("one")
        with replace_file(tmp_path / "b") as other:
            other.write_text("two")
        assert partial.exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b"]


def test_a_journal_that_would_reach_out_of_its_folder_is_an_error(tmp_path):
    victim = tmp_path / "victim"
    victim.touch()
    folder = tmp_path / "run"
    (folder / JOURNAL).mkdir(parents=True)
    (folder / JOURNAL / "journal.json").write_text('{"files": [], "removed": ["../victim"]}')
    with pytest.raises(ValueError, match=r"journal\.json is damaged: remove .* and write the files again"):
        write(folder, "new", "a")
    assert victim.exists()
    assert not (folder / LOCK).exists()


def test_a_folder_in_the_place_of_a_file_is_found_before_anything_is_written(tmp_path):
    (tmp_path / "b").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder; remove it"):
        write(tmp_path, "new", "a", "b")
    assert list(Path(tmp_path).iterdir()) == [tmp_path / "b"]
