import io

import numpy as np
import pytest
from forests import chain, trees
from hypothesis import given, settings
from matplotlib.figure import Figure

import agglo
from agglo import Hierarchy
from agglo.plot import pictures as plot
from agglo.plot.pictures import PALETTE, cluster_colours, icicle, overview, principal_axes, save
from agglo.testing import random_forest


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(400, 4)) + 20 * rng.normal(size=(4, 4))[np.repeat(range(4), 100)]


@pytest.fixture(scope="module")
def tree(points):
    return agglo.scc(agglo.neighbor_graph(points, metric="sqeuclidean"))


def drawn(tree, labels, width=6.0):
    """The rectangles of the icicle: left, right, lower and upper edge, and colour."""
    axes = Figure(figsize=(width, 4), dpi=100).add_axes((0, 0, 1, 1))
    icicle(axes, tree, labels)
    _ground, collection = axes.collections
    boxes = np.array([path.vertices[:4] for path in collection.get_paths()])
    return boxes[:, 0, 0], boxes[:, 2, 0], boxes[:, 0, 1], boxes[:, 1, 1], collection.get_facecolor()


def test_a_horizontal_line_through_the_icicle_is_a_partition(tree):
    left, right, made, gone, _ = drawn(tree, tree.cut(n_clusters=4))
    counts = np.concatenate(([tree.n_leaves], tree.rounds.after))
    for i, count in enumerate(counts):
        hit = (made >= count) & (gone < count)  # made by this round, and not merged in it
        order = np.argsort(left[hit])
        np.testing.assert_array_equal(left[hit][order][1:], right[hit][order][:-1])
        assert sorted(right[hit] - left[hit]) == sorted(np.bincount(tree.labels(round=i)))


def test_nodes_of_a_cluster_have_its_colour_and_those_above_are_grey(tree):
    labels = tree.cut(n_clusters=4)
    *_, made, _, colours = drawn(tree, labels)
    grey = np.ptp(colours[:, :3], axis=1) < 0.1
    assert grey.sum() == (made < labels.max() + 1).sum()


def test_nodes_narrower_than_a_pixel_are_not_drawn():
    tree = chain(50_000)
    left, right, *_ = drawn(tree, tree.cut(n_clusters=2))
    assert (right - left).min() >= 50_000 / 600
    assert len(left) < 50_000


def test_many_points_rounds_and_clusters_are_no_more_to_draw():
    tree = chain(200_000)
    figure = overview(tree, tree.labels(round=100_000), np.zeros((200_000, 2)))
    tree_axes, round_axes, point_axes = figure.axes
    assert len(round_axes.lines[0].get_xdata()) <= 2_000
    assert len(point_axes.collections[0].get_offsets()) <= 20_000
    assert len(tree_axes.collections[0].get_paths()) == 1  # clusters but one are single points


@settings(max_examples=25)
@given(trees())
def test_any_tree_can_be_drawn(tree):
    figure = overview(tree, tree.cut(round=-1))
    save_to_memory(figure)


def save_to_memory(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    assert buffer.getvalue().startswith(b"\x89PNG")
    return buffer.getvalue()


def test_the_same_data_give_the_same_picture(tree, points):
    labels = tree.cut(n_clusters=4)
    pictures = {c: np.eye(3) for c in range(4)}
    first, second = (save_to_memory(overview(tree, labels, points, title="t", pictures=pictures)) for _ in "ab")
    assert first == second


def test_the_largest_clusters_have_colours_of_their_own():
    sizes = np.arange(30, 0, -1)
    colours = cluster_colours(np.repeat(np.arange(30), sizes))
    assert len(np.unique(colours[: len(PALETTE)], axis=0)) == len(PALETTE)
    assert len(np.unique(colours[len(PALETTE) :], axis=0)) == 1


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (3, 5), (5000, 3)])
def test_principal_axes_keep_what_they_can(shape):
    X = np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1)
    flat = principal_axes(X)
    assert flat.shape == (shape[0], 2)
    assert np.var(flat, axis=0)[0] >= np.var(flat, axis=0)[1]
    assert np.isfinite(principal_axes(np.zeros(shape), unit=True)).all()


def test_a_picture_is_written_whole_in_the_format_of_its_name(tree, tmp_path):
    figure = overview(tree, tree.cut(n_clusters=4))
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")):
        save(figure, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"a picture cannot be written to .*a\.txt: end the name in \.png"):
        save(figure, tmp_path / "a.txt")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("kind", plot.KINDS)
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_every_kind_is_drawn_in_one_line(kind, metric, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 3)) + np.repeat([[9, 0, 0], [0, 9, 0]], 100, axis=0)
    tree = agglo.scc(agglo.neighbor_graph(X, 10, metric))
    path = tmp_path / "picture.png"
    plot.save(plot.draw(tree, kind, X=X), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_says_why():
    tree = agglo.hac(agglo.NeighborGraph.from_edges([0], [1], [1.0], kind="distance"))
    with pytest.raises(ValueError, match="kind='pie' is unknown: pass one of overview, treemap"):
        plot.draw(tree, "pie")
    with pytest.raises(ValueError, match="kind='dp-means' needs the points"):
        plot.draw(tree, "dp-means")


def labels_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_counts_are_short_and_inside_the_picture():
    forest = random_forest(np.random.default_rng(0), 200_000)
    figure = overview(tree := Hierarchy.from_forest(forest, kind="distance", missing="ignore"), tree.cut(2))
    figure.canvas.draw()
    shown = labels_of(figure.axes[0].yaxis)
    assert shown[-1] == "200k"
    assert {"1", "100", "1,000", "10k"} <= set(shown)
    boxes = [label.get_window_extent() for label in figure.axes[0].yaxis.get_ticklabels()]
    assert min(box.x0 for box in boxes) >= 0


def test_few_clusters_have_plain_numbers():
    X = [[0.0], [1.0], [5.0], [5.5], [9.0]]
    figure = plot.draw(agglo.hac(agglo.neighbor_graph(X, "all", "sqeuclidean")), "dp-means", X=X)
    figure.canvas.draw()
    assert labels_of(figure.axes[1].yaxis) == ["1", "2", "5"]
