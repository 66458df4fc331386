"""Results must not depend on the processor: not on its instructions, nor on the BLAS and NumPy that use them."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from agglo import _core
from agglo.elementary import exp, geomspace, log

LEVELS = ("plain", "avx2", "avx512")
AVAILABLE = LEVELS[: LEVELS.index(_core.simd_level()) + 1]


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, *command],
        env=os.environ | environment,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=300,
    )


def fewer_features():
    """An environment in which NumPy, BLAS and the C library use the instructions of old processors."""
    from numpy._core import _multiarray_umath as numpy_core

    wanted = [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__[name]]
    environment = {"NPY_DISABLE_CPU_FEATURES": " ".join(wanted)}
    if platform.machine() == "x86_64":
        environment["OPENBLAS_CORETYPE"] = "Prescott"
        environment["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-ERMS"
    return environment


def test_results_do_not_depend_on_the_processor():
    environments = [{"AGGLO_SIMD": "plain", **fewer_features()}]
    environments += [{"AGGLO_SIMD": level, "OPENBLAS_CORETYPE": "Haswell"} for level in AVAILABLE[1:]]
    found = []
    for environment in environments:
        done = run("portable_results.py", **environment)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
        assert found[-1]["level"] == environment["AGGLO_SIMD"]
    for other in found[1:]:
        different = {name for name, digest in other["results"].items() if digest != found[0]["results"][name]}
        assert not different, other["level"]
    assert len(found[0]["results"]) > 50


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
