"""Clusters, and the forest over them as an engine in NumPy makes it, round by round."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.rounds.linkage import Linkage, rows
from agglo.tree.hierarchy import Forest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Growth:
    """The clusters so far, with the statistics that ``linkage`` keeps of them, and the nodes that they are.

    A cluster is named by its smallest point.
    """

    def __init__(self, linkage: Linkage, n: int, weights: Floats | None = None) -> None:
        self.linkage = linkage
        self.sign = 1 if linkage.kind == "similarity" else -1
        self.statistics = rows(
            linkage.of_points(np.ones(n) if weights is None else weights), np.arange(n)
        )  # copies
        self.left = self.n_nodes = n
        self.node = np.arange(n)  # of each cluster
        self.parent = np.full(2 * n, -1, np.int32)
        self.value = np.full(2 * n, np.nan)
        self.size = np.ones(2 * n, np.int32)
        self.round = np.zeros(2 * n, np.int32)
        self.records: list[tuple[float, int, int, float]] = []
        self.clock = time.perf_counter()

    def join(self, source: Ints, target: Ints, close: Floats, joined: Ints, threshold: float) -> Ints:
        """Make a round of pairs that are joined; the names of all clusters that take part in it.

        ``joined`` names the new cluster of every old one; ``close`` says how close the pairs are, larger being
        closer.
        """
        members = np.unique(np.concatenate([source, target]))
        new, which = np.unique(joined[members], return_inverse=True)
        # By names, so that a sum over the parts of a cluster has one order.
        order = np.argsort(which, kind="stable")
        unions = self.linkage.merged_clusters(rows(self.statistics, members[order]), starts(which[order]))
        for column, merged in zip(self.statistics, unions, strict=True):
            column[new] = merged
        made = self.n_nodes + np.arange(len(new))
        self.parent[self.node[members]] = made[which]
        self.size[made] = np.bincount(which, self.size[self.node[members]])
        farthest = np.full(len(new), np.inf)
        np.minimum.at(farthest, np.searchsorted(new, joined[source]), close)
        self.value[made] = self.sign * farthest
        self.round[made] = len(self.records) + 1
        self.node[new] = made
        self.n_nodes += len(new)
        before, self.left = self.left, self.left - len(members) + len(new)
        now = time.perf_counter()
        self.records.append((threshold, before, self.left, now - self.clock))
        self.clock = now
        return members

    def forest(self) -> Forest:
        """What has become of it all."""
        nodes = slice(self.n_nodes)
        columns = zip(*self.records, strict=True) if self.records else ([], [], [], [])
        rounds = (np.array(c, d) for c, d in zip(columns, (float, np.int64, np.int64, float), strict=True))
        return Forest(self.parent[nodes], self.value[nodes], self.size[nodes], self.round[nodes], *rounds)


def starts(groups: npt.NDArray[Any]) -> Ints:
    """Where each of the groups begins that equal rows, one after the other, form."""
    changes = groups[1:] != groups[:-1]
    changed = changes if changes.ndim == 1 else changes.any(axis=1)
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(groups)), bool), changed]))
