"""The page and the figure with the results of ``dp_means.py``."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

Rows = list[dict[str, str]]
Cells = dict[tuple[str, str, float], Rows]

TREES = ("scc round", "scc cut", "ward cut", "ward refined")
RIVALS = {"serial": "S", "dp-means++": "+", "occ": "O", "albcd": "A"}
COLOURS = {"serial": "#0072b2", "dp-means++": "#d55e00", "occ": "#009e73", "albcd": "#cc79a7"}
TOLERANCE = 1e-4  # relative difference of costs that counts as equal, because the file has rounded values

INTRODUCTION = """# DP-means costs: trees and solvers

[benchmarks/dp_means.py](../../../benchmarks/dp_means.py) generates this page from [dp_means.csv](dp_means.csv),
and describes the runs. Rows have unit length, distances are squared Euclidean, and λ takes the 13 values of the
paper. Sets of more than {most} points are sampled. Each solver has {seeds} seeds, and the best one counts. Letters
name [the solvers](../dpmeans.md): S is `SerialDPMeans`, + is `DPMeansPlusPlus`, O is `OCCDPMeans`, A is
`LowRankALBCD`. {coverage}

The tables compare four clusterings from trees:

- `ward refined` is `TreeDPMeans`. It starts at `ward cut` and then makes passes over the points.
- `ward cut` is the best cut, for each λ, of the tree `agglo.scc(graph, linkage="ward", X=X)`, where `graph` is
  `agglo.neighbor_graph(X, 25, "sqeuclidean")`.
- `scc cut` is the best cut of the paper's tree: average linkage, 200 geometric thresholds from 0.001 to 4.
- `scc round` is the best round of the paper's tree, which is the paper's rule.
"""


def render(rows: Rows, folder: Path) -> None:
    """Write dp_means.md and dp_means.png into ``folder``."""
    cells: Cells = defaultdict(list)
    for row in rows:
        cells[row["set"], row["method"], float(row["lam"])].append(row)
    sizes = {row["set"]: int(row["points"]) for row in rows}
    sets, prices = sorted(sizes), sorted({float(row["lam"]) for row in rows})
    wanted = len(sets) * len(prices) * len(RIVALS)
    run = sum(bool(cells.get((name, rival, lam))) for name in sets for rival in RIVALS for lam in prices)
    late = sum(row["seed"] == "DNF" for row in rows)
    seeds = 1 + max(int(row["seed"]) for row in rows if row["seed"].isdigit())
    coverage = f"{run:,} of {wanted:,} cells were run, of which {late} exceeded their CPU limit (DNF)."
    parts = [INTRODUCTION.format(most=f"{max(sizes.values()):,}", seeds=seeds, coverage=coverage)]
    parts += [summary(cells, sets, prices)]
    for tree in reversed(TREES):
        parts += [ratios(cells, sizes, prices, tree)]
    parts += [best_f1(cells, sets, prices)]
    parts += ["## Costs over the seeds\n\n![Costs of the solvers divided by the cost of the tree](dp_means.png)\n"]
    parts += [
        "Costs are divided by that of `ward refined`. Lines are means over the seeds; bands go from the minimum "
        "to the maximum."
    ]
    parts += ["Above 1, the tree is better.\n"]
    (folder / "dp_means.md").write_text("\n".join(parts))
    picture(cells, sets, prices, folder / "dp_means.png")


def costs(cells: Cells, name: str, method: str, lam: float) -> list[float]:
    """Return the costs of all seeds that finished."""
    return [float(row["cost"]) for row in cells.get((name, method, lam), []) if row["cost"]]


def summary(cells: Cells, sets: list[str], prices: list[float]) -> str:
    lines = ["## How often the tree is at least as good\n"]
    lines += [
        "A cell is a set and a λ. The table counts the cells in which the tree costs no more than the best seed "
        "of a solver."
    ]
    lines += [""]
    lines += ["| | " + " | ".join(RIVALS) + " | all |", "|---" * (2 + len(RIVALS)) + "|"]
    for tree in reversed(TREES):
        line = f"| `{tree}` |"
        for rivals in (*((rival,) for rival in RIVALS), tuple(RIVALS)):
            good = total = 0
            for name in sets:
                for lam in prices:
                    best = [min(found) for rival in rivals if (found := costs(cells, name, rival, lam))]
                    if best:
                        total += 1
                        good += costs(cells, name, tree, lam)[0] <= min(best) * (1 + TOLERANCE)
            line += f" {good} of {total} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


def ratios(cells: Cells, sizes: dict[str, int], prices: list[float], tree: str) -> str:
    lines = [f"## Cost of `{tree}` divided by the best solver's cost\n"]
    lines += ["The letter names the best solver. Values above 1, in **bold**, mean that the solver is better.\n"]
    lines += ["| set | points | " + " | ".join(f"{lam:g}" for lam in prices) + " |"]
    lines += ["|---" * (2 + len(prices)) + "|"]
    for name in sorted(sizes):
        line = f"| {name} | {sizes[name]:,} |"
        for lam in prices:
            best = [(min(found), rival) for rival in RIVALS if (found := costs(cells, name, rival, lam))]
            missing = "*" if len(best) < len(RIVALS) else ""
            if not best:
                line += " not run |"
                continue
            ratio = costs(cells, name, tree, lam)[0] / min(best)[0]
            text = f"{ratio:.4f}{RIVALS[min(best)[1]]}{missing}"
            line += f" **{text}** |" if ratio > 1 + TOLERANCE else f" {text} |"
        lines.append(line)
    return "\n".join([*lines, "", "\\* At least one solver did not finish.", ""])


def best_f1(cells: Cells, sets: list[str], prices: list[float]) -> str:
    methods = (*reversed(TREES), *RIVALS)
    lines = ["## The best F1 over all values of λ\n"]
    lines += ["Pairwise F1 with the known classes. For solvers, it is the mean over the seeds.\n"]
    lines += ["| set | " + " | ".join(methods) + " |", "|---" * (1 + len(methods)) + "|"]
    for name in sets:
        line = f"| {name} |"
        for method in methods:
            found = [
                np.mean(scores)
                for lam in prices
                if (scores := [float(row["f1"]) for row in cells.get((name, method, lam), []) if row["f1"]])
            ]
            line += f" {max(found):.3f} |" if found else " |"
        if line.strip(" |") != name:
            lines.append(line)
    return "\n".join(lines) + "\n"


def picture(cells: Cells, sets: list[str], prices: list[float], path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    sets = [name for name in sets if any(costs(cells, name, rival, lam) for rival in RIVALS for lam in prices)]
    across = 6
    down = -(-len(sets) // across)
    figure = Figure(figsize=(12, 1.75 * down + 0.6), dpi=80, facecolor="white", layout="constrained")
    panels = figure.subplots(down, across, sharex=True, squeeze=False).ravel()
    for axes, name in zip(panels, sets, strict=False):
        for rival, colour in COLOURS.items():
            found = [(lam, np.array(costs(cells, name, rival, lam))) for lam in prices]
            found = [(lam, c / costs(cells, name, TREES[-1], lam)[0]) for lam, c in found if len(c)]
            if not found:
                continue
            at = [lam for lam, _ in found]
            axes.fill_between(
                at, [c.min() for _, c in found], [c.max() for _, c in found], color=colour, alpha=0.25, linewidth=0
            )
            axes.plot(at, [c.mean() for _, c in found], color=colour, linewidth=1.2, label=rival)
        axes.axhline(1, color="#333333", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.set_ylim(min(low, 0.97), min(max(high, 1.1), 3))
        ticks = [tick for tick in (1, 1.05, 1.2, 1.5, 2, 3) if tick <= axes.get_ylim()[1]]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xticks([0.001, 0.01, 0.1, 1], ["0.001", "0.01", "0.1", "1"])
        axes.set_title(name, fontsize=9, loc="left")
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(sets) :]:
        axes.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False, fontsize=9)
    figure.supxlabel("λ, the cost of one more cluster", fontsize=9)
    figure.savefig(path)
