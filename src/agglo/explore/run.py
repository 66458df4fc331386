"""The data that the explorer shows: a memory-mapped tree, its items, and the names of its clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agglo.estimators import run_folder as runfolder
from agglo.explore.items import MAX_LABEL, Items, make_table, read_table
from agglo.explore.values import truncate
from agglo.explore.view import Outline
from agglo.io.arrow_file import map_arrow
from agglo.text.names import NAMES_SCHEMA, name_nodes
from agglo.tree.hierarchy import Hierarchy
from agglo.tree.mapped import load_mapped, release_pages

N_EXAMPLES = 5
_MAX_CANDIDATES = 5000  # the examples of a cluster are selected among at most this number of its points
_MAX_NAME = 300  # maximum number of characters of a cluster's name, which is a few terms and a text


@dataclass(frozen=True, eq=False)
class ExplorableRun:
    """A tree with the items and names that the explorer shows.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    items : Items
        The texts and columns of the points.
    names : pyarrow.Table, optional
        One row per inner node, in node order: ``name``, ``terms`` and ``examples``.
    title : str
        The title of the page.
    """

    tree: Hierarchy
    items: Items
    names: Any
    title: str

    @cached_property
    def outline(self) -> Outline:
        """The nodes to draw: the condensed tree, and the order of splits."""
        outline = Outline.of(self.tree)
        release_pages(self.tree)
        return outline

    def name(self, node: int) -> str:
        """Return the name of a node; if the run has no names, the text of the node's first example."""
        if node >= self.tree.n_leaves and self.names is not None:
            return truncate(str(self.names["name"][node - self.tree.n_leaves]), _MAX_NAME)
        if node >= self.tree.n_leaves and not self.items.has_text:
            return f"cluster {node}"
        text = self.items.texts(self.examples(node, 1))[0]
        return truncate(text, MAX_LABEL)

    def points(self, node: int) -> npt.NDArray[np.int32]:
        """Return the points of a node, in the leaf order of the tree."""
        first = int(self.tree.start[node])
        return self.tree.order[first : first + int(self.tree.size[node])]

    def examples(self, node: int, n: int = N_EXAMPLES) -> npt.NDArray[np.int64]:
        """Return up to ``n`` representative points: the stored examples, or else the points that merged first."""
        if node >= self.tree.n_leaves and self.names is not None:
            return np.array(self.names["examples"][node - self.tree.n_leaves].as_py()[:n], np.int64)
        points = self.points(node)
        points = points[:: -(-len(points) // _MAX_CANDIDATES)]
        if len(points) == 1:
            return points.astype(np.int64)
        first = np.argsort(self.tree.height[self.tree.parent[points]], kind="stable")
        return points[first[:n]].astype(np.int64)

    def terms(self, node: int) -> list[str]:
        """Return the most distinctive terms of a node, best term first; empty if no terms are stored."""
        if node < self.tree.n_leaves or self.names is None:
            return []
        return [truncate(term, MAX_LABEL) for term in self.names["terms"][node - self.tree.n_leaves].as_py()]


def open_run(path: Path, items: Path | None = None, column: str | None = None) -> ExplorableRun:
    """Open a run folder or a tree file.

    Parameters
    ----------
    path : Path
        The run folder, or a tree file.
    items : Path, optional
        A file with one row per point, instead of the run's own items.
    column : str, optional
        The column of ``items`` that holds the texts.
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


def open_tree(tree: Hierarchy, texts: Sequence[str] | None, columns: Mapping[str, Any] | None) -> ExplorableRun:
    """Make a tree in memory explorable; if ``texts`` are given, name its clusters by them."""
    items = Items(tree.n_leaves, make_table(texts, columns))
    names = None
    if texts is not None and tree.n_leaves > 1:
        names = name_nodes(tree, list(texts)).to_table()
    return ExplorableRun(tree, items, names, "tree")


def check_names(names: Any, tree: Hierarchy, path: Path) -> Any:
    """Cast the table of names to its column types; raise ``ValueError`` if it does not match the tree."""
    inner = tree.n_nodes - tree.n_leaves
    if "typical_text" not in names.column_names:  # a run of an earlier version
        names = names.append_column("typical_text", pa.repeat(pa.scalar("", pa.large_string()), names.num_rows))
    missing = set(NAMES_SCHEMA.names) - set(names.column_names)
    if missing or names.num_rows != inner:
        cause = (
            f"it has no column {min(missing)!r}" if missing else f"it has {names.num_rows} rows for {inner} nodes"
        )
        raise ValueError(f"{path} does not fit the tree: {cause}; run agglo text again")
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
