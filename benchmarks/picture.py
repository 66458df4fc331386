"""Draw the tree of questions in the README: named clusters around a circle.

    python -m benchmarks.picture FOLDER/clinc150.npz docs/images/questions.png

The file has ``texts`` (UTF-8 bytes, one text per line) and their vectors ``X``, as for ``benchmarks.names``.
The picture in the README shows CLINC150 (Larson et al., 2019; CC BY 3.0). These are 22,500 questions to a voice
assistant, embedded by all-MiniLM-L6-v2 and reduced to 128 columns by an SVD. The script does not use their
classes. Its number of names is the number that fits around the circle.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Wedge

import agglo
from agglo.contents import terms
from agglo.plot.style import INK
from agglo.plot.style import PALETTE as COLOURS

N_COLOURS = 12
LEVELS = (N_COLOURS, 40)  # numbers of clusters on the inner circles
N_NAMES = 100
RADII = (0.0, 0.24, 0.48, 0.72)  # of the root, the inner levels and the named clusters
GAP = 0.004  # share of the circle between two colours


def draw_circle(tree: agglo.Hierarchy, texts: list[str]) -> Figure:
    """Draw the root in the centre, and around it the clusters of the finest level, named by their terms."""
    levels = tree.taxonomy([*LEVELS, N_NAMES])
    found = terms(texts, levels.labels[-1], n=2)
    names = dict(zip(tree.nodes(levels.labels[-1]).tolist(), map(", ".join, found), strict=True))
    nodes = [tree.nodes(labels) for labels in levels.labels]
    figure = Figure(figsize=(10, 10), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-1.21, 1.21)
    axes.set_ylim(-1.21, 1.21)
    axes.set_axis_off()

    # The order of the leaves puts the clusters of every level side by side.
    ends = sorted(nodes[-1].tolist(), key=lambda node: int(tree.start[node]))
    angle, colour_of = place_ends(tree, ends, nodes[0])
    for node in ends:
        draw_end(axes, angle[node], colour_of[node], names[node], int(tree.size[node]), tree.n_leaves)

    # Join each cluster to the cluster of the next coarser level that contains it.
    inner = nodes[-1]
    for level in range(len(nodes) - 1, -1, -1):
        outer = nodes[level - 1] if level else np.array([tree.n_nodes - 1])
        for parent in outer.tolist():
            stop = tree.start[parent] + tree.size[parent]
            below = [node for node in inner.tolist() if tree.start[parent] <= tree.start[node] < stop]
            angle.setdefault(parent, float(np.mean([angle[node] for node in below])))
            for node in below:
                start = (RADII[level], angle[parent] if level else angle[node])
                share = tree.size[node] / tree.n_leaves
                colour = colour_of[next(end for end in ends if contains(tree, node, end))]
                draw_branch(axes, start, (RADII[level + 1], angle[node]), colour, 1.2 + 26 * share**0.75)
        inner = outer
    return figure


def contains(tree: agglo.Hierarchy, node: int, other: int) -> bool:
    """Return whether a node contains another node."""
    return bool(tree.start[node] <= tree.start[other] < tree.start[node] + tree.size[node])


def place_ends(tree: agglo.Hierarchy, ends: list[int], coarse: Any) -> tuple[dict[int, float], dict[int, str]]:
    """Return the angle and the colour of each end, with a gap between two colours."""
    group = [next(i for i, node in enumerate(coarse.tolist()) if contains(tree, node, end)) for end in ends]
    changes = np.cumsum([0, *(a != b for a, b in zip(group[1:], group[:-1], strict=True))])
    step = (1 - GAP * (changes[-1] + 1)) / len(ends)
    angles = {end: 2 * np.pi * ((i + 0.5) * step + GAP * changes[i]) for i, end in enumerate(ends)}
    colours = {end: COLOURS[changes[i] % len(COLOURS)] for i, end in enumerate(ends)}
    return angles, colours


def draw_end(axes: Any, angle: float, colour: str, name: str, size: int, total: int) -> None:
    """Draw the name of a cluster, and a bar whose length shows its number of points."""
    half = 180 / N_NAMES * 0.8
    first, length = RADII[-1] + 0.012, 5.0 * size / total
    degrees = float(np.degrees(angle))
    axes.add_patch(
        Wedge((0, 0), first + length, degrees - half, degrees + half, width=length, color=colour, alpha=0.55, lw=0)
    )
    flipped = 90 < degrees % 360 < 270
    distance = first + length + 0.012
    axes.text(
        distance * np.cos(angle),
        distance * np.sin(angle),
        name,
        rotation=degrees + 180 if flipped else degrees,
        rotation_mode="anchor",
        ha="right" if flipped else "left",
        va="center",
        fontsize=10,
        color=INK,
    )


def draw_branch(
    axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str, width: float
) -> None:
    """Draw a smooth curve between two points, given as radius and angle."""
    t = np.linspace(0, 1, 40)
    radius = start[0] + (end[0] - start[0]) * t
    angle = start[1] + (end[1] - start[1]) * (3 * t**2 - 2 * t**3)
    axes.plot(radius * np.cos(angle), radius * np.sin(angle), color=colour, lw=width, solid_capstyle="round")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    with np.load(given.file, allow_pickle=True) as file:
        texts, X = bytes(file["texts"]).decode().split("\n"), file["X"].astype(np.float32)
    begin = time.process_time()
    tree = agglo.SCC().fit(X).tree_
    print(f"fit of {len(X):,} points: {time.process_time() - begin:.1f} CPU seconds")
    draw_circle(tree, texts).savefig(given.picture)


if __name__ == "__main__":
    main()
