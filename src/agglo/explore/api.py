"""What the explorer answers: a function a question, typed, from which its HTTP interface follows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from agglo.explore.colours import Colouring, colouring
from agglo.explore.export import csv_parts, parquet_parts
from agglo.explore.run import Opened
from agglo.explore.schema import About, BadRequestError, File
from agglo.explore.view import boxes, crumbs

_MOST_ROUNDS = 300  # that a slider can tell apart

Node = Annotated[int, About("A node of the tree: the points come first, the root is the last.", least=0)]


@dataclass(frozen=True)
class Step:
    """A round."""

    round: Annotated[int, About("Its number; 0 is before the first, when every point is a cluster.")]
    clusters: Annotated[int, About("The number of clusters after it.")]
    threshold: Annotated[float | None, About("How far it joined, if its schedule says.")]


@dataclass(frozen=True)
class Run:
    """What a run is, in short."""

    title: str
    points: Annotated[int, About("The number of points.")]
    nodes: Annotated[int, About("The number of nodes, points and root among them.")]
    root: Annotated[int, About("The node on top.")]
    kind: Annotated[str, About("What the tree was made of: similarity or distance.")]
    start: Annotated[int, About("The round that the run was cut at, or else the persistent one.")]
    rounds: Annotated[list[Step], About("The rounds, from fine to coarse; of very many, some.")]
    columns: Annotated[list[str], About("The columns that items have beside their text.")]
    texts: Annotated[bool, About("Whether items have texts; else they are numbers.")]


@dataclass(frozen=True)
class Crumb:
    """A node by name."""

    node: int
    name: str
    size: Annotated[int, About("The number of points.")]
    round: Annotated[int, About("The round that made it; 0 for a point.")]


@dataclass(frozen=True)
class Box:
    """A node that is seen, or all those beside it that are too small to be."""

    node: Annotated[int, About("The node; -1 for a box of many.")]
    parent: Annotated[int, About("The place in the list of the box that it is in; -1 for the first.")]
    size: Annotated[int, About("The number of points in it.")]
    number: Annotated[int, About("How many nodes it stands for.")]
    name: str
    round: Annotated[int, About("The round that made it; 0 for a point and a box of many.")]
    value: Annotated[float | None, About("What it is coloured by: a mean, or the place of a name in the legend.")]
    share: Annotated[float | None, About("The share of its points that have that name.")]


@dataclass(frozen=True)
class View:
    """What is seen at once."""

    node: int
    round: Annotated[int, About("The round whose clusters the innermost boxes are.")]
    path: Annotated[list[Crumb], About("The boxes that lead here from the root.")]
    boxes: list[Box]
    legend: Annotated[list[str], About("The names that colours stand for; none for numbers.")]
    span: Annotated[list[float], About("The least and largest number that colours stand for; else empty.")]


@dataclass(frozen=True)
class Item:
    """A point."""

    point: int
    text: Annotated[str, About("Its text, cut if it is very long.")]
    count: Annotated[int, About("How often it occurred.")]
    values: Annotated[
        list[str | None], About("Its other columns as exact text, in the order of the run's; null if it has none.")
    ]


@dataclass(frozen=True)
class Details:
    """What is known of a node."""

    node: int
    name: str
    size: Annotated[int, About("The number of points.")]
    occurrences: Annotated[int, About("How often they occurred, together.")]
    round: int
    height: Annotated[float, About("How far apart the parts were that were joined; 0 for a point.")]
    cohesion: Annotated[float | None, About("For similarities: how similar those parts were.")]
    clusters: Annotated[int, About("The number of children.")]
    terms: Annotated[list[str], About("Terms that set it apart, the most telling first.")]
    examples: Annotated[list[Item], About("Points that stand for it.")]
    path: list[Crumb]


@dataclass(frozen=True)
class Items:
    """A page of points."""

    total: Annotated[int, About("How many there are on all pages.")]
    items: list[Item]


def run(opened: Opened) -> Run:
    """What the opened run is."""
    tree = opened.tree
    counts = np.concatenate([[tree.n_leaves], tree.rounds.after])
    chosen = np.arange(len(counts))
    if len(counts) > _MOST_ROUNDS:  # as even as can be on a scale of ratios
        wanted = np.geomspace(counts[0], max(counts[-1], 1), _MOST_ROUNDS)
        chosen = np.unique(np.searchsorted(-counts, -wanted).clip(max=len(counts) - 1))
        chosen = np.union1d(chosen, [0, opened.start, len(counts) - 1])
    thresholds = np.concatenate([[np.nan], tree.rounds.threshold])[chosen].tolist()
    steps = zip(chosen.tolist(), counts[chosen].tolist(), thresholds, strict=True)
    return Run(
        title=opened.title,
        points=tree.n_leaves,
        nodes=tree.n_nodes,
        root=tree.n_nodes - 1,
        kind=str(tree.about.get("kind", "distance")),
        start=opened.start,
        rounds=[Step(round, number, t if math.isfinite(t) else None) for round, number, t in steps],
        columns=opened.items.columns,
        texts=opened.items.has_text,
    )


def view(
    opened: Opened,
    *,
    node: Node,
    round: Annotated[int, About("Clusters of this round stay closed.", least=0)] = 0,
    limit: Annotated[int, About("How many boxes, at most about.", least=2, most=5000)] = 700,
    depth: Annotated[int, About("How many boxes inside one another.", least=1, most=20)] = 5,
    share: Annotated[
        float, About("The least share of the whole that is a box of its own.", least=0, most=1)
    ] = 0.0008,
    colour: Annotated[str, About("A column to colour by; empty for none.")] = "",
) -> View:
    """The largest clusters in a node, each inside the one that it is part of; "children of a node", for eyes."""
    tree = opened.tree
    found = boxes(tree, _node(opened, node), round, limit=limit, depth=depth, share=share)
    inside = [False] * len(found)
    for box in found[1:]:
        inside[box.parent] = True
    by: Colouring | None = colouring(opened, colour) if colour else None
    named = []
    for box, opened_ in zip(found, inside, strict=True):
        value = share_ = None
        if by is not None and box.node >= 0 and not opened_:
            value, share_ = by.of(box.node)
        name = opened.name(box.node) if box.node >= 0 else f"+ {box.number:,} more"
        made = int(tree.round[box.node]) if box.node >= 0 else 0
        named.append(Box(box.node, box.parent, box.size, box.number, name, made, value, share_))
    legend = [] if by is None else by.legend
    span = [] if by is None else by.span
    return View(node, round, _path(opened, node), named, legend, span)


def children(
    opened: Opened,
    *,
    node: Node,
    offset: Annotated[int, About("How many to leave out.", least=0)] = 0,
    limit: Annotated[int, About("How many, at most.", least=1, most=1000)] = 100,
) -> list[Crumb]:
    """The children of a node as they are in the tree, the largest first."""
    tree = opened.tree
    below = tree.children(_node(opened, node))
    ordered = below[np.lexsort((below, -tree.size[below]))][offset : offset + limit]
    return [_crumb(opened, child) for child in ordered.tolist()]


def details(opened: Opened, *, node: Node) -> Details:
    """What is known of a node."""
    tree = opened.tree
    points = opened.points(_node(opened, node))
    count = opened.items.count
    height = float(tree.height[node])
    similar = tree.about.get("kind") == "similarity"
    return Details(
        node=node,
        name=opened.name(node),
        size=len(points),
        occurrences=len(points) if count is None else int(count[points].sum()),
        round=int(tree.round[node]),
        height=height,
        cohesion=float(tree.about["origin"]) - height if similar else None,
        clusters=len(tree.children(node)),
        terms=opened.terms(node),
        examples=items_of(opened, opened.examples(node)),
        path=_path(opened, node),
    )


def items(
    opened: Opened,
    *,
    node: Node,
    offset: Annotated[int, About("How many to leave out.", least=0)] = 0,
    limit: Annotated[int, About("How many, at most.", least=1, most=1000)] = 50,
) -> Items:
    """The points of a node, the most frequent first, else in the order of the tree."""
    points = opened.points(_node(opened, node))
    if opened.items.count is not None:
        points = _most_frequent(points, opened.items.count[points], offset + limit)
    return Items(int(opened.tree.size[node]), items_of(opened, points[offset : offset + limit]))


def search(
    opened: Opened,
    *,
    text: Annotated[str, About("What to look for: a part of a text, or the number of a point.")],
    limit: Annotated[int, About("How many, at most.", least=1, most=1000)] = 30,
) -> Items:
    """The points whose text has these words in it, the most frequent first."""
    points, total = opened.items.search(text, limit)
    return Items(total, items_of(opened, points))


def path(opened: Opened, *, node: Node) -> list[Crumb]:
    """The boxes to open from the root on to get to a node or a point, itself the last."""
    return _path(opened, _node(opened, node))


def export(
    opened: Opened,
    *,
    nodes: Annotated[list[int], About("The nodes whose points are wanted.", least=0)],
    format: Annotated[Literal["csv", "parquet"], About("The kind of file.")] = "csv",
) -> File:
    """The points of nodes as a table, one row per node and point: ``cluster``, ``name``, ``point``, columns."""
    chosen = [_node(opened, node) for node in dict.fromkeys(nodes)]
    if format == "csv":
        return File("clusters.csv", "text/csv; charset=utf-8", csv_parts(opened, chosen))
    return File("clusters.parquet", "application/vnd.apache.parquet", parquet_parts(opened, chosen))


ROUTES: dict[str, Callable[..., Any]] = {
    "/api/run": run,
    "/api/view": view,
    "/api/children": children,
    "/api/node": details,
    "/api/items": items,
    "/api/search": search,
    "/api/path": path,
    "/api/export": export,
}


def _node(opened: Opened, node: int) -> int:
    if node >= opened.tree.n_nodes:
        raise BadRequestError(f"there is no node {node}: the tree has nodes 0 to {opened.tree.n_nodes - 1}")
    return node


def _most_frequent(points: Any, count: Any, most: int) -> Any:
    """Return the ``most`` points with the largest counts, the largest first, equal ones in their order."""
    if most < len(points):  # sort these alone
        smallest = np.partition(count, len(count) - most)[len(count) - most]
        equal = np.flatnonzero(count == smallest)[: most - np.count_nonzero(count > smallest)]
        chosen = np.union1d(np.flatnonzero(count > smallest), equal)
        points, count = points[chosen], count[chosen]
    return points[np.argsort(-count, kind="stable")]


def _crumb(opened: Opened, node: int) -> Crumb:
    return Crumb(node, opened.name(node), int(opened.tree.size[node]), int(opened.tree.round[node]))


def _path(opened: Opened, node: int) -> list[Crumb]:
    return [_crumb(opened, step) for step in crumbs(opened.tree, node)]


def items_of(opened: Opened, points: Any) -> list[Item]:
    """What is known of these points."""
    texts = opened.items.texts(points)
    values = opened.items.values(points)
    counts = np.ones(len(points), np.int64) if opened.items.count is None else opened.items.count[points]
    rows = zip(points.tolist(), texts, counts.tolist(), values, strict=True)
    return [Item(point, text, int(count), row) for point, text, count, row in rows]
