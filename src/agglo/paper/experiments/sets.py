"""Find the datasets in a folder, and load and scale them in the same way for all methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from agglo.paper import datasets
from agglo.paper.datasets import Dataset

# The possible files of each dataset of the paper; the first file that exists is loaded.
PAPER: dict[str, tuple[tuple[str, Callable[[Path], Dataset]], ...]] = {
    "covtype": (("covtype.data.gz", datasets.load_covtype), ("covtype.data", datasets.load_covtype)),
    "aloi": (("aloi.scale", datasets.load_aloi), ("aloi", datasets.load_aloi)),
    "speaker": (("speaker.tsv", datasets.load_tsv),),
    "ilsvrc_small": (("ilsvrc_small.tsv", datasets.load_tsv),),
    "ilsvrc_large": (("ilsvrc_large.tsv", datasets.load_tsv),),
}
STANDARD = ("covtype", "wine")  # datasets whose columns have different units
EUCLIDEAN = ("xcluster_separated",)  # datasets that are compared by Euclidean distance


def find_sets(folder: Path) -> dict[str, Callable[[], Dataset]]:
    """Find the datasets in ``folder`` and in scikit-learn; return a dict from their names to loaders."""
    found: dict[str, Callable[[], Dataset]] = {"iris": datasets.load_iris, "wine": datasets.load_wine}
    for path in sorted(folder.glob("*.npz")):
        found.setdefault(path.stem, partial(datasets.load_npz, path))
    for name, files in PAPER.items():
        for file, load in reversed(files):
            if (folder / file).is_file():
                found[name] = partial(load, folder / file)
            elif (folder / f"{name}.npy").is_file() and (folder / f"{name}_labels.npy").is_file():
                found[name] = partial(
                    datasets.load_features, folder / f"{name}.npy", folder / f"{name}_labels.npy"
                )
    return found


def load_set(folder: Path, name: str, points: int | None = None) -> Dataset:
    """Load a dataset, sample at most ``points`` points, and normalize its rows unless it is Euclidean.

    Columns with different units are standardized first; see :meth:`agglo.paper.datasets.Dataset.prepare`.
    """
    found = find_sets(folder)
    if name not in found:
        raise ValueError(f"there is no dataset {name!r} in {folder}: pass one of {', '.join(found)}")
    data = found[name]()
    if points is not None:
        data = data.sample(points)
    if name.startswith(EUCLIDEAN):
        return Dataset(data.name, data.X, data.y, "euclidean")
    unit = data.prepare("standard" if name in STANDARD else "unit")
    return Dataset(data.name, unit.X, data.y, "cosine")
