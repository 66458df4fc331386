import json
import subprocess
import sys

import pytest

from agglo.spark.lock import FolderLock, Owner


@pytest.fixture
def lines():
    """The records of a folder."""
    return []


@pytest.fixture
def comes(lines):
    """Another driver that comes to the folder."""
    return lambda: FolderLock("the/run", lambda: list(lines), lines.append)


def test_a_folder_goes_from_one_to_the_next(lines, comes):
    for _ in range(2):
        with comes().acquire():
            pass
    records = [Owner(**json.loads(line)) for line in lines]
    assert [(record.number, record.ended) for record in records] == [(1, False), (1, True), (2, False), (2, True)]


def test_two_at_once_are_refused(lines, comes):
    refused = (
        r"process \d+ on \S+ is working on the run in the/run: wait for it or stop it, .* delete the/run/owners"
    )
    with comes().acquire(), pytest.raises(FileExistsError, match=refused), comes().acquire():
        pass
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lines.append(json.dumps(json.loads(lines[-1]) | {"number": 7, "process": other.pid, "ended": False}))
    try:
        with pytest.raises(FileExistsError, match=f"process {other.pid} on"), comes().acquire():
            pass
    finally:
        other.communicate(b"\n")
    with comes().acquire():  # now that the other is dead
        pass


def test_one_that_may_live_elsewhere_is_taken_over_and_stops(comes):
    old, new = comes(), comes()
    with old.acquire():
        old.check()
        new._append(json.dumps(Owner(2, new.token, "elsewhere", 1)._asdict()))
        with pytest.raises(FileExistsError, match="taken over by process 1 on elsewhere: this process stops"):
            old.check()
    new.check()
    with comes().acquire():
        pass


def test_of_two_that_come_at_the_same_time_one_stays(lines, comes):
    first, second = comes(), comes()
    lines += [json.dumps(Owner(1, owner.token, "a", 1)._asdict()) for owner in (first, second)]
    lost = min(first, second, key=lambda owner: owner.token)
    max(first, second, key=lambda owner: owner.token).check()
    with pytest.raises(FileExistsError, match="taken over"):
        lost.check()


def test_one_that_fails_leaves_the_folder(lines, comes):
    with pytest.raises(KeyboardInterrupt), comes().acquire():
        raise KeyboardInterrupt
    with comes().acquire():
        pass

    def full(line):
        if '"ended": true' in line:
            raise OSError("the disk is full")
        lines.append(line)

    with pytest.raises(ValueError) as found, FolderLock("the/run", lambda: list(lines), full).acquire():
        raise ValueError
    assert found.value.__notes__ == [
        "the end of the run could not be recorded in the/run/owners: the disk is full"
    ]
