"""Export the points of clusters as a CSV or Parquet file, in parts of a few megabytes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from agglo.explore.items import unique_names
from agglo.explore.run import ExplorableRun
from agglo.explore.values import decode, is_number, to_text

_MAX_SELECTED = 2**13  # maximum number of rows selected at once; fewer if rows may have long texts
_MAX_ROWS = 2**16  # maximum number of rows of a part
_MAX_BYTES = 4_000_000  # maximum size of a part
_VARIABLE_LENGTH = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
# Characters that can start a spreadsheet formula (OWASP, "CSV Injection"), half-width and full-width.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"


def iter_csv(run: ExplorableRun, nodes: Sequence[int]) -> Iterator[bytes]:
    """Yield the points of ``nodes`` as CSV that is safe for spreadsheets; see :func:`iter_tables`.

    Numbers and booleans are not quoted. All other values are quoted text. If a spreadsheet would run a text as a
    formula, an apostrophe is put before it.
    """
    header = True
    for table in iter_tables(run, nodes):
        names = guard_formulas(pa.array(table.column_names)).to_pylist()
        plain = pa.table([_csv_column(column.combine_chunks()) for column in table.columns], names)
        stream = io.BytesIO()
        pa.csv.write_csv(plain, stream, pa.csv.WriteOptions(include_header=header))
        header = False
        yield stream.getvalue()


def iter_parquet(run: ExplorableRun, nodes: Sequence[int]) -> Iterator[bytes]:
    """Yield the points of ``nodes`` as the bytes of a Parquet file; see :func:`iter_tables`.

    Columns of a type that Parquet does not support become text.
    """
    sink = _Sink()
    writer = None
    is_native: list[bool] = []
    for table in iter_tables(run, nodes):
        if writer is None:
            own = table.num_columns - len(run.items.names)
            arrays = [run.items.array(name) for name in run.items.names]
            is_native = [True] * own + [_parquet_supports(array) for array in arrays]
        columns = [column.combine_chunks() for column in table.columns]
        plain = [column if native else to_text(column) for native, column in zip(is_native, columns, strict=True)]
        piece = pa.table(plain, table.column_names)
        if writer is None:
            writer = pq.ParquetWriter(pa.PythonFile(sink, "w"), piece.schema, compression="zstd")
        writer.write_table(piece)
        yield sink.drain()
    if writer is not None:
        writer.close()
    yield sink.drain()


def iter_tables(run: ExplorableRun, nodes: Sequence[int]) -> Iterator[Any]:
    """Yield the points of ``nodes`` as small tables: ``cluster``, ``name``, ``point``, all columns of the points.

    A point has one row for each node that contains it. Only one table of a few megabytes is in memory at a time,
    unless a single row is larger.
    """
    step = max(
        1, min(_MAX_SELECTED, _MAX_BYTES // sum(map(_largest_row, map(run.items.array, run.items.names)), 1))
    )
    names = unique_names(["cluster", "name", "point", *run.items.names])
    pieces: list[Any] = []
    rows = size = 0
    for node in nodes:
        points = run.points(node)
        name = run.name(node)
        for first in range(0, len(points), step):
            chosen = points[first : first + step]
            own = [
                pa.repeat(pa.scalar(node, pa.int64()), len(chosen)),
                pa.repeat(name, len(chosen)),
                pa.array(chosen),
            ]
            piece = pa.table([*own, *run.items.rows(chosen).values()], names)
            pieces.append(piece)
            rows, size = rows + len(chosen), size + piece.get_total_buffer_size()
            if rows >= _MAX_ROWS or size >= _MAX_BYTES:
                yield pa.concat_tables(pieces)
                pieces, rows, size = [], 0, 0
    if pieces:
        yield pa.concat_tables(pieces)


def guard_formulas(texts: Any) -> Any:
    """Put an apostrophe before each text that a spreadsheet would run as a formula."""
    quote = pa.scalar("'", texts.type)
    guarded = pc.binary_join_element_wise(quote, texts, pa.scalar("", texts.type))
    return pc.if_else(pc.match_substring_regex(texts, _FORMULA), guarded, texts)


def _largest_row(array: Any) -> int:
    """Return the size in bytes of the largest value of an array. For nested types, the size is an estimate."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _largest_row(array.storage)
    if pa.types.is_dictionary(kind):
        return _largest_row(array.dictionary)
    if pa.types.is_run_end_encoded(kind):
        return _largest_row(array.values)
    if any(is_kind(kind) for is_kind in _VARIABLE_LENGTH):
        return pc.max(pc.binary_length(array)).as_py() or 0
    return _MAX_BYTES // 128 if pa.types.is_nested(kind) else 40


def _csv_column(array: Any) -> Any:
    if is_number(array.type) or pa.types.is_boolean(array.type) or pa.types.is_null(array.type):
        return array
    return guard_formulas(to_text(array))


def _parquet_supports(array: Any) -> bool:
    """Return whether Parquet can store the decoded values of an array without overflow of dates."""
    kind = decode(array.slice(0, 0)).type
    inside = list(_inner_types(kind))
    if any(pa.types.is_dictionary(part) for part in inside):  # Parquet does not support all dictionary types
        return False
    try:
        if any(pa.types.is_timestamp(part) and part.unit == "s" for part in inside):
            if len(inside) > 1:
                return False
            decode(array).cast(pa.timestamp("ms", kind.tz))  # Parquet stores seconds as milliseconds
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
    """A write-only file that buffers its content until :meth:`drain`."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def drain(self) -> bytes:
        """Return and remove the buffered content."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
