"""Word categories, for colour: what the analogy questions of Mikolov et al. (2013), which gensim ships, say of their words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# Each section is questions "a b c d" with b to a as d to c: what its first and its second column hold.
_COLUMNS = {
    "capital-common-countries": ("city", "country or state"),
    "capital-world": ("city", "country or state"),
    "currency": ("country or state", None),  # the only common ones are "real", "won" and "dollar"
    "city-in-state": ("city", "country or state"),
    "family": ("family", "family"),
    "gram1-adjective-to-adverb": ("adjective", "adverb"),
    "gram2-opposite": ("adjective", "adjective"),
    "gram3-comparative": ("adjective", "comparative"),
    "gram4-superlative": ("adjective", "superlative"),
    "gram5-present-participle": ("verb", "participle"),
    "gram6-nationality-adjective": ("country or state", "nationality"),
    "gram7-past-tense": ("participle", "past tense"),
    "gram8-plural": ("noun", "plural noun"),
    "gram9-plural-verbs": ("verb", "verb"),
}
# A word of several sections takes the first of these: "man" is family, "possibly" an adverb, "slow" an adjective.
CATEGORIES = (
    "family",
    "city",
    "country or state",
    "nationality",
    "adverb",
    "adjective",
    "comparative",
    "superlative",
    "verb",
    "participle",
    "past tense",
    "plural noun",
    "noun",
)


@cache
def word_categories() -> dict[str, str]:
    """Word in lower case → one of CATEGORIES; empty where gensim is not installed."""
    gensim = find_spec("gensim")  # found, not imported: the import takes a second
    if gensim is None or gensim.origin is None:
        return {}
    rank = {category: i for i, category in enumerate(CATEGORIES)}
    categories: dict[str, str] = {}
    columns: tuple[str | None, str | None] = (None, None)
    questions = Path(gensim.origin).parent / "test" / "test_data" / "questions-words.txt"
    for line in questions.read_text(encoding="utf-8").lower().splitlines():
        if line.startswith(":"):
            columns = _COLUMNS[line[1:].strip()]
            continue
        for word, category in zip(line.split(), columns * 2, strict=True):
            if category and rank[category] < rank.get(categories.get(word, ""), len(rank)):
                categories[word] = category
    return categories


def categorise(words: Sequence[str]) -> list[str]:
    """One category a word, ``""`` where it has none."""
    categories = word_categories()
    return [categories.get(word.lower(), "") for word in words]
