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
"""Neighbour indices and values, one row per point, from near to far; the index -1 fills short rows."""

Candidates = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Directed edges in CSR format: ``indptr``, targets and values."""

SAMPLE = 256  # points to measure recall on; at a recall of 95 %, the error is about 1 %
MAX_ATTEMPTS = 4  # maximum number of times that a search by cells adds probes
_CHEAP = 2.0  # method="auto" searches exactly up to this number of CPU seconds
_FEW_COLUMNS = 5  # up to this number of columns, a k-d tree is faster than matrix products


@dataclass(frozen=True)
class SearchParams:
    """Validated parameters of a search for the neighbours of all points.

    Only approximate searches use ``seed`` and ``recall``, the share of the true neighbours to find. They add
    probes or hash bands until the measured recall reaches ``recall``. With ``stop_early``, they stop as soon as
    ``recall`` turns out to be unreachable.
    """

    n_neighbors: int
    metric: str
    n_threads: int
    report: Report | None = None
    recall: float = 0.95
    seed: int = 0
    stop_early: bool = False

    def recall_goal(self, sample: int, max_attempts: int) -> _core.RecallGoal:
        """Return the goal of an approximate search that measures its recall on ``sample`` points."""
        accept_lower = not self.stop_early
        return _core.RecallGoal(self.recall, sample=sample, max_attempts=max_attempts, accept_lower=accept_lower)


class NeighborLists(NamedTuple):
    """The neighbours of all points, with the recall and the parameters of the search."""

    indices: npt.NDArray[np.int32]
    """Neighbour indices, one row per point, from near to far. Ties are in order of index; -1 fills short rows."""
    values: npt.NDArray[np.float32]
    """The exact similarities or distances of the neighbours."""
    recall_estimate: RecallEstimate | None
    """The measured recall; None if the search is exact."""
    parameters: dict[str, Any]
    """The parameters that the search chose."""
    cells: npt.NDArray[np.int32] | None = None
    """The cell (inverted list) of each point; None unless the method is ``cells``."""


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
        """Choose a k-d tree for few columns, the exact search if it is fast, and cells otherwise."""
        n, d = self.X.shape
        if d <= _FEW_COLUMNS and self.metric != "dot":  # points with a large dot product may be far apart
            return "kdtree"
        return "exact" if recall == 1 or estimate_search_seconds(n, d) <= _CHEAP else "cells"

    def search(self, method: str, params: SearchParams) -> NeighborLists:
        """Find the nearest neighbours of all points."""
        lists = _SEARCHES[method](self.X, params)
        check_finite(lists.values, self.X)
        return lists

    def all_pairs(self, n_threads: int, report: Report | None = None) -> npt.NDArray[np.float32]:
        """Compute the similarities or distances of all pairs of distinct points, row by row."""
        values: npt.NDArray[np.float32] = _core.compute_all_pairs(
            as_core_array(self.X), self.metric, n_threads, report
        )
        check_finite(values, self.X)
        return values

    def select_closest(self, candidates: Candidates, n_neighbors: int, n_threads: int) -> Lists:
        """Select the ``n_neighbors`` closest candidates of each point.

        If values are equal in float32, they are compared in float64, as in a search.
        """
        lists = _core.select_closest(as_core_array(self.X), self.metric, candidates, n_neighbors, n_threads)
        return to_rows(lists, n_neighbors)


def search_exact(points: Points, params: SearchParams) -> NeighborLists:
    """Find the exact nearest neighbours by blocked matrix products."""
    with one_blas_thread():
        basis = choose_sketch_basis(points, params.metric, params.n_neighbors)
        lists = _core.search_exact(
            as_core_array(points),
            params.n_neighbors,
            params.metric,
            basis,
            (sgemm(), dgemm()),
            params.n_threads,
            params.report,
        )
    return NeighborLists(*to_rows(lists, params.n_neighbors), None, {})


def search_kdtree(points: Points, params: SearchParams) -> NeighborLists:
    """Find the exact nearest neighbours by a k-d tree."""
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
    """Find approximate nearest neighbours by an inverted file index, and re-rank them by exact values.

    Parameters
    ----------
    points, params
        Validated points and parameters. If ``params.stop_early`` is set and the recall is unreachable, the lists
        are empty or incomplete, and the estimate is the highest recall that the index could reach.
    list_size, n_probes, n_candidates : int
        The number of points per inverted list, of lists that each point probes, and of candidates to re-rank. 0
        means automatic. A given ``n_probes`` is not increased if the recall is too low.
    sample : int
        The number of points to measure recall on.
    """
    with one_blas_thread():
        basis = find_main_directions(points, params.metric)
        lists, recall, used, cells = _core.search_ivf(
            as_core_array(points),
            k=params.n_neighbors,
            metric=params.metric,
            params=_core.IvfParams(list_size=list_size, n_probes=n_probes, n_candidates=n_candidates),
            goal=params.recall_goal(sample, MAX_ATTEMPTS),
            basis=basis,
            seed=params.seed,
            sgemm=sgemm(),
            n_threads=params.n_threads,
            progress=params.report,
        )
    parameters = {
        "recall": params.recall,
        "random_state": params.seed,
        # These keys are part of the format of saved models.
        "cell_size": used.list_size,
        "visits": used.n_probes,
        "candidates": used.n_candidates,
        "rounds": used.n_passes,
    }
    if len(basis):
        parameters["directions"] = len(basis)
    return NeighborLists(*to_rows(lists, params.n_neighbors), RecallEstimate(*recall), parameters, cells)


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
