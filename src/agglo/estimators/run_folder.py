"""A run on disk: a folder with the tree, its labels and a record of how they were made.

The record has a digest of each file of the run, and a checksum of itself. Files are switched together, see
:mod:`agglo.io.atomic`; a file in the folder that the record does not list is not part of the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from agglo.io import atomic as outputs
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
# Of a saved model, see agglo.estimators.model_folder.
MODEL = "model.json"
GRAPH_TREE = "graph_tree.parquet"
GRAPH = "graph.npz"
KNOWN = "known.npz"
POINTS = "points.npy"
SPARSE_POINTS = "points.npz"

RECORDS = (MODEL, RECORD)
FILES = {TREE, LABELS, PICTURE, ITEMS, NAMES, GRAPH_TREE, GRAPH, KNOWN, POINTS, SPARSE_POINTS, *RECORDS}
MODEL_FILES = {TREE, GRAPH_TREE, GRAPH, KNOWN, POINTS, SPARSE_POINTS}
_EARLY_FILES = {TREE, LABELS, ITEMS, NAMES}  # of runs whose record does not list them
_AGAIN = {RECORD: "run agglo fit again", MODEL: "save the model again"}


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Raise if a run cannot or should not be written to ``folder``, before any work is done for it."""
    outputs.check_folder(folder, FILES)
    if not folder.exists():
        return
    others = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".agglo-")]
    if others and not force and not _owned(folder, RECORD):
        raise FileExistsError(
            f"will not write to {folder}: it is not empty and no run of agglo's (it has {sorted(others)[0]!r}); "
            "choose another folder, or pass --force to add the run to it"
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
    """Write a run to ``folder``, all its files or none; return their names.

    Parameters
    ----------
    folder : Path
        Files of an earlier run in it are replaced or removed; other files stay.
    tree, labels, record
        The run.
    picture : callable, optional
        Writes a picture to the name that it is given.
    extra : mapping, optional
        Further functions that write a file, by the name of the file.
    model : tuple, optional
        The files and the record of the fitted model, see :func:`agglo.estimators.model_folder.contents`.
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
    """Switch what agglo has in ``folder`` to these files and records, all of them or none; return their names.

    The records are written last, and list the files with their digests.
    """
    names = [*files, *records]

    def obsolete() -> Iterable[str]:
        return (name for record in RECORDS for name in _owned(folder, record))

    with outputs.switching(folder, names, obsolete) as temporary:
        for name, write in files.items():
            write(temporary / name)
        digests = {name: outputs.file_digest(temporary / name) for name in files}
        for name, record in records.items():
            listed = {file: digests[file] for file in files if name != MODEL or file in MODEL_FILES}
            text = json.dumps(outputs.seal({**record, "files": listed}), indent=2, allow_nan=False)
            (temporary / name).write_text(text + "\n", encoding="utf-8")
    return [folder / name for name in names]


def _owned(folder: Path, name: str) -> set[str]:
    """Return the names of the files of a record, itself included; none if it is damaged or not agglo's."""
    try:
        record = load_record(folder, name)
    except ValueError:
        return set()
    if record is None or "agglo" not in record:
        return set()
    return {name} | (set(record.get("files", _EARLY_FILES)) & FILES)


@dataclass(frozen=True, eq=False)
class RunFiles:
    """The files of a run, as its record lists them.

    Parameters
    ----------
    folder : Path
        The folder.
    record : dict, optional
        The record, if there is one.
    name : str
        The name of the record.
    """

    folder: Path
    record: dict[str, Any] | None
    name: str = RECORD

    def find(self, file: str) -> Path | None:
        """Return where a file of the run is, checked to be as it was written; None if the run has no such file."""
        path = outputs.locate(self.folder, file)
        digests = None if self.record is None else self.record.get("files")
        if digests is None:  # a folder without a record, or one of an earlier version
            return path if path.is_file() else None
        if file not in digests:
            return None
        if not path.is_file():
            raise FileNotFoundError(
                f"{self.folder} is not whole: {file} is not there, but {self.name} lists it; {_AGAIN[self.name]}"
            )
        if outputs.file_digest(path) != digests[file]:
            raise ValueError(f"{path} is damaged, or not of the same run as {self.name}: {_AGAIN[self.name]}")
        return path

    def tree(self) -> Path:
        """Return where the tree is."""
        path = self.find(TREE)
        if path is None:
            raise FileNotFoundError(
                f"{self.folder} holds no run: there is no {TREE} in it; write one with agglo fit"
            )
        return path


def read_run(path: Path, read: Callable[[RunFiles], T]) -> T:
    """Return what ``read`` returns of the files in the folder ``path``, all of them of one run."""

    def once() -> T:
        record = load_record(path)
        # The folder of a model alone has no other record.
        files = RunFiles(path, record) if record else RunFiles(path, load_record(path, MODEL), MODEL)
        return read(files)

    return outputs.read_stable(path, RECORDS, once)


def load_run(path: Path) -> tuple[Hierarchy, dict[str, Any] | None]:
    """Return the tree of a run and its record, given its folder; of a file with a tree, the record is None."""
    if not path.exists():
        raise FileNotFoundError(f"cannot read {path}: there is no such folder or file; check its name")
    if not path.is_dir():
        return Hierarchy.load(path), None
    return read_run(
        path, lambda files: (Hierarchy.load(files.tree()), files.record if files.name == RECORD else None)
    )


def load_tree(path: Path) -> Hierarchy:
    """Return the tree of a run, given its folder or the file of the tree itself."""
    return load_run(path)[0]


def load_record(path: Path, name: str = RECORD) -> dict[str, Any] | None:
    """Return the record of a run, or of a model, if ``path`` is a folder that has one."""
    file = outputs.locate(path, name)
    if not file.is_file():
        return None
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is damaged ({error}): {_AGAIN[name]}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{file} holds no record of a run: {_AGAIN[name]}")
    files = record.get("files", {})
    is_open = name == RECORD and "files" in record and "checksum" not in record  # runs that list files are sealed
    if is_open or not outputs.is_intact(record) or not isinstance(files, dict):
        raise ValueError(f"{file} is damaged (its checksum is that of another content): {_AGAIN[name]}")
    return record
