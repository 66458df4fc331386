"""Colours, axes and number formats that all figures share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from agglo.tree.hierarchy import Hierarchy

Labels = npt.NDArray[np.int64]
Colours = npt.NDArray[np.float64]

# Adjacent colours of this list differ in hue and in lightness.
PALETTE = (
    *("#3b6fb6", "#e4572e", "#2a9d63", "#f2a541", "#7b4ea3", "#22a7c4"),
    *("#d6447c", "#8a9a2b", "#8c5a3c", "#6f7de8", "#c9b037", "#2f7f79"),
)
OTHERS = "#b8bec6"  # the colour of clusters beyond the palette
INK = "#2b2f36"
FAINT = "#8a919c"


def cluster_colours(labels: Labels, tree: Hierarchy | None = None) -> Colours:
    """Return the RGB colour of each cluster.

    If ``tree`` is given, clusters that are adjacent in the leaf order of the tree get adjacent colours of the
    palette. If there are more clusters than colours, the clusters of a branch share one colour, alternately dark
    and light. Without ``tree``, the largest clusters get the colours of the palette, and all others are grey.
    """
    sizes = np.bincount(labels)
    if tree is not None and np.count_nonzero(sizes) > len(PALETTE):
        branches = branches_of(labels, tree)
        first = np.full(len(sizes), tree.n_leaves)
        np.minimum.at(first, labels[tree.order], np.arange(tree.n_leaves))
        ordered = np.argsort(first, kind="stable")
        shares = np.zeros(len(sizes))
        shares[ordered] = 0.35 * (np.arange(len(sizes)) % 2)
        palette = np.array([to_rgb(colour) for colour in PALETTE])
        return lighten(palette[branches % len(PALETTE)], shares[:, None])
    colours = np.tile(to_rgb(OTHERS), (len(sizes), 1))
    largest = np.argsort(-sizes, kind="stable")[: len(PALETTE)]
    ordered = labels if tree is None else labels[tree.order]
    sequence = ordered[np.sort(np.unique(ordered, return_index=True)[1])]
    for colour, cluster in zip(PALETTE, sequence[np.isin(sequence, largest)], strict=False):
        colours[cluster] = to_rgb(colour)
    return colours


def branches_of(labels: Labels, tree: Hierarchy) -> Labels:
    """Return the branch of each cluster: the cluster of a coarser cut that contains its first point.

    Branches are numbered in leaf order. There are about as many branches as colours in the palette.
    """
    coarse = tree.taxonomy([min(len(PALETTE), tree.n_leaves)]).labels[0]
    branches = np.zeros(int(labels.max()) + 1, np.int64)
    ordered = coarse[tree.order]
    number = np.empty(int(coarse.max()) + 1, np.int64)
    starts = np.sort(np.unique(ordered, return_index=True)[1])
    number[ordered[starts]] = np.arange(len(starts))
    # NumPy keeps the last of several assignments to an entry, so assign in reverse order.
    branches[labels[tree.order][::-1]] = number[ordered[::-1]]
    return branches


def containing_clusters(tree: Hierarchy, labels: Labels) -> npt.NDArray[np.int64]:
    """Return the cluster that contains each node, or -1 if the leaves of a node are in several clusters."""
    ordered = labels[tree.order]
    changes = np.concatenate(([0], np.cumsum(ordered[1:] != ordered[:-1])))
    inside = changes[tree.start] == changes[tree.start + tree.size - 1]
    return np.where(inside, ordered[tree.start], -1)


def remove_frame(axes: Axes) -> None:
    """Hide the frame except for a faint line on the left."""
    axes.tick_params(colors=FAINT, labelsize=8, which="both", length=2)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "left")
        spine.set_color(FAINT)


def lighten(colours: Colours, share: Any) -> Colours:
    """Mix colours with white; ``share`` is the share of white, from 0 to 1."""
    return np.asarray(colours + (1 - colours) * share)


def format_count(count: float) -> str:
    """Format a count in few characters: 1,797 or 145k or 1M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= max(unit, 1e4):
            return f"{count / unit:.3g}{name}"
    return f"{count:,.0f}"
