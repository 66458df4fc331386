"""Read the input of ``agglo fit``: points, known classes, constraints and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._validation import is_read_only, release
from agglo.evaluation import metrics
from agglo.io.columns import is_text
from agglo.io.files import ReadError, file_format
from agglo.io.points import read_labels, read_points
from agglo.io.tables import CsvOptions, Table, quote_name
from agglo.neighbors.sparse import check_sparse
from agglo.points.points import check_points
from agglo.rounds.constraints import check_constraints


@dataclass(frozen=True, eq=False)
class Data:
    """The input of ``agglo fit``: points, known classes, constraints and weights."""

    X: Any
    """The points: a read-only array, or a SciPy sparse matrix."""
    y: npt.NDArray[np.int32] | None
    """The known class of each point. If the classes are unknown, it is None."""
    source: dict[str, Any]
    """The names of the input files and columns, as stored in ``run.json``."""
    constraints: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments to pass to ``fit``: must_link, cannot_link, sample_weight."""


def read_data(
    path: Path,
    label_path: Path | None = None,
    label_column: str | None = None,
    *,
    columns: list[str] | None = None,
    drop: list[str] | None = None,
    array: str | None = None,
    csv: CsvOptions | None = None,
    constraints: Mapping[str, Path | None] | None = None,
) -> Data:
    """Read and validate points from a file; read classes and constraints from the other files, if any."""
    if label_path is not None and label_path.exists() and path.exists() and label_path.samefile(path):
        if label_column is None:
            raise ValueError(
                f"{path} holds points and known classes: name the column of classes with --label-column, "
                "so that it is not used as a feature"
            )
        label_path = None
    inside = label_column if label_path is None else None
    points = read_points(path, columns=columns, drop=drop or (), array=array, label_column=inside, csv=csv)
    try:
        X = points.X
        if sp.issparse(X):
            check_sparse(X)
        else:
            X = check_points(X, compact=True)
            X = X if is_read_only(X) else release(X)  # fit copies points unless they are read-only
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be clustered: {error}") from error
    labels = points.labels if label_path is None else read_labels(label_path, column=label_column, csv=csv)
    y = None if labels is None else encode_classes(labels, X.shape[0])
    files = {name: file for name, file in (constraints or {}).items() if file is not None}
    given: dict[str, Any] = {
        name: read_weights(file, csv) if name == "sample_weight" else read_groups(file, csv)
        for name, file in files.items()
    }
    check_constraints(X.shape[0], **given)
    source = {
        "path": str(path),
        "columns": points.columns,
        "classes_from": str(label_path or inside or "") or None,
    }
    return Data(X, y, source | {name: str(file) for name, file in files.items()}, given)


def check_cosine(path: Path, data: Data, csv: CsvOptions | None = None) -> None:
    """Raise if the points have one column only: their cosines are 1 or -1 and say nothing about the clusters."""
    if data.X.shape[1] != 1:
        return
    columns, given = data.source["columns"], data.source["classes_from"]
    cause = f"{path} has points of one column{f' ({columns[0]!r})' if columns else ''}"
    remedy = "pass more columns, or a metric of distances, such as --metric euclidean"
    if columns:
        fields = Table(path, file_format(path), csv).schema
        texts = [field.name for field in fields if is_text(field.type) and field.name != given]
        if texts:
            remedy += f"; to cluster texts, run agglo text {path} --column {quote_name(texts[0])}"
    raise ReadError(f"{cause}, whose cosines are all 1 or -1", remedy)


def read_weights(path: Path, csv: CsvOptions | None = None) -> npt.NDArray[Any]:
    """Read the weight of each point from the only column of a file, or from the column ``label``."""
    try:
        return read_labels(path, csv=csv)
    except ReadError as error:
        raise ReadError(error.cause, "pass a file with one column, the weight of each point") from error


def read_groups(path: Path, csv: CsvOptions | None = None) -> npt.NDArray[np.int64]:
    """Read groups of points from a file: one row per group, with the indices of the points in the group."""
    remedy = "pass a table with one row per group: the numbers of the rows of DATA in it, from 0"
    try:
        groups = read_points(path, csv=csv, row_numbers=True).X
    except ReadError as error:
        raise ReadError(error.cause, remedy) from error
    if sp.issparse(groups) or groups.ndim != 2 or groups.dtype.kind not in "iufb" or not np.isfinite(groups).all():
        raise ReadError(f"{path} holds no groups of points", remedy)
    if not np.array_equal(groups, groups.astype(np.int64)):
        raise ReadError(f"{path} holds no groups of points, but numbers that are not whole", remedy)
    return np.asarray(groups.astype(np.int64))


def encode_classes(labels: npt.NDArray[Any], n_points: int) -> npt.NDArray[np.int32]:
    """Encode known classes as integers from 0; raise an error unless at least two points share a class."""
    if len(labels) != n_points:
        raise ValueError(f"there are {len(labels)} known classes for {n_points} points: pass one per point")
    codes = metrics.encode_labels("labels", labels)
    if int(codes.max()) + 1 == n_points:
        raise ValueError(
            f"no two of {n_points} points are of the same known class, so there is nothing to score: "
            "pass the classes of the points, not their names"
        )
    return codes
