"""The true neighbours of all points, by products of all blocks of them that bounds do not exclude."""

from __future__ import annotations

from agglo import _core
from agglo.blas import dgemm, one_blas_thread, sgemm
from agglo.inputs import Points, for_core
from agglo.search.found import Found, Report
from agglo.sketch import sketch_basis


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
