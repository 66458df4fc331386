"""BLAS in a process with several threads, and in its children."""

import subprocess
import sys

import pytest
from children import TIMEOUT

from agglo import _native as blas

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
        signal.alarm(600)  # ends a child that hangs
        os._exit(0 if search() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
done.set()
thread.join()
print("same")
"""


def test_a_process_may_fork_while_another_thread_searches():
    command = [sys.executable, "-W", "ignore", "-c", _FORKS]  # newer Pythons warn of forks beside threads
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout == "same\n", done.stderr


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file of threadpoolctl
def test_an_exception_while_a_search_begins_leaves_neither_it_nor_the_lock_behind():
    """A search that stayed listed would block forks; a lock that stayed acquired, all searches."""
    events = 0

    def interrupt(at):
        nonlocal events
        events = 0

        def count(frame, event, argument):
            nonlocal events
            if event in ("call", "c_return"):  # where Python itself handles Ctrl-C
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
    for at in range(1, events + 1):
        interrupt(at)
        assert len(blas._Searches.running) == 0
        assert not blas._Searches.lock.locked()


_FIRST_SEARCH = """
from agglo._native import one_blas_thread, sgemm
from threadpoolctl import threadpool_info

with one_blas_thread():
    sgemm()
    print({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
"""


def test_the_first_search_of_a_process_limits_the_blas_of_scipy():
    """A BLAS library that is loaded after the limit is set has as many threads as the machine."""
    done = subprocess.run([sys.executable, "-c", _FIRST_SEARCH], capture_output=True, text=True, timeout=300)
    assert done.stdout == "{1}\n", done.stderr
