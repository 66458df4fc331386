"""Which sets there are in a folder, and how their points are prepared before any method sees them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from agglo.paper import datasets
from agglo.paper.datasets import Dataset

# The files of the paper's own sets, by the name of the set; the first that is there is taken.
PAPER: dict[str, tuple[tuple[str, Callable[[Path], Dataset]], ...]] = {
    "covtype": (("covtype.data.gz", datasets.load_covtype), ("covtype.data", datasets.load_covtype)),
    "aloi": (("aloi.scale", datasets.load_aloi), ("aloi", datasets.load_aloi)),
    "speaker": (("speaker.tsv", datasets.load_tsv),),
    "ilsvrc_small": (("ilsvrc_small.tsv", datasets.load_tsv),),
    "ilsvrc_large": (("ilsvrc_large.tsv", datasets.load_tsv),),
}
STANDARD = ("covtype", "wine")  # columns of different units
EUCLIDEAN = ("xcluster_separated",)  # sets made for distances, whose rows have no meaning as directions


def available(folder: Path) -> dict[str, Callable[[], Dataset]]:
    """How to load each set that is in ``folder`` or comes with scikit-learn, by name."""
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


def load(folder: Path, name: str, points: int | None = None) -> Dataset:
    """A set as all methods get it: at most ``points`` of it, with rows of length 1 unless distances are meant.

    Columns of different units are standardised first; see :meth:`agglo.paper.datasets.Dataset.prepared`.
    """
    found = available(folder)
    if name not in found:
        raise ValueError(f"there is no set {name!r} in {folder}, only {', '.join(found)}")
    data = found[name]()
    if points is not None:
        data = data.sample(points)
    if name.startswith(EUCLIDEAN):
        return Dataset(data.name, data.X, data.y, "euclidean")
    unit = data.prepared("standard" if name in STANDARD else "unit")
    return Dataset(data.name, unit.X, data.y, "cosine")
