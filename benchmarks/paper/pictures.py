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

from agglo.plotstyle import FAINT, PALETTE
from benchmarks.paper.runner import Results, Row

_DOTS = 110  # an inch


def draw(results: Results, folder: Path) -> Iterator[tuple[str, str]]:
    """Write the pictures that there are rows for; their names, and what they show."""
    if any(results.of("rounds", status="ok")):
        yield _rounds(results, folder), "Dendrogram purity and best F1 by number and kind of thresholds"
    if any(results.of("growth", status="ok")):
        yield _growth(results, folder), "CPU seconds and dendrogram purity by number of points"
    if any(results.of("dpmeans", status="ok")):
        yield _dpmeans(results, folder, "cost"), "DP-means cost against the price of a cluster"
        yield _dpmeans(results, folder, "f1"), "Pairwise F1 against the price of a cluster"


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


def _dpmeans(results: Results, folder: Path, field: str) -> str:
    """A panel a set: the mean over seeds, and the range from the least to the most, against the price.

    Costs are relative to the least cost of any partition of SCC's tree, for they span orders of magnitude.
    """
    found = list(results.of("dpmeans", status="ok"))
    sets = [name for name in dict.fromkeys(row["set"] for row in found) if _complete(found, name)]
    columns = 4
    lines = -(-len(sets) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(11, 2.1 * lines), layout="constrained", squeeze=False)
    for axes in grid.flat[len(sets) :]:
        axes.set_visible(False)
    methods = [("scc", "SCC, best round"), ("serial-dpmeans", "SerialDPMeans"), ("dpmeans++", "DPMeans++")]
    for axes, name in zip(grid.flat, sets, strict=False):
        least = {row["lam"]: row["cost"] for row in found if row["set"] == name and row["method"] == "scc-optimum"}
        for (method, title), colour in zip(methods, PALETTE, strict=False):
            lams, low, mean, high = _ranges(
                [row for row in found if row["set"] == name and row["method"] == method], field, least
            )
            axes.plot(lams, mean, color=colour, linewidth=1.2, label=title)
            axes.fill_between(lams, low, high, color=colour, alpha=0.25, linewidth=0)
        axes.set_title(name, fontsize=8)
        axes.tick_params(labelsize=7)
        if field == "cost":
            axes.set_ylim(0.97, 2.0)
    grid[0, 0].legend(frameon=False, fontsize=7)
    what = "cost / least cost of the tree" if field == "cost" else "pairwise F1"
    figure.supylabel(what, fontsize=9)
    figure.supxlabel("price of a cluster, λ", fontsize=9)
    return _saved(figure, folder, f"dpmeans_{field}.png")


def _complete(found: list[Row], name: str) -> bool:
    return {"scc", "scc-optimum"} <= {row["method"] for row in found if row["set"] == name}


def _ranges(
    rows: list[Row], field: str, least: dict[float, float]
) -> tuple[list[float], list[float], list[float], list[float]]:
    lams = sorted({row["lam"] for row in rows})
    low, mean, high = [], [], []
    for lam in lams:
        values = [row[field] / (least[lam] if field == "cost" else 1.0) for row in rows if row["lam"] == lam]
        low.append(min(values))
        mean.append(sum(values) / len(values))
        high.append(max(values))
    return lams, low, mean, high


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(color="#e6e8eb", linewidth=0.6)


def _saved(figure: Figure, folder: Path, name: str) -> str:
    figure.savefig(folder / name, dpi=_DOTS)
    plt.close(figure)
    return name
