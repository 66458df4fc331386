import numpy as np
import pandas as pd
import pytest
from forests import ancestors, chain, trees
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

import agglo
from agglo import Hierarchy, contents
from agglo.evaluation.clusters import MEDOID_METRICS
from agglo.tree.hierarchy import Rounds


@st.composite
def clusterings(draw):
    """Draw points that often coincide, of any precision, and labels of some of them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 20))
    X = draw(st.sampled_from([rng.integers(-2, 3, (n, d)), rng.normal(size=(n, d)), rng.normal(50, 1, (n, d))]))
    labels = np.unique(rng.integers(0, draw(st.integers(1, 6)), n), return_inverse=True)[1]
    if draw(st.booleans()):
        labels = np.where(labels == labels.max(), -1, labels) if labels.max() > 0 else labels
    return X.astype(draw(st.sampled_from([np.float16, np.float32, np.float64]))), labels


@given(clusterings())
def test_centers_are_means_and_examples_are_nearest(given_):
    X, labels = given_
    means = contents.centers(X, labels)
    found = contents.examples(X, labels, 3)
    k = labels.max() + 1
    assert means.shape == (k, X.shape[1])
    assert found.shape == (k, 3)
    for cluster in range(k):
        members = np.flatnonzero(labels == cluster)
        points = X[members].astype(np.float64)
        np.testing.assert_allclose(means[cluster], points.mean(axis=0), atol=1e-9)
        row = found[cluster][found[cluster] >= 0]
        assert len(row) == len(set(row)) == min(3, len(members))
        squares = dict(zip(members, ((points - means[cluster]) ** 2).sum(axis=1), strict=True))
        assert set(row) <= set(members)
        np.testing.assert_allclose([squares[i] for i in row], sorted(squares.values())[: len(row)], atol=1e-9)


def distances(points, metric):
    points = points.astype(np.float64)
    if metric == "cosine":
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        unit = np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)
        return 1 - unit @ unit.T
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    return squares if metric == "sqeuclidean" else np.sqrt(squares)


@given(clusterings(), st.sampled_from(["sqeuclidean", "euclidean", "cosine"]))
def test_medoids_have_the_least_sum_of_distances(given_, metric):
    X, labels = given_
    found = contents.medoids(X, labels, metric)
    for cluster, medoid in enumerate(found):
        members = np.flatnonzero(labels == cluster)
        sums = distances(X[members], metric).sum(axis=1)
        assert sums[list(members).index(medoid)] == pytest.approx(sums.min(), abs=1e-5)


def test_of_equally_good_points_the_first_is_the_medoid():
    X = [[1.0], [0.0], [0.0], [1.0]]
    for metric in MEDOID_METRICS:
        assert contents.medoids(X, [0, 0, 0, 0], metric).tolist() == [0]


@given(clusterings())
def test_spread_follows_from_points_and_centers(given_):
    X, labels = given_
    found = contents.spread(X, labels)
    means = contents.centers(X, labels)
    for cluster in range(labels.max() + 1):
        points = X[labels == cluster].astype(np.float64)
        assert found.size[cluster] == len(points)
        squares = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
        assert found.cohesion[cluster] == pytest.approx(np.sqrt(squares.mean()), abs=1e-9)
        others = [np.linalg.norm(means[cluster] - mean) for i, mean in enumerate(means) if i != cluster]
        if others:
            assert found.separation[cluster] == pytest.approx(min(others), rel=1e-6, abs=1e-6)
            away = np.linalg.norm(means[cluster] - means[found.nearest[cluster]])
            assert away == pytest.approx(found.separation[cluster])
            assert found.nearest[cluster] != cluster
        else:
            assert (found.separation[cluster], found.nearest[cluster]) == (np.inf, -1)


@given(trees(min_points=2), st.data())
def test_the_first_merge_is_into_the_lowest_ancestor_that_is_large_enough(tree, data):
    least = data.draw(st.integers(2, tree.n_leaves))
    found = contents.first_merge(tree, least)
    for point in range(tree.n_leaves):
        node = next(node for node in ancestors(tree, point) if tree.size[node] >= least)
        assert (found.node[point], found.round[point]) == (node, tree.round[node])
        assert found.height[point] == tree.height[node]


def test_outliers_merge_last():
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[[7, 8]] = [[30.0, 30.0], [30.1, 30.0]]  # they merge with each other first
    X[200] = [-20.0, 9.0]
    tree = agglo.scc(agglo.neighbor_graph(X, 10, "euclidean"))
    assert set(np.argsort(contents.first_merge(tree, min_size=5).height, kind="stable")[-3:]) == {7, 8, 200}
    assert np.argmax(contents.first_merge(tree).height) == 200
    deep = contents.first_merge(chain(100_000), min_size=50_000)
    assert deep.height.tolist() == [49_999.0] * 50_000 + list(range(50_000, 100_000))


# Clusters 0 and 1, cats and dogs, are siblings; cluster 2, machines, is not.
TEXTS = ["a cat sleeps", "the cat plays", "a dog sleeps", "the dog barks", "a machine runs", "the machine hums"]
KINDS = Hierarchy(
    parent=[6, 6, 7, 7, 8, 8, 9, 9, 10, 10, -1],
    height=[0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3],
    size=[1, 1, 1, 1, 1, 1, 2, 2, 2, 4, 6],
    round=[0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3],
    rounds=Rounds([1, 2, 3], [6, 3, 2], [3, 2, 1], [0, 0, 0]),
)


def plain_weight(counts, sizes, cluster, compared, term):
    """Compute the weight of a term by the definition."""
    count, size = counts[cluster][term], sizes[cluster]
    if count == 1 and size >= 4:
        return 0
    whole = sum(counts[other].get(term, 0) for other in compared) / sum(sizes[other] for other in compared)
    return count / size * np.log(count / (size * whole + 0.25))


@given(trees(min_points=2, max_points=12), st.data())
def test_terms_are_those_of_the_highest_weight(tree, data):
    words = ["red", "green", "blue", "white", "black"]
    texts = [
        " ".join(data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=4))) for _ in range(tree.n_leaves)
    ]
    labels = tree.labels(round=data.draw(st.integers(0, len(tree.rounds))))
    k = labels.max() + 1
    counts = [{} for _ in range(k)]
    for text, cluster in zip(texts, labels, strict=True):
        for word in set(text.split()):
            counts[cluster][word] = counts[cluster].get(word, 0) + 1
    nodes, sizes = tree.nodes(labels), np.bincount(labels)
    for given_tree in (None, tree):
        found = contents.terms(texts, labels, tree=given_tree, n=3, vectorizer=CountVectorizer())
        assert len(found) == k
        for cluster in range(k):
            compared = range(k)
            if given_tree is not None and k > 1:
                parent = tree.parent[nodes[cluster]]
                compared = [other for other in range(k) if parent in ancestors(tree, nodes[other])]
            weights = {word: plain_weight(counts, sizes, cluster, compared, word) for word in counts[cluster]}
            positive = sorted((w for w in weights.values() if w > 1e-9), reverse=True)[:3]
            np.testing.assert_allclose([weights[word] for word in found[cluster]], positive)


def test_siblings_are_compared_by_other_terms_than_all_clusters():
    labels = KINDS.labels(round=1)
    assert contents.terms(TEXTS, labels, n=1) == [["cat"], ["dog"], ["machine"]]
    texts = [text + (" with fur" if i < 4 else "") for i, text in enumerate(TEXTS)]
    overall, siblings = contents.terms(texts, labels), contents.terms(texts, labels, tree=KINDS)
    assert "fur" in overall[0]
    assert "fur" not in siblings[0]
    assert siblings[2] == overall[2]  # its parent is the root
    assert contents.terms(texts, np.zeros(6, int), tree=KINDS) == [[]]


def test_by_default_terms_are_phrases_without_stop_words_and_related_words():
    texts = ["lost credit card", "my credit cards were lost", "bake a cake", "baking the cakes", "cake and Tea"]
    labels = [0, 0, 1, 1, 1]
    assert contents.terms(texts, labels) == [["credit card", "lost"], ["cake", "bake", "Tea"]]
    assert contents.terms(texts, labels, stop_words=["lost", "tea"]) == [["credit card"], ["cake", "bake"]]
    assert "the" in contents.terms(["the cat", "the dog", "a fox"], [0, 0, 1], language="none")[0]
    with pytest.raises(ValueError, match="language='latin' is not known: pass one of english"):
        contents.terms(texts, labels, language="latin")


def test_a_vectorizer_selects_the_terms():
    labels = [0, 0, 1, 1, -1, -1]
    pairs = contents.terms(TEXTS, labels, n=2, vectorizer=CountVectorizer(ngram_range=(2, 2)))
    assert pairs == [["cat plays", "cat sleeps"], ["dog barks", "dog sleeps"]]
    assert contents.terms(pd.Series(TEXTS), labels, n=1) == [["cat"], ["dog"]]
    assert contents.terms(TEXTS, labels, tree=KINDS, n=1) == [["cat"], ["dog"]]


def test_a_description_has_all_columns():
    X = np.array([[0.0], [1], [5], [6], [50], [53]])
    labels = KINDS.labels(round=2)
    frame = contents.describe(KINDS, labels, X, TEXTS)
    assert frame.index.name == "cluster"
    assert frame.index.tolist() == [0, 1]
    assert frame["size"].tolist() == [4, 2]
    assert frame["node"].tolist() == [9, 8]
    assert frame["height"].tolist() == [2, 1]
    assert frame["until"].tolist() == [3, 3]
    assert frame["medoid"].tolist() == [1, 4]
    assert frame["separation"].tolist() == [48.5, 48.5]
    assert frame["terms"][1][0] == "machine"
    assert list(contents.describe(KINDS, labels)) == ["size", "node", "height", "until"]
    assert np.isnan(contents.describe(KINDS, np.zeros(6, int))["until"][0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: contents.centers(np.ones((3, 1)), [0, 0]), ValueError, "labels has 2 entries, but X has 3"),
        (lambda: contents.centers(np.ones((2, 1)), [0.0, 1.0]), ValueError, "one integer per point, got float64"),
        (lambda: contents.centers(np.ones((2, 1)), [-1, -1]), ValueError, "labels go from -1 to -1, but clusters"),
        (lambda: contents.spread(np.ones((2, 1)), [0, -2]), ValueError, "labels go from -2 to 0, but clusters"),
        (lambda: contents.spread(np.ones((2, 1)), [0, 2]), ValueError, "no label is 1, but labels go up to 2"),
        (
            lambda: contents.medoids([[1.0]], [0], "dot"),
            ValueError,
            "metric='dot' is unknown: pass one of 'sqeucl",
        ),
        (lambda: contents.examples([[1.0]], [0], 0), ValueError, "n=0 is too small: pass 1 or more"),
        (
            lambda: contents.examples([[1.0]], [0], 1.5),
            TypeError,
            r"n=1\.5 is not an integer: pass a positive integer",
        ),
        (
            lambda: contents.first_merge(KINDS, 1),
            ValueError,
            "min_size=1 is out of range: .* from 2 to 6",
        ),
        (
            lambda: contents.first_merge(KINDS, 7),
            ValueError,
            "min_size=7 is out of range: .* from 2 to 6",
        ),
        (lambda: contents.terms(["a b"], [0, 1]), ValueError, "labels has 2 entries, but texts has 1"),
        (lambda: contents.terms(["cat", None], [0, 1]), TypeError, r"texts\[1\] is None, not a text"),
        (
            lambda: contents.terms(["a", "b"], [0, 1]),
            ValueError,
            "texts contain no terms .* pass a vectorizer",
        ),
        (lambda: contents.terms([], []), ValueError, "labels must be one integer per point"),
    ],
)
def test_wrong_input_is_an_error(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_first_merge_of_a_single_point_is_itself():
    alone = Hierarchy([-1], [0.0], [1], [0], Rounds([], [], [], []))
    assert contents.first_merge(alone, 1).height.tolist() == [0.0]


def test_the_old_names_of_first_merge_warn():
    with pytest.warns(FutureWarning, match="agglo.contents.absorbed is deprecated: use first_merge"):
        assert contents.absorbed is contents.first_merge
    with pytest.warns(FutureWarning, match="agglo.contents.Absorbed is deprecated: use FirstMerge"):
        assert contents.Absorbed is contents.FirstMerge
    with pytest.raises(AttributeError, match="no attribute 'merged'"):
        contents.merged  # noqa: B018
