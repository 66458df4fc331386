"""What is known of the points of a tree: a text, a count and further columns of each."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agglo.explore.schema import BadRequestError
from agglo.explore.values import cut, decode, is_number, is_text, select_rows, single_array, to_floats, to_text

Ints = npt.NDArray[np.int64]

TEXT, COUNT = "text", "count"  # the columns that agglo itself gives a meaning to
LONGEST = 2000  # characters of a text that are sent to be shown; all of it is exported
SHORT = 80  # characters of a text that stands for something in a list: a name, a colour
MOST_KINDS = 10  # of a column of names that are told apart; the others are "other"


class Kinds(NamedTuple):
    """A column as colours show it: by what is most frequent, or by means."""

    names: list[str] | None
    """The most frequent entries, the first first; None for a column of numbers."""
    values: npt.NDArray[Any]
    """One entry per point: its number, or the position of its name in ``names``, -1 for another or none."""


class Items:
    """The texts and columns of the points, of any Arrow type; points without a text are shown by number.

    Parameters
    ----------
    n : int
        The number of points.
    table : pyarrow.Table, optional
        One row per point. The column ``text`` is what stands for a point. The column ``count`` is the number of
        its occurrences, if it has whole numbers and no gaps; otherwise it is a column like any other. Columns of
        equal names get a number, columns without a name that of their position.
    """

    def __init__(self, n: int, table: Any = None) -> None:
        if table is not None and table.num_rows != n:
            raise ValueError(f"there are {table.num_rows} items for {n} points: pass one a point, in their order")
        self.n = n
        names = [] if table is None else unique_names(table.column_names)
        self._arrays = {name: single_array(table.column(i)) for i, name in enumerate(names)}
        self.columns = [name for name in names if name != TEXT]
        self.has_text = TEXT in names
        self.count: Ints | None = _counts(self._arrays[COUNT]) if COUNT in names else None

    def texts(self, points: npt.NDArray[Any]) -> list[str]:
        """Return the texts of these points, cut where they are very long."""
        if not self.has_text:
            return [f"point {point}" for point in points.tolist()]
        return [text or "" for text in self._shown(TEXT, points)]

    def values(self, points: npt.NDArray[Any]) -> list[list[str | None]]:
        """Return the further columns of these points as text, one list per point, cut where they are very long."""
        if not self.columns:
            return [[] for _ in points]
        columns = [self._shown(name, points) for name in self.columns]
        return [list(row) for row in zip(*columns, strict=True)]

    def rows(self, points: npt.NDArray[Any]) -> dict[str, Any]:
        """Return all columns of these points, as Arrow arrays without encodings."""
        rows = pa.array(points, pa.int64())
        return {name: decode(select_rows(self._arrays[name], rows)) for name in self.names}

    @property
    def names(self) -> list[str]:
        """The names of all columns, that of the texts first."""
        return ([TEXT] if self.has_text else []) + self.columns

    def array(self, name: str) -> Any:
        """Return a whole column as one Arrow array."""
        return self._arrays[name]

    def search(self, text: str, most: int) -> tuple[Ints, int]:
        """Return at most ``most`` points whose text contains ``text``, and the number of all such points.

        Case does not matter. The most frequent come first. If ``text`` is the number of a point, that point leads.
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
        return found[:most], len(found)

    @lru_cache(maxsize=2)  # noqa: B019  # there is one for as long as the program runs
    def kinds(self, column: str) -> Kinds:
        """Return a column to colour by: numbers as they are, anything else by its most frequent texts."""
        if column not in self.columns:
            known = ", ".join(map(repr, self.columns)) or "none"
            raise BadRequestError(f"there is no column {column!r} to colour by, but {known}")
        values = self._arrays[column]
        if is_number(values.type) and column != "label":
            return Kinds(None, to_floats(values))
        encoded = to_text(values, LONGEST).dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        frequent = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(encoded.dictionary)), kind="stable")
        rank = np.full(len(encoded.dictionary) + 1, -1, np.int8)  # the last for those that have no entry
        rank[frequent[:MOST_KINDS]] = np.arange(min(len(frequent), MOST_KINDS))
        return Kinds([cut(encoded.dictionary[int(i)].as_py(), SHORT) for i in frequent[:MOST_KINDS]], rank[codes])

    def _shown(self, name: str, points: npt.NDArray[Any]) -> list[str | None]:
        found = select_rows(self._arrays[name], pa.array(points, pa.int64()))
        texts = to_text(found, LONGEST).to_pylist()
        return [None if text is None else cut(text, LONGEST) for text in texts]

    @cached_property
    def _all_texts(self) -> Any:
        return to_text(self._arrays[TEXT])


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names of columns that differ and are not empty: "a (2)" for a second "a", "column 3"."""
    found: list[str] = []
    for position, given in enumerate(names, start=1):
        base = given or f"column {position}"
        name, copy = base, 2
        while name in found or (name in names and name != given):
            name, copy = f"{base} ({copy})", copy + 1
        found.append(name)
    return found


def _counts(column: Any) -> Ints | None:
    """Return a column as counts; None unless they are whole, at least 0, and no sum of them is rounded in JSON."""
    values = decode(column)
    if not pa.types.is_integer(values.type) or values.null_count:
        return None
    floats = to_floats(values)
    if floats.min(initial=0.0) < 0 or floats.sum() > 2**53:
        return None
    return np.asarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def make_table(texts: Sequence[str] | None, columns: Mapping[str, Any] | None) -> Any:
    """Return a table of texts and columns; None if there are neither.

    Raises
    ------
    ValueError
        If a text is no text or cannot be encoded, or values of a column have no Arrow type.
    """
    made: dict[str, Any] = {} if texts is None else {TEXT: _text_array(texts)}
    for name, values in (columns or {}).items():
        if name == TEXT and texts is not None:
            raise ValueError("columns has a column 'text' beside texts: give it another name")
        _check_text("the name of a column", name)
        made[name] = _column_array(name, values)
    return pa.table(made) if made else None


def _text_array(texts: Sequence[str]) -> Any:
    listed = list(texts)
    for i, text in enumerate(listed):
        _check_text(f"texts[{i}]", text)
    return pa.array(listed, pa.large_string())


def _check_text(what: str, text: Any) -> None:
    if not isinstance(text, str):
        raise ValueError(f"{what} is {cut(repr(text), SHORT)}, which is no text: pass a str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} has the lone surrogate {text[error.start]!r} at position {error.start}, which UTF-8 cannot "
            'encode: replace it, for example by text.encode("utf-8", "replace").decode()'
        ) from None


def _column_array(name: str, values: Any) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"the column {name!r} cannot be shown: Arrow has no type for its values ({error}); pass one value per "
            "point, all of one kind: numbers, texts, dates, lists"
        ) from error


def write_items(table: Any, path: Path) -> None:
    """Write items as an Arrow file in one piece, which is mapped and not read."""
    whole = table.combine_chunks()
    # By Python's own files here and below: Arrow cannot open a name that is not UTF-8.
    with path.open("wb") as file, pa.ipc.new_file(file, whole.schema) as writer:
        writer.write_table(whole)


def map_table(path: str | os.PathLike[str]) -> Any:
    """Return the table in an Arrow file, mapped into memory.

    All of it is checked: Arrow trusts offsets and lengths in a file, and a wrong one would end the process.
    """
    with open(path, "rb") as file:  # a file that is missing or may not be read is an OSError of its own
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
            raise ValueError(
                f"{path} cannot be read: it is damaged or no Arrow file ({error}); make it again"
            ) from error
    return table


def read_table(path: Path, column: str | None) -> Any:
    """Items out of a .parquet, .csv, .tsv or .arrow file, with the column that is named as their text."""
    from agglo.io.points import read_rows
    from agglo.io.tables import ReadError

    try:
        table = map_table(path) if path.suffix.lower() == ".arrow" else read_rows(path)
    except ReadError as error:
        remedy = "save it as UTF-8 with commas and a first line of names, or as Parquet"
        raise ReadError(error.cause, remedy) from error
    names = list(table.column_names)
    if column is None:
        text = [field.name for field in table.schema if is_text(field.type)]
        column = TEXT if TEXT in names else text[0] if text else None
    elif column not in names:
        raise ValueError(f"{path} has no column {column!r}, but {', '.join(map(repr, names))}")
    if column is None or column == TEXT:
        return table
    free = [name if name != TEXT else "text (other)" for name in names]
    return table.rename_columns(
        [TEXT if name == column else other for name, other in zip(names, free, strict=True)]
    )
