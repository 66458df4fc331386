"""Grinch: online hierarchical clustering with rotations and grafts, for any linkage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import normalize

from agglo import _core
from agglo._validation import check_choice
from agglo.paper.baselines.online import OnlineBaseline, center_and_scale, find_earlier_neighbors
from agglo.paper.validation import check_count
from agglo.points.points import PointArray

LINKAGES = ("average", "centroid", "single", "complete")
METRICS = ("cosine", "sqeuclidean")


@dataclass(eq=False, repr=False, kw_only=True)
class Grinch(OnlineBaseline):
    """Online clustering that inserts one point at a time, and rearranges the tree by rotations and grafts.

    This is the algorithm of Monath et al. [1]_. The search for the place of a new point starts at its nearest
    leaf. It moves up to the first node that is no closer to its sibling than to the point. Then each ancestor of
    the point searches for a graft. A graft is a node such that ancestor and graft are closer to each other than to
    their siblings. The graft becomes the ancestor's new sibling, and the subtree that it left is restructured.

    Parameters
    ----------
    n_clusters : int, optional
        The number of clusters in ``labels_``. By default the tree is cut at the most persistent round.
    linkage : {"average", "centroid", "single", "complete"}, default="average"
        The linkage. Single and complete linkage compare all pairs of points, so set ``cap`` for many points.
    metric : {"cosine", "sqeuclidean"}, default="cosine"
        The metric. The cosine of a zero vector and any point is 0.
    n_neighbors : int or "all", default=25
        The number of nearest neighbours of the new point among which grafts are searched. With ``"all"``, every
        ancestor searches all n points, in O(n) time. The guarantee of [1]_ requires ``"all"``.
    cap : int, optional
        The maximum number of points of a node that is rotated or grafted.
    single_elimination : bool, default=False
        Whether to stop at the first ancestor that finds no graft.
    graft : bool, default=True
        Whether to use grafts. If False, only rotations are used.
    shuffle, random_state
        As for ``OnlineBaseline``.

    Attributes
    ----------
    tree_ : Hierarchy
        The tree. The height of a node is the linkage of its children as a distance. For ``metric="cosine"`` this
        distance is 1 - cosine, otherwise it is a squared distance. If a child is higher, the node has the height
        of the child.

    References
    ----------
    .. [1] N. Monath, A. Kobren, A. Krishnamurthy, M. Glass and A. McCallum, "Scalable Hierarchical Clustering with
       Tree Grafting", KDD 2019.

    Examples
    --------
    >>> from agglo.paper.baselines import Grinch
    >>> Grinch(2, metric="sqeuclidean", random_state=0).fit_predict([[0.0], [10.0], [1.0], [12.0]])
    array([0, 1, 0, 1])
    """

    linkage: Literal["average", "centroid", "single", "complete"] = "average"
    metric: Literal["cosine", "sqeuclidean"] = "cosine"
    n_neighbors: int | Literal["all"] = 25
    cap: int | None = None
    single_elimination: bool = False
    graft: bool = True

    def _check(self) -> None:
        check_choice("linkage", self.linkage, LINKAGES)
        check_choice("metric", self.metric, METRICS)
        if self.n_neighbors != "all":
            check_count("n_neighbors", self.n_neighbors)
        if self.cap is not None:
            check_count("cap", self.cap)

    def _build_parents(
        self, points: PointArray
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], dict[str, Any]]:
        cosine = self.metric == "cosine"
        if cosine:
            rows, scale = np.ascontiguousarray(normalize(points), np.float32), 1.0
        else:
            rows, scale = center_and_scale(points)
        k = 1 if self.n_neighbors == "all" else int(self.n_neighbors)
        parent, value = _core.build_grinch_tree(
            rows,
            find_earlier_neighbors(rows, k, dot=cosine),
            self.linkage,
            cosine,
            self.n_neighbors == "all",
            bool(self.graft),
            bool(self.single_elimination),
            int(self.cap or 0),
            None,
        )
        about = {
            "method": "grinch",
            "linkage": self.linkage,
            "metric": self.metric,
            "n_neighbors": "all" if self.n_neighbors == "all" else k,
            "cap": None if self.cap is None else int(self.cap),
            "single_elimination": bool(self.single_elimination),
            "graft": bool(self.graft),
        }
        return parent, 1 - value if cosine else -value * scale**2, about
