"""Extract the terms of texts: words and phrases of up to three words, without stop words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from agglo.evaluation.stop_words import STOP_WORDS, detect_language

Ints = npt.NDArray[np.int64]

MAX_CHARACTERS = 10_000  # number of characters at the beginning of a text that are used
_MAX_WORDS = 3  # maximum number of words of a phrase
_MAX_LETTERS = 30  # maximum length of a word; longer words are codes or addresses
# Two words are treated as related if their base forms begin with the same letters, up to this number.
_KEY_LETTERS = 5
# A word may contain apostrophes, hyphens, dots and underscores, and end in "#" or "++".
# Any other sign ends a phrase.
_TOKEN = re.compile(r"[^\W_]+(?:['’._\-][^\W_]+)*(?:\+\+|#)?|[^\w\s]")
_PARTS = re.compile(r"['._\-]")
_VOWEL = re.compile("[aeiouy]")

# A word that occurs in many texts of all topics is a stop word of these texts.
# To find such words, the texts are divided into blocks of neighbouring texts, which are similar.
_N_BLOCKS = 20
_MIN_BLOCK = 50  # minimum number of texts per block; with fewer texts, the shares are too uncertain
_MIN_SHARE = 0.03  # minimum share of all texts that contain a stop word
_EVEN = 0.5  # in most blocks, the share of texts with a stop word is at least this part of its share in all texts
_MOST_BLOCKS = 0.7  # "most blocks" are at least this share of the blocks


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms (words and phrases) of texts. Inflections of a word are one term.

    Parameters
    ----------
    counts : scipy.sparse.csr_array of shape (n_texts, n_terms)
        The entry is 1 if the text contains the term. Column indices are sorted.
    names : list of str
        Each term in its most frequent spelling.
    n_words : ndarray of int64
        The number of words of each term.
    keys : list of frozenset of str
        The first letters of the base form of each word of a term. Related words have the same first letters.
    """

    counts: Any
    names: list[str]
    n_words: Ints
    keys: list[frozenset[str]]

    @cached_property
    def n_texts_with(self) -> npt.NDArray[np.float64]:
        """The number of texts that contain each term."""
        return np.bincount(self.counts.indices, minlength=self.counts.shape[1]).astype(np.float64)


def extract_terms(texts: Sequence[str], language: str = "auto", stop_words: Collection[str] = ()) -> Terms:
    """Find the words of texts, and the phrases of two or three words that occur at least twice.

    A term contains no stop word and starts with a letter. In a large set of texts, words that occur evenly among
    all texts are also stop words. To detect such words, neighbouring texts should be similar, as in the order of a
    tree's leaves.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    language : str
        The language of the function words to leave out: one of :data:`agglo.evaluation.stop_words.LANGUAGES`.
    stop_words : collection of str
        Further words to leave out, in lower or upper case and in any inflection.
    """
    found = [_TOKEN.findall(text[:MAX_CHARACTERS]) for text in texts]
    tokens = [token for own in found for token in own]
    doc = np.repeat(np.arange(len(texts)), [len(own) for own in found])
    code_of: dict[str, int] = {}
    code = np.fromiter((code_of.setdefault(token, len(code_of)) for token in tokens), np.int64, len(tokens))
    words = _Words(list(code_of), np.bincount(code, minlength=len(code_of)), language, stop_words)
    base = words.base[code]
    is_content = words.is_content[code]
    is_content &= ~_spread_evenly(base, doc, len(texts), len(words.names))[base]
    may_follow = is_content | words.is_number[code]
    grams = [_Grams(np.flatnonzero(is_content), base[is_content], 1)]
    for length in range(2, _MAX_WORDS + 1):
        grams.append(_extend(grams[-1], length, base, doc, may_follow))
    places, ids, sizes = [], [], []
    n_terms = 0
    for gram in grams:
        distinct, own = np.unique(gram.key, return_inverse=True)
        places.append(gram.place)
        ids.append(own + n_terms)
        sizes.append(np.full(len(distinct), gram.length))
        n_terms += len(distinct)
    place, term, n_words = (np.concatenate(parts) for parts in (places, ids, sizes))
    shape = (len(texts), max(n_terms, 1))
    counts = sp.csr_array((np.ones(len(term)), (doc[place], term)), shape=shape)
    counts.sum_duplicates()
    counts.data[:] = 1.0
    representative = _most_frequent_spellings(place, term, n_words, code, n_terms).tolist()
    spans = [slice(first, first + length) for first, length in zip(representative, n_words.tolist(), strict=True)]
    keys = [frozenset[str]().union(*(words.keys[own] for own in base[span].tolist())) for span in spans]
    return Terms(counts, [" ".join(tokens[span]) for span in spans], n_words, keys)


@dataclass(frozen=True, eq=False)
class _Grams:
    """Occurrences of n-grams, which are sequences of ``length`` words.

    ``place`` is the position of the first word among all tokens. ``key`` is an integer that equal n-grams share.
    """

    place: Ints
    key: Ints
    length: int


def _extend(shorter: _Grams, length: int, base: Ints, doc: Ints, may_follow: npt.NDArray[np.bool_]) -> _Grams:
    """Add the next word to each n-gram; return the longer n-grams that occur at least twice."""
    last = shorter.place + length - 1
    inside = last < len(base)
    place, key, last = shorter.place[inside], shorter.key[inside], last[inside]
    # A sign is a token that no phrase contains, so no phrase has words on both sides of a sign.
    fits = may_follow[last] & (doc[last] == doc[place])
    for i in range(length - 1):
        fits &= base[last] != base[place + i]
    place, key, last = place[fits], key[fits], last[fits]
    _, pair, count = np.unique(
        key * (base.max(initial=0) + 1) + base[last], return_inverse=True, return_counts=True
    )
    kept = count[pair] > 1
    return _Grams(place[kept], pair[kept], length)


def _most_frequent_spellings(place: Ints, term: Ints, n_words: Ints, code: Ints, n_terms: int) -> Ints:
    """Return, for each term, the place of the first occurrence of its most frequent spelling.

    Among equally frequent spellings, the one that occurs first is chosen.
    """
    spelling = code[place].copy()
    n_codes = code.max(initial=0) + 1
    for i in range(1, _MAX_WORDS):
        longer = n_words[term] > i
        spelling[longer] = spelling[longer] * n_codes + code[place[longer] + i]
    order = np.lexsort((place, spelling, term))
    term, spelling, place = term[order], spelling[order], place[order]
    is_first = np.append(True, (term[1:] != term[:-1]) | (spelling[1:] != spelling[:-1]))[: len(term)]
    starts = np.flatnonzero(is_first)
    count = np.diff(np.append(starts, len(term)))
    best = np.lexsort((place[starts], -count, term[starts]))
    _, first = np.unique(term[starts][best], return_index=True)
    found = np.zeros(n_terms, np.int64)
    found[term[starts][best][first]] = place[starts][best][first]
    return found


def _spread_evenly(base: Ints, doc: Ints, n_texts: int, n_words: int) -> npt.NDArray[np.bool_]:
    """Return, for each word, whether many texts contain it, about equally many in most blocks of texts."""
    if n_texts < _N_BLOCKS * _MIN_BLOCK:
        return np.zeros(n_words, bool)
    pairs = np.unique(doc * n_words + base)
    word, block = pairs % n_words, pairs // n_words * _N_BLOCKS // n_texts
    total = np.bincount(word, minlength=n_words)
    frequent = np.flatnonzero(total > _MIN_SHARE * n_texts)
    row = np.full(n_words, -1)
    row[frequent] = np.arange(len(frequent))
    kept = row[word] >= 0
    by_block = np.zeros((len(frequent), _N_BLOCKS), np.int64)
    np.add.at(by_block, (row[word[kept]], block[kept]), 1)
    is_even = by_block >= _EVEN * total[frequent, None] / _N_BLOCKS
    result = np.zeros(n_words, bool)
    result[frequent] = is_even.mean(axis=1) >= _MOST_BLOCKS
    return result


class _Words:
    """The distinct tokens of texts, and the base form of each token. Inflections of a word share one base form."""

    def __init__(
        self, tokens: list[str], count: npt.NDArray[np.int64], language: str, stop_words: Collection[str]
    ) -> None:
        lower = [token.lower().replace("’", "'") for token in tokens]
        frequency: Counter[str] = Counter()
        for word, number in zip(lower, count.tolist(), strict=True):
            frequency[word] += number
        if language == "auto":
            language = detect_language(frequency)
        given = {word.lower().replace("’", "'") for word in stop_words}
        given |= {word for word in frequency if not given.isdisjoint(_base_forms(word))}
        stops = STOP_WORDS.get(language, frozenset()) | given
        content = {
            word for word in frequency if _is_content(word) and stops.isdisjoint([word, *_PARTS.split(word)])
        }
        folds = language == "english"
        folded = {word: _fold(word, content) if folds and word in content else word for word in frequency}
        number_of: dict[str, int] = {}
        self.base = np.array([number_of.setdefault(folded[word], len(number_of)) for word in lower], np.int64)
        self.names = list(number_of)
        self.keys = [frozenset(map(_shorten, _PARTS.split(name))) for name in self.names]
        self.is_content = np.array([word in content for word in lower], bool)
        self.is_number = np.array([word[0].isdigit() and len(word) <= 4 for word in lower], bool)


def _shorten(word: str) -> str:
    """Return the beginning of a word's base form, by which related words are recognized.

    For example, return "writ" for "writes", "writing" and "writers".
    """
    word = min(_base_forms(word), key=len, default=word)
    for ending in ("er", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            word = word.removesuffix(ending)
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:_KEY_LETTERS]


def _is_content(word: str) -> bool:
    """Return whether a token can start a term: it is not a sign, a number, a single letter or a long code."""
    return word[0].isalpha() and (len(word) > 1 or not word.isascii()) and len(word) <= _MAX_LETTERS


def _fold(word: str, vocabulary: Collection[str]) -> str:
    """Return the base form of an English word if ``vocabulary`` contains it; otherwise return the word."""
    while True:
        base = next((form for form in _base_forms(word) if form in vocabulary), None)
        if base is None:
            return word
        word = base


def _base_forms(word: str) -> list[str]:
    """Return the possible base forms of an English word, the likeliest first; none if it is not inflected."""
    if word.endswith("'s"):
        return [word[:-2]]
    if len(word) == 3 and word.endswith("s") and not _VOWEL.search(word):  # the plural of an abbreviation: "DJs"
        return [word[:-1]]
    if len(word) < 4 or word == "news":
        return []
    if word.endswith("ies"):
        return [word[:-3] + "y", word[:-1]]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        singular = word[:-1]
        if singular.endswith(("xe", "che", "she", "sse")):
            return [word[:-2], singular]
        return [singular, word[:-2]] if singular.endswith(("se", "ze", "oe")) else [singular]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and _VOWEL.search(stem) and not word.endswith("eed"):
            if stem[-1] == stem[-2]:
                return [stem[:-1], stem]
            return [stem + "e", stem, *([stem[:-1] + "y"] if word.endswith("ied") else [])]
    return []
