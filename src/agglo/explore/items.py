"""Items: the text, the count and the other columns of each point of a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agglo.explore.values import (
    decode,
    is_text,
    select_rows,
    to_floats,
    to_single_array,
    to_text,
    truncate,
)
from agglo.io.files import ReadError, map_arrow
from agglo.io.tables import read_rows

Ints = npt.NDArray[np.int64]

TEXT, COUNT = "text", "count"  # names of the columns with a special meaning
MAX_TEXT = 2000  # maximum number of characters of a displayed text; exports are not truncated
MAX_LABEL = 80  # maximum number of characters of a name or category


class Items:
    """The text and the other columns of ``n`` points. A point without a text is shown by its index.

    ``table`` is an Arrow table with one row per point. The explorer shows a point by its ``text``. If the column
    ``count`` has integers without nulls, it is the number of occurrences of the point. Columns with equal or empty
    names are renamed; see :func:`unique_names`.
    """

    def __init__(self, n: int, table: Any = None) -> None:
        if table is not None and table.num_rows != n:
            raise ValueError(f"there are {table.num_rows} items for {n} points: pass one per point, in order")
        self.n = n
        names = [] if table is None else unique_names(table.column_names)
        self._arrays = {name: to_single_array(table.column(i)) for i, name in enumerate(names)}
        self.columns = [name for name in names if name != TEXT]
        self.has_text = TEXT in names
        self.count: Ints | None = _to_counts(self._arrays[COUNT]) if COUNT in names else None

    def texts(self, points: npt.NDArray[Any]) -> list[str]:
        """Return the texts of the given points, truncated to ``MAX_TEXT`` characters."""
        if not self.has_text:
            return [f"point {point}" for point in points.tolist()]
        return [text or "" for text in self._display_texts(TEXT, points)]

    def values(self, points: npt.NDArray[Any]) -> list[list[str | None]]:
        """Return one list per point: the point's values in the columns other than the text, as truncated texts."""
        if not self.columns:
            return [[] for _ in points]
        columns = [self._display_texts(name, points) for name in self.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def rows(self, points: npt.NDArray[Any]) -> dict[str, Any]:
        """Return all columns of the given points, as Arrow arrays without dictionary or run-end encoding."""
        rows = pa.array(points, pa.int64())
        return {name: decode(select_rows(self._arrays[name], rows)) for name in self.names}

    @property
    def names(self) -> list[str]:
        """The names of all columns, starting with the text column."""
        return ([TEXT] if self.has_text else []) + self.columns

    def array(self, name: str) -> Any:
        """Return a whole column as one Arrow array."""
        return self._arrays[name]

    def search(self, text: str, limit: int) -> tuple[Ints, int]:
        """Find the points whose text contains ``text``; return up to ``limit`` points, and the number found.

        The search ignores case. Points are sorted by count, most frequent first. If ``text`` is the index of a
        point, that point comes first.
        """
        wanted = text.strip()
        found = np.empty(0, np.int64)
        if self.has_text and wanted:
            mask = pc.match_substring(self._all_texts, wanted, ignore_case=True)
            found = np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False))
            if self.count is not None:
                found = found[np.argsort(-self.count[found], kind="stable")]
        if wanted.isascii() and wanted.isdigit() and len(wanted) < 12 and int(wanted) < self.n:
            point = int(wanted)
            found = np.concatenate([[point], found[found != point]])
        return found[:limit], len(found)

    def _display_texts(self, name: str, points: npt.NDArray[Any]) -> list[str | None]:
        found = select_rows(self._arrays[name], pa.array(points, pa.int64()))
        texts = to_text(found, MAX_TEXT).to_pylist()
        return [None if text is None else truncate(text, MAX_TEXT) for text in texts]

    @cached_property
    def _all_texts(self) -> Any:
        return to_text(self._arrays[TEXT])


def unique_names(names: Sequence[str]) -> list[str]:
    """Rename equal and empty column names: a second "a" becomes "a (2)", an empty third name "column 3"."""
    found: list[str] = []
    for position, given in enumerate(names, start=1):
        base = given or f"column {position}"
        name, copy = base, 2
        while name in found or (name in names and name != given):
            name, copy = f"{base} ({copy})", copy + 1
        found.append(name)
    return found


def _to_counts(column: Any) -> Ints | None:
    """Return a column as integer counts, or None if a value is null, negative or not an integer.

    Also return None if the sum of the counts is too large to be exact in JSON.
    """
    values = decode(column)
    if not pa.types.is_integer(values.type) or values.null_count:
        return None
    floats = to_floats(values)
    if floats.min(initial=0.0) < 0 or floats.sum() > 2**53:
        return None
    return np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def make_table(texts: Sequence[str] | None, columns: Mapping[str, Any] | None) -> Any:
    """Build an Arrow table from texts and columns; return None if both are None."""
    arrays: dict[str, Any] = {}
    if texts is not None:
        for i, text in enumerate(texts):
            _check_text(f"texts[{i}]", text)
        arrays[TEXT] = pa.array(list(texts), pa.large_string())
    for name, values in (columns or {}).items():
        if name == TEXT and texts is not None:
            raise ValueError("columns has a column 'text', but texts is given, too: rename that column")
        _check_text("the name of a column", name)
        try:
            arrays[name] = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"the column {name!r} cannot be shown: Arrow has no type for its values ({error}); pass one value "
                "per point, all of the same type: numbers, texts, dates or lists"
            ) from error
    return pa.table(arrays) if arrays else None


def _check_text(what: str, text: Any) -> None:
    if not isinstance(text, str):
        raise ValueError(f"{what} is {truncate(repr(text), MAX_LABEL)}, which is not a str: pass a str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} has the lone surrogate {text[error.start]!r} at position {error.start}, which UTF-8 cannot "
            'encode: replace it, for example by text.encode("utf-8", "replace").decode()'
        ) from None


def read_table(path: Path, column: str | None) -> Any:
    """Read items from a .parquet, .csv, .tsv or .arrow file; ``column`` is the name of the text column."""
    try:
        table = map_arrow(path) if path.suffix.lower() == ".arrow" else read_rows(path)
    except ReadError as error:
        remedy = "save it as UTF-8 with commas and a first line of names, or as Parquet"
        raise ReadError(error.cause, remedy) from error
    names = list(table.column_names)
    if column is None:
        text = [field.name for field in table.schema if is_text(field.type)]
        column = TEXT if TEXT in names else text[0] if text else None
    elif column not in names:
        raise ValueError(f"{path} has no column {column!r}: pass one of {', '.join(map(repr, names))}")
    if column is None or column == TEXT:
        return table
    renamed = {column: TEXT, TEXT: "text (other)"}
    return table.rename_columns([renamed.get(name, name) for name in names])
