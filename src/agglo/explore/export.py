"""Points of clusters as a CSV or Parquet file, made piece by piece."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from agglo.explore.items import unique_names
from agglo.explore.run import Opened
from agglo.explore.values import decode, is_number, to_text

_STEP = 2**13  # rows that are selected at once, at most; fewer if they are long: a text may have many megabytes
_MOST_ROWS = 2**16  # rows of a piece
_MOST_BYTES = 4_000_000  # of a piece, after which it is written
_WITH_LENGTH = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
# What a spreadsheet takes for the beginning of a formula (OWASP, "CSV Injection"), in both widths.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"


def csv_parts(opened: Opened, nodes: Sequence[int]) -> Iterator[bytes]:
    """Yield the table of :func:`tables` as CSV, the texts in it safe for spreadsheets.

    Numbers and truth values are not quoted. Everything else is text, with an apostrophe before what a spreadsheet
    would run as a formula.
    """
    header = True
    for table in tables(opened, nodes):
        names = guard_formulas(pa.array(table.column_names)).to_pylist()
        plain = pa.table([_csv_column(column.combine_chunks()) for column in table.columns], names)
        stream = io.BytesIO()
        pa.csv.write_csv(plain, stream, pa.csv.WriteOptions(include_header=header))
        header = False
        yield stream.getvalue()


def parquet_parts(opened: Opened, nodes: Sequence[int]) -> Iterator[bytes]:
    """Yield the table of :func:`tables` as a Parquet file; columns of types that Parquet lacks are texts."""
    sink = _Sink()
    writer = None
    kept: list[bool] = []
    for table in tables(opened, nodes):
        if writer is None:
            own = table.num_columns - len(opened.items.names)
            arrays = [opened.items.array(name) for name in opened.items.names]
            kept = [True] * own + [_parquet_holds(array) for array in arrays]
        columns = [column.combine_chunks() for column in table.columns]
        plain = [column if keep else to_text(column) for keep, column in zip(kept, columns, strict=True)]
        piece = pa.table(plain, table.column_names)
        if writer is None:
            writer = pq.ParquetWriter(pa.PythonFile(sink, "w"), piece.schema, compression="zstd")
        writer.write_table(piece)
        yield sink.drain()
    if writer is not None:
        writer.close()
    yield sink.drain()


def tables(opened: Opened, nodes: Sequence[int]) -> Iterator[Any]:
    """Yield the points of nodes as small tables: ``cluster``, ``name`` and ``point``, then the items' columns.

    There is one row per node and point: a point is there once for each of the nodes that contain it. Only one of
    the tables is in memory at a time. It has a few megabytes, unless a single row has more.
    """
    step = max(
        1, min(_STEP, _MOST_BYTES // sum(map(_largest_row, map(opened.items.array, opened.items.names)), 1))
    )
    names = unique_names(["cluster", "name", "point", *opened.items.names])
    held: list[Any] = []
    rows = size = 0
    for node in nodes:
        points = opened.points(node)
        name = opened.name(node)
        for first in range(0, len(points), step):
            chosen = points[first : first + step]
            own = [
                pa.repeat(pa.scalar(node, pa.int64()), len(chosen)),
                pa.repeat(name, len(chosen)),
                pa.array(chosen),
            ]
            piece = pa.table([*own, *opened.items.rows(chosen).values()], names)
            held.append(piece)
            rows, size = rows + len(chosen), size + piece.nbytes
            if rows >= _MOST_ROWS or size >= _MOST_BYTES:
                yield pa.concat_tables(held)
                held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)


def guard_formulas(texts: Any) -> Any:
    """Return an Arrow array of texts with an apostrophe before those that a spreadsheet would run as a formula."""
    quote = pa.scalar("'", texts.type)
    guarded = pc.binary_join_element_wise(quote, texts, pa.scalar("", texts.type))
    return pc.if_else(pc.match_substring_regex(texts, _FORMULA), guarded, texts)


def _largest_row(array: Any) -> int:
    """Return the number of bytes of the largest value; of lists and the like, a guess."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _largest_row(array.storage)
    if pa.types.is_dictionary(kind):
        return _largest_row(array.dictionary)
    if pa.types.is_run_end_encoded(kind):
        return _largest_row(array.values)
    if any(is_kind(kind) for is_kind in _WITH_LENGTH):
        return pc.max(pc.binary_length(array)).as_py() or 0
    return _MOST_BYTES // 128 if pa.types.is_nested(kind) else 40


def _csv_column(array: Any) -> Any:
    if is_number(array.type) or pa.types.is_boolean(array.type) or pa.types.is_null(array.type):
        return array
    return guard_formulas(to_text(array))


def _parquet_holds(array: Any) -> bool:
    """Whether Parquet has the type of these values, once they are decoded, and dates as large as they are."""
    kind = decode(array.slice(0, 0)).type
    inside = list(_inner_types(kind))
    if any(pa.types.is_dictionary(part) for part in inside):  # not with all that may be in it
        return False
    try:
        if any(pa.types.is_timestamp(part) and part.unit == "s" for part in inside):
            if len(inside) > 1:
                return False
            decode(array).cast(pa.timestamp("ms", kind.tz))  # as which Parquet stores seconds
        pq.write_table(pa.schema([("column", kind)]).empty_table(), io.BytesIO())
    except (pa.ArrowException, OSError):
        return False
    return True


def _inner_types(kind: Any) -> Iterator[Any]:
    yield kind
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        yield from _inner_types(kind.value_type)
    elif isinstance(kind, pa.BaseExtensionType):
        yield from _inner_types(kind.storage_type)
    elif pa.types.is_map(kind):
        yield from _inner_types(kind.key_type)
        yield from _inner_types(kind.item_type)
    elif pa.types.is_struct(kind) or pa.types.is_union(kind):
        for i in range(kind.num_fields):
            yield from _inner_types(kind.field(i).type)
    elif pa.types.is_nested(kind):
        yield from _inner_types(kind.value_type)


class _Sink(io.RawIOBase):
    """A file to write to that keeps what was written until it is drained."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def drain(self) -> bytes:
        """Return what was written since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
