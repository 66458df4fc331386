"""A run on disk: a folder with the tree, its labels and a record of how they were made."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.files import write_labels
from agglo.outputs import replacing_all
from agglo.tree import Hierarchy

TREE = "tree.parquet"
LABELS = "labels.parquet"
RECORD = "run.json"
PICTURE = "picture.png"
ITEMS = "items.arrow"
NAMES = "names.arrow"


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Raise if a run cannot or should not be written to ``folder``, before any work is done for it."""
    if not folder.exists():
        there = next(parent for parent in folder.absolute().parents if parent.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(
                f"cannot make {folder}: nothing may be written in {there}; choose another folder"
            )
        return
    if not folder.is_dir():
        raise FileExistsError(f"cannot write to {folder}: it is a file; pass the name of a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"cannot write to {folder}: it is not yours to write in; choose another folder")
    others = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".agglo-")]
    if others and not force and not _is_run(folder):
        raise FileExistsError(
            f"will not write to {folder}: it is not empty and no run of agglo's (it has {sorted(others)[0]!r}); "
            "choose another folder, or pass --force to add the run to it"
        )


def _is_run(folder: Path) -> bool:
    try:
        return "agglo" in (load_record(folder) or {})
    except ValueError:
        return False


def save_run(
    folder: Path,
    tree: Hierarchy,
    labels: npt.NDArray[np.int64],
    record: Mapping[str, Any],
    picture: Callable[[Path], None] | None = None,
    extra: Mapping[str, Callable[[Path], None]] | None = None,
) -> list[Path]:
    """Write a run to ``folder``, all its files or none; returns their names.

    The record comes last: where it is, the rest is. ``picture`` writes one to the name that it is given, and so do
    the functions in ``extra``, by the names of their files.
    """
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    others = {**({PICTURE: picture} if picture else {}), **(extra or {})}
    names = [TREE, LABELS, *others, RECORD]
    paths = [folder / name for name in names]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing_all(paths) as partials:
            partial = dict(zip(names, partials, strict=True))
            tree.save(partial[TREE])
            write_labels(labels, partial[LABELS], form=".parquet")
            for name, write in others.items():
                write(partial[name])
            partial[RECORD].write_text(json.dumps(record, indent=2, allow_nan=False) + "\n")
    except BaseException:
        for parent in made:  # the innermost first
            if parent.exists():
                parent.rmdir()
        raise
    return paths


def load_tree(path: Path) -> Hierarchy:
    """The tree of a run, given its folder or the file of the tree itself."""
    return Hierarchy.load(tree_file(path))


def tree_file(path: Path) -> Path:
    """The file of the tree of a run, given its folder or that file itself."""
    if not path.exists():
        raise FileNotFoundError(f"cannot read {path}: there is no such folder or file; check its name")
    if path.is_dir() and not (path / TREE).exists():
        raise FileNotFoundError(f"{path} holds no run: there is no {TREE} in it; write one with agglo fit")
    return path / TREE if path.is_dir() else path


def load_record(path: Path) -> dict[str, Any] | None:
    """The record of a run, if ``path`` is a folder that has one."""
    if not (path / RECORD).is_file():
        return None
    try:
        record = json.loads((path / RECORD).read_text())
    except ValueError as error:
        raise ValueError(f"{path / RECORD} is damaged ({error}): run agglo fit again") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path / RECORD} holds no record of a run: run agglo fit again")
    return record
