"""Name the clusters of a tree of texts by their characteristic terms and their most central text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from agglo._native import log
from agglo.progress import Progress
from agglo.tree.hierarchy import Hierarchy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MAX_CHARACTERS = 10_000  # only the first characters of a text are used
_N_TERMS = 8  # number of terms per node
_N_TERMS_IN_NAME = 3
_N_EXAMPLES = 5
_MAX_SIZE_WITHOUT_TERMS = 3  # nodes with at most this number of texts have no terms
_MIN_WEIGHT = 1e-12  # a smaller weight of a term is rounding error


NAMES_SCHEMA = pa.schema(
    [
        ("name", pa.large_string()),
        ("terms", pa.large_list(pa.large_string())),
        ("examples", pa.large_list(pa.int32())),
    ]
)


class Names(NamedTuple):
    """Names, terms and examples of the inner nodes of a tree, in the order of the nodes."""

    name: list[str]
    terms: list[list[str]]
    """The characteristic terms of each node, sorted by falling weight."""
    examples: list[list[int]]
    """The most central points of each node, sorted by falling centrality."""

    def to_table(self) -> Any:
        """Return a pyarrow.Table with one row per inner node."""
        columns = [pa.array(values, field.type) for values, field in zip(self, NAMES_SCHEMA, strict=True)]
        return pa.table(columns, NAMES_SCHEMA)


def name_nodes(tree: Hierarchy, texts: Sequence[str], X: Any = None, *, progress: Progress | None = None) -> Names:
    """Name all inner nodes of ``tree`` by characteristic terms and central texts.

    The weight of a term in a node is ``share * log(share / sqrt(parent_share * total_share)) * rarity``. The three
    shares are the relative frequencies of the term in the node, in its parent and in all texts. Terms with a large
    weight distinguish the node from its siblings and from all texts. ``rarity`` is the decimal logarithm of the
    inverse document frequency, at most 1. It reduces the weight of terms that more than a tenth of all texts
    contain, such as "the".

    The centrality of a text is its mean cosine similarity to all texts of the node. Equally central texts keep
    their order in the tree.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    texts : sequence of str
        One text per leaf.
    X : ndarray of shape (n_leaves, n_features), optional
        Vectors whose cosines define the central texts. By default, TF-IDF vectors of the words are compared.
    progress : callable, optional
        Called as ``progress("names", done, total)``.

    Examples
    --------
    >>> import agglo
    >>> from agglo.text.names import name_nodes
    >>> tree = agglo.hac(agglo.neighbor_graph([[0.0], [1.0], [5.0], [6.0]], "all", "euclidean"))
    >>> names = name_nodes(tree, ["red apple", "green apple", "red car", "fast car"])
    >>> names.terms[:2]
    [['apple', 'green'], ['car', 'fast']]
    >>> names.name[2]
    'red apple'
    """
    words = _WordCounts(tree, texts)
    centrality = _Centrality(tree, words, X)
    n_leaves, n_inner = tree.n_leaves, tree.n_nodes - tree.n_leaves
    terms: list[list[str]] = [[] for _ in range(n_inner)]  # the root has no terms, because it has no siblings
    examples: list[list[int]] = []
    for done, node in enumerate(range(n_leaves, tree.n_nodes)):
        children = tree.children(node)
        children = children[children >= n_leaves].tolist()
        if children:
            parent_words, parent_share = words.compute_shares(node)
            words.scratch[parent_words] = parent_share
            for child in children:
                terms[child - n_leaves] = words.select_terms(child, words.scratch)
            words.scratch[parent_words] = 0.0
        examples.append(centrality.select_examples(node))
        if progress is not None and done % 500 == 0:
            progress("names", done, n_inner)
    name = []
    for node in range(n_inner):
        text = " ".join(texts[examples[node][0]][:200].split())
        is_text_enough = tree.size[n_leaves + node] <= _MAX_SIZE_WITHOUT_TERMS or not terms[node]
        name.append(text if is_text_enough else f"{', '.join(terms[node][:_N_TERMS_IN_NAME])} — {text}")
    return Names(name, terms, examples)


class _WordCounts:
    """The words of all texts, in the order of the tree's leaves: the words of each node are contiguous."""

    def __init__(self, tree: Hierarchy, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer  # slow to import

        vectorizer = CountVectorizer(binary=True, dtype=np.int32)
        try:
            counts = vectorizer.fit_transform([texts[i][:MAX_CHARACTERS] for i in tree.order.tolist()]).tocsr()
            self.vocabulary = vectorizer.get_feature_names_out()
        except ValueError:  # no text contains a word; punctuation and emoji are not words
            import scipy.sparse as sp

            counts, self.vocabulary = sp.csr_array((tree.n_leaves, 1), dtype=np.int32), np.array([""])
        counts.sort_indices()
        self.indptr: Ints = counts.indptr.astype(np.int64)
        self.indices: npt.NDArray[np.int32] = counts.indices
        self.start, self.size = tree.start, tree.size
        self.n_texts_with = np.bincount(self.indices, minlength=len(self.vocabulary)).astype(np.float64)
        self.total_share = self.n_texts_with / max(self.n_texts_with.sum(), 1.0)
        self.rarity = np.minimum(log(tree.n_leaves / np.maximum(self.n_texts_with, 1.0)) / log(10.0), 1.0)
        self.scratch = np.zeros(len(self.vocabulary))  # one entry per word; all zero between calls

    def word_range(self, node: int) -> tuple[int, int]:
        """Return the start and end of the words of a node in ``indices``."""
        first = int(self.start[node])
        return int(self.indptr[first]), int(self.indptr[first + int(self.size[node])])

    def compute_shares(self, node: int) -> tuple[Ints, Floats]:
        """Return the distinct words of a node, and the relative frequency of each word in the node."""
        begin, end = self.word_range(node)
        words = self.indices[begin:end]
        if len(words) * 4 > len(self.vocabulary):
            counts = np.bincount(words, minlength=len(self.vocabulary))
            distinct = np.flatnonzero(counts)
            counts = counts[distinct]
        else:
            distinct, counts = np.unique(words, return_counts=True)
        return distinct.astype(np.int64), counts / max(len(words), 1)

    def select_terms(self, node: int, parent_share: Floats) -> list[str]:
        """Return the terms of a node with the largest weights; ``parent_share`` has word shares in the parent."""
        words, share = self.compute_shares(node)
        if not len(words):
            return []
        weight = share * log(share / np.sqrt(parent_share[words] * self.total_share[words])) * self.rarity[words]
        return [str(self.vocabulary[words[i]]) for i in _argtop(weight, _N_TERMS) if weight[i] > _MIN_WEIGHT]


class _Centrality:
    """Mean cosine similarity of each text to all texts of a node."""

    def __init__(self, tree: Hierarchy, words: _WordCounts, X: Any) -> None:
        self.tree, self.words = tree, words
        self.vectors: npt.NDArray[np.float32] | None = None
        if X is not None:
            vectors = np.asarray(X, np.float32)[tree.order]
            self.vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
            return
        idf = log((1.0 + tree.n_leaves) / (1.0 + words.n_texts_with)) + 1.0
        weight = idf[words.indices]
        self.row = np.repeat(np.arange(tree.n_leaves), np.diff(words.indptr))
        norm = np.sqrt(np.bincount(self.row, weight**2, minlength=tree.n_leaves))
        self.weight = weight / norm[self.row]

    def select_examples(self, node: int) -> list[int]:
        """Return the most central points of a node, sorted by falling centrality."""
        first, size = int(self.tree.start[node]), int(self.tree.size[node])
        scores: npt.NDArray[Any]
        if size == 2:  # both are equally central, but rounding could make their scores differ
            scores = np.zeros(size)
        elif self.vectors is not None:
            own = self.vectors[first : first + size]
            scores = own @ own.mean(axis=0)
        else:
            begin, end = self.words.word_range(node)
            words = self.words.indices[begin:end].astype(np.int64)
            weight = self.weight[begin:end]
            if len(words) * 4 <= len(self.words.vocabulary):
                words = np.unique(words, return_inverse=True)[1]
            sums = np.bincount(words, weight)
            scores = np.bincount(self.row[begin:end] - first, weight * sums[words], minlength=size)
        return [int(point) for point in self.tree.order[first + _argtop(scores, _N_EXAMPLES)]]


def _argtop(values: npt.NDArray[Any], k: int) -> Ints:
    """Return the positions of the k largest values, sorted by falling value; ties are in order of position."""
    if len(values) > k:
        # Unlike this, argpartition would break ties at the k-th value differently on different processors.
        candidates = np.flatnonzero(values >= np.partition(values, -k)[-k])
    else:
        candidates = np.arange(len(values))
    return candidates[np.argsort(-values[candidates], kind="stable")[:k]]
