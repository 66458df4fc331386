"""Name the clusters of a tree of texts by the terms that distinguish them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from itertools import chain, count, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse as sp

from agglo._native import log
from agglo.evaluation.phrases import Terms, extract_terms
from agglo.evaluation.stop_words import check_language
from agglo.evaluation.terms import phrase_factor, select_distinct, weigh_terms
from agglo.progress import Progress
from agglo.tree.hierarchy import Hierarchy
from agglo.tree.persistent_round import persistent_round

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Namer = Callable[[Mapping[str, Any]], str]
WeightedTerms = tuple[list[int], list[float]]  # indices of terms and their weights, sorted by falling weight

MAX_NAME = 40  # maximum number of characters of a name
MAX_TYPICAL_TEXT = 80  # maximum number of characters of a typical text
_N_TERMS = 8  # maximum number of listed terms per node
_N_TERMS_IN_NAME = 3
_MIN_PART = 0.25  # each term in a name has at least this share of the weight of the best term that is allowed
_MAX_LIFT = 4.0  # a general term whose lift (frequency relative to all texts) is larger gets no larger weight
_N_EXAMPLES = 5
_N_CANDIDATES = 24  # number of terms per node whose exact weights are computed
_MAX_TEXTS = 1000  # maximum number of texts per node among which candidate terms are selected
_MAX_EXAMPLES = 200  # maximum number of texts per node among which examples are selected
_MAX_PAIRS = 2_000_000  # number of pairs (node, text) whose terms are counted at once
_MAX_VECTORS = 1 << 15  # number of pairs (node, text) whose vectors are compared at once
_MIN_WEIGHT = 1e-12  # a term with a smaller weight is ignored, because the weight may be a rounding error
_LEVEL_RATIO = 8  # each level has this number of times as many clusters as the next coarser level
_ROOT = "all texts"
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s")


NAMES_SCHEMA = pa.schema(
    [
        ("name", pa.large_string()),
        ("terms", pa.large_list(pa.large_string())),
        ("examples", pa.large_list(pa.int32())),
        ("typical_text", pa.large_string()),
        ("standalone_name", pa.large_string()),
    ]
)


class Names(NamedTuple):
    """Names, terms and examples of the inner nodes of a tree, in the order of the nodes."""

    name: list[str]
    terms: list[list[str]]
    """The terms that distinguish each node, sorted by falling weight."""
    examples: list[list[int]]
    """The most central points of each node, sorted by falling centrality."""
    typical_text: list[str]
    """A central text of each node, with at most 80 characters."""
    standalone_name: list[str]
    """A name of each node that is clear without the name of its parent, with which it may share words."""

    def to_table(self) -> Any:
        """Return a pyarrow.Table with one row per inner node."""
        columns = [pa.array(values, field.type) for values, field in zip(self, NAMES_SCHEMA, strict=True)]
        return pa.table(columns, NAMES_SCHEMA)


def name_nodes(
    tree: Hierarchy,
    texts: Sequence[str],
    X: Any = None,
    *,
    levels: Sequence[npt.ArrayLike] | None = None,
    language: str = "auto",
    stop_words: Collection[str] = (),
    namer: Namer | None = None,
    progress: Progress | None = None,
) -> Names:
    """Name all inner nodes of ``tree`` by the terms that distinguish them.

    Terms are words and phrases of up to three words without stop words, see :func:`agglo.contents.terms`. The
    weight of a term in a node of ``s`` texts is ``n / s * log(n / (s * sqrt(p g) + 0.25))``. Here ``n`` is the
    number of the node's texts that contain the term. ``p`` is the share of the parent's texts that contain it, and
    ``g`` is the share of all texts that contain it. The weight of a phrase is multiplied by 1.5 for two words, and
    by 1.7 for three words.

    A name has up to three terms and at most 40 characters. The first term has the largest weight. The other terms
    are more general, to say what the first term is about. Their weight is ``n / s * min(log(n / (s g + 0.25)),
    log(4))``. The minimum prefers terms that many texts of the node contain to terms that are very rare elsewhere.
    No word occurs twice in a name, in any inflection. A node and its parent share no word of their names. If
    several nodes could use a word, the nodes of the first level have priority, then the nodes of the other levels,
    the smallest first. Of the remaining nodes, the largest has priority. If the texts of a node share no terms,
    the name consists of words of the most central text.

    Such a name suits a view that shows the parent's name too. Each node also has a name that stands alone: up to
    three terms with the largest weights against all texts, ``n / s * log(n / (s g + 0.25))``.

    The centrality of a text is its mean cosine similarity to all texts of the node. Equally central texts keep
    their order in the tree. In nodes of more than 200 texts, a sample of 200 texts is compared.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    texts : sequence of str
        One text per leaf.
    X : ndarray of shape (n_leaves, n_features), optional
        Vectors whose cosines define the central texts. By default, TF-IDF vectors of the terms are compared.
    levels : sequence of array-like of shape (n_leaves,), optional
        Labels of the cuts that are shown to people, the most important cut first. A cluster of a level is compared
        with the next larger cluster of these levels, instead of its parent. By default, the first level is the
        most persistent round. The other default levels are cuts with 1/64, 1/8, 8 and 64 times as many clusters.
    language : str
        The language of the stop words, as for :func:`agglo.contents.terms`.
    stop_words : collection of str
        Further words that no name contains.
    namer : callable, optional
        A function that names the clusters of the first level, and the clusters of other levels above it. Its
        argument is a dict with ``"terms"``, ``"examples"`` (texts), ``"size"`` and ``"path"``. The path lists the
        names of the clusters above, from the top. The function returns a name.
    progress : callable, optional
        Called as ``progress("names", done, total)``.

    Examples
    --------
    >>> import agglo
    >>> from agglo.text.names import name_nodes
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0], [6.0]], "all", "euclidean"))
    >>> names = name_nodes(tree, ["red apple", "green apples", "red car", "fast car"])
    >>> names.name
    ['apple, green', 'car, fast', 'all texts']
    >>> names.typical_text[1]
    'red car'
    """
    check_language(language)
    found = extract_terms([texts[i] for i in tree.order.tolist()], language, stop_words)
    cuts = _default_levels(tree) if levels is None else [np.asarray(labels, np.int64) for labels in levels]
    rank = _rank_nodes(tree, cuts)
    reference = _find_reference(tree, rank)
    terms, general, overall = _list_terms(tree, found, reference, progress)
    examples = _select_examples(tree, found, X, progress)
    typical = _find_typical_texts(texts, examples)
    # The position in leaf order of each node's most central text.
    place = np.argsort(tree.order)[[own[0] for own in examples]].tolist()
    chosen = _choose_names(tree, found, terms, general, place, rank, reference)
    name = [
        ", ".join(found.names[term] for term in own) or text[:MAX_NAME]
        for own, text in zip(chosen, typical, strict=True)
    ]
    name[-1] = _ROOT
    listed = [[found.names[term] for term in own[:_N_TERMS]] for own, _ in terms]
    # The root, and other nodes that no term distinguishes from all texts, have only one name.
    standalone = [_join_terms([found.names[term] for term in own]) or name[i] for i, own in enumerate(overall)]
    names = Names(name, listed, examples, typical, standalone)
    if namer is not None:
        _apply_namer(namer, tree, texts, names, cuts, rank, reference)
    return names


def distinct_name(name: str, terms: Sequence[str], used: set[str]) -> str:
    """Return ``name``, changed if it is in ``used``, and add the result to ``used``.

    A changed name ends with the first of ``terms`` that shares no word with the name and makes it unique. The term
    replaces the third term of the name, and also the second if no term fits into 40 characters otherwise. If no
    term makes the name unique, a number is added.

    Examples
    --------
    >>> from agglo.text.names import distinct_name
    >>> used = set()
    >>> [distinct_name("card, lost", terms, used) for terms in (["cards"], ["lost card", "stolen"], [])]
    ['card, lost', 'card, lost, stolen', 'card, lost (2)']
    """
    given = name.split(", ")
    words = set(name.lower().replace(",", "").split())
    changed = (
        ", ".join([*given[:n], term])
        for n in range(min(len(given), _N_TERMS_IN_NAME - 1), 0, -1)
        for term in terms
        if words.isdisjoint(term.lower().split())
    )
    fitting = (own for own in changed if len(own) <= MAX_NAME)
    numbered = (f"{name} ({number})" for number in count(2))
    unique = next(own for own in chain([name], fitting, numbered) if own not in used)
    used.add(unique)
    return unique


def _join_terms(terms: Sequence[str]) -> str:
    """Join the first three terms that fit into a name of at most 40 characters."""
    name = ""
    n_terms = 0
    for term in terms:
        longer = f"{name}, {term}" if name else term
        if n_terms < _N_TERMS_IN_NAME and len(longer) <= MAX_NAME:
            name, n_terms = longer, n_terms + 1
    return name


def _sample_texts(tree: Hierarchy, nodes: Ints, n: int) -> tuple[Ints, Ints]:
    """Sample at most ``n`` texts per node, evenly spread over the leaves of the node.

    Return two arrays with one entry per sampled text: the position of the node in ``nodes``, and the position of
    the text in the order of the tree's leaves.
    """
    size = tree.size[nodes].astype(np.int64)
    taken = np.minimum(size, n)
    row = np.repeat(np.arange(len(nodes)), taken)
    within = np.arange(len(row)) - np.repeat(np.cumsum(taken) - taken, taken)
    return row, tree.start[nodes][row] + within * size[row] // taken[row]


def _blocks(tree: Hierarchy, n: int, max_pairs: int) -> list[Ints]:
    """Divide the inner nodes into blocks with about ``max_pairs`` sampled texts, at most ``n`` per node."""
    nodes = np.arange(tree.n_leaves, tree.n_nodes)
    pairs = np.cumsum(np.minimum(tree.size[nodes], n).astype(np.int64))
    return np.split(nodes, np.flatnonzero(np.diff(pairs // max_pairs)) + 1)


def _list_terms(
    tree: Hierarchy, found: Terms, reference: Ints, progress: Progress | None
) -> tuple[list[WeightedTerms], list[WeightedTerms], list[list[int]]]:
    """Return the distinctive, the general and the overall terms of each inner node.

    Distinctive terms distinguish a node from its reference and from all texts, overall terms only from all texts.
    If two distinctive terms of a node share a word, only the term with the larger weight is returned. The same
    holds for overall terms.
    """
    n_texts, n_terms = found.counts.shape
    share = np.maximum(found.n_texts_with, 1.0) / n_texts
    factor = phrase_factor(found.n_words) if len(found.n_words) else np.ones(n_terms)
    by_term = found.counts.tocsc()
    # Encode each pair (term, text) as one integer, in ascending order. The texts of a node that contain a term
    # are then a range of this array.
    postings = np.repeat(np.arange(n_terms), np.diff(by_term.indptr)) * n_texts + by_term.indices
    distinctive: list[WeightedTerms] = []
    general: list[WeightedTerms] = []
    overall: list[list[int]] = []
    for nodes in _blocks(tree, _MAX_TEXTS, _MAX_PAIRS):
        if progress is not None:
            progress("names", len(distinctive), tree.n_nodes - tree.n_leaves)
        row, leaf = _sample_texts(tree, nodes, _MAX_TEXTS)
        sample = np.bincount(row, minlength=len(nodes))
        members = sp.csr_array((np.ones(len(row)), (row, leaf)), shape=(len(nodes), n_texts))
        counts = members @ found.counts
        node, term = np.repeat(np.arange(len(nodes)), np.diff(counts.indptr)), counts.indices.astype(np.int64)
        weight = weigh_terms(counts.data, sample[node], share[term]) * factor[term]
        node, term, _ = _sort_by_weight(node, term, weight, -np.inf)
        own, size, above = _count_in_nodes(postings, term, nodes[node], tree, n_texts), tree.size[nodes], reference
        around = _count_in_nodes(postings, term, above[nodes[node]], tree, n_texts) / tree.size[above[nodes[node]]]
        weight = weigh_terms(own, size[node], np.sqrt(around * share[term])) * factor[term]
        for terms, weights in _split_by_node(*_sort_by_weight(node, term, weight, _MIN_WEIGHT), len(nodes)):
            weight_of = dict(zip(terms, weights, strict=True))
            distinct = select_distinct(terms, found.keys, _N_CANDIDATES)
            distinctive.append((distinct, [weight_of[own_term] for own_term in distinct]))
        lift = weigh_terms(own, size[node], share[term])
        by_lift = _sort_by_weight(node, term, lift * factor[term], _MIN_WEIGHT)
        for terms, weights in _split_by_node(*by_lift, len(nodes)):
            large = [t for t, w in zip(terms, weights, strict=True) if w >= _MIN_PART * weights[0]]
            overall.append(select_distinct(large, found.keys, _N_TERMS))
        capped = np.minimum(lift, own / size[node] * math.log(_MAX_LIFT))
        general += _split_by_node(*_sort_by_weight(node, term, capped, _MIN_WEIGHT, -weight), len(nodes))
    distinctive[-1] = ([], [])  # no term distinguishes the root, which has no siblings
    return distinctive, general, overall


def _split_by_node(node: Ints, term: Ints, weight: Floats, n_nodes: int) -> list[WeightedTerms]:
    """Divide terms, which are sorted by node, into one list per node."""
    bounds = np.searchsorted(node, np.arange(n_nodes + 1)).tolist()
    terms, weights = term.tolist(), weight.tolist()
    return [(terms[a:b], weights[a:b]) for a, b in pairwise(bounds)]


def _sort_by_weight(
    node: Ints, term: Ints, weight: Floats, least: float, tie: npt.NDArray[Any] | None = None
) -> tuple[Ints, Ints, Floats]:
    """Sort terms with a weight above ``least`` by node, then by falling weight; keep 24 terms per node.

    Terms of equal weight are sorted by ``tie``, by default by their indices.
    """
    kept = np.flatnonzero(weight > least)
    kept = kept[np.lexsort((term[kept], (term if tie is None else tie)[kept], -weight[kept], node[kept]))]
    node = node[kept]
    rank = np.arange(len(kept)) - np.searchsorted(node, node)
    best = rank < _N_CANDIDATES
    return node[best], term[kept[best]], weight[kept[best]]


def _count_in_nodes(postings: Ints, term: Ints, node: Ints, tree: Hierarchy, n_texts: int) -> Ints:
    """Return, for each pair of a node and a term, the number of texts of the node that contain the term."""
    first = term * n_texts + tree.start[node]
    return np.searchsorted(postings, first + tree.size[node]) - np.searchsorted(postings, first)


def _default_levels(tree: Hierarchy) -> list[npt.NDArray[np.int64]]:
    """Return the labels of the most persistent round, followed by the labels of coarser and finer cuts."""
    round = persistent_round(tree)
    n_clusters = int(tree.rounds.after[round - 1]) if round else tree.n_leaves
    numbers = {n_clusters * _LEVEL_RATIO**i // _LEVEL_RATIO**2 for i in range(5)}
    return [tree.labels(round), *(tree.cut(n_clusters=k) for k in sorted(numbers) if 1 < k <= tree.n_leaves)]


def _rank_nodes(tree: Hierarchy, levels: Sequence[npt.NDArray[Any]]) -> Ints:
    """Return the rank of each node: 0 in the first level, 1 in other levels and for the root, 2 otherwise."""
    rank = np.full(tree.n_nodes, 2)
    for labels in levels[1:]:
        rank[tree.nodes(labels)] = 1
    rank[-1] = 1
    rank[tree.nodes(levels[0])] = 0
    return rank


def _find_reference(tree: Hierarchy, rank: Ints) -> Ints:
    """Return, for each node, the ancestor whose texts are compared with the texts of the node.

    A node of a level is compared with its next ancestor that is a node of a level. Any other node is compared with
    its parent.
    """
    is_level_node = rank < 2
    above = tree.parent.astype(np.int64)
    above[-1] = tree.n_nodes - 1
    reference = above.copy()
    while not is_level_node[above].all():  # pointer jumping: each pass doubles the length of the pointers
        above = np.where(is_level_node[above], above, above[above])
    reference[is_level_node] = above[is_level_node]
    return reference


def _choose_names(
    tree: Hierarchy,
    found: Terms,
    distinctive: Sequence[WeightedTerms],
    general: Sequence[WeightedTerms],
    central: Sequence[int],
    rank: Ints,
    reference: Ints,
) -> list[list[int]]:
    """Choose the terms that form the name of each inner node; the names of a node and its parent share no word.

    All nodes of a rank get their first term before any of these nodes gets a second term. Otherwise, a node would
    use up all words that suit its parent.
    """
    n_leaves, n_inner = tree.n_leaves, tree.n_nodes - tree.n_leaves
    nodes = np.arange(n_leaves, tree.n_nodes)
    size = tree.size[nodes].astype(np.int64)
    order = np.lexsort((nodes, np.where(rank[nodes] < 2, size, -size), rank[nodes]))
    order = order[order != n_inner - 1]
    parent = np.maximum(tree.parent[nodes] - n_leaves, -1).tolist()
    above = (reference[nodes] - n_leaves).tolist()
    keys: list[set[str]] = [set() for _ in nodes]
    child_keys: list[set[str]] = [set() for _ in nodes]
    chosen: list[list[int]] = [[] for _ in nodes]
    length = [-2] * n_inner  # the length of each name, without the separator before the first term

    def add_term(node: int, terms: Sequence[int], weights: Sequence[float]) -> None:
        """Add the first of ``terms`` that fits into the name of ``node``."""
        own, of_parent, of_above, of_children = keys[node], keys[parent[node]], keys[above[node]], child_keys[node]
        max_length = MAX_NAME - 2 - length[node]
        best = 0.0
        for term, weight in zip(terms, weights, strict=True):
            key = found.keys[term]
            if not (key.isdisjoint(of_parent) and key.isdisjoint(of_above) and key.isdisjoint(of_children)):
                continue
            # The weight of the best term that shares no word with the parent and the children.
            best = best or weight
            if weight < _MIN_PART * best:
                return
            if len(found.names[term]) <= max_length and key.isdisjoint(own):
                chosen[node].append(term)
                length[node] += 2 + len(found.names[term])
                for used in (own, child_keys[parent[node]], child_keys[above[node]]):
                    used |= key
                return

    for same_rank in np.split(order, np.searchsorted(rank[nodes[order]], [1, 2])):
        unnamed = same_rank.tolist()
        for node in unnamed:
            add_term(node, *distinctive[node])
            if not chosen[node]:  # no distinctive term is left, so take words of the most central text
                terms = _terms_of_text(found, central[node])
                add_term(node, terms, [1.0] * len(terms))
        for _ in range(_N_TERMS_IN_NAME - 1):
            for node in unnamed:
                if chosen[node]:
                    add_term(node, *general[node])
    return chosen


def _apply_namer(
    namer: Namer,
    tree: Hierarchy,
    texts: Sequence[str],
    names: Names,
    levels: Sequence[npt.NDArray[Any]],
    rank: Ints,
    reference: Ints,
) -> None:
    """Call ``namer`` for the clusters of the first level and the clusters above them, from the root downwards.

    The new names replace the old ones in ``names``.
    """
    n_leaves, root = tree.n_leaves, tree.n_nodes - 1
    nodes = np.flatnonzero(rank[:root] < 2)
    nodes = nodes[nodes >= n_leaves]
    first_leaf = tree.order[tree.start[nodes]]
    nodes = nodes[tree.size[nodes] >= np.bincount(levels[0])[levels[0][first_leaf]]]
    for node in nodes[np.argsort(-tree.size[nodes], kind="stable")].tolist():
        path: list[str] = []
        above = int(reference[node])
        while above != root:
            path.insert(0, names.name[above - n_leaves])
            above = int(reference[above])
        row = node - n_leaves
        examples = [texts[i] for i in names.examples[row]]
        answer = namer(
            {"terms": names.terms[row], "examples": examples, "size": int(tree.size[node]), "path": path}
        )
        name = answer.strip().partition("\n")[0] if isinstance(answer, str) else ""
        if not name:
            raise ValueError(
                f"namer returned {answer!r} for the terms {names.terms[row]}: return a name, as a str"
            )
        names.name[row] = name
        names.standalone_name[row] = name


def _terms_of_text(found: Terms, text: int) -> list[int]:
    """Return the terms of a text that share no word, sorted by falling number of texts that contain the term."""
    own = found.counts.indices[found.counts.indptr[text] : found.counts.indptr[text + 1]].astype(np.int64)
    order = np.lexsort((own, -found.n_texts_with[own]))
    return select_distinct(own[order].tolist(), found.keys, _N_CANDIDATES)


def _find_typical_texts(texts: Sequence[str], examples: Sequence[Sequence[int]]) -> list[str]:
    """Return, for each node, the first sentence of an example text, at most 80 characters long.

    The first example with a short enough first sentence is used. If there is none, the first sentence of the first
    example is cut off.
    """

    @cache  # cached, because a text may be an example of many nodes
    def first_sentence(text: int) -> str:
        return _SENTENCE_END.split(" ".join(texts[text][: 5 * MAX_TYPICAL_TEXT].split()), maxsplit=1)[0]

    found = []
    for own in examples:
        short = next((text for i in own if 0 < len(text := first_sentence(i)) <= MAX_TYPICAL_TEXT), None)
        if short is None:
            start = first_sentence(own[0])
            short = start[: MAX_TYPICAL_TEXT - 1] + "…" * bool(start)
        found.append(short)
    return found


def _select_examples(tree: Hierarchy, found: Terms, X: Any, progress: Progress | None) -> list[list[int]]:
    """Return the most central points of each inner node, sorted by falling centrality."""
    vectors: Any
    if X is not None:
        vectors = np.asarray(X, np.float32)[tree.order]
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    else:
        idf = log((1.0 + tree.n_leaves) / (1.0 + found.n_texts_with)) + 1.0
        vectors = found.counts.copy()
        vectors.data = idf[vectors.indices]
        rows = np.repeat(np.arange(tree.n_leaves), np.diff(vectors.indptr))
        norm = np.sqrt(np.bincount(rows, vectors.data**2, minlength=tree.n_leaves))
        vectors.data /= norm[rows]
    examples: list[list[int]] = []
    for nodes in _blocks(tree, _MAX_EXAMPLES, _MAX_PAIRS if X is None else _MAX_VECTORS):
        row, leaf = _sample_texts(tree, nodes, _MAX_EXAMPLES)
        score = _mean_cosines(vectors, row, leaf, len(nodes))
        score[np.bincount(row)[row] == 2] = (
            0.0  # both texts are equally central, but rounding could make them differ
        )
        order = np.lexsort((leaf, -score, row))
        first = np.searchsorted(row, np.arange(len(nodes)))
        points = tree.order[leaf[order]].tolist()
        taken = np.minimum(tree.size[nodes], _N_EXAMPLES)
        examples += [points[a : a + k] for a, k in zip(first.tolist(), taken.tolist(), strict=True)]
    return examples


def _mean_cosines(vectors: Any, row: Ints, leaf: Ints, n_rows: int) -> Floats:
    """Return, for each pair (row, leaf), the dot product of the leaf's vector with the sum of the row's vectors.

    For vectors of unit length, this is proportional to the mean cosine within the row.
    """
    members = sp.csr_array((np.ones(len(row), vectors.dtype), (row, leaf)), shape=(n_rows, vectors.shape[0]))
    sums = members @ vectors
    if not sp.issparse(vectors):
        return np.asarray(np.einsum("ij,ij->i", vectors[leaf], sums[row]), np.float64)
    sums.sort_indices()
    n_terms = vectors.shape[1]
    keys = np.repeat(np.arange(n_rows), np.diff(sums.indptr)) * n_terms + sums.indices
    length = np.diff(vectors.indptr)[leaf].astype(np.int64)
    pair = np.repeat(np.arange(len(leaf)), length)
    entry = vectors.indptr[leaf][pair] + np.arange(len(pair)) - np.repeat(np.cumsum(length) - length, length)
    found = np.searchsorted(keys, row[pair] * n_terms + vectors.indices[entry])
    products: Floats = vectors.data[entry] * sums.data[found]
    return np.asarray(np.bincount(pair, products, minlength=len(leaf)), np.float64)
