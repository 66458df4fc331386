"""Which jobs each table and figure needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agglo.paper.baselines import METHODS
from agglo.paper.experiments.job import Job
from agglo.paper.experiments.measures import FLAT
from agglo.paper.experiments.sets import available

LARGEST_FOR_ALL = 5_000  # points of a set for which all methods are asked
SAMPLE = 2_000  # points of each larger set for which they are
LARGE = 25_000  # points of a set that is not clustered again for every number of thresholds
GROWTH = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)

EXPERIMENTS = {
    "purity": "trees",
    "f1": "trees",
    "times": "trees",
    "rounds": "rounds",
    "growth": "growth",
    "rhc": "grid",
}
"""The tables and figures by the experiment that each is drawn from."""


def jobs(table: str, folder: Path, names: list[str] | None = None) -> Iterator[Job]:
    """The jobs of a table or figure, or of all; for the sets ``names`` alone, if given."""
    wanted = set(EXPERIMENTS.values()) if table == "all" else {EXPERIMENTS[table]}
    sizes = {name: size for name, size in _sizes(folder).items() if names is None or name in names}
    small = {name: size for name, size in sizes.items() if size <= LARGEST_FOR_ALL}
    if "trees" in wanted:
        yield from (Job("trees", name, "on-graph") for name in sizes)
        yield from (Job("trees", name, method) for name, size in small.items() for method in _asked(size))
    if "grid" in wanted:
        yield from (Job("grid", name, method) for name in ("iris", "wine") for method in ("scc", "rhc"))
    if "rounds" in wanted:
        yield from (Job("rounds", name, "scc") for name, size in sizes.items() if size <= LARGE)
    if "growth" in wanted:
        for points in GROWTH:
            yield Job("growth", "dp-mixture", "on-graph", points)
            if points <= METHODS["hac"].max_points:
                yield Job("growth", "dp-mixture", "hac", points)
    if "trees" in wanted:  # what takes longest comes last
        large = {name: size for name, size in sizes.items() if name not in small}
        for name in large:
            yield from (Job("trees", name, method, SAMPLE) for method in ("on-graph", *_asked(SAMPLE)))
        for name, size in large.items():
            yield from (Job("trees", name, method) for method in _asked(size))


def _asked(size: int) -> Iterator[str]:
    """The methods that say they can cluster so many points."""
    for name, method in METHODS.items():
        if (method.hierarchical or name in FLAT) and size <= method.max_points:
            yield name


def _sizes(folder: Path) -> dict[str, int]:
    """The number of points of each set that has classes, the smallest set first."""
    found = {name: load() for name, load in available(folder).items()}
    sizes = {name: len(data.X) for name, data in found.items() if data.y is not None}
    return dict(sorted(sizes.items(), key=lambda item: item[1]))
