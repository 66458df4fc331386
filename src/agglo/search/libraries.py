"""Neighbours by other libraries, where they are installed: the same result as of every search.

A library only proposes neighbours. Their values are computed by the core, and recall is measured as it is for the
search by cells; effort is doubled until it is what was asked for, or a library has no more to give.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo import _core
from agglo.blas import one_blas_thread, sgemm
from agglo.graph import RecallEstimate
from agglo.inputs import Points, blocks, for_core
from agglo.search.found import Found, Report

SAMPLE = 256  # points that recall is measured on, as for cells

Lists = npt.NDArray[np.int32]
Attempt = tuple[dict[str, Any], Callable[[], Lists]]
"""What is tried, and how: lists of neighbours, in which a point may be its own, and -1 is none."""

_BATCH = 16_384  # queries at a time, between which progress is told
_FLAT = 10_000  # points up to which faiss compares all pairs
_ATTEMPTS = 5


def faiss(
    points: Points,
    n_neighbors: int,
    metric: str,
    workers: int,
    report: Report | None,
    *,
    recall: float = 0.95,
    random_state: int = 0,
) -> Found:
    """Neighbours by an inverted file of faiss, whose ``nprobe`` is doubled as long as it takes."""
    library = imported("faiss", "faiss-cpu")
    n, k = len(points), n_neighbors + 1
    rows = _float32(points, metric)
    space = library.METRIC_L2 if metric.endswith("euclidean") else library.METRIC_INNER_PRODUCT

    def attempts() -> Iterator[Attempt]:
        if n <= _FLAT:
            flat = library.IndexFlat(rows.shape[1], space)
            flat.add(rows)
            yield {"index": "Flat"}, lambda: _in_batches(lambda part: flat.search(part, k)[1], rows, k, report)
            return
        cells = int(4 * np.sqrt(n))
        index = library.IndexIVFFlat(library.IndexFlat(rows.shape[1], space), rows.shape[1], cells, space)
        index.cp.seed = random_state % 2**31
        index.cp.min_points_per_centroid = 1  # few are no reason for a message
        library.omp_set_num_threads(1)  # their sums are in one order then
        index.train(rows)
        index.add(rows)
        library.omp_set_num_threads(workers)
        for nprobe in _doubled(8, cells):
            index.nprobe = nprobe
            how = {"index": f"IVF{cells},Flat", "nprobe": nprobe}
            yield how, lambda: _in_batches(lambda part: index.search(part, k)[1], rows, k, report)

    before = library.omp_get_max_threads()
    library.omp_set_num_threads(workers)
    try:
        return _best(attempts(), points, n_neighbors, metric, workers, recall, random_state)
    finally:
        library.omp_set_num_threads(before)


def hnswlib(
    points: Points,
    n_neighbors: int,
    metric: str,
    workers: int,
    report: Report | None,
    *,
    recall: float = 0.95,
    random_state: int = 0,
) -> Found:
    """Neighbours by a navigable graph of hnswlib, whose ``ef`` is doubled as long as it takes.

    The graph is built by one thread: with more, their timing would be seen in it.
    """
    library = imported("hnswlib")
    n, k = len(points), n_neighbors + 1
    rows = _float32(points, metric)
    index = library.Index(space="l2" if metric.endswith("euclidean") else "ip", dim=rows.shape[1])
    index.init_index(max_elements=n, M=16, ef_construction=200, random_seed=random_state % 2**31)
    index.add_items(rows, num_threads=1)

    def attempts() -> Iterator[Attempt]:
        for ef in _doubled(2 * k, n):
            index.set_ef(ef)

            def search(part: npt.NDArray[np.float32]) -> Any:
                try:
                    return index.knn_query(part, k=k, num_threads=workers)[0]
                except RuntimeError:  # that it cannot find so many: the next attempt may
                    return np.int32(-1)

            yield {"M": 16, "ef_construction": 200, "ef": ef}, lambda: _in_batches(search, rows, k, report)

    return _best(attempts(), points, n_neighbors, metric, workers, recall, random_state)


def pynndescent(
    points: Points,
    n_neighbors: int,
    metric: str,
    workers: int,
    report: Report | None,
    *,
    recall: float = 0.95,
    random_state: int = 0,
) -> Found:
    """Neighbours by pynndescent, whose lists are made twice as long as long as it takes."""
    if metric == "dot":
        raise ValueError("metric='dot' is none that pynndescent searches by: pass another method, or 'cosine'")
    library = imported("pynndescent")
    rows = _float32(points, metric)

    def attempts() -> Iterator[Attempt]:
        for length in _doubled(max(n_neighbors + 1, 30), len(rows) - 1):

            def search(length: int = length) -> Lists:
                index = library.NNDescent(
                    rows,
                    metric="euclidean",  # of directions that is the order of their cosines
                    n_neighbors=min(length, len(rows) - 1) if len(rows) > 2 else 2,
                    random_state=random_state % 2**32,
                    n_jobs=workers,
                )
                return np.ascontiguousarray(index.neighbor_graph[0], np.int32)

            yield {"list_length": length}, search

    return _best(attempts(), points, n_neighbors, metric, workers, recall, random_state)


def scann(
    points: Points,
    n_neighbors: int,
    metric: str,
    workers: int,
    report: Report | None,
    *,
    recall: float = 0.95,
    random_state: int = 0,
) -> Found:
    """Neighbours by a tree of ScaNN with hashed products, of which ever more leaves are searched.

    ScaNN has no seed to give: two searches may differ.
    """
    library = imported("scann").scann_ops_pybind
    n, k = len(points), n_neighbors + 1
    rows = _float32(points, metric)
    builder = library.builder(rows, k, "squared_l2" if metric.endswith("euclidean") else "dot_product")
    leaves = max(1, int(np.sqrt(n)))
    if n <= _FLAT:
        searcher = builder.score_brute_force().build()
    else:
        tree = builder.tree(leaves, max(1, leaves // 20), training_sample_size=min(n, 250_000))
        searcher = tree.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(10 * k).build()
    searcher.set_num_threads(workers)

    def attempts() -> Iterator[Attempt]:
        for visited in [leaves] if n <= _FLAT else _doubled(max(1, leaves // 20), leaves):

            def search(part: npt.NDArray[np.float32], visited: int = visited) -> Any:
                given = {} if n <= _FLAT else {"leaves_to_search": visited}
                return searcher.search_batched_parallel(part, final_num_neighbors=k, **given)[0].astype(np.int32)

            how = {"index": "brute force"} if n <= _FLAT else {"leaves": leaves, "leaves_to_search": visited}
            yield how, lambda: _in_batches(search, rows, k, report)

    return _best(attempts(), points, n_neighbors, metric, workers, recall, random_state)


def imported(name: str, package: str | None = None) -> Any:
    """The library, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"method={name!r} needs the package {package or name}, which cannot be imported ({error}): "
            f"pip install 'agglo[{name}]', or pass method='auto'"
        ) from error


def _best(
    attempts: Iterable[Attempt],
    points: Points,
    n_neighbors: int,
    metric: str,
    workers: int,
    recall: float,
    random_state: int,
) -> Found:
    """The first attempt that reaches the recall, or else the last one, with exact values."""
    found = None
    for how, search in attempts:
        lists = np.ascontiguousarray(search(), np.int32)
        with one_blas_thread():
            indices, values, reached = _core.rescored(
                *(for_core(points), lists, n_neighbors, metric, SAMPLE, random_state, sgemm(), workers, None)
            )
        shape = (len(points), n_neighbors)
        parameters = {"recall": recall, "random_state": random_state, **how}
        found = Found(indices.reshape(shape), values.reshape(shape), RecallEstimate(*reached), parameters)
        if reached[0] >= recall:
            break
    assert found is not None
    return found


def _float32(points: Points, metric: str) -> npt.NDArray[np.float32]:
    """The points as libraries want them, of unit length if only their direction counts."""
    rows = np.empty(points.shape, np.float32)
    for first, block in blocks(points):
        if metric == "cosine":
            lengths = np.linalg.norm(block, axis=1, keepdims=True)
            block = block / np.where(lengths > 0, lengths, 1)
        rows[first : first + len(block)] = block
    return rows


def _in_batches(
    search: Callable[[npt.NDArray[np.float32]], Any],
    rows: npt.NDArray[np.float32],
    k: int,
    report: Report | None,
) -> Lists:
    lists = np.empty((len(rows), k), np.int32)
    for first in range(0, len(rows), _BATCH):
        lists[first : first + _BATCH] = search(rows[first : first + _BATCH])
        if report:
            report(min(len(rows), first + _BATCH), len(rows))
    return lists


def _doubled(first: int, most: int) -> Iterator[int]:
    """First, twice that, and so on, a few times and not beyond ``most``."""
    for attempt in range(_ATTEMPTS):
        yield min(first << attempt, most)
        if first << attempt >= most:
            return
