"""The command ``agglo demo``: cluster handwritten digits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agglo.cli import options as opt
from agglo.cli.app import CANNOT_WRITE, USAGE, command, command_to_type, exit_with, print_message, print_result
from agglo.cli.fit import build_model, fit_model

if TYPE_CHECKING:
    from agglo.cli.data import Data
    from agglo.estimators.scc import Clusterer


@command()
def demo(
    out: opt.Out = Path("agglo-demo"),
    jobs: opt.Jobs = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
) -> None:
    """Cluster handwritten digits, score the tree and draw it.

    Example: agglo demo -o agglo-demo
    """
    rule = {"n_clusters": 10}
    with exit_with(USAGE):
        from agglo.cli import record as records
        from agglo.estimators import run_folder

        # Fewer neighbours than by default, because there are few points.
        model = build_model("scc", n_neighbors=10, n_jobs=jobs, **rule)
    with exit_with(CANNOT_WRITE):
        run_folder.check_folder(out, force=force)
    data = _load_digits()
    fit_model(model, data, quiet)
    record = records.describe_run(model, data, rule, {})
    picture = None
    try:
        picture = _draw_digits(data, model)
    except ImportError as error:
        print_message("note", f"no picture: {error}")
    with exit_with(CANNOT_WRITE, f"nothing was written to {out}: "):
        run_folder.save_run(out, model.tree_, model.labels_, record, picture)
    name = command_to_type()
    tree = model.tree_
    condensed = tree.condense(branching=5, min_size=50)
    rows = [
        *records.summarize_run(record),
        ("nodes", f"{tree.n_nodes - tree.n_leaves:,} in the fine tree, nearly that of HAC: for cuts and scores"),
        ("", f"{condensed.n_nodes - condensed.n_leaves:,} in the condensed tree, to read: tree.condense()"),
        ("written", str(out)),
        ("next", f"{name} info {out}"),
        ("", f"{name} cut {out} --n-clusters 20 -o labels.csv"),
        ("", f"{name} explore {out}"),
    ]
    print_result(record, rows, as_json, quiet)


def _load_digits() -> Data:
    """Return 1,797 handwritten digits of 8 × 8 pixels and their classes."""
    from sklearn.datasets import load_digits

    from agglo.cli.data import Data

    X, y = load_digits(return_X_y=True)
    name = "sklearn.datasets.load_digits"
    return Data(X, y.astype("int32"), {"path": name, "columns": None, "classes_from": name})


def _draw_digits(data: Data, model: Clusterer) -> Callable[[Path], None]:
    """Return a function that writes the figure to a file; raise ImportError if matplotlib is not installed."""
    from agglo import plot

    labels = model.labels_
    means = {i: data.X[labels == i].mean(axis=0).reshape(8, 8) for i in range(labels.max() + 1)}
    title = f"{len(data.X):,} handwritten digits, clustered by agglo"
    figure = plot.overview(model.tree_, labels, data.X, title=title, pictures=means)
    return lambda path: plot.save(figure, path, form="png")
