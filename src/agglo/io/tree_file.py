"""Trees as Parquet files, read into memory or mapped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agglo._arrays import Column
from agglo._memory import open_scratch
from agglo.io import tree_file as treefile
from agglo.io.atomic import is_intact, replacing, seal
from agglo.points import validation as inputs
from agglo.tree.hierarchy import Hierarchy, Rounds

# A round's threshold and seconds stand beside each of its nodes: every round has one, so nothing is lost, and
# the file stays one table. The counts of clusters follow from the nodes.
COLUMNS = {"parent": pa.int32(), "height": pa.float64(), "size": pa.int32(), "round": pa.int32()}
ROUND_COLUMNS = {"threshold": pa.float64(), "seconds": pa.float64()}
KEY = b"agglo.hierarchy"
VERSION = 1


def save(tree: Hierarchy, path: str | os.PathLike[str]) -> None:
    """Write ``tree`` to ``path``, whole or not at all."""
    merged = (tree.round >= 1) & (tree.round <= len(tree.rounds))
    which = np.where(merged, tree.round - 1, 0)
    columns = [pa.array(getattr(tree, name), kind) for name, kind in COLUMNS.items()]
    for name, kind in ROUND_COLUMNS.items():
        values = getattr(tree.rounds, name)
        spread = values[which] if len(values) else np.zeros(tree.n_nodes)
        columns.append(pa.array(spread, kind, mask=~merged))
    record = seal({"version": VERSION, "rounds": len(tree.rounds), "about": dict(tree.about)})
    schema = pa.schema(COLUMNS | ROUND_COLUMNS, metadata={KEY: json.dumps(record).encode()})
    with replacing(path) as partial, partial.open("wb") as file:  # Arrow cannot open a name that is not UTF-8
        pq.write_table(
            pa.Table.from_arrays(columns, schema=schema),
            file,
            compression="zstd",
            write_page_checksum=True,
        )


def load(path: str | os.PathLike[str], *, keep: Callable[[Column], Column] = lambda column: column) -> Hierarchy:
    """The tree in the file ``path``, checked in full.

    Columns are read one after the other, and what ``keep`` makes of each is kept in its place.
    """
    name = Path(path)
    with name.open("rb") as file:  # a file that is missing or may not be read is an OSError of its own
        with _reading(name):
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            record = _record(name, parquet.schema_arrow, parquet.metadata.num_rows)
        columns = {}
        for column, kind in (COLUMNS | ROUND_COLUMNS).items():
            with _reading(name):
                values = _column(name, parquet, column, kind)
            columns[column] = keep(values)  # may fail for reasons of its own, such as a full disk
    try:
        rounds = _rounds(columns, record["rounds"])
        nodes = {column: columns[column] for column in COLUMNS}
        return Hierarchy(**nodes, rounds=rounds, about=record["about"])
    except (ValueError, IndexError) as error:
        raise _broken(name, str(error)) from error


@contextmanager
def _reading(name: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise _broken(name, f"it is damaged, cut short or not Parquet ({error})") from error


def _column(name: Path, parquet: Any, column: str, kind: Any) -> Column:
    if column not in parquet.schema_arrow.names:
        raise _broken(name, f"it has no column {column!r}")
    found = parquet.schema_arrow.field(column).type
    if found != kind:
        raise _broken(name, f"its column {column!r} is of type {found}, not {kind}")
    values = parquet.read([column], use_threads=False)[column]
    if column in COLUMNS and values.null_count:
        raise _broken(name, f"its column {column!r} has empty entries")
    numbers: Column = values.to_numpy()
    return numbers


def _record(name: Path, schema: Any, n_nodes: int) -> dict[str, Any]:
    text = (schema.metadata or {}).get(KEY)
    if text is None:
        raise _broken(name, "its metadata has no entry of agglo's")
    try:
        record = json.loads(text)
    except ValueError as error:
        raise _broken(name, f"its metadata are not JSON ({error})") from error
    version = record.get("version") if isinstance(record, dict) else None
    if version != VERSION:
        raise _broken(name, f"it is of version {version}, and this agglo reads version {VERSION}")
    if type(record.get("rounds")) is not int or not isinstance(record.get("about"), dict):
        raise _broken(name, "its metadata lack the number of rounds or what is on record")
    if not is_intact(record):
        raise _broken(name, "its metadata are damaged (their checksum is that of another content)")
    if not 0 <= record["rounds"] < n_nodes:
        raise _broken(name, f"its metadata count {record['rounds']} rounds for {n_nodes} nodes")
    checked: dict[str, Any] = record
    return checked


def _rounds(columns: dict[str, Any], number: int) -> Rounds:
    """The records of the rounds, from their nodes; what does not fit is left for Hierarchy to find."""
    parent, round = columns["parent"], columns["round"]
    children = np.bincount(parent[parent >= 0], minlength=len(parent))[: len(parent)]
    merged = (round >= 1) & (round <= number)
    which = round[merged] - 1
    gone = np.bincount(which, weights=children[merged] - 1, minlength=number).astype(np.int64)
    after = np.count_nonzero(round == 0) - np.cumsum(gone)
    values = {name: np.full(number, np.nan) for name in ROUND_COLUMNS}
    for name, column in values.items():
        column[which] = columns[name][merged]
    return Rounds(values["threshold"], after + gone, after, values["seconds"])


def _broken(name: Path, cause: str) -> ValueError:
    return ValueError(f"{name} holds no tree of agglo's: {cause}; write it again with Hierarchy.save")


def load_mapped(path: str | os.PathLike[str]) -> Hierarchy:
    """The tree in the file ``path``, as :meth:`agglo.Hierarchy.load` has it, but with its columns not in memory.

    They are unpacked into temporary files that have no name any more, so they go with the process, and the system
    may drop their pages from memory whenever it needs to.

    Examples
    --------
    >>> import agglo
    >>> from agglo.io.tree_file import load_mapped
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
