"""scikit-learn's own checks of an estimator, none left out."""

import functools
import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks


@functools.cache
def run_with_array_api(path):
    """What pytest says of those checks of a file that need SciPy to take arrays of others, from its import on."""
    command = [sys.executable, "-m", "pytest", "-v", "-n0", "-p", "no:cacheprovider", "-k", "array_api", path]
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def parametrize_checks(estimators):
    """Mark a test to run with every check of every estimator: ``parametrize_with_checks`` with a list of cases.

    scikit-learn 1.6 passes a generator, which pytest 9 refuses.
    """
    mark = parametrize_with_checks(estimators)
    names, cases = mark.args
    return pytest.mark.parametrize(names, list(cases), **mark.kwargs)


def run_check(estimator, check, request):
    """Run a check of :func:`parametrize_checks` for the test whose ``request`` is given."""
    name = getattr(check, "func", check).__name__
    if name == "check_array_api_input" and "SCIPY_ARRAY_API" not in os.environ:
        report = run_with_array_api(str(request.path))
        assert f"{request.node.name} PASSED" in report, report
    else:
        check(estimator)
