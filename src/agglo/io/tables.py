"""Tables in files, .parquet, .csv and .tsv: their columns as points and labels."""

from __future__ import annotations

import codecs
import csv
import errno
import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from agglo._memory import empty_maybe_mapped
from agglo.points.frames import rows_of_lists

Array = npt.NDArray[Any]

FORMATS = {".npy": "NumPy", ".npz": "NumPy", ".parquet": "Parquet", ".csv": "CSV", ".tsv": "CSV"}

_BLOCK = 2**24  # bytes of a CSV file that decide on the types of its columns
_START = 2**20  # bytes of a CSV file whose encoding is checked before it is parsed
_SYSTEM = (  # errors of the machine, which say nothing of the file
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.EIO, errno.EACCES, errno.EPERM),
)
_FEWEST_ROWS = 10  # with fewer, a feature can number the rows by chance

# Arrow's messages, which have row numbers if it reads with one thread.
_BAD_CELL = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to \w+: (.*)", re.DOTALL)
_RAGGED = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")
_NUMBER = r"^\s*(?i:[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?)\s*$"
_TRUTH = r"^(?i:true|false)$"
_INDEX = re.compile(r"(Unnamed: 0(\.\d+)*)?")  # how pandas names an index without a name
_STORED_INDEX = re.compile(r"__index_level_\d+__")  # and how it does so in Parquet
_IDENTIFIERS = {"id", "index", "idx", "rowid", "rowindex", "rownumber", "rownum", "rowno"}
FOREIGN = {  # how files of other formats begin
    b"\x1f\x8b": ("is compressed by gzip", "decompress it first"),
    b"PK\x03\x04": ("is a zip archive or an Excel workbook", "extract it, or save its sheet as CSV"),
    b"PAR1": ("is a Parquet file", "rename it so that its name ends in .parquet"),
    b"\x93NUMPY": ("is a NumPy file", "rename it so that its name ends in .npy"),
}
_MARKS = {  # the longer marks first: that of UTF-32 starts with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class ReadError(ValueError):
    """A file that cannot be used.

    The remedy may name options of ``agglo fit``; verbs that do not have them replace it.
    """

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(f"{cause}: {remedy}")
        self.cause = cause
        self.remedy = remedy


@dataclass(frozen=True)
class CsvOptions:
    """How .csv and .tsv files are written."""

    header: bool | None = None
    """Whether the first line names the columns; None: yes, but a line of numbers is an error."""
    encoding: str = "utf-8"
    delimiter: str | None = None
    """What separates cells; None: a comma, or a tab in a .tsv file."""

    def __post_init__(self) -> None:
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(
                f"--encoding {self.encoding} is unknown: pass one such as utf-8, latin-1 or utf-16"
            ) from None
        usable = self.delimiter is None or (len(self.delimiter) == 1 and self.delimiter.isascii())
        if not usable or (self.delimiter or ",") in '"\r\n\0':
            raise ValueError(
                f"--delimiter {self.delimiter!r} cannot separate cells: pass one character such as ';'"
            )

    @property
    def is_utf8(self) -> bool:
        """Whether files need not be decoded first."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")


@contextmanager
def reading(name: Path) -> Iterator[None]:
    """Turn whatever a reader raises for a file that is not what its name says into one kind of error."""
    try:
        yield
    except pa.ArrowCancelled:  # Arrow's word for Ctrl-C
        raise KeyboardInterrupt from None
    except (MemoryError, ReadError):
        raise
    except Exception as error:  # damaged bytes can make a parser raise anything, not only what it documents
        if isinstance(error, OSError) and error.errno in _SYSTEM:
            raise
        cause = (str(error).splitlines() or [type(error).__name__])[0]
        remedy = "correct it, or save it again" if FORMATS[name.suffix.lower()] == "CSV" else "make it again"
        raise ValueError(
            f"{name} cannot be read: it is damaged, cut short or no {FORMATS[name.suffix.lower()]} file "
            f"({cause}); {remedy}"
        ) from error


class Table:
    """A .parquet, .csv or .tsv file whose columns are read when they are asked for."""

    def __init__(self, name: Path, form: str, csv: CsvOptions | None = None) -> None:
        self.name = name
        self.csv = csv or CsvOptions()
        self.is_csv = form != ".parquet"
        self.delimiter = self.csv.delimiter or ("\t" if form == ".tsv" else ",")
        if self.is_csv:
            self._check_start()
            self._check_quotes()
            with self._reading_csv(), self._open_csv() as reader:
                self.schema = reader.schema
        else:
            with reading(name), name.open("rb") as file:
                self.schema = pq.read_schema(file)
        self.names: list[str] = list(self.schema.names)
        twice = next((column for column in self.names if self.names.count(column) > 1), None)
        if twice is not None:
            raise ReadError(f"{name} has two columns {twice!r}", "give each a name of its own")
        if self.is_csv:
            self._check_header()

    def _check_start(self) -> None:
        """Raise if the first bytes show another format or another encoding."""
        with self.name.open("rb") as file:
            start = file.read(_START)
        if not start:
            raise ReadError(f"{self.name} cannot be read: the file is empty", "pass a file with rows")
        for mark, (what, remedy) in FOREIGN.items():
            if start.startswith(mark):
                raise ReadError(f"{self.name} cannot be read as CSV: it {what}", remedy)
        encoding = self.csv.encoding
        found = next((found for mark, found in _MARKS.items() if start.startswith(mark)), None)
        if found and self.csv.is_utf8:
            raise ReadError(
                f"{self.name} is not encoded as UTF-8: its first bytes are the mark of {found.upper()}",
                f"pass --encoding {found}, or save it as UTF-8",
            )
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(start)
        except UnicodeError as error:
            at = getattr(error, "start", 0)
            line = start.count(b"\n", 0, at) + 1
            raise ReadError(
                f"{self.name} is not encoded as {encoding} (byte {start[at]:#04x} in line {line})",
                "pass its encoding, such as --encoding latin-1 or --encoding utf-16, or save it as UTF-8",
            ) from None
        first = text.lstrip("\r\n").partition("\n")[0]
        other = next((other for other in ";\t|" if other in first), None)
        if other and self.csv.delimiter is None and self.delimiter not in first:
            shown = "tab" if other == "\t" else other
            raise ReadError(
                f"{self.name} has one column, {_shown(first.strip())}, that looks separated by {shown!r}",
                f"pass --delimiter {shown!r}",
            )
        if "\0" in text:
            raise ReadError(
                f"{self.name} cannot be read as {encoding} text: it has NUL bytes",
                "pass --encoding utf-16 if it is encoded so, else check that it is a CSV file",
            )

    def _check_quotes(self) -> None:
        """Raise if a quote is not closed: Arrow would take all that follows it for one cell, without an error."""
        count = 0
        with self.name.open("rb") as file:
            while block := file.read(_BLOCK):
                count += block.count(b'"')
        if count % 2 == 0:  # as it is if all are closed; quotes inside of texts can make it odd, too
            return
        with self.name.open(encoding=self.csv.encoding, errors="replace", newline="") as text:
            rows = csv.reader(text, delimiter=self.delimiter)
            row, lines, last = -1, 0, 0
            try:
                for cells in rows:
                    if cells:
                        row, lines = row + 1, rows.line_num - last
                    last = rows.line_num
            except csv.Error:  # a cell that is very long
                row, lines = row + 1, 2
        if lines > 1:
            row -= self.csv.header is not False
            raise ReadError(
                f"{self.name} has a quote in row {row} (from 0) that is not closed",
                "close it, and double quotes that are inside of quotes",
            )

    def _check_header(self) -> None:
        """Raise if the first line is probably data."""
        if self.csv.header is None and all(map(_is_number, self.names)):
            raise ReadError(
                f"{self.name} starts with numbers ({', '.join(self.names[:3])}), data or names of columns",
                "pass --no-header if they are data, --header if they are names",
            )

    def _csv_options(self, use_threads: bool = True) -> tuple[Any, Any]:
        reading = pa.csv.ReadOptions(
            autogenerate_column_names=self.csv.header is False,
            block_size=_BLOCK,
            encoding="utf8" if self.csv.is_utf8 else self.csv.encoding,
            use_threads=use_threads,
        )
        return reading, pa.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    @contextmanager
    def _open_csv(self, convert: Any = None) -> Iterator[Any]:
        """Read the file block by block with one thread, so that errors have row numbers."""
        options = self._csv_options(use_threads=False)
        with self.name.open("rb") as file, pa.csv.open_csv(file, *options, convert) as reader:
            yield reader

    @contextmanager
    def _reading_csv(self) -> Iterator[None]:
        """Say which row of a CSV file is wrong, where Arrow tells."""
        try:
            with reading(self.name):
                yield
        except ValueError as error:
            cause = error.__cause__
            if isinstance(cause, UnicodeError):
                raise ReadError(
                    f"{self.name} is not encoded as {self.csv.encoding} ({cause})", "pass its own --encoding"
                ) from cause
            if found := _RAGGED.search(str(cause)):
                row, expected, got = map(int, found.groups())
                raise ReadError(
                    f"{self.name} has {got} cells in row {self._row(row)} (from 0), but {expected} columns",
                    "correct that row, and put quotes around text that has a separator in it",
                ) from cause
            if found := _BAD_CELL.search(str(cause)):
                column, row = self.names[int(found[1])], self._row(int(found[2]))
                if "UTF8" in found[3]:
                    raise ReadError(
                        f"{self.name} is not encoded as UTF-8 in column {column!r}, row {row} (from 0)",
                        "pass its encoding, such as --encoding latin-1, or save it as UTF-8",
                    ) from cause
                raise self._bad_cell(column, row, found[3].removeprefix("invalid value ").strip("'")) from cause
            raise

    def _row(self, number: int) -> int:
        """The row from 0 that Arrow gives the number ``number``, from 1 and with the header."""
        return number - (1 if self.csv.header is False else 2)

    def _bad_cell(self, column: str, row: int, value: str) -> ReadError:
        return ReadError(
            f"{self.name} has {_shown(value)} in column {column!r}, row {row} (from 0), among numbers",
            f"correct that cell or drop that row, or leave out the column with --drop {_quoted(column)}",
        )

    def read(self, columns: list[str], kinds: dict[str, Any] | None = None) -> Any:
        """Read a table of these columns; CSV cells must be of the types ``kinds``, if given."""
        self._check_names(columns)
        if self.is_csv:
            table = self._read_csv(columns, kinds or {})
        else:
            with reading(self.name), self.name.open("rb") as file:
                table = pq.read_table(file, columns=columns, page_checksum_verification=True)
        if not table.num_rows:
            raise ReadError(f"{self.name} has no rows", "pass a file with at least one")
        return table

    def _read_csv(self, columns: list[str], kinds: dict[str, Any]) -> Any:
        convert = pa.csv.ConvertOptions(column_types=kinds, include_columns=columns)
        with self._reading_csv():
            try:
                with self.name.open("rb") as file:  # Arrow cannot open a name that is not UTF-8
                    return pa.csv.read_csv(file, *self._csv_options(), convert)
            except pa.ArrowInvalid:
                convert.column_types = {column: kinds.get(column, pa.binary()) for column in columns}
                with self._open_csv(convert) as reader:
                    for _ in reader:
                        pass
                raise

    def _check_names(self, columns: Sequence[str]) -> None:
        for column in columns:
            if column not in self.names:
                raise ReadError(f"{self.name} has no column {column!r}", f"name one of {listed(self.names)}")

    def labels(self, column: str | None) -> Array:
        """Read a column of labels of any type: by default the only one, or else ``label``."""
        if column is None:
            index = self._index_columns()
            names = [name for name in self.names if name not in index] or self.names
            column = names[0] if len(names) == 1 else "label"
            if column not in self.names:
                raise ReadError(
                    f"{self.name} has no column 'label', but {listed(names)}", "name one with --label-column"
                )
        values = self.read([column])[column]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if self.is_csv and pa.types.is_binary(values.type):  # what Arrow takes text for that is no UTF-8
            self.read([column], {column: pa.string()})
        if values.null_count:
            raise _hole(self.name, column, values)
        labels: Array = values.to_numpy()
        return labels

    def features(
        self, columns: Sequence[str] | None, label_column: str | None, drop: Sequence[str] = ()
    ) -> list[str]:
        """Choose the columns that are features: those that are named, or else all numbers."""
        if columns is not None:
            self._check_names(columns)
            self._check_text([self.schema.field(column) for column in columns])
            return list(columns)
        self._check_names([*drop, *([label_column] if label_column else [])])
        given = {label_column, *drop}
        index = [column for column in self._index_columns() if column not in given]
        fields = [field for field in self.schema if field.name not in given and field.name not in index]
        numbers = [
            field.name for field in fields if _is_numeric(_csv_type(field.type) if self.is_csv else field.type)
        ]
        lists = [field.name for field in fields if _is_list(field.type)]
        if lists and (numbers or len(lists) > 1):
            raise ReadError(
                f"{self.name} has columns of lists ({listed(lists)}) and others ({listed(numbers)})",
                "name those that are the points with --columns",
            )
        self._check_text(fields)
        used = numbers or lists
        if not used:
            raise ReadError(
                f"{self.name} has no columns of numbers, but {listed(self.names)}",
                "points need numbers; agglo text clusters texts",
            )
        if index:
            _warn(f"{self.name}: left out {listed(index)}, the index of its rows; to use it, name it in --columns")
        others = [field.name for field in fields if field.name not in used]
        if others:
            _warn(f"{self.name}: left out {listed(others)}, without numbers; choose columns with --columns")
        return used

    def _is_feature(self, kind: Any) -> bool:
        return _is_numeric(_csv_type(kind) if self.is_csv else kind)

    def _index_columns(self) -> list[str]:
        """The columns that hold the index of a data frame: as pandas recorded it, or as it names them."""
        stored = (self.schema.pandas_metadata or {}).get("index_columns", [])
        index = [column for column in stored if isinstance(column, str) and column in self.names]
        index += [column for column in self.names if _STORED_INDEX.fullmatch(column) and column not in index]
        for column in self.names:
            if not _INDEX.fullmatch(column.strip()):
                break
            index.append(column)
        return index

    def _check_text(self, fields: Sequence[Any]) -> None:
        """Raise if a column of a CSV file that was taken for text has numbers in it.

        One bad cell makes Arrow take its whole column for text, so only a column without any number is text.
        """
        texts = [
            field.name for field in fields if pa.types.is_string(field.type) or pa.types.is_binary(field.type)
        ]
        if not self.is_csv or not texts:
            return
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(texts, pa.string()), include_columns=texts, strings_can_be_null=True
        )
        with self._reading_csv(), self._open_csv(convert) as reader:
            block = reader.read_next_batch()
        for column in texts:
            values = block[column]
            is_number = pc.match_substring_regex(values, _NUMBER)
            is_value = pc.or_(is_number, pc.match_substring_regex(values, _TRUTH))
            if pc.any(is_value).as_py():
                first = [pc.index(mask, pa.scalar(False)).as_py() for mask in (is_value, is_number)]
                row = next(
                    (row for row in first if row >= 0), 0
                )  # numbers and truth values together are text, too
                raise self._bad_cell(column, row, values[row].as_py())

    def points(self, columns: list[str]) -> Array:
        """The columns side by side, or the rows of a column of lists, of their own type."""
        X, row = np.empty((0, 0)), 0
        for rows, table in self._parts(columns):
            part = self._part(columns, table, row, X.shape[1] if row else None)
            if row == 0:
                X = empty_maybe_mapped((rows, part.shape[1]), part.dtype)
            X[row : row + len(part)] = part
            row += len(part)
        if not row:
            raise ReadError(f"{self.name} has no rows", "pass a file with at least one")
        return X

    def _parts(self, columns: list[str]) -> Iterator[tuple[int, Any]]:
        """The rows of the whole file, and tables that follow each other: the row groups of a Parquet file."""
        if self.is_csv:
            table = self.read(columns, {column: _csv_type(self.schema.field(column).type) for column in columns})
            yield table.num_rows, table
            return
        self._check_names(columns)
        with self.name.open("rb") as file:
            with reading(self.name):
                groups = pq.ParquetFile(file, page_checksum_verification=True)
            for group in range(groups.num_row_groups):
                with reading(self.name):
                    table = groups.read_row_group(group, columns)
                yield groups.metadata.num_rows, table

    def _part(self, columns: list[str], table: Any, first: int, width: int | None) -> Array:
        """The points of a table whose first row is that of number ``first``, and which are to be so wide."""
        for column in columns:
            kind = table[column].type
            if not _is_numeric(kind) and not (_is_list(kind) and len(columns) == 1):
                raise ReadError(
                    f"{self.name} has no numbers in column {column!r}, but {kind}",
                    "name only columns of numbers, or one column of lists of numbers",
                )
            if table[column].null_count:
                raise _hole(self.name, column, table[column], first)
        if _is_list(table[columns[0]].type):
            where = f"column {columns[0]!r} of {self.name}"
            return rows_of_lists(table[columns[0]], where, first, width)
        dtypes = [_dtype(table[column].type) for column in columns]
        X = np.empty((table.num_rows, len(columns)), np.result_type(*dtypes))
        for j, column in enumerate(columns):
            X[:, j] = table[column].to_numpy()
        return X


def _hole(name: Path, column: str, values: Any, first: int = 0) -> ReadError:
    row = first + int(values.is_null().to_numpy().argmax())
    return ReadError(
        f"{name} has {values.null_count} empty cells in column {column!r}, the first in row {row} (from 0)",
        "fill in values, or drop such rows",
    )


def _is_numeric(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    )


def _is_list(kind: Any) -> bool:
    types = pa.types
    some = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(some and _is_numeric(kind.value_type))


def _dtype(kind: Any) -> np.dtype[Any]:
    return np.dtype(np.float64 if pa.types.is_decimal(kind) else kind.to_pandas_dtype())


def check_row_numbers(name: Path, columns: Sequence[str], X: Array) -> None:
    """Raise if a column of a table only tells its rows apart; warn if it may.

    Such a column is no feature, but its numbers are often the largest of all, and would decide on the clusters.
    """
    for column, values in zip(columns, X.T, strict=True):
        start = values[:1000]  # enough to see that a column is a feature, without reading all of it
        named = re.sub(r"[\W_]", "", column.casefold()) in _IDENTIFIERS
        alike = len(np.unique(start)) < max(len(start), _FEWEST_ROWS)
        if (alike and not named) or not _is_whole(start) or not _is_whole(values):
            continue
        if named:
            raise _row_number(name, column, "is named like an identifier of rows")
        if (np.diff(np.sort(values)) == 1).all():
            span = f"{values.min():.0f} to {values.max():.0f}, each once"
            raise _row_number(name, column, f"numbers the rows ({span})")
        if (values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all():
            _warn(
                f"{name}: column {column!r} is sorted whole numbers without repeats, as identifiers of rows are; "
                f"if it is no feature, leave it out with --drop {_quoted(column)}"
            )


def _row_number(name: Path, column: str, reason: str) -> ReadError:
    return ReadError(
        f"{name} has a column {column!r} that {reason}, and would count as a feature",
        f"leave it out with --drop {_quoted(column)}, or name all features with --columns",
    )


def _is_whole(values: Array) -> bool:
    return bool(values.dtype.kind in "iu" or (np.isfinite(values) & (values == np.floor(values))).all())


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)


def _csv_type(kind: Any) -> Any:
    """The type that a column of a CSV file is read as; decimals may follow whole numbers."""
    return pa.float64() if pa.types.is_integer(kind) or pa.types.is_null(kind) else kind


def _shown(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:39] + "…")


def _quoted(column: str) -> str:
    """A column as a shell and :func:`split_names` take it."""
    if "," in column or '"' in column:
        column = '"' + column.replace('"', '""') + '"'
    return shlex.quote(column)


def split_names(text: str) -> list[str]:
    """Split names at commas; one with a comma in it stands in double quotes."""
    return next(csv.reader([text]), [])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def listed(names: Sequence[str]) -> str:
    """``names`` in words, the first few of them."""
    shown = ", ".join(map(repr, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return shown or "none"
