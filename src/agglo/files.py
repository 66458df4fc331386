"""Points and labels in files: .npy, .npz, .parquet, .csv and .tsv, as the command line reads and writes them."""

from __future__ import annotations

import os
import tempfile
import warnings
import zipfile
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
import scipy.sparse as sp

from agglo.outputs import replacing
from agglo.search.checks import memory

Array = npt.NDArray[Any]

FORMATS = {".npy": "NumPy", ".npz": "NumPy", ".parquet": "Parquet", ".csv": "CSV", ".tsv": "CSV"}
LABEL_FORMATS = (".parquet", ".csv", ".npy")

_SHARE = 4  # of the memory, one part in so many may be taken by points that are read


@dataclass(frozen=True, eq=False)
class Points:
    """What a file of points holds."""

    X: Any
    """A row a point, as an array or a SciPy sparse matrix; its numbers are not checked yet."""
    columns: list[str] | None
    """The names of the columns, where the file has names."""
    labels: Array | None
    """The class of each point, if it was asked for."""


def read_points(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    array: str | None = None,
    label_column: str | None = None,
    header: bool = True,
) -> Points:
    r"""The points in a file.

    Parameters
    ----------
    path : path
        A .npy file is mapped into memory, not read. An .npz file may hold a sparse matrix, as
        ``scipy.sparse.save_npz`` writes it; else its array ``X`` is taken, or the only table of numbers.
        Tables (.parquet, .csv, .tsv) give their numeric columns, or their one column of lists of numbers; columns
        of anything else are left out with a warning. A .parquet file is read by row groups, into a temporary file
        if its points would take more than a quarter of the memory.
    columns : sequence of str, optional
        The columns of a table to take, in this order.
    array : str, optional
        The array of an .npz file to take.
    label_column : str, optional
        The column of a table, or the array of an .npz file, that holds the class of each point.
    header : bool, default=True
        Whether the first line of a .csv or .tsv file names the columns; otherwise they are f0, f1, and so on.

    Examples
    --------
    >>> import tempfile
    >>> from agglo.files import read_points
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/data.csv", "w") as file:
    ...         _ = file.write("x,y,kind\n1,2,a\n3,4,b\n")
    ...     points = read_points(f"{folder}/data.csv", label_column="kind")
    >>> points.X
    array([[1., 2.],
           [3., 4.]])
    >>> points.labels
    array(['a', 'b'], dtype=object)
    """
    name, form = _opened(path)
    if columns is not None and form not in (".parquet", ".csv", ".tsv"):
        raise ValueError(f"{name} has no columns with names, so none can be chosen: leave out --columns")
    if array is not None and form != ".npz":
        raise ValueError(f"{name} is no .npz file, so it has no array {array!r}: leave out --array")
    if form == ".npy":
        if label_column is not None:
            raise ValueError(
                f"{name} holds one array and no column {label_column!r}: pass a file of the classes with --labels"
            )
        return Points(_npy(name), None, None)
    if form == ".npz":
        chosen = _sparse(name) if array is None else None
        if chosen is None:
            chosen = _chosen_array(name, array, "X", 2, "--array")
        labels = None if label_column is None else _chosen_array(name, label_column, "", 1, "--label-column")
        return Points(chosen, None, labels)
    table = _Table(name, form, header)
    labels = None
    if label_column is not None:
        labels = table.labels(label_column)
    used = table.features(columns, label_column)
    return Points(table.points(used), used, labels)


def read_labels(path: str | os.PathLike[str], *, column: str | None = None, header: bool = True) -> Array:
    """The labels in a file, one a point.

    Parameters
    ----------
    path : path
        A file as of :func:`read_points`.
    column : str, optional
        The column of a table, or the array of an .npz file. By default the only one, or else the column
        ``label`` or the array ``y``.
    header : bool, default=True
        Whether the first line of a .csv or .tsv file names the columns.
    """
    name, form = _opened(path)
    if form == ".npy":
        if column is not None:
            raise ValueError(f"{name} holds one array and no column {column!r}: leave out --label-column")
        labels = _npy(name)
    elif form == ".npz":
        labels = _chosen_array(name, column, "y", 1, "--label-column")
    else:
        table = _Table(name, form, header)
        if column is None:
            column = table.names[0] if len(table.names) == 1 else "label"
        labels = table.labels(column)
    if labels.ndim != 1:
        raise ValueError(f"{name} holds an array of shape {labels.shape}: labels are one-dimensional, one a point")
    return labels


def read_rows(path: str | os.PathLike[str]) -> Any:
    """All columns of a .parquet, .csv or .tsv file, as a pyarrow.Table."""
    name, form = _opened(path)
    if form in (".npy", ".npz"):
        raise ValueError(f"{name} has no columns with names: pass a .parquet, .csv or .tsv file")
    table = _Table(name, form, header=True)
    return table.read(table.names)


def check_label_format(path: str | os.PathLike[str]) -> str:
    """What the name of a file of labels ends in, if labels can be written so."""
    form = Path(path).suffix.lower()
    if form not in LABEL_FORMATS:
        raise ValueError(f"labels cannot be written to {path}: end the name in one of {', '.join(LABEL_FORMATS)}")
    return form


def write_labels(labels: npt.NDArray[np.int64], path: str | os.PathLike[str], *, form: str | None = None) -> None:
    """Write labels to ``path``, whole or not at all: one column ``label``, or an array for .npy.

    The format is ``form``, or else what the name ends in: .parquet, .csv or .npy.
    """
    form = check_label_format(path) if form is None else form
    with replacing(path) as partial:
        if form == ".npy":
            with partial.open("wb") as file:
                np.save(file, labels, allow_pickle=False)
            return
        table = pa.table({"label": labels})
        if form == ".csv":
            pa.csv.write_csv(table, partial, pa.csv.WriteOptions(quoting_header="none"))
        else:
            pq.write_table(table, partial, compression="zstd", write_page_checksum=True)


def _opened(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """The path and its format, once it is known to be a file that can be opened."""
    name = Path(path)
    form = name.suffix.lower()
    if form not in FORMATS:
        raise ValueError(f"{name} is of no format that can be read: end its name in one of {', '.join(FORMATS)}")
    if not name.exists():
        raise FileNotFoundError(f"{name} cannot be read: there is no such file; check its name")
    if not name.is_file():
        raise ValueError(f"{name} cannot be read: it is a folder or a device; pass the name of a file")
    with name.open("rb"):  # not allowed, and the like: an error of its own
        return name, form


@contextmanager
def _reading(name: Path) -> Iterator[None]:
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


def _npy(name: Path) -> Array:
    with _reading(name):
        return np.lib.format.open_memmap(name, mode="r")


def _chosen_array(name: Path, wanted: str | None, usual: str, dimensions: int, option: str) -> Array:
    """The array of an .npz file that is wanted, or else has the usual name or is the only one that fits."""
    with _reading(name), name.open("rb") as file, zipfile.ZipFile(file) as archive:
        names = [entry.removesuffix(".npy") for entry in archive.namelist()]
        found = [wanted or usual] if (wanted or usual) in names else names if wanted is None else []
        arrays: dict[str, Array] = {}
        for key in found:
            with archive.open(key + ".npy") as member:
                arrays[key] = np.lib.format.read_array(member, allow_pickle=False)
    if len(arrays) > 1:
        arrays = {key: array for key, array in arrays.items() if array.ndim == dimensions}
    if len(arrays) != 1:
        problem = f"has no array {wanted!r}" if wanted else f"has {len(arrays)} arrays of {dimensions} dimensions"
        raise ValueError(f"{name} {problem}, but {_listed(names)}: name one of them with {option}")
    return next(iter(arrays.values()))


def _sparse(name: Path) -> Any:
    """The sparse matrix of an .npz file, as SciPy's save_npz writes it; None if there is none."""
    with _reading(name), name.open("rb") as file, zipfile.ZipFile(file) as archive:
        names = {entry.removesuffix(".npy") for entry in archive.namelist()}
        if {"format", "shape", "data"} <= names:
            return sp.load_npz(name)
        if {"indptr", "indices", "shape", "data"} <= names:
            with np.load(name, allow_pickle=False) as arrays:
                parts = (arrays["data"], arrays["indices"], arrays["indptr"])
                return sp.csr_array(parts, tuple(arrays["shape"]))
    return None


class _Table:
    """A .parquet, .csv or .tsv file whose columns are read when they are asked for."""

    def __init__(self, name: Path, form: str, header: bool) -> None:
        self.name = name
        self.header = header
        self.is_csv = form != ".parquet"
        self.parsing = pa.csv.ParseOptions(delimiter="\t" if form == ".tsv" else ",")
        with _reading(name):
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
        with _reading(self.name):
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
                raise ValueError(f"{self.name} has no column {column!r}, but {_listed(self.names)}")

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
                f"{self.name} has columns of lists ({_listed(lists)}) and others ({_listed(numbers)}): "
                "name those that are the points with --columns"
            )
        used = numbers or lists
        if not used:
            raise ValueError(f"{self.name} has no numeric columns, but {_listed(self.names)}: there are no points")
        others = [field.name for field in fields if field.name not in used]
        if others:
            warnings.warn(
                f"{self.name}: left out {_listed(others)}, not being numbers; choose columns with --columns",
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
        with _reading(self.name):
            file = pq.ParquetFile(self.name, page_checksum_verification=True)
        with file:
            for group in range(file.num_row_groups):
                with _reading(self.name):
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


def _listed(names: Sequence[str]) -> str:
    """``names`` in words, the first few of them."""
    shown = ", ".join(map(repr, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return shown or "none"
