"""Perch: points join a tree next to their nearest neighbours, and rotations keep clusters together."""

from __future__ import annotations

from typing import Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.paper.baselines.online import OnlineBaseline, centered, earlier_neighbors
from agglo.paper.dpmeans.base import check_count
from agglo.points.validation import Points

Search = Literal["exact", "boxes", "beam"]
SEARCHES = ("exact", "boxes", "beam")
MASKINGS = ("exact", "boxes")


class Perch(OnlineBaseline):
    """Clusterer that inserts each point next to its nearest neighbour and then rotates the tree.

    The algorithm of Kobren and others [1]_. A new point becomes the sibling of the leaf nearest to it. Then, from
    there upwards, a node all of whose points are closer to all of its aunt's than to any of its sibling's makes
    sibling and aunt change places. If clusters are so far apart that points of one are closer to each other than
    to any point outside, every cluster is a node of the tree, in whatever order the points come.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters of ``labels_``; by default those of the persistent round.
    search : {"exact", "boxes", "beam"}, default="exact"
        How the nearest leaf is found. ``"exact"``: by products of all points with those before them;
        ``"boxes"``: by best-first search with the bounding boxes of nodes, which is exact too and pays in few
        dimensions; ``"beam"``: by such a search that goes on with the best ``beam_width`` nodes of a level only.
    beam_width : int, default=10
        How many, with ``search="beam"``.
    masking : {"exact", "boxes"}, default="exact"
        Whether rotations compare points, or what bounding boxes say about them.
    balance : bool, default=True
        Also rotate where that makes the tree shallower and the three nodes are not apart from each other.
    max_leaves : int, optional
        When there are more leaves, the two sibling leaves that are closest become one.
    shuffle : bool, default=True
        Insert the points in random order; otherwise in the order of the rows.
    random_state : int, RandomState or None, default=None
        Where the order comes from. An integer makes results repeatable.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree; the height of a node is the sum of squared distances of its points to their mean.
    labels_ : ndarray of int64 of shape (n_points,)
        The cluster of each point.
    n_features_in_ : int
        Number of columns of ``X``.

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
            raise ValueError("max_leaves=1 leaves no tree: pass at least 2, or None for no limit")

    def _grown(self, points: Points) -> tuple[npt.NDArray[np.int32], None, dict[str, Any]]:
        rows, _ = centered(points)
        nearest = np.empty(0, np.int32)
        if self.search == "exact":
            nearest = earlier_neighbors(rows, 1, dot=False).ravel()
        about = {
            "method": "perch",
            "search": self.search,
            "masking": self.masking,
            "balance": bool(self.balance),
            "max_leaves": None if self.max_leaves is None else int(self.max_leaves),
        }
        if self.search == "beam":
            about["beam_width"] = int(self.beam_width)
        parent = _core.perch(
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
