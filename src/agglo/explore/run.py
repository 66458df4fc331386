"""A run that is open for exploring: its tree, mapped into memory, its items, and the names of its clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agglo.explore.items import SHORT, Items, make_table, map_table, read_table
from agglo.explore.values import cut
from agglo.io import run_folder as runfolder
from agglo.io.tree_file import forget, load_mapped
from agglo.text.names import Names, name_nodes
from agglo.tree.hierarchy import Hierarchy
from agglo.tree.persistence import persistent_round

N_EXAMPLES = 5
_LOOKED_AT = 5000  # points of a large cluster that are looked at for its examples
_NAMES = pa.schema(
    [
        ("name", pa.large_string()),
        ("terms", pa.large_list(pa.large_string())),
        ("examples", pa.large_list(pa.int32())),
    ]
)
_LONGEST_NAME = 300  # characters: some terms, and a text


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
            return cut(str(self.names["name"][node - self.tree.n_leaves]), _LONGEST_NAME)
        if node >= self.tree.n_leaves and not self.items.has_text:
            return f"cluster {node}"
        text = self.items.texts(self.examples(node, 1))[0]
        return cut(text, SHORT)

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
        return [cut(term, SHORT) for term in self.names["terms"][node - self.tree.n_leaves].as_py()]


def open_run(path: Path, items: Path | None = None, column: str | None = None) -> Opened:
    """Open the folder of a run, or a tree file; ``items`` may name a file with a row a point.

    Only these files are ever read.
    """
    if path.is_dir():
        return runfolder.read_run(path, lambda files: _open_files(path, files, items, column))
    if not path.exists():
        raise FileNotFoundError(f"cannot read {path}: there is no such folder or file; check its name")
    tree = load_mapped(path)
    table = None if items is None else read_table(items, column)
    return _opened(path, tree, table, items, None, None)


def _open_files(path: Path, files: runfolder.RunFiles, items: Path | None, column: str | None) -> Opened:
    tree = load_mapped(files.tree())
    table = names = None
    source = items or files.find(runfolder.ITEMS)
    if items is not None:
        table = read_table(items, column)
    elif source is not None:
        table = map_table(source)
    named = files.find(runfolder.NAMES)
    if named is not None:
        names = checked_names(map_table(named), tree, named)
    start = ((files.record or {}).get("labels") or {}).get("round")
    return _opened(path, tree, table, source, names, start)


def _opened(path: Path, tree: Hierarchy, table: Any, source: Path | None, names: Any, start: Any) -> Opened:
    try:
        known = Items(tree.n_leaves, table)
    except ValueError as error:
        raise ValueError(f"{source} does not fit the tree: {error}") from None
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
    return pa.table([pa.array(values, field.type) for values, field in zip(names, _NAMES, strict=True)], _NAMES)


def checked_names(names: Any, tree: Hierarchy, path: Path) -> Any:
    """The table of names, if it is one of this tree's."""
    inner = tree.n_nodes - tree.n_leaves
    missing = {"name", "terms", "examples"} - set(names.column_names)
    if missing or names.num_rows != inner:
        cause = (
            f"it has no column {min(missing)!r}" if missing else f"it has {names.num_rows} rows for {inner} nodes"
        )
        raise ValueError(f"{path} does not fit the tree: {cause}; run agglo text again")
    try:
        whole = pa.table({column.name: names[column.name].cast(column.type) for column in _NAMES}).combine_chunks()
    except (pa.ArrowException, KeyError) as error:
        raise ValueError(
            f"{path} has columns of other types than names have ({error}); run agglo text again"
        ) from None
    gaps = [column.name for column in _NAMES if whole[column.name].null_count]
    points = pc.list_flatten(whole["examples"])
    outside = pc.any(pc.or_(pc.less(points, 0), pc.greater_equal(points, tree.n_leaves))).as_py()
    some = pc.all(pc.greater(pc.list_value_length(whole["examples"]), 0)).as_py()
    if gaps or outside or some is False or points.null_count or pc.list_flatten(whole["terms"]).null_count:
        raise ValueError(
            f"{path} does not fit the tree: a node has no name, or examples that are no points of it; "
            "run agglo text again"
        )
    return whole
