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

from agglo.io.files import ReadError, check_readable
from agglo.io.tables import (
    CSV_FORMATS,
    CsvOptions,
    Table,
    decode_text,
    format_names,
)

FORMATS = (*CSV_FORMATS, ".txt", ".txt.gz", ".parquet")
_RESERVED = ("text", "count")  # names of columns that agglo writes


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
        The first row of each text, from 0.
    n_rows : int
        The number of all rows, including those without a text.
    columns : dict of str to pyarrow.Array
        The values of the other columns in the first row of each text.
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
        """Return a pyarrow.Table with one row per text: the text, its count and the other columns."""
        own = {"text": pa.array(self.texts, pa.large_string()), "count": pa.array(self.count)}
        return pa.table(own | self.columns)


def read_texts(
    path: Path, column: str | None = None, encoding: str = "utf-8", delimiter: str | None = None
) -> Texts:
    r"""Read the texts in a column of a .csv, .tsv or .parquet file, or in the lines of a .txt file.

    Texts are duplicates if they differ only in case, white space or Unicode normalization. Rows without a text are
    counted and skipped.

    Parameters
    ----------
    path : Path
        The file. Names that end in .csv.gz, .tsv.gz or .txt.gz are decompressed.
    column : str, optional
        The name of the column with the texts. By default, the only column.
    encoding : str
        The encoding of a text file.
    delimiter : str, optional
        The separator of the cells of a .csv or .tsv file. By default, a comma or a tab.

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
    if form.startswith(".txt"):
        table, column = pa.table({"text": decode_text(path, options).splitlines()}), "text"
    else:
        table, column = _read_table(Table(path, form, options, has_texts=True), column)
    values = table[column].to_pylist()
    texts, count, row = _merge_duplicates(values)
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
    return Texts(texts, count, row, table.num_rows, columns)


def _read_table(table: Table, column: str | None) -> tuple[Any, str]:
    """Read all columns, and find the text column; return the table and the name of the text column."""
    if column is None:
        if len(table.names) > 1:
            raise ReadError(
                f"{table.path} has the columns {format_names(table.names)}",
                "name the column of texts with --column",
            )
        column = table.names[0]
    table.check_names([column])
    kind = table.schema.field(column).type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    if not table.is_csv and not is_text:
        raise ReadError(
            f"{table.path} has no texts in column {column!r}, but {kind}", "name another with --column"
        )
    types = dict.fromkeys(table.names, pa.large_string())
    return table.read(table.names, types, empty_is_null=True), column


def _merge_duplicates(
    values: Sequence[Any],
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct texts, their numbers of rows and their first rows; empty texts are skipped."""
    position: dict[str, int] = {}  # normalized text: its index in the result
    texts: list[str] = []
    count: list[int] = []
    first: list[int] = []
    for row, value in enumerate(values):
        text = str(value or "").strip()
        key = " ".join(unicodedata.normalize("NFC", text).casefold().split())
        if not key:
            continue
        index = position.setdefault(key, len(texts))
        if index < len(texts):
            count[index] += 1
        else:
            texts.append(text)
            count.append(1)
            first.append(row)
    return texts, np.array(count, np.int64), np.array(first, np.int64)


def _free_names(names: Sequence[str]) -> list[str]:
    """Rename columns so that names are unique and not reserved: "count" becomes "count (given)"."""
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
    """Convert a column of text to float64 if all its entries are numbers."""
    if column.null_count == len(column):
        return column
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return column
