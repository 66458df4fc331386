"""Texts as vectors of what they are made of: words, and the letters inside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from agglo.progress import Progress
from agglo.text.names import READ

_LETTERS = (3, 4)  # how many letters in a row


def lexical_features(texts: Sequence[str], *, progress: Progress | None = None) -> Any:
    """TF-IDF vectors of words and of runs of 3 and 4 letters, a row a text, as a sparse matrix.

    The cosine of two rows is the mean of the cosines of their words and of their letters, so that other endings
    and spellings do not make a text another, and that texts of any language, and signs, have something in common.

    Parameters
    ----------
    texts : sequence of str
        The texts; of very long ones the first 10,000 characters are read.
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
    from sklearn.feature_extraction.text import TfidfVectorizer  # takes long to import

    read = [text[:READ] for text in texts]
    makers = {
        "words": TfidfVectorizer(sublinear_tf=True, dtype=np.float32, token_pattern=r"(?u)\b\w+\b"),
        "letters": TfidfVectorizer(analyzer="char_wb", ngram_range=_LETTERS, sublinear_tf=True, dtype=np.float32),
    }
    parts = []
    for done, maker in enumerate(makers.values()):
        if progress is not None:
            progress("features", done, len(makers))
        try:
            parts.append(maker.fit_transform(read))  # rows of length 1
        except ValueError:  # no text has a word in it, but signs perhaps
            continue
    if not parts:
        raise ValueError("texts have neither words nor letters in them: there is nothing to compare")
    X = sp.csr_array(sp.hstack(parts, format="csr"))
    X.sort_indices()
    return X
