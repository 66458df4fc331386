"""Pictures of a tree and its clusters; needs matplotlib, which ``pip install 'agglo[plot]'`` brings along.

Figures are built with matplotlib's objects alone: no window, no state that others share.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
from agglo.plot.style import FAINT, INK, PALETTE, Colours, Labels, bare, cluster_colours, paler, short, uniform
from agglo.tree.dp_means import DPMeansPath, dp_means_path
from agglo.tree.hierarchy import Hierarchy

_MOST_POINTS = 20_000  # drawn in a scatter; more would only cover each other
_MOST_ROUNDS = 2_000  # drawn as a curve
_AXES_POINTS = 2_000  # looked at to find the principal axes


def icicle(axes: Axes, tree: Hierarchy, labels: Labels, colours: Colours | None = None) -> None:
    """Draw the tree as an icicle: the root on top, a node as wide as it has leaves.

    The vertical axis is the number of clusters, so that a horizontal line is a partition: the one that
    ``tree.cut(n_clusters=...)`` gives. Nodes inside one cluster of ``labels`` have its colour, paler towards the
    leaves; those that unite several are grey. Only what is wider than a pixel is drawn.
    """
    colours = cluster_colours(labels, tree) if colours is None else colours
    n, last = tree.n_leaves, len(tree.rounds)
    counts = np.concatenate(([n], tree.rounds.after))
    ceiling = counts[-1] / _headroom(n / counts[-1])
    pixel = n / _width_in_pixels(axes)
    # A cluster lives from the round that made it to the one in which it merges; a forest's root never does.
    nodes = np.flatnonzero((tree.round <= last) & (tree.size >= pixel))
    made = counts[tree.round[nodes]]
    next_round = tree.round[tree.parent[nodes]]
    gone = np.where((tree.parent[nodes] < 0) | (next_round > last), ceiling, counts[np.minimum(next_round, last)])
    first = tree.start[nodes]

    here = labels[tree.order]
    changes = np.concatenate(([0], np.cumsum(here[1:] != here[:-1])))
    cluster = uniform(tree, labels)[nodes]
    inside = cluster >= 0
    depth = np.log(made / counts[-1]) / max(np.log(n / counts[-1]), 1e-9)
    base = np.where(inside[:, None], colours[cluster], to_rgb("#5d646f"))
    faces = paler(base, np.where(inside, 0.75 * depth, 0.25 + 0.5 * depth)[:, None])

    # Where nodes are too narrow to be drawn, the ground has a tint of the cluster.
    starts = np.flatnonzero(np.diff(changes, prepend=-1))
    wide = np.diff(starts, append=n) >= pixel
    ground = _boxes(starts[wide], np.append(starts, n)[1:][wide], n, ceiling)
    axes.add_collection(PolyCollection(ground, facecolors=paler(colours[here[starts[wide]]], 0.82), linewidths=0))
    boxes = _boxes(first, first + tree.size[nodes], made, gone)
    axes.add_collection(PolyCollection(boxes, facecolors=faces, edgecolors="white", linewidths=0.35))
    axes.set_facecolor("#eef0f3")
    axes.set_xlim(0, n)
    _clusters_axis(axes, n, ceiling)
    axes.set_xticks([])


def scatter(
    axes: Axes, X: npt.ArrayLike, labels: Labels, colours: Colours | None = None, *, unit: bool = False
) -> npt.NDArray[np.float64]:
    """Draw the points on their two principal axes in the colours of their clusters; returns where they are.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Where to draw.
    X : array-like of shape (n_points, n_features)
        The points.
    labels : ndarray of int64
        The cluster of each point.
    colours : ndarray of shape (n_clusters, 3), optional
        The colour of each cluster; :func:`cluster_colours` by default.
    unit : bool, default=False
        Whether to give all points unit length first, as a cosine does.
    """
    colours = cluster_colours(labels) if colours is None else colours
    flat = principal_axes(X, unit=unit)
    drawn = np.random.default_rng(0).permutation(len(flat))[:_MOST_POINTS]  # also: no cluster is on top of others
    area = float(np.clip(18_000 / len(drawn), 0.5, 22))
    axes.scatter(flat[drawn, 0], flat[drawn, 1], c=colours[labels[drawn]], s=area, alpha=0.75, linewidths=0)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    return flat


def rounds(axes: Axes, tree: Hierarchy) -> None:
    """Draw the number of clusters after every round."""
    counts = np.concatenate(([tree.n_leaves], tree.rounds.after))
    shown = np.unique(np.linspace(0, len(counts) - 1, _MOST_ROUNDS).round().astype(int))
    axes.step(shown, counts[shown], where="post", color=INK, linewidth=1.2)
    axes.set_xlim(0, max(1, len(counts) - 1))
    _clusters_axis(axes, tree.n_leaves, counts[-1] / _headroom(tree.n_leaves / counts[-1]))
    axes.set_xlabel("round", color=INK, fontsize=9)
    axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def prices(cost_axes: Axes, count_axes: Axes, path: DPMeansPath) -> None:
    """Draw the least DP-means cost of the tree, and how many clusters have it, against the price of a cluster."""
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
        bare(axes)
        axes.spines["bottom"].set_visible(True)
    most = int(counts[0])
    ticks = [step * 10**power for power in range(10) for step in ((1, 2, 5) if most < 50 else (1,))]
    count_axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if tick <= most]))
    count_axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    count_axes.yaxis.set_minor_locator(NullLocator())
    cost_axes.tick_params(labelbottom=False)


KINDS = ("overview", "icicle", "dendrogram", "rounds", "dp-means")


def draw(
    tree: Hierarchy, kind: str = "overview", labels: Labels | None = None, X: npt.ArrayLike | None = None
) -> Figure:
    """A figure of a tree, in one line.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    kind : {"overview", "icicle", "dendrogram", "rounds", "dp-means"}
        ``overview``: icicle, rounds and, if ``X`` is given, points. ``icicle`` and ``dendrogram``: the tree, by
        numbers of clusters and by height; both stay readable for a million leaves. ``rounds``: clusters after
        every round. ``dp-means``: the least DP-means cost and its number of clusters for every price; needs ``X``.
    labels : ndarray of int64, optional
        The cut that gives the colours; ``tree.cut(round="persistent")`` by default.
    X : array-like of shape (n_points, n_features), optional
        The points.

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
    if kind == "dp-means" and X is None:
        raise ValueError("kind='dp-means' needs the points that the tree is of: pass X")
    labels = tree.cut(round="persistent") if labels is None else labels
    if kind == "overview":
        return overview(tree, labels, X)
    figure = Figure(figsize=(8.0, 4.4), dpi=110, facecolor="white")
    if kind == "dp-means":
        assert X is not None
        upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"hspace": 0.12})
        prices(upper, lower, dp_means_path(tree, X))
        return figure
    axes = figure.subplots()
    if kind == "rounds":
        rounds(axes, tree)
    else:
        {"icicle": icicle, "dendrogram": dendrogram}[kind](axes, tree, labels)
    return figure


def overview(
    tree: Hierarchy,
    labels: Labels,
    X: npt.ArrayLike | None = None,
    *,
    title: str = "",
    pictures: Mapping[int, npt.ArrayLike] | None = None,
) -> Figure:
    """A figure of the tree, its rounds and, if ``X`` is given, its points, in the colours of ``labels``.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    labels : ndarray of int64
        A cut of the tree.
    X : array-like of shape (n_points, n_features), optional
        The points.
    title : str, optional
        A line above all.
    pictures : mapping of int to array-like, optional
        Small grey pictures of clusters, to stand below them and among their points.

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
    figure = Figure(figsize=(11.0 if X is not None else 6.8, 4.4), dpi=110, facecolor="white")
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
        here = labels[tree.order]
        middles = {cluster: (float(np.flatnonzero(here == cluster).mean()), 0.0) for cluster in pictures}
        base = tree_axes.transAxes.transform((0, -0.075))[1]
        _pictures(tree_axes, pictures, middles, colours, base)
    if X is not None:
        point_axes = figure.add_subplot(grid[2])
        flat = scatter(point_axes, X, labels, colours, unit=tree.about.get("metric") == "cosine")
        point_axes.set_title("points, on their two principal axes", **_TITLE)
        if pictures:
            medians = {cluster: np.median(flat[labels == cluster], axis=0) for cluster in pictures}
            _pictures(point_axes, pictures, medians, colours)
    if title:
        figure.text(0.065, 0.93, title, fontsize=12.5, color=INK, fontweight="bold")
    return figure


def check_name(path: str | os.PathLike[str]) -> str:
    """Return the format of a picture that the name of its file asks for."""
    form = Path(path).suffix.lstrip(".").lower()
    if form not in Figure().canvas.get_supported_filetypes():
        raise ValueError(f"a picture cannot be written to {path}: end the name in .png, .svg or .pdf")
    return form


def save(figure: Figure, path: str | os.PathLike[str], *, form: str | None = None) -> None:
    """Write a figure to ``path``, whole or not at all, in the format ``form`` or else what its name ends in."""
    form = check_name(path) if form is None else form
    with replace_file(path) as partial:
        figure.savefig(partial, format=form)


def principal_axes(X: npt.ArrayLike, *, unit: bool = False) -> npt.NDArray[np.float64]:
    """The points on their two principal axes, which a sample of them decides; of unit length first, if asked."""
    points = np.asarray(X, np.float64)
    if unit:
        length = np.linalg.norm(points, axis=1, keepdims=True)
        points = points / np.where(length > 0, length, 1)
    sample = np.random.default_rng(0).permutation(len(points))[:_AXES_POINTS]
    centre = points[sample].mean(axis=0)
    directions = np.linalg.svd(points[sample] - centre, full_matrices=False)[2][:2]
    # The sign of a direction means nothing; fix it, so that the same points give the same picture.
    directions *= np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])[:, None]
    flat = (points - centre) @ directions.T
    return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))


def _boxes(left: Any, right: Any, lower: Any, upper: Any) -> list[npt.NDArray[np.float64]]:
    """Rectangles as matplotlib wants them: their four corners."""
    left, right, lower, upper = np.broadcast_arrays(left, right, lower, upper)
    corners = np.stack([left, lower, left, upper, right, upper, right, lower], axis=-1)
    return list(corners.reshape(-1, 4, 2).astype(float))


_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 10, "color": INK}


def _width_in_pixels(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return float(axes.get_position().width * figure.get_size_inches()[0] * figure.dpi)


def _headroom(span: float) -> float:
    """How far above the last round the vertical axis goes, as a factor, if it spans ``span`` altogether."""
    return float(max(span, 2.0) ** 0.07)


def _clusters_axis(axes: Axes, n: int, ceiling: float) -> None:
    axes.set_yscale("log")
    axes.set_ylim(max(n, ceiling * 1.5), ceiling)
    steps = (1, 2, 5) if n / ceiling < 50 else (1,)
    ticks = [step * 10**power for power in range(10) for step in steps]
    axes.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if ceiling <= tick < n / 1.4] + [n]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("clusters", color=INK, fontsize=9)
    bare(axes)


def _pictures(
    axes: Axes,
    pictures: Mapping[int, npt.ArrayLike],
    places: Mapping[int, Sequence[float] | npt.NDArray[np.float64]],
    colours: Colours,
    base: float | None = None,
) -> None:
    """Put a picture a cluster at its place in data coordinates, or as near as others allow.

    With ``base``, a vertical position in pixels, they stand in a row there.
    """
    side = 30.0  # pixels, frame included
    axes.get_xlim(), axes.get_ylim()  # settles the limits, without which data have no place yet
    spots = axes.transData.transform(np.array([places[cluster] for cluster in pictures]))
    if base is not None:
        spots[:, 1] = base
    fractions = axes.transAxes.inverted().transform(_apart(spots, 1.25 * side))
    for (cluster, picture), spot in zip(pictures.items(), fractions, strict=True):
        image = np.asarray(picture, float)
        box = OffsetImage(image, zoom=side / 2 / max(image.shape), cmap="gray_r", interpolation="nearest")
        frame = {"edgecolor": tuple(colours[cluster]), "linewidth": 1.5, "boxstyle": "round,pad=0.08"}
        axes.add_artist(
            AnnotationBbox(box, tuple(spot), xycoords="axes fraction", pad=0.1, bboxprops=frame, zorder=4)
        )


def _apart(spots: npt.NDArray[np.float64], distance: float) -> npt.NDArray[np.float64]:
    """The spots moved until no two are closer than ``distance``, if a few steps can do that."""
    spots = spots + np.arange(len(spots))[:, None] * 1e-3  # two on one spot must know which way to go
    for _ in range(100):
        between = spots[:, None] - spots[None]
        lengths = np.linalg.norm(between, axis=2)
        push = np.where(lengths < distance, distance - lengths, 0.0)
        np.fill_diagonal(push, 0.0)
        if push.max() < 0.5:
            break
        spots = spots + (between / np.maximum(lengths, 1e-9)[..., None] * push[..., None]).sum(axis=1) / 2
    return spots
