"""Colours, axes and numbers in the pictures of trees: what they all share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from agglo.tree.hierarchy import Hierarchy

Labels = npt.NDArray[np.int64]
Colours = npt.NDArray[np.float64]

# Neighbours in this list are far apart in hue and in lightness.
PALETTE = (
    *("#3b6fb6", "#e4572e", "#2a9d63", "#f2a541", "#7b4ea3", "#22a7c4"),
    *("#d6447c", "#8a9a2b", "#8c5a3c", "#6f7de8", "#c9b037", "#2f7f79"),
)
OTHERS = "#b8bec6"  # clusters beyond the palette
INK = "#2b2f36"
FAINT = "#8a919c"


def cluster_colours(labels: Labels, tree: Hierarchy | None = None) -> Colours:
    """A colour (red, green, blue) a cluster: one of the palette for the largest, grey for all others.

    With ``tree``, clusters that are side by side in it get colours that are side by side in the palette.
    """
    sizes = np.bincount(labels)
    colours = np.tile(to_rgb(OTHERS), (len(sizes), 1))
    largest = np.argsort(-sizes, kind="stable")[: len(PALETTE)]
    here = labels if tree is None else labels[tree.order]
    sequence = here[np.sort(np.unique(here, return_index=True)[1])]
    for colour, cluster in zip(PALETTE, sequence[np.isin(sequence, largest)], strict=False):
        colours[cluster] = to_rgb(colour)
    return colours


def uniform(tree: Hierarchy, labels: Labels) -> npt.NDArray[np.int64]:
    """For each node, the cluster of ``labels`` that it is inside of; -1 if it unites several."""
    here = labels[tree.order]
    changes = np.concatenate(([0], np.cumsum(here[1:] != here[:-1])))
    inside = changes[tree.start] == changes[tree.start + tree.size - 1]
    return np.where(inside, here[tree.start], -1)


def count(number: int) -> str:
    """A number in three digits and a letter: 1234567 is 1.23M."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{letter}"
    return str(number)


def bare(axes: Axes) -> None:
    """Leave of the frame only a faint line on the left."""
    axes.tick_params(colors=FAINT, labelsize=8, which="both", length=2)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "left")
        spine.set_color(FAINT)


def paler(colours: Colours, share: Any) -> Colours:
    """The colours with a share of white in them."""
    return np.asarray(colours + (1 - colours) * share)


def short(count: float) -> str:
    """A count in few characters: 1,797 and 145k and 1M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= max(unit, 1e4):
            return f"{count / unit:.3g}{name}"
    return f"{count:,.0f}"
