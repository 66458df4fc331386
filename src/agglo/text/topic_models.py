"""What other tools for maps and topics of texts take: layers of names, and layers of clusters with their tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from agglo.evaluation.clusters import centers
from agglo.tree.hierarchy import Hierarchy

Layers = npt.NDArray[np.int64]
ClusterTree = dict[tuple[int, int], list[tuple[int, int]]]


def named_layers(
    layers: npt.ArrayLike, names: Sequence[Sequence[str]], *, unlabelled: str = "Unlabelled"
) -> list[npt.NDArray[np.object_]]:
    """A name a point for each layer, as DataMapPlot takes them: ``create_interactive_plot(coordinates, *layers)``.

    Parameters
    ----------
    layers : array-like of shape (n_layers, n_points)
        Labels, from fine to coarse, as of :meth:`agglo.Hierarchy.layers`; -1 for a point of none.
    names : sequence of sequence of str
        For each layer the names of its clusters.
    unlabelled : str
        What points of no cluster are called; DataMapPlot's own word for it by default.

    Examples
    --------
    >>> from agglo.topic_models import named_layers
    >>> named_layers([[0, 0, 1, -1], [0, 0, 0, 0]], [["frogs", "skies"], ["nature"]])[0].tolist()
    ['frogs', 'frogs', 'skies', 'Unlabelled']
    """
    rows = _checked(layers)
    if len(names) != len(rows):
        raise ValueError(f"there are names of {len(names)} layers, but {len(rows)} layers: pass a list for each")
    found = []
    for labels, own in zip(rows, names, strict=True):
        if len(own) != labels.max() + 1:
            raise ValueError(f"a layer of {labels.max() + 1} clusters has {len(own)} names: pass one for each")
        found.append(np.array([*own, unlabelled], object)[labels])  # -1 is the last
    return found


def cluster_tree(layers: npt.ArrayLike) -> ClusterTree:
    """Which clusters of the layer below each cluster holds, as Toponymy has it: keys are (layer, cluster).

    The root, ``(n_layers, 0)``, holds the clusters of the coarsest layer.

    Examples
    --------
    >>> from agglo.topic_models import cluster_tree
    >>> cluster_tree([[0, 0, 1, 2], [0, 0, 1, 1]])
    {(1, 0): [(0, 0)], (1, 1): [(0, 1), (0, 2)], (2, 0): [(1, 0), (1, 1)]}
    """
    rows = _checked(layers)
    tree: ClusterTree = {}
    for level in range(1, len(rows)):
        for upper, lower in np.unique(np.column_stack([rows[level], rows[level - 1]]), axis=0).tolist():
            if upper >= 0 and lower >= 0:
                tree.setdefault((level, upper), []).append((level - 1, lower))
    tree[(len(rows), 0)] = [(len(rows) - 1, cluster) for cluster in range(rows[-1].max() + 1)]
    return tree


class LayerClusterer:
    """The layers of a tree as a clusterer of Toponymy's: ``Toponymy(..., clusterer=LayerClusterer(tree))``.

    Parameters
    ----------
    tree : Hierarchy
        The tree of the objects that topics are wanted for, in their order.
    n_layers : int
        How many layers, at most; see :meth:`agglo.Hierarchy.layers`.

    Attributes
    ----------
    cluster_layers_ : list
        A layer each, from fine to coarse, made by the class that is given.
    cluster_tree_ : dict
        See :func:`cluster_tree`.
    """

    def __init__(self, tree: Hierarchy, n_layers: int = 4) -> None:
        self.tree = tree
        self.n_layers = n_layers

    def fit(
        self, clusterable_vectors: Any, embedding_vectors: Any, layer_class: Any, **layer_options: Any
    ) -> LayerClusterer:
        """Make layers of ``layer_class`` with the means of ``embedding_vectors``; the clusters are the tree's."""
        if len(embedding_vectors) != self.tree.n_leaves:
            raise ValueError(
                f"there are {len(embedding_vectors)} vectors, but the tree has {self.tree.n_leaves} leaves: pass "
                "those of its points"
            )
        layers = self.tree.layers(self.n_layers)
        self.cluster_tree_ = cluster_tree(layers)
        self.cluster_layers_ = [
            layer_class(labels, centers(embedding_vectors, labels), layer_id=level, **layer_options)
            for level, labels in enumerate(layers)
        ]
        return self

    def fit_predict(self, *args: Any, **options: Any) -> tuple[list[Any], ClusterTree]:
        """The layers and their tree."""
        self.fit(*args, **options)
        return self.cluster_layers_, self.cluster_tree_


def _checked(layers: npt.ArrayLike) -> Layers:
    rows = np.asarray(layers)
    if rows.ndim != 2 or not rows.size or rows.dtype.kind not in "iu" or rows.min() < -1:
        raise ValueError(
            f"layers are {rows.dtype} of shape {rows.shape}: pass labels from -1 on, a row a layer, as of "
            "tree.layers()"
        )
    return rows.astype(np.int64)
