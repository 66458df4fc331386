"""The HTTP API of the explorer: one handler function per URL path, and the types of their responses.

The keyword-only parameters of a handler are the query parameters of its URL. :mod:`agglo.explore.query` parses
them. docs/how_it_works/explorer.md documents the API; explorer/src/types.ts declares the same types.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from agglo.explore import view as layout
from agglo.explore.export import iter_csv, iter_parquet
from agglo.explore.query import BadRequestError, Bounds
from agglo.explore.run import Colouring, ExplorableRun, build_colouring

Node = Annotated[int, Bounds(0)]
Offset = Annotated[int, Bounds(0)]
Limit = Annotated[int, Bounds(1, 1000)]


# The responses, as JSON objects. docs/how_it_works/explorer.md explains their fields.


@dataclass(frozen=True)
class Run:
    """A summary of the tree, and the names of the columns of its points."""

    title: str
    points: int
    nodes: int
    root: int
    kind: str
    columns: list[str]
    texts: bool


@dataclass(frozen=True)
class Crumb:
    """A node in a path or in a list of children."""

    node: int
    name: str
    size: int
    round: int


@dataclass(frozen=True)
class Box:
    """An :class:`agglo.explore.view.Box` with its name, round and colour value."""

    node: int
    parent: int
    size: int
    number: int
    name: str
    round: int
    value: float | None
    share: float | None


@dataclass(frozen=True)
class View:
    """The boxes to draw for a node and its descendants. ``steps`` are the possible numbers of clusters."""

    node: int
    clusters: int
    steps: list[int]
    path: list[Crumb]
    boxes: list[Box]
    legend: list[str]
    span: list[float]


@dataclass(frozen=True)
class Item:
    """A point with its text, its count, and its other columns as truncated texts."""

    point: int
    text: str
    count: int
    values: list[str | None]


@dataclass(frozen=True)
class Details:
    """Details of a node. For a tree of distances, ``cohesion`` is None."""

    node: int
    name: str
    size: int
    occurrences: int
    round: int
    height: float
    cohesion: float | None
    clusters: int
    terms: list[str]
    examples: list[Item]
    path: list[Crumb]


@dataclass(frozen=True)
class Items:
    """One page of a list of points. ``total`` is the number of points on all pages."""

    total: int
    items: list[Item]


@dataclass(frozen=True)
class File:
    """A file to download. The server generates and sends it in parts."""

    name: str
    content_type: str
    parts: Iterator[bytes]


def describe_run(run: ExplorableRun) -> Run:
    """Return a summary of the run: points, nodes, columns."""
    tree = run.tree
    return Run(
        title=run.title,
        points=tree.n_leaves,
        nodes=tree.n_nodes,
        root=tree.n_nodes - 1,
        kind=str(tree.about.get("kind", "distance")),
        columns=run.items.columns,
        texts=run.items.has_text,
    )


def view(
    run: ExplorableRun,
    *,
    node: Node,
    clusters: Annotated[int, Bounds(1, layout.MAX_CLUSTERS)] = 20,
    share: Annotated[float, Bounds(0, 1)] = 0.0008,
    colour: str = "",
) -> View:
    """Return the boxes to draw for a node. If ``colour`` is the name of a column, the boxes have colour values.

    The number of clusters in the view is the possible number that is closest to ``clusters`` by ratio. ``share``
    is passed to :func:`agglo.explore.view.visible_boxes`.
    """
    order, cuts = layout.split_nodes(run.outline, _check_node(run, node))
    steps = layout.thin_steps(cuts)
    step = min(steps, key=lambda step: abs(math.log(step.clusters / clusters)))
    boxes = layout.visible_boxes(run.outline, node, set(order[: step.splits]), share)
    colouring = build_colouring(run, colour) if colour else None
    outer = {box.parent for box in boxes}  # only innermost boxes are coloured
    described: list[Box] = []
    for position, box in enumerate(boxes):
        around = "" if box.parent < 0 else described[box.parent].name
        described.append(describe_box(run, box, None if position in outer else colouring, around))
    shown = ([], []) if colouring is None else (colouring.legend, colouring.span)
    numbers = [step.clusters for step in steps]
    return View(node, step.clusters, numbers, path(run, node=node), described, *shown)


def children(run: ExplorableRun, *, node: Node, offset: Offset = 0, limit: Limit = 100) -> list[Crumb]:
    """Return the children of a node, sorted from largest to smallest."""
    tree = run.tree
    below = tree.children(_check_node(run, node))
    ordered = below[np.lexsort((below, -tree.size[below]))][offset : offset + limit]
    return [_crumb(run, child) for child in ordered.tolist()]


def details(run: ExplorableRun, *, node: Node) -> Details:
    """Return the details of a node: size, height, terms, examples."""
    tree = run.tree
    points = run.points(_check_node(run, node))
    count = run.items.count
    height = float(tree.height[node])
    is_similarity = tree.about.get("kind") == "similarity"
    return Details(
        node=node,
        name=run.name(node),
        size=len(points),
        occurrences=len(points) if count is None else int(count[points].sum()),
        round=int(tree.round[node]),
        height=height,
        cohesion=float(tree.about["origin"]) - height if is_similarity else None,
        clusters=len(tree.children(node)),
        terms=run.terms(node),
        examples=describe_items(run, run.examples(node)),
        path=path(run, node=node),
    )


def items(run: ExplorableRun, *, node: Node, offset: Offset = 0, limit: Limit = 50) -> Items:
    """Return one page of a node's points, sorted by count. Without counts, they are in leaf order."""
    points = run.points(_check_node(run, node))
    if run.items.count is not None:
        points = _most_frequent(points, run.items.count[points], offset + limit)
    return Items(int(run.tree.size[node]), describe_items(run, points[offset : offset + limit]))


def search(run: ExplorableRun, *, text: str, limit: Limit = 30) -> Items:
    """Find the points whose text contains ``text``, or whose index is ``text``; return frequent points first."""
    points, total = run.items.search(text, limit)
    return Items(total, describe_items(run, points))


def path(run: ExplorableRun, *, node: Node) -> list[Crumb]:
    """Return the path from the root to a node or point. Skip a node that has the same name as the next node."""
    crumbs = [_crumb(run, step) for step in layout.path_from_root(run.outline, _check_node(run, node))]
    is_new = [crumb.name != following.name for crumb, following in itertools.pairwise(crumbs)]
    return [crumb for i, crumb in enumerate(crumbs) if i in (0, len(crumbs) - 1) or is_new[i]]


def export(
    run: ExplorableRun,
    *,
    nodes: Annotated[list[int], Bounds(0)],
    format: Literal["csv", "parquet"] = "csv",
) -> File:
    """Export the points of nodes as a table: ``cluster``, ``name``, ``point``, and all columns of the points."""
    chosen = [_check_node(run, node) for node in dict.fromkeys(nodes)]
    if format == "csv":
        return File("clusters.csv", "text/csv; charset=utf-8", iter_csv(run, chosen))
    return File("clusters.parquet", "application/vnd.apache.parquet", iter_parquet(run, chosen))


ROUTES: dict[str, Callable[..., Any]] = {
    "/api/run": describe_run,
    "/api/view": view,
    "/api/children": children,
    "/api/node": details,
    "/api/items": items,
    "/api/search": search,
    "/api/path": path,
    "/api/export": export,
}


def describe_box(run: ExplorableRun, box: layout.Box, colouring: Colouring | None = None, around: str = "") -> Box:
    """Return a box with the name, round and colour value of its node; ``around`` is the name of the box around it.

    If the two names are equal, the box gets another name, from other terms or from an example.
    """
    if box.node < 0:
        return Box(*box, f"+ {box.number:,} more", 0, None, None)
    value, share = (None, None) if colouring is None else colouring.value(box.node)
    name = run.name(box.node)
    if name == around:
        name = ", ".join([term for term in run.terms(box.node) if term not in around][:3])
        name = name or run.items.texts(run.examples(box.node, 1))[0]
    return Box(*box, name, int(run.tree.round[box.node]), value, share)


def describe_items(run: ExplorableRun, points: Any) -> list[Item]:
    """Return the text, count and other columns of each point."""
    texts = run.items.texts(points)
    values = run.items.values(points)
    counts = np.ones(len(points), np.int64) if run.items.count is None else run.items.count[points]
    rows = zip(points.tolist(), texts, counts.tolist(), values, strict=True)
    return [Item(point, text, int(count), row) for point, text, count, row in rows]


def to_json(response: Any) -> str:
    """Convert a response to JSON."""
    return json.dumps(response, default=vars, ensure_ascii=False, allow_nan=False)


def _check_node(run: ExplorableRun, node: int) -> int:
    if node >= run.tree.n_nodes:
        raise BadRequestError(f"there is no node {node}: the tree has nodes 0 to {run.tree.n_nodes - 1}")
    return node


def _most_frequent(points: Any, count: Any, n: int) -> Any:
    """Return the ``n`` points with the largest counts, largest count first; ties keep their order."""
    if n < len(points):  # select before sorting
        smallest = np.partition(count, len(count) - n)[len(count) - n]
        ties = np.flatnonzero(count == smallest)[: n - np.count_nonzero(count > smallest)]
        chosen = np.union1d(np.flatnonzero(count > smallest), ties)
        points, count = points[chosen], count[chosen]
    return points[np.argsort(-count, kind="stable")]


def _crumb(run: ExplorableRun, node: int) -> Crumb:
    return Crumb(node, run.name(node), int(run.tree.size[node]), int(run.tree.round[node]))
