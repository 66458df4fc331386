"""The top of a tree as a dendrogram, with few enough branches to be read."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from agglo.plot.style import FAINT, INK, Colours, Labels, bare, cluster_colours, count, uniform
from agglo.tree.hierarchy import Hierarchy

_LEAST = 1e-3  # of the largest similarity: where its axis ends, as the thresholds do


class Branch(NamedTuple):
    """A node of the top of a tree, or several siblings that there was no room for."""

    node: int
    """The node; for several, the largest of them."""
    parent: int
    """Where in the list its parent is; -1 for the root."""
    x: float
    """Between 0 and the number of ends: ends are 1 apart, and others above the middle of theirs."""
    height: float
    size: int
    """Leaves of the tree."""
    nodes: int
    """How many siblings it stands for."""
    end: bool
    """Whether nothing below it is shown."""


def top_branches(tree: Hierarchy, n_ends: int) -> list[Branch]:
    """The top of the tree with at most ``n_ends`` ends, parents before children.

    The highest nodes are opened first. Of a node with more children than there is room for, the largest are
    shown and the others stand together as one.
    """
    if isinstance(n_ends, bool) or not isinstance(n_ends, int | np.integer) or n_ends < 2:
        raise ValueError(f"n_ends={n_ends!r} is too few to draw a tree: pass a whole number from 2 on")
    root = tree.n_nodes - 1
    shown: dict[int, tuple[list[int], list[int]]] = {}  # of an opened node: the children shown, and the others
    room = int(n_ends) - 1
    heap = [(-float(tree.height[root]), root)]
    while heap and room > 0:
        _, node = heapq.heappop(heap)
        children = tree.children(node)
        if not len(children):
            continue
        children = children[np.argsort(-tree.size[children], kind="stable")]
        own = children[: room + 1] if len(children) <= room + 1 else children[:room]
        others = children[len(own) :]
        room -= len(own) + (len(others) > 0) - 1
        shown[node] = (own[np.argsort(tree.start[own])].tolist(), others.tolist())
        for child in own.tolist():
            heapq.heappush(heap, (-float(tree.height[child]), child))
    return _laid_out(tree, root, shown)


def _laid_out(tree: Hierarchy, root: int, shown: dict[int, tuple[list[int], list[int]]]) -> list[Branch]:
    found: list[Branch] = []
    pending: list[tuple[list[int], int]] = [([root], -1)]
    ends = 0
    while pending:
        nodes, parent = pending.pop()
        node = nodes[0]
        end = len(nodes) > 1 or node not in shown
        found.append(
            Branch(
                *(node, parent, ends + 0.5, float(tree.height[nodes].max()), int(tree.size[nodes].sum())),
                *(len(nodes), end),
            )
        )
        if end:
            ends += 1
            continue
        own, others = shown[node]
        below = [[child] for child in own] + ([others] if others else [])
        pending += [(group, len(found) - 1) for group in reversed(below)]
    # A branch is above the middle between its first and its last child.
    spans: dict[int, list[float]] = {}
    for place in reversed(range(len(found))):
        branch = found[place]
        if place in spans:
            branch = found[place] = branch._replace(x=(min(spans[place]) + max(spans[place])) / 2)
        spans.setdefault(branch.parent, []).append(branch.x)
    return found


def dendrogram(
    axes: Axes, tree: Hierarchy, labels: Labels, colours: Colours | None = None, *, n_ends: int = 40
) -> None:
    """Draw the top of the tree as a dendrogram, at most ``n_ends`` branches at its lower end.

    The vertical axis is the height or, for a tree of similarities, the similarity on a logarithmic scale. Each end
    stands for a whole subtree, a wedge from where it was made down; below is its number of points. Siblings that
    there is no room for stand together, dashed.
    """
    colours = cluster_colours(labels, tree) if colours is None else colours
    inside = uniform(tree, labels)
    branches = top_branches(tree, n_ends)
    ground, level = _vertical_axis(axes, tree, branches)
    lines, line_inks, styles, wedges, wedge_inks = [], [], [], [], []
    for branch in branches:
        cluster = inside[branch.node] if branch.nodes == 1 else -1
        ink: Any = FAINT if cluster < 0 else tuple(colours[cluster])
        if branch.parent >= 0:
            above = branches[branch.parent]
            top = level(above.height)
            lines.append([(branch.x, level(branch.height)), (branch.x, top), (above.x, top)])
            line_inks.append(ink)
            styles.append("solid" if branch.nodes == 1 else (0, (2, 2)))
        if branch.end:
            half = 0.38 if branch.size > 1 else 0.06
            wedges.append([(branch.x - half, ground), (branch.x + half, ground), (branch.x, level(branch.height))])
            wedge_inks.append(ink)
            axes.annotate(
                count(branch.size) + (f" in {branch.nodes}" if branch.nodes > 1 else ""),
                (branch.x, ground),
                xytext=(0, -4),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=7,
                color=INK,
                rotation=90,
            )
    axes.add_collection(LineCollection(lines, colors=line_inks, linewidths=1.3, linestyles=styles))
    axes.add_collection(PolyCollection(wedges, facecolors=wedge_inks, alpha=0.55, linewidths=0))
    axes.set_xlim(0, sum(branch.end for branch in branches))
    axes.set_xticks([])
    bare(axes)


def _vertical_axis(axes: Axes, tree: Hierarchy, branches: list[Branch]) -> tuple[float, Any]:
    """Set the axis; returns where leaves stand on it, and a function from heights to places on it."""
    if tree.about.get("kind") != "similarity":
        axes.set_ylim(0, max(branches[0].height * 1.03, 1e-12))
        axes.set_ylabel("height", color=INK, fontsize=9)
        return 0.0, float
    origin = float(tree.about["origin"])

    def level(height: float) -> float:
        return max(origin - height, _LEAST * origin)

    axes.set_yscale("log")
    axes.set_ylim(origin, min(level(branches[0].height), 0.5 * origin) / 1.05)
    axes.set_ylabel("similarity", color=INK, fontsize=9)
    return origin, level
