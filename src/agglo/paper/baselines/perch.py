"""Perch: online hierarchical clustering with rotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._validation import check_choice
from agglo.paper.baselines.online import OnlineBaseline, center_and_scale, find_earlier_neighbors
from agglo.paper.validation import check_count
from agglo.points.points import PointArray

Search = Literal["exact", "boxes", "beam"]
SEARCHES = ("exact", "boxes", "beam")
MASKINGS = ("exact", "boxes")


@dataclass(eq=False, repr=False, kw_only=True)
class Perch(OnlineBaseline):
    """Online clustering that inserts each point next to its nearest neighbour and then rotates the tree.

    This is the algorithm of Kobren et al. [1]_. A new point becomes the sibling of its nearest leaf. Then each
    node on the path from the new point to the root may be rotated. A rotation swaps the sibling and the aunt of a
    node. It is applied if the points of the node are closer to the points of the aunt than to those of the
    sibling. Guarantee: if every point is closer to all points of its class than to any other point, every class is
    a node of the tree. This holds for any order of the points.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters in ``labels_``. By default the tree is cut at the most persistent round.
    search : {"exact", "boxes", "beam"}, default="exact"
        The method of the search for the nearest leaf. ``"exact"`` compares the new point with all points of the
        tree. ``"boxes"`` is a best-first search with the bounding boxes of nodes. It is exact, and fast in few
        dimensions. ``"beam"`` is an approximate beam search with bounding boxes.
    beam_width : int, default=10
        The number of nodes per level that ``search="beam"`` keeps.
    masking : {"exact", "boxes"}, default="exact"
        Whether rotations compare all points (``"exact"``) or only bounding boxes (``"boxes"``).
    balance : bool, default=True
        Whether to rotate also to make the tree shallower, if the three nodes are not separated.
    max_leaves : int, optional
        The maximum number of leaves. If there are more, the two closest sibling leaves are merged into one.
    shuffle, random_state
        As for ``OnlineBaseline``.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree; the height of a node is the sum of squared distances of its points to their mean.

    References
    ----------
    .. [1] A. Kobren, N. Monath, A. Krishnamurthy and A. McCallum, "A Hierarchical Algorithm for Extreme
       Clustering", KDD 2017.

    Examples
    --------
    >>> from agglo.paper.baselines import Perch
    >>> Perch(2, random_state=0).fit_predict([[0.0], [10.0], [1.0], [12.0]])
    array([0, 1, 0, 1])
    """

    search: Search = "exact"
    beam_width: int = 10
    masking: Literal["exact", "boxes"] = "exact"
    balance: bool = True
    max_leaves: int | None = None

    def _check(self) -> None:
        check_choice("search", self.search, SEARCHES)
        check_choice("masking", self.masking, MASKINGS)
        check_count("beam_width", self.beam_width)
        if self.max_leaves is not None and check_count("max_leaves", self.max_leaves) < 2:
            raise ValueError("max_leaves=1 is too small for a tree: pass at least 2, or None for no limit")

    def _build_parents(self, points: PointArray) -> tuple[npt.NDArray[np.int32], None, dict[str, Any]]:
        rows, _ = center_and_scale(points)
        nearest = np.empty(0, np.int32)
        if self.search == "exact":
            nearest = find_earlier_neighbors(rows, 1, dot=False).ravel()
        about = {
            "method": "perch",
            "search": self.search,
            "masking": self.masking,
            "balance": bool(self.balance),
            "max_leaves": None if self.max_leaves is None else int(self.max_leaves),
        }
        if self.search == "beam":
            about["beam_width"] = int(self.beam_width)
        parent = _core.build_perch_tree(
            rows,
            nearest,
            self.search,
            int(self.beam_width),
            self.masking == "exact",
            bool(self.balance),
            int(self.max_leaves or 0),
            None,
        )
        return parent, None, about
