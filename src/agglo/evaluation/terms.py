"""Find the terms (words and phrases) that distinguish clusters of texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._native import log
from agglo._validation import check_labels, check_positive
from agglo.evaluation.phrases import extract_terms
from agglo.evaluation.stop_words import check_language
from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MIN_WEIGHT = 1e-12  # smaller weights are rounding errors
_MIN_SIZE = 4  # in a cluster with at least this number of texts, a term must occur in two texts
_UNCERTAINTY = 0.25  # added to the expected number of texts with a term, so that rare terms need evidence
_PHRASE_FACTOR = np.array([0.0, 1.0, 1.5, 1.7])  # factor of a term's weight, indexed by its number of words


def terms(
    texts: Iterable[str],
    labels: npt.ArrayLike,
    *,
    tree: Hierarchy | None = None,
    n: SupportsIndex = 10,
    vectorizer: Any = None,
    language: str = "auto",
    stop_words: Collection[str] = (),
) -> list[list[str]]:
    """Find the words and phrases that distinguish each cluster, sorted by falling weight.

    The weight of a term in a cluster of ``s`` texts is ``n / s * log(n / (s g + 0.25))``. Here ``n`` is the number
    of the cluster's texts that contain the term. ``g`` is the share of texts with the term in all compared
    clusters together. The weight of a phrase is multiplied by 1.5 for two words, and by 1.7 for three words. Only
    terms with positive weight are returned. A term that shares a word with a term of larger weight is left out.

    Parameters
    ----------
    texts : iterable of str
        One text per point.
    labels : array-like of shape (n_points,)
        The cluster of each point, from 0 to k - 1. Points with the label -1 are in no cluster.
    tree : Hierarchy, optional
        The tree whose cut is ``labels``. If given, each cluster is compared only with the clusters below the same
        parent, because they share a general topic. By default, each cluster is compared with all clusters.
    n : int
        The maximum number of terms per cluster.
    vectorizer : object, optional
        An object that extracts terms from texts. It has the methods ``fit_transform`` and
        ``get_feature_names_out`` of :class:`sklearn.feature_extraction.text.CountVectorizer`. By default, terms
        are words and phrases of up to three words without stop words. Inflections of an English word are one term.
    language : str
        The language of the stop words: ``"english"``, ``"german"``, ``"french"``, ``"spanish"``, ``"italian"``,
        ``"dutch"``, ``"portuguese"`` or ``"none"``. With ``"auto"``, the language is detected. In a large set of
        texts of any language, words that are about equally frequent in all clusters are also stop words.
    stop_words : collection of str
        Further stop words.

    Returns
    -------
    list of list of str
        One list of terms per cluster.

    Examples
    --------
    >>> from agglo.contents import terms
    >>> texts = ["the red apple", "the green apples", "the red car", "the fast car"]
    >>> terms(texts, [0, 0, 1, 1])
    [['apple', 'green'], ['car', 'fast']]
    """
    given = list(texts)
    clusters, size = check_labels(labels, len(given), "texts")
    wanted = check_positive("n", n)
    check_language(language)
    keys: Sequence[frozenset[str]] | None = None
    names: Sequence[str]
    if vectorizer is None:
        wrong = next((i for i, text in enumerate(given) if not isinstance(text, str)), None)
        if wrong is not None:
            raise TypeError(f"texts[{wrong}] is {given[wrong]!r}, not a text: pass one string per point")
        order = np.argsort(clusters, kind="stable")  # so that similar texts are neighbours
        found = extract_terms([given[i] for i in order], language, stop_words)
        if not found.keys:
            raise ValueError(
                "texts contain no terms (only stop words or signs): pass a vectorizer that finds some"
            )
        counts = found.counts[np.argsort(order, kind="stable")]
        bonus, keys, names = phrase_factor(found.n_words), found.keys, found.names
    else:
        try:
            counts = sp.csr_array(vectorizer.fit_transform(given)) > 0
        except ValueError as error:
            raise ValueError(f"texts contain no terms ({error}): pass a vectorizer that finds some") from error
        names = vectorizer.get_feature_names_out()
        bonus = np.ones(len(names))
    kept = np.flatnonzero(clusters >= 0)
    members = sp.csr_array((np.ones(len(kept)), (clusters[kept], kept)), shape=(len(size), len(given)))
    by_cluster = sp.csr_array(members @ counts)
    selected: list[list[str]] = [[] for _ in size]
    for group, total_counts, total in _comparison_groups(by_cluster, size, clusters, tree):
        for cluster in group:
            row = by_cluster[[cluster]]
            weight = weigh_terms(row.data, size[cluster], total_counts[row.indices] / total) * bonus[row.indices]
            best = np.lexsort((row.indices, -weight))
            listed = row.indices[best[weight[best] > _MIN_WEIGHT]].tolist()
            chosen = listed[:wanted] if keys is None else select_distinct(listed, keys, wanted)
            selected[cluster] = [str(names[term]) for term in chosen]
    return selected


def phrase_factor(n_words: Ints) -> Floats:
    """Return the factor by which the weight of each term is multiplied; it is larger for phrases."""
    return _PHRASE_FACTOR[n_words]


def weigh_terms(count: npt.NDArray[Any], size: Any, reference: Floats) -> Floats:
    """Return the weight of each term of a cluster: its coverage times the logarithm of its lift.

    The coverage is the share of the cluster's texts that contain the term. The lift is the number of these texts
    divided by the expected number. If a cluster has at least 4 texts, a term in only one of them gets -inf.

    Parameters
    ----------
    count : ndarray
        The number of texts of a cluster that contain each term.
    size : int or ndarray
        The number of texts of the cluster.
    reference : ndarray
        The share of texts with the term among the texts to compare with.
    """
    coverage = count / size
    weight: Floats = coverage * log(count / (size * reference + _UNCERTAINTY))
    return np.where((count > 1) | (np.asarray(size) < _MIN_SIZE), weight, -np.inf)


def select_distinct(candidates: Iterable[int], keys: Sequence[frozenset[str]], n: int) -> list[int]:
    """Return the first ``n`` terms that share no word, in any inflection, with an earlier selected term."""
    selected: list[int] = []
    used: set[str] = set()
    for term in candidates:
        if used.isdisjoint(keys[term]):
            selected.append(term)
            used |= keys[term]
            if len(selected) == n:
                break
    return selected


def _comparison_groups(
    by_cluster: Any, size: Ints, clusters: Ints, tree: Hierarchy | None
) -> Iterator[tuple[Ints, Floats, int]]:
    """Yield each group of clusters that are compared with each other, its term counts and its number of texts."""
    if tree is None:
        yield np.arange(len(size)), np.asarray(by_cluster.sum(axis=0)).ravel(), int(size.sum())
        return
    nodes = tree.nodes(clusters)
    parents = tree.parent[nodes] if len(nodes) > 1 else nodes
    # In the order of the tree's leaves, the clusters below a node are contiguous.
    order = np.argsort(tree.start[nodes], kind="stable")
    starts, counts = tree.start[nodes][order], by_cluster[order]
    for parent in np.unique(parents):
        start = tree.start[parent]
        first, last = np.searchsorted(starts, [start, start + tree.size[parent]])
        totals = np.asarray(counts[first:last].sum(axis=0)).ravel()
        yield np.flatnonzero(parents == parent), totals, int(size[order[first:last]].sum())
