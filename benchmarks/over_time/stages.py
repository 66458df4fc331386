"""Time and memory of each stage on the same points, in one process with one thread.

asv times in wall seconds, so compare commits on an idle machine.
"""

import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import agglo
from agglo.explore import Explorer, open_run

N_POINTS = 20_000
N_COLUMNS = 64
N_CLASSES = 200


def make_points() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return points in Gaussian clusters, and the cluster of each point."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=N_POINTS)
    centers = rng.normal(size=(N_CLASSES, N_COLUMNS))
    X = centers[y] + 0.7 * rng.normal(size=(N_POINTS, N_COLUMNS))
    return X.astype(np.float32), y


class Search:
    """Nearest neighbours of all points, by each method."""

    params = ("exact", "cells")
    param_names = ("method",)

    def setup(self, method: str) -> None:
        self.X, _ = make_points()

    def time_neighbor_graph(self, method: str) -> None:
        agglo.neighbor_graph(self.X, 25, method=method, n_jobs=1)

    def peakmem_neighbor_graph(self, method: str) -> None:
        agglo.neighbor_graph(self.X, 25, method=method, n_jobs=1)


class Rounds:
    """The rounds of SCC, Affinity and HAC on one graph."""

    params = (["average", "single", "complete", "exact-average", "ward"],)
    param_names = ("linkage",)

    def setup(self, linkage: Any) -> None:
        self.X, _ = make_points()
        metric = "sqeuclidean" if linkage == "ward" else "cosine"
        self.graph = agglo.neighbor_graph(self.X, 25, metric, n_jobs=1)

    def time_scc(self, linkage: Any) -> None:
        agglo.scc(self.graph, linkage=linkage, X=self.X, connect=None, n_jobs=1)

    def time_hac(self, linkage: Any) -> None:
        agglo.hac(self.graph, linkage=linkage, X=self.X, connect=None, n_jobs=1)


class Tree:
    """Cuts, condensed trees and scores of one tree."""

    def setup(self) -> None:
        self.X, self.y = make_points()
        self.model = agglo.SCC(n_jobs=1).fit(self.X)

    def time_cut(self) -> None:
        self.model.tree_.cut(n_clusters=N_CLASSES)

    def time_cut_exactly(self) -> None:
        self.model.tree_.cut(n_clusters=N_CLASSES, exact=True, X=self.X)

    def time_condense(self) -> None:
        self.model.tree_.condense()

    def time_modularity_path(self) -> None:
        agglo.modularity_path(self.model.tree_, self.model.graph_)

    def time_dendrogram_purity(self) -> None:
        agglo.metrics.dendrogram_purity(self.model.tree_, self.y)


class Fit:
    """A whole fit, and predictions of new points."""

    def setup(self) -> None:
        self.X, _ = make_points()
        self.model = agglo.SCC(n_jobs=1).fit(self.X)

    def time_fit(self) -> None:
        agglo.SCC(n_jobs=1).fit(self.X)

    def time_predict(self) -> None:
        self.model.predict(self.X[:1000])


class Start:
    """Start of the program, in a process of its own."""

    params = (["import agglo", "import agglo; agglo.SCC", "import agglo.cli"],)
    param_names = ("program",)

    def time_import(self, program: str) -> None:
        subprocess.run([sys.executable, "-c", program], check=True)


class Server:
    """The explorer's server: open a run, and answer the first view."""

    def setup(self) -> None:
        X, _ = make_points()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "tree.parquet"
        agglo.SCC(n_jobs=1).fit(X).tree_.save(path)
        self.path = path

    def teardown(self) -> None:
        self.folder.cleanup()

    def time_open_and_view(self) -> None:
        with Explorer(open_run(self.path)) as explorer, urllib.request.urlopen(explorer.url, timeout=60) as page:
            page.read()
