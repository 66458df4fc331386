"""A run that is open for exploring: its tree, mapped into memory, its items, and the names of its clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agglo import runfolder
from agglo.cut import persistent_round
from agglo.explore.items import Items, make_table, map_table, read_table
from agglo.mapped import forget, load_mapped
from agglo.naming import Names, name_nodes
from agglo.tree import Hierarchy

N_EXAMPLES = 5
_LOOKED_AT = 5000  # points of a large cluster that are looked at for its examples
_SHORT = 80  # characters of a text that a name is made of


@dataclass(frozen=True, eq=False)
class Opened:
    """What the explorer reads.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    items : Items
        What its points are.
    names : pyarrow.Table, optional
        A row an inner node, in their order: ``name``, ``terms`` and ``examples``.
    title : str
        What the page is headed with.
    start : int
        The round that is shown first.
    """

    tree: Hierarchy
    items: Items
    names: Any
    title: str
    start: int

    def name(self, node: int) -> str:
        """What a node is called: by its name if it has one, else by the text of its first example."""
        if node >= self.tree.n_leaves and self.names is not None:
            return str(self.names["name"][node - self.tree.n_leaves])
        if node >= self.tree.n_leaves and not self.items.has_text:
            return f"cluster {node}"
        text = self.items.texts(self.examples(node, 1))[0]
        return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"

    def points(self, node: int) -> npt.NDArray[np.int32]:
        """The points of a node, those that are close in the tree side by side."""
        first = int(self.tree.start[node])
        return self.tree.order[first : first + int(self.tree.size[node])]

    def examples(self, node: int, most: int = N_EXAMPLES) -> npt.NDArray[np.int64]:
        """Points that stand for a node: those on file, else those that found one another first."""
        if node >= self.tree.n_leaves and self.names is not None:
            return np.array(self.names["examples"][node - self.tree.n_leaves].as_py()[:most], np.int64)
        points = self.points(node)
        points = points[:: -(-len(points) // _LOOKED_AT)]
        if len(points) == 1:
            return points.astype(np.int64)
        first = np.argsort(self.tree.height[self.tree.parent[points]], kind="stable")
        return points[first[:most]].astype(np.int64)

    def terms(self, node: int) -> list[str]:
        """The terms that set a node apart, the most telling first; none where they are not on file."""
        if node < self.tree.n_leaves or self.names is None:
            return []
        return list(self.names["terms"][node - self.tree.n_leaves].as_py())


def open_run(path: Path, items: Path | None = None, column: str | None = None) -> Opened:
    """Open the folder of a run, or a tree file; ``items`` may name a file with a row a point.

    Only these files are ever read.
    """
    file = runfolder.tree_file(path)
    tree = load_mapped(file)
    table = names = None
    if items is not None:
        table = read_table(items, column)
    elif path.is_dir() and (path / runfolder.ITEMS).is_file():
        table = map_table(path / runfolder.ITEMS)
    if path.is_dir() and (path / runfolder.NAMES).is_file():
        names = checked_names(map_table(path / runfolder.NAMES), tree, path / runfolder.NAMES)
    try:
        known = Items(tree.n_leaves, table)
    except ValueError as error:
        raise ValueError(f"{items or path / runfolder.ITEMS} does not fit the tree: {error}") from None
    record = (runfolder.load_record(path) if path.is_dir() else None) or {}
    start = (record.get("labels") or {}).get("round")
    if not isinstance(start, int) or not 0 <= start <= len(tree.rounds):
        start = persistent_round(tree)
    forget(tree)
    return Opened(tree, known, names, path.absolute().name, start)


def open_tree(tree: Hierarchy, texts: Sequence[str] | None, columns: Mapping[str, Any] | None) -> Opened:
    """Open a tree that is in memory, with its clusters named if there are texts."""
    items = Items(tree.n_leaves, make_table(texts, columns))
    names = None
    if texts is not None and tree.n_leaves > 1:
        names = names_table(name_nodes(tree, list(texts)))
    return Opened(tree, items, names, "tree", persistent_round(tree))


def names_table(names: Names) -> Any:
    """Names as a table."""
    kinds = (pa.large_string(), pa.large_list(pa.large_string()), pa.large_list(pa.int32()))
    columns = zip(names._fields, names, kinds, strict=True)
    return pa.table({field: pa.array(values, kind) for field, values, kind in columns})


def checked_names(names: Any, tree: Hierarchy, path: Path) -> Any:
    """The table of names, if it is one of this tree's."""
    inner = tree.n_nodes - tree.n_leaves
    missing = {"name", "terms", "examples"} - set(names.column_names)
    if missing or names.num_rows != inner:
        cause = (
            f"it has no column {min(missing)!r}" if missing else f"it has {names.num_rows} rows for {inner} nodes"
        )
        raise ValueError(f"{path} does not fit the tree: {cause}; run agglo text again")
    return names.combine_chunks()
