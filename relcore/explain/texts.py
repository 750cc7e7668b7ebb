"""Features of texts: words and pairs of words, length, numbers, signs, script."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from relcore.explain.families import FEWEST, FeatureFamily, partition, sets, tenths

_SHARES = (0.01, 0.3)  # shares of the texts that contain a word
_MOST_WORDS = 400
_SIGNS = {
    "number": ("texts with a number", re.compile(r"\d")),
    "year": ("texts with a year", re.compile(r"\b(1[5-9]|20)\d\d\b")),
    "quotation": ("texts with a quotation", re.compile('["“”„«»]')),
    "question": ("questions", re.compile(r"[?？]\s*$")),
}
_SAMPLED = 200  # number of signs of a text from which its script is determined


def text_families(texts: Sequence[str]) -> Iterator[FeatureFamily]:
    """Words and pairs of words that 1 to 30 % of the texts contain; tenths of length; texts with a number, a
    year or a quotation; questions; the script.

    Examples
    --------
    >>> texts = ["the red house in 1984?", "a dog", "a cat", "a cat and 3 dogs"] * 30
    >>> sorted(family.name for family in text_families(texts) if len(family))
    ['length of the text', 'signs', 'word']
    """
    yield _words(texts)
    lengths = np.array([len(text.split()) for text in texts], dtype=np.float64)
    yield tenths("length of the text", lengths, "number of words", "texts")
    found = [
        (title, short, np.array([pattern.search(text) is not None for text in texts]))
        for short, (title, pattern) in _SIGNS.items()
    ]
    yield sets("signs", found, n=len(texts))
    yield partition(
        "script", [script_of(text) for text in texts], "texts in {} script", "texts of one script"
    )


def _words(texts: Sequence[str]) -> FeatureFamily:
    """The family of words and pairs of neighbouring words. The most frequent ones are taken."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

    n = len(texts)
    low, high = _SHARES
    least = max(FEWEST, int(np.ceil(low * n)))
    none = sets("word", (), n=n)
    if least > high * n:
        return none
    counter = CountVectorizer(ngram_range=(1, 2), min_df=least, max_df=high, binary=True, dtype=np.float32)
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # no text has a word
        return none
    names = counter.get_feature_names_out()
    telling = [place for place, name in enumerate(names) if not set(name.split()) <= ENGLISH_STOP_WORDS]
    sizes = np.asarray(counts.sum(axis=0)).ravel()
    kept = sorted(telling, key=lambda place: -sizes[place])[:_MOST_WORDS]
    words = [str(names[place]) for place in kept]
    return FeatureFamily(
        "word",
        counts[:, kept].tocsr(),
        tuple(f"texts with “{name}”" for name in words),
        tuple(words),
        "texts with a word in common",
    )


def script_of(text: str) -> str:
    """The script of most letters, such as ``"latin"`` or ``"cyrillic"``; "" without letters.

    Examples
    --------
    >>> script_of("Привет"), script_of("12")
    ('cyrillic', '')
    """
    letters = [sign for sign in text[:_SAMPLED] if sign.isalpha()]
    names = Counter(unicodedata.name(sign, "").partition(" ")[0] for sign in letters)
    if not names:
        return ""
    return names.most_common(1)[0][0].lower()
