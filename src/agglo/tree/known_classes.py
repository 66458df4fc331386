"""Cut a tree by the known classes of some of its points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._validation import check_integer, is_missing_label, to_label_array

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy


def cut_by_known_classes(
    tree: Hierarchy, known_classes: Mapping[int, Any] | npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Cut the tree into the partition that agrees with the known classes on the most pairs of points.

    Only pairs of points with known classes are compared. A pair agrees if both points have the same class and the
    same cluster, or different classes and different clusters. The result has the most agreeing pairs of all
    partitions into nodes of the tree. Ties go to the partition with the fewest clusters. So points of unknown
    class are merged wherever that does not reduce the number of agreeing pairs. One pass over the tree finds the
    exact optimum.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    known_classes : mapping of points to classes, or array-like of shape (n_leaves,)
        The classes of some of the points. In an array, -1, None and NaN mean unknown.

    Returns
    -------
    ndarray of int64
        One label per point: 0, 1, ... in order of first appearance.

    Examples
    --------
    >>> import agglo
    >>> from agglo.tree.known_classes import cut_by_known_classes
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> tree = agglo.scc(agglo.neighbor_graph(X))
    >>> labels = cut_by_known_classes(tree, dict(enumerate(y[:50])))  # 50 of 1797 digits are known
    >>> round(agglo.metrics.pairwise_f1(y, labels).f1, 2)
    0.84
    """
    points, point_codes = _encode_classes(known_classes, tree.n_leaves)
    # Give every point of unknown class a class of its own.
    codes = len(points) + np.arange(tree.n_leaves, dtype=np.int32)
    codes[points] = point_codes
    met = _core.count_pairs_by_lca(tree.parent, tree.size, codes, len(points) + tree.n_leaves)
    n_known = np.zeros(tree.n_nodes, np.int64)
    n_known[points] = 1
    n_known = _core.sum_descendants(tree.parent, n_known)
    same_class = _core.sum_descendants(tree.parent, met)
    different_class = n_known * (n_known - 1) // 2 - same_class
    merged = _core.select_cheapest_nodes(tree.parent, (different_class - same_class).astype(np.float64))
    return tree.partition(merged.view(np.bool_))


def _encode_classes(
    known_classes: Mapping[int, Any] | npt.ArrayLike, n_leaves: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the points with known classes, and their classes as integers in order of first appearance."""
    if isinstance(known_classes, Mapping):
        points = np.array([_check_point(point, n_leaves) for point in known_classes], np.int64)
        classes = list(known_classes.values())
    else:
        given = to_label_array(known_classes)
        if given.shape != (n_leaves,):
            raise ValueError(
                f"known_classes has shape {given.shape}: pass one entry for each of {n_leaves} leaves, -1 or None "
                "where the class is unknown, or a mapping of points to classes"
            )
        classes = given.tolist()
        points = np.array([i for i, value in enumerate(classes) if _is_class(value)], np.int64)
        classes = [classes[point] for point in points]
    if not len(points):
        raise ValueError("known_classes has no class of any point: pass at least one, or use another rule")
    code_of: dict[Any, int] = {}
    try:
        codes = [code_of.setdefault(value, len(code_of)) for value in classes]
    except TypeError as error:
        raise TypeError(
            f"known_classes has a value that cannot be a class ({error}): pass integers or strings"
        ) from None
    return points, np.array(codes, np.int32)


def _is_class(value: Any) -> bool:
    return not (is_missing_label(value) or (isinstance(value, int | float) and value == -1))


def _check_point(point: Any, n_leaves: int) -> int:
    index = check_integer("a key of known_classes", point, "a point")
    if not 0 <= index < n_leaves:
        raise IndexError(f"known_classes has the point {index}, but points go from 0 to {n_leaves - 1}")
    return index
