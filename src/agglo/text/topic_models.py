"""Convert layers of clusters and their names to the formats of DataMapPlot and Toponymy."""

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
    """Return the cluster name of each point, as one array per layer.

    Pass the arrays to DataMapPlot as ``create_interactive_plot(coordinates, *layers)``.

    Parameters
    ----------
    layers : array-like of shape (n_layers, n_points)
        One row of labels per layer, from fine to coarse, as :meth:`agglo.Hierarchy.layers` returns them. Points
        with the label -1 are in no cluster.
    names : sequence of sequence of str
        The names of the clusters of each layer.
    unlabelled : str
        The name of points without a cluster. The default is the same as in DataMapPlot.

    Examples
    --------
    >>> from agglo.topic_models import named_layers
    >>> named_layers([[0, 0, 1, -1], [0, 0, 0, 0]], [["frogs", "skies"], ["nature"]])[0].tolist()
    ['frogs', 'frogs', 'skies', 'Unlabelled']
    """
    rows = _check_layers(layers)
    if len(names) != len(rows):
        raise ValueError(f"names has {len(names)} lists, but layers has {len(rows)} rows: pass one list per layer")
    named = []
    for level, (labels, own) in enumerate(zip(rows, names, strict=True)):
        n_clusters = labels.max() + 1
        if len(own) != n_clusters:
            raise ValueError(
                f"names[{level}] has {len(own)} names, but the layer has {n_clusters} clusters: pass one name per "
                "cluster"
            )
        named.append(np.array([*own, unlabelled], object)[labels])  # the label -1 selects the last entry
    return named


def cluster_tree(layers: npt.ArrayLike) -> ClusterTree:
    """Map each cluster to the clusters that it contains in the next finer layer, as Toponymy's ``cluster_tree_``.

    Keys and entries are pairs (layer, cluster). The root ``(n_layers, 0)`` contains the clusters of the coarsest
    layer.

    Examples
    --------
    >>> from agglo.topic_models import cluster_tree
    >>> cluster_tree([[0, 0, 1, 2], [0, 0, 1, 1]])
    {(1, 0): [(0, 0)], (1, 1): [(0, 1), (0, 2)], (2, 0): [(1, 0), (1, 1)]}
    """
    rows = _check_layers(layers)
    tree: ClusterTree = {}
    for level in range(1, len(rows)):
        for upper, lower in np.unique(np.column_stack([rows[level], rows[level - 1]]), axis=0).tolist():
            if upper >= 0 and lower >= 0:
                tree.setdefault((level, upper), []).append((level - 1, lower))
    tree[(len(rows), 0)] = [(len(rows) - 1, cluster) for cluster in range(rows[-1].max() + 1)]
    return tree


class LayerClusterer:
    """A clusterer for Toponymy that returns the layers of a tree.

    Use it as ``Toponymy(..., clusterer=LayerClusterer(tree))``.

    Parameters
    ----------
    tree : Hierarchy
        A tree with one leaf per object, in the order of the objects.
    n_layers : int
        The maximum number of layers; see :meth:`agglo.Hierarchy.layers`.

    Attributes
    ----------
    cluster_layers_ : list
        One instance of ``layer_class`` per layer, from fine to coarse.
    cluster_tree_ : dict
        See :func:`cluster_tree`.

    Examples
    --------
    >>> import agglo
    >>> from types import SimpleNamespace
    >>> from agglo.topic_models import LayerClusterer
    >>> X = [[0.0], [1.0], [5.0], [6.0]]
    >>> tree = agglo.hac(agglo.neighbor_graph(X, 3, "euclidean"))
    >>> def layer(labels, centroids, layer_id):  # Toponymy passes a class of its own
    ...     return SimpleNamespace(labels=labels, centroids=centroids)
    >>> layers, cluster_tree = LayerClusterer(tree, n_layers=1).fit_predict(X, X, layer)
    >>> layers[0].labels
    array([0, 0, 1, 1])
    """

    def __init__(self, tree: Hierarchy, n_layers: int = 4) -> None:
        self.tree = tree
        self.n_layers = n_layers

    def fit(
        self, clusterable_vectors: Any, embedding_vectors: Any, layer_class: Any, **layer_options: Any
    ) -> LayerClusterer:
        """Create layers of ``layer_class`` from the tree, with the means of ``embedding_vectors`` as centroids.

        ``clusterable_vectors`` is ignored, because the tree defines the clusters.
        """
        if len(embedding_vectors) != self.tree.n_leaves:
            raise ValueError(
                f"embedding_vectors has {len(embedding_vectors)} rows, but the tree has {self.tree.n_leaves} "
                "leaves: pass the vectors of its points"
            )
        layers = self.tree.layers(self.n_layers)
        self.cluster_tree_ = cluster_tree(layers)
        self.cluster_layers_ = [
            layer_class(labels, centers(embedding_vectors, labels), layer_id=level, **layer_options)
            for level, labels in enumerate(layers)
        ]
        return self

    def fit_predict(self, *args: Any, **options: Any) -> tuple[list[Any], ClusterTree]:
        """Call :meth:`fit` with the same arguments; return the layers and the tree of their clusters."""
        self.fit(*args, **options)
        return self.cluster_layers_, self.cluster_tree_


def _check_layers(layers: npt.ArrayLike) -> Layers:
    rows = np.asarray(layers)
    if rows.ndim != 2 or not rows.size or rows.dtype.kind not in "iu" or rows.min() < -1:
        raise ValueError(
            f"layers has shape {rows.shape} and dtype {rows.dtype}: pass integer labels of -1 or more, one row "
            "per layer, as tree.layers() returns them"
        )
    return rows.astype(np.int64)
