"""Draw the figures of the paper from the rows of results."""

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

_DPI = 110


def draw_figures(results: Results, folder: Path) -> Iterator[tuple[str, str]]:
    """Write each figure for which there are results; yield its file name and title."""
    if any(results.select("rounds", status="ok")):
        yield _draw_rounds(results, folder), "Dendrogram purity and best F1 by number and kind of thresholds"
    if any(results.select("growth", status="ok")):
        yield _draw_growth(results, folder), "CPU seconds and dendrogram purity by number of points"


def _draw_rounds(results: Results, folder: Path) -> str:
    found = list(results.select("rounds", status="ok"))
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
        _style_axes(axes, "thresholds", f"{title}, mean over {len(affinity)} sets")
    panels[0].legend(frameon=False)
    return _save(figure, folder, "rounds.png")


def _draw_growth(results: Results, folder: Path) -> str:
    found = list(results.select("growth", status="ok"))
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
    _style_axes(panels[0], "points", "CPU seconds")
    _style_axes(panels[1], "points", "dendrogram purity")
    panels[0].legend(frameon=False)
    return _save(figure, folder, "growth.png")


def _style_axes(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(color="#e6e8eb", linewidth=0.6)


def _save(figure: Figure, folder: Path, name: str) -> str:
    figure.savefig(folder / name, dpi=_DPI)
    plt.close(figure)
    return name
