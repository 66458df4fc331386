import os
import signal

import numpy as np
import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# No wall-clock bounds: the machine may be busy with something else.
settings.register_profile("agglo", deadline=None, print_blob=True)
settings.load_profile("agglo")

# Shells start background jobs with SIGINT ignored, which processes inherit. Tests of Ctrl-C need the default.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Together(LoadScopeScheduling):
    """Tests in two processes, each in the one that is free, but for those that share what is dear to make."""

    def _split_scope(self, nodeid):
        if "spark" in nodeid:
            return "spark"  # they share a cluster
        if "check_array_api_input" in nodeid:
            return nodeid.partition("::")[0]  # they share what another process tells of their file
        return nodeid


def pytest_xdist_make_scheduler(config, log):
    """Say who is to run what: what `xdist_group` says of it, xdist does not hear under pytest 9.2."""
    return Together(config, log)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A Spark cluster of processes of its own."""
    from spark_cluster import Cluster

    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def spark(request, tmp_path_factory):
    """A session on that cluster, or on the one that AGGLO_SPARK_MASTER names: local[2] is a single process."""
    from spark_cluster import connect

    url = os.environ.get("AGGLO_SPARK_MASTER") or request.getfixturevalue("cluster").url
    session = connect(url, tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def blobs():
    """Points of three classes far apart, and the classes."""
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
    """The folder of a run on those points."""
    from cli_runs import run

    run("fit", "X.npy", "-o", "out", "--n-neighbors", "10")
    return folder / "out"
