"""Read points and labels from .npy, .npz, .parquet, .csv and .tsv files, and write labels."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import scipy.sparse as sp

from agglo._native import empty_maybe_mapped
from agglo.io.atomic import replace_file, write_array
from agglo.io.columns import (
    check_row_numbers,
    choose_features,
    feature_type,
    find_index_columns,
    is_list_of_numbers,
    is_numeric,
)
from agglo.io.files import ReadError, check_readable, explain_read_errors, write_parquet
from agglo.io.tables import (
    TABLE_FORMATS,
    CsvOptions,
    Table,
    format_names,
)
from agglo.points.frames import rows_of_lists

Array = npt.NDArray[Any]

FORMATS = (".npy", ".npz", *TABLE_FORMATS)
LABEL_FORMATS = (".parquet", ".csv", ".npy")


@dataclass(frozen=True, eq=False)
class Points:
    """The points that were read from a file, with their column names and their classes."""

    X: Any
    """The points, one row per point: an array or a SciPy sparse matrix. The numbers are not validated."""
    columns: list[str] | None
    """The names of the feature columns. If the file has no column names, it is None."""
    labels: Array | None
    """The class of each point. If no label column was requested, it is None."""


def read_points(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    array: str | None = None,
    label_column: str | None = None,
    csv: CsvOptions | None = None,
    row_numbers: bool = False,
) -> Points:
    r"""Read points from a file: one row per point, and optionally the class of each point.

    Parameters
    ----------
    path : path
        The file. The suffix of its name determines the format:

        - ``.npy``: an array, which is memory-mapped.
        - ``.npz``: a sparse matrix as ``scipy.sparse.save_npz`` writes it, the array ``X``, or the only
          two-dimensional array.
        - ``.parquet``, ``.csv``, ``.tsv``, ``.csv.gz``, ``.tsv.gz``: the columns of numbers, or the only column of
          lists of numbers. The index of a data frame and columns without numbers are ignored with a warning.
          Parquet files are read one row group at a time. If the points need more than a quarter of the memory,
          they are stored in a temporary file.
    columns : sequence of str, optional
        The columns of a table to read, in this order. By default, all feature columns are read. Then a column of
        row numbers is an error, unless ``row_numbers`` is True.
    drop : sequence of str
        Columns of a table to ignore.
    array : str, optional
        The name of the array of an .npz file to read.
    label_column : str, optional
        The column of a table, or the array of an .npz file, that holds the class of each point.
    csv : CsvOptions, optional
        The encoding, the delimiter and the header of a .csv or .tsv file. Without a header, the columns are named
        f0, f1, and so on.
    row_numbers : bool, default=False
        Whether a column of row numbers is allowed.

    Examples
    --------
    >>> import tempfile
    >>> from agglo.io.points import read_points
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
    name = Path(path)
    form = check_readable(name, FORMATS)
    if (columns is not None or drop) and form in (".npy", ".npz"):
        raise ReadError(f"{name} has no named columns", "leave out --columns and --drop")
    if array is not None and form != ".npz":
        raise ReadError(f"{name} is not an .npz file, so it has no array {array!r}", "leave out --array")
    if form == ".npy":
        if label_column is not None:
            raise ReadError(
                f"{name} holds one array and no column {label_column!r}",
                "pass a file of the classes with --labels",
            )
        return Points(_map_npy(name), None, None)
    if form == ".npz":
        X = _read_sparse(name) if array is None else None
        if X is None:
            X = _read_npz(name, array, "X", 2, "--array")
        labels = None if label_column is None else _read_npz(name, label_column, "", 1, "--label-column")
        return Points(X, None, labels)
    table = Table(name, form, csv)
    features = choose_features(table, columns, label_column, drop)
    labels = None if label_column is None else _read_label_column(table, label_column)
    X = _read_features(table, features)
    if columns is None and not row_numbers and len(table.names) > 1 and len(features) == X.shape[1]:
        check_row_numbers(name, features, X)
    return Points(X, features, labels)


def read_labels(
    path: str | os.PathLike[str], *, column: str | None = None, csv: CsvOptions | None = None
) -> Array:
    """Read the labels in a file, one per point.

    Parameters
    ----------
    path : path
        A file in one of the formats of :func:`read_points`.
    column : str, optional
        The name of the column of a table, or of the array of an .npz file. By default, the only column or array is
        read. If there are several, the column ``label`` or the array ``y`` is read.
    csv : CsvOptions, optional
        The encoding, the delimiter and the header of a .csv or .tsv file.
    """
    name = Path(path)
    form = check_readable(name, FORMATS)
    if form == ".npy":
        if column is not None:
            raise ReadError(f"{name} holds one array and no column {column!r}", "leave out --label-column")
        labels = _map_npy(name)
    elif form == ".npz":
        labels = _read_npz(name, column, "y", 1, "--label-column")
    else:
        labels = _read_label_column(Table(name, form, csv), column)
    if labels.ndim != 1:
        raise ReadError(
            f"{name} holds an array of shape {labels.shape}, but labels are one-dimensional",
            "pass one label per point",
        )
    return labels


def check_label_format(path: str | os.PathLike[str]) -> str:
    """Return the suffix of ``path``; raise ``ValueError`` if labels cannot be written in this format."""
    form = Path(path).suffix.lower()
    if form not in LABEL_FORMATS:
        raise ValueError(f"labels cannot be written to {path}: end the name in one of {', '.join(LABEL_FORMATS)}")
    return form


def write_labels(
    labels: npt.NDArray[np.int64],
    path: str | os.PathLike[str],
    *,
    form: str | None = None,
    names: Sequence[str] | None = None,
) -> None:
    """Write labels to ``path`` atomically: as an array to an .npy file, otherwise as a table column ``label``.

    ``form`` is the format: .parquet, .csv or .npy. By default, the suffix of the file name determines the format.
    ``names`` are the names of the clusters. A table has them in a column ``name``, which is null for label -1.
    """
    form = check_label_format(path) if form is None else form
    with replace_file(path) as partial:
        if form == ".npy":
            write_array(labels, partial)
            return
        table = pa.table({"label": labels})
        if names is not None:
            chosen = pa.array(labels, mask=labels < 0)
            table = table.append_column("name", pa.array(names, pa.large_string()).take(chosen))
        if form == ".parquet":
            write_parquet(table, partial)
            return
        with partial.open("wb") as file:  # Arrow cannot open a name that is not UTF-8
            # Arrow would quote the header, except by an option of its newest versions.
            file.write((",".join(table.column_names) + "\n").encode())
            pa.csv.write_csv(table, file, pa.csv.WriteOptions(include_header=False))


def _map_npy(path: Path) -> Array:
    with explain_read_errors(path):
        try:
            array = np.lib.format.open_memmap(path, mode="r")
        except ValueError as error:
            if "Python objects" in str(error):
                raise _object_array_error(path) from error
            raise
        size = array.offset + array.nbytes
        if path.stat().st_size != size:  # the stored shape is damaged, but NumPy would ignore extra bytes
            raise ValueError(f"it has {path.stat().st_size} bytes, but an array of {array.shape} takes {size}")
        return array


def _object_array_error(path: Path) -> ReadError:
    return ReadError(
        f"{path} cannot be read: it holds Python objects (dtype object), which are never unpickled",
        "save numbers, such as numpy.save(path, X.astype(numpy.float32))",
    )


def _read_npz(path: Path, wanted: str | None, default: str, n_dimensions: int, option: str) -> Array:
    """Read the array ``wanted`` of an .npz file.

    If ``wanted`` is None, read the array ``default``. If there is no such array, read the only array, or the only
    array of ``n_dimensions`` dimensions. Error messages name ``option``.
    """
    with explain_read_errors(path), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        names = [entry.removesuffix(".npy") for entry in archive.namelist()]
        chosen = [wanted or default] if (wanted or default) in names else names if wanted is None else []
        arrays: dict[str, Array] = {}
        for key in chosen:
            with archive.open(key + ".npy") as member:
                try:
                    arrays[key] = np.lib.format.read_array(member, allow_pickle=False)
                except ValueError as error:
                    if "Object arrays" in str(error):
                        raise _object_array_error(path) from error
                    raise
    if len(arrays) > 1:
        arrays = {key: array for key, array in arrays.items() if array.ndim == n_dimensions}
    if len(arrays) != 1:
        problem = (
            f"has no array {wanted!r}" if wanted else f"has {len(arrays)} arrays of {n_dimensions} dimensions"
        )
        raise ReadError(f"{path} {problem}, but {format_names(names)}", f"name one of them with {option}")
    return next(iter(arrays.values()))


def _read_sparse(path: Path) -> Any:
    """Read the sparse matrix that SciPy's save_npz wrote to an .npz file.

    If the file contains no sparse matrix, return None.
    """
    with explain_read_errors(path), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        names = {entry.removesuffix(".npy") for entry in archive.namelist()}
        if {"format", "shape", "data"} <= names:
            return sp.load_npz(path)
        if {"indptr", "indices", "shape", "data"} <= names:
            with np.load(path, allow_pickle=False) as arrays:
                parts = (arrays["data"], arrays["indices"], arrays["indptr"])
                return sp.csr_array(parts, tuple(arrays["shape"]))
    return None


def _read_label_column(table: Table, column: str | None) -> Array:
    """Read a column of labels of any type.

    If ``column`` is None, read the only column. If there are several columns, read the column ``label``.
    """
    if column is None:
        index = find_index_columns(table)
        names = [name for name in table.names if name not in index] or table.names
        column = names[0] if len(names) == 1 else "label"
        if column not in table.names:
            raise ReadError(
                f"{table.path} has no column 'label', but {format_names(names)}", "name one with --label-column"
            )
    values = table.read([column])[column]
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if table.is_csv and pa.types.is_binary(values.type):  # Arrow infers binary for text that is not UTF-8
        table.read([column], {column: pa.string()})  # raises an error that contains the row number
    if values.null_count:
        raise _null_error(table.path, column, values)
    labels: Array = values.to_numpy()
    return labels


def _read_features(table: Table, columns: list[str]) -> Array:
    """Read columns of numbers, or one column of lists, as an array with one row per point."""
    if table.is_csv:
        content = table.read(columns, {column: feature_type(table, column) for column in columns})
        parts = iter([(content.num_rows, content)])
    else:
        parts = table.read_row_groups(columns)
    X, row = np.empty((0, 0)), 0
    for n_rows, part in parts:
        values = _to_array(table.path, columns, part, row, X.shape[1] if row else None)
        if row == 0:
            X = empty_maybe_mapped((n_rows, values.shape[1]), values.dtype)
        X[row : row + len(values)] = values
        row += len(values)
    if not row:
        raise ReadError(f"{table.path} has no rows", "pass a file with at least one")
    return X


def _to_array(path: Path, columns: list[str], part: Any, first_row: int, width: int | None) -> Array:
    """Convert some rows of a table to an array with one row per point.

    ``first_row`` is the row number, in the file, of the first of these rows. ``width`` is the length of the lists
    in earlier rows, if known.
    """
    for column in columns:
        kind = part[column].type
        if not is_numeric(kind) and not (is_list_of_numbers(kind) and len(columns) == 1):
            raise ReadError(
                f"{path} has no numbers in column {column!r}, but {kind}",
                "name only columns of numbers, or one column of lists of numbers",
            )
        if part[column].null_count:
            raise _null_error(path, column, part[column], first_row)
    if is_list_of_numbers(part[columns[0]].type):
        return rows_of_lists(part[columns[0]], f"column {columns[0]!r} of {path}", first_row, width)
    dtypes = [
        np.dtype(np.float64 if pa.types.is_decimal(kind) else kind.to_pandas_dtype())
        for kind in (part[column].type for column in columns)
    ]
    X = np.empty((part.num_rows, len(columns)), np.result_type(*dtypes))
    for j, column in enumerate(columns):
        X[:, j] = part[column].to_numpy()
    return X


def _null_error(path: Path, column: str, values: Any, first_row: int = 0) -> ReadError:
    row = first_row + int(values.is_null().to_numpy().argmax())
    return ReadError(
        f"{path} has {values.null_count} empty cells in column {column!r}, the first in row {row} (from 0)",
        "fill in values, or drop such rows",
    )
