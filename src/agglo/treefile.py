"""The tree on disk: one Parquet file, a row a node."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agglo.outputs import replacing
from agglo.tree import Hierarchy, Rounds

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
    record = {"version": VERSION, "rounds": len(tree.rounds), "about": dict(tree.about)}
    schema = pa.schema(COLUMNS | ROUND_COLUMNS, metadata={KEY: json.dumps(record).encode()})
    with replacing(path) as partial:
        pq.write_table(
            pa.Table.from_arrays(columns, schema=schema),
            partial,
            compression="zstd",
            write_page_checksum=True,
        )


def load(path: str | os.PathLike[str]) -> Hierarchy:
    """The tree in the file ``path``, checked in full."""
    name = Path(path)
    with name.open("rb") as file:  # a file that is missing or may not be read is an OSError of its own
        try:
            table = pq.ParquetFile(file, page_checksum_verification=True).read()
        except (pa.ArrowException, OSError) as error:
            raise _broken(name, f"it is damaged, cut short or not Parquet ({error})") from error
    record = _record(name, table)
    for column, kind in (COLUMNS | ROUND_COLUMNS).items():
        if column not in table.column_names:
            raise _broken(name, f"it has no column {column!r}")
        if table.schema.field(column).type != kind:
            raise _broken(name, f"its column {column!r} is of type {table.schema.field(column).type}, not {kind}")
        if column in COLUMNS and table[column].null_count:
            raise _broken(name, f"its column {column!r} has empty entries")
    columns = {column: table[column].to_numpy() for column in COLUMNS | ROUND_COLUMNS}
    try:
        rounds = _rounds(columns, record["rounds"])
        nodes = {column: columns[column] for column in COLUMNS}
        return Hierarchy(**nodes, rounds=rounds, about=record["about"])
    except (ValueError, IndexError) as error:
        raise _broken(name, str(error)) from error


def _record(name: Path, table: Any) -> dict[str, Any]:
    text = (table.schema.metadata or {}).get(KEY)
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
    if not 0 <= record["rounds"] < table.num_rows:
        raise _broken(name, f"its metadata count {record['rounds']} rounds for {table.num_rows} nodes")
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
