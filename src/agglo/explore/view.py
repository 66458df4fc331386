"""Selection of the nodes that are drawn at once: the largest clusters below a node, as nested boxes."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agglo.tree.hierarchy import Hierarchy

_SKIPPED_SHARE = 0.8  # a child with more than this share of its parent's points is skipped: it adds nothing new
_MAX_SKIPS_PER_BOX = 500
_MAX_SKIPS = 2000  # in all boxes of a view
_MAX_SIBLINGS = 60  # boxes side by side; the remaining siblings share one box


class Box(NamedTuple):
    """A node to draw, or the siblings that are too small to draw, together."""

    node: int
    """The node; -1 for a group of siblings."""
    parent: int
    """The position in the list of the enclosing box; -1 for the first box."""
    size: int
    """The number of points."""
    number: int
    """The number of nodes that the box stands for."""


def expand_node(
    tree: Hierarchy, node: int, round: int, max_skips: int = _MAX_SKIPS_PER_BOX
) -> tuple[npt.NDArray[np.int32], int]:
    """Return the parts of a node, and the number of nodes skipped to find them.

    If one child holds nearly all points of the node, replace it by its own children, up to ``max_skips`` times.
    This happens if a cluster absorbs single points round by round. Clusters of ``round`` are not expanded.
    """
    parts: list[npt.NDArray[np.int32]] = []
    children = tree.children(node)
    while len(parts) < max_skips:
        heaviest = int(children[np.argmax(tree.size[children])])
        closed = heaviest < tree.n_leaves or tree.round[heaviest] <= round
        if closed or tree.size[heaviest] <= _SKIPPED_SHARE * tree.size[node]:
            break
        parts.append(children[children != heaviest])
        children = tree.children(heaviest)
    return np.concatenate([*parts, children]), len(parts)


def largest_nodes(tree: Hierarchy, nodes: npt.NDArray[np.int32], n: int) -> npt.NDArray[np.int32]:
    """Return the ``n`` largest of ``nodes``, the largest first; ties go to the smaller id."""
    rank = nodes - (tree.size[nodes].astype(np.int64) << 32)
    if len(nodes) > n:
        chosen = np.argpartition(rank, n)[:n]
        nodes, rank = nodes[chosen], rank[chosen]
    return nodes[np.argsort(rank)]


def visible_boxes(tree: Hierarchy, node: int, round: int, *, limit: int, depth: int, share: float) -> list[Box]:
    """Return the boxes to draw below ``node``, which is the first; expand the largest until there are ``limit``.

    Clusters of ``round`` are not expanded, so the innermost boxes belong to its partition. ``node`` itself is
    always expanded. Siblings with less than ``share`` of the points of ``node`` share one box.
    """
    boxes = [Box(node, -1, int(tree.size[node]), 1)]
    min_size = share * boxes[0].size
    queue = [(-boxes[0].size, 0, 0)] if node >= tree.n_leaves else []  # a heap, the largest first
    floor = min(round, int(tree.round[node]) - 1)
    skips_left = _MAX_SKIPS
    while queue and len(boxes) < limit:
        _, position, level = heapq.heappop(queue)
        parts, skips = expand_node(tree, boxes[position].node, floor, min(skips_left, _MAX_SKIPS_PER_BOX))
        skips_left -= skips
        drawn = largest_nodes(tree, parts, min(_MAX_SIBLINGS, limit - len(boxes)))
        if position:  # the parts of `node` itself are drawn even if they are small
            drawn = drawn[tree.size[drawn] >= min_size]
            if not len(drawn):
                continue
        sizes = tree.size[drawn]
        for part, size in zip(drawn.tolist(), sizes.tolist(), strict=True):
            boxes.append(Box(part, position, size, 1))
            if part >= tree.n_leaves and tree.round[part] > floor and level + 1 < depth:
                heapq.heappush(queue, (-size, len(boxes) - 1, level + 1))
        if len(drawn) < len(parts):
            boxes.append(Box(-1, position, boxes[position].size - int(sizes.sum()), len(parts) - len(drawn)))
    return boxes


def path_from_root(tree: Hierarchy, node: int) -> list[int]:
    """Return the path from the root to ``node``, without the nodes that :func:`expand_node` skips."""
    ancestors = [node]
    while tree.parent[ancestors[-1]] >= 0:
        ancestors.append(int(tree.parent[ancestors[-1]]))
    path = [ancestors[-1]]
    for step in ancestors[-2::-1]:
        if step == node or tree.size[step] <= _SKIPPED_SHARE * tree.size[path[-1]]:
            path.append(step)
    return path
