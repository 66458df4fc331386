"""Read and write a tree as one Parquet file.

The file has one row per node. The threshold and the duration of a round are repeated in the rows of all nodes that
the round merged. Every round merged at least one node, so no second table is needed. The number of clusters after
each round is derived from the nodes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agglo._validation import Column
from agglo.io.atomic import replace_file
from agglo.io.files import add_checksum, has_valid_checksum, write_parquet

if TYPE_CHECKING:
    from agglo.tree.hierarchy import Hierarchy

Tree = TypeVar("Tree")

COLUMNS = {"parent": pa.int32(), "height": pa.float64(), "size": pa.int32(), "round": pa.int32()}
ROUND_COLUMNS = {"threshold": pa.float64(), "seconds": pa.float64()}
KEY = b"agglo.hierarchy"
VERSION = 1


def write_tree(tree: Hierarchy, path: str | os.PathLike[str]) -> None:
    """Write ``tree`` to the file ``path``; if writing fails, an existing file does not change."""
    is_merge = (tree.round >= 1) & (tree.round <= len(tree.rounds))
    round_index = np.where(is_merge, tree.round - 1, 0)
    columns = [pa.array(getattr(tree, name), kind) for name, kind in COLUMNS.items()]
    for name, kind in ROUND_COLUMNS.items():
        of_round = getattr(tree.rounds, name)
        of_node = of_round[round_index] if len(of_round) else np.zeros(tree.n_nodes)
        columns.append(pa.array(of_node, kind, mask=~is_merge))
    record = add_checksum({"version": VERSION, "rounds": len(tree.rounds), "about": dict(tree.about)})
    schema = pa.schema(COLUMNS | ROUND_COLUMNS, metadata={KEY: json.dumps(record).encode()})
    with replace_file(path) as partial:
        write_parquet(pa.Table.from_arrays(columns, schema=schema), partial)


def read_tree(
    path: str | os.PathLike[str],
    build: Callable[..., Tree],
    store: Callable[[Column], Column] = lambda column: column,
) -> Tree:
    """Read a tree file; pass the columns and ``about`` to ``build`` as keyword arguments, and return the result.

    The keyword argument ``rounds`` maps column names to columns with one entry per round.

    Columns are read one by one. Each column is replaced by ``store(column)``.
    """
    name = Path(path)
    with name.open("rb") as file:  # a missing file raises its OSError here
        with _explain_damage(name):
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            record = _read_record(name, parquet.schema_arrow, parquet.metadata.num_rows)
        columns = {}
        for column, kind in (COLUMNS | ROUND_COLUMNS).items():
            with _explain_damage(name):
                values = _read_column(name, parquet, column, kind)
            columns[column] = store(values)  # not in the block above: if store fails, the file is not damaged
    try:
        rounds = _derive_rounds(columns, record["rounds"])
        nodes = {column: columns[column] for column in COLUMNS}
        return build(**nodes, rounds=rounds, about=record["about"])
    except (ValueError, IndexError) as error:
        raise _read_error(name, str(error)) from error


@contextmanager
def _explain_damage(name: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise _read_error(name, f"it is damaged, cut short or not Parquet ({error})") from error


def _read_column(name: Path, parquet: Any, column: str, kind: Any) -> Column:
    if column not in parquet.schema_arrow.names:
        raise _read_error(name, f"it has no column {column!r}")
    found = parquet.schema_arrow.field(column).type
    if found != kind:
        raise _read_error(name, f"its column {column!r} is of type {found}, not {kind}")
    values = parquet.read([column], use_threads=False)[column]
    if column in COLUMNS and values.null_count:
        raise _read_error(name, f"its column {column!r} has empty entries")
    numbers: Column = values.to_numpy()
    return numbers


def _read_record(name: Path, schema: Any, n_nodes: int) -> dict[str, Any]:
    """Return the validated metadata of the file: the version, the number of rounds, and ``about``."""
    text = (schema.metadata or {}).get(KEY)
    if text is None:
        raise _read_error(name, "its metadata has no entry of agglo")
    try:
        record = json.loads(text)
    except ValueError as error:
        raise _read_error(name, f"its metadata is not JSON ({error})") from error
    version = record.get("version") if isinstance(record, dict) else None
    if version != VERSION:
        raise _read_error(name, f"it is of version {version}, and this agglo reads version {VERSION}")
    if type(record.get("rounds")) is not int or not isinstance(record.get("about"), dict):
        raise _read_error(name, "its metadata lacks the number of rounds or the record of how the tree was built")
    if not has_valid_checksum(record):
        raise _read_error(name, "its metadata is damaged (the checksum does not match)")
    if not 0 <= record["rounds"] < n_nodes:
        raise _read_error(name, f"its metadata counts {record['rounds']} rounds for {n_nodes} nodes")
    checked: dict[str, Any] = record
    return checked


def _derive_rounds(columns: dict[str, Any], n_rounds: int) -> dict[str, Column]:
    """Compute the columns of the table of rounds from the columns of nodes; the caller validates the result."""
    parent, round = columns["parent"], columns["round"]
    n_children = np.bincount(parent[parent >= 0], minlength=len(parent))[: len(parent)]
    is_merge = (round >= 1) & (round <= n_rounds)
    round_index = round[is_merge] - 1
    fewer = np.bincount(round_index, weights=n_children[is_merge] - 1, minlength=n_rounds).astype(np.int64)
    after = np.count_nonzero(round == 0) - np.cumsum(fewer)
    values = {name: np.full(n_rounds, np.nan) for name in ROUND_COLUMNS}
    for name, column in values.items():
        column[round_index] = columns[name][is_merge]
    return {**values, "before": after + fewer, "after": after}


def _read_error(name: Path, cause: str) -> ValueError:
    return ValueError(f"{name} is not a tree file of agglo: {cause}; write it again with Hierarchy.save")
