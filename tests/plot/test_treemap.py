import numpy as np
import pytest
from forests import chain, trees
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import agglo
from agglo.plot import draw, treemap
from agglo.plot.style import PALETTE, branches_of, cluster_colours
from agglo.plot.treemap import Box, squarify


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=40),
    st.floats(1, 100),
    st.floats(1, 100),
)
def test_boxes_fill_the_area_in_proportion_and_do_not_overlap(sizes, width, height):
    sizes = sorted(sizes, reverse=True)
    boxes = squarify(sizes, Box(3, 5, width, height))
    areas = np.array([box.width * box.height for box in boxes])
    np.testing.assert_allclose(areas, np.array(sizes) / sum(sizes) * width * height, rtol=1e-6)
    corners = np.array([(box.x, box.y, box.x + box.width, box.y + box.height) for box in boxes])
    assert (corners[:, :2] > np.array([3, 5]) - 1e-6).all()
    assert (corners[:, 2:] < np.array([3 + width, 5 + height]) + 1e-6 * (width + height)).all()
    low = np.maximum(corners[:, None, :2], corners[None, :, :2])
    high = np.minimum(corners[:, None, 2:], corners[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(axis=2)
    assert (common[~np.eye(len(boxes), dtype=bool)] < 1e-6 * width * height).all()


def test_equal_sizes_give_squares():
    boxes = squarify([1.0] * 16, Box(0, 0, 8, 8))
    np.testing.assert_allclose([(box.width, box.height) for box in boxes], 2.0)


@pytest.fixture(scope="module")
def tree():
    X = np.random.default_rng(0).normal(size=(600, 3))
    return agglo.scc(agglo.neighbor_graph(X, metric="sqeuclidean"))


def test_a_treemap_has_a_box_with_name_and_size_for_each_cluster(tree):
    labels = tree.taxonomy([9]).labels[0]
    nodes = tree.nodes(labels)
    axes = draw(tree, "treemap", labels, names=lambda node: f"node {node}").axes[0]
    assert len(axes.patches) == len(nodes)
    texts = [text.get_text() for text in axes.texts]
    for node in nodes.tolist():
        at = texts.index(f"node {node}")
        assert texts[at + 1] == str(tree.size[node])
    areas = sorted(box.get_width() * box.get_height() for box in axes.patches)
    ratios = areas / np.sort(tree.size[nodes])
    assert ratios.max() < 1.1 * ratios.min(), "areas show sizes, but for the gaps between branches"


def test_the_default_treemap_has_about_forty_clusters_with_their_sizes(tree):
    axes = draw(tree, "treemap").axes[0]
    assert 20 <= len(axes.patches) <= 80
    sizes = set(map(str, np.bincount(tree.taxonomy([40]).labels[0])))
    assert sizes >= {text.get_text() for text in axes.texts} != set()


def test_names_must_be_a_function(tree):
    with pytest.raises(TypeError, match="names is a list: pass a function that returns the name of a node"):
        draw(tree, "treemap", names=["a", "b"])


def test_text_stays_in_its_box(tree):
    figure = draw(tree, "treemap", tree.taxonomy([60]).labels[0], names=lambda _: "$a$ long-winded name, of it")
    figure.canvas.draw()
    axes = figure.axes[0]
    frames = [patch.get_window_extent() for patch in axes.patches]
    for text in axes.texts:
        extent = text.get_window_extent()
        assert any(box.x0 <= extent.x0 and extent.x1 <= box.x1 + 1 for box in frames), text.get_text()


def test_clusters_of_a_branch_have_one_hue(tree):
    labels = tree.taxonomy([40]).labels[0]
    branches = branches_of(labels, tree)
    colours = cluster_colours(labels, tree)
    coarse = tree.taxonomy([len(PALETTE)]).labels[0]
    assert len(set(branches.tolist())) == coarse.max() + 1
    for cluster, branch in enumerate(branches.tolist()):
        assert len(set(coarse[labels == cluster].tolist())) == 1
        paler = 1 - np.array(to_rgb(PALETTE[branch % len(PALETTE)]))
        ratios = (1 - colours[cluster])[paler > 0] / paler[paler > 0]
        assert np.ptp(ratios) < 1e-9, "the colour of the branch, mixed with white"


@settings(max_examples=25, deadline=None)
@given(trees())
def test_any_tree_can_be_drawn(tree):
    figure = draw(tree, "treemap")
    assert len(figure.axes[0].patches) >= 1


def test_thousands_of_clusters_can_be_drawn():
    tree = chain(3000)
    labels = tree.labels(round=1000)
    axes = Figure().add_axes((0, 0, 1, 1))
    treemap(axes, tree, labels)
    assert len(axes.patches) == labels.max() + 1
