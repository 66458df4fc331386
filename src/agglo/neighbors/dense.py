"""Nearest neighbours of dense points: exact, by k-d tree, and by cells (an inverted file index)."""

from __future__ import annotations

from agglo import _core
from agglo._native import dgemm, one_blas_thread, sgemm
from agglo.neighbors.graph import RecallEstimate
from agglo.neighbors.lists import Found, Report
from agglo.points.projection import main_directions, sketch_basis
from agglo.points.validation import Points, for_core


def exact(
    points: Points,
    n_neighbors: int,
    metric: str,
    workers: int,
    report: Report | None,
    *,
    recall: float = 1.0,
    random_state: int = 0,
) -> Found:
    """All of the nearest neighbours, whatever recall is asked for."""
    with one_blas_thread():
        basis = sketch_basis(points, metric, n_neighbors)
        indices, values = _core.nearest(
            for_core(points), n_neighbors, metric, basis, sgemm(), dgemm(), workers, report
        )
    shape = (len(points), n_neighbors)
    return Found(indices.reshape(shape), values.reshape(shape), None, {})


def kdtree(
    points: Points,
    n_neighbors: int,
    metric: str,
    workers: int,
    report: Report | None,
    *,
    recall: float = 1.0,
    random_state: int = 0,
) -> Found:
    """All of the nearest neighbours, whatever recall is asked for."""
    indices, values = _core.nearest_by_tree(for_core(points), n_neighbors, metric, workers, report)
    shape = (len(points), n_neighbors)
    return Found(indices.reshape(shape), values.reshape(shape), None, {})


SAMPLE = 256  # points that recall is measured on: about 1 % of uncertainty where 5 % of the neighbours are missed
PATIENCE = 4  # times that effort is added before it is given up


def cells(
    points: Points,
    n_neighbors: int,
    metric: str,
    workers: int,
    report: Report | None,
    *,
    recall: float = 0.95,
    random_state: int = 0,
    size: int = 0,
    visits: int = 0,
    kept: int = 0,
    sample: int = SAMPLE,
    patient: bool = True,
) -> Found:
    """The closest of all points that were looked at, of every point, with exact values.

    Parameters
    ----------
    points, n_neighbors, metric, workers, report
        As for every search: checked points, the length of the lists, a metric, threads and a progress function.
    recall : float
        The share of the true neighbours to find. Effort is added until the estimate says so, or it is clear that
        cells are not the way to get there: see the estimate that is returned.
    random_state : int
        Where chance begins; nothing else is random.
    size, visits, kept : int
        Points in a cell, cells that each point visits, and candidates from there that are compared exactly. 0
        leaves them to be chosen; given ``visits`` are made as they are, whatever recall that gives.
    sample : int
        Points that the estimate is measured on.
    patient : bool
        Whether to come as close to the wish as possible where no effort is enough. If not, there are no lists
        then, or those of a first attempt, and the estimate tells what all effort would have come to.
    """
    with one_blas_thread():
        basis = main_directions(points, metric)
        indices, values, reached, spent, homes = _core.nearly_nearest(
            *(for_core(points), n_neighbors, metric, recall, size, visits, kept, basis, sample, PATIENCE, patient),
            *(random_state, sgemm(), dgemm(), workers, report),
        )
    shape = (-1, n_neighbors)
    effort = dict(zip(("cell_size", "visits", "candidates", "rounds"), spent, strict=True))
    if len(basis):
        effort["directions"] = len(basis)
    parameters = {"recall": recall, "random_state": random_state, **effort}
    return Found(indices.reshape(shape), values.reshape(shape), RecallEstimate(*reached), parameters, homes)
