"""Draw a tree and its clusters: icicle plot, dendrogram, scatter plot, curves.

Figures are created without pyplot, so that no window opens and no global state changes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from agglo.io.atomic import replace_file
from agglo.plot.dendrogram import dendrogram
from agglo.plot.style import (
    FAINT,
    INK,
    PALETTE,
    Colours,
    Labels,
    cluster_colours,
    containing_clusters,
    format_count,
    lighten,
    remove_frame,
)
from agglo.plot.treemap import treemap
from agglo.tree.dp_means_path import DPMeansPath, dp_means_path
from agglo.tree.hierarchy import Hierarchy

_MAX_POINTS = 20_000  # maximum number of points in a scatter plot; more would cover each other
_MAX_ROUNDS = 2_000  # maximum number of rounds that a curve shows
_PCA_POINTS = 2_000  # number of sampled points from which the principal axes are computed
_DEFAULT_CLUSTERS = {"dendrogram": 10, "treemap": 40}  # the default number of clusters for each kind of figure
_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 10, "color": INK}


class Picture(Figure):
    """A matplotlib figure that a notebook shows as an image, with or without ``%matplotlib inline``."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png")
        return stream.getvalue()


def icicle(axes: Axes, tree: Hierarchy, labels: Labels, colours: Colours | None = None) -> None:
    """Draw the tree as an icicle plot: the root is at the top, and a node's width is its number of leaves.

    The vertical axis is the number of clusters, so a horizontal line is the partition of
    ``tree.cut(n_clusters=...)``. A node within one cluster of ``labels`` has the colour of that cluster, lighter
    towards the leaves. A node with leaves of several clusters is grey. Nodes narrower than a pixel are not drawn.

    Examples
    --------
    >>> import agglo
    >>> from matplotlib.figure import Figure
    >>> from agglo import plot
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> figure = Figure()
    >>> plot.icicle(figure.subplots(), tree, tree.cut(n_clusters=2))
    """
    colours = cluster_colours(labels, tree) if colours is None else colours
    n, last = tree.n_leaves, len(tree.rounds)
    counts = np.concatenate(([n], tree.rounds.after))
    ceiling = counts[-1] / _headroom(n / counts[-1])
    pixel = n / _width_in_pixels(axes)
    # A node exists from the round that created it to the round in which it merges; a root never merges.
    nodes = np.flatnonzero((tree.round <= last) & (tree.size >= pixel))
    lower = counts[tree.round[nodes]]
    next_round = tree.round[tree.parent[nodes]]
    upper = np.where((tree.parent[nodes] < 0) | (next_round > last), ceiling, counts[np.minimum(next_round, last)])
    first = tree.start[nodes]

    ordered = labels[tree.order]
    cluster = containing_clusters(tree, labels)[nodes]
    has_cluster = cluster >= 0
    depth = np.log(lower / counts[-1]) / max(np.log(n / counts[-1]), 1e-9)
    base = np.where(has_cluster[:, None], colours[cluster], to_rgb("#5d646f"))
    faces = lighten(base, np.where(has_cluster, 0.75 * depth, 0.25 + 0.5 * depth)[:, None])

    # The background has a light colour of the cluster. It is visible where nodes are too narrow to be drawn.
    starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    is_wide = np.diff(starts, append=n) >= pixel
    background = _rectangles(starts[is_wide], np.append(starts, n)[1:][is_wide], n, ceiling)
    tints = lighten(colours[ordered[starts[is_wide]]], 0.82)
    axes.add_collection(PolyCollection(background, facecolors=tints, linewidths=0))
    boxes = _rectangles(first, first + tree.size[nodes], lower, upper)
    axes.add_collection(PolyCollection(boxes, facecolors=faces, edgecolors="white", linewidths=0.35))
    axes.set_facecolor("#eef0f3")
    axes.set_xlim(0, n)
    _set_cluster_axis(axes, n, ceiling)
    axes.set_xticks([])


def scatter(
    axes: Axes, X: npt.ArrayLike, labels: Labels, colours: Colours | None = None, *, unit: bool = False
) -> npt.NDArray[np.float64]:
    """Draw a scatter plot of the points on their first two principal axes; return the coordinates.

    The colour of a point is the colour of its cluster.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes to draw into.
    X : array-like of shape (n_points, n_features)
        The points.
    labels : ndarray of int64
        The cluster of each point.
    colours : ndarray of shape (n_clusters, 3), optional
        The colour of each cluster; ``cluster_colours`` by default.
    unit : bool, default=False
        Whether to normalize all points to unit length first, for the cosine metric.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from agglo import plot
    >>> X = [[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]]
    >>> plot.scatter(Figure().subplots(), X, np.array([0, 0, 1])).shape
    (3, 2)
    """
    colours = cluster_colours(labels) if colours is None else colours
    flat = principal_axes(X, unit=unit)
    # Draw in random order, so that no cluster covers the others.
    drawn = np.random.default_rng(0).permutation(len(flat))[:_MAX_POINTS]
    area = float(np.clip(18_000 / len(drawn), 0.5, 22))
    axes.scatter(flat[drawn, 0], flat[drawn, 1], c=colours[labels[drawn]], s=area, alpha=0.75, linewidths=0)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    return flat


def rounds(axes: Axes, tree: Hierarchy) -> None:
    """Draw the number of clusters after each round as a curve.

    Examples
    --------
    >>> import agglo
    >>> from matplotlib.figure import Figure
    >>> from agglo import plot
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> figure = Figure()
    >>> plot.rounds(figure.subplots(), tree)
    """
    counts = np.concatenate(([tree.n_leaves], tree.rounds.after))
    drawn = np.unique(np.linspace(0, len(counts) - 1, _MAX_ROUNDS).round().astype(int))
    axes.step(drawn, counts[drawn], where="post", color=INK, linewidth=1.2)
    axes.set_xlim(0, max(1, len(counts) - 1))
    _set_cluster_axis(axes, tree.n_leaves, counts[-1] / _headroom(tree.n_leaves / counts[-1]))
    axes.set_xlabel("round", color=INK, fontsize=9)
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def prices(cost_axes: Axes, count_axes: Axes, path: DPMeansPath) -> None:
    """Draw the minimum DP-means cost of all cuts, and the number of clusters of the best cut, as curves over λ.

    Examples
    --------
    >>> import agglo
    >>> from matplotlib.figure import Figure
    >>> from agglo import plot
    >>> X = [[0.0], [1.0], [5.0]]
    >>> tree = agglo.hac(agglo.neighbor_graph(X, 2, "euclidean"))
    >>> figure = Figure()
    >>> plot.prices(*figure.subplots(2), agglo.dp_means_path(tree, X))
    """
    positive = path.lambdas[path.lambdas > 0]
    low, high = (positive[0] / 3, positive[-1] * 3) if len(positive) else (0.1, 10.0)
    lam = np.geomspace(low, high, 400)
    cost_axes.plot(lam, path.cost(lam), color=INK, linewidth=1.4)
    cost_axes.set_ylabel("least cost", color=INK, fontsize=9)
    counts = path.n_clusters[np.searchsorted(path.lambdas, lam, side="right") - 1]
    count_axes.step(lam, counts, where="post", color=PALETTE[0], linewidth=1.4)
    count_axes.set_ylabel("clusters", color=INK, fontsize=9)
    count_axes.set_xlabel("price of a cluster, λ", color=INK, fontsize=9)
    for axes in (cost_axes, count_axes):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(low, high)
        axes.grid(color=FAINT, alpha=0.25, linewidth=0.6)
        remove_frame(axes)
        axes.spines["bottom"].set_visible(True)
    most = int(counts[0])
    ticks = [step * 10**power for power in range(10) for step in ((1, 2, 5) if most < 50 else (1,))]
    count_axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if tick <= most]))
    count_axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    count_axes.yaxis.set_minor_locator(NullLocator())
    cost_axes.tick_params(labelbottom=False)


KINDS = ("overview", "treemap", "dendrogram", "icicle", "rounds", "dp-means")


def draw(
    tree: Hierarchy,
    kind: str = "overview",
    labels: Labels | None = None,
    X: npt.ArrayLike | None = None,
    *,
    names: Callable[[int], str] | None = None,
) -> Picture:
    """Draw a tree and return the figure, which a notebook shows if the call ends a cell.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    kind : {"overview", "treemap", "dendrogram", "icicle", "rounds", "dp-means"}
        - ``overview``: an icicle plot, the number of clusters after each round and, with ``X``, a scatter plot.
        - ``treemap``: all clusters of a cut as boxes with names. Their areas show their numbers of points.
        - ``dendrogram``: the condensed tree, with the number of clusters on the horizontal axis, and names.
        - ``icicle``: the tree, with the number of clusters on the vertical axis.
        - ``rounds``: the number of clusters after each round.
        - ``dp-means``: the minimum DP-means cost, and its number of clusters, for every λ; needs ``X``.
    labels : ndarray of int64, optional
        The cluster of each point, which determines the colours. The default is ``tree.cut(round="persistent")``.
        For ``dendrogram`` and ``treemap``, it is a level of ``tree.taxonomy`` with about 10 and 40 clusters.
    X : array-like of shape (n_points, n_features), optional
        The points.
    names : callable, optional
        A function that returns the name of a node, for ``dendrogram`` and ``treemap``.

    Examples
    --------
    >>> import agglo
    >>> from agglo.plot import draw, save
    >>> X = [[0.0], [1.0], [10.0], [12.0]]
    >>> tree = agglo.hac(agglo.neighbor_graph(X, "all", "sqeuclidean"))
    >>> save(draw(tree, "dendrogram"), "dendrogram.png")
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is unknown: pass one of {', '.join(KINDS)}")
    if names is not None and not callable(names):
        raise TypeError(
            f"names is a {type(names).__name__}: pass a function that returns the name of a node, such as "
            "lambda node: f'{tree.size[node]} points'"
        )
    if kind == "dp-means" and X is None:
        raise ValueError("kind='dp-means' needs the points of the tree: pass X")
    if labels is None and kind in _DEFAULT_CLUSTERS:
        labels = tree.taxonomy([min(_DEFAULT_CLUSTERS[kind], tree.n_leaves)]).labels[0]
    elif labels is None:
        labels = tree.cut(round="persistent")
    if kind == "overview":
        return overview(tree, labels, X)
    figure = Picture(figsize=(8.0, 4.4), dpi=110, facecolor="white")
    if kind == "treemap":
        figure.set_size_inches(10.0, 6.2)
        treemap(figure.add_axes((0.01, 0.01, 0.98, 0.98)), tree, labels, names=names)
        return figure
    if kind == "dp-means":
        assert X is not None
        upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"hspace": 0.12})
        prices(upper, lower, dp_means_path(tree, X))
        return figure
    axes = figure.subplots()
    if kind == "rounds":
        rounds(axes, tree)
    elif kind == "icicle":
        icicle(axes, tree, labels)
    else:
        dendrogram(axes, tree, labels, names=names)
        figure.set_layout_engine("constrained")  # leaves room for names
        figure.set_size_inches(8.0, 0.8 + 0.18 * axes.get_ylim()[0])
    return figure


def overview(
    tree: Hierarchy,
    labels: Labels,
    X: npt.ArrayLike | None = None,
    *,
    title: str = "",
    pictures: Mapping[int, npt.ArrayLike] | None = None,
) -> Picture:
    """Create a figure: an icicle plot, a curve of the cluster counts per round and, with ``X``, a scatter plot.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    labels : ndarray of int64
        The cluster of each point in a cut of the tree, which determines the colours.
    X : array-like of shape (n_points, n_features), optional
        The points.
    title : str, optional
        The title of the figure.
    pictures : mapping of int to array-like, optional
        A small greyscale image for each cluster, which is drawn below the tree and in the scatter plot.

    Examples
    --------
    >>> import numpy as np, agglo
    >>> from agglo.plot import overview
    >>> X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0, 0], [9, 9], [0, 9]], 100, axis=0)
    >>> tree = agglo.scc(agglo.neighbor_graph(X, metric="sqeuclidean"))
    >>> figure = overview(tree, tree.cut(n_clusters=3), X)
    >>> [len(axes.collections) for axes in figure.axes]
    [2, 0, 1]
    """
    colours = cluster_colours(labels, tree)
    n_clusters = int(labels.max()) + 1
    figure = Picture(figsize=(11.0 if X is not None else 6.8, 4.4), dpi=110, facecolor="white")
    ratios = [3.4, 0.9, 3.0][: 3 if X is not None else 2]
    grid = figure.add_gridspec(
        *(1, len(ratios)), width_ratios=ratios, wspace=0.1, left=0.065, right=0.985, top=0.83, bottom=0.16
    )
    tree_axes = figure.add_subplot(grid[0])
    icicle(tree_axes, tree, labels, colours)
    tree_axes.set_title("tree", **_TITLE)
    round_axes = figure.add_subplot(grid[1])
    rounds(round_axes, tree)
    round_axes.set_ylabel("")
    round_axes.set_yticklabels([])
    round_axes.set_title("rounds", **_TITLE)
    for axes in (tree_axes, round_axes):
        axes.axhline(n_clusters, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=3)
    round_axes.annotate(
        f"{n_clusters} clusters",
        (0, n_clusters),
        xycoords=("axes fraction", "data"),
        xytext=(4, 4),
        textcoords="offset points",
        fontsize=8,
        color=INK,
    )
    if pictures:
        ordered = labels[tree.order]
        middles = {cluster: (float(np.flatnonzero(ordered == cluster).mean()), 0.0) for cluster in pictures}
        base = tree_axes.transAxes.transform((0, -0.075))[1]
        _draw_images(tree_axes, pictures, middles, colours, base)
    if X is not None:
        point_axes = figure.add_subplot(grid[2])
        flat = scatter(point_axes, X, labels, colours, unit=tree.about.get("metric") == "cosine")
        point_axes.set_title("points, on their two principal axes", **_TITLE)
        if pictures:
            medians = {cluster: np.median(flat[labels == cluster], axis=0) for cluster in pictures}
            _draw_images(point_axes, pictures, medians, colours)
    if title:
        figure.text(0.065, 0.93, title, fontsize=12.5, color=INK, fontweight="bold")
    return figure


def check_name(path: str | os.PathLike[str]) -> str:
    """Return the image format that the suffix of a file name selects; raise if matplotlib cannot write it."""
    form = Path(path).suffix.lstrip(".").lower()
    if form not in Figure().canvas.get_supported_filetypes():
        raise ValueError(f"a picture cannot be written to {path}: end the name in .png, .svg or .pdf")
    return form


def save(figure: Figure, path: str | os.PathLike[str], *, form: str | None = None) -> None:
    """Write a figure to ``path`` atomically. ``form`` is the image format, by default the suffix of ``path``.

    Examples
    --------
    >>> import tempfile
    >>> from matplotlib.figure import Figure
    >>> from agglo import plot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot.save(Figure(), f"{folder}/empty.png")
    """
    form = check_name(path) if form is None else form
    with replace_file(path) as partial:
        figure.savefig(partial, format=form)


def principal_axes(X: npt.ArrayLike, *, unit: bool = False) -> npt.NDArray[np.float64]:
    """Project points onto their first two principal axes, computed from a sample; return the coordinates."""
    points = np.asarray(X, np.float64)
    if unit:
        length = np.linalg.norm(points, axis=1, keepdims=True)
        points = points / np.where(length > 0, length, 1)
    sample = np.random.default_rng(0).permutation(len(points))[:_PCA_POINTS]
    center = points[sample].mean(axis=0)
    directions = np.linalg.svd(points[sample] - center, full_matrices=False)[2][:2]
    # The sign of a principal axis is arbitrary. Fix it, so that the same points give the same picture.
    directions *= np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])[:, None]
    flat = (points - center) @ directions.T
    return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))


def _rectangles(left: Any, right: Any, lower: Any, upper: Any) -> list[npt.NDArray[np.float64]]:
    """Return the four corners of each rectangle, for a PolyCollection."""
    left, right, lower, upper = np.broadcast_arrays(left, right, lower, upper)
    corners = np.stack([left, lower, left, upper, right, upper, right, lower], axis=-1)
    return list(corners.reshape(-1, 4, 2).astype(float))


def _width_in_pixels(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return float(axes.get_position().width * figure.get_size_inches()[0] * figure.dpi)


def _headroom(span: float) -> float:
    """Return the factor by which an axis of cluster counts extends beyond the last round.

    ``span`` is the number of points divided by the number of clusters after the last round.
    """
    return float(max(span, 2.0) ** 0.07)


def _set_cluster_axis(axes: Axes, n: int, ceiling: float) -> None:
    """Make the vertical axis logarithmic, from ``n`` clusters at the bottom to ``ceiling`` at the top."""
    axes.set_yscale("log")
    axes.set_ylim(max(n, ceiling * 1.5), ceiling)
    steps = (1, 2, 5) if n / ceiling < 50 else (1,)
    ticks = [step * 10**power for power in range(10) for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if ceiling <= tick < n / 1.4] + [n]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("clusters", color=INK, fontsize=9)
    remove_frame(axes)


def _draw_images(
    axes: Axes,
    pictures: Mapping[int, npt.ArrayLike],
    positions: Mapping[int, Sequence[float] | npt.NDArray[np.float64]],
    colours: Colours,
    base: float | None = None,
) -> None:
    """Draw the image of each cluster near its position, which is in data coordinates, without overlaps.

    If ``base`` is given, the images are drawn in a row at this vertical position in pixels.
    """
    side = 30.0  # pixels, frame included
    axes.get_xlim(), axes.get_ylim()  # compute the axis limits, which transData needs
    spots = axes.transData.transform(np.array([positions[cluster] for cluster in pictures]))
    if base is not None:
        spots[:, 1] = base
    fractions = axes.transAxes.inverted().transform(_separate(spots, 1.25 * side))
    for (cluster, picture), spot in zip(pictures.items(), fractions, strict=True):
        image = np.asarray(picture, float)
        box = OffsetImage(image, zoom=side / 2 / max(image.shape), cmap="gray_r", interpolation="nearest")
        frame = {"edgecolor": tuple(colours[cluster]), "linewidth": 1.5, "boxstyle": "round,pad=0.08"}
        axes.add_artist(
            AnnotationBbox(box, tuple(spot), xycoords="axes fraction", pad=0.1, bboxprops=frame, zorder=4)
        )


def _separate(spots: npt.NDArray[np.float64], distance: float) -> npt.NDArray[np.float64]:
    """Move positions apart until no two are closer than ``distance``, in at most 100 steps."""
    spots = spots + np.arange(len(spots))[:, None] * 1e-3  # equal positions would have no direction to move in
    for _ in range(100):
        between = spots[:, None] - spots[None]
        lengths = np.linalg.norm(between, axis=2)
        push = np.where(lengths < distance, distance - lengths, 0.0)
        np.fill_diagonal(push, 0.0)
        if push.max() < 0.5:
            break
        spots = spots + (between / np.maximum(lengths, 1e-9)[..., None] * push[..., None]).sum(axis=1) / 2
    return spots
