"""A tree whose columns lie in a temporary file, mapped into memory, to read a little of it at a time."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from agglo import inputs, treefile
from agglo.outputs import open_scratch
from agglo.records import Column
from agglo.tree import Hierarchy


def load_mapped(path: str | os.PathLike[str]) -> Hierarchy:
    """The tree in the file ``path``, as :meth:`agglo.Hierarchy.load` has it, but with its columns not in memory.

    They are unpacked into temporary files that have no name any more, so they go with the process, and the system
    may drop their pages from memory whenever it needs to.

    Examples
    --------
    >>> import agglo
    >>> from agglo.mapped import load_mapped
    >>> agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0]], 2, "euclidean")).save("tree.parquet")
    >>> load_mapped("tree.parquet")
    Hierarchy(3 leaves, 5 nodes, 2 rounds, height 4.5)
    """
    tree = treefile.load(path, keep=mapped)
    # Where children and leaves stand is derived when first asked for; what is kept of it is mapped, too.
    tree.__dict__["_below"] = tuple(mapped(column) for column in tree._below)
    pa.default_memory_pool().release_unused()
    forget(tree)
    return tree


def mapped(column: Column) -> Column:
    """The same numbers in a temporary file, mapped read-only."""
    if not column.size:  # an empty file cannot be mapped
        return column
    with open_scratch(column.nbytes) as file:
        file.write(np.ascontiguousarray(column).data)
        file.flush()
        view: np.memmap[Any, Any] = np.memmap(file, column.dtype, "r", shape=column.shape)
    return view.view(np.ndarray)


def forget(tree: Hierarchy) -> None:
    """Give back the memory of what was read of a mapped tree; it is read again when it is needed."""
    for column in (tree.parent, tree.height, tree.size, tree.round, *tree._below):
        inputs.forget(column)
