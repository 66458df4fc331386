"""Constraints on the clusters: must-links, cannot-links, the largest cluster size, and weights of points.

The clusters satisfy the constraints after every round. Must-link points merge before the first round. Two clusters
that must not merge are never neighbours. The pairs of a round merge one by one, from the closest to the farthest.
If earlier merges of the same round make the merge of a pair invalid, the pair is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from agglo._validation import Immutable, release

Ids = npt.NDArray[np.int32]
Groups = npt.ArrayLike | Iterable[Sequence[int]]
"""Groups of point indices: an array with one row per group, or a list of groups of any sizes."""

_LEAST = 1e-50  # the smallest allowed weight, so that products of weights do not underflow
_SMALL = 4  # cannot-link groups of up to this size are stored as pairs


@dataclass(frozen=True, eq=False)
class Constraints(Immutable):
    """Validated constraints on points, which do not contradict each other.

    1. ``must`` and ``cannot`` are pairs of distinct points, one pair per row;
    2. ``groups`` has one row (point, group) per member of each cannot-link group that is not stored as pairs;
    3. a cluster of points that ``must`` links contains no cannot-link pair, and its weight is at most ``most``.
    """

    must: Ids
    cannot: Ids
    groups: Ids
    most: float  # the largest allowed weight of a cluster; infinite if there is no limit
    weights: npt.NDArray[np.float64] | None  # the weight of each point; None if all weights are 1

    @property
    def restricts_merges(self) -> bool:
        """Whether there are cannot-links or a limit on the cluster size."""
        return bool(len(self.cannot) or len(self.groups) or np.isfinite(self.most))

    def cannot_pairs(self) -> npt.NDArray[np.int64]:
        """Return all cannot-link pairs, including the pairs of large groups."""
        large = [_pairs(group[None, :]) for group in self.large_groups()]
        return np.concatenate([self.cannot.astype(np.int64), *large])

    def large_groups(self) -> list[Ids]:
        """Return the points of each cannot-link group that is too large to store as pairs."""
        ends = np.flatnonzero(np.diff(self.groups[:, 1])) + 1
        return np.split(self.groups[:, 0], ends) if len(self.groups) else []

    def constrained_points(self) -> Ids:
        """Return all points that have a must-link or a cannot-link."""
        return np.unique(np.concatenate([self.must.ravel(), self.cannot.ravel(), self.groups[:, 0]]))

    def restrict(self, points: npt.NDArray[np.int64], n_points: int) -> Constraints:
        """Return the constraints on ``points``, renumbered from 0. All other points must have weight 0."""
        place = np.full(n_points, -1, np.int32)
        place[points] = np.arange(len(points), dtype=np.int32)
        named = self.constrained_points()
        if (place[named] < 0).any():
            raise ValueError(
                f"must_link or cannot_link names point {named[place[named] < 0][0]}, but its sample_weight is 0, "
                "so it is not part of the clustering: drop the link, or give the point a weight"
            )
        groups = np.column_stack([place[self.groups[:, 0]], self.groups[:, 1]])
        weights = None if self.weights is None else check_weights(len(points), self.weights[points])
        return replace(self, must=place[self.must], cannot=place[self.cannot], groups=groups, weights=weights)

    def about(self) -> dict[str, Any]:
        """Return a summary of the constraints for the record of the tree, ``Hierarchy.about``."""
        apart = len(self.cannot) + len(np.unique(self.groups[:, 1]))
        most = self.most if np.isfinite(self.most) else None
        given = {"must_link": len(self.must), "cannot_link": apart, "max_cluster_size": most}
        if self.weights is not None:
            given["weight"] = float(self.weights.sum())
        return {name: value for name, value in given.items() if value}


_NO_PAIRS = np.empty((0, 2), np.int32)
NO_CONSTRAINTS = Constraints(_NO_PAIRS, _NO_PAIRS, _NO_PAIRS, np.inf, None)


def check_constraints(
    n_points: int,
    must_link: Groups | None = None,
    cannot_link: Groups | None = None,
    max_cluster_size: float | None = None,
    sample_weight: npt.ArrayLike | None = None,
    *,
    allow_zero: bool = False,
) -> Constraints:
    """Validate constraints on ``n_points`` points and return them; raise if they contradict each other.

    Examples
    --------
    >>> from agglo.rounds.constraints import check_constraints
    >>> check_constraints(5, must_link=[[0, 1, 2]], cannot_link=[[2, 3]]).must
    array([[0, 1],
           [1, 2]], dtype=int32)
    """
    linked = _groups("must_link", must_link, n_points)
    must = [group[:, step : step + 2] for group in linked for step in range(group.shape[1] - 1)]
    apart = _groups("cannot_link", cannot_link, n_points)
    small = [_pairs(group) for group in apart if group.shape[1] <= _SMALL]
    large = [row for group in apart if group.shape[1] > _SMALL for row in group]
    members = [np.column_stack([group, np.full(len(group), name)]) for name, group in enumerate(large)]
    most = np.inf if max_cluster_size is None else _check_max_cluster_size(max_cluster_size)
    weights = None if sample_weight is None else check_weights(n_points, sample_weight, allow_zero=allow_zero)
    constraints = Constraints(_stack(must), _stack(small), _stack(members), most, weights)
    _check_contradictions(constraints, n_points)
    return constraints


def check_weights(
    n_points: int, sample_weight: npt.ArrayLike, *, allow_zero: bool = False, allow_all: bool = False
) -> npt.NDArray[np.float64] | None:
    """Validate and return point weights, rounded so that all sums are exact, or None if all weights are 1.

    ``allow_zero`` allows weights of 0. ``allow_all`` also allows that all weights are 0.

    The sum of all weights fits into the 53 bits of a float64. Integer weights are not rounded if their
    sum is below 2^52.
    """
    given = np.asarray(sample_weight)
    if given.shape != (n_points,):
        raise ValueError(
            f"sample_weight has shape {given.shape}, but there are {n_points} points: pass a weight for each"
        )
    if given.dtype.kind not in "iufb":
        raise TypeError(f"sample_weight has dtype {given.dtype}, but weights are numbers: pass integers or floats")
    weights = given.astype(np.float64)
    wrong = ~((weights >= _LEAST) & (weights <= 1 / _LEAST)) & ~(allow_zero & (weights == 0))
    if wrong.any():
        point = int(wrong.argmax())
        raise ValueError(
            f"sample_weight[{point}] is {given[point]}, but weights are larger than zero, from {_LEAST:g} to "
            f"{1 / _LEAST:g}: leave out points that do not count"
        )
    if not weights.any() and not allow_all:
        raise ValueError(
            "sample_weight is zero for all points, so there is nothing to cluster: give some a weight"
        )
    if (weights == 1).all():
        return None
    step = np.ldexp(1.0, int(np.frexp(weights.sum())[1]) - 52)
    rounded = np.rint(weights / step) * step
    lost = (rounded == 0) & (weights > 0)
    if lost.any():
        point = int(lost.argmax())
        raise ValueError(
            f"sample_weight[{point}] is {given[point]}, which is lost beside the weight of all points, "
            f"{weights.sum():g}: leave the point out, or lower the largest weights"
        )
    return release(rounded)


def _groups(name: str, given: Groups | None, n_points: int) -> list[npt.NDArray[np.int64]]:
    """Check that each group has at least two distinct points; return one array per size, with a row per group."""
    if given is None:
        return []
    if isinstance(given, np.ndarray) and given.ndim == 2:
        tables = [given]
    else:
        by_size: dict[int, list[Any]] = {}
        for place, group in enumerate(_rows(name, given)):
            try:
                by_size.setdefault(len(group), []).append(group)
            except TypeError:
                raise TypeError(
                    f"{name}[{place}] is {group!r}, but {name} has groups of points: pass a list of pairs, "
                    "[(0, 1)]"
                ) from None
        tables = [np.asarray(groups) for _, groups in sorted(by_size.items())]
    return [_check_table(name, table, n_points) for table in tables if len(table)]


def _rows(name: str, given: Any) -> list[Any]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{name}={given!r} is not a list of groups of points: pass a list of pairs, [(0, 1)]")
    return list(given)


def _check_table(name: str, table: npt.NDArray[Any], n_points: int) -> npt.NDArray[np.int64]:
    if table.ndim != 2 or table.dtype.kind not in "iu":
        raise TypeError(
            f"{name} has groups of dtype {table.dtype}, but points are named by integers: pass their indices, "
            f"0 to {n_points - 1}"
        )
    if table.shape[1] < 2:
        raise ValueError(
            f"{name} has the group {table[0].tolist()}, a single point: pass two or more points per group"
        )
    outside = (table < 0) | (table >= n_points)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(
            f"{name} names point {table[row, column]}, but there are {n_points} points: indices go from 0 to "
            f"{n_points - 1}"
        )
    ordered = np.sort(table, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        raise ValueError(
            f"{name} has the group {table[twice.argmax()].tolist()}, which names a point twice: leave one out"
        )
    return table.astype(np.int64)


def _check_max_cluster_size(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"max_cluster_size={given!r} is not a size: pass a number of points, or a weight")
    if not 0 < float(given) < np.inf:
        raise ValueError(f"max_cluster_size={given!r} is not a size: pass a positive number, or None for any size")
    return float(given)


def _pairs(groups: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return all pairs of points within each row of ``groups``."""
    first, second = np.triu_indices(groups.shape[1], 1)
    return np.column_stack([groups[:, first].ravel(), groups[:, second].ravel()]).astype(np.int64)


def _stack(tables: list[npt.NDArray[np.int64]]) -> Ids:
    stacked = np.concatenate(tables) if tables else np.empty((0, 2), np.int64)
    return release(np.ascontiguousarray(stacked, np.int32))


def _check_contradictions(constraints: Constraints, n_points: int) -> None:
    weights = constraints.weights
    if weights is not None and weights.max() > constraints.most:
        point = int(weights.argmax())
        raise ValueError(
            f"point {point} weighs {weights[point]:g}, which is more than max_cluster_size={constraints.most:g}: "
            "raise the size or lower the weight"
        )
    if constraints.most < 1 and weights is None:
        raise ValueError(
            f"max_cluster_size={constraints.most:g} is less than a point, which counts as 1: raise it"
        )
    if not len(constraints.must):
        return
    links = (np.ones(len(constraints.must), bool), (constraints.must[:, 0], constraints.must[:, 1]))
    linked = connected_components(coo_array(links, shape=(n_points, n_points)), directed=False)[1]
    weight = np.bincount(linked, weights)
    if weight.max() > constraints.most:
        group = np.flatnonzero(linked == weight.argmax())
        raise ValueError(
            f"must_link puts {len(group)} points with a total weight of {weight.max():g} into one group (point "
            f"{group[0]} is one of them), but max_cluster_size={constraints.most:g}: increase it, or drop links"
        )
    clash = constraints.cannot[linked[constraints.cannot[:, 0]] == linked[constraints.cannot[:, 1]]]
    if not len(clash) and len(constraints.groups):
        keys = np.column_stack([linked[constraints.groups[:, 0]], constraints.groups[:, 1]])
        order = np.lexsort(keys.T)
        same = np.flatnonzero((np.diff(keys[order], axis=0) == 0).all(axis=1))
        clash = np.stack([constraints.groups[order[same], 0], constraints.groups[order[same + 1], 0]], axis=1)
    if len(clash):
        a, b = sorted(clash[0].tolist())
        raise ValueError(
            f"cannot_link separates points {a} and {b}, but must_link puts both into one group of "
            f"{np.count_nonzero(linked == linked[a])} points: drop one of the two links"
        )
