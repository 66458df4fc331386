"""Build the two tables of results: one with a row per input row, and one with a row per cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agglo.estimators.run_folder import ITEMS, NAMES, read_run
from agglo.io.files import map_arrow
from agglo.text.names import MAX_NAME, MAX_TYPICAL_TEXT, Names, distinct_name
from agglo.tree.hierarchy import Hierarchy

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClusterPaths:
    """The clusters of a cut, and the clusters of coarser levels that contain them.

    Parameters
    ----------
    nodes : ndarray of int64
        The tree nodes of all these clusters, the largest cluster first.
    parent : ndarray of int64
        The position in ``nodes`` of the next larger cluster that contains the cluster. If there is none, it is -1.
    level : ndarray of int64
        The number of clusters on the path from the top to each cluster, including the cluster.
    cluster : ndarray of int64
        The label of each cluster in the cut. For clusters of coarser levels, it is -1.
    """

    nodes: Ints
    parent: Ints
    level: Ints
    cluster: Ints


def find_paths(tree: Hierarchy, labels: Ints, levels: Sequence[npt.NDArray[Any]]) -> ClusterPaths:
    """Find the clusters of the cut ``labels``, and the clusters of ``levels`` that contain several of them."""
    own = tree.nodes(labels)
    is_chosen = np.zeros(tree.n_nodes, bool)
    for level in levels:
        is_chosen[tree.nodes(np.asarray(level))] = True
    size_of_own = np.bincount(labels)[labels[tree.order[tree.start]]]
    is_chosen &= tree.size > size_of_own
    is_chosen[-1] = False
    is_chosen[own] = True
    nodes = np.flatnonzero(is_chosen)
    nodes = nodes[np.lexsort((nodes, -tree.size[nodes]))]
    position = np.full(tree.n_nodes, -1)
    position[nodes] = np.arange(len(nodes))
    above = tree.parent.astype(np.int64)
    above[-1] = root = tree.n_nodes - 1
    # Pointer jumping: each pass doubles the length of the pointers.
    while not (is_chosen[above] | (above == root)).all():
        above = np.where(is_chosen[above] | (above == root), above, above[above])
    parent = np.where(nodes == root, -1, position[above[nodes]])
    level = np.ones(len(nodes), np.int64)
    for i, up in enumerate(parent.tolist()):  # parents come before their children
        level[i] = 1 if up < 0 else level[up] + 1
    cluster = np.full(len(nodes), -1)
    cluster[position[own]] = np.arange(len(own))
    return ClusterPaths(nodes, parent, level, cluster)


def name_of(node: int, tree: Hierarchy, names: Names, texts: Sequence[str]) -> tuple[str, str]:
    """Return the name and the typical text of a node. If the node is a single text, its name is this text."""
    if node >= tree.n_leaves:
        return names.name[node - tree.n_leaves], names.typical_text[node - tree.n_leaves]
    return _shorten(texts[node])


def _shorten(text: str) -> tuple[str, str]:
    """Return a text as a name and as a typical text."""
    line = " ".join(text[:MAX_TYPICAL_TEXT].split())
    return line[:MAX_NAME], line


def standalone_names(
    nodes: npt.NDArray[np.integer[Any]], tree: Hierarchy, names: Names, texts: Sequence[str]
) -> list[str]:
    """Return different names of nodes, which are clear without the names of their parents.

    If several nodes have the same name, the largest node keeps it.
    """
    n = tree.n_leaves
    named = [
        (names.standalone_name[node - n], names.terms[node - n]) if node >= n else (_shorten(texts[node])[0], [])
        for node in nodes.tolist()
    ]
    return _make_distinct(named, nodes, tree)


def read_cluster_names(run: Path, tree: Hierarchy, labels: Ints) -> list[str] | None:
    """Return the name of each cluster of the cut ``labels`` of a stored tree; see :func:`standalone_names`.

    If ``run`` is not a folder with the names of the tree's nodes, return None.
    """
    if not run.is_dir():
        return None
    paths = read_run(run, lambda files: (files.find(NAMES), files.find(ITEMS)))
    if paths[0] is None or paths[1] is None:
        return None
    names, texts = map_arrow(paths[0]), map_arrow(paths[1])["text"]
    n = tree.n_leaves
    if len(names) != tree.n_nodes - n or len(texts) != n:
        raise ValueError(f"{paths[0]} does not fit the tree: run agglo text again")
    # Earlier versions wrote no standalone names.
    own, terms = names["standalone_name" if "standalone_name" in names.column_names else "name"], names["terms"]
    nodes = tree.nodes(labels)
    named = [
        (own[node - n].as_py(), terms[node - n].as_py()) if node >= n else (_shorten(texts[node].as_py())[0], [])
        for node in nodes.tolist()
    ]
    return _make_distinct(named, nodes, tree)


def _make_distinct(
    named: Sequence[tuple[str, Sequence[str]]], nodes: npt.NDArray[Any], tree: Hierarchy
) -> list[str]:
    """Return different names of nodes, given the name and the terms of each; larger nodes keep their names."""
    found = [""] * len(named)
    used: set[str] = set()
    for i in np.lexsort((nodes, -tree.size[nodes].astype(np.int64))).tolist():
        name, terms = named[i]
        found[i] = distinct_name(name, terms, used)
    return found


def cluster_table(paths: ClusterPaths, tree: Hierarchy, names: Names, texts: Sequence[str], count: Ints) -> Any:
    """Return a pyarrow.Table with one row per cluster, the largest first.

    ``id`` is the tree node of the cluster. ``parent`` is the tree node of the next larger cluster, or null if
    there is none. ``cluster`` is the label, or null for clusters of coarser levels. ``size`` is the number of rows
    of the input, and ``texts`` is the number of different texts. ``name`` is clear without the names of the larger
    clusters; the clusters of the cut have different names. ``path`` has the nested names, from the top to the
    cluster. The other columns are ``level``, ``typical_text`` and ``exemplars``.
    """
    n = tree.n_leaves
    named = [name_of(node, tree, names, texts) for node in paths.nodes.tolist()]
    path = [name for name, _ in named]
    for i, up in enumerate(paths.parent.tolist()):  # parents come before their children
        path[i] = path[i] if up < 0 else f"{path[up]} > {path[i]}"
    alone = np.empty(len(named), object)
    for group in (paths.cluster >= 0, paths.cluster < 0):
        alone[group] = standalone_names(paths.nodes[group], tree, names, texts)
    examples = [names.examples[node - n] if node >= n else [node] for node in paths.nodes.tolist()]
    rows_before = np.append(0, np.cumsum(count[tree.order]))
    start, size = tree.start[paths.nodes], tree.size[paths.nodes]
    return pa.table(
        {
            "id": pa.array(paths.nodes),
            "parent": pa.array(paths.nodes[paths.parent], mask=paths.parent < 0),
            "level": pa.array(paths.level),
            "cluster": pa.array(paths.cluster, mask=paths.cluster < 0),
            "name": pa.array(alone, pa.large_string()),
            "path": pa.array(path, pa.large_string()),
            "size": pa.array(rows_before[start + size] - rows_before[start]),
            "texts": pa.array(size.astype(np.int64)),
            "typical_text": pa.array([text for _, text in named], pa.large_string()),
            "exemplars": pa.array([[texts[i] for i in own] for own in examples], pa.large_list(pa.large_string())),
        }
    )


def row_table(clusters: Any, paths: ClusterPaths, labels: Ints, inverse: Ints) -> Any:
    """Return a pyarrow.Table that has one row for each input row, in the same order.

    ``row`` is the row number, from 0. ``point`` is the leaf of the tree. ``path`` has the nested names from the
    top to the cluster, and ``depth`` is the number of these names. The other columns are ``cluster`` and ``name``.
    For rows without a text, ``point`` and ``cluster`` are -1, ``depth`` is 0, and ``name`` and ``path`` are null.
    """
    position = np.empty(int(labels.max()) + 1, np.int64)
    position[paths.cluster[paths.cluster >= 0]] = np.flatnonzero(paths.cluster >= 0)
    is_empty = inverse < 0
    cluster = np.where(is_empty, -1, labels[inverse])
    place = position[cluster]
    texts = pa.array(place, mask=is_empty)
    return pa.table(
        {
            "row": pa.array(np.arange(len(inverse))),
            "point": pa.array(inverse),
            "cluster": pa.array(cluster),
            "name": clusters["name"].combine_chunks().take(texts),
            "path": clusters["path"].combine_chunks().take(texts),
            "depth": pa.array(np.where(is_empty, 0, paths.level[place])),
        }
    )
