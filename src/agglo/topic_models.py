"""Adapters for topic models: named layers and a clusterer; see :mod:`agglo.text.topic_models`."""

from agglo.text.topic_models import LayerClusterer, cluster_tree, named_layers

__all__ = ["LayerClusterer", "cluster_tree", "named_layers"]
