"""Perch: online hierarchical clustering with rotations."""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.paper.baselines.online import OnlineBaseline, center_and_scale, find_earlier_neighbors
from agglo.paper.validation import check_count
from agglo.points.points import PointArray

Search = Literal["exact", "boxes", "beam"]
SEARCHES = ("exact", "boxes", "beam")
MASKINGS = ("exact", "boxes")


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
    shuffle : bool, default=True
        Whether to insert the points in random order. If False, they are inserted in the order of the rows.
    random_state : int, RandomState or None, default=None
        The random seed of the order of the points. Pass an integer for reproducible results.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree; the height of a node is the sum of squared distances of its points to their mean.
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point.
    n_features_in_ : int
        The number of columns of ``X``.

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

    def __init__(
        self,
        n_clusters: SupportsIndex | None = None,
        *,
        search: Search = "exact",
        beam_width: int = 10,
        masking: Literal["exact", "boxes"] = "exact",
        balance: bool = True,
        max_leaves: int | None = None,
        shuffle: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.search = search
        self.beam_width = beam_width
        self.masking = masking
        self.balance = balance
        self.max_leaves = max_leaves
        self.shuffle = shuffle
        self.random_state = random_state

    def _check(self) -> None:
        if self.search not in SEARCHES:
            raise ValueError(f"search={self.search!r} is unknown: pass one of {', '.join(SEARCHES)}")
        if self.masking not in MASKINGS:
            raise ValueError(f"masking={self.masking!r} is unknown: pass one of {', '.join(MASKINGS)}")
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
