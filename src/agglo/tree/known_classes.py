"""Cut a tree by the known classes of some of its points."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.tree.hierarchy import Hierarchy


def agreeing(tree: Hierarchy, known: Mapping[int, Any] | npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Labels of the partition that agrees with the classes of some points on most pairs of those points.

    A pair agrees if it is of one class and in one cluster, or of two classes and in two clusters. Of all
    partitions into nodes of the tree, this one has the most pairs that agree, and of equals the fewest clusters:
    so points of no known class go with whatever they can join without harm. It is found exactly, in one sweep
    over the tree.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    known : mapping of points to classes, or array-like of shape (n_leaves,)
        The class of those points that have one. In an array, -1, None and NaN stand for unknown.

    Examples
    --------
    >>> import agglo
    >>> from agglo.tree.silhouette import agreeing
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> tree = agglo.scc(agglo.neighbor_graph(X))
    >>> labels = agreeing(tree, dict(enumerate(y[:50])))  # 50 of 1797 digits are known
    >>> round(agglo.metrics.pairwise_f1(y, labels).f1, 2)
    0.83
    """
    points, code = _known(known, tree.n_leaves)
    # Classes of their own for all others: then no pair of theirs meets.
    codes = len(points) + np.arange(tree.n_leaves, dtype=np.int32)
    codes[points] = code
    met = _core.pairs_met(tree.parent, tree.size, codes, len(points) + tree.n_leaves)
    number = np.zeros(tree.n_nodes, np.int64)
    number[points] = 1
    same, number = _core.sums_below(tree.parent, met), _core.sums_below(tree.parent, number)
    different = number * (number - 1) // 2 - same
    joined = _core.cheapest(tree.parent, (different - same).astype(np.float64))
    return tree.partition(joined.view(np.bool_))


def _known(
    known: Mapping[int, Any] | npt.ArrayLike, n_leaves: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The points of a known class, and their classes as numbers 0, 1, ..., at most one for each of them."""
    if isinstance(known, Mapping):
        points = np.array([_point(point, n_leaves) for point in known], np.int64)
        classes = list(known.values())
    else:
        given = np.asarray(known)
        if given.dtype.kind in "US" and not hasattr(known, "dtype"):
            given = np.asarray(known, object)  # or a list's NaN would by now be the string "nan"
        if given.shape != (n_leaves,):
            raise ValueError(
                f"known must have an entry for each of {n_leaves} leaves, -1 or None where the class is unknown, "
                f"or be a mapping of points to classes; got shape {given.shape}"
            )
        classes = given.tolist()
        points = np.array([i for i, value in enumerate(classes) if _is_class(value)], np.int64)
        classes = [classes[point] for point in points]
    if not len(points):
        raise ValueError("known has no class of any point: give at least one, or use another rule")
    found: dict[Any, int] = {}
    try:
        codes = [found.setdefault(value, len(found)) for value in classes]
    except TypeError as error:
        raise TypeError(f"known holds what cannot be a class ({error}): pass integers or strings") from None
    return points, np.array(codes, np.int32)


def _is_class(value: Any) -> bool:
    if value is None:
        return False
    try:
        return bool(value == value) and not (isinstance(value, int | float) and value == -1)  # NaN is not itself
    except TypeError:  # pandas.NA equals nothing and differs from nothing
        return False


def _point(point: SupportsIndex, n_leaves: int) -> int:
    try:
        index = operator.index(point)
    except TypeError:
        raise TypeError(f"known has the key {point!r}, which is no point: pass integers") from None
    if not 0 <= index < n_leaves:
        raise IndexError(f"known has the point {index}, but points go from 0 to {n_leaves - 1}")
    return index
