"""Features of words, which are made from the ids alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from relcore.explain.families import FeatureFamily, partition, sets, tenths

_WORD = re.compile(r"[^\W\d_]([^\W\d_]|['’.-])*")
_LENGTHS = (2, 3, 4)  # letters of an ending or a beginning
_REST = 2  # minimum number of letters beside an ending
_LONGEST = 12  # letters; longer words are one feature
_CLASSES: dict[str, tuple[str, Callable[[str], bool]]] = {
    "capital": ("words with a capital letter", lambda word: word != word.lower()),
    "digit": ("words with a digit", lambda word: any(sign.isdigit() for sign in word)),
    "hyphen": ("words with a hyphen", lambda word: "-" in word),
    "apostrophe": ("words with an apostrophe", lambda word: "'" in word or "’" in word),
    "accent": ("words with letters beyond a to z", lambda word: not word.isascii()),
}


def are_words(ids: Sequence[str]) -> bool:
    """Whether most ids are single words. Ids such as 17, r17 or "digits/17" are none."""
    return 2 * sum(bool(_WORD.fullmatch(one)) for one in ids) > len(ids)


def word_families(words: Sequence[str]) -> Iterator[FeatureFamily]:
    """Endings and beginnings of 2 to 4 letters, lengths, and kinds of characters.

    Examples
    --------
    >>> words = [f"{stem}{ending}" for stem in map(chr, range(97, 123)) for ending in ("xying", "xyed")]
    >>> families = {family.name: family for family in word_families(words * 2)}
    >>> families["ending of 3 letters"].shorts
    ('-ing', '-yed')
    """
    for length in _LENGTHS:
        yield partition(
            f"ending of {length} letters",
            [_long_enough(word, length, word[-length:]) for word in words],
            "words that end in -{}",
            f"words with the same ending of {length} letters or more",
            "-{}",
        )
        yield partition(
            f"beginning of {length} letters",
            [_long_enough(word, length, word[:length]) for word in words],
            "words that begin with {}-",
            f"words with the same beginning of {length} letters or more",
            "{}-",
        )
    lengths = np.array([min(len(word), _LONGEST) for word in words])
    names = [f"{one} letters" for one in lengths.tolist()]
    names = [f"{name} or more" if one == _LONGEST else name for one, name in zip(lengths, names, strict=True)]
    yield partition("length", names, "words of {}", "words of equal length")
    kinds = [
        (title, short, np.array([has(word) for word in words])) for short, (title, has) in _CLASSES.items()
    ]
    yield sets("characters", kinds, n=len(words))


def _long_enough(word: str, length: int, letters: str) -> str:
    """The letters, if the word has a stem beside them; "" otherwise."""
    if len(word) < length + _REST:
        return ""
    return letters


def frequency_family(counts: np.ndarray, of_rows: str) -> FeatureFamily:
    """The tenths of rows by how often they occur."""
    return tenths("frequency", np.log1p(counts.astype(np.float64)), "frequency", of_rows)
