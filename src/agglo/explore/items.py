"""What is known of the points of a tree: a text, a count and further columns of each."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]

TEXT, COUNT = "text", "count"  # the columns that agglo itself gives a meaning to
LONGEST = 2000  # characters of a text that are sent to be shown; all of it is exported
MOST_KINDS = 10  # of a column of names that are told apart; the others are "other"


class Kinds(NamedTuple):
    """A column as colours show it: by what is most frequent, or by means."""

    names: list[str] | None
    """The most frequent entries, the first first; None for a column of numbers."""
    values: npt.NDArray[Any]
    """An entry a point: its number, or which of ``names`` it has, -1 for another."""


class Items:
    """The points, their texts and columns; where there are none, numbers.

    Parameters
    ----------
    n : int
        How many points there are.
    table : pyarrow.Table, optional
        A row a point. The column ``text`` is what stands for a point, ``count`` how often it occurs.
    """

    def __init__(self, n: int, table: Any = None) -> None:
        if table is not None and table.num_rows != n:
            raise ValueError(f"there are {table.num_rows} items for {n} points: pass one a point, in their order")
        self.n = n
        # In one piece, or picking single rows would copy everything.
        self.table: Any = table if table is None else table.combine_chunks()
        names = [] if table is None else list(table.column_names)
        self.columns = [name for name in names if name != TEXT]
        self.has_text = TEXT in names
        self.count: Ints | None = None
        if COUNT in names:
            self.count = table[COUNT].to_numpy()

    def texts(self, points: npt.NDArray[Any], longest: int | None = LONGEST) -> list[str]:
        """The texts of these points, cut where they are very long."""
        if not self.has_text:
            return [f"point {point}" for point in points.tolist()]
        found = self._column(TEXT).take(pa.array(points, pa.int64())).to_pylist()
        whole = ["" if text is None else str(text) for text in found]
        if longest is None:
            return whole
        return [text if len(text) <= longest else text[: longest - 1] + "…" for text in whole]

    def values(self, points: npt.NDArray[Any]) -> list[list[str]]:
        """The further columns of these points as text, a list a point."""
        if not self.columns:
            return [[] for _ in points]
        rows = pa.array(points, pa.int64())
        columns = [self._column(name).take(rows).to_pylist() for name in self.columns]
        return [
            ["" if value is None else str(value)[:LONGEST] for value in row] for row in zip(*columns, strict=True)
        ]

    def rows(self, points: npt.NDArray[Any]) -> dict[str, Any]:
        """All columns of these points."""
        rows = pa.array(points, pa.int64())
        names = ([TEXT] if self.has_text else []) + self.columns
        return {name: self._column(name).take(rows) for name in names}

    def search(self, text: str, most: int) -> tuple[Ints, int]:
        """The points that have ``text`` in theirs, whatever the case, or are so numbered; and how many there are.

        Of many the most frequent come first.
        """
        wanted = text.strip()
        found = np.empty(0, np.int64)
        if self.has_text and wanted:
            mask = pc.match_substring(self._column(TEXT), wanted, ignore_case=True)
            found = np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False))
            if self.count is not None:
                found = found[np.argsort(-self.count[found], kind="stable")]
        if wanted.isascii() and wanted.isdigit() and len(wanted) < 12 and int(wanted) < self.n:
            point = int(wanted)
            found = np.concatenate([[point], found[found != point]])
        return found[:most], len(found)

    @lru_cache(maxsize=2)  # noqa: B019  # there is one for as long as the program runs
    def kinds(self, column: str) -> Kinds:
        """A column to colour by."""
        if column not in self.columns:
            known = ", ".join(map(repr, self.columns)) or "none"
            raise ValueError(f"there is no column {column!r} to colour by, but {known}")
        values = self._column(column)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)) and column != "label":
            return Kinds(None, np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False)))
        encoded = values.cast(pa.string()).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        frequent = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(encoded.dictionary)), kind="stable")
        rank = np.full(len(encoded.dictionary) + 1, -1, np.int8)  # the last for those that have no entry
        rank[frequent[:MOST_KINDS]] = np.arange(min(len(frequent), MOST_KINDS))
        return Kinds([str(encoded.dictionary[int(i)]) for i in frequent[:MOST_KINDS]], rank[codes])

    def _column(self, name: str) -> Any:
        column = self.table[name]
        return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def make_table(texts: Sequence[str] | None, columns: Mapping[str, Any] | None) -> Any:
    """A table of texts and columns; None if there are neither."""
    made: dict[str, Any] = {} if texts is None else {TEXT: pa.array(list(texts), pa.large_string())}
    for name, values in (columns or {}).items():
        if name == TEXT and texts is not None:
            raise ValueError("columns has a column 'text' beside texts: give it another name")
        made[name] = pa.array(values)
    return pa.table(made) if made else None


def write_items(table: Any, path: Path) -> None:
    """Write items as an Arrow file in one piece, which is mapped and not read."""
    whole = table.combine_chunks()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
        writer.write_table(whole)


def map_table(path: str | os.PathLike[str]) -> Any:
    """The table in an Arrow file, mapped into memory."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{path} cannot be read: it is damaged or no Arrow file ({error}); make it again"
        ) from error


def read_table(path: Path, column: str | None) -> Any:
    """Items out of a .parquet, .csv, .tsv or .arrow file, with the column that is named as their text."""
    from agglo.files import read_rows

    table = map_table(path) if path.suffix.lower() == ".arrow" else read_rows(path)
    names = list(table.column_names)
    if column is None:
        text = [field.name for field in table.schema if pa.types.is_string(field.type) | _is_large(field.type)]
        column = TEXT if TEXT in names else text[0] if text else None
    elif column not in names:
        raise ValueError(f"{path} has no column {column!r}, but {', '.join(map(repr, names))}")
    if column is None or column == TEXT:
        return table
    free = [name if name != TEXT else "text (other)" for name in names]
    return table.rename_columns(
        [TEXT if name == column else other for name, other in zip(names, free, strict=True)]
    )


def _is_large(kind: Any) -> bool:
    return bool(pa.types.is_large_string(kind))
