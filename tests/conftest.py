import os

import pytest
from hypothesis import settings

# No wall-clock bounds: the machine may be busy with something else.
settings.register_profile("agglo", deadline=None, print_blob=True)
settings.load_profile("agglo")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A Spark cluster of processes of its own."""
    from spark_cluster import Cluster

    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def spark(request, tmp_path_factory):
    """A session on that cluster, or on another one: AGGLO_SPARK_MASTER='local[2]' needs a single process."""
    from spark_cluster import connect

    url = os.environ.get("AGGLO_SPARK_MASTER") or request.getfixturevalue("cluster").url
    session = connect(url, tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
