"""Names for the clusters of a tree of texts: the terms that set each apart, and its most central text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agglo.progress import Progress
from agglo.tree.hierarchy import Hierarchy

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

READ = 10_000  # characters of a text that terms are taken from
_TERMS = 8  # of a cluster
_IN_NAME = 3
_EXAMPLES = 5
_FEW = 3  # texts that one of them can stand for, without terms
_NOTHING = 1e-12


class Names(NamedTuple):
    """What is known of the inner nodes of a tree, an entry each in their order."""

    name: list[str]
    terms: list[list[str]]
    """The terms that set a node apart, the most telling first."""
    examples: list[list[int]]
    """The most central points, the first first."""


def name_nodes(tree: Hierarchy, texts: Sequence[str], X: Any = None, *, progress: Progress | None = None) -> Names:
    """Names for all inner nodes of ``tree``.

    The weight of a term in a node is the share that it has of all terms there, times the logarithm of how much
    larger that is than its share in the parent, and than its share in all texts, half each: what tells the node
    from its siblings counts, and so does what tells it from everything. Terms that more than a tenth of all texts
    have, such as "the", count for less, by the logarithm of how many have them. A text is the more central the
    larger its mean cosine to the texts of the node.

    Parameters
    ----------
    tree : Hierarchy
        The tree.
    texts : sequence of str
        A text a leaf.
    X : ndarray of shape (n_leaves, n_features), optional
        Vectors to tell by which texts are central; by default by the words in them.
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
    words = _Words(tree, texts)
    central = _Central(tree, words, X)
    n, inner = tree.n_leaves, tree.n_nodes - tree.n_leaves
    terms: list[list[str]] = [[] for _ in range(inner)]  # nothing sets the root apart
    examples: list[list[int]] = []
    for done, node in enumerate(range(n, tree.n_nodes)):
        below = tree.children(node)
        below = below[below >= n].tolist()
        if below:
            around = words.spread(node)
            for child in below:
                terms[child - n] = words.best(child, around)
            words.clear(around)
        examples.append(central.best(node))
        if progress is not None and done % 500 == 0:
            progress("names", done, inner)
    name = []
    for node in range(inner):
        text = " ".join(texts[examples[node][0]][:200].split())
        plain = tree.size[n + node] <= _FEW or not terms[node]
        name.append(text if plain else f"{', '.join(terms[node][:_IN_NAME])} — {text}")
    return Names(name, terms, examples)


class _Words:
    """The words of texts in the order of the tree, where those of a node stand side by side."""

    def __init__(self, tree: Hierarchy, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer  # takes long to import

        maker = CountVectorizer(binary=True, dtype=np.int32)
        try:
            counts = maker.fit_transform([texts[i][:READ] for i in tree.order.tolist()]).tocsr()
            self.vocabulary = maker.get_feature_names_out()
        except ValueError:  # no text has a word in it, but signs perhaps
            import scipy.sparse as sp

            counts, self.vocabulary = sp.csr_array((tree.n_leaves, 1), dtype=np.int32), np.array([""])
        counts.sort_indices()
        self.indptr: Ints = counts.indptr.astype(np.int64)
        self.indices: npt.NDArray[np.int32] = counts.indices
        self.start, self.size = tree.start, tree.size
        self.documents = np.bincount(self.indices, minlength=len(self.vocabulary)).astype(np.float64)
        self.everywhere = self.documents / max(self.documents.sum(), 1.0)
        self.rarity = np.minimum(np.log10(tree.n_leaves / np.maximum(self.documents, 1.0)), 1.0)
        self._around = np.zeros(len(self.vocabulary))

    def of(self, node: int) -> tuple[int, int]:
        """Where the words of a node begin and end."""
        first = int(self.start[node])
        return int(self.indptr[first]), int(self.indptr[first + int(self.size[node])])

    def counted(self, node: int) -> tuple[Ints, Floats]:
        """The words of a node, and in how many of its texts each is."""
        begin, end = self.of(node)
        words = self.indices[begin:end]
        if len(words) * 4 > len(self.vocabulary):
            counts = np.bincount(words, minlength=len(self.vocabulary))
            found = np.flatnonzero(counts)
            return found, counts[found].astype(np.float64)
        found, counts = np.unique(words, return_counts=True)
        return found.astype(np.int64), counts.astype(np.float64)

    def spread(self, node: int) -> tuple[Ints, Floats]:
        """The shares of words in a node, as a column of all words; to be cleared before the next."""
        found, counts = self.counted(node)
        self._around[found] = counts / max(counts.sum(), 1.0)
        return found, self._around

    def clear(self, around: tuple[Ints, Floats]) -> None:
        """Take back what :meth:`spread` did."""
        self._around[around[0]] = 0.0

    def best(self, node: int, around: tuple[Ints, Floats]) -> list[str]:
        """The terms that set a node apart from those around it and from all others."""
        found, counts = self.counted(node)
        if not len(found):
            return []
        share = counts / counts.sum()
        weight = share * np.log(share / np.sqrt(around[1][found] * self.everywhere[found])) * self.rarity[found]
        return [str(self.vocabulary[found[i]]) for i in _largest(weight, _TERMS) if weight[i] > _NOTHING]


class _Central:
    """Which points of a node have the largest mean cosine to all of them."""

    def __init__(self, tree: Hierarchy, words: _Words, X: Any) -> None:
        self.tree, self.words = tree, words
        self.vectors: npt.NDArray[np.float32] | None = None
        if X is not None:
            vectors = np.asarray(X, np.float32)[tree.order]
            self.vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
            return
        inverse = np.log((1.0 + tree.n_leaves) / (1.0 + words.documents)) + 1.0
        weight = inverse[words.indices]
        self.row = np.repeat(np.arange(tree.n_leaves), np.diff(words.indptr))
        length = np.sqrt(np.bincount(self.row, weight**2, minlength=tree.n_leaves))
        self.weight = weight / length[self.row]

    def best(self, node: int) -> list[int]:
        """The most central points, the first first; of equals the first in the order of the tree."""
        first, size = int(self.tree.start[node]), int(self.tree.size[node])
        if self.vectors is not None:
            own = self.vectors[first : first + size]
            scores = own @ own.mean(axis=0)
        else:
            begin, end = self.words.of(node)
            words = self.words.indices[begin:end].astype(np.int64)
            weight = self.weight[begin:end]
            if len(words) * 4 <= len(self.words.vocabulary):
                words = np.unique(words, return_inverse=True)[1]
            sums = np.bincount(words, weight)
            scores = np.bincount(self.row[begin:end] - first, weight * sums[words], minlength=size)
        return [int(point) for point in self.tree.order[first + _largest(scores, _EXAMPLES)]]


def _largest(values: npt.NDArray[Any], k: int) -> Ints:
    """Select the positions of the k largest values, the largest first; of equal values the first."""
    if len(values) > k:
        # argpartition would select among the values equal to the k-th as the processor's sort leaves them.
        candidates = np.flatnonzero(values >= np.partition(values, -k)[-k])
    else:
        candidates = np.arange(len(values))
    return candidates[np.argsort(-values[candidates], kind="stable")[:k]]
