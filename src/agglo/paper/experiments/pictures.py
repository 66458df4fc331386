"""The figures of the paper, drawn of the rows of results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from agglo.paper.experiments.runner import Results
from agglo.plot.style import FAINT, PALETTE

_DOTS = 110  # an inch


def draw(results: Results, folder: Path) -> Iterator[tuple[str, str]]:
    """Write the pictures that there are rows for; their names, and what they show."""
    if any(results.of("rounds", status="ok")):
        yield _rounds(results, folder), "Dendrogram purity and best F1 by number and kind of thresholds"
    if any(results.of("growth", status="ok")):
        yield _growth(results, folder), "CPU seconds and dendrogram purity by number of points"


def _rounds(results: Results, folder: Path) -> str:
    found = list(results.of("rounds", status="ok"))
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axes, field, title in zip(panels, ["purity", "best_f1"], ["dendrogram purity", "best F1"], strict=True):
        for kind, colour in zip(["odds", "geometric", "linear"], PALETTE, strict=False):
            rows = [row for row in found if row["kind"] == kind]
            numbers = sorted({row["number"] for row in rows})
            means = [np.mean([row[field] for row in rows if row["number"] == n]) for n in numbers]
            axes.plot(numbers, means, "o-", color=colour, markersize=3, label=kind)
        affinity = [row[field] for row in found if row["kind"] == "affinity"]
        axes.axhline(float(np.mean(affinity)), color=FAINT, linestyle="--", label="Affinity")
        axes.set_xscale("log")
        _label(axes, "thresholds", f"{title}, mean over {len(affinity)} sets")
    panels[0].legend(frameon=False)
    return _saved(figure, folder, "rounds.png")


def _growth(results: Results, folder: Path) -> str:
    found = list(results.of("growth", status="ok"))
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    methods = [("scc", "SCC (with its graph)"), ("hac", "HAC"), ("affinity", "Affinity (with its graph)")]
    for (method, title), colour in zip(methods, PALETTE, strict=False):
        rows = sorted((row for row in found if row["method"] == method), key=lambda row: row["points"])
        points = [row["points"] for row in rows]
        panels[0].plot(
            points,
            [row["seconds"] + row.get("graph_seconds", 0.0) for row in rows],
            "o-",
            color=colour,
            markersize=3,
            label=title,
        )
        panels[1].plot(points, [row["purity"] for row in rows], "o-", color=colour, markersize=3)
    panels[0].set(xscale="log", yscale="log")
    panels[1].set(xscale="log")
    _label(panels[0], "points", "CPU seconds")
    _label(panels[1], "points", "dendrogram purity")
    panels[0].legend(frameon=False)
    return _saved(figure, folder, "growth.png")


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(color="#e6e8eb", linewidth=0.6)


def _saved(figure: Figure, folder: Path, name: str) -> str:
    figure.savefig(folder / name, dpi=_DOTS)
    plt.close(figure)
    return name
