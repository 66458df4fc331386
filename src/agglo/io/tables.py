"""Read tables from Parquet and CSV files, with errors that name the file, the cause and a remedy."""

from __future__ import annotations

import codecs
import csv
import io
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from agglo.io.files import ReadError, check_readable, explain_read_errors, open_bytes

CSV_FORMATS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TABLE_FORMATS = (".parquet", *CSV_FORMATS)

_BLOCK = 2**24  # number of bytes per block of a CSV file; the column types are inferred from the first block
_TEXT_BLOCK = 2**30  # number of bytes per block of texts; Arrow cannot read a row that is longer than a block
_START = 2**20  # number of bytes of a CSV file whose encoding is checked before the file is parsed

# Arrow's error messages. They contain row numbers only if Arrow reads with one thread.
_BAD_CELL = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to \w+: (.*)", re.DOTALL)
_RAGGED_ROW = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")
_FOREIGN_FORMATS = {  # the first bytes of a file, mapped to its format and a remedy
    b"\x1f\x8b": ("is compressed by gzip", "rename it so that its name ends in .gz"),
    b"PK\x03\x04": ("is a zip archive or an Excel workbook", "extract it, or save its sheet as CSV"),
    b"PAR1": ("is a Parquet file", "rename it so that its name ends in .parquet"),
    b"\x93NUMPY": ("is a NumPy file", "rename it so that its name ends in .npy"),
}
_BYTE_ORDER_MARKS = {  # UTF-32 comes first, because its mark starts with the mark of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class CsvOptions:
    """The format of .csv and .tsv files: header, encoding and delimiter."""

    header: bool | None = None
    """Whether the first line contains the column names.

    If None, the first line contains the column names, and a first line of numbers is an error.
    """
    encoding: str = "utf-8"
    delimiter: str | None = None
    """The character that separates cells. If None, it is a tab in a .tsv file, and a comma in a .csv file."""

    def __post_init__(self) -> None:
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(
                f"--encoding {self.encoding} is unknown: pass one such as utf-8, latin-1 or utf-16"
            ) from None
        is_character = self.delimiter is None or (len(self.delimiter) == 1 and self.delimiter.isascii())
        if not is_character or (self.delimiter or ",") in '"\r\n\0':
            raise ValueError(
                f"--delimiter {self.delimiter!r} cannot separate cells: pass one character such as ';'"
            )

    @property
    def is_utf8(self) -> bool:
        """Whether the encoding is UTF-8, which Arrow can read without conversion."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    @property
    def python_encoding(self) -> str:
        """The name of the Python codec. For UTF-8, it is a codec that removes the byte order mark."""
        return "utf-8-sig" if self.is_utf8 else self.encoding


def decode_text(path: Path, options: CsvOptions, size: int = -1) -> str:
    """Decode the first ``size`` bytes of a text file; by default, decode the whole file.

    Raise ``ReadError`` if the bytes have another format or encoding.
    """
    with explain_read_errors(path), open_bytes(path) as file:
        start = file.read(size)
    if not start:
        raise ReadError(f"{path} cannot be read: the file is empty", "pass a file with rows")
    for mark, (what, remedy) in _FOREIGN_FORMATS.items():
        if start.startswith(mark):
            raise ReadError(f"{path} cannot be read as text: it {what}", remedy)
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS.items() if start.startswith(mark)), None)
    if encoding and options.is_utf8:
        raise ReadError(
            f"{path} is not encoded as UTF-8: its first bytes are the byte order mark of {encoding.upper()}",
            f"pass --encoding {encoding}, or save it as UTF-8",
        )
    try:
        return codecs.getincrementaldecoder(options.python_encoding)().decode(start, final=size < 0)
    except UnicodeError as error:
        content, at = getattr(error, "object", start), getattr(error, "start", 0)
        line = content.count(b"\n", 0, at) + 1
        raise ReadError(
            f"{path} is not encoded as {options.encoding} (byte {content[at]:#04x} in line {line})",
            "pass its encoding, such as --encoding latin-1 or --encoding utf-16, or save it as UTF-8",
        ) from None


class Table:
    """A Parquet or CSV file whose columns are read on demand.

    ``form`` is the format that :func:`check_readable` returns. If ``has_texts`` is True, cells may be very long
    and contain NUL characters. The attribute ``schema`` lists the columns and their types. The types of a CSV file
    are inferred from its first block. The attribute ``names`` lists the names of the columns, which are unique.
    """

    def __init__(
        self, path: Path, form: str, options: CsvOptions | None = None, *, has_texts: bool = False
    ) -> None:
        self.path = path
        self.options = options or CsvOptions()
        self.is_csv = form in CSV_FORMATS
        self.delimiter = self.options.delimiter or ("\t" if form.startswith(".tsv") else ",")
        self.has_texts = has_texts
        if self.is_csv:
            self._check_start()
            self._check_quotes()
            with self._explain_csv_errors(), self._open_csv() as reader:
                self.schema = reader.schema
        else:
            with explain_read_errors(path), path.open("rb") as file:
                self.schema = pq.read_schema(file)
        self.names: list[str] = list(self.schema.names)
        repeated = next((name for name in self.names if self.names.count(name) > 1), None)
        if repeated is not None:
            raise ReadError(f"{path} has two columns {repeated!r}", "rename one of them")
        if self.is_csv and self.options.header is None and all(map(_is_number, self.names)):
            raise ReadError(
                f"{path} starts with numbers ({', '.join(self.names[:3])}), data or names of columns",
                "pass --no-header if they are data, --header if they are names",
            )

    def read(
        self, columns: Sequence[str], types: dict[str, Any] | None = None, *, empty_is_null: bool = False
    ) -> Any:
        """Read columns as a pyarrow.Table; ``types`` are the Arrow types of some columns of a CSV file.

        If ``empty_is_null`` is True, only the empty cells of a CSV file are null. By default, cells such as "NA"
        are also null in columns of numbers, and no cell is null in columns of text.
        """
        self.check_names(columns)
        if self.is_csv:
            nulls = {"null_values": [""], "strings_can_be_null": True} if empty_is_null else {}
            table = self._read_csv(columns, types or {}, nulls)
        else:
            with explain_read_errors(self.path), self.path.open("rb") as file:
                table = pq.read_table(file, columns=list(columns), page_checksum_verification=True)
        if not table.num_rows:
            raise ReadError(f"{self.path} has no rows", "pass a file with at least one")
        return table

    def read_row_groups(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Yield, for each row group of a Parquet file, the row count of the file and the group as a table."""
        self.check_names(columns)
        with self.path.open("rb") as file:
            with explain_read_errors(self.path):
                parquet = pq.ParquetFile(file, page_checksum_verification=True)
            for group in range(parquet.num_row_groups):
                with explain_read_errors(self.path):
                    table = parquet.read_row_group(group, list(columns))
                yield parquet.metadata.num_rows, table

    def read_first_block(self, columns: Sequence[str]) -> Any:
        """Read ``columns`` in the first block of a CSV file as text; empty cells and "NA" are null."""
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()), include_columns=columns, strings_can_be_null=True
        )
        with self._explain_csv_errors(), self._open_csv(convert) as reader:
            return reader.read_next_batch()

    def check_names(self, columns: Sequence[str]) -> None:
        """Raise ``ReadError`` if the table lacks one of the columns."""
        for column in columns:
            if column not in self.names:
                raise ReadError(f"{self.path} has no column {column!r}", f"name one of {format_names(self.names)}")

    def bad_cell_error(self, column: str, row: int, value: str) -> ReadError:
        """Return an error for a cell with text in a column of numbers."""
        return ReadError(
            f"{self.path} has {_shorten(value)!r} in column {column!r}, row {row} (from 0), among numbers",
            f"correct that cell or drop that row, or leave out the column with --drop {quote_name(column)}",
        )

    def _check_start(self) -> None:
        """Raise ``ReadError`` if the first bytes of a CSV file show another format, encoding or delimiter."""
        text = decode_text(self.path, self.options, _START)
        header = text.lstrip("\r\n").partition("\n")[0]
        other = next((mark for mark in ";\t|" if mark in header), None)
        if other and self.options.delimiter is None and self.delimiter not in header:
            shown = "tab" if other == "\t" else other
            raise ReadError(
                f"{self.path} has one column, {_shorten(header.strip())!r}, that looks separated by {shown!r}",
                f"pass --delimiter {shown!r}, or --delimiter ',' if it is one column",
            )
        if "\0" in text and not self.has_texts:
            raise ReadError(
                f"{self.path} cannot be read as {self.options.encoding} text: it has NUL bytes",
                "pass --encoding utf-16 if that is its encoding; otherwise check that it is a CSV file",
            )

    def _check_quotes(self) -> None:
        """Raise ``ReadError`` if a quote is misplaced, because Arrow would read wrong cells without an error."""
        with explain_read_errors(self.path), open_bytes(self.path) as file:
            if not any(b'"' in block for block in iter(lambda: file.read(_BLOCK), b"")):
                return
        limit = csv.field_size_limit(sys.maxsize)
        row = 0 if self.options.header is False else -1
        try:
            with (
                explain_read_errors(self.path),
                open_bytes(self.path) as file,
                io.TextIOWrapper(file, self.options.python_encoding, errors="replace", newline="") as text,
            ):
                for cells in csv.reader(text, delimiter=self.delimiter, strict=True):
                    row += bool(cells)  # blank lines are not rows
        except ValueError as error:
            if not isinstance(error.__cause__, csv.Error):
                raise
            problem = "not closed" if "end of data" in str(error.__cause__) else "followed by text"
            raise ReadError(
                f"{self.path} has a quote in row {row} (from 0) that is {problem}",
                "put quotes around the whole cell, and double the quotes inside",
            ) from error.__cause__
        finally:
            csv.field_size_limit(limit)

    def _read_csv(self, columns: Sequence[str], types: dict[str, Any], nulls: dict[str, Any]) -> Any:
        convert = pa.csv.ConvertOptions(column_types=types, include_columns=columns, **nulls)
        with self._explain_csv_errors():
            try:
                with open_bytes(self.path) as file:
                    return pa.csv.read_csv(file, *self._csv_options(), convert)
            except pa.ArrowInvalid:
                # Read again with one thread, so that the error contains the row number.
                convert.column_types = {column: types.get(column, pa.binary()) for column in columns}
                with self._open_csv(convert) as reader:
                    for _ in reader:
                        pass
                raise

    @contextmanager
    def _open_csv(self, convert: Any = None) -> Iterator[Any]:
        """Open a CSV file for reading block by block, with one thread."""
        with (
            open_bytes(self.path) as file,
            pa.csv.open_csv(file, *self._csv_options(use_threads=False), convert) as reader,
        ):
            yield reader

    def _csv_options(self, use_threads: bool = True) -> tuple[Any, Any]:
        read = pa.csv.ReadOptions(
            autogenerate_column_names=self.options.header is False,
            block_size=_TEXT_BLOCK if self.has_texts else _BLOCK,
            encoding="utf8" if self.options.is_utf8 else self.options.encoding,
            use_threads=use_threads,
        )
        return read, pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    @contextmanager
    def _explain_csv_errors(self) -> Iterator[None]:
        """Convert errors of Arrow to a ReadError with a remedy.

        If Arrow's message contains a row number, the ReadError contains it, too.
        """
        try:
            with explain_read_errors(self.path):
                yield
        except ValueError as error:
            cause = error.__cause__
            if isinstance(cause, UnicodeError):
                raise ReadError(
                    f"{self.path} is not encoded as {self.options.encoding} ({cause})",
                    "pass its encoding with --encoding",
                ) from cause
            # Arrow counts rows from 1 and includes the header.
            header_rows = 1 if self.options.header is False else 2
            if match := _RAGGED_ROW.search(str(cause)):
                row, expected, found = map(int, match.groups())
                raise ReadError(
                    f"{self.path} has {found} cells in row {row - header_rows} (from 0), but {expected} columns",
                    "correct that row, and put quotes around text that contains the separator",
                ) from cause
            if match := _BAD_CELL.search(str(cause)):
                column, row = self.names[int(match[1])], int(match[2]) - header_rows
                if "UTF8" in match[3]:
                    raise ReadError(
                        f"{self.path} is not encoded as UTF-8 in column {column!r}, row {row} (from 0)",
                        "pass its encoding, such as --encoding latin-1, or save it as UTF-8",
                    ) from cause
                raise self.bad_cell_error(
                    column, row, match[3].removeprefix("invalid value ").strip("'")
                ) from cause
            raise


def read_rows(path: Path, options: CsvOptions | None = None) -> Any:
    """Read all columns of a Parquet or CSV file as a pyarrow.Table."""
    table = Table(path, check_readable(path, TABLE_FORMATS), options)
    return table.read(table.names)


def split_names(text: str) -> list[str]:
    """Split a text at commas into a list of names; a name that contains a comma must be in double quotes."""
    return next(csv.reader([text]), [])


def quote_name(column: str) -> str:
    """Quote the name of a column for the shell and for :func:`split_names`."""
    if "," in column or '"' in column:
        column = '"' + column.replace('"', '""') + '"'
    return shlex.quote(column)


def format_names(names: Sequence[str]) -> str:
    """Format names for a message; show only the first six names."""
    shown = ", ".join(map(repr, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return shown or "none"


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
