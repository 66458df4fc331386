"""Copies of points, folded: a set of equal points is one point with their weight, and a node of the tree.

Copies cost a search as much as any points, and crowd all others out of each other's neighbours. Folded, they cost
nothing. The tree is that of points which must be linked (see :mod:`agglo.rounds.constraints`) and have the edges
of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo import _core
from agglo._arrays import Immutable, is_read_only, release
from agglo._validation import threads
from agglo.rounds.constraints import Constraints, check_constraints
from agglo.tree.hierarchy import Hierarchy, Rounds

Ids = npt.NDArray[np.int64]

_ROWS = 4096  # copied at a time


@dataclass(frozen=True, eq=False)
class Folding(Immutable):
    """Which points are folded into which.

    1. ``point`` has the first point of each set, ascending;
    2. ``place`` says where in ``point`` that of each point is.
    """

    point: Ids
    place: Ids

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", release(self.point))
        object.__setattr__(self, "place", release(self.place))

    @property
    def n_copies(self) -> int:
        """How many points are folded into others."""
        return len(self.place) - len(self.point)

    def rows(self, X: Any) -> Any:
        """The points that are left; in a temporary file if they are more than memory should hold."""
        if not self.n_copies:
            return X
        return take_rows(X, self.point)

    def weights(self, known: Constraints) -> npt.NDArray[np.float64] | None:
        """What the points that are left count as; None if each is 1."""
        if not self.n_copies:
            return known.weights
        return np.bincount(self.place, known.weights).astype(np.float64)

    def constraints(self, known: Constraints) -> dict[str, Any]:
        """What is known of the points, as it is of those that are left: arguments of :func:`agglo.scc`."""
        groups = [self.place[group] for group in known.large_groups()]
        pairs = self.place[known.cannot]
        return {
            "sample_weight": self.weights(known),
            "must_link": self.place[known.must],
            "cannot_link": [*pairs.tolist(), *groups] if groups else pairs,
            "max_cluster_size": known.most if np.isfinite(known.most) else None,
        }

    def with_more(self, copies: Ids, new: Any, known: Constraints, n_jobs: int | None) -> tuple[Folding, Ids]:
        """The folding of these points and ``new`` ones after them, and which of the new ones are left.

        ``copies`` says for each new point which of the points that are left it is equal to, -1 for none.
        """
        n, place = len(self.place), copies.copy()
        place[np.isin(place, self.place[known.named()])] = -1
        if np.isfinite(known.most):
            place[:] = -1
        rest = np.flatnonzero(place < 0)
        among = folding(new[rest], check_constraints(len(rest)), n_jobs) if len(rest) else unfoldable(0)
        if np.isfinite(known.most):
            among = unfoldable(len(rest))
        place[rest] = len(self.point) + among.place
        fresh = rest[among.point]
        return Folding(np.concatenate([self.point, n + fresh]), np.concatenate([self.place, place])), fresh


def take_rows(X: Any, rows: Ids) -> Any:
    """Return a copy of these rows; in a temporary file if they are more than memory should hold."""
    if sp.issparse(X):
        return X[rows]
    from agglo.io.tables import room  # slow to import, and seldom needed

    taken = room((len(rows), X.shape[1]), X.dtype)
    for first in range(0, len(taken), _ROWS):
        taken[first : first + _ROWS] = X[rows[first : first + _ROWS]]
    return taken


def private(points: Any, source: Any) -> Any:
    """Return ``points``, which were made of ``source``, copied if others could change them later."""
    if sp.issparse(points):
        shared = sp.issparse(source) and any(
            np.may_share_memory(column, getattr(source, name, ()))
            for name, column in (("data", points.data), ("indices", points.indices), ("indptr", points.indptr))
        )
        return points.copy() if shared else points
    if is_read_only(points) or isinstance(source, list | tuple):
        return points
    if isinstance(source, np.ndarray) and not np.may_share_memory(points, source):
        return points
    return take_rows(points, np.arange(len(points)))  # a table of any other library may have views of its memory


def unfoldable(n_points: int) -> Folding:
    """Every point for itself."""
    return Folding(np.arange(n_points), np.arange(n_points))


def folding(X: Any, known: Constraints, n_jobs: int | None = None) -> Folding:
    """The sets of equal rows of ``X``, dense or sparse.

    Points that a constraint links or keeps apart are in no set with others, and no set is heavier than a cluster
    may be.

    Examples
    --------
    >>> import numpy as np
    >>> from agglo.rounds.constraints import check_constraints
    >>> from agglo.points.dedup import folding
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [5.0, 6.0]])
    >>> folding(X, check_constraints(4)).place
    array([0, 1, 0, 2])
    """
    n = X.shape[0]
    first = _first_equal(X, threads(n_jobs))
    if (first == np.arange(n)).all():
        return unfoldable(n)
    first[known.named()] = n + known.named()  # of a set of its own, so that all that is known of it is of it alone
    if np.isfinite(known.most):
        first = _split(first, np.ones(n) if known.weights is None else known.weights, known.most)
    _, point, place = np.unique(first, return_index=True, return_inverse=True)
    order = np.argsort(point)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Folding(point[order], rank[place])


def node_names(tree: Hierarchy, folded: Folding) -> Ids:
    """The nodes of :func:`unfolded` that those of ``tree`` are: of a set of points, the node of all of them."""
    n, count = len(folded.place), np.bincount(folded.place)
    linked = _linked(tree)
    name = np.full(tree.n_nodes, n)
    name[: len(count)] = folded.point
    np.minimum.at(name, tree.parent[: len(count)], folded.point)  # right for linked nodes, and these are asked for
    made = np.flatnonzero(linked | np.append(count > 1, np.zeros(tree.n_nodes - len(count), bool)))
    made = made[np.argsort(name[made])]  # the nodes of the first round, in order of smallest point
    name[made] = n + np.arange(len(made))
    later = (tree.round > 0) & ~linked
    name[later] = n + len(made) + np.arange(later.sum())
    return name


def unfolded(tree: Hierarchy, folded: Folding, known: Constraints) -> Hierarchy:
    """The tree of all points, if ``tree`` is that of the points that are left.

    Each set of equal points is a node of height 0, of the round before all others, which has no threshold. If that
    is there already, because points must be linked, it is the same round.
    """
    if not folded.n_copies:
        return tree
    n, place, count = len(folded.place), folded.place, np.bincount(folded.place)
    linked = bool(_linked(tree).any())
    name = node_names(tree, folded)
    total = int(name.max()) + 1
    parent = np.full(total, -1, np.int32)
    parent[name[:-1]] = name[tree.parent[:-1]]
    several = count[place] > 1
    parent[:n][several] = name[place[several]]
    below = np.zeros(tree.n_nodes, np.int64)
    below[: len(count)] = count
    size, height, round = np.ones(total, np.int32), np.zeros(total), np.zeros(total, np.int32)
    inner = name >= n
    size[name] = _core.sums_below(tree.parent, below)
    height[name] = tree.height
    round[name[inner]] = np.where(tree.round[inner] == 0, 1, tree.round[inner] + (not linked))
    record = tree.rounds[0] if linked else None
    first = {
        "threshold": np.nan,
        "before": n,
        "after": len(count) if record is None else record.after,
        "seconds": np.nan if record is None else record.seconds,
    }
    columns = {key: np.append(value, getattr(tree.rounds, key)[linked:]) for key, value in first.items()}
    about = {**tree.about, "copies": folded.n_copies}
    about.pop("weight")
    return Hierarchy(parent, height, size, round, Rounds(**columns), about | known.about())


def _linked(tree: Hierarchy) -> npt.NDArray[np.bool_]:
    """Which nodes are of the round that links what must be linked."""
    return np.asarray((tree.round == 1) & ("must_link" in tree.about))


def canonical_rows(X: Any) -> Any:
    """Return sparse rows with ascending columns, no entry twice and no zeros, copied only if necessary."""
    rows = sp.csr_array(X, copy=False)
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows


def _first_equal(X: Any, workers: int) -> Ids:
    """For each row the first one that is equal to it."""
    if sp.issparse(X):
        rows = canonical_rows(X)
        ends = rows.indptr.astype(np.int64)
        same_places = _equal(ends, rows.indices, workers).astype(np.int64)
        pairs = same_places * rows.shape[0] + _equal(ends, rows.data, workers)
        _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
        return np.asarray(first[which])
    points = np.ascontiguousarray(X)
    ends = np.arange(len(points) + 1, dtype=np.int64) * points.shape[1]
    return _equal(ends, points.reshape(-1), workers).astype(np.int64)


def _equal(ends: Ids, numbers: npt.NDArray[Any], workers: int) -> npt.NDArray[np.int32]:
    bits = numbers.view(np.dtype(f"u{numbers.dtype.itemsize}"))
    found: npt.NDArray[np.int32] = _core.first_equal(ends, bits, numbers.dtype.kind == "f", workers)
    return found


def _split(first: Ids, weights: npt.NDArray[np.float64], most: float) -> Ids:
    """Smaller sets of those that are heavier than ``most``: of so many points each as surely are not."""
    names, place, count = np.unique(first, return_inverse=True, return_counts=True)
    heaviest = np.zeros(len(names))
    np.maximum.at(heaviest, place, weights)
    order = np.argsort(place, kind="stable")
    rank = np.empty_like(order)  # of each point in its set
    rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    heavy = np.bincount(place, weights) > most
    part = np.where(heavy[place], rank // np.floor(most / heaviest)[place].astype(np.int64), 0)
    return np.unique(np.column_stack([place, part]), axis=0, return_inverse=True)[1].ravel()
