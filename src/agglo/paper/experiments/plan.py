"""List the jobs of each table and figure of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agglo.paper.baselines import METHODS
from agglo.paper.experiments.job import Job
from agglo.paper.experiments.measures import FLAT_METHODS
from agglo.paper.experiments.sets import find_sets

MAX_ALL_METHODS = 5_000  # all methods run on datasets with at most this number of points
SAMPLE = 2_000  # on larger datasets, all methods run on a sample of this number of points
MAX_ALL_SCHEDULES = 25_000  # all schedules run on datasets with at most this number of points
GROWTH = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)

EXPERIMENTS = {
    "purity": "trees",
    "f1": "trees",
    "times": "trees",
    "rounds": "rounds",
    "growth": "growth",
    "rhc": "grid",
}
"""The experiment whose results each table or figure shows."""


def plan_jobs(table: str, folder: Path, names: list[str] | None = None) -> Iterator[Job]:
    """Yield the jobs of a table or figure; for ``"all"``, yield the jobs of all tables and figures.

    If ``names`` is given, yield only jobs on these datasets.
    """
    wanted = set(EXPERIMENTS.values()) if table == "all" else {EXPERIMENTS[table]}
    sizes = {name: size for name, size in _sizes(folder).items() if names is None or name in names}
    small = {name: size for name, size in sizes.items() if size <= MAX_ALL_METHODS}
    if "trees" in wanted:
        yield from (Job("trees", name, "on-graph") for name in sizes)
        yield from (
            Job("trees", name, method) for name, size in small.items() for method in _feasible_methods(size)
        )
    if "grid" in wanted:
        yield from (Job("grid", name, method) for name in ("iris", "wine") for method in ("scc", "rhc"))
    if "rounds" in wanted:
        yield from (Job("rounds", name, "scc") for name, size in sizes.items() if size <= MAX_ALL_SCHEDULES)
    if "growth" in wanted:
        for points in GROWTH:
            yield Job("growth", "dp-mixture", "on-graph", points)
            if points <= METHODS["hac"].max_points:
                yield Job("growth", "dp-mixture", "hac", points)
    if "trees" in wanted:  # the slowest jobs come last
        large = {name: size for name, size in sizes.items() if name not in small}
        for name in large:
            yield from (Job("trees", name, method, SAMPLE) for method in ("on-graph", *_feasible_methods(SAMPLE)))
        for name, size in large.items():
            yield from (Job("trees", name, method) for method in _feasible_methods(size))


def _feasible_methods(size: int) -> Iterator[str]:
    """Yield the names of the methods that can cluster ``size`` points."""
    for name, method in METHODS.items():
        if (method.hierarchical or name in FLAT_METHODS) and size <= method.max_points:
            yield name


def _sizes(folder: Path) -> dict[str, int]:
    """Return the number of points of each dataset that has classes, sorted from smallest to largest."""
    found = {name: load() for name, load in find_sets(folder).items()}
    sizes = {name: len(data.X) for name, data in found.items() if data.y is not None}
    return dict(sorted(sizes.items(), key=lambda item: item[1]))
