"""Get the vectors of texts: from a file, from an embedding model, or by TF-IDF of words and characters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo.evaluation.phrases import MAX_CHARACTERS
from agglo.io.files import ReadError
from agglo.io.points import read_points
from agglo.progress import Progress
from agglo.text.reader import Texts

_NGRAM_RANGE = (3, 4)  # smallest and largest number of characters of an n-gram
_MIN_TEXTS = 100  # smallest number of texts for which the share of texts without common words is checked
_MAX_UNRELATED = 0.9  # maximum share of texts that share no word with another text
_BLOCK = 1024  # number of texts per call of the model; progress is reported between calls
# Characters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which are written without spaces between words.
_NO_SPACES = re.compile("[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u9fff]")


def read_embeddings(path: Path, texts: Texts) -> npt.NDArray[Any]:
    """Read vectors from a file whose rows match the rows of the text file; return one vector per text."""
    try:
        X = read_points(path).X
    except ReadError as error:
        raise ReadError(error.cause, "pass the vectors alone, as one array in a .npy file") from error
    if X.ndim != 2 or len(X) != texts.n_rows:
        raise ValueError(
            f"{path} has an array of shape {X.shape}, but there are {texts.n_rows} rows of texts: pass one row "
            "of numbers for each, including rows without a text and duplicates"
        )
    chosen = np.asarray(X[texts.row])
    if chosen.dtype.kind not in "fiu":
        raise ValueError(f"{path} holds {chosen.dtype}, but embeddings must be numbers: pass a float32 array")
    wrong = ~np.isfinite(chosen).all(axis=1)
    wrong |= ~chosen.any(axis=1)
    if wrong.any():
        at = int(texts.row[wrong.argmax()])
        raise ValueError(
            f"{path} has no embedding in row {at} ({np.count_nonzero(wrong)} such rows: NaN, infinite or all 0): "
            "embed these texts too, or drop their rows in both files"
        )
    return chosen.astype(np.float32)


def encode_texts(path: Path, texts: Sequence[str], progress: Progress | None = None) -> npt.NDArray[np.float32]:
    """Compute one vector per text with a sentence-transformers model in a local folder, without downloads."""
    if not path.is_dir():
        raise ValueError(f"--model {path} is not a folder: pass the folder of a local model; none is downloaded")
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            f"--model needs sentence-transformers, which cannot be imported ({error}): "
            "pip install sentence-transformers, or leave out --model"
        ) from None
    model = SentenceTransformer(str(path), local_files_only=True)
    blocks = []
    for first in range(0, len(texts), _BLOCK):
        if progress is not None:
            progress("model", first, len(texts))
        blocks.append(np.asarray(model.encode(list(texts[first : first + _BLOCK])), np.float32))
    return np.concatenate(blocks)


def compute_vectors(
    texts: Texts, embeddings: Path | None, model: Path | None, progress: Progress | None = None
) -> tuple[Any, str]:
    """Return the vectors of texts and the name of their source: the file, the model, or words and letters."""
    if embeddings is not None:
        return read_embeddings(embeddings, texts), str(embeddings)
    if model is not None:
        return encode_texts(model, texts.texts, progress), str(model)
    return lexical_features(texts.texts, progress=progress), "words and letters"


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
    >>> from agglo.text.vectors import lexical_features
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
            parts.append(vectorizer.fit_transform(shortened))  # each part has rows of unit length
            if vectorizer.analyzer == "word":
                _warn_of_unrelated(parts[-1], shortened)
        except ValueError:  # no text contains a word, but the character n-grams may still be usable
            continue
    if not parts:
        raise ValueError("no text contains words or characters to compare: pass texts that are not empty")
    X = sp.csr_array(sp.hstack(parts, format="csr"))
    X.sort_indices()
    return X


def _warn_of_unrelated(X: Any, texts: Sequence[str]) -> None:
    """Warn if nearly all texts share no word with another text, as in a column of identifiers.

    ``X`` has one column per word. Scripts without spaces between words are not checked.
    """
    if len(texts) < _MIN_TEXTS or any(_NO_SPACES.search(text) for text in texts[:_MIN_TEXTS]):
        return
    is_common = np.bincount(X.indices, minlength=X.shape[1]) > 1
    share = 1 - np.count_nonzero(X @ is_common.astype(np.float32)) / len(texts)
    if share > _MAX_UNRELATED:
        warnings.warn(
            f"{int(100 * share)} % of the texts share no word with another text, as identifiers do: "
            "check that these are the texts to cluster, for example in another column",
            stacklevel=3,
        )
