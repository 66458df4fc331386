"""A fit with the default parameters runs the functions of few files, and makes few passes over the points."""

import sys
from pathlib import Path

import numpy as np
import pytest

import agglo
from agglo import SCC, _core

SOURCE = Path(agglo.__file__).parent
READS = {"min", "max", "any", "all", "sum", "copy", "astype", "tolist", "dot", "take", "argsort"}


@pytest.fixture
def points():
    """Points with a connected neighbour graph. A fit has imported all modules."""
    X = np.random.default_rng(0).standard_normal((400, 7))
    SCC().fit(X)
    return X


def run_with_profile(profile, X, **parameters):
    sys.setprofile(profile)
    try:
        return SCC(**parameters).fit(X)
    finally:
        sys.setprofile(None)


def test_a_fit_runs_functions_of_at_most_12_files(points):
    files = set()

    def profile(frame, event, _):
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(SOURCE):
            files.add(frame.f_code.co_filename)

    model = run_with_profile(profile, points)
    assert len(set(model.labels_)) > 1
    assert str(SOURCE / "estimators" / "scc.py") in files
    assert len(files) <= 12, sorted(files)


@pytest.mark.parametrize(("connect", "connecting"), [(None, []), ("auto", ["_normalize_or_center", "_moments"])])
def test_a_fit_makes_three_passes_over_the_points_before_it_connects_clusters(
    points, monkeypatch, connect, connecting
):
    monkeypatch.setattr("agglo.neighbors.search._SAMPLE", 100)  # the mean of pairs reads a sample, not all points
    passes = []

    def is_whole(value):
        return isinstance(value, np.ndarray) and value.size == points.size

    def profile(frame, event, function):
        """Note functions that read whole arrays of points by methods of NumPy, or that copy their rows."""
        if event == "call" and frame.f_code.co_name == "take_rows":
            passes.append("take_rows")
        is_read = event == "c_call" and function.__name__ in READS and is_whole(function.__self__)
        if is_read and frame.f_code.co_name not in passes:
            passes.append(frame.f_code.co_name)

    def record(name, function):
        def wrapper(*args, **parameters):
            if any(map(is_whole, (*args, *parameters.values()))):
                passes.append(name)
            return function(*args, **parameters)

        return wrapper

    for name, function in list(vars(_core).items()):
        if callable(function) and not isinstance(function, type) and not name.startswith("_"):
            monkeypatch.setattr(_core, name, record(name, function))
    run_with_profile(profile, points, connect=connect)
    assert passes == ["_check_values", "find_duplicates", "search_exact", *connecting]
