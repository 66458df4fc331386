import json
import subprocess
import sys

import pytest

from agglo.spark.folder import FolderLock, Owner


@pytest.fixture
def lines():
    """Provide the records of a folder."""
    return []


@pytest.fixture
def new_lock(lines):
    """Provide a function that creates the lock of another driver."""
    return lambda: FolderLock("the/run", lambda: list(lines), lines.append)


def test_a_released_folder_can_be_acquired_again(lines, new_lock):
    for _ in range(2):
        with new_lock().acquire():
            pass
    records = [Owner(**json.loads(line)) for line in lines]
    assert [(record.number, record.ended) for record in records] == [(1, False), (1, True), (2, False), (2, True)]


def test_a_second_driver_is_refused(lines, new_lock):
    refused = (
        r"process \d+ on \S+ is working on the run in the/run: wait for it or stop it, .* delete the/run/owners"
    )
    with new_lock().acquire(), pytest.raises(FileExistsError, match=refused), new_lock().acquire():
        pass
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lines.append(json.dumps(json.loads(lines[-1]) | {"number": 7, "process": other.pid, "ended": False}))
    try:
        with pytest.raises(FileExistsError, match=f"process {other.pid} on"), new_lock().acquire():
            pass
    finally:
        other.communicate(b"\n")
    with new_lock().acquire():  # now that the other is dead
        pass


def test_a_driver_on_another_host_is_taken_over_and_stops(new_lock):
    old, new = new_lock(), new_lock()
    with old.acquire():
        old.check()
        new._append(json.dumps(Owner(2, new.token, "elsewhere", 1)._asdict()))
        with pytest.raises(FileExistsError, match="taken over by process 1 on elsewhere: this process stops"):
            old.check()
    new.check()
    with new_lock().acquire():
        pass


def test_of_two_concurrent_drivers_one_keeps_the_folder(lines, new_lock):
    first, second = new_lock(), new_lock()
    lines += [json.dumps(Owner(1, owner.token, "a", 1)._asdict()) for owner in (first, second)]
    lost = min(first, second, key=lambda owner: owner.token)
    max(first, second, key=lambda owner: owner.token).check()
    with pytest.raises(FileExistsError, match="taken over"):
        lost.check()


def test_a_failed_driver_releases_the_folder(lines, new_lock):
    with pytest.raises(KeyboardInterrupt), new_lock().acquire():
        raise KeyboardInterrupt
    with new_lock().acquire():
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
