"""Read texts from files and merge duplicates."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json

from agglo.io.columns import is_text
from agglo.io.files import ReadError, check_readable, explain_read_errors, open_bytes
from agglo.io.tables import (
    CSV_FORMATS,
    CsvOptions,
    Table,
    decode_text,
    format_names,
)

_JSON_FORMATS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
FORMATS = (*CSV_FORMATS, ".txt", ".txt.gz", *_JSON_FORMATS, ".parquet")
_TEXT_COLUMN = "text"  # the column of texts if none is named
Ints = npt.NDArray[np.int64]

_START = 2**20  # number of bytes at the start of a file in which the delimiter is searched
_RESERVED = ("text", "count")  # column names that agglo itself writes


@dataclass(frozen=True, eq=False)
class Texts:
    """The distinct texts of a file, in order of first appearance.

    Parameters
    ----------
    texts : list of str
        The distinct texts, each as first written in the file.
    count : ndarray of int64
        The number of rows with each text.
    row : ndarray of int64
        The index of the first row with each text.
    n_rows : int
        The number of all rows, including rows without a text.
    columns : dict of str to pyarrow.Array
        The values of the other columns in the first row of each text.
    inverse : ndarray of int64 of shape (n_rows,)
        The index in ``texts`` of the text of each row. For rows without a text, it is -1.
    """

    texts: list[str]
    count: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    n_rows: int
    columns: dict[str, Any]
    inverse: npt.NDArray[np.int64]

    @property
    def n_empty(self) -> int:
        """The number of rows without a text."""
        return self.n_rows - int(self.count.sum())

    def table(self) -> Any:
        """Return a pyarrow.Table with one row per text: the text, its count and the other columns."""
        own = {"text": pa.array(self.texts, pa.large_string()), "count": pa.array(self.count)}
        return pa.table(own | self.columns)


def read_texts(
    path: Path, column: str | None = None, encoding: str = "utf-8", delimiter: str | None = None
) -> Texts:
    r"""Read the texts in a column of a .csv, .tsv, .jsonl or .parquet file, or in the lines of a .txt file.

    Texts are duplicates if they differ only in case, white space or Unicode normalization. Rows without a text are
    counted, but not returned.

    Parameters
    ----------
    path : Path
        The file. If its name ends in .gz, it is decompressed.
    column : str, optional
        The name of the column with the texts. By default, the only column, or the column ``text`` if there are
        several.
    encoding : str
        The encoding of a text file.
    delimiter : str, optional
        The character that separates the cells of a .csv or .tsv file. The default is a comma for .csv and a tab
        for .tsv. If the first line does not contain this default, a semicolon, a tab or a vertical bar in the
        first line is used.

    Examples
    --------
    >>> from pathlib import Path
    >>> from agglo.text.reader import read_texts
    >>> _ = Path("queries.csv").write_text("query,when\nred frog,1\n,2\n Red  frog,3\nsky,4\n")
    >>> queries = read_texts(Path("queries.csv"), "query")
    >>> queries.texts, queries.count.tolist(), queries.n_empty
    (['red frog', 'sky'], [2, 1], 1)
    """
    form = check_readable(path, FORMATS)
    options = CsvOptions(True, encoding, delimiter)
    if form in CSV_FORMATS and delimiter is None:
        options = CsvOptions(True, encoding, _find_delimiter(path, form, options))
    if form.startswith(".txt"):
        table, column = pa.table({"text": decode_text(path, options).splitlines()}), "text"
    elif form in _JSON_FORMATS:
        table, column = _read_json(path, column)
    else:
        table, column = _read_table(Table(path, form, options, has_texts=True), column)
    values = table[column].to_pylist()
    texts, count, row, inverse = merge_duplicates(values)
    if len(texts) < 2:
        raise ReadError(
            f"{path} has {len(texts)} different texts in column {column!r}", "pass a file with at least two"
        )
    others = [name for name in table.column_names if name != column]
    first_rows = table.select(others).take(row)
    columns = {
        free: first_rows[name].combine_chunks() for name, free in zip(others, _free_names(others), strict=True)
    }
    if form != ".parquet":
        columns = {name: _to_numbers(column) for name, column in columns.items()}
    return Texts(texts, count, row, table.num_rows, columns, inverse)


def _find_delimiter(path: Path, form: str, options: CsvOptions) -> str | None:
    """Return the delimiter of the first line if it differs from the default of the format; otherwise None."""
    header = decode_text(path, options, _START).lstrip("\r\n").partition("\n")[0]
    usual = "\t" if form.startswith(".tsv") else ","
    return None if usual in header else next((sign for sign in ";\t|" if sign in header), None)


def _read_json(path: Path, column: str | None) -> tuple[Any, str]:
    """Read a file with one JSON object per line; return the table and the name of the text column."""
    with explain_read_errors(path), open_bytes(path) as file:
        table = pa.json.read_json(file)
    column = _choose_column(path, table.column_names, column)
    if column not in table.column_names:
        raise ReadError(f"{path} has no column {column!r}", f"name one of {format_names(table.column_names)}")
    return table, column


def _choose_column(path: Path, names: Sequence[str], column: str | None) -> str:
    """Return the name of the text column: ``column`` if given, otherwise the only column or ``text``."""
    if column is None and len(names) > 1 and _TEXT_COLUMN not in names:
        raise ReadError(f"{path} has the columns {format_names(names)}", "name the column of texts with --column")
    return column or (names[0] if len(names) == 1 else _TEXT_COLUMN)


def _read_table(table: Table, column: str | None) -> tuple[Any, str]:
    """Read all columns of a table; return them and the name of the text column."""
    column = _choose_column(table.path, table.names, column)
    table.check_names([column])
    kind = table.schema.field(column).type
    if not table.is_csv and not is_text(kind):
        raise ReadError(
            f"{table.path} has no texts in column {column!r}, but {kind}", "name another with --column"
        )
    types = dict.fromkeys(table.names, pa.large_string())
    return table.read(table.names, types, empty_is_null=True), column


def merge_duplicates(values: Sequence[Any]) -> tuple[list[str], Ints, Ints, Ints]:
    """Merge texts that differ only in case, white space or Unicode normalization.

    Return the distinct texts, the number of rows of each, the first row of each, and the index of the text of each
    row. For empty rows, this index is -1.
    """
    position: dict[str, int] = {}  # maps a normalized text to its index in the result
    texts: list[str] = []
    count: list[int] = []
    first: list[int] = []
    inverse = np.full(len(values), -1, np.int64)
    for row, value in enumerate(values):
        text = str(value or "").strip()
        key = " ".join(unicodedata.normalize("NFC", text).casefold().split())
        if not key:
            continue
        inverse[row] = index = position.setdefault(key, len(texts))
        if index < len(texts):
            count[index] += 1
        else:
            texts.append(text)
            count.append(1)
            first.append(row)
    return texts, np.array(count, np.int64), np.array(first, np.int64), inverse


def _free_names(names: Sequence[str]) -> list[str]:
    """Rename columns whose names agglo itself writes, so that names stay unique.

    For example, "count" becomes "count (given)".
    """
    taken = {*_RESERVED, *names}
    free = []
    for name in names:
        if name in _RESERVED:
            while name in taken:
                name += " (given)"
            taken.add(name)
        free.append(name)
    return free


def _to_numbers(column: Any) -> Any:
    """Convert a column of text to int64 or float64 if all its entries are numbers."""
    if column.null_count == len(column):
        return column
    for kind in (pa.int64(), pa.float64()):
        try:
            return column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    return column
