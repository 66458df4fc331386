"""Convert Arrow arrays of any type to the texts and numbers that the explorer shows."""

from __future__ import annotations

import json
import uuid
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Floats = npt.NDArray[np.float64]


def to_single_array(column: Any) -> Any:
    """Convert a chunked column to a single array, so that selecting rows copies only these rows."""
    kind = column.type
    if pa.types.is_string_view(kind) or (column.num_chunks > 1 and pa.types.is_string(kind)):
        column = column.cast(pa.large_string())
    elif pa.types.is_binary_view(kind) or (column.num_chunks > 1 and pa.types.is_binary(kind)):
        column = column.cast(pa.large_binary())
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def select_rows(array: Any, rows: Any) -> Any:
    """Return the entries of ``array`` at the positions ``rows`` (Arrow int64); a null position gives null."""
    try:
        return array.take(rows)
    except pa.ArrowNotImplementedError:  # run-end encoded arrays, views, and nested types that contain them
        if not len(rows):
            return array.slice(0, 0)
        missing = pa.nulls(1, array.type) if rows.null_count else None
        return pa.concat_arrays([missing if row is None else array.slice(row, 1) for row in rows.to_pylist()])


def decode(array: Any) -> Any:
    """Decode dictionary-encoded, run-end encoded and extension arrays to plain arrays."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind == pa.uuid():
            texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in array.storage.to_pylist()]
            return pa.array(texts, pa.large_string())
        return array.storage.cast(pa.bool_()) if kind == pa.bool8() else decode(array.storage)
    if pa.types.is_dictionary(kind):
        if len(array.dictionary) > len(array):  # rows were selected: convert only the entries that they use
            return decode(select_rows(array.dictionary, array.indices.cast(pa.int64())))
        return select_rows(_widen(decode(array.dictionary)), array.indices.cast(pa.int64()))
    if pa.types.is_run_end_encoded(kind):
        ends = array.run_ends.to_numpy()
        run = np.searchsorted(ends, np.arange(array.offset, array.offset + len(array)), side="right")
        return select_rows(_widen(decode(array.values)), pa.array(run, pa.int64()))
    return array


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is numeric (integer, float or decimal), plain or dictionary-encoded."""
    return _is_any(_plain_type(kind), "integer", "floating", "decimal")


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text, plain or dictionary-encoded."""
    return _is_any(_plain_type(kind), "string", "large_string", "string_view")


def _plain_type(kind: Any) -> Any:
    """Return the type of the decoded values of an encoded or extension type; return other types unchanged."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.bool_() if kind == pa.bool8() else _plain_type(kind.storage_type)
    return _plain_type(kind.value_type) if _is_any(kind, "dictionary", "run_end_encoded") else kind


def _is_any(kind: Any, *names: str) -> bool:
    """Return whether an Arrow type is one of the types ``names``, as ``pyarrow.types.is_...`` calls them."""
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def to_floats(array: Any) -> Floats:
    """Convert a numeric array to float64, rounding large numbers; nulls become NaN."""
    floats = decode(array).cast(pa.float64(), safe=False)
    return np.asarray(floats.to_numpy(zero_copy_only=False), np.float64)


def to_text(array: Any, max_length: int | None = None) -> Any:
    """Convert an array of any type to an Arrow array of texts; nulls stay null.

    Integers and decimals keep all digits. A float becomes the shortest text that identifies it. Bytes become text
    if they are UTF-8, otherwise hexadecimal digits, ``0x…``. Lists, structs and maps become JSON.

    The caller shows at most ``max_length`` characters of a text. So at most this number of entries of a list are
    converted.
    """
    array = decode(array)
    kind = array.type
    types = pa.types
    if _is_any(kind, "string", "large_string"):
        return array
    if types.is_timestamp(kind) and kind.tz is not None:
        try:
            return array.cast(pa.large_string())
        except pa.ArrowInvalid:  # this machine does not know the time zone
            return array.view(pa.timestamp(kind.unit, "UTC")).cast(pa.large_string())
    if types.is_duration(kind):
        texts = array.cast(pa.string())
        return pc.binary_join_element_wise(texts, kind.unit, " ")
    if _is_any(kind, "binary", "large_binary", "binary_view", "fixed_size_binary"):
        texts = [None if value is None else _decode_bytes(value) for value in array.to_pylist()]
    elif types.is_interval(kind):
        texts = [None if value is None else _format_interval(value) for value in array.to_pylist()]
    elif types.is_union(kind):
        texts = [to_text(value, max_length)[0].as_py() for value in _union_values(array)]
    elif types.is_nested(kind):
        pairs = zip(_to_json(array, max_length), array.is_valid().to_pylist(), strict=True)
        texts = [text if known else None for text, known in pairs]
    else:
        return array.cast(pa.large_string())
    return pa.array(texts, pa.large_string())


def truncate(text: str, max_length: int) -> str:
    """Shorten a text to at most ``max_length`` characters; a shortened text ends with an ellipsis."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def _to_json(array: Any, max_length: int | None) -> list[str]:
    """Convert each value of an array to JSON text."""
    array = decode(array)
    kind = array.type
    types = pa.types
    if types.is_struct(kind):
        names = [json.dumps(kind.field(i).name, ensure_ascii=False) for i in range(kind.num_fields)]
        # Do not call flatten(): it crashes the process if the struct contains a union (pyarrow 26).
        columns = [_to_json(array.field(i), max_length) for i in range(kind.num_fields)]
        return [
            "{" + ", ".join(f"{name}: {column[row]}" for name, column in zip(names, columns, strict=True)) + "}"
            if known
            else "null"
            for row, known in enumerate(array.is_valid().to_pylist())
        ]
    if types.is_union(kind):
        return [_to_json(value, max_length)[0] for value in _union_values(array)]
    if types.is_nested(kind):  # lists and maps
        return [_list_to_json(scalar, max_length) for scalar in array]
    texts = to_text(array, max_length).to_pylist()
    if is_number(kind):  # JSON has no NaN and no infinity
        return ["null" if text is None else f'"{text}"' if text[-1] in "nf" else text for text in texts]
    if types.is_boolean(kind):
        return ["null" if text is None else text for text in texts]
    return ["null" if text is None else json.dumps(text, ensure_ascii=False) for text in texts]


def _list_to_json(scalar: Any, max_length: int | None) -> str:
    if not scalar.is_valid:
        return "null"
    values = scalar.values
    if max_length is not None and len(values) > max_length:  # each entry gives at least one character
        values = values.slice(0, max_length)
    if not pa.types.is_map(scalar.type):
        return "[" + ", ".join(_to_json(values, max_length)) + "]"
    keys, entries = values.field(0), values.field(1)
    names = [json.dumps(text, ensure_ascii=False) for text in to_text(keys, max_length).to_pylist()]
    pairs = zip(names, _to_json(entries, max_length), strict=True)
    return "{" + ", ".join(f"{name}: {entry}" for name, entry in pairs) + "}"


def _union_values(array: Any) -> list[Any]:
    """Return the value of each row of a union array, as an array of length 1 of the value's type."""
    kind = array.type
    position = {code: i for i, code in enumerate(kind.type_codes)}
    fields = [array.field(i) for i in range(kind.num_fields)]
    # Read the buffers, because type_codes and offsets ignore the start of a slice (pyarrow 26).
    buffers = array.buffers()
    codes = np.frombuffer(buffers[1], np.int8)[array.offset :][: len(array)].tolist() if len(array) else []
    rows: Any = range(len(array))
    if kind.mode == "dense" and len(array):
        rows = np.frombuffer(buffers[2], np.int32)[array.offset :][: len(array)].tolist()
    return [fields[position[code]].slice(row, 1) for code, row in zip(codes, rows, strict=True)]


def _widen(array: Any) -> Any:
    """Convert a text array to 64-bit offsets, because decoded texts may exceed 2 GB."""
    wide = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(array.type)
    return array if wide is None else array.cast(wide)


def _decode_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "0x" + value.hex()


def _format_interval(value: Any) -> str:
    return f"{value.months} months {value.days} days {value.nanoseconds} ns"
