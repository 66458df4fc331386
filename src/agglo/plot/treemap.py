"""Draw all clusters of a cut as a treemap, with their names."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from agglo.plot.style import INK, Colours, Labels, branches_of, cluster_colours, format_count, lighten
from agglo.tree.hierarchy import Hierarchy

_GAP = 2.0  # distance between the boxes of two branches, in typographic points
_FONT_SIZES = (10.0, 8.5, 7.0, 5.5)  # in points; a box has the largest size at which its whole name fits
_CHARACTER = 0.62  # typical width of a character as a share of the font size, with a margin
_FEWEST_CHARACTERS = 5  # boxes with room for fewer characters have no text
_LINE = 1.25  # distance between two lines as a share of the font size
_PADDING = 3.0  # distance between a box and its text, in typographic points


class Box(NamedTuple):
    """A rectangle: left and top edge, width and height."""

    x: float
    y: float
    width: float
    height: float


def squarify(sizes: Sequence[float], box: Box) -> list[Box]:
    """Divide a box into boxes whose areas are proportional to ``sizes``, which must be positive and descending.

    This is the squarified treemap of Bruls, Huizing and van Wijk (2000). It fills the box with rows along its
    shorter side. A row takes further boxes as long as its least square box becomes more square.
    """
    found: list[Box] = []
    scale = box.width * box.height / sum(sizes)
    areas = [size * scale for size in sizes]
    while len(found) < len(areas):
        rest = areas[len(found) :]
        side = min(box.width, box.height)
        count = 1
        while count < len(rest) and _elongation(rest[: count + 1], side) <= _elongation(rest[:count], side):
            count += 1
        row = rest[:count]
        depth = sum(row) / side
        offset = 0.0
        for area in row:
            length = area / depth
            if box.width >= box.height:  # the row is a column at the left
                found.append(Box(box.x, box.y + offset, depth, length))
            else:
                found.append(Box(box.x + offset, box.y, length, depth))
            offset += length
        if box.width >= box.height:
            box = Box(box.x + depth, box.y, max(box.width - depth, 1e-9), box.height)
        else:
            box = Box(box.x, box.y + depth, box.width, max(box.height - depth, 1e-9))
    return found


def _elongation(row: Sequence[float], side: float) -> float:
    """Return the largest ratio of the sides of a box, if the areas ``row`` form a row of length ``side``."""
    total = sum(row)
    return max(side**2 * row[0] / total**2, total**2 / (side**2 * row[-1]))


def treemap(
    axes: Axes,
    tree: Hierarchy,
    labels: Labels,
    colours: Colours | None = None,
    *,
    names: Callable[[int], str] | None = None,
) -> None:
    """Draw each cluster of a cut as a box with its name and size. The area of a box is the number of points.

    Clusters of the same branch of the tree are side by side and have similar colours. ``names`` is a function that
    returns the name of a node of ``tree``; by default, a box shows only the size. A box that is too small for its
    name has only a part of the name, or none.

    Examples
    --------
    >>> import agglo
    >>> from matplotlib.figure import Figure
    >>> from agglo import plot
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> figure = Figure()
    >>> plot.treemap(figure.subplots(), tree, tree.cut(n_clusters=2))
    """
    colours = cluster_colours(labels, tree) if colours is None else colours
    sizes = np.bincount(labels)
    nodes = None if names is None else tree.nodes(labels)
    branches = branches_of(labels, tree)
    width, height = _size_in_points(axes)
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    totals = np.bincount(branches, sizes)
    order = np.argsort(-totals, kind="stable")
    order = order[totals[order] > 0]
    for branch, outer in zip(order, squarify(totals[order].tolist(), Box(0, 0, width, height)), strict=True):
        clusters = np.flatnonzero((branches == branch) & (sizes > 0))
        clusters = clusters[np.argsort(-sizes[clusters], kind="stable")]
        inside = Box(outer.x, outer.y, max(outer.width - _GAP, 1e-9), max(outer.height - _GAP, 1e-9))
        for cluster, box in zip(clusters.tolist(), squarify(sizes[clusters].tolist(), inside), strict=True):
            count = format_count(int(sizes[cluster]))
            name = count if names is None or nodes is None else names(int(nodes[cluster]))
            _draw_box(axes, box, tuple(lighten(colours[cluster], 0.55)), name, "" if names is None else count)


def _draw_box(axes: Axes, box: Box, colour: Any, name: str, count: str) -> None:
    frame = Rectangle((box.x, box.y), box.width, box.height, facecolor=colour, edgecolor="white", linewidth=0.8)
    axes.add_patch(frame)
    name = name.replace("$", r"\$")  # matplotlib would read a formula between two dollar signs
    size, lines = _fit_text(name, count, box)
    for i, line in enumerate(lines):
        text = axes.text(
            box.x + _PADDING,
            box.y + _PADDING + i * _LINE * size,
            line,
            fontsize=size,
            color=INK,
            va="top",
            alpha=0.65 if i and line == count else 1.0,
        )
        text.set_clip_path(frame)


def _fit_text(name: str, count: str, box: Box) -> tuple[float, list[str]]:
    """Return the font size and the lines of text in a box: the name, and ``count`` if it fits and is not empty."""
    size, lines = _FONT_SIZES[-1], []
    for size in _FONT_SIZES:
        n_characters = int((box.width - 2 * _PADDING) / (_CHARACTER * size))
        n_lines = int((box.height - 2 * _PADDING + (_LINE - 1) * size) / (_LINE * size))
        if n_characters < _FEWEST_CHARACTERS or n_lines < 1:
            continue
        lines = textwrap.wrap(name, n_characters, max_lines=n_lines, placeholder="…", break_long_words=False)
        if lines and "…" not in lines[-1] and max(map(len, lines)) <= n_characters:
            return size, lines + [count] * (len(lines) < n_lines and 0 < len(count) <= n_characters)
    return size, [line if len(line) <= n_characters else f"{line[: n_characters - 1]}…" for line in lines]


def _size_in_points(axes: Axes) -> tuple[float, float]:
    """Return the width and the height of axes in points, the unit of font sizes."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    position = axes.get_position()
    return float(position.width * width * 72), float(position.height * height * 72)
