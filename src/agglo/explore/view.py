"""Select the boxes that the explorer draws: clusters below a node, enclosed by nodes of the condensed tree."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agglo.tree.condense import default_min_size, select_nodes
from agglo.tree.hierarchy import Hierarchy
from agglo.tree.taxonomy import compute_split_limits

BRANCHING = 6.0  # typical number of boxes directly inside a box
MAX_CLUSTERS = 500  # maximum number of clusters in a view; more would be too small to read
_MAX_SPLITS = 5000  # maximum number of nodes that a view splits, for trees in which many nodes are split at once
_MAX_SIBLINGS = 60  # maximum number of boxes inside one box; the remaining siblings share a box
_STEP = 1.1  # minimum ratio between the numbers of clusters of two adjacent slider positions


@dataclass(frozen=True, eq=False)
class Outline:
    """The properties of the nodes of a tree that determine a view."""

    tree: Hierarchy
    split_limit: npt.NDArray[np.float64]
    """The order in which nodes are split, largest value first; see :func:`compute_split_limits`."""
    is_kept: npt.NDArray[np.bool_]
    """Whether the condensed tree contains each node. Only boxes of such nodes may enclose other boxes."""

    @classmethod
    def of(cls, tree: Hierarchy) -> Outline:
        """Condense the tree, and compute the order in which a view splits its nodes."""
        is_kept = np.zeros(tree.n_nodes, np.bool_)
        is_kept[select_nodes(tree, BRANCHING, default_min_size(tree.n_leaves))] = True
        return cls(tree, compute_split_limits(tree), is_kept)


class Box(NamedTuple):
    """A node to draw, or a group of siblings that are too small to draw separately."""

    node: int
    """The id of the node, or -1 for a group of siblings."""
    parent: int
    """The position of the enclosing box in the list of boxes, or -1 for the first box."""
    size: int
    """The number of points in the box."""
    number: int
    """The number of nodes in the box: 1, or the size of the group."""


class Step(NamedTuple):
    """A cut of a node's descendants into clusters."""

    clusters: int
    """The number of clusters."""
    splits: int
    """The number of nodes that are split, in the order of :func:`split_nodes`."""


def split_nodes(outline: Outline, node: int) -> tuple[list[int], list[Step]]:
    """Return the nodes below ``node`` in the order in which they are split, and the cuts that result.

    The cuts are those of :meth:`agglo.Hierarchy.taxonomy`, with up to 500 clusters. Nodes with equal split limits
    are split together.
    """
    tree, limit = outline.tree, outline.split_limit
    order: list[int] = []
    steps: list[Step] = []
    clusters = 1
    heap = [(-limit[node], node)] if node >= tree.n_leaves else []
    while heap and len(order) < _MAX_SPLITS:
        value, split = heapq.heappop(heap)
        order.append(split)
        children = tree.children(split)
        clusters += len(children) - 1
        for child in children[children >= tree.n_leaves].tolist():
            heapq.heappush(heap, (-limit[child], child))
        if not heap or heap[0][0] > value:
            steps.append(Step(clusters, len(order)))
            if clusters >= MAX_CLUSTERS:
                break
    return order, steps or [Step(clusters, len(order))]


def thin_steps(steps: list[Step]) -> list[Step]:
    """Return the cuts for the slider, from few to many clusters; each has at least 10 % more than the last."""
    chosen = steps[:1]
    for step in steps[1:]:
        if step.clusters >= _STEP * chosen[-1].clusters:
            chosen.append(step)
    return chosen


def visible_boxes(outline: Outline, node: int, split: set[int], share: float) -> list[Box]:
    """Return the boxes to draw for ``node`` and its descendants; the first box is ``node`` itself.

    The innermost boxes are the clusters that remain if the nodes of ``split`` are split. Split nodes that the
    condensed tree contains are drawn as boxes around them. Siblings with less than ``share`` of the points of
    ``node`` share one box.
    """
    tree = outline.tree
    boxes = [Box(node, -1, int(tree.size[node]), 1)]
    min_size = share * boxes[0].size
    position = 0
    while position < len(boxes):
        box = boxes[position]
        if box.node in split:
            parts = _expand(outline, box.node, split)
            drawn = largest_nodes(tree, parts, _MAX_SIBLINGS)
            if position:  # the parts of `node` itself are drawn even if they are small
                drawn = drawn[tree.size[drawn] >= min_size]
            sizes = tree.size[drawn].tolist()
            boxes += [Box(part, position, size, 1) for part, size in zip(drawn.tolist(), sizes, strict=True)]
            if 0 < len(drawn) < len(parts):
                boxes.append(Box(-1, position, box.size - sum(sizes), len(parts) - len(drawn)))
        position += 1
    return boxes


def _expand(outline: Outline, node: int, split: set[int]) -> npt.NDArray[np.int32]:
    """Return the clusters and the nodes of the condensed tree directly below ``node``."""
    tree = outline.tree
    parts: list[npt.NDArray[np.int32]] = []
    pending = [node]
    while pending:
        children = tree.children(pending.pop())
        is_passed = np.array([child in split and not outline.is_kept[child] for child in children.tolist()])
        parts.append(children[~is_passed])
        pending += children[is_passed].tolist()
    return np.concatenate(parts)


def expand_coarsest(outline: Outline, limit: int) -> list[Box]:
    """Return the boxes of the upper part of the tree, up to about ``limit`` boxes.

    Nodes are split in the order of their split limits, so that coarse cuts are complete. If a node has many
    children, its smallest children share a box.
    """
    tree, split_limit = outline.tree, outline.split_limit
    root = tree.n_nodes - 1
    boxes = [Box(root, -1, tree.n_leaves, 1)]
    heap = [(-split_limit[root], -tree.n_leaves, 0)]
    while heap and len(boxes) < limit:
        *_, position = heapq.heappop(heap)
        if boxes[position].node < tree.n_leaves:
            continue
        children = tree.children(boxes[position].node)
        drawn = largest_nodes(tree, children, _MAX_SIBLINGS)
        for child, size in zip(drawn.tolist(), tree.size[drawn].tolist(), strict=True):
            heapq.heappush(heap, (-split_limit[child], -size, len(boxes)))
            boxes.append(Box(child, position, size, 1))
        if len(drawn) < len(children):
            rest = boxes[position].size - int(tree.size[drawn].sum())
            boxes.append(Box(-1, position, rest, len(children) - len(drawn)))
    return boxes


def largest_nodes(tree: Hierarchy, nodes: npt.NDArray[np.int32], n: int) -> npt.NDArray[np.int32]:
    """Return the ``n`` largest of ``nodes``, sorted from largest to smallest; ties go to the smaller id."""
    rank = nodes - (tree.size[nodes].astype(np.int64) << 32)
    if len(nodes) > n:
        chosen = np.argpartition(rank, n)[:n]
        nodes, rank = nodes[chosen], rank[chosen]
    return nodes[np.argsort(rank)]


def path_from_root(outline: Outline, node: int) -> list[int]:
    """Return the path from the root to ``node``: the nodes of the condensed tree, and ``node`` itself."""
    path = [node]
    above = int(outline.tree.parent[node])
    while above >= 0:
        if outline.is_kept[above]:
            path.append(above)
        above = int(outline.tree.parent[above])
    return path[::-1]
