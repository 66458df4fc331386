"""Loaders of the paper's sets, and of others like them, from their public files on disk."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import scipy.sparse as sp
import sklearn.datasets

from agglo.paper.datasets.dataset import Dataset

Location = str | os.PathLike[str]

_COVTYPE_COLUMNS = 54
_ALOI_COLUMNS = 128
_SPARSE = ("data", "indices", "indptr", "shape")


def load_covtype(path: Location) -> Dataset:
    """The forest cover types of the UCI repository, from ``covtype.data`` or ``covtype.data.gz``.

    581,012 lines of 54 integers (10 quantities in different units, 4 wilderness areas and 40 soil types as 0 or
    1) and the cover type, 1 to 7, which becomes the class 0 to 6. The paper says 500K points, and not how
    columns were scaled; use ``prepared("standard")``, which brings the quantities to one unit.
    """
    name = _file(path)
    with _reading(name):
        rows = pa.csv.read_csv(name, pa.csv.ReadOptions(autogenerate_column_names=True))
    _expect(name, rows.num_columns == _COVTYPE_COLUMNS + 1, f"{rows.num_columns} columns", "54 and the cover type")
    values = _numbers(name, rows)
    return Dataset("covtype", values[:, :-1], _codes(values[:, -1]))


def load_aloi(path: Location) -> Dataset:
    """The Amsterdam Library of Object Images, from ``aloi`` or ``aloi.scale`` of the LIBSVM collection.

    108,000 lines of a class, 0 to 999, and 128 color features as ``index:value``, those of 0 left out.
    ``aloi.scale`` has each column divided so that it is within 0 and 1. As the paper compares by cosine, use
    ``prepared()``.
    """
    name = _file(path)
    with _reading(name):
        X, y = sklearn.datasets.load_svmlight_file(name, dtype=np.float32)
    _expect(name, X.shape[1] <= _ALOI_COLUMNS, f"features up to {X.shape[1]}", f"at most {_ALOI_COLUMNS}")
    X.resize(X.shape[0], _ALOI_COLUMNS)  # the last may be 0 for all points
    return Dataset("aloi", X.toarray(), _codes(y))


def load_tsv(path: Location) -> Dataset:
    """Points in the format of the authors of Perch: lines of a name, a class and the numbers, between tabs.

    The Speaker set (36,572 i-vectors of the NIST 2014 challenge, a class a speaker; not public), the ILSVRC
    features of that collection and its separated sets come so.
    """
    name = _file(path)
    with _reading(name):
        rows = pa.csv.read_csv(
            name, pa.csv.ReadOptions(autogenerate_column_names=True), pa.csv.ParseOptions(delimiter="\t")
        )
    _expect(name, rows.num_columns > 2, f"{rows.num_columns} columns", "a name, a class and numbers")
    y = rows.column(1).to_numpy()
    return Dataset(name.stem, _numbers(name, rows.drop_columns(rows.column_names[:2])), _codes(y))


def load_features(path: Location, labels: Location) -> Dataset:
    """Features and classes from two .npy files, such as the last layer of a network over ILSVRC 2012.

    The paper uses Inception (2,048 columns): ILSVRC (Sm.) are 50 images of each of the 1,000 classes, ILSVRC
    (Lg.) all 1.28 million. As it compares by cosine, use ``prepared()``.
    """
    name = _file(path)
    with _reading(name):
        X = np.load(name, mmap_mode="r", allow_pickle=False)
    with _reading(_file(labels)):
        y = np.load(labels, allow_pickle=False)
    _expect(Path(labels), y.ndim == 1, f"an array of shape {y.shape}", "a class for each point")
    return Dataset(name.stem, X, _codes(y))


def load_iris() -> Dataset:
    """The 150 flowers that come with scikit-learn (4 columns, 3 species), in centimetres."""
    X, y = sklearn.datasets.load_iris(return_X_y=True)
    return Dataset("iris", X, y.astype(np.int64), "euclidean")


def load_wine() -> Dataset:
    """The 178 wines that come with scikit-learn (13 columns of different units, 3 growers)."""
    X, y = sklearn.datasets.load_wine(return_X_y=True)
    return Dataset("wine", X, y.astype(np.int64))


def load_npz(path: Location) -> Dataset:
    r"""A set from a NumPy archive.

    Its arrays are ``X``, or ``data``, ``indices``, ``indptr`` and ``shape`` of a compressed sparse matrix, which
    is made dense; optionally ``y``, the classes; others that start with ``y_``, which become ``levels``; and
    ``texts``, either strings or the UTF-8 bytes of lines. Half precision becomes float32. The name of the file
    is that of the set.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from agglo.paper.datasets import load_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/corners.npz", X=np.eye(3, dtype=np.float16), y=[4, 4, 7])
    ...     load_npz(f"{folder}/corners.npz")
    Dataset(corners: 3 points, 3 columns, 2 classes, cosine)
    """
    name = _file(path)
    with _reading(name), np.load(name, allow_pickle=False) as archive:
        arrays: dict[str, npt.NDArray[Any]] = {key: archive[key] for key in archive.files}
    if "X" in arrays:
        X = arrays["X"]
    else:
        absent = [key for key in _SPARSE if key not in arrays]
        _expect(name, not absent, f"the arrays {', '.join(arrays)}", f"X, or {', '.join(_SPARSE)}")
        with _reading(name):
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(arrays["shape"])).toarray()
    levels = {key.removeprefix("y_"): _codes(values) for key, values in arrays.items() if key.startswith("y_")}
    return Dataset(
        name.stem,
        X.astype(np.float32) if X.dtype == np.float16 else X,
        _codes(arrays["y"]) if "y" in arrays else None,
        levels=levels,
        texts=_texts(arrays.get("texts")),
    )


def _texts(stored: npt.NDArray[Any] | None) -> tuple[str, ...] | None:
    if stored is None:
        return None
    if stored.dtype == np.uint8:
        return tuple(stored.tobytes().decode().split("\n"))
    return tuple(map(str, stored))


def _codes(y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Classes as 0, 1, ... in their sorted order."""
    return np.asarray(np.unique(y, return_inverse=True)[1], np.int64)


def _numbers(name: Path, rows: Any) -> npt.NDArray[np.float32]:
    X = np.empty((rows.num_rows, rows.num_columns), np.float32)
    for j, column in enumerate(rows.columns):
        kind = column.type
        fits = (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and column.null_count == 0
        _expect(name, fits, f"entries that are no numbers in column {j} of them", "numbers alone")
        X[:, j] = column.to_numpy()
    return X


def _file(path: Location) -> Path:
    name = Path(path)
    if not name.is_file():
        raise FileNotFoundError(
            f"{name} cannot be read: there is no such file; download it first, or check its name"
        )
    return name


def _expect(name: Path, holds: bool, found: str, expected: str) -> None:
    if not holds:
        raise ValueError(f"{name} has {found}, but {expected} was expected: is it another file, or cut short?")


@contextmanager
def _reading(name: Path) -> Iterator[None]:
    """What readers say of a broken file, as one kind of error."""
    try:
        yield
    except (ValueError, EOFError, OSError, IndexError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{name} cannot be read: it is damaged, cut short or of another format ({error})"
        ) from error
