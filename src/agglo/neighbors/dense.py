"""Nearest neighbours of dense points: exact, by k-d tree, and by cells (an inverted file index)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo._native import dgemm, one_blas_thread, sgemm
from agglo.neighbors.graph import RecallEstimate
from agglo.neighbors.validation import check_finite
from agglo.points.projection import choose_sketch_basis, estimate_search_seconds, find_main_directions
from agglo.points.validation import Points, as_core_array, iter_blocks

Report = Callable[[int, int], None]
"""A progress function, called as ``report(done, total)`` from time to time."""

Lists = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Neighbour indices and values, one row per point, the closest first; -1 if there are fewer neighbours."""

Candidates = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Directed edges in compressed rows: ``indptr``, targets and values."""

SAMPLE = 256  # points that recall is measured on: an error of about 1 % if 5 % of the neighbours are missed
MAX_ATTEMPTS = 4  # times that a search by cells adds probes before it gives up
_CHEAP = 2.0  # CPU seconds that an exact search may take if method="auto"
_FEW_COLUMNS = 5  # up to here a k-d tree is faster than matrix products, for any number of points


@dataclass(frozen=True)
class SearchParams:
    """Validated parameters of a search for the neighbours of all points.

    Only approximate searches use ``recall``, the share of the true neighbours to find, and ``seed``. They add
    effort until the measured recall is high enough. With ``stop_early`` they give up as soon as it is out of
    reach.
    """

    n_neighbors: int
    metric: str
    n_threads: int
    report: Report | None = None
    recall: float = 0.95
    seed: int = 0
    stop_early: bool = False


class NeighborLists(NamedTuple):
    """The neighbours of all points, and how they were found."""

    indices: npt.NDArray[np.int32]
    """One row per point, the closest first. Ties are in order of the index; -1 if there are fewer neighbours."""
    values: npt.NDArray[np.float32]
    """The similarities or distances, equal to those of the exact search."""
    recall_estimate: RecallEstimate | None
    """The measured recall; None if the search is exact."""
    parameters: dict[str, Any]
    """The parameters that the search chose."""
    cells: npt.NDArray[np.int32] | None = None
    """The cell (inverted list) of each point, if the search has cells."""


class DensePoints:
    """Validated dense points, compared by ``metric``."""

    def __init__(self, X: Points, metric: str) -> None:
        self.X, self.metric = X, metric

    def __len__(self) -> int:
        return len(self.X)

    def zero_rows(self) -> npt.NDArray[np.intp]:
        """Return the indices of the rows that are all zero."""
        return np.concatenate([start + np.flatnonzero(~rows.any(axis=1)) for start, rows in iter_blocks(self.X)])

    def choose_method(self, recall: float) -> str:
        """Choose a k-d tree for few columns, the exact search while it is cheap, and cells otherwise."""
        n, d = self.X.shape
        if d <= _FEW_COLUMNS and self.metric != "dot":  # points with large dot products are not close in space
            return "kdtree"
        return "exact" if recall == 1 or estimate_search_seconds(n, d) <= _CHEAP else "cells"

    def search(self, method: str, params: SearchParams) -> NeighborLists:
        """Find the nearest neighbours of all points."""
        lists = _SEARCHES[method](self.X, params)
        check_finite(lists.values, self.X)
        return lists

    def all_pairs(self, n_threads: int, report: Report | None = None) -> npt.NDArray[np.float32]:
        """Compute the values of all pairs of distinct points, row by row."""
        values: npt.NDArray[np.float32] = _core.compute_all_pairs(
            as_core_array(self.X), self.metric, n_threads, report
        )
        check_finite(values, self.X)
        return values

    def select_closest(self, candidates: Candidates, n_neighbors: int, n_threads: int) -> Lists:
        """Select the closest candidates of each point.

        Values that are equal in float32 are compared in float64, as in a search.
        """
        lists = _core.select_closest(as_core_array(self.X), self.metric, *candidates, n_neighbors, n_threads)
        return to_rows(lists, n_neighbors)


def search_exact(points: Points, params: SearchParams) -> NeighborLists:
    """Find all nearest neighbours by blocks of matrix products."""
    with one_blas_thread():
        basis = choose_sketch_basis(points, params.metric, params.n_neighbors)
        lists = _core.search_exact(
            *(as_core_array(points), params.n_neighbors, params.metric, basis),
            *(sgemm(), dgemm(), params.n_threads, params.report),
        )
    return NeighborLists(*to_rows(lists, params.n_neighbors), None, {})


def search_kdtree(points: Points, params: SearchParams) -> NeighborLists:
    """Find all nearest neighbours by a k-d tree."""
    lists = _core.search_kdtree(
        as_core_array(points), params.n_neighbors, params.metric, params.n_threads, params.report
    )
    return NeighborLists(*to_rows(lists, params.n_neighbors), None, {})


def search_cells(
    points: Points,
    params: SearchParams,
    *,
    list_size: int = 0,
    n_probes: int = 0,
    n_candidates: int = 0,
    sample: int = SAMPLE,
) -> NeighborLists:
    """Find nearly all nearest neighbours by an inverted file index, and re-rank them by exact values.

    Parameters
    ----------
    points, params
        Validated points and parameters. If ``params.stop_early`` and the recall is out of reach, the lists are
        empty or those of a first attempt, and the estimate is the recall that full effort would reach.
    list_size, n_probes, n_candidates : int
        Points per inverted list, lists that each point probes, and candidates that are re-ranked. 0 chooses them.
        A given ``n_probes`` is used whatever recall it gives.
    sample : int
        The number of points that recall is measured on.
    """
    with one_blas_thread():
        basis = find_main_directions(points, params.metric)
        indices, values, recall, effort, cells = _core.search_ivf(
            as_core_array(points),
            k=params.n_neighbors,
            metric=params.metric,
            recall=params.recall,
            list_size=list_size,
            n_probes=n_probes,
            n_candidates=n_candidates,
            basis=basis,
            sample=sample,
            max_attempts=MAX_ATTEMPTS,
            stop_early=params.stop_early,
            seed=params.seed,
            sgemm=sgemm(),
            dgemm=dgemm(),
            n_threads=params.n_threads,
            progress=params.report,
        )
    parameters = {"recall": params.recall, "random_state": params.seed}
    # Saved models have these keys.
    parameters |= dict(zip(("cell_size", "visits", "candidates", "rounds"), effort, strict=True))
    if len(basis):
        parameters["directions"] = len(basis)
    lists = to_rows((indices, values), params.n_neighbors)
    return NeighborLists(*lists, RecallEstimate(*recall), parameters, cells)


_SEARCHES: dict[str, Callable[[Points, SearchParams], NeighborLists]] = {
    "exact": search_exact,
    "kdtree": search_kdtree,
    "cells": search_cells,
}

DENSE_METHODS = tuple(_SEARCHES)


def to_rows(lists: Lists, n_neighbors: int) -> Lists:
    """Reshape the flat lists of the core to one row per point."""
    indices, values = lists
    return indices.reshape(-1, n_neighbors), values.reshape(-1, n_neighbors)
