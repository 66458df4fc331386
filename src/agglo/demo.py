"""The first experience: a set that ships with scikit-learn, clustered, scored and drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from agglo.pipeline import Data, Plan, Run


def digits() -> Data:
    """1,797 handwritten digits of 8 × 8 pixels, with the truth about them."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    about = {
        "path": "sklearn.datasets.load_digits",
        "columns": None,
        "classes_from": "sklearn.datasets.load_digits",
    }
    return Data(X, y.astype(np.int32), about)


def plan(n_jobs: int | None) -> Plan:
    """Few neighbours, for there are few points; as many clusters as there are digits."""
    return Plan(n_neighbors=10, rule={"n_clusters": 10}, n_jobs=n_jobs)


def picture(data: Data, run: Run) -> Callable[[Path], None]:
    """A function that writes the picture to a name; ImportError if matplotlib is not installed."""
    from agglo import plot

    means = {
        cluster: data.X[run.labels == cluster].mean(axis=0).reshape(8, 8)
        for cluster in range(run.labels.max() + 1)
    }
    title = f"{len(data.X):,} handwritten digits, clustered by agglo"
    figure = plot.overview(run.tree, run.labels, data.X, title=title, pictures=means)
    return lambda path: plot.save(figure, path, form="png")
