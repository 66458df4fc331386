"""Turn texts into sparse TF-IDF vectors of words and character n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from agglo.evaluation.phrases import MAX_CHARACTERS
from agglo.progress import Progress

_NGRAM_RANGE = (3, 4)  # smallest and largest number of characters of an n-gram


def lexical_features(texts: Sequence[str], *, progress: Progress | None = None) -> Any:
    """Compute TF-IDF vectors of words and of character n-grams, as a sparse matrix with one row per text.

    The cosine of two rows is the mean of two cosines: one of the words, and one of the character 3- and 4-grams
    within words. With n-grams, texts that differ only in endings or spelling are similar. N-grams work for any
    language and for emoji.

    Parameters
    ----------
    texts : sequence of str
        The texts. Only the first 10,000 characters of each are used.
    progress : callable, optional
        Called as ``progress("features", done, total)``.

    Examples
    --------
    >>> from agglo.text.features import lexical_features
    >>> X = lexical_features(["red frog", "red frogs", "blue sky", "blue skies"])
    >>> from sklearn.metrics.pairwise import cosine_similarity
    >>> cosine_similarity(X).round(1)
    array([[1. , 0.5, 0. , 0. ],
           [0.5, 1. , 0. , 0. ],
           [0. , 0. , 1. , 0.4],
           [0. , 0. , 0.4, 1. ]], dtype=float32)
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

    shortened = [text[:MAX_CHARACTERS] for text in texts]
    vectorizers = (
        TfidfVectorizer(sublinear_tf=True, dtype=np.float32, token_pattern=r"(?u)\b\w+\b"),
        TfidfVectorizer(analyzer="char_wb", ngram_range=_NGRAM_RANGE, sublinear_tf=True, dtype=np.float32),
    )
    parts = []
    for done, vectorizer in enumerate(vectorizers):
        if progress is not None:
            progress("features", done, len(vectorizers))
        try:
            parts.append(vectorizer.fit_transform(shortened))  # rows of unit length
        except ValueError:  # no text contains a word, but the character n-grams may still be usable
            continue
    if not parts:
        raise ValueError("no text contains words or characters to compare: pass texts that are not empty")
    X = sp.csr_array(sp.hstack(parts, format="csr"))
    X.sort_indices()
    return X
