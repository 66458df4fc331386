"""Save and load a run (the result of one clustering) as a folder with the tree, the labels and a JSON record.

The record contains the parameters, the names and hashes of the run's files, and a checksum of the record itself.
All files are replaced atomically; see :mod:`agglo.io.atomic`. Files that the record does not list are not part of
the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from agglo.io import atomic
from agglo.io.files import add_checksum, has_valid_checksum, hash_file
from agglo.io.points import write_labels
from agglo.tree.hierarchy import Hierarchy

T = TypeVar("T")
Write = Callable[[Path], None]

TREE = "tree.parquet"
LABELS = "labels.parquet"
RECORD = "run.json"
PICTURE = "picture.png"
ITEMS = "items.arrow"
NAMES = "names.arrow"
ROWS = "rows.parquet"
CLUSTERS = "clusters.parquet"
ROWS_CSV = "rows.csv"
CLUSTERS_CSV = "clusters.csv"
NAMER = "namer.json"
# Files of a saved model, see agglo.estimators.model_folder.
MODEL = "model.json"
GRAPH_TREE = "graph_tree.parquet"
GRAPH = "graph.npz"
KNOWN = "known.npz"
POINTS = "points.npy"
SPARSE_POINTS = "points.npz"

RECORDS = (MODEL, RECORD)
MODEL_FILES = {TREE, GRAPH_TREE, GRAPH, KNOWN, POINTS, SPARSE_POINTS}
FILES = {LABELS, PICTURE, ITEMS, NAMES, ROWS, CLUSTERS, ROWS_CSV, CLUSTERS_CSV, NAMER, *MODEL_FILES, *RECORDS}
_UNLISTED_FILES = {TREE, LABELS, ITEMS, NAMES}  # files of early runs, whose record lists no files
_REMEDY = {RECORD: "run agglo fit again", MODEL: "save the model again"}


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Raise if ``folder`` is not writable. Unless ``force`` is set, also raise if it has files but no run."""
    atomic.check_writable_folder(folder, FILES)
    if not folder.exists():
        return
    others = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".agglo-")]
    if others and not force and not _list_files(folder, RECORD):
        raise FileExistsError(
            f"will not write to {folder}: it is not empty and holds no run of agglo "
            f"(it has {sorted(others)[0]!r}); choose another folder, or pass --force to add the run to it"
        )


def save_run(
    folder: Path,
    tree: Hierarchy,
    labels: npt.NDArray[np.int64],
    record: Mapping[str, Any],
    picture: Write | None = None,
    extra: Mapping[str, Write] | None = None,
    model: tuple[Mapping[str, Write], Mapping[str, Any]] | None = None,
) -> list[Path]:
    """Write all files of a run to ``folder`` atomically; return their paths.

    Files of an earlier run are replaced or deleted. Other files in ``folder`` stay. ``picture`` and the functions
    in ``extra`` write a file to a given path. ``model`` contains the functions that write the files of the fitted
    model, and the JSON record of the model; see :func:`agglo.estimators.model_folder.model_files`.
    """
    files: dict[str, Write] = {
        TREE: tree.save,
        LABELS: lambda path: write_labels(labels, path, form=".parquet"),
        **({PICTURE: picture} if picture else {}),
        **(extra or {}),
    }
    records = {RECORD: record}
    if model is not None:
        files |= model[0]
        records = {MODEL: model[1], RECORD: record}
    return write_folder(folder, files, records)


def write_folder(folder: Path, files: Mapping[str, Write], records: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Write ``files`` and JSON ``records`` to ``folder`` in place of the files of earlier runs; return the paths.

    The files are replaced atomically, the records last. Each record lists the names and hashes of its files.
    """
    names = [*files, *records]

    def list_obsolete_files() -> Iterable[str]:
        return (name for record in RECORDS for name in _list_files(folder, record))

    with atomic.replace_files(folder, names, list_obsolete_files) as temporary:
        for name, write in files.items():
            write(temporary / name)
        digests = {name: hash_file(temporary / name) for name in files}
        for name, record in records.items():
            listed = {file: digests[file] for file in files if name != MODEL or file in MODEL_FILES}
            text = json.dumps(add_checksum({**record, "files": listed}), indent=2, allow_nan=False)
            (temporary / name).write_text(text + "\n", encoding="utf-8")
    return [folder / name for name in names]


def _list_files(folder: Path, name: str) -> set[str]:
    """Return the file name of a JSON record and the names of the files that the record lists.

    If the record is missing or invalid, return an empty set.
    """
    try:
        record = load_record(folder, name)
    except ValueError:
        return set()
    if record is None or "agglo" not in record:
        return set()
    return {name} | (set(record.get("files", _UNLISTED_FILES)) & FILES)


@dataclass(frozen=True, eq=False)
class RunFiles:
    """The files of one run, as listed in the run's JSON record. ``name`` is the file name of the record."""

    folder: Path
    record: dict[str, Any] | None
    name: str = RECORD

    def find(self, file: str) -> Path | None:
        """Check the hash of a file and return its path, or None if the file is not part of the run."""
        path = atomic.resolve_file(self.folder, file)
        digests = None if self.record is None else self.record.get("files")
        if digests is None:  # there is no record, or an early version wrote it
            return path if path.is_file() else None
        if file not in digests:
            return None
        if not path.is_file():
            raise FileNotFoundError(
                f"{self.folder} is incomplete: {self.name} lists {file}, which is missing; {_REMEDY[self.name]}"
            )
        if hash_file(path) != digests[file]:
            raise ValueError(
                f"{path} is damaged, or belongs to another run than {self.name}: {_REMEDY[self.name]}"
            )
        return path

    def tree(self) -> Path:
        """Return the path of the tree file; raise if the folder contains none."""
        path = self.find(TREE)
        if path is None:
            raise FileNotFoundError(
                f"{self.folder} holds no run: there is no {TREE} in it; write one with agglo fit"
            )
        return path


def read_run(path: Path, read: Callable[[RunFiles], T]) -> T:
    """Call ``read`` with the files of the run in the folder ``path``; return the result of ``read``.

    If another process replaces the run during the call, ``read`` is called again. So files of two runs are never
    mixed.
    """

    def read_once() -> T:
        record = load_record(path)
        # If the folder contains only a saved model, use the record of the model.
        files = RunFiles(path, record) if record else RunFiles(path, load_record(path, MODEL), MODEL)
        return read(files)

    return atomic.read_consistently(path, RECORDS, read_once)


def load_run(path: Path) -> tuple[Hierarchy, dict[str, Any] | None]:
    """Load the tree and the record of a run from its folder.

    If ``path`` is a tree file, or a folder with only a saved model, the record is None.
    """
    if not path.exists():
        raise FileNotFoundError(f"cannot read {path}: there is no such folder or file; check its name")
    if not path.is_dir():
        return Hierarchy.load(path), None
    return read_run(
        path, lambda files: (Hierarchy.load(files.tree()), files.record if files.name == RECORD else None)
    )


def find_rows(path: Path, n_rows: int) -> npt.NDArray[np.int64] | slice:
    """Return the indices of the rows that belong to the points of a run, in a table of ``n_rows`` rows.

    A run on texts merges duplicates and leaves out empty texts. If the table has one row for each row of the run's
    input, select the first row of each distinct text. Otherwise, select all rows.
    """
    point = read_point_of_row(path)
    if point is None or len(point) != n_rows:
        return slice(None)
    distinct, first = np.unique(point, return_index=True)
    return first[distinct >= 0]


def read_point_of_row(path: Path) -> npt.NDArray[np.int64] | None:
    """Return the point of each input row of a run on texts, or -1 for a row without a text.

    If ``path`` is not the folder of a run on texts, return None: then each row is a point.
    """
    file = read_run(path, lambda files: files.find(ROWS)) if path.is_dir() else None
    if file is None:
        return None
    with file.open("rb") as opened:
        return np.asarray(pq.read_table(opened, columns=["point"])["point"].to_numpy())


def load_tree(path: Path) -> Hierarchy:
    """Load the tree of a run from its folder or from a tree file."""
    return load_run(path)[0]


def load_record(path: Path, name: str = RECORD) -> dict[str, Any] | None:
    """Load the JSON record ``name`` from the folder ``path``; return None if the file does not exist."""
    file = atomic.resolve_file(path, name)
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is damaged ({error}): {_REMEDY[name]}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{file} is damaged (it holds no JSON object): {_REMEDY[name]}")
    files = record.get("files", {})
    # All versions that list files also write a checksum.
    lacks_checksum = name == RECORD and "files" in record and "checksum" not in record
    if lacks_checksum or not has_valid_checksum(record) or not isinstance(files, dict):
        raise ValueError(f"{file} is damaged (its checksum does not match): {_REMEDY[name]}")
    return record
