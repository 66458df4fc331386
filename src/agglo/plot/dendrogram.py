"""Draw the top of a tree as a dendrogram with few branches."""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection

from agglo.plot.style import (
    FAINT,
    INK,
    Colours,
    Labels,
    cluster_colours,
    containing_clusters,
    format_count,
    remove_frame,
)
from agglo.tree.hierarchy import Hierarchy

_MIN_SIMILARITY = 1e-3  # the lowest similarity of the axis, relative to the largest


class Branch(NamedTuple):
    """A branch of the dendrogram: one node, or several siblings that are drawn as one branch."""

    node: int
    """The id of the node. For several siblings, the id of the largest sibling."""
    parent: int
    """The position of the parent branch in the list of branches; -1 for the root."""
    x: float
    """The horizontal position. Ends have distance 1; a parent is centred above its children."""
    height: float
    size: int
    """The number of points below the branch."""
    n_nodes: int
    """The number of nodes that the branch represents."""
    is_end: bool
    """Whether the branch is an end: its children are not drawn."""


def top_branches(tree: Hierarchy, n_ends: int) -> list[Branch]:
    """Return the branches of the top of the tree, with at most ``n_ends`` ends; parents precede children.

    The highest nodes are expanded first. If a node has too many children, the largest children are drawn
    separately, and all others as one branch.
    """
    if isinstance(n_ends, bool) or not isinstance(n_ends, int | np.integer) or n_ends < 2:
        raise ValueError(f"n_ends={n_ends!r} is too few to draw a tree: pass an integer of at least 2")
    root = tree.n_nodes - 1
    expanded: dict[int, tuple[list[int], list[int]]] = {}  # node: (separate children, children drawn as one)
    n_left = int(n_ends) - 1
    heap = [(-float(tree.height[root]), root)]
    while heap and n_left > 0:
        _, node = heapq.heappop(heap)
        children = tree.children(node)
        if not len(children):
            continue
        children = children[np.argsort(-tree.size[children], kind="stable")]
        own = children[: n_left + 1] if len(children) <= n_left + 1 else children[:n_left]
        others = children[len(own) :]
        n_left -= len(own) + (len(others) > 0) - 1
        expanded[node] = (own[np.argsort(tree.start[own])].tolist(), others.tolist())
        for child in own.tolist():
            heapq.heappush(heap, (-float(tree.height[child]), child))
    return _layout(tree, root, expanded)


def _layout(tree: Hierarchy, root: int, expanded: dict[int, tuple[list[int], list[int]]]) -> list[Branch]:
    """Compute the branches and their horizontal positions from the expanded nodes."""
    branches: list[Branch] = []
    pending: list[tuple[list[int], int]] = [([root], -1)]
    n_ends = 0
    while pending:
        nodes, parent = pending.pop()
        node = nodes[0]
        is_end = len(nodes) > 1 or node not in expanded
        height, size = float(tree.height[nodes].max()), int(tree.size[nodes].sum())
        branches.append(Branch(node, parent, n_ends + 0.5, height, size, len(nodes), is_end))
        if is_end:
            n_ends += 1
            continue
        own, others = expanded[node]
        groups = [[child] for child in own] + ([others] if others else [])
        pending += [(group, len(branches) - 1) for group in reversed(groups)]
    # A parent is centred between its first and its last child.
    child_xs: dict[int, list[float]] = {}
    for position in reversed(range(len(branches))):
        branch = branches[position]
        if position in child_xs:
            xs = child_xs[position]
            branch = branches[position] = branch._replace(x=(min(xs) + max(xs)) / 2)
        child_xs.setdefault(branch.parent, []).append(branch.x)
    return branches


def dendrogram(
    axes: Axes, tree: Hierarchy, labels: Labels, colours: Colours | None = None, *, n_ends: int = 40
) -> None:
    """Draw the top of the tree as a dendrogram with at most ``n_ends`` ends.

    The vertical axis is the height or, for a tree of similarities, the similarity on a logarithmic scale. Each end
    is a wedge that represents a subtree: it starts at the subtree's height, with the number of points below it. If
    a node has too many children, the smallest are drawn as one dashed branch.
    """
    colours = cluster_colours(labels, tree) if colours is None else colours
    clusters = containing_clusters(tree, labels)
    branches = top_branches(tree, n_ends)
    ground, level = _vertical_axis(axes, tree, branches)
    lines, line_inks, styles, wedges, wedge_inks = [], [], [], [], []
    for branch in branches:
        cluster = clusters[branch.node] if branch.n_nodes == 1 else -1
        ink: Any = FAINT if cluster < 0 else tuple(colours[cluster])
        if branch.parent >= 0:
            above = branches[branch.parent]
            top = level(above.height)
            lines.append([(branch.x, level(branch.height)), (branch.x, top), (above.x, top)])
            line_inks.append(ink)
            styles.append("solid" if branch.n_nodes == 1 else (0, (2, 2)))
        if branch.is_end:
            half = 0.38 if branch.size > 1 else 0.06
            wedges.append([(branch.x - half, ground), (branch.x + half, ground), (branch.x, level(branch.height))])
            wedge_inks.append(ink)
            axes.annotate(
                format_count(branch.size) + (f" in {branch.n_nodes}" if branch.n_nodes > 1 else ""),
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
    axes.set_xlim(0, sum(branch.is_end for branch in branches))
    axes.set_xticks([])
    remove_frame(axes)


def _vertical_axis(axes: Axes, tree: Hierarchy, branches: list[Branch]) -> tuple[float, Any]:
    """Set up the vertical axis; return the position of leaves, and a function from heights to positions."""
    if tree.about.get("kind") != "similarity":
        axes.set_ylim(0, max(branches[0].height * 1.03, 1e-12))
        axes.set_ylabel("height", color=INK, fontsize=9)
        return 0.0, float
    origin = float(tree.about["origin"])

    def level(height: float) -> float:
        return max(origin - height, _MIN_SIMILARITY * origin)

    axes.set_yscale("log")
    axes.set_ylim(origin, min(level(branches[0].height), 0.5 * origin) / 1.05)
    axes.set_ylabel("similarity", color=INK, fontsize=9)
    return origin, level
