"""Measure the explorer on a large tree: time to open it, time of a zoom on the server, memory. Linux only.

    python benchmarks/explore.py [--leaves 1000000] [--zooms 200]

Builds a tree with clusters of very different sizes, serves it in a separate process, and sends the requests of the
page: the run, the root, then random walks from the root into boxes. Times are those of HTTP requests on this
machine. Memory is that of the server minus that of a server of a tree with a hundred leaves, relative to the tree
file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from agglo import Hierarchy
from agglo.testing import random_forest


def make_tree(n: int) -> Hierarchy:
    forest = random_forest(np.random.default_rng(0), n, max_rounds=60, shrink=0.8, decimals=8)
    return Hierarchy.from_forest(forest, kind="similarity", missing=0.0)


class Served:
    """A server in a separate process."""

    def __init__(self, path: Path) -> None:
        self.started = time.perf_counter()
        command = [sys.executable, "-c", "import agglo.cli; agglo.cli.main()", "explore", str(path), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            text += self.process.stdout.readline()
        self.open_seconds = time.perf_counter() - self.started
        self.base, self.token = json.loads(text)["url"].split("/?token=")

    def get(self, request: str) -> tuple[Any, float]:
        """Send a request; return the response and its seconds."""
        message = urllib.request.Request(f"{self.base}/api/{request}", headers={"X-Agglo-Token": self.token})
        start = time.perf_counter()
        with urllib.request.urlopen(message) as response:
            content = response.read()
        return json.loads(content), time.perf_counter() - start

    def megabytes(self) -> float:
        """Return the resident memory of the process, including mapped files."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def cpu(self) -> float:
        """Return the CPU seconds so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()


def walk(served: Served, zooms: int) -> list[float]:
    """Zoom from the root into random boxes, then start again; return the seconds of each zoom."""
    rng = np.random.default_rng(0)
    run, _ = served.get("run")
    node, seconds = run["root"], []
    for _ in range(zooms):
        view, took = served.get(f"view?node={node}&clusters={int(rng.integers(2, 500))}")
        _, more = served.get(f"node?node={node}")
        _, items = served.get(f"items?node={node}")
        seconds.append(max(took, more, items))
        inside = [box["node"] for box in view["boxes"][1:] if box["round"] > 0]
        node = int(rng.choice(inside)) if inside else run["root"]
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leaves", type=int, default=1_000_000)
    parser.add_argument("--zooms", type=int, default=200)
    options = parser.parse_args()
    memory = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in (100, options.leaves):
            path = Path(folder) / f"{n}.parquet"
            make_tree(n).save(path)
            served = Served(path)
            try:
                cpu = served.cpu()
                _, run = served.get("run")
                root = served.get("run")[0]["root"]
                _, first = served.get(f"view?node={root}")
                begun = served.cpu()
                seconds = walk(served, options.zooms if n > 100 else 10)
                spent = (served.cpu() - begun) / len(seconds)
                memory[n] = served.megabytes()
            finally:
                served.close()
            size = path.stat().st_size / 2**20
            print(
                f"{n:,} leaves: file {size:.1f} MB; open {served.open_seconds:.2f} s, {cpu:.2f} CPU s with imports"
            )
            print(f"  run {1000 * run:.0f} ms, first view {1000 * first:.0f} ms")
            spread = 1000 * np.quantile(seconds, [0.5, 0.95, 1.0])
            print(
                f"  slowest request of a zoom: median, 95 %, max {spread.round(1)} ms; {1000 * spent:.1f} CPU ms"
            )
            print(f"  memory {memory[n]:.0f} MB")
    more = memory[options.leaves] - memory[100]
    print(f"the tree takes {more:.0f} MB, {more / size:.2f} times its file")


if __name__ == "__main__":
    main()
