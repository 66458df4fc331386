"""Texts in files, as the command line reads them: checked, with those that are the same folded into one."""

from __future__ import annotations

import csv
import io
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agglo.io.tables import FOREIGN

FORMATS = (".csv", ".tsv", ".txt", ".parquet")
_OWN = ("text", "count")  # columns of items that have a meaning of their own


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts of a file, each once, in order of first appearance.

    Parameters
    ----------
    texts : list of str
        The texts as they were first written.
    count : ndarray of int64
        How many rows have each of them.
    row : ndarray of int64
        The first of these rows, from 0.
    n_rows : int
        The number of rows, those without a text among them.
    columns : dict of str to pyarrow.Array
        The other columns, as those first rows have them.
    """

    texts: list[str]
    count: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    n_rows: int
    columns: dict[str, Any]

    @property
    def n_empty(self) -> int:
        """The number of rows without a text."""
        return self.n_rows - int(self.count.sum())

    def table(self) -> Any:
        """The texts and what is known of them, as a run keeps its items."""
        own = {"text": pa.array(self.texts, pa.large_string()), "count": pa.array(self.count)}
        return pa.table(own | self.columns)


def read_texts(
    path: Path, column: str | None = None, encoding: str = "utf-8", delimiter: str | None = None
) -> Texts:
    r"""The texts of a column of a .csv, .tsv or .parquet file, or the lines of a .txt file.

    Texts that differ only in case, in spaces or in how letters with marks are encoded are the same. Rows without a
    text are counted and left out.

    Parameters
    ----------
    path : Path
        The file.
    column : str, optional
        The column of texts; may be left out if there is but one.
    encoding : str
        How the file encodes text.
    delimiter : str, optional
        What separates the cells of a .csv or .tsv file, if not commas or tabs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from agglo.text.reader import read_texts
    >>> _ = Path("queries.csv").write_text("query,when\nred frog,1\n,2\n Red  frog,3\nsky,4\n")
    >>> found = read_texts(Path("queries.csv"), "query")
    >>> found.texts, found.count.tolist(), found.n_empty
    (['red frog', 'sky'], [2, 1], 1)
    """
    form = path.suffix.lower()
    if form not in FORMATS:
        raise ValueError(
            f"{path} cannot be read: files whose names end in {form!r} are not supported; pass one of "
            f"{', '.join(FORMATS)}"
        )
    if path.is_dir():
        raise IsADirectoryError(f"{path} cannot be read: it is a folder; pass the name of a file")
    if not path.is_file():
        raise FileNotFoundError(f"{path} cannot be read: there is no such file; check its name")
    if form == ".parquet":
        names, rows = _parquet(path, column)
    else:
        text = _decoded(path, encoding)
        if form == ".txt":
            names, rows = ["text"], ([line] for line in text.splitlines())
        else:
            names, rows = _csv(path, text, delimiter or ("\t" if form == ".tsv" else ","))
            mark = next((mark for mark in ";\t|" if mark in names[0]), None)
            if len(names) == 1 and mark and column is None and delimiter is None:
                shown = "tab" if mark == "\t" else mark
                raise ValueError(
                    f"{path} has one column, {names[0]!r}, that looks separated by {shown!r}: pass "
                    f"--delimiter {shown!r}, or name the column with --column"
                )
    return _folded(path, rows, names, _place(path, names, column))


def _decoded(path: Path, encoding: str) -> str:
    content = path.read_bytes()
    for mark, (what, remedy) in FOREIGN.items():
        if content.startswith(mark):
            raise ValueError(f"{path} {what}: {remedy}")
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError(f"{path} is not encoded as UTF-8, but as UTF-16: pass --encoding utf-16")
        encoding = "utf-8-sig"  # some programs begin files with a mark
    try:
        return content.decode(encoding)
    except LookupError:
        raise ValueError(f"encoding {encoding!r} is unknown: pass one such as utf-8, latin-1 or utf-16") from None
    except UnicodeError as error:
        at = getattr(error, "start", 0)
        line = content.count(b"\n", 0, at) + 1
        raise ValueError(
            f"{path} is not encoded as {encoding.removesuffix('-sig')} (byte {content[at]:#04x} in line {line}): "
            "pass another with --encoding, such as latin-1 or utf-16"
        ) from None


def _csv(path: Path, text: str, delimiter: str) -> tuple[list[str], Iterator[list[str]]]:
    rows = _rows(path, text, delimiter)
    names = next(rows, None)
    if names is None:
        raise ValueError(f"{path} is empty: there is not even a line of names of columns")
    return names, rows


def _rows(path: Path, text: str, delimiter: str) -> Iterator[list[str]]:
    """The rows of a CSV file, all as long as the first; blank lines are none."""
    before = csv.field_size_limit(sys.maxsize)  # a cell may be as long as it likes
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        width, begin = 0, 1
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise ValueError(
                    f"{path} cannot be read: the row that begins in line {begin} is damaged ({error}); put quotes "
                    "around texts and double those inside"
                ) from None
            if row is None:
                return
            if row:
                width = width or len(row)
                if len(row) != width:
                    raise ValueError(
                        f"{path} cannot be read: the row in line {begin} has {len(row)} entries, but the first "
                        f"line {width}; quote texts with a {'tab' if delimiter == chr(9) else 'comma'} in them"
                    )
                yield row
            begin = reader.line_num + 1
    finally:
        csv.field_size_limit(before)


def _parquet(path: Path, column: str | None) -> tuple[list[str], Iterator[list[Any]]]:
    from agglo.io.points import read_rows

    table = read_rows(path)
    place = _place(path, list(table.column_names), column)
    kind = table.schema.field(place).type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)):
        raise ValueError(f"{path} has no texts in column {table.column_names[place]!r}, but {kind}: name another")
    columns = [values.to_pylist() for values in table.columns]
    return list(table.column_names), (list(row) for row in zip(*columns, strict=True))


def _place(path: Path, names: list[str], column: str | None) -> int:
    listed = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
    if column is None:
        if len(names) > 1:
            raise ValueError(f"{path} has the columns {listed}: name the one of texts with --column")
        return 0
    if names.count(column) != 1:
        how = "no column" if column not in names else f"{names.count(column)} columns"
        raise ValueError(f"{path} has {how} {column!r}, but {listed}: name one with --column")
    return names.index(column)


def _folded(path: Path, rows: Iterator[list[Any]], names: list[str], place: int) -> Texts:
    known: dict[str, int] = {}
    texts: list[str] = []
    count: list[int] = []
    first: list[int] = []
    kept: list[list[Any]] = []
    n_rows = 0
    for number, row in enumerate(rows):
        n_rows += 1
        text = str(row[place] or "").strip()
        key = " ".join(unicodedata.normalize("NFC", text).casefold().split())
        if not key:
            continue
        index = known.setdefault(key, len(texts))
        if index < len(texts):
            count[index] += 1
            continue
        texts.append(text)
        count.append(1)
        first.append(number)
        kept.append(row)
    if len(texts) < 2:
        what = "no text" if not texts else "one text"
        raise ValueError(f"{path} has {what} in column {names[place]!r}: there is nothing to cluster")
    columns = {
        _free(name, names): _column([row[j] for row in kept])
        for j, name in enumerate(names)
        if j != place and names.index(name) == j
    }
    return Texts(texts, np.array(count, np.int64), np.array(first, np.int64), n_rows, columns)


def _free(name: str, names: list[str]) -> str:
    """The name of a column, or another where that has a meaning of its own."""
    while name in _OWN:
        name += " (given)"
    return name


def _column(values: list[Any]) -> Any:
    """Entries as numbers if all that are there are, else as text."""
    if not all(value is None or isinstance(value, str) for value in values):
        return pa.array(values)
    filled = [value if value else None for value in values]
    column = pa.array(filled, pa.large_string())
    if column.null_count == len(column):
        return column
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return column
