"""Results are those on record, whatever instructions of the processor the core, BLAS and NumPy use."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from children import TIMEOUT

from agglo._native import exp, geomspace, log

LEVELS = ("plain", "avx2", "avx512")
DIGESTS = Path(__file__).with_name("digests.json")


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, *command],
        env=os.environ | environment,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def available_levels():
    """List the SIMD levels of this processor, also where AGGLO_SIMD limits this process to a lower one."""
    environment = {name: value for name, value in os.environ.items() if name != "AGGLO_SIMD"}
    command = [sys.executable, "-c", "from agglo import _core; print(_core.simd_level())"]
    best = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    return LEVELS[: LEVELS.index(best) + 1]


AVAILABLE = available_levels()


def fewer_features():
    """An environment in which NumPy, BLAS and the C library use the instructions of old processors."""
    try:
        from numpy._core import _multiarray_umath as numpy_core
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as numpy_core

    used = [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__[name]]
    environment = {"NPY_DISABLE_CPU_FEATURES": os.environ.get("NPY_DISABLE_CPU_FEATURES", " ".join(used))}
    if platform.machine() == "x86_64":
        environment["OPENBLAS_CORETYPE"] = "Prescott"
        environment["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-ERMS"
    return environment


def environments():
    """List an environment for each SIMD level, from that of the oldest processors to that of this one."""
    oldest = {"AGGLO_SIMD": "plain", **fewer_features()}
    return [oldest, *({"AGGLO_SIMD": level, "OPENBLAS_CORETYPE": "Haswell"} for level in AVAILABLE[1:])]


@pytest.mark.parametrize("environment", environments(), ids=AVAILABLE)
def test_results_are_those_on_record_at_every_simd_level(environment):
    done = run("portable_results.py", **environment)
    assert done.returncode == 0, done.stderr
    found, expected = json.loads(done.stdout), json.loads(DIGESTS.read_text())
    different = [name for name in expected if name in found and found[name] != expected[name]]
    assert not different, f"{len(different)} of {len(expected)} results changed"
    assert found.keys() == expected.keys(), "write digests.json again, see portable_results.py"


@pytest.mark.parametrize("level", AVAILABLE)
def test_the_level_is_the_one_asked_for(level):
    done = run("-c", "from agglo import _core; print(_core.simd_level())", AGGLO_SIMD=level)
    assert done.stdout.split() == [level]


@pytest.mark.parametrize(
    ("value", "cause"),
    [("sse9", "is unknown")] + [(level, "needs instructions that") for level in LEVELS[len(AVAILABLE) :][:1]],
)
def test_a_level_that_cannot_be_used_is_an_error_of_the_import(value, cause):
    done = run("-c", "import agglo._core", AGGLO_SIMD=value)
    assert done.returncode != 0
    remedy = ": unset it, or set it to one of plain"
    assert f"ImportError: AGGLO_SIMD={value} {cause}" in done.stderr
    assert remedy in done.stderr


def test_logarithms_and_exponentials_are_close_to_those_of_numpy():
    values = np.array([5e-324, 1e-300, 0.1, 0.5, 0.9999999, 1.0, 1.5, np.e, 1e10, 1.7e308, np.inf, 0.0])
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(log(values), np.log(values), rtol=5e-16)
    assert np.isnan(log(-1.0))
    powers = np.array([-np.inf, -745.0, -1.0, -1e-20, 0.0, 0.3, 1.0, 709.0, np.inf])
    np.testing.assert_allclose(exp(powers), np.exp(powers), rtol=5e-16)
    assert log(1.0) == 0
    assert exp(0.0) == 1
    np.testing.assert_allclose(geomspace(0.001, 4.0, 50), np.geomspace(0.001, 4.0, 50), rtol=1e-14)
    assert geomspace(3.0, 0.7, 9)[[0, -1]].tolist() == [3.0, 0.7]
