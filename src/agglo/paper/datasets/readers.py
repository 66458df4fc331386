"""Load the paper's datasets, and similar datasets, from their public files."""

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

from agglo.paper.datasets.dataset import Dataset, encode_classes

Location = str | os.PathLike[str]

_COVTYPE_COLUMNS = 54
_ALOI_COLUMNS = 128
_SPARSE = ("data", "indices", "indptr", "shape")


def load_covtype(path: Location) -> Dataset:
    r"""Load the forest cover types of the UCI repository, from ``covtype.data`` or ``covtype.data.gz``.

    The file has 581,012 lines. Each line has 54 integers and the cover type. The cover types 1 to 7 become the
    classes 0 to 6. The integers are 10 quantities in different units, and 44 indicators (0 or 1) of 4 wilderness
    areas and 40 soil types. The paper reports 500K points, and does not describe how columns are scaled. Use
    ``prepare("standard")``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from agglo.paper.datasets import load_covtype
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "covtype.data"
    ...     _ = path.write_text("\n".join(",".join(["1"] * 54 + [kind]) for kind in "27"))
    ...     load_covtype(path)
    Dataset(covtype: 2 points, 54 columns, 2 classes, cosine)
    """
    name = _check_file(path)
    with _read_errors(name):
        rows = pa.csv.read_csv(name, pa.csv.ReadOptions(autogenerate_column_names=True))
    _expect(name, rows.num_columns == _COVTYPE_COLUMNS + 1, f"{rows.num_columns} columns", "54 and the cover type")
    values = _to_matrix(name, rows)
    return Dataset("covtype", values[:, :-1], encode_classes(values[:, -1]))


def load_aloi(path: Location) -> Dataset:
    r"""Load the Amsterdam Library of Object Images, from ``aloi`` or ``aloi.scale`` of the LIBSVM collection.

    The file has 108,000 lines. Each line has a class from 0 to 999, and the nonzero values of 128 color features
    as ``index:value``. In ``aloi.scale``, each column is scaled to the range 0 to 1. The paper compares points by
    cosine, so call ``prepare()``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from agglo.paper.datasets import load_aloi
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "aloi"
    ...     _ = path.write_text("0 1:0.5 128:1\n7 2:0.25\n")
    ...     load_aloi(path)
    Dataset(aloi: 2 points, 128 columns, 2 classes, cosine)
    """
    name = _check_file(path)
    with _read_errors(name):
        X, y = sklearn.datasets.load_svmlight_file(name, dtype=np.float32)
    _expect(name, X.shape[1] <= _ALOI_COLUMNS, f"features up to {X.shape[1]}", f"at most {_ALOI_COLUMNS}")
    X.resize(X.shape[0], _ALOI_COLUMNS)  # the file omits zeros, so the last columns may be missing
    return Dataset("aloi", X.toarray(), encode_classes(y))


def load_tsv(path: Location) -> Dataset:
    r"""Load points from the tab-separated format of Perch's authors: a name, a class and numbers per line.

    The authors' ILSVRC features have this format. The Speaker dataset also has this format, but it is not public.
    It consists of 36,572 i-vectors of the NIST 2014 challenge, with one class per speaker.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from agglo.paper.datasets import load_tsv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pairs.tsv"
    ...     _ = path.write_text("first\ta\t0.5\t1.0\nsecond\tb\t1.5\t2.0\n")
    ...     load_tsv(path)
    Dataset(pairs: 2 points, 2 columns, 2 classes, cosine)
    """
    name = _check_file(path)
    with _read_errors(name):
        rows = pa.csv.read_csv(
            name, pa.csv.ReadOptions(autogenerate_column_names=True), pa.csv.ParseOptions(delimiter="\t")
        )
    _expect(name, rows.num_columns > 2, f"{rows.num_columns} columns", "a name, a class and numbers")
    y = rows.column(1).to_numpy()
    return Dataset(name.stem, _to_matrix(name, rows.drop_columns(rows.column_names[:2])), encode_classes(y))


def load_features(path: Location, labels: Location) -> Dataset:
    """Load features and classes from two .npy files, for example image features of ILSVRC 2012.

    The paper uses the last layer of Inception, with 2,048 columns. ILSVRC (Sm.) has 50 images of each of the 1,000
    classes. ILSVRC (Lg.) has all 1.28 million images. The paper compares points by cosine, so call ``prepare()``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from agglo.paper.datasets import load_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", np.eye(3))
    ...     np.save(f"{folder}/y.npy", [0, 0, 1])
    ...     load_features(f"{folder}/X.npy", f"{folder}/y.npy")
    Dataset(X: 3 points, 3 columns, 2 classes, cosine)
    """
    name = _check_file(path)
    with _read_errors(name):
        X = np.load(name, mmap_mode="r", allow_pickle=False)
    with _read_errors(_check_file(labels)):
        y = np.load(labels, allow_pickle=False)
    _expect(Path(labels), y.ndim == 1, f"an array of shape {y.shape}", "a class for each point")
    return Dataset(name.stem, X, encode_classes(y))


def load_iris() -> Dataset:
    """Load Iris from scikit-learn: 150 flowers, 4 columns in centimetres, 3 species.

    Examples
    --------
    >>> from agglo.paper.datasets import load_iris
    >>> load_iris()
    Dataset(iris: 150 points, 4 columns, 3 classes, euclidean)
    """
    X, y = sklearn.datasets.load_iris(return_X_y=True)
    return Dataset("iris", X, y.astype(np.int64), "euclidean")


def load_wine() -> Dataset:
    """Load Wine from scikit-learn: 178 wines, 13 columns with different units, 3 growers.

    Examples
    --------
    >>> from agglo.paper.datasets import load_wine
    >>> load_wine()
    Dataset(wine: 178 points, 13 columns, 3 classes, cosine)
    """
    X, y = sklearn.datasets.load_wine(return_X_y=True)
    return Dataset("wine", X, y.astype(np.int64))


def load_npz(path: Location) -> Dataset:
    r"""Load a dataset from a NumPy archive.

    The points are the array ``X``, or a sparse CSR matrix in the arrays ``data``, ``indices``, ``indptr`` and
    ``shape``. A sparse matrix is converted to a dense array. The optional array ``y`` has the classes. Arrays
    whose names start with ``y_`` become ``levels``. The optional array ``texts`` has strings, or UTF-8 bytes with
    one text per line. float16 values are converted to float32. The dataset gets the name of the file.

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
    name = _check_file(path)
    with _read_errors(name), np.load(name, allow_pickle=False) as archive:
        arrays: dict[str, npt.NDArray[Any]] = {key: archive[key] for key in archive.files}
    if "X" in arrays:
        X = arrays["X"]
    else:
        absent = [key for key in _SPARSE if key not in arrays]
        _expect(name, not absent, f"the arrays {', '.join(arrays)}", f"X, or {', '.join(_SPARSE)}")
        with _read_errors(name):
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(arrays["shape"])).toarray()
    levels = {
        key.removeprefix("y_"): encode_classes(values) for key, values in arrays.items() if key.startswith("y_")
    }
    return Dataset(
        name.stem,
        X.astype(np.float32) if X.dtype == np.float16 else X,
        encode_classes(arrays["y"]) if "y" in arrays else None,
        levels=levels,
        texts=_decode_texts(arrays.get("texts")),
    )


def _decode_texts(stored: npt.NDArray[Any] | None) -> tuple[str, ...] | None:
    if stored is None:
        return None
    if stored.dtype == np.uint8:
        return tuple(stored.tobytes().decode().split("\n"))
    return tuple(map(str, stored))


def _to_matrix(name: Path, rows: Any) -> npt.NDArray[np.float32]:
    X = np.empty((rows.num_rows, rows.num_columns), np.float32)
    for j, column in enumerate(rows.columns):
        kind = column.type
        fits = (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and column.null_count == 0
        _expect(name, fits, f"entries that are not numbers in feature {j}", "only numbers")
        X[:, j] = column.to_numpy()
    return X


def _check_file(path: Location) -> Path:
    name = Path(path)
    if not name.is_file():
        raise FileNotFoundError(
            f"{name} cannot be read: there is no such file; download it first, or check its name"
        )
    return name


def _expect(name: Path, holds: bool, found: str, expected: str) -> None:
    if not holds:
        raise ValueError(
            f"{name} has {found}, but {expected} was expected: check that it is the right file, and complete"
        )


@contextmanager
def _read_errors(name: Path) -> Iterator[None]:
    """Convert errors of the file readers to ``ValueError`` with the name of the file."""
    try:
        yield
    except (ValueError, EOFError, OSError, IndexError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{name} cannot be read: it is damaged, incomplete or of another format ({error}); download it again"
        ) from error
