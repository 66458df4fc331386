"""Start a local Spark session, and find the Java installation that it needs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pyspark.sql import SparkSession


def session(name: str = "agglo", **settings: object) -> SparkSession:
    """Return the active Spark session, or start a local one that uses all cores of this machine.

    Under ``spark-submit``, return the session that ``spark-submit`` configured. A local session is meant for
    laptops, tests and examples. It uses the Java of ``JAVA_HOME``, or else the Java on the ``PATH``.

    Parameters
    ----------
    name : str
        The name of a new session.
    **settings
        Spark settings of a new session, with ``_`` instead of ``.``. For example, ``spark_driver_memory="4g"``
        sets ``spark.driver.memory``.

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
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit started this process and provides all settings
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
    """Return the folder of a Java installation; raise ``RuntimeError`` if there is none."""
    given, found = os.environ.get("JAVA_HOME"), shutil.which("java")
    if given:
        if not Path(given, "bin", "java").exists():
            raise RuntimeError(f"JAVA_HOME is {given}, but it contains no bin/java: correct or unset it")
        return Path(given)
    if found:
        return Path(found).resolve().parent.parent
    raise RuntimeError(
        "Spark needs Java 17 or newer, but none was found: install it (on Debian and Ubuntu, "
        "apt-get install default-jre-headless), or set JAVA_HOME to its folder"
    )
