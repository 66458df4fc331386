"""Neighbour graphs for tests."""

import dataclasses

import numpy as np
from hypothesis import strategies as st

from agglo import NeighborGraph, neighbor_graph


@st.composite
def graphs(draw, max_points=24, styles=("few", "decimal", "negative", "any", "all alike", "wide")):
    """Graphs of all kinds: ties, negative weights, isolated points, many components, any `missing`."""
    n = draw(st.integers(1, max_points))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m = draw(st.integers(0, 4 * n))
    weights = {
        "few": lambda: rng.integers(1, 5, m) / 4,
        "decimal": lambda: rng.integers(1, 11, m) / 10,
        "negative": lambda: rng.integers(-4, 5, m) / 4,
        "any": lambda: rng.random(m),
        "all alike": lambda: np.full(m, 0.7),
        "wide": lambda: 10.0 ** rng.uniform(-30, 30, m),
    }[draw(st.sampled_from(styles))]()
    return NeighborGraph.from_edges(
        rng.integers(0, n, m),
        rng.integers(0, n, m),
        weights,
        n_points=n,
        kind=draw(st.sampled_from(["similarity", "distance"])),
        missing=draw(st.sampled_from([None, "ignore", 0.25, 0.3, -0.2, 1.0])),
    )


def scale(graph, power):
    """The graph with all weights times 2 ** power, and the value of pairs without an edge, too."""
    missing = graph.missing if graph.missing == "ignore" else np.ldexp(graph.missing, power)
    return dataclasses.replace(graph, weights=np.ldexp(graph.weights, power), missing=missing)


@st.composite
def point_graphs(draw, metric, max_points=24):
    """Points of all kinds with ties and copies among them, and a sparse graph of them."""
    n = draw(st.integers(1, max_points))
    d = draw(st.sampled_from([1, 2, 7, 8, 9, 20]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = {
        "any": lambda: rng.normal(size=(n, d)),
        "few": lambda: rng.integers(-1, 2, size=(n, d)).astype(float),
        "far": lambda: 1e4 + rng.normal(size=(n, d)),
    }[draw(st.sampled_from(["any", "few", "far"]))]()
    X[~X.any(axis=1)] = 1.0  # points without a direction are warned of
    k = draw(st.integers(1, 5))
    graph = neighbor_graph(X, min(k, n - 1) if n > 1 else "all", metric)
    return X, graph


@st.composite
def thresholds_for(draw, graph):
    """Thresholds of the right order, many of them equal to weights of the graph."""
    values = draw(
        st.lists(st.integers(-10, 12).map(lambda tenth: tenth / 10), min_size=1, max_size=10, unique=True)
    )
    return np.array(sorted(values, reverse=graph.kind == "similarity"))


def complete_graph(points, metric="euclidean"):
    """The complete graph of a few points, by the plain definition of the distance."""
    n = len(points)
    squares = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    distances = squares if metric == "sqeuclidean" else np.sqrt(squares)
    i, j = np.triu_indices(n, 1)
    return NeighborGraph.from_edges(i, j, distances[i, j], n_points=n, kind="distance", metric=metric)
