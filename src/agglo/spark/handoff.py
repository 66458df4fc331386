"""The hand-off: what fits one machine is collected, and the core clusters it in the driver."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from agglo.neighbors.graph import Kind, Missing
from agglo.rounds.linkage import Grid, Statistics
from agglo.rounds.plan import RoundPlan
from agglo.spark.contracted_graph import Contracted, rest
from agglo.tree.forest import Forest, Round

Ints = npt.NDArray[np.int64]


class HandedOff(NamedTuple):
    """What the core made of a graph between clusters."""

    names: Ints
    """The clusters that have edges, in order; those without were not collected, and nothing happens to them."""
    sizes: Ints
    """How many points these are of."""
    forest: Forest
    """What became of them, its leaves being these clusters."""

    def rounds(self, clusters: int) -> list[Round]:
        """The records of the rounds, of all ``clusters``."""
        alone = clusters - len(self.names)
        of = self.forest
        records = zip(of.threshold, of.before + alone, of.after + alone, of.seconds, strict=True)
        return [Round(*(value.item() for value in record)) for record in records]

    def merges(self, sign: int, rounds: int) -> pa.Table:
        """Rows of :func:`agglo.spark.round.merges`, after so many ``rounds``."""
        forest = self.forest
        name, size = self._nodes()
        child = np.flatnonzero(forest.parent >= 0)
        parent = forest.parent[child]
        return pa.table(
            {
                "round": (rounds + forest.round[parent]).astype(np.int32),
                "child": name[child],
                "child_size": size[child],
                "cluster": name[parent],
                "size": size[parent],
                "value": sign * forest.value[parent],
            }
        )

    def moves(self) -> pa.Table:
        """Of each cluster that took part: ``child``, and the ``cluster`` of ``size`` that it is part of now."""
        name, size = self._nodes()
        n, parent = len(self.names), self.forest.parent
        top = np.where(parent < 0, np.arange(len(parent)), parent)
        while (top[top] != top).any():
            top = top[top]
        moved = np.flatnonzero(parent[:n] >= 0)
        return pa.table({"child": name[moved], "cluster": name[top[moved]], "size": size[top[moved]]})

    def _nodes(self) -> tuple[Ints, Ints]:
        """Name and size of each node of the forest."""
        forest, n, last = self.forest, len(self.names), len(self.forest.threshold)
        inner = len(forest.parent) - n
        name = np.concatenate([self.names, np.full(inner, np.iinfo(np.int64).max)])
        size = np.concatenate([self.sizes, np.zeros(inner, np.int64)])
        child = np.flatnonzero(forest.parent >= 0)
        parent = forest.parent[child]
        # Round by round, so that names and sizes of children are known before those of their parents.
        order = np.argsort(forest.round[parent], kind="stable")
        bounds = np.searchsorted(forest.round[parent][order], np.arange(1, last + 2))
        for first, end in pairwise(bounds):
            now = order[first:end]
            np.minimum.at(name, parent[now], name[child[now]])
            np.add.at(size, parent[now], size[child[now]])
        return name, size


def handed_off(
    edges: DataFrame, plan: RoundPlan, steps: slice, fixed: Grid, kind: Kind, missing: Missing
) -> HandedOff:
    """What the thresholds of ``steps`` make of a graph in the columns of :mod:`agglo.spark.linkage`."""
    table = edges.toArrow()
    ends = [table[end].to_numpy() for end in ("lo", "hi")]
    names, places = np.unique(np.concatenate(ends), return_inverse=True)
    rows, columns = np.split(places, 2)
    sizes = np.empty(len(names), np.int64)
    sizes[rows], sizes[columns] = table["lo_size"].to_numpy(), table["hi_size"].to_numpy()
    combined = table["combined"]
    # Decimals are integers of 128 bits, which only Python's hold.
    wide = pa.types.is_decimal(combined.type)
    values = np.array([int(value) for value in combined.to_pylist()], object) if wide else combined.to_numpy()
    statistics = Statistics(values, table["count"].to_numpy())
    del table
    thresholds = np.empty(0) if plan.thresholds is None else plan.thresholds[steps]
    contracted = Contracted(sizes, rows, columns, statistics)
    return HandedOff(names, sizes, rest(contracted, plan, thresholds, fixed, kind=kind, missing=missing))
