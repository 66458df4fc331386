"""A Spark cluster on this machine for tests: a master and worker processes of its own; programs for it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark

import agglo.spark
from agglo.spark.session import java_home

QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # short-lived processes need no second compiler
BIN = Path(pyspark.__file__).parent / "bin"


class Cluster:
    """A standalone master and two workers with room for two programs, stopped at the end of a ``with``."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.processes, self.logs = {}, {}

    def __enter__(self):
        self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = self._wait_for("master", r"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            self.start_worker(number)
        return self

    def __exit__(self, *failure):
        for name in list(self.processes):
            self.kill(name, signal.SIGTERM)

    def start_worker(self, number):
        name = f"worker-{number}"
        options = ["--cores", "2", "--memory", "1100m", "--host", "127.0.0.1", "--webui-port", "0"]
        self._start(name, "worker.Worker", *options, self.url)
        self._wait_for(name, "(Successfully registered) with master")

    def kill(self, name, how=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(how)
        process.wait()

    def _start(self, name, kind, *options):
        self.logs[name] = log = self.folder / f"{name}-{time.monotonic_ns()}.log"
        environment = os.environ | {
            "JAVA_HOME": str(java_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "160m",
            "SPARK_WORKER_DIR": str(self.folder / name),
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
        }
        with log.open("w") as file:
            command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{kind}", *options]
            self.processes[name] = subprocess.Popen(command, stdout=file, stderr=file, env=environment)

    def _wait_for(self, name, pattern):
        while self.processes[name].poll() is None:
            found = re.search(pattern, self.logs[name].read_text())
            if found:
                return found[1]
            time.sleep(0.1)
        raise RuntimeError(f"{name} did not start: {self.logs[name].read_text()}")


def connect(url, folder):
    """A session on a cluster."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    os.environ |= environment()
    builder = SparkSession.builder.appName("agglo-tests")
    for key, value in settings(url, folder).items():
        builder = builder.config(key, value)
    with contextlib.chdir(folder):  # where Java starts is where names of examples lead to
        return builder.getOrCreate()


def submit(url, folder, *words):
    """The program that spark-submit is documented to be given, started by Spark's own script on a cluster."""
    given = settings(url, folder) | {"spark.cores.max": "1"}
    options = [option for pair in given.items() for option in ("--conf", "=".join(pair))]
    program = Path(agglo.spark.__path__[0]) / "__main__.py"
    command = [str(BIN / "spark-submit"), *options, str(program), *map(str, words)]
    # In a session of its own, so that the script, Java and Python can be ended together.
    return subprocess.Popen(
        command,
        env=os.environ | environment(),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def environment():
    return {"JAVA_HOME": str(java_home()), "JDK_JAVA_OPTIONS": QUICK, "PYSPARK_PYTHON": sys.executable}


def settings(url, folder):
    """What makes small programs quick."""
    return {
        "spark.master": url,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "700m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.executor.extraJavaOptions": QUICK,
        "spark.sql.shuffle.partitions": "2",
        # Tables of a few rows are not worth plans that adapt, nor code that is compiled for them.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder),
        "spark.task.maxFailures": "8",
        "spark.log.level": "ERROR",
    }
