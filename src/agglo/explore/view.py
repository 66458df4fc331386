"""What is seen of a tree at once: the largest boxes below a node, each in the box that it is a part of."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agglo.tree.hierarchy import Hierarchy

_WHOLE = 0.8  # a child with more than this share of its parent is nearly the parent, and is passed over
_STEPS = 500  # such children that are passed over in one box, at most
_ALL_STEPS = 2000  # and in all boxes that are seen at once
_ABREAST = 60  # boxes side by side; the others are one box


class Box(NamedTuple):
    """A node that is seen, or all those beside it that are too small to be."""

    node: int
    """The node; -1 for a box of many."""
    parent: int
    """The place of the box that it is in; -1 for the first."""
    size: int
    """The number of points in it."""
    number: int
    """How many nodes it stands for."""


def split(tree: Hierarchy, node: int, round: int, steps: int = _STEPS) -> tuple[npt.NDArray[np.int32], int]:
    """The nodes that a node falls into, as a step down that shows something new, and how many steps it was.

    Where nearly all of a node is one child, as when a cluster takes up single points round by round, that child's
    own children stand in its place, for up to ``steps`` times. Clusters of ``round`` are not opened.
    """
    parts: list[npt.NDArray[np.int32]] = []
    inside = tree.children(node)
    while len(parts) < steps:
        heavy = int(inside[np.argmax(tree.size[inside])])
        closed = heavy < tree.n_leaves or tree.round[heavy] <= round
        if closed or tree.size[heavy] <= _WHOLE * tree.size[node]:
            break
        parts.append(inside[inside != heavy])
        inside = tree.children(heavy)
    return np.concatenate([*parts, inside]), len(parts)


def largest(tree: Hierarchy, nodes: npt.NDArray[np.int32], most: int) -> npt.NDArray[np.int32]:
    """The largest of these nodes, in that order; of those of one size the first."""
    rank = nodes - (tree.size[nodes].astype(np.int64) << 32)
    if len(nodes) > most:
        chosen = np.argpartition(rank, most)[:most]
        nodes, rank = nodes[chosen], rank[chosen]
    return nodes[np.argsort(rank)]


def boxes(tree: Hierarchy, node: int, round: int, *, limit: int, depth: int, share: float) -> list[Box]:
    """The boxes below ``node``, itself the first, opened from the largest on until there are ``limit``.

    Clusters of ``round`` stay closed, so that the innermost boxes are those of its partition; ``node`` itself is
    opened whatever it is. Boxes of less than ``share`` of its points are one box together, beside the others.
    """
    found = [Box(node, -1, int(tree.size[node]), 1)]
    smallest = share * found[0].size
    closed = [(-found[0].size, 0, 0)] if node >= tree.n_leaves else []  # the largest first
    floor = min(round, int(tree.round[node]) - 1)
    left = _ALL_STEPS
    while closed and len(found) < limit:
        _, place, level = heapq.heappop(closed)
        parts, steps = split(tree, found[place].node, floor, min(left, _STEPS))
        left -= steps
        seen = largest(tree, parts, min(_ABREAST, limit - len(found)))
        if place:  # what is too small to be seen is not shown, but for what was asked for
            seen = seen[tree.size[seen] >= smallest]
            if not len(seen):
                continue
        sizes = tree.size[seen]
        for part, size in zip(seen.tolist(), sizes.tolist(), strict=True):
            found.append(Box(part, place, size, 1))
            if part >= tree.n_leaves and tree.round[part] > floor and level + 1 < depth:
                heapq.heappush(closed, (-size, len(found) - 1, level + 1))
        if len(seen) < len(parts):
            found.append(Box(-1, place, found[place].size - int(sizes.sum()), len(parts) - len(seen)))
    return found


def crumbs(tree: Hierarchy, node: int) -> list[int]:
    """The boxes to open from the root on to get to ``node``, itself the last."""
    path = [node]
    while tree.parent[path[-1]] >= 0:
        path.append(int(tree.parent[path[-1]]))
    seen = [path[-1]]
    for step in path[-2::-1]:
        if step == node or tree.size[step] <= _WHOLE * tree.size[seen[-1]]:
            seen.append(step)
    return seen
