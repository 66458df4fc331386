"""Draw the algorithm step by step on twelve points, for the page "The algorithm in pictures".

    python -m benchmarks.algorithm docs/images

The script repeats the rounds from their definition, and checks that ``agglo.scc`` gives the same clusters.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from scipy.spatial import ConvexHull

import agglo
from agglo.plot.style import INK, lighten
from agglo.plot.style import PALETTE as COLOURS

POINTS = np.array(
    [
        *([1.0, 4.2], [1.45, 4.35], [1.2, 3.6], [2.5, 4.4], [2.95, 4.0]),
        *([5.3, 4.3], [5.75, 4.0], [5.2, 3.55]),
        *([1.5, 1.0], [1.95, 1.25], [4.6, 1.1], [5.5, 1.2]),
    ]
)
THRESHOLDS = (0.6, 1.0, 2.0, 4.5)
N_NEIGHBORS = 4
FAINT = "#b8bec6"
NAMES = "abcdefghijkl"
NAME_STYLE: Any = {
    "color": "white",
    "ha": "center",
    "va": "center",
    "fontsize": 8.5,
    "weight": "bold",
    "zorder": 4,
}

Floats = npt.NDArray[np.float64]
Cluster = list[int]


def find_nearest(clusters: list[Cluster], values: Floats, has_edge: Any) -> dict[int, tuple[int, float]]:
    """Return the nearest neighbour of each cluster and the average linkage with it."""
    found = {}
    for i, one in enumerate(clusters):
        linked = [j for j, other in enumerate(clusters) if i != j and has_edge[np.ix_(one, other)].any()]
        linkages = [float(values[np.ix_(one, clusters[j])].mean()) for j in linked]
        if linked:
            best = int(np.argmin(linkages))
            found[i] = (linked[best], linkages[best])
    return found


def merge(clusters: list[Cluster], arrows: dict[int, tuple[int, float]], threshold: float) -> list[Cluster]:
    """Merge the clusters that arrows within the threshold connect."""
    group = list(range(len(clusters)))
    for i, (j, value) in arrows.items():
        if value <= threshold:
            group = [group[j] if g == group[i] else g for g in group]
    merged: dict[int, Cluster] = {}
    for cluster, number in zip(clusters, group, strict=True):
        merged.setdefault(number, []).extend(cluster)
    return sorted((sorted(cluster) for cluster in merged.values()), key=min)


def set_up(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlim(0.3, 6.5)
    axes.set_ylim(0.4, 5.0)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(FAINT)


def draw_points(axes: Any, clusters: list[Cluster]) -> None:
    """Draw the points in the colour of the first point of their cluster, and a shape around each cluster."""
    for cluster in clusters:
        colour = COLOURS[cluster[0]]
        if len(cluster) > 1:  # a thick line around the convex hull
            order = ConvexHull(POINTS[cluster]).vertices if len(cluster) > 2 else np.array([0, 1])
            hull = POINTS[cluster][order]
            light = lighten(np.array(to_rgb(colour)), 0.8)
            axes.fill(*hull.T, color=light, lw=0, zorder=0)
            ends = np.vstack([hull, hull[:1]]).T
            axes.plot(*ends, color=light, lw=44, solid_joinstyle="round", solid_capstyle="round", zorder=0)
        axes.scatter(*POINTS[cluster].T, s=130, color=colour, zorder=3)
    for name, point in zip(NAMES, POINTS, strict=True):
        axes.text(*point, name, **NAME_STYLE)


def draw_round(axes: Any, number: int, clusters: list[Cluster], arrows: Any, threshold: float) -> None:
    """Draw the clusters before a round, and an arrow from each cluster to its nearest neighbour."""
    merged = merge(clusters, arrows, threshold)
    set_up(axes, f"Round {number}: threshold {threshold:g}, {len(clusters)} → {len(merged)} clusters")
    draw_points(axes, clusters)
    for i, (j, value) in arrows.items():
        start, end = POINTS[clusters[i]].mean(axis=0), POINTS[clusters[j]].mean(axis=0)
        merges = value <= threshold
        arrow = FancyArrowPatch(
            tuple(start),
            tuple(end),
            arrowstyle="-|>",
            mutation_scale=13,
            connectionstyle="arc3,rad=0.16",
            shrinkA=7,
            shrinkB=8,
            color=INK if merges else FAINT,
            lw=1.6 if merges else 1.1,
            linestyle="-" if merges else (0, (3, 2)),
            zorder=5,
        )
        axes.add_patch(arrow)


def draw_tree(axes: Any, partitions: list[list[Cluster]]) -> None:
    """Draw the tree: one row per round, and one node per new cluster."""
    leaves = [i for cluster in partitions[-1] for i in order_leaves(cluster, partitions)]
    x: dict[tuple[int, ...], float] = {(i,): float(leaves.index(i)) for i in range(len(POINTS))}
    height = dict.fromkeys(x, 0)
    for number, partition in enumerate(partitions[1:], 1):
        for cluster in map(tuple, partition):
            if cluster in x:
                continue
            children = [tuple(part) for part in partitions[number - 1] if set(part) <= set(cluster)]
            x[cluster], height[cluster] = float(np.mean([x[child] for child in children])), number
            ends = [x[child] for child in children]
            axes.plot([min(ends), max(ends)], [number, number], color=INK, lw=1.5)
            for child in children:
                axes.plot([x[child]] * 2, [height[child], number], color=COLOURS[child[0]], lw=2)
    for i in range(len(POINTS)):
        axes.scatter(x[(i,)], 0, s=130, color=COLOURS[i], zorder=3)
        axes.text(
            x[(i,)], 0, NAMES[i], color="white", ha="center", va="center", fontsize=8.5, weight="bold", zorder=4
        )
    axes.set_yticks(range(len(partitions)))
    names = ["points", *(f"round {number}" for number in range(1, len(partitions)))]
    counts = [f"{len(partition)} cluster{'s' * (len(partition) > 1)}" for partition in partitions]
    axes.set_yticklabels([f"{name}: {count}" for name, count in zip(names, counts, strict=True)], fontsize=9)
    axes.set_xticks([])
    axes.tick_params(length=0, colors=INK)
    for y in range(1, len(partitions)):
        axes.axhline(y, color=FAINT, lw=0.6, zorder=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def order_leaves(cluster: Cluster, partitions: list[list[Cluster]]) -> list[int]:
    """Return the points of a cluster such that the clusters of all earlier rounds are contiguous."""
    for partition in reversed(partitions):
        parts = [part for part in partition if set(part) < set(cluster)]
        if parts:
            return [i for part in parts for i in order_leaves(part, partitions)]
    return cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder

    graph = agglo.neighbor_graph(POINTS, N_NEIGHBORS, "euclidean")
    tree = agglo.scc(graph, thresholds=np.array(THRESHOLDS, np.float32), connect=None)
    weights = graph.to_scipy().toarray()
    has_edge = weights > 0
    values: Floats = np.asarray(np.where(has_edge, weights, graph.missing), np.float64)

    figure = Figure(figsize=(12, 13.2), dpi=90, layout="constrained")
    panels = figure.subplots(3, 2).ravel()
    set_up(panels[0], "Twelve points: twelve clusters")
    draw_points(panels[0], [[i] for i in range(len(POINTS))])
    set_up(panels[1], f"The graph: edges to the {N_NEIGHBORS} nearest neighbours")
    for i, j in zip(*np.nonzero(np.triu(has_edge)), strict=True):
        panels[1].plot(*POINTS[[i, j]].T, color=FAINT, lw=1.2, zorder=1)
    draw_points(panels[1], [[i] for i in range(len(POINTS))])
    partitions = [[[i] for i in range(len(POINTS))]]
    for number, threshold in enumerate(THRESHOLDS, 1):
        clusters = partitions[-1]
        arrows = find_nearest(clusters, values, has_edge)
        draw_round(panels[number + 1], number, clusters, arrows, threshold)
        partitions.append(merge(clusters, arrows, threshold))
        labels = tree.cut(round=number)
        ours = sorted(np.flatnonzero(labels == label).tolist() for label in set(labels.tolist()))
        if ours != partitions[-1]:
            raise AssertionError(f"round {number}: agglo.scc has {ours}, the definition has {partitions[-1]}")
        print(number, threshold, partitions[-1])
    figure.savefig(folder / "algorithm-rounds.png")

    figure = Figure(figsize=(9, 3.6), dpi=90, layout="constrained")
    draw_tree(figure.subplots(), partitions)
    figure.savefig(folder / "algorithm-tree.png")


if __name__ == "__main__":
    main()
