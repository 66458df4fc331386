"""Draw the condensed tree as a dendrogram with few branches."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.ticker import FuncFormatter, NullLocator

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
from agglo.tree.condense import keep_nodes, select_nodes
from agglo.tree.hierarchy import Hierarchy

_BRANCHING = 4.0  # typical number of children of a drawn node
_MAX_NAME = 56  # maximum number of characters of a name


class Branch(NamedTuple):
    """A branch of the dendrogram: one node, or several siblings that are drawn as one branch."""

    node: int
    """The id of the node. For several siblings, the id of the largest sibling."""
    parent: int
    """The position of the parent branch in the list of branches, or -1 for the root."""
    x: float
    """The vertical position of the branch. Adjacent tips are 1 apart. A parent is centred on its children."""
    height: float
    size: int
    """The number of points below the branch."""
    n_nodes: int
    """The number of nodes that the branch represents."""
    is_end: bool
    """Whether the branch is a tip of the dendrogram, drawn without the children of its node."""


def top_branches(tree: Hierarchy, n_ends: int) -> list[Branch]:
    """Return the branches to draw for the upper part of the tree, parents before children.

    At most ``n_ends`` of these branches are tips, which are drawn without children. The highest nodes are split
    into their children first. If a node has too many children, the largest children are drawn separately, and the
    remaining children as one branch. If the tree has more than ``n_ends`` points, the single points among the
    children are also drawn as part of this branch.
    """
    if isinstance(n_ends, bool) or not isinstance(n_ends, int | np.integer) or n_ends < 2:
        raise ValueError(f"n_ends={n_ends!r} is too few to draw a tree: pass an integer of at least 2")
    root = tree.n_nodes - 1
    # For each split node: children drawn separately, children drawn as one branch.
    expanded: dict[int, tuple[list[int], list[int]]] = {}
    n_left = int(n_ends) - 1
    heap = [(-float(tree.height[root]), root)]
    while heap and n_left > 0:
        _, node = heapq.heappop(heap)
        children = tree.children(node)
        children = children[np.argsort(-tree.size[children], kind="stable")]
        own = children if tree.n_leaves <= n_ends else children[children >= tree.n_leaves]
        if not len(own):
            continue
        if len(own) + (len(own) < len(children)) > n_left + 1:
            own = own[:n_left]
        others = children[len(own) :]
        n_left -= len(own) + (len(others) > 0) - 1
        expanded[node] = (own[np.argsort(tree.start[own])].tolist(), others.tolist())
        for child in own.tolist():
            heapq.heappush(heap, (-float(tree.height[child]), child))
    return _layout(tree, root, expanded)


def _layout(tree: Hierarchy, root: int, expanded: dict[int, tuple[list[int], list[int]]]) -> list[Branch]:
    """Return the branches with their positions. ``expanded`` maps the nodes to split to their children."""
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
    axes: Axes,
    tree: Hierarchy,
    labels: Labels,
    colours: Colours | None = None,
    *,
    n_ends: int = 40,
    names: Callable[[int], str] | None = None,
) -> None:
    """Draw the condensed tree as a dendrogram with at most ``n_ends`` branch tips. The root is at the left.

    The horizontal axis is the number of clusters that are left when a node is merged, on a logarithmic scale.
    Heights would crowd at the top of a tree, where clusters have few edges between them. Each tip is a wedge that
    represents a subtree, with the number of points beside it. If a node has too many children, the smallest are
    drawn as one dashed branch, and so are single points. ``names`` is a function that returns the name of a node
    of ``tree``. The name is written beside the tip of the node.

    Examples
    --------
    >>> import agglo
    >>> from matplotlib.figure import Figure
    >>> from agglo import plot
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> figure = Figure()
    >>> plot.dendrogram(figure.subplots(), tree, tree.cut(n_clusters=2))
    """
    colours = cluster_colours(labels, tree) if colours is None else colours
    clusters = containing_clusters(tree, labels)
    condensed, nodes = _condense(tree, n_ends)
    branches = top_branches(condensed, n_ends)
    counts = np.concatenate(
        [[tree.n_leaves], tree.rounds.after, [1]]
    )  # the number of clusters after each round; the last 1 is for the explicit root of a forest
    left = counts[tree.round[nodes]]  # by node: the number of clusters after its round
    ground = tree.n_leaves
    lines, line_inks, styles, wedges, wedge_inks = [], [], [], [], []
    for branch in branches:
        node = int(nodes[branch.node])
        cluster = clusters[node] if branch.n_nodes == 1 else -1
        ink: Any = FAINT if cluster < 0 else tuple(colours[cluster])
        if branch.parent >= 0:
            above = branches[branch.parent]
            top = left[above.node]
            lines.append([(left[branch.node], branch.x), (top, branch.x), (top, above.x)])
            line_inks.append(ink)
            styles.append("solid" if branch.n_nodes == 1 else (0, (2, 2)))
        if branch.is_end:
            half = 0.38 if branch.size > 1 else 0.06
            wedges.append([(ground, branch.x - half), (ground, branch.x + half), (left[branch.node], branch.x)])
            wedge_inks.append(ink)
            axes.annotate(
                _describe_end(branch, "" if names is None or branch.n_nodes > 1 else names(node)),
                (ground, branch.x),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=7.5,
                color=INK,
            )
    axes.add_collection(LineCollection(lines, colors=line_inks, linewidths=1.3, linestyles=styles))
    axes.add_collection(PolyCollection(wedges, facecolors=wedge_inks, alpha=0.55, linewidths=0))
    axes.set_xscale("log")
    axes.set_xlim(left[-1] / 1.05, max(ground, 2))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("clusters", color=INK, fontsize=9)
    axes.set_ylim(sum(branch.is_end for branch in branches), 0)
    axes.set_yticks([])
    remove_frame(axes)
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_visible(True)


def _condense(tree: Hierarchy, n_ends: int) -> tuple[Hierarchy, npt.NDArray[np.int64]]:
    """Return the tree to draw and, for each of its nodes, the id of the same node in ``tree``."""
    if tree.n_leaves <= n_ends:
        return tree, np.arange(tree.n_nodes)
    nodes = select_nodes(tree, _BRANCHING, max(2, tree.n_leaves // (5 * n_ends)))
    return keep_nodes(tree, nodes, {}), np.concatenate([np.arange(tree.n_leaves), nodes])


def _describe_end(branch: Branch, name: str) -> str:
    """Return the text beside the tip of a branch: the name and the number of points."""
    count = format_count(branch.size)
    if branch.n_nodes > 1:
        count += " points" if branch.n_nodes == branch.size else f" in {branch.n_nodes} clusters"
    if len(name) > _MAX_NAME:
        name = name[: _MAX_NAME - 1].rstrip() + "…"
    name = name.replace("$", r"\$")  # matplotlib would read a formula between two dollar signs
    return f"{name}  ({count})" if name else count
