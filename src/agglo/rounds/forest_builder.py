"""Builds the forest of an engine in NumPy, round by round."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.rounds.linkage import Linkage, rows
from agglo.tree.forest import Forest

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class ForestBuilder:
    """The clusters so far, their statistics for ``linkage``, and the nodes of the forest over them.

    The id of a cluster is its smallest point.
    """

    def __init__(self, linkage: Linkage, n_points: int, weights: Floats | None = None) -> None:
        self.linkage = linkage
        self.sign = 1 if linkage.kind == "similarity" else -1
        point_statistics = linkage.of_points(np.ones(n_points) if weights is None else weights)
        self.statistics = rows(point_statistics, np.arange(n_points))  # a copy, updated in place
        self.n_clusters = self.n_nodes = n_points
        self.node = np.arange(n_points)  # the node of each cluster
        # A forest over n points has fewer than 2n nodes.
        self.parent = np.full(2 * n_points, -1, np.int32)
        self.value = np.full(2 * n_points, np.nan)
        self.size = np.ones(2 * n_points, np.int32)
        self.round = np.zeros(2 * n_points, np.int32)
        self.records: list[tuple[float, int, int, float]] = []
        self.clock = time.perf_counter()

    def merge(self, source: Ints, target: Ints, similarity: Floats, new_id: Ints, threshold: float) -> Ints:
        """Merge clusters by the given pairs, as one round; return the ids of all clusters that merged.

        Parameters
        ----------
        source, target : ndarray of int64
            The ids of the clusters of each pair.
        similarity : ndarray of float64
            The linkage of each pair, negated if it is a distance: larger is closer.
        new_id : ndarray of int64
            For every cluster, the id of the cluster that it is part of after the round.
        threshold : float
            The threshold of the round, for its record.
        """
        members = np.unique(np.concatenate([source, target]))
        new, new_index = np.unique(new_id[members], return_inverse=True)
        # A stable sort keeps members in order of id, so that sums over them have one order.
        order = np.argsort(new_index, kind="stable")
        unions = self.linkage.merged_clusters(
            rows(self.statistics, members[order]), segment_starts(new_index[order])
        )
        for column, merged in zip(self.statistics, unions, strict=True):
            column[new] = merged
        new_nodes = self.n_nodes + np.arange(len(new))
        self.parent[self.node[members]] = new_nodes[new_index]
        self.size[new_nodes] = np.bincount(new_index, self.size[self.node[members]])
        lowest = np.full(len(new), np.inf)
        np.minimum.at(lowest, np.searchsorted(new, new_id[source]), similarity)
        self.value[new_nodes] = self.sign * lowest
        self.round[new_nodes] = len(self.records) + 1
        self.node[new] = new_nodes
        self.n_nodes += len(new)
        before, self.n_clusters = self.n_clusters, self.n_clusters - len(members) + len(new)
        now = time.perf_counter()
        self.records.append((threshold, before, self.n_clusters, now - self.clock))
        self.clock = now
        return members

    def forest(self) -> Forest:
        """Return the forest built so far."""
        nodes = slice(self.n_nodes)
        columns = zip(*self.records, strict=True) if self.records else ([], [], [], [])
        rounds = (np.array(c, d) for c, d in zip(columns, (float, np.int64, np.int64, float), strict=True))
        return Forest(self.parent[nodes], self.value[nodes], self.size[nodes], self.round[nodes], *rounds)


def segment_starts(groups: npt.NDArray[Any]) -> Ints:
    """Return the index of the first row of each run of equal rows."""
    changes = groups[1:] != groups[:-1]
    changed = changes if changes.ndim == 1 else changes.any(axis=1)
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(groups)), bool), changed]))
