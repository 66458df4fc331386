"""Neighbours of sets by MinHash: nearly all of them, at a fraction of what an exact search of many sets costs."""

from __future__ import annotations

import numpy as np

from agglo import _core
from agglo.graph import RecallEstimate
from agglo.search.found import Found, Report
from agglo.search.sparse import SparseRows

SAMPLE = 256  # sets that recall is measured on, as for cells
MOST = 128  # bands, before it is given up

# Pairs of equal members of two sets, which an exact search may have to count: beyond that it takes more than some
# 3 CPU seconds in all, and more than bands do for each set.
_CHEAP = 1e9
_CHEAP_EACH = 4e4


def minhash(
    rows: SparseRows,
    n_neighbors: int,
    workers: int,
    report: Report | None,
    *,
    recall: float = 0.95,
    random_state: int = 0,
    bucket: int = 0,
    bands: int = 0,
    patient: bool = True,
    sample: int = SAMPLE,
) -> Found:
    """The closest of all sets that each was compared with, by Jaccard distance, with exact values.

    Parameters
    ----------
    rows, n_neighbors, workers, report
        Checked sets, the length of the lists, threads and a progress function.
    recall : float
        The share of the true neighbours to find. Bands are added until the estimate says so, or there are 128:
        see the estimate that is returned.
    random_state : int
        Where chance begins; nothing else is random.
    bucket, bands : int
        Sets that a bucket holds at most, and bands. 0 leaves them to be chosen; given ``bands`` are made as they
        are, whatever recall that gives.
    patient : bool
        Whether to add bands up to the most although it is clear that these will not do.
    sample : int
        Sets that the estimate is measured on.
    """
    indices, values, reached, spent = _core.nearly_nearest_sets(
        *(rows.indptr, rows.indices, rows.columns, n_neighbors, recall, bucket, bands, patient, MOST, sample),
        *(random_state, workers, report),
    )
    shape = (len(rows), n_neighbors)
    effort = dict(zip(("bucket_size", "bands"), spent, strict=True))
    parameters = {"recall": recall, "random_state": random_state, **effort}
    return Found(indices.reshape(shape), values.reshape(shape), RecallEstimate(*reached), parameters)


def is_dear(rows: SparseRows) -> bool:
    """Whether an exact search costs more than bands do: by how many sets have the members of each."""
    counts = np.bincount(rows.indices, minlength=1).astype(np.float64)
    return bool(counts @ counts > max(_CHEAP, _CHEAP_EACH * len(rows)))
