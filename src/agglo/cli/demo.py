"""The verb for a first experience: demo."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agglo.cli.app import app
from agglo.cli.ends import CANNOT_WRITE, EPILOG, USAGE, complain, failing, tell, verb
from agglo.cli.fit import clustered
from agglo.cli.options import AsJson, Force, Jobs, Out, Quiet


@app.command(epilog=EPILOG)
@verb
def demo(
    out: Out = Path("agglo-demo"),
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster handwritten digits, score the tree and draw a picture of it."""
    with failing(USAGE):
        from agglo.cli import report as summary
        from agglo.estimators import run_folder as runfolder

        plan = _plan(jobs)
    with failing(CANNOT_WRITE):
        runfolder.check_folder(out, force=force)
    data = _digits()
    run = clustered(plan, quiet, lambda: data)
    picture = None
    try:
        picture = _picture(data, run)
    except ImportError as error:
        complain("note", f"no picture, for {error}")
    with failing(CANNOT_WRITE, f"nothing was written to {out}: "):
        paths = runfolder.save_run(out, run.tree, run.labels, run.record, picture)
    rows = [*summary.of_run(run.record), ("written", ", ".join(map(str, paths)))]
    name = "agglo" if shutil.which("agglo") else sys.argv[0]  # as it can be typed again
    rows += [
        ("next", f"{name} info {out}"),
        ("", f"{name} cut {out} --n-clusters 20 -o labels.csv"),
        ("", f"{name} explore {out}"),
    ]
    tell(run.record, rows, as_json, quiet)


def _digits() -> Any:
    """1,797 handwritten digits of 8 × 8 pixels, with the truth about them."""
    from sklearn.datasets import load_digits

    from agglo.cli.pipeline import Data

    X, y = load_digits(return_X_y=True)
    about = {
        "path": "sklearn.datasets.load_digits",
        "columns": None,
        "classes_from": "sklearn.datasets.load_digits",
    }
    return Data(X, y.astype("int32"), about)


def _plan(n_jobs: int | None) -> Any:
    """Few neighbours, for there are few points; as many clusters as there are digits."""
    from agglo.cli.pipeline import Plan

    return Plan(n_neighbors=10, rule={"n_clusters": 10}, n_jobs=n_jobs)


def _picture(data: Any, run: Any) -> Callable[[Path], None]:
    """A function that writes the picture to a name; ImportError if matplotlib is not installed."""
    from agglo import plot

    means = {
        cluster: data.X[run.labels == cluster].mean(axis=0).reshape(8, 8)
        for cluster in range(run.labels.max() + 1)
    }
    title = f"{len(data.X):,} handwritten digits, clustered by agglo"
    figure = plot.overview(run.tree, run.labels, data.X, title=title, pictures=means)
    return lambda path: plot.save(figure, path, form="png")
