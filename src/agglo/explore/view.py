"""Select the nodes to draw: the largest clusters below a node, as nested boxes."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agglo.tree.hierarchy import Hierarchy

_SKIPPED_SHARE = 0.8  # a child with more than this share of its parent's points is skipped
_MAX_SKIPS_PER_BOX = 500
_MAX_SKIPS = 2000  # maximum number of skipped nodes in a view
_MAX_SIBLINGS = 60  # maximum number of boxes inside one box; the remaining siblings share a box


class Box(NamedTuple):
    """A node to draw, or a group of siblings that are too small to draw separately."""

    node: int
    """The id of the node; -1 for a group of siblings."""
    parent: int
    """The position of the enclosing box in the list of boxes; -1 for the first box."""
    size: int
    """The number of points in the box."""
    number: int
    """The number of nodes in the box: 1, or the size of the group."""


def expand_node(
    tree: Hierarchy, node: int, round: int, max_skips: int = _MAX_SKIPS_PER_BOX
) -> tuple[npt.NDArray[np.int32], int]:
    """Return the children to draw for a node, and the number of skipped nodes.

    If one child has nearly all points of the node, its own children replace it, up to ``max_skips`` times. Such
    chains arise if a cluster absorbs one point per round. Clusters of ``round`` are not expanded.
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
    """Return the ``n`` largest of ``nodes``, sorted from largest to smallest; ties go to the smaller id."""
    rank = nodes - (tree.size[nodes].astype(np.int64) << 32)
    if len(nodes) > n:
        chosen = np.argpartition(rank, n)[:n]
        nodes, rank = nodes[chosen], rank[chosen]
    return nodes[np.argsort(rank)]


def visible_boxes(tree: Hierarchy, node: int, round: int, *, limit: int, depth: int, share: float) -> list[Box]:
    """Return the boxes to draw for ``node`` and its descendants; the first box is ``node`` itself.

    The largest box is expanded first, until there are ``limit`` boxes or ``depth`` levels. Clusters of ``round``
    are not expanded, so the innermost boxes belong to its partition. ``node`` itself is always expanded. Siblings
    with less than ``share`` of the points of ``node`` share one box.
    """
    boxes = [Box(node, -1, int(tree.size[node]), 1)]
    min_size = share * boxes[0].size
    queue = [(-boxes[0].size, 0, 0)] if node >= tree.n_leaves else []  # a heap with the largest box on top
    floor = min(round, int(tree.round[node]) - 1)
    skips_left = _MAX_SKIPS
    while queue and len(boxes) < limit:
        _, position, level = heapq.heappop(queue)
        parts, skips = expand_node(tree, boxes[position].node, floor, min(skips_left, _MAX_SKIPS_PER_BOX))
        skips_left -= skips
        drawn = largest_nodes(tree, parts, min(_MAX_SIBLINGS, limit - len(boxes)))
        if position:  # the children of `node` itself are drawn even if they are small
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
