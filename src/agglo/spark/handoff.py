"""The hand-off: once the graph between clusters fits one machine, the core does the rest in the driver."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agglo.contracted import Contracted, rest
from agglo.graph import Kind, Missing
from agglo.linkage import Grid, Statistics
from agglo.records import Forest, Round
from agglo.rounds import Plan
from agglo.spark.folder import MERGES, Folder, State

Ints = npt.NDArray[np.int64]


def handed_off(
    folder: Folder, state: State, plan: Plan, step: int, fixed: Grid, kind: Kind, missing: Missing
) -> State:
    """The last state of a run: its contracted graph collected, clustered, and the merges written as a table."""
    table = folder.read(state.edges).toArrow()
    ends = [table[end].to_numpy() for end in ("lo", "hi")]
    names, places = np.unique(np.concatenate(ends), return_inverse=True)
    rows, columns = np.split(places, 2)
    sizes = np.empty(len(names), np.int64)
    sizes[rows], sizes[columns] = table["lo_size"].to_numpy(), table["hi_size"].to_numpy()
    combined = table["combined"]
    # Decimals are integers of 128 bits, which only Python's hold.
    wide = pa.types.is_decimal(combined.type)
    values = np.array([int(value) for value in combined.to_pylist()], object) if wide else combined.to_numpy()
    edges = Statistics(values, table["count"].to_numpy())
    del table
    left = np.empty(0) if plan.thresholds is None else plan.thresholds[step:]
    forest = rest(Contracted(sizes, rows, columns, edges), plan, left, fixed, kind=kind, missing=missing)

    # Clusters without edges were not collected; nothing happens to them.
    alone = state.clusters - len(names)
    records = zip(forest.threshold, forest.before + alone, forest.after + alone, forest.seconds, strict=True)
    rounds = [Round(*(value.item() for value in record)) for record in records]
    number = state.number + 1
    where = f"{MERGES}/{number:05}"
    sign = 1 if kind == "similarity" else -1
    folder.write(folder.spark.createDataFrame(_merges(forest, names, sizes, sign, state.n_rounds)), where)
    after = rounds[-1].after if rounds else state.clusters
    return State(
        number=number,
        edges=state.edges,
        n_edges=state.n_edges,
        best=None,
        clusters=after,
        step=step + len(left),
        n_rounds=state.n_rounds + len(rounds),
        merges=where,
        rounds=rounds,
        done=True,
    )


def _merges(forest: Forest, names: Ints, sizes: Ints, sign: int, before: int) -> pa.Table:
    """A forest over clusters as rows of :func:`agglo.spark.round.merges`, after ``before`` rounds."""
    n, last = len(names), len(forest.threshold)
    name = np.concatenate([names, np.full(len(forest.parent) - n, np.iinfo(np.int64).max)])
    size = np.concatenate([sizes, np.zeros(len(forest.parent) - n, np.int64)])
    child = np.flatnonzero(forest.parent >= 0)
    parent = forest.parent[child].astype(np.int64)
    made = forest.round[parent]
    # Round by round, so that names and sizes of children are known before those of their parents.
    order = np.argsort(made, kind="stable")
    bounds = np.searchsorted(made[order], np.arange(1, last + 2))
    for first, end in pairwise(bounds):
        now = order[first:end]
        np.minimum.at(name, parent[now], name[child[now]])
        np.add.at(size, parent[now], size[child[now]])
    return pa.table(
        {
            "round": (before + made).astype(np.int32),
            "child": name[child],
            "child_size": size[child],
            "cluster": name[parent],
            "size": size[parent],
            "value": sign * forest.value[parent],
        }
    )
