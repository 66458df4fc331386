"""Terms that distinguish clusters of texts, by class-based TF-IDF."""

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

_MIN_WEIGHT = 1e-12  # smaller weights are rounding errors


def terms(
    texts: Iterable[str],
    labels: npt.ArrayLike,
    *,
    tree: Hierarchy | None = None,
    n: SupportsIndex = 10,
    vectorizer: Any = None,
) -> list[list[str]]:
    """Find the terms that distinguish each cluster, by class-based TF-IDF; terms are sorted by falling weight.

    The weight of a term in a cluster is ``f log(f / g)``. Here ``f`` is its relative frequency in the cluster, and
    ``g`` its relative frequency in all compared clusters together. Words that are equally common everywhere have
    weight 0, so no list of stop words is needed, in any language. Only terms with positive weight are returned.

    Parameters
    ----------
    texts : iterable of str
        One text per point.
    labels : array-like of shape (n_points,)
        The cluster of each point, 0 to k - 1; -1 for points in no cluster.
    tree : Hierarchy, optional
        The tree that ``labels`` is a cut of. If given, each cluster is compared only with the clusters below its
        parent, which share its general topic. By default each cluster is compared with all clusters.
    n : int
        The largest number of terms per cluster.
    vectorizer : object, optional
        Extracts terms from texts, with the methods of :class:`sklearn.feature_extraction.text.CountVectorizer`.
        The default counts the texts that contain each word. Pass another vectorizer for phrases
        (``ngram_range=(1, 2)``), other tokens or parts of words.

    Returns
    -------
    list of list of str
        One list of terms per cluster.

    Examples
    --------
    >>> from agglo.contents import terms
    >>> texts = ["the red apple", "the green apple", "the red car", "the fast car"]
    >>> terms(texts, [0, 0, 1, 1])
    [['apple', 'green'], ['car', 'fast']]
    """
    from sklearn.feature_extraction.text import CountVectorizer  # slow to import

    given = list(texts)
    clusters, size = check_labels(labels, len(given), "texts")
    wanted = check_positive("n", n)
    wrong = next((i for i, text in enumerate(given) if not isinstance(text, str)), None)
    if wrong is not None and vectorizer is None:
        raise TypeError(f"texts[{wrong}] is {given[wrong]!r}, not a text: pass one string per point")
    if vectorizer is None:
        vectorizer = CountVectorizer(binary=True)
    try:
        counts = sp.csr_array(vectorizer.fit_transform(given))
    except ValueError as error:
        raise ValueError(f"texts contain no terms ({error}): pass a vectorizer that finds some") from error
    names = vectorizer.get_feature_names_out()
    kept = np.flatnonzero(clusters >= 0)
    members = sp.csr_array((np.ones(len(kept)), (clusters[kept], kept)), shape=(len(size), len(given)))
    by_cluster = sp.csr_array(members @ counts)
    found: list[list[str]] = [[] for _ in size]
    for group, total_counts in _comparison_groups(by_cluster, clusters, tree):
        whole = total_counts / max(total_counts.sum(), 1.0)
        for cluster in group:
            row = by_cluster[[cluster]]
            share = row.data / max(row.data.sum(), 1.0)
            weight = share * np.log(share / whole[row.indices])
            best = np.lexsort((row.indices, -weight))[:wanted]
            found[cluster] = [str(names[row.indices[i]]) for i in best if weight[i] > _MIN_WEIGHT]
    return found


def _comparison_groups(
    by_cluster: Any, clusters: Ints, tree: Hierarchy | None
) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    """Yield groups of clusters to compare with each other, and the total term counts for each group."""
    if tree is None:
        yield np.arange(by_cluster.shape[0]), np.asarray(by_cluster.sum(axis=0)).ravel()
        return
    nodes = tree.nodes(clusters)
    parents = tree.parent[nodes] if len(nodes) > 1 else nodes
    # In the order of the tree's leaves, the clusters below a node are contiguous.
    order = np.argsort(tree.start[nodes], kind="stable")
    starts, counts = tree.start[nodes][order], by_cluster[order]
    for parent in np.unique(parents):
        start = tree.start[parent]
        first, last = np.searchsorted(starts, [start, start + tree.size[parent]])
        yield np.flatnonzero(parents == parent), np.asarray(counts[first:last].sum(axis=0)).ravel()
