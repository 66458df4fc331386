"""The algorithms in plain NumPy: slow, short, and the specification of what every other engine must return."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from agglo.graph import NeighborGraph
from agglo.linkage import GraphLinkage, LinkageName
from agglo.rounds import Advance, Plan, affinity_plan, hac_plan, hierarchy, scc_plan
from agglo.schedule import ScheduleName
from agglo.tree import Forest, Hierarchy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def scc(
    graph: NeighborGraph,
    thresholds: ScheduleName | npt.ArrayLike = "odds",
    n_thresholds: int | None = None,
    linkage: LinkageName = "average",
    advance: Advance = "every-round",
) -> Hierarchy:
    """The tree of the Sub-Cluster Component algorithm, see :func:`agglo.scc`."""
    plan = scc_plan(graph, thresholds, n_thresholds, linkage, advance)
    return hierarchy(graph, plan, run(graph, plan))


def affinity(graph: NeighborGraph, linkage: LinkageName = "average") -> Hierarchy:
    """The tree of Affinity clustering, see :func:`agglo.affinity`."""
    plan = affinity_plan(linkage)
    return hierarchy(graph, plan, run(graph, plan))


def hac(graph: NeighborGraph, linkage: LinkageName = "average") -> Hierarchy:
    """The tree of hierarchical agglomerative clustering, see :func:`agglo.hac`."""
    plan = hac_plan(linkage)
    return hierarchy(graph, plan, run(graph, plan))


def run(graph: NeighborGraph, plan: Plan) -> Forest:
    """The forest that ``plan`` makes of ``graph``."""
    n = graph.n_points
    linkage = GraphLinkage(graph, plan.linkage)
    sign = linkage.sign

    # A cluster is named by its smallest point. `pairs` are the pairs of clusters with an edge between them.
    size = np.ones(n, np.int64)
    node = np.arange(n)
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    once = rows < graph.indices
    pairs = np.column_stack([rows[once], graph.indices[once]]).astype(np.int64)
    edges = linkage.of_edges(graph.weights[once])
    clusters = n

    parent, value, node_size, node_round = [-1] * n, [np.nan] * n, [1] * n, [0] * n
    records: list[tuple[float, int, int, float]] = []
    # Without thresholds there is one that everything reaches, kept until nothing merges.
    thresholds = [-sign * np.inf] if plan.thresholds is None else plan.thresholds
    stay = plan.until_stable or plan.thresholds is None

    step = 0
    while step < len(thresholds) and len(pairs):
        started = time.perf_counter()
        close = linkage.value(edges, size[pairs[:, 0]].astype(float), size[pairs[:, 1]].astype(float))
        source, target, nearest = nearest_neighbors(pairs, close)
        joins = nearest.astype(np.float32) >= np.float32(sign * thresholds[step])
        if plan.mutual:
            back = np.full(n, -1)
            back[source] = target
            joins &= back[target] == source
        if not joins.any():
            step += 1
            continue
        source, target, nearest = source[joins], target[joins], nearest[joins]

        # Components of the joining pairs; the smallest point of a component names the new cluster.
        matrix = coo_array((np.ones(len(source)), (source, target)), shape=(n, n))
        component = connected_components(matrix, directed=False)[1]
        name = np.full(component.max() + 1, n)
        np.minimum.at(name, component, np.arange(n))
        joined = name[component]  # of each old cluster: the new one
        members = np.unique(np.concatenate([source, target]))
        new, which = np.unique(joined[members], return_inverse=True)
        farthest = np.full(len(new), np.inf)
        np.minimum.at(farthest, np.searchsorted(new, joined[source]), nearest)
        first = len(parent)
        for child, inverse in zip(node[members], which, strict=True):
            parent[child] = first + int(inverse)
        size[new] = np.bincount(which, weights=size[members]).astype(np.int64)
        node[new] = first + np.arange(len(new))
        before, clusters = clusters, clusters - len(members) + len(new)
        parent += [-1] * len(new)
        value += (sign * farthest).tolist()
        node_size += size[new].tolist()
        node_round += [len(records) + 1] * len(new)

        # Contract the edges to the new clusters.
        ends = np.sort(joined[pairs], axis=1)
        apart = ends[:, 0] != ends[:, 1]
        pairs, pair = np.unique(ends[apart], axis=0, return_inverse=True)
        edges = edges.where(apart).merged(pair.ravel(), len(pairs), plan.linkage)
        threshold = np.nan if plan.thresholds is None else float(thresholds[step])
        records.append((threshold, before, clusters, time.perf_counter() - started))
        step += not stay

    columns = zip(*records, strict=True) if records else ([], [], [], [])
    return Forest(
        np.array(parent, np.int32),
        np.array(value, np.float64),
        np.array(node_size, np.int32),
        np.array(node_round, np.int32),
        *(np.array(c, d) for c, d in zip(columns, (float, np.int64, np.int64, float), strict=True)),
    )


def nearest_neighbors(pairs: Ints, close: Floats) -> tuple[Ints, Ints, Floats]:
    """For each cluster with a neighbour: itself, its nearest neighbour and how close; ties to the smaller name."""
    source = np.concatenate([pairs[:, 0], pairs[:, 1]])
    target = np.concatenate([pairs[:, 1], pairs[:, 0]])
    close = np.concatenate([close, close])
    order = np.lexsort((target, -close, source))
    source, first = np.unique(source[order], return_index=True)
    return source, target[order][first], close[order][first]
