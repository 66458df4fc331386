import json
import subprocess
import sys

import pytest

from agglo.spark.owner import Owner, Ownership


@pytest.fixture
def lines():
    """The records of a folder."""
    return []


@pytest.fixture
def comes(lines):
    """Another driver that comes to the folder."""
    return lambda: Ownership("the/run", lambda: list(lines), lines.append)


def test_a_folder_goes_from_one_to_the_next(lines, comes):
    for _ in range(2):
        with comes().held():
            pass
    records = [Owner(**json.loads(line)) for line in lines]
    assert [(record.number, record.ended) for record in records] == [(1, False), (1, True), (2, False), (2, True)]


def test_two_at_once_are_refused(lines, comes):
    refused = (
        r"process \d+ on \S+ is at work on the run in the/run: wait for it or stop it, .* delete the/run/owners"
    )
    with comes().held(), pytest.raises(FileExistsError, match=refused), comes().held():
        pass
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lines.append(json.dumps(json.loads(lines[-1]) | {"number": 7, "process": other.pid, "ended": False}))
    try:
        with pytest.raises(FileExistsError, match=f"process {other.pid} on"), comes().held():
            pass
    finally:
        other.communicate(b"\n")
    with comes().held():  # now that the other is dead
        pass


def test_one_that_may_live_elsewhere_is_taken_over_and_stops(comes):
    old, new = comes(), comes()
    with old.held():
        old.check()
        new._append(json.dumps(Owner(2, new.token, "elsewhere", 1)._asdict()))
        with pytest.raises(FileExistsError, match="taken over by process 1 on elsewhere: this one stops, and"):
            old.check()
    new.check()
    with comes().held():
        pass


def test_of_two_that_come_at_the_same_time_one_stays(lines, comes):
    first, second = comes(), comes()
    lines += [json.dumps(Owner(1, owner.token, "a", 1)._asdict()) for owner in (first, second)]
    lost = min(first, second, key=lambda owner: owner.token)
    max(first, second, key=lambda owner: owner.token).check()
    with pytest.raises(FileExistsError, match="taken over"):
        lost.check()


def test_one_that_fails_leaves_the_folder(lines, comes):
    with pytest.raises(KeyboardInterrupt), comes().held():
        raise KeyboardInterrupt
    with comes().held():
        pass

    def full(line):
        if '"ended": true' in line:
            raise OSError("the disk is full")
        lines.append(line)

    with pytest.raises(ValueError) as found, Ownership("the/run", lambda: list(lines), full).held():
        raise ValueError
    assert found.value.__notes__ == ["and the/run/owners does not say that the run has ended: the disk is full"]
