"""Load trees as memory-mapped files, for processes that hold many or large trees."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from agglo._native import open_scratch
from agglo._validation import Column
from agglo.points import points
from agglo.tree.file import read_tree
from agglo.tree.hierarchy import Hierarchy


def load_mapped(path: str | os.PathLike[str]) -> Hierarchy:
    """Load a tree as :meth:`agglo.Hierarchy.load` does, but with memory-mapped columns.

    The columns are decompressed into temporary files without names, which are deleted when the process ends. The
    system may drop the pages of these files from memory at any time.

    Examples
    --------
    >>> import agglo
    >>> from agglo.explore.mapped_tree import load_mapped
    >>> agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean")).save("tree.parquet")
    >>> load_mapped("tree.parquet")
    Hierarchy(3 leaves, 5 nodes, 2 rounds, height 4.5)
    """
    tree = read_tree(path, Hierarchy.from_columns, store=_map_column)
    # Compute the children and leaves of each node now, and map these arrays, too.
    tree.__dict__["_traversal"] = tuple(_map_column(column) for column in tree._traversal)
    pa.default_memory_pool().release_unused()
    release_pages(tree)
    return tree


def release_pages(tree: Hierarchy) -> None:
    """Drop the columns of a mapped tree from memory. The system reads them from disk again when needed."""
    for column in (tree.parent, tree.height, tree.size, tree.round, *tree._traversal):
        points.release_pages(column)


def _map_column(column: Column) -> Column:
    """Copy ``column`` to a temporary file, and return the file mapped read-only."""
    if not column.size:  # an empty file cannot be mapped
        return column
    with open_scratch(column.nbytes) as file:
        file.write(np.ascontiguousarray(column).data)
        file.flush()
        view: np.memmap[Any, Any] = np.memmap(file, column.dtype, "r", shape=column.shape)
    return view.view(np.ndarray)
