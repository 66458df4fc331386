import numpy as np
import pytest
from forests import trees
from hypothesis import given
from hypothesis import strategies as st

import agglo
from agglo.evaluation.phrases import extract_terms
from agglo.evaluation.stop_words import STOP_WORDS
from agglo.text.names import MAX_NAME, distinct_name, name_nodes

WORDS = st.lists(st.sampled_from(["red", "green", "apple", "car", "the", "🐸", "ضفدع", "!"]), max_size=5)
FACTOR = {1: 1.0, 2: 1.5, 3: 1.7}


@given(trees(min_points=2, max_points=25), st.data())
def test_names_follow_the_definition(tree, data):
    texts = [" ".join(data.draw(WORDS)) for _ in range(tree.n_leaves)]
    names = name_nodes(tree, texts, levels=[np.arange(tree.n_leaves)])  # all inner nodes are compared with parents
    terms = [list_terms(text.split()) for text in texts]
    repeated = {
        term for own in terms for term in own if len(term) == 1 or sum(own.count(term) for own in terms) > 1
    }
    for place, node in enumerate(range(tree.n_leaves, tree.n_nodes)):
        leaves = tree.leaves(node).tolist()
        assert set(names.examples[place]) <= set(leaves)
        assert len(set(names.examples[place])) == min(5, len(leaves))
        if node == tree.n_nodes - 1:
            assert names.terms[place] == []
            assert names.name[place] == "all texts"
            continue
        weights = {
            " ".join(term): weigh(term, terms, leaves, tree.leaves(tree.parent[node]).tolist())
            for term in {term for leaf in leaves for term in terms[leaf]} & repeated
        }
        found = [weights[term] for term in names.terms[place]]
        assert found == pytest.approx(sorted(found, reverse=True))
        positive = [weight for weight in weights.values() if weight > 1e-9]
        assert (found[0] if found else 0) == pytest.approx(max(positive, default=0))
        assert_has_no_faults(names, tree, node)


def list_terms(words):
    """List the phrases of one to three words without stop words and signs."""
    spans = [words[i : i + n] for n in FACTOR for i in range(len(words) - n + 1)]
    fits = [span for span in spans if all(word.isalpha() and word != "the" for word in span)]
    return [tuple(span) for span in fits if len(set(span)) == len(span)]


def weigh(term, terms, leaves, around):
    """Compute the weight of a term by the definition."""
    count = sum(term in terms[leaf] for leaf in leaves)
    if count == 1 and len(leaves) >= 4:
        return 0
    parent = sum(term in terms[leaf] for leaf in around) / len(around)
    whole = sum(term in own for own in terms) / len(terms)
    expected = len(leaves) * np.sqrt(parent * whole)
    return count / len(leaves) * np.log(count / (expected + 0.25)) * FACTOR[len(term)]


def assert_has_no_faults(names, tree, node):
    """Assert that a name is short, has no stop word, and has no word twice or in common with its parent's name."""
    name, parent = (names.name[v - tree.n_leaves] for v in (node, tree.parent[node]))
    if name == names.typical_text[node - tree.n_leaves]:
        return  # no term is left for the node
    words = name.replace(",", "").split()
    assert len(name) <= 40
    assert len(set(words)) == len(words)
    assert STOP_WORDS["english"].isdisjoint(words)
    if parent != names.typical_text[tree.parent[node] - tree.n_leaves]:
        assert set(words).isdisjoint(parent.replace(",", "").split())


BANK = [
    "report my lost credit card",
    "I lost the credit card",
    "the credit cards were lost",
    "lost my credit card again",
    "what is the balance of my account",
    "show the account balances",
    "my account balance please",
    "which balance does the account have",
]
FOOD = ["bake a chocolate cake", "baking chocolate cakes", "I baked this cake", "cake recipes with Chocolate"]


def bank_tree():
    groups = [[0] * 4 + [1] * 4 + [2] * 4, [0] * 8 + [1] * 4]
    X = np.array([[9.0 * a + 100 * b + i / 10] for i, (a, b) in enumerate(zip(*groups, strict=True))])
    return agglo.hac(agglo.neighbor_graph(X, "all", "euclidean"), linkage="average")


def find_node(tree, points):
    return next(v for v in range(tree.n_leaves, tree.n_nodes) if sorted(tree.leaves(v).tolist()) == list(points))


def test_clusters_are_named_by_phrases_in_the_most_frequent_spelling():
    tree = bank_tree()
    levels = [[0] * 4 + [1] * 4 + [2] * 4, [0] * 8 + [1] * 4]
    names = name_nodes(tree, [*BANK, *FOOD], levels=levels)
    named = [names.name[find_node(tree, points) - 12] for points in (range(4), range(4, 8), range(8, 12))]
    assert named == ["credit card, lost", "balance, account", "cake, bake, chocolate"]
    assert names.typical_text[find_node(tree, range(8, 12)) - 12] in FOOD
    table = names.to_table()
    assert table.column_names == ["name", "terms", "examples", "typical_text", "standalone_name"]


def test_a_standalone_name_may_share_words_with_the_parent():
    tree = bank_tree()
    names = name_nodes(tree, [*BANK, *FOOD], levels=[[0] * 8 + [1] * 4, [0] * 4 + [1] * 4 + [2] * 4])
    bank, cards = (find_node(tree, points) - 12 for points in (range(8), range(4)))
    assert "card" in names.name[bank] + names.name[cards]
    assert names.standalone_name[cards].startswith("credit card")
    assert names.standalone_name[-1] == "all texts"
    assert all(len(name) <= MAX_NAME for name in names.standalone_name)


def test_equal_names_get_the_next_term_that_fits_or_a_number():
    used = set()
    terms = ["lost card", "a term of exactly thirty letters", "stolen", "pin"]
    named = [distinct_name("card, lost, bank", terms, used) for _ in range(6)]
    assert named[:3] == ["card, lost, bank", "card, lost, stolen", "card, lost, pin"]
    assert named[3:] == ["card, a term of exactly thirty letters", "card, stolen", "card, pin"]
    assert max(map(len, named)) <= MAX_NAME
    assert [distinct_name("card", [], used) for _ in range(3)] == ["card", "card (2)", "card (3)"]
    long = "an answer of a program " * 3
    assert [distinct_name(long, ["stolen"], used) for _ in range(2)] == [long, f"{long} (2)"]


def test_a_name_is_one_distinctive_term_and_general_terms():
    cards = [
        f"my orange visa was lost in town{i // 2}" if i < 6 else f"my visa was lost, number{i}" for i in range(8)
    ]
    other = [f"my account{i // 4}" for i in range(8)] + [f"town{i} hall" for i in range(8)]
    X = [[float(i)] for i in range(8)] + [[100.0 + i] for i in range(8)] + [[300.0 + i] for i in range(8)]
    tree = agglo.hac(agglo.neighbor_graph(X, "all", "euclidean"))
    names = name_nodes(tree, cards + other, levels=[np.repeat([0, 1, 2], 8)])
    node = find_node(tree, range(8)) - 24
    assert names.terms[node][0] == "orange visa"  # the largest weight
    assert names.name[node] == "orange visa, lost"  # no rare town


def test_a_cluster_leaves_words_for_its_parent_of_the_same_texts():
    texts = ["red, apple, pie"] * 9 + ["red, apple"] + ["blue car"] * 10
    levels = [range(20), [0] * 9 + [1] + [2] * 10, [0] * 10 + [1] * 10]
    X = [[float(i)] for i in range(9)] + [[20.0]] + [[100.0 + i] for i in range(10)]
    tree = agglo.hac(agglo.neighbor_graph(X, "all", "euclidean"), linkage="average")
    names = name_nodes(tree, texts, levels=levels)
    parent, cluster = (set(names.name[find_node(tree, range(n)) - 20].split(", ")) for n in (10, 9))
    assert parent
    assert cluster
    assert parent | cluster == {"red", "apple", "pie"}
    assert not parent & cluster


def test_stop_words_of_the_user_and_of_the_language_are_left_out():
    tree = bank_tree()
    names = name_nodes(tree, [*BANK, *FOOD], stop_words=["Lost", "balance"])
    assert not any("lost" in term or "balance" in term for terms in names.terms for term in terms)
    german = ["der Hund bellt", "ein Hund und die Katze", "das Auto", "die Autos sind da"] * 3
    words = {name for name in extract_terms(german, "german").names if " " not in name}
    assert words == {"Hund", "bellt", "Katze", "Auto", "Autos"}
    assert set(extract_terms(german).names) == set(extract_terms(german, "german").names)
    assert "die" in extract_terms(german, "none").names
    with pytest.raises(ValueError, match="language='klingon' is not known: pass one of english, german"):
        name_nodes(tree, [*BANK, *FOOD], language="klingon")


def test_words_of_all_topics_are_stop_words_of_the_corpus():
    texts = [f"blah topic{i // 60} gronk{i}" for i in range(1200)]
    names = extract_terms(texts, "none").names
    assert "topic3" in names
    assert "blah" not in names
    assert "blah" in extract_terms(texts[:600], "none").names  # too few texts to judge


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hotel hotels Hotels hotels", "hotels"),
        ("city cities", "city"),
        ("baking bake bake baked", "bake"),
        ("run running running", "running"),
        ("tax taxes boxes", "tax boxes"),
        ("new news", "new news"),
        ("bus bus glass", "bus glass"),
        ("DJ DJs DJs gas ga", "DJs gas ga"),
        ("car care cares", "car care"),
        ("string king spring", "string king spring"),
        ("driver's driver driver", "driver"),
        ("C# c++ asp.net e-mail", "C# c++ asp.net e-mail"),
    ],
)
def test_inflections_are_one_term_in_their_most_frequent_form(words, expected):
    found = extract_terms([*words.split(), "!"], "english")
    assert set(found.names) == set(expected.split())


def test_related_words_have_the_same_key():
    pairs = [
        "write writers",
        "run runner",
        "golf golfers",
        "translate translation",
        "puppy puppies",
        "smoke smoking",
    ]
    for pair in pairs:
        found = extract_terms([*pair.split()], "english")
        assert len(set(found.keys)) == 1, pair


def test_a_namer_gets_terms_examples_and_the_path():
    tree = bank_tree()
    levels = [[0] * 4 + [1] * 4 + [2] * 4, [0] * 8 + [1] * 4]
    requests = []

    def answer(request):
        requests.append(request)
        return f" cluster of {request['size']} below {request['path']}\n second line"

    names = name_nodes(tree, [*BANK, *FOOD], levels=levels, namer=answer)
    assert len(requests) == 4  # the three clusters, and the cluster of bank texts
    assert requests[0]["path"] == []
    bank = "cluster of 8 below []"
    assert names.name[find_node(tree, range(8)) - 12] == bank
    assert names.name[find_node(tree, range(4)) - 12] == f"cluster of 4 below {[bank]}"
    lost = next(request for request in requests if "credit card" in request["terms"] and request["size"] == 4)
    assert set(lost["examples"]) == set(BANK[:4])
    with pytest.raises(ValueError, match=r"namer returned '  ' for the terms \[.*: return a name"):
        name_nodes(tree, [*BANK, *FOOD], levels=levels, namer=lambda request: "  ")


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


def test_of_equal_examples_the_first_are_taken():
    """Which of them a partial sort leaves in front depends on the processor."""
    words = {kind: [f"{kind}{i:02}" for i in range(50)] for kind in "ab"}
    # Every fourth text lacks the even words: it is less central. All other texts of a kind are equal.
    texts = [" ".join(own[1::2] if i % 4 == 0 else own) for own in words.values() for i in range(60)]
    X = np.arange(120)[:, None] + np.repeat([[0], [999]], 60, axis=0)
    tree = agglo.scc(agglo.neighbor_graph(X, 5, "euclidean"))
    names = name_nodes(tree, texts)
    for points in (range(60), range(60, 120)):
        node = find_node(tree, points)
        whole = [i for i in tree.order[tree.start[node] :].tolist() if i % 4]
        assert names.examples[node - 120] == whole[:5]


def test_typical_texts_are_one_short_sentence():
    X = [[0.0], [1.0], [50.0], [51.0], [52.0], [53.0]]
    tree = agglo.hac(agglo.neighbor_graph(X, "all", "euclidean"))
    texts = [
        "Red apple. It is sweet.",
        "red " * 50 + "apple",
        "a fast car",
        "a fast bus",
        "a fast train",
        "slow\ncar",
    ]
    reports = []
    names = name_nodes(tree, texts, progress=lambda *words: reports.append(words))
    assert reports[0] == ("names", 0, 5)
    assert names.typical_text[find_node(tree, (0, 1)) - 6] == "Red apple."
    long = name_nodes(tree, ["word" * 40] * 6).typical_text
    assert {len(text) for text in long} == {80}
    assert long[0].endswith("…")


def test_texts_without_common_words_are_named_by_the_most_central_text():
    tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [9.0], [11.0]], "all", "euclidean"))
    names = name_nodes(tree, ["🐸", "!?", "the", "of a"])
    assert names.name[find_node(tree, (0, 1)) - 4] == "🐸"
    assert names.name[find_node(tree, (2, 3)) - 4] == "the"


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
