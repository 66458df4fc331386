import numpy as np
import pytest
from forests import trees
from hypothesis import given
from hypothesis import strategies as st

import agglo
from agglo.text.names import name_nodes

WORDS = st.lists(st.sampled_from(["red", "green", "apple", "car", "the", "🐸", "ضفدع", "!"]), max_size=5)


@given(trees(min_points=2, max_points=25), st.data())
def test_names_follow_the_definition(tree, data):
    texts = [" ".join(data.draw(WORDS)) for _ in range(tree.n_leaves)]
    names = name_nodes(tree, texts)
    words = [{word for word in text.split() if len(word) > 1 and word.isalpha()} for text in texts]
    everywhere = share_of(words)
    for place, node in enumerate(range(tree.n_leaves, tree.n_nodes)):
        leaves = tree.leaves(node).tolist()
        assert set(names.examples[place]) <= set(leaves)
        assert len(set(names.examples[place])) == min(5, len(leaves))
        terms = names.terms[place]
        if node == tree.n_nodes - 1:
            assert terms == []
            continue
        own = share_of([words[leaf] for leaf in leaves])
        around = share_of([words[leaf] for leaf in tree.leaves(tree.parent[node])])
        rarity = {w: min(np.log10(len(texts) / sum(w in text for text in words)), 1) for w in own}
        weight = {w: own[w] * np.log(own[w] / np.sqrt(around[w] * everywhere[w])) * rarity[w] for w in own}
        expected = sorted((w for w in weight if weight[w] > 1e-9), key=lambda w: -weight[w])
        np.testing.assert_allclose(
            [weight[w] for w in terms], [weight[w] for w in expected][: len(terms)], atol=1e-9
        )
        assert len(terms) >= min(len(expected), 8)
        assert names.name[place].endswith(" ".join(texts[names.examples[place][0]].split()))


def share_of(words):
    counts = {}
    for text in words:
        for word in text:
            counts[word] = counts.get(word, 0) + 1
    total = sum(counts.values())
    return {word: count / total for word, count in counts.items()}


def test_the_most_central_texts_come_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    tree = agglo.scc(agglo.neighbor_graph(X, 10))
    names = name_nodes(tree, [f"text {i}" for i in range(60)], X)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for place, node in enumerate(range(60, tree.n_nodes)):
        leaves = tree.leaves(node)
        scores = (unit[leaves] @ unit[leaves].T).mean(axis=1)
        best = np.sort(scores)[::-1][:5]
        found = [scores[leaves.tolist().index(point)] for point in names.examples[place]]
        np.testing.assert_allclose(found, best, rtol=1e-5)


def test_of_equal_examples_and_terms_the_first_are_taken():
    """Which of them a partial sort leaves in front depends on the processor."""
    words = {kind: [f"{kind}{i:02}" for i in range(50)] for kind in "ab"}
    # Every fourth text lacks the even words: it is less central, and these words are rarer. The rest is equal.
    texts = [" ".join(own[1::2] if i % 4 == 0 else own) for own in words.values() for i in range(60)]
    X = np.arange(120)[:, None] + np.repeat([[0], [999]], 60, axis=0)
    tree = agglo.scc(agglo.neighbor_graph(X, 5, "euclidean"))
    names = name_nodes(tree, texts)
    for own, points in zip(words.values(), (range(60), range(60, 120)), strict=True):
        node = next(v for v in range(120, tree.n_nodes) if set(tree.leaves(v).tolist()) == set(points))
        whole = [i for i in tree.order[tree.start[node] :].tolist() if i % 4]
        assert names.examples[node - 120] == whole[:5]
        terms = names.terms[node - 120]
        assert len(terms) >= 5
        assert terms == own[::2][: len(terms)]


def test_progress_is_reported_and_small_clusters_are_named_by_a_text():
    X = [[0.0], [1.0], [50.0], [51.0], [52.0], [53.0]]
    tree = agglo.hac(agglo.neighbor_graph(X, "all", "euclidean"))
    texts = ["a red apple", "a red pear", "a fast car", "a fast bus", "a fast train", "one  slow\ncar"]
    reports = []
    names = name_nodes(tree, texts, progress=lambda *words: reports.append(words))
    assert reports[0] == ("names", 0, 5)
    by_leaves = {tuple(tree.leaves(n).tolist()): names.name[n - 6] for n in range(6, tree.n_nodes)}
    assert by_leaves[(0, 1)] in texts
    assert "fast" in by_leaves[(2, 3, 4, 5)].split(" — ")[0]


@pytest.mark.parametrize("has_vectors", [False, True])
def test_two_texts_of_a_node_are_equally_central_and_keep_their_order(has_vectors):
    """Their scores are equal but for rounding, which depends on the processor."""
    rng = np.random.default_rng(0)
    vocabulary = [f"word{i}" for i in range(40)]
    texts = [" ".join(rng.choice(vocabulary, rng.integers(1, 9))) for _ in range(200)]
    tree = agglo.hac(agglo.neighbor_graph(rng.normal(size=(200, 3)), 10))
    names = name_nodes(tree, texts, rng.normal(size=(200, 30)) if has_vectors else None)
    pairs = np.flatnonzero(tree.size == 2)
    assert len(pairs) > 20
    for node in pairs:
        assert names.examples[node - 200] == tree.leaves(node).tolist()
