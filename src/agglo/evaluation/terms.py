"""For texts: the terms that set a cluster apart from others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo._validation import check_positive
from agglo.points.validation import check_labels
from agglo.tree.hierarchy import Hierarchy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_NOTHING = 1e-12  # a weight that is rounding only


def terms(
    texts: Iterable[str],
    labels: npt.ArrayLike,
    *,
    tree: Hierarchy | None = None,
    n: SupportsIndex = 10,
    vectorizer: Any = None,
) -> list[list[str]]:
    """The terms that set each cluster apart, the most telling first: by default from all other clusters.

    It is a class-based TF-IDF. The weight of a term in a cluster is its frequency there, times the logarithm of
    how much higher that is than its frequency in the cluster and those compared with, taken together. So words
    that are common everywhere weigh nothing, without a list of stop words, in any language. Only terms of
    positive weight are given.

    Parameters
    ----------
    texts : iterable of str
        A text a point.
    labels : array-like of shape (n_points,)
        The cluster of each point, 0 to k - 1; -1 for a point of none.
    tree : Hierarchy, optional
        The tree of which ``labels`` are a cut. Then each cluster is compared with its siblings only: the other
        clusters below its parent, from which the general topic does not tell it apart.
    n : int
        How many terms of each cluster, at most.
    vectorizer : object, optional
        What makes terms of texts, with the methods of :class:`sklearn.feature_extraction.text.CountVectorizer`; by
        default one that counts in how many texts a word occurs. Give one for phrases
        (``ngram_range=(1, 2)``), for other words or for parts of words.

    Returns
    -------
    list of list of str
        The terms of cluster 0, of cluster 1, and so on.

    Examples
    --------
    >>> from agglo.contents import terms
    >>> texts = ["the red apple", "the green apple", "the red car", "the fast car"]
    >>> terms(texts, [0, 0, 1, 1])
    [['apple', 'green'], ['car', 'fast']]
    """
    from sklearn.feature_extraction.text import CountVectorizer  # takes long to import

    given = list(texts)
    clusters, size = check_labels(labels, len(given), "texts")
    wanted = check_positive("n", n)
    wrong = next((i for i, text in enumerate(given) if not isinstance(text, str)), None)
    if wrong is not None and vectorizer is None:
        raise TypeError(f"texts[{wrong}] is {given[wrong]!r}, no text: pass a string a point")
    maker = CountVectorizer(binary=True) if vectorizer is None else vectorizer
    try:
        counts = sp.csr_array(maker.fit_transform(given))
    except ValueError as error:
        raise ValueError(f"texts have no terms in them ({error}): pass a vectorizer that finds some") from error
    names = maker.get_feature_names_out()
    kept = np.flatnonzero(clusters >= 0)
    members = sp.csr_array((np.ones(len(kept)), (clusters[kept], kept)), shape=(len(size), len(given)))
    by_cluster = sp.csr_array(members @ counts)
    found: list[list[str]] = [[] for _ in size]
    for group, compared in _compared(by_cluster, clusters, tree):
        whole = compared / max(compared.sum(), 1.0)
        for cluster in group:
            row = by_cluster[[cluster]]
            share = row.data / max(row.data.sum(), 1.0)
            weight = share * np.log(share / whole[row.indices])
            best = np.lexsort((row.indices, -weight))[:wanted]
            found[cluster] = [str(names[row.indices[i]]) for i in best if weight[i] > _NOTHING]
    return found


def _compared(
    by_cluster: Any, clusters: Ints, tree: Hierarchy | None
) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    """Clusters that are compared with the same, and how often terms occur in all of those and in themselves."""
    if tree is None:
        yield np.arange(by_cluster.shape[0]), np.asarray(by_cluster.sum(axis=0)).ravel()
        return
    nodes = tree.nodes(clusters)
    parents = tree.parent[nodes] if len(nodes) > 1 else nodes
    # Clusters below a node are side by side, in the order in which the tree lists its leaves.
    start = tree._below[2]
    order = np.argsort(start[nodes], kind="stable")
    places, counts = start[nodes][order], by_cluster[order]
    for parent in np.unique(parents):
        first, last = np.searchsorted(places, [start[parent], start[parent] + tree.size[parent]])
        yield np.flatnonzero(parents == parent), np.asarray(counts[first:last].sum(axis=0)).ravel()
