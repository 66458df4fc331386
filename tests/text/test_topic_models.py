from typing import NamedTuple

import numpy as np
import pytest
from forests import trees
from hypothesis import assume, given

import agglo
from agglo.text.topic_models import LayerClusterer, cluster_tree, named_layers


class Layer(NamedTuple):
    """What a layer of Toponymy's is made with."""

    cluster_labels: np.ndarray
    centroid_vectors: np.ndarray
    layer_id: int
    show_progress_bar: bool = False


@given(trees(min_points=3))
def test_the_tree_of_layers_holds_every_cluster_once_and_its_points(tree):
    assume(any(1 < number < tree.n_leaves for number in tree.rounds.after))
    layers = tree.layers(3)
    found = cluster_tree(layers)
    below = [child for children in found.values() for child in children]
    every = [(level, cluster) for level, labels in enumerate(layers) for cluster in range(labels.max() + 1)]
    assert sorted(below) == sorted(every)
    assert set(found) == {(len(layers), 0), *(pair for pair in every if pair[0] > 0)}
    for (level, cluster), children in found.items():
        if level == len(layers):
            continue
        points = np.flatnonzero(layers[level] == cluster)
        assert {(level - 1, label) for label in layers[level - 1][points].tolist()} == set(children)


def test_layer_clusterer_has_the_interface_of_toponymy():
    X = np.random.default_rng(0).normal(size=(200, 4))
    tree = agglo.scc(agglo.neighbor_graph(X, 10))
    layers, below = LayerClusterer(tree, 3).fit_predict(X, X, Layer, show_progress_bar=True)
    assert len(layers) == 3
    np.testing.assert_array_equal([layer.cluster_labels for layer in layers], tree.layers(3))
    assert below == cluster_tree(tree.layers(3))
    assert [layer.layer_id for layer in layers] == [0, 1, 2]
    first = layers[2]
    np.testing.assert_allclose(first.centroid_vectors[0], X[first.cluster_labels == 0].mean(axis=0))
    with pytest.raises(
        ValueError,
        match="embedding_vectors has 3 rows, but the tree has 200 leaves: pass the vectors of its points",
    ):
        LayerClusterer(tree).fit(X[:3], X[:3], Layer)


def test_names_of_the_wrong_shape_are_errors():
    with pytest.raises(ValueError, match="names has 1 lists, but layers has 2 rows: pass one list per layer"):
        named_layers([[0, 1], [0, 0]], [["a", "b"]])
    with pytest.raises(
        ValueError, match=r"names\[0\] has 1 names, but the layer has 2 clusters: pass one name per cluster"
    ):
        named_layers([[0, 1]], [["a"]])
    with pytest.raises(
        ValueError, match=r"layers has shape \(2,\) and dtype int64: pass integer labels of -1 or more"
    ):
        named_layers([0, 1], [["a"]])


def test_scc_is_a_cluster_model_as_bertopic_documents_it():
    # A model is given reduced embeddings, with or without y, and must have labels_ then; nothing else is asked.
    X = np.repeat(np.eye(3), 20, axis=0) + 0.05 * np.random.default_rng(0).normal(size=(60, 3))
    for fit in (lambda model: model.fit(X), lambda model: model.fit(X, y=None)):
        model = agglo.SCC(n_clusters=3, n_neighbors=5)
        fit(model)
        assert agglo.metrics.pairwise_f1(np.repeat([0, 1, 2], 20), model.labels_).f1 == 1
        assert model.labels_.dtype.kind == "i"
