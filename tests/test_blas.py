"""BLAS in a process with several threads, and in its children."""

import subprocess
import sys

from agglo import blas

_FORKS = """
import os, signal, sys, threading
import numpy as np
from agglo import neighbor_graph

X = np.random.default_rng(0).normal(size=(1500, 20)).astype(np.float32)

def search():
    graph = neighbor_graph(X, 10, "sqeuclidean", "exact", n_jobs=2)
    return graph.indices.tobytes() + graph.weights.tobytes()

expected, done = search(), threading.Event()

def search_on():
    while not done.is_set():
        assert search() == expected

thread = threading.Thread(target=search_on)
thread.start()
for _ in range(8):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that hangs
        os._exit(0 if search() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
done.set()
thread.join()
print("same")
"""


def test_a_process_may_fork_while_another_thread_searches():
    command = [sys.executable, "-W", "ignore", "-c", _FORKS]  # newer Pythons warn of forks beside threads
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout == "same\n", done.stderr


def test_an_exception_while_a_search_begins_does_not_leave_it_listed():
    """A search that stays listed would limit BLAS for good, and let forks of other threads wait forever."""
    events = 0

    def interrupt(at):
        nonlocal events
        events = 0

        def count(*_):
            nonlocal events
            events += 1
            if events == at:
                raise KeyboardInterrupt

        sys.setprofile(count)
        try:
            with blas.one_blas_thread():
                sys.setprofile(None)
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)

    interrupt(-1)  # the first search takes more events
    interrupt(-1)
    for at in range(events - 15, events - 3):  # the last three are those of leaving the generator
        interrupt(at)
        assert blas._Searches.entries == []
