"""Convert tables to arrays: tables of pandas, polars, Arrow, or a library that exports Arrow, such as DuckDB.

Each row of a table is a point. The table has columns of numbers, or a single column of vectors. A library is
imported only if the given table belongs to it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._validation import release

Array = npt.NDArray[Any]


def to_array(X: Any) -> Any:
    """Convert a table to an array or SciPy sparse matrix; return other objects unchanged.

    Missing entries raise an error or become NaN. The later check for finite numbers rejects NaN.
    """
    if isinstance(X, np.ndarray):
        if isinstance(X, np.matrix):
            raise TypeError("X is a numpy.matrix, which is not supported: pass np.asarray(X)")
        if np.ma.is_masked(X):
            raise TypeError("X is a masked array with missing values: pass X.filled(value), or drop such rows")
        return np.asarray(X) if isinstance(X, np.ma.MaskedArray) else X
    if sp.issparse(X) or isinstance(X, list | tuple):
        return X
    if _is_instance(X, "pandas", "DataFrame", "Series"):
        return _from_pandas(X)
    if _is_instance(X, "polars", "DataFrame", "Series"):
        return _from_arrow(X.to_arrow())
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _from_arrow(X)
    return X


def holds_vectors(X: Any, array: Any) -> bool:
    """Return whether ``X`` is a table with a single column of vectors, given its conversion to ``array``.

    The columns of ``array`` then have no names.
    """
    return not hasattr(X, "shape") or len(X.shape) < 2 or X.shape[1] != array.shape[1]


def rows_of_lists(values: Any, where: str, first: int = 0, width: int | None = None) -> Array:
    """Convert an Arrow column of lists of numbers to an array with one row per list.

    Error messages contain ``where``, the name of the column, and count rows from ``first``. Each list must have
    ``width`` numbers. By default, it must be as long as the first list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if values.null_count:
        row = first + int(pc.is_null(values).to_numpy().argmax())
        raise ValueError(f"{where} has no vector in row {row}: fill or drop it")
    lengths = pc.list_value_length(values).to_numpy()
    if not len(lengths):
        return np.empty((0, width or 0))
    width = int(lengths[0]) if width is None else width
    if (lengths != width).any():
        row = int((lengths != width).argmax())
        raise ValueError(
            f"{where} has {width} numbers in its first row, but {lengths[row]} in row {first + row}: points need "
            "the same number of features"
        )
    kind = values.type.value_type
    X = np.empty((len(values), width), np.float64 if pa.types.is_decimal(kind) else kind.to_pandas_dtype())
    row = 0
    for chunk in values.chunks:  # chunk by chunk: one large chunk could exceed Arrow's 32-bit offsets
        numbers = chunk.flatten()
        if numbers.null_count:
            empty = first + row + int(numbers.is_null().to_numpy(zero_copy_only=False).argmax()) // width
            raise ValueError(f"{where} has an empty entry in row {empty}: fill or drop it")
        X[row : row + len(chunk)] = numbers.to_numpy(zero_copy_only=False).reshape(len(chunk), width)
        row += len(chunk)
    return X


def is_list(kind: Any) -> bool:
    """Return whether an Arrow type is one of the types of lists."""
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    )


def _is_instance(X: Any, library: str, *names: str) -> bool:
    """Return whether ``X`` is an instance of a library's class, without importing the library."""
    module = sys.modules.get(library)
    return module is not None and isinstance(X, tuple(getattr(module, name) for name in names))


def _from_pandas(X: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    frame = X.to_frame() if isinstance(X, pd.Series) else X
    dtypes = list(frame.dtypes)
    if X.ndim == 2 and dtypes and all(isinstance(dtype, pd.SparseDtype) for dtype in dtypes):
        return X.sparse.to_coo()
    first = frame.iat[0, 0] if len(dtypes) == 1 and len(frame) else None
    has_vectors = isinstance(first, list | tuple | np.ndarray) and np.ndim(first) == 1
    has_extensions = any(isinstance(dtype, pd.api.extensions.ExtensionDtype) for dtype in dtypes)
    if has_vectors or (has_extensions and X.ndim == 2):
        return _from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    return np.asarray(X)


def _from_arrow(X: Any) -> Any:
    import pyarrow as pa

    if isinstance(X, pa.Array | pa.ChunkedArray):
        X = pa.table({"X": X})
    table = X if isinstance(X, pa.Table) else pa.table(X)
    if table.num_columns == 1:
        column, kind = table.column(0), table.schema.field(0).type
        if is_list(kind):
            return release(rows_of_lists(column, f"column {table.schema.names[0]!r} of X"))
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if column.null_count:
            row = int(column.is_null().to_numpy().argmax())
            raise ValueError(f"X has no number in row {row} of column {name!r}: fill or drop such rows")
    if not table.num_columns:
        return np.empty((table.num_rows, 0))
    return release(np.column_stack([column.to_numpy() for column in table.columns]))
