"""Choose the columns of a table that are features of the points, and reject columns of row numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agglo.io.files import ReadError
from agglo.io.tables import Table, format_names, quote_name
from agglo.points.frames import is_list

_MIN_ROWS = 10  # row numbers are not detected in shorter tables, where a feature may equal them by chance
_NUMBER = r"^\s*(?i:[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?)\s*$"
_BOOLEAN = r"^(?i:true|false)$"
_UNNAMED_INDEX = re.compile(r"(Unnamed: 0(\.\d+)*)?")  # name of an index that pandas writes to a CSV file
_UNNAMED_PARQUET_INDEX = re.compile(r"__index_level_\d+__")  # name of an index in a Parquet file
_ROW_NUMBER_NAMES = {"id", "index", "idx", "rowid", "rowindex", "rownumber", "rownum", "rowno"}
# Such as user_id and userId.
_ID_NAME = re.compile(r"(.*[\W_a-z\d])?I[Dd]|(.*[\W_])?(id|uuid|guid)|(?i:row|uuid|guid)|#")


def choose_features(
    table: Table, columns: Sequence[str] | None, label_column: str | None, drop: Sequence[str] = ()
) -> list[str]:
    """Return the names of the feature columns: ``columns`` if given, otherwise all columns of numbers.

    Instead of columns of numbers, a table may have a single column of lists of numbers. ``label_column`` and the
    columns ``drop`` are left out. Columns without numbers, and the index of a data frame, are left out with a
    warning.
    """
    if columns is not None:
        table.check_names(columns)
        _check_text_columns(table, [table.schema.field(column) for column in columns])
        return list(columns)
    table.check_names([*drop, *([label_column] if label_column else [])])
    excluded = {label_column, *drop}
    index = [column for column in find_index_columns(table) if column not in excluded]
    fields = [field for field in table.schema if field.name not in excluded and field.name not in index]
    numbers = [field.name for field in fields if is_numeric(feature_type(table, field.name))]
    lists = [field.name for field in fields if is_list_of_numbers(field.type)]
    if lists and (numbers or len(lists) > 1):
        raise ReadError(
            f"{table.path} has columns of lists ({format_names(lists)}) and others ({format_names(numbers)})",
            "name the columns of the points with --columns",
        )
    _check_text_columns(table, fields)
    features = numbers or lists
    if not features:
        raise ReadError(
            f"{table.path} has no columns of numbers, but {format_names(table.names)}",
            "points need numbers; agglo text clusters texts",
        )
    if index:
        _warn(f"{table.path}: left out {format_names(index)}, the index of its rows")
    others = [field.name for field in fields if field.name not in features]
    if others:
        _warn(f"{table.path}: left out {format_names(others)}, without numbers")
    return features


def find_index_columns(table: Table) -> list[str]:
    """Return the names of the columns that hold the index of a data frame.

    Such columns are recognized by the metadata and the column names that pandas writes.
    """
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    index = [column for column in stored if isinstance(column, str) and column in table.names]
    index += [name for name in table.names if _UNNAMED_PARQUET_INDEX.fullmatch(name) and name not in index]
    for name in table.names:
        if not _UNNAMED_INDEX.fullmatch(name.strip()):
            break
        index.append(name)
    return index


def feature_type(table: Table, column: str) -> Any:
    """Return the Arrow type with which a feature column is read.

    Integer columns of a CSV file are read as float64. The reason is that Arrow infers the type from the first
    block of the file, and later blocks may contain fractions.
    """
    kind = table.schema.field(column).type
    is_integer = pa.types.is_integer(kind) or pa.types.is_null(kind)
    return pa.float64() if table.is_csv and is_integer else kind


def is_numeric(kind: Any) -> bool:
    """Return whether an Arrow type is a number or a boolean."""
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    )


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))


def is_list_of_numbers(kind: Any) -> bool:
    """Return whether an Arrow type is a list of numbers."""
    return is_list(kind) and is_numeric(kind.value_type)


def check_row_numbers(path: Path, columns: Sequence[str], X: npt.NDArray[Any]) -> None:
    """Raise ``ReadError`` if a feature column contains row numbers; warn if it looks like row numbers.

    Row numbers are not features. They are often the largest numbers in a table and would dominate distances.
    """
    for column, values in zip(columns, X.T, strict=True):
        start = values[:1000]  # enough rows to see that most features are not row numbers
        is_named = re.sub(r"[\W_]", "", column.casefold()) in _ROW_NUMBER_NAMES
        has_repeats = len(np.unique(start)) < max(len(start), _MIN_ROWS)
        may_be_id = _ID_NAME.fullmatch(column) is not None
        if (has_repeats and not is_named and not may_be_id) or not _is_whole(start) or not _is_whole(values):
            continue
        if is_named:
            raise _row_number_error(path, column, "is named like an identifier of rows")
        if not has_repeats and (np.diff(np.sort(values)) == 1).all():
            span = f"{values.min():.0f} to {values.max():.0f}, each once"
            raise _row_number_error(path, column, f"numbers the rows ({span})")
        if may_be_id or (values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all():
            reason = "named like an identifier" if may_be_id else "sorted without repeats, like identifiers"
            _warn(
                f"{path}: column {column!r} has whole numbers and is {reason}; leave it out with --drop "
                f"{quote_name(column)} if it is not a feature"
            )


def _row_number_error(path: Path, column: str, reason: str) -> ReadError:
    return ReadError(
        f"{path} has a column {column!r} that {reason}, and would count as a feature",
        f"leave it out with --drop {quote_name(column)}, or name all features with --columns",
    )


def _check_text_columns(table: Table, fields: Sequence[Any]) -> None:
    """Raise ``ReadError`` if a text column of a CSV file contains numbers.

    If a column of numbers has one invalid cell, Arrow infers text for the whole column. So a text column that
    contains a number is an error.
    """
    texts = [field.name for field in fields if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
    if not table.is_csv or not texts:
        return
    block = table.read_first_block(texts)
    for column in texts:
        values = block[column]
        is_number = pc.match_substring_regex(values, _NUMBER)
        is_value = pc.or_(is_number, pc.match_substring_regex(values, _BOOLEAN))
        if pc.any(is_value).as_py():
            # Arrow also infers text for a column that mixes numbers and booleans.
            first = [pc.index(mask, pa.scalar(False)).as_py() for mask in (is_value, is_number)]
            row = next((row for row in first if row >= 0), 0)
            raise table.bad_cell_error(column, row, values[row].as_py())


def _is_whole(values: npt.NDArray[Any]) -> bool:
    return bool(values.dtype.kind in "iu" or (np.isfinite(values) & (values == np.floor(values))).all())


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)
