"""Points and labels in files: .npy, .npz, .parquet, .csv and .tsv, as the command line reads and writes them."""

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
import pyarrow.parquet as pq
import scipy.sparse as sp

from agglo.io.atomic import replacing, write_array
from agglo.io.tables import FORMATS, Array, CsvOptions, ReadError, Table, check_row_numbers, listed, reading

LABEL_FORMATS = (".parquet", ".csv", ".npy")


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
    drop: Sequence[str] = (),
    array: str | None = None,
    label_column: str | None = None,
    csv: CsvOptions | None = None,
    row_numbers: bool = False,
) -> Points:
    r"""Read the points in a file.

    Parameters
    ----------
    path : path
        A .npy file is mapped into memory, not read. An .npz file may hold a sparse matrix, as
        ``scipy.sparse.save_npz`` writes it; else its array ``X`` is taken, or the only table of numbers.
        Tables (.parquet, .csv, .tsv) give their numeric columns, or their one column of lists of numbers. The
        index of a data frame and columns without any number are left out with a warning. A .parquet file is read
        by row groups, into a temporary file if its points would take more than a quarter of the memory.
    columns : sequence of str, optional
        The columns of a table to take, in this order. By default, a column that only numbers the rows is an error.
    drop : sequence of str
        Columns of a table to leave out.
    array : str, optional
        The array of an .npz file to take.
    label_column : str, optional
        The column of a table, or the array of an .npz file, that holds the class of each point.
    csv : CsvOptions, optional
        How a .csv or .tsv file is written: its encoding, its delimiter, and whether its first line names the
        columns; otherwise they are f0, f1, and so on.
    row_numbers : bool, default=False
        Whether the points may have a column that numbers the rows.

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
    name, form = _opened(path)
    if (columns is not None or drop) and form in (".npy", ".npz"):
        raise ReadError(f"{name} has no columns with names to choose from", "leave out --columns and --drop")
    if array is not None and form != ".npz":
        raise ReadError(f"{name} is no .npz file, so it has no array {array!r}", "leave out --array")
    if form == ".npy":
        if label_column is not None:
            raise ReadError(
                f"{name} holds one array and no column {label_column!r}",
                "pass a file of the classes with --labels",
            )
        return Points(_npy(name), None, None)
    if form == ".npz":
        chosen = _sparse(name) if array is None else None
        if chosen is None:
            chosen = _chosen_array(name, array, "X", 2, "--array")
        labels = None if label_column is None else _chosen_array(name, label_column, "", 1, "--label-column")
        return Points(chosen, None, labels)
    table = Table(name, form, csv)
    used = table.features(columns, label_column, drop)
    labels = None if label_column is None else table.labels(label_column)
    X = table.points(used)
    if columns is None and not row_numbers and len(table.names) > 1 and len(used) == X.shape[1]:
        check_row_numbers(name, used, X)
    return Points(X, used, labels)


def read_labels(
    path: str | os.PathLike[str], *, column: str | None = None, csv: CsvOptions | None = None
) -> Array:
    """Read the labels in a file, one per point.

    Parameters
    ----------
    path : path
        A file as of :func:`read_points`.
    column : str, optional
        The column of a table, or the array of an .npz file. By default the only one, or else the column
        ``label`` or the array ``y``.
    csv : CsvOptions, optional
        How a .csv or .tsv file is written.
    """
    name, form = _opened(path)
    if form == ".npy":
        if column is not None:
            raise ReadError(f"{name} holds one array and no column {column!r}", "leave out --label-column")
        labels = _npy(name)
    elif form == ".npz":
        labels = _chosen_array(name, column, "y", 1, "--label-column")
    else:
        labels = Table(name, form, csv).labels(column)
    if labels.ndim != 1:
        raise ReadError(
            f"{name} holds an array of shape {labels.shape}, but labels are one-dimensional",
            "pass one label per point",
        )
    return labels


def read_rows(path: str | os.PathLike[str], csv: CsvOptions | None = None) -> Any:
    """Read all columns of a .parquet, .csv or .tsv file, as a pyarrow.Table."""
    name, form = _opened(path)
    if form in (".npy", ".npz"):
        raise ReadError(f"{name} has no columns with names", "pass a .parquet, .csv or .tsv file")
    table = Table(name, form, csv)
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
            write_array(labels, partial)
            return
        table = pa.table({"label": labels})
        with partial.open("wb") as file:  # Arrow cannot open a name that is not UTF-8
            if form == ".csv":
                file.write(b"label\n")  # Arrow quotes it, and only its newest versions can be told not to
                pa.csv.write_csv(table, file, pa.csv.WriteOptions(include_header=False))
            else:
                pq.write_table(table, file, compression="zstd", write_page_checksum=True)


def _opened(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """Return the path and its format, once it is known to be a file that can be opened."""
    name = Path(path)
    form = name.suffix.lower()
    if not name.exists():
        raise FileNotFoundError(f"{name} cannot be read: there is no such file; check its name")
    if not name.is_file():
        raise ReadError(f"{name} cannot be read: it is a folder or a device", "pass the name of a file")
    if form not in FORMATS:
        known = ", ".join(FORMATS)
        raise ReadError(
            f"{name} cannot be read: files whose names end in {form!r} are not supported"
            if form
            else f"{name} cannot be read: its name does not tell its format",
            f"pass one of {known}; decompress .gz and .zip files first",
        )
    with name.open("rb"):  # not allowed, and the like: an error of its own
        return name, form


def _npy(name: Path) -> Array:
    with reading(name):
        try:
            array = np.lib.format.open_memmap(name, mode="r")
        except ValueError as error:
            if "Python objects" in str(error):
                raise _objects(name) from error
            raise
        size = array.offset + array.nbytes
        if name.stat().st_size != size:  # a changed shape would go unnoticed: NumPy allows a file to be longer
            raise ValueError(f"it has {name.stat().st_size} bytes, and an array of {array.shape} takes {size}")
        return array


def _objects(name: Path) -> ReadError:
    return ReadError(
        f"{name} cannot be read: it holds Python objects (dtype object), which are never unpickled",
        "save numbers, such as numpy.save(path, X.astype(numpy.float32))",
    )


def _chosen_array(name: Path, wanted: str | None, usual: str, dimensions: int, option: str) -> Array:
    """The array of an .npz file that is wanted, or else has the usual name or is the only one that fits."""
    with reading(name), name.open("rb") as file, zipfile.ZipFile(file) as archive:
        names = [entry.removesuffix(".npy") for entry in archive.namelist()]
        found = [wanted or usual] if (wanted or usual) in names else names if wanted is None else []
        arrays: dict[str, Array] = {}
        for key in found:
            with archive.open(key + ".npy") as member:
                try:
                    arrays[key] = np.lib.format.read_array(member, allow_pickle=False)
                except ValueError as error:
                    if "Object arrays" in str(error):
                        raise _objects(name) from error
                    raise
    if len(arrays) > 1:
        arrays = {key: array for key, array in arrays.items() if array.ndim == dimensions}
    if len(arrays) != 1:
        problem = f"has no array {wanted!r}" if wanted else f"has {len(arrays)} arrays of {dimensions} dimensions"
        raise ReadError(f"{name} {problem}, but {listed(names)}", f"name one of them with {option}")
    return next(iter(arrays.values()))


def _sparse(name: Path) -> Any:
    """The sparse matrix of an .npz file, as SciPy's save_npz writes it; None if there is none."""
    with reading(name), name.open("rb") as file, zipfile.ZipFile(file) as archive:
        names = {entry.removesuffix(".npy") for entry in archive.namelist()}
        if {"format", "shape", "data"} <= names:
            return sp.load_npz(name)
        if {"indptr", "indices", "shape", "data"} <= names:
            with np.load(name, allow_pickle=False) as arrays:
                parts = (arrays["data"], arrays["indices"], arrays["indptr"])
                return sp.csr_array(parts, tuple(arrays["shape"]))
    return None
