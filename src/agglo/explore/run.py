"""The data that the explorer shows: a tree, the texts and other columns of its points, and cluster names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agglo.estimators import run_folder as runfolder
from agglo.explore.items import MAX_LABEL, MAX_TEXT, Items, make_table, read_table
from agglo.explore.mapped_tree import load_mapped, release_pages
from agglo.explore.query import BadRequestError
from agglo.explore.values import is_number, to_floats, to_text, truncate
from agglo.explore.view import Outline
from agglo.io.files import map_arrow
from agglo.text.names import NAMES_SCHEMA, Names, distinct_name, name_nodes
from agglo.tree.hierarchy import Hierarchy

N_EXAMPLES = 5
_MAX_CANDIDATES = 5000  # the examples of a cluster are selected among at most this number of its points
_MAX_CATEGORIES = 10  # number of categories with a colour of their own; all others share one colour
_MAX_NAME = 300  # maximum number of characters of a cluster's name, which is a few terms and a text


@dataclass(frozen=True, eq=False)
class ExplorableRun:
    """A tree, the columns of its points (items) and the names of its clusters, as the explorer shows them.

    Examples
    --------
    >>> import agglo
    >>> from agglo.explore import open_tree
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> run = open_tree(tree, ["cats", "dogs", "planets"], None)
    >>> run.name(2)
    'planets'
    >>> run.points(3)
    array([0, 1], dtype=int32)
    >>> run.examples(4, 2)
    array([2, 0])
    >>> run.terms(2)
    []
    """

    tree: Hierarchy
    items: Items
    names: Any  # Arrow table with the name, terms and examples of each inner node, or None
    title: str  # the title of the page

    @cached_property
    def outline(self) -> Outline:
        """The condensed tree, and the order in which a view splits nodes."""
        outline = Outline.of(self.tree)
        release_pages(self.tree)
        return outline

    def name(self, node: int) -> str:
        """Return the name of a node. If the run has no names, return the text of the node's first example."""
        if node >= self.tree.n_leaves and self.names is not None:
            return truncate(str(self.names["name"][node - self.tree.n_leaves]), _MAX_NAME)
        if node >= self.tree.n_leaves and not self.items.has_text:
            return f"cluster {node}"
        text = self.items.texts(self.examples(node, 1))[0]
        return truncate(text, MAX_LABEL)

    def make_namer(self) -> Callable[[int], str]:
        """Return a function that names nodes for a view without their parents; all its names are different.

        Examples
        --------
        >>> import agglo
        >>> from agglo.explore import open_tree
        >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0], [6.0]], "all", "euclidean"))
        >>> name = open_tree(tree, ["red apple", "green apples", "red car", "fast car"], None).make_namer()
        >>> name(4), name(5)
        ('apple, green', 'car, fast')
        """
        used: set[str] = set()

        @cache
        def name(node: int) -> str:
            row = node - self.tree.n_leaves
            own = self.name(node) if row < 0 or self.names is None else str(self.names["standalone_name"][row])
            return distinct_name(truncate(own, _MAX_NAME), self.terms(node), used)

        return name

    def points(self, node: int) -> npt.NDArray[np.int32]:
        """Return the points of a node, in the leaf order of the tree."""
        first = int(self.tree.start[node])
        return self.tree.order[first : first + int(self.tree.size[node])]

    def examples(self, node: int, n: int = N_EXAMPLES) -> npt.NDArray[np.int64]:
        """Return up to ``n`` stored examples of a node; if none are stored, the points that merged first."""
        if node >= self.tree.n_leaves and self.names is not None:
            return np.array(self.names["examples"][node - self.tree.n_leaves].as_py()[:n], np.int64)
        points = self.points(node)
        points = points[:: -(-len(points) // _MAX_CANDIDATES)]
        if len(points) == 1:
            return points.astype(np.int64)
        first = np.argsort(self.tree.height[self.tree.parent[points]], kind="stable")
        return points[first[:n]].astype(np.int64)

    def terms(self, node: int) -> list[str]:
        """Return the terms of a node, from most to least distinctive. If none are stored, return an empty list."""
        if node < self.tree.n_leaves or self.names is None:
            return []
        return [truncate(term, MAX_LABEL) for term in self.names["terms"][node - self.tree.n_leaves].as_py()]


def open_run(path: Path, items: Path | None = None, column: str | None = None) -> ExplorableRun:
    """Open a run folder or a tree file for the explorer.

    ``items`` is a file with one row per point, which replaces the items of the run. ``column`` is the name of its
    text column.

    Examples
    --------
    >>> import agglo, tempfile
    >>> from pathlib import Path
    >>> from agglo.explore import open_run
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tree.save(f"{folder}/tree.parquet")
    ...     open_run(Path(folder) / "tree.parquet").name(3)
    'cluster 3'
    """
    if path.is_dir():
        return runfolder.read_run(path, lambda files: _open_files(path, files, items, column))
    if not path.exists():
        raise FileNotFoundError(f"cannot read {path}: there is no such folder or file; check its name")
    tree = load_mapped(path)
    table = None if items is None else read_table(items, column)
    return _build_run(path, tree, table, items, None)


def _open_files(path: Path, files: runfolder.RunFiles, items: Path | None, column: str | None) -> ExplorableRun:
    tree = load_mapped(files.tree())
    table = names = None
    source = items or files.find(runfolder.ITEMS)
    if items is not None:
        table = read_table(items, column)
        rows = runfolder.find_rows(path, table.num_rows)
        table = table if isinstance(rows, slice) else table.take(rows)
    elif source is not None:
        table = map_arrow(source)
    names_path = files.find(runfolder.NAMES)
    if names_path is not None:
        names = check_names(map_arrow(names_path), tree, names_path)
    return _build_run(path, tree, table, source, names)


def _build_run(path: Path, tree: Hierarchy, table: Any, source: Path | None, names: Any) -> ExplorableRun:
    try:
        items = Items(tree.n_leaves, table)
    except ValueError as error:
        raise ValueError(f"{source} does not fit the tree: {error}") from None
    release_pages(tree)
    return ExplorableRun(tree, items, names, path.absolute().name)


def open_tree(
    tree: Hierarchy, texts: Sequence[str] | None, columns: Mapping[str, Any] | None, names: Names | None = None
) -> ExplorableRun:
    """Prepare a tree in memory for the explorer: add texts, further columns of the points, and names.

    ``names`` are the names of the clusters. By default, they are terms of ``texts``, if these are given.

    Examples
    --------
    >>> import agglo
    >>> from agglo.explore import open_tree
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean"))
    >>> run = open_tree(tree, ["cats", "dogs", "planets"], None)
    >>> run.name(2)
    'planets'
    >>> run.points(3)
    array([0, 1], dtype=int32)
    >>> run.examples(4, 2)
    array([2, 0])
    >>> run.terms(2)
    []
    """
    items = Items(tree.n_leaves, make_table(texts, columns))
    if names is None and texts is not None and tree.n_leaves > 1:
        names = name_nodes(tree, list(texts))
    return ExplorableRun(tree, items, None if names is None else names.to_table(), "tree")


def check_names(names: Any, tree: Hierarchy, path: Path) -> Any:
    """Cast the columns of the table ``names`` to the types in ``NAMES_SCHEMA``.

    Raise ``ValueError`` if the table does not match the tree.
    """
    inner = tree.n_nodes - tree.n_leaves
    if "typical_text" not in names.column_names:  # an earlier version wrote the run
        names = names.append_column("typical_text", pa.repeat(pa.scalar("", pa.large_string()), names.num_rows))
    if "name" in names.column_names and "standalone_name" not in names.column_names:  # likewise
        names = names.append_column("standalone_name", names["name"])
    missing = set(NAMES_SCHEMA.names) - set(names.column_names)
    if missing or names.num_rows != inner:
        cause = f"has no column {min(missing)!r}" if missing else f"has {names.num_rows} rows for {inner} nodes"
        raise ValueError(f"{path} does not fit the tree: it {cause}; run agglo text again")
    try:
        table = pa.table(
            {column.name: names[column.name].cast(column.type) for column in NAMES_SCHEMA}
        ).combine_chunks()
    except (pa.ArrowException, KeyError) as error:
        raise ValueError(f"{path} has columns of wrong types ({error}); run agglo text again") from None
    nulls = [column.name for column in NAMES_SCHEMA if table[column.name].null_count]
    points = pc.list_flatten(table["examples"])
    outside = pc.any(pc.or_(pc.less(points, 0), pc.greater_equal(points, tree.n_leaves))).as_py()
    nonempty = pc.all(pc.greater(pc.list_value_length(table["examples"]), 0)).as_py()
    if nulls or outside or nonempty is False or points.null_count or pc.list_flatten(table["terms"]).null_count:
        raise ValueError(
            f"{path} does not fit the tree: a node has no name, or an example is not a point of the tree; "
            "run agglo text again"
        )
    return table


class Colouring:
    """The colour values of the nodes of a run: the mean of a numeric column, or the most frequent category.

    ``legend`` contains the most frequent categories. For a numeric column, it is empty. ``span`` contains the
    smallest and the largest number. For other columns, it is empty.
    """

    def __init__(self, run: ExplorableRun, column: str) -> None:
        if column not in run.items.columns:
            known = ", ".join(map(repr, run.items.columns)) or "none"
            raise BadRequestError(f"there is no column {column!r} to colour by: pass one of {known}")
        array = run.items.array(column)
        self.legend: list[str] = []
        self.span: list[float] = []
        self._tree = run.tree
        self._is_numeric = is_number(array.type) and column != "label"
        values: npt.NDArray[Any]
        if self._is_numeric:
            values = to_floats(array)
            finite = values[np.isfinite(values)]
            self.span = [float(finite.min()), float(finite.max())] if len(finite) else []
        else:
            self.legend, values = _encode_categories(array)
        # The values are in leaf order, so that the points of a node are a slice.
        self._values: npt.NDArray[Any] = values[run.tree.order]

    def value(self, node: int) -> tuple[float | None, float | None]:
        """Return (mean, None) for a numeric column, else (most frequent category, its share of the points).

        A category is given by its position in the legend, or by -1 if it is not in the legend.
        """
        first = int(self._tree.start[node])
        values = self._values[first : first + int(self._tree.size[node])]
        if self._is_numeric:
            finite = values[np.isfinite(values)]
            return (_mean(finite), None) if len(finite) else (None, None)
        counts = np.bincount(values + 1, minlength=_MAX_CATEGORIES + 1)
        most = int(counts.argmax())
        return float(most - 1), float(counts[most] / len(values))


build_colouring = lru_cache(maxsize=2)(Colouring)


def _encode_categories(array: Any) -> tuple[list[str], npt.NDArray[np.int8]]:
    """Return the most frequent texts, and the position of each row's text among them (-1 if not among them)."""
    encoded = to_text(array, MAX_TEXT).dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    counts = np.bincount(codes[codes >= 0], minlength=len(encoded.dictionary))
    frequent = np.argsort(-counts, kind="stable")[:_MAX_CATEGORIES]
    rank = np.full(len(encoded.dictionary) + 1, -1, np.int8)  # the last entry is for null, which has code -1
    rank[frequent] = np.arange(len(frequent))
    return [truncate(encoded.dictionary[int(i)].as_py(), MAX_LABEL) for i in frequent], rank[codes]


def _mean(values: npt.NDArray[Any]) -> float:
    with np.errstate(over="ignore"):
        mean = float(values.mean())
    # The sum of large floats may be infinite although their mean is finite.
    return mean if math.isfinite(mean) else float((values / len(values)).sum())
