"""Tables in files, .parquet, .csv and .tsv: their columns as points and labels."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from agglo.search.checks import memory

Array = npt.NDArray[Any]

FORMATS = {".npy": "NumPy", ".npz": "NumPy", ".parquet": "Parquet", ".csv": "CSV", ".tsv": "CSV"}

_SHARE = 4  # of the memory, one part in so many may be taken by points that are read


@contextmanager
def reading(name: Path) -> Iterator[None]:
    """Whatever a reader makes of a file that is not what its name says becomes one kind of error."""
    try:
        yield
    except pa.ArrowCancelled:  # Arrow's word for Ctrl-C
        raise KeyboardInterrupt from None
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes can make a parser raise anything, not only what it documents
        cause = (str(error).splitlines() or [type(error).__name__])[0]
        remedy = "mend that line" if FORMATS[name.suffix.lower()] == "CSV" else "make it again"
        raise ValueError(
            f"{name} cannot be read: it is damaged, cut short or no {FORMATS[name.suffix.lower()]} file "
            f"({cause}); {remedy}"
        ) from error


class Table:
    """A .parquet, .csv or .tsv file whose columns are read when they are asked for."""

    def __init__(self, name: Path, form: str, header: bool) -> None:
        self.name = name
        self.header = header
        self.is_csv = form != ".parquet"
        self.parsing = pa.csv.ParseOptions(delimiter="\t" if form == ".tsv" else ",")
        with reading(name):
            self.schema = self._csv_schema() if self.is_csv else pq.read_schema(name)
        self.names: list[str] = list(self.schema.names)
        twice = next((column for column in self.names if self.names.count(column) > 1), None)
        if twice is not None:
            raise ValueError(f"{name} has two columns {twice!r}: give each a name of its own")
        if self.is_csv and header and all(map(_is_number, self.names)):
            raise ValueError(
                f"{name} starts with numbers ({', '.join(self.names[:3])}), not with the names of columns: "
                "pass --no-header, or write a first line of names"
            )

    def _csv_schema(self) -> Any:
        """The types of the columns as the start of the file shows them.

        Whole numbers are taken for numbers of any kind: what follows may have decimals.
        """
        with pa.csv.open_csv(self.name, self._csv_options(), self.parsing) as reader:
            fields = [
                field.with_type(pa.float64())
                if pa.types.is_integer(field.type) | pa.types.is_null(field.type)
                else field
                for field in reader.schema
            ]
        return pa.schema(fields)

    def _csv_options(self) -> Any:
        return pa.csv.ReadOptions(autogenerate_column_names=not self.header, block_size=2**24)

    def read(self, columns: list[str]) -> Any:
        """The table of these columns."""
        self._check_names(columns)
        with reading(self.name):
            if self.is_csv:
                kinds = {column: self.schema.field(column).type for column in columns}
                convert = pa.csv.ConvertOptions(column_types=kinds, include_columns=columns)
                table = pa.csv.read_csv(self.name, self._csv_options(), self.parsing, convert)
            else:
                table = pq.read_table(self.name, columns=columns, page_checksum_verification=True)
        if not table.num_rows:
            raise ValueError(f"{self.name} has no rows: there is nothing to read in it")
        return table

    def _check_names(self, columns: list[str]) -> None:
        for column in columns:
            if column not in self.names:
                raise ValueError(f"{self.name} has no column {column!r}, but {listed(self.names)}")

    def labels(self, column: str) -> Array:
        """A column of labels of any type."""
        values = self.read([column])[column]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if values.null_count:
            raise _hole(self.name, column, values)
        labels: Array = values.to_numpy()
        return labels

    def features(self, columns: Sequence[str] | None, label_column: str | None) -> list[str]:
        """The names of the columns to take as features."""
        if columns is not None:
            return list(columns)
        metadata = self.schema.pandas_metadata or {}
        aside = [label_column, *(index for index in metadata.get("index_columns", []) if isinstance(index, str))]
        fields = [field for field in self.schema if field.name not in aside]
        numbers = [field.name for field in fields if _is_numeric(field.type)]
        lists = [field.name for field in fields if _is_list(field.type)]
        if lists and (numbers or len(lists) > 1):
            raise ValueError(
                f"{self.name} has columns of lists ({listed(lists)}) and others ({listed(numbers)}): "
                "name those that are the points with --columns"
            )
        used = numbers or lists
        if not used:
            raise ValueError(f"{self.name} has no numeric columns, but {listed(self.names)}: there are no points")
        others = [field.name for field in fields if field.name not in used]
        if others:
            warnings.warn(
                f"{self.name}: left out {listed(others)}, not being numbers; choose columns with --columns",
                stacklevel=3,
            )
        return used

    def points(self, columns: list[str]) -> Array:
        """The columns side by side, or the rows of a column of lists, of their own type."""
        X, row = np.empty((0, 0)), 0
        for rows, table in self._parts(columns):
            part = self._part(columns, table, row, X.shape[1] if row else None)
            if row == 0:
                X = room((rows, part.shape[1]), part.dtype)
            X[row : row + len(part)] = part
            row += len(part)
        if not row:
            raise ValueError(f"{self.name} has no rows: there is nothing to read in it")
        return X

    def _parts(self, columns: list[str]) -> Iterator[tuple[int, Any]]:
        """The rows of the whole file, and tables that follow each other: the row groups of a Parquet file."""
        if self.is_csv:
            table = self.read(columns)
            yield table.num_rows, table
            return
        self._check_names(columns)
        with reading(self.name):
            file = pq.ParquetFile(self.name, page_checksum_verification=True)
        with file:
            for group in range(file.num_row_groups):
                with reading(self.name):
                    table = file.read_row_group(group, columns)
                yield file.metadata.num_rows, table

    def _part(self, columns: list[str], table: Any, first: int, width: int | None) -> Array:
        """The points of a table whose first row is that of number ``first``, and which are to be so wide."""
        for column in columns:
            kind = table[column].type
            if not _is_numeric(kind) and not (_is_list(kind) and len(columns) == 1):
                raise ValueError(
                    f"{self.name} has text or other things in column {column!r} (type {kind}): "
                    "points are made of numeric columns, or of one column of lists of numbers"
                )
            if table[column].null_count:
                raise _hole(self.name, column, table[column], first)
        if _is_list(table[columns[0]].type):
            return self._rows_of_lists(columns[0], table[columns[0]], first, width)
        dtypes = [_dtype(table[column].type) for column in columns]
        X = np.empty((table.num_rows, len(columns)), np.result_type(*dtypes))
        for j, column in enumerate(columns):
            X[:, j] = table[column].to_numpy()
        return X

    def _rows_of_lists(self, column: str, values: Any, first: int, width: int | None) -> Array:
        lengths = pc.list_value_length(values).to_numpy()
        if not len(lengths):
            return np.empty((0, width or 0))
        width = int(lengths[0]) if width is None else width
        if (lengths != width).any():
            row = int((lengths != width).argmax())
            raise ValueError(
                f"{self.name} has {width} numbers in the first row of {column!r}, but {lengths[row]} in row "
                f"{first + row}: points need the same number of features"
            )
        X = np.empty((len(values), width), _dtype(values.type.value_type))
        row = 0
        for chunk in values.chunks:  # all at once could exceed the 32-bit offsets of Arrow's lists
            numbers = chunk.flatten()
            if numbers.null_count:
                where = first + row + int(numbers.is_null().to_numpy(zero_copy_only=False).argmax()) // width
                raise ValueError(f"{self.name} has an empty entry in row {where} of {column!r}: fill or drop it")
            X[row : row + len(chunk)] = numbers.to_numpy(zero_copy_only=False).reshape(len(chunk), width)
            row += len(chunk)
        return X


def room(shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    """An array to be filled, in a temporary file if it is large: the system then keeps in memory what fits.

    The file has no name, and is gone when the array is.
    """
    if shape[0] * shape[1] * dtype.itemsize <= memory() / _SHARE:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=shape)


def _hole(name: Path, column: str, values: Any, first: int = 0) -> ValueError:
    row = first + int(values.is_null().to_numpy().argmax())
    return ValueError(
        f"{name} has {values.null_count} empty entries in column {column!r}, the first in row {row}: "
        "fill in values or drop such rows"
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
