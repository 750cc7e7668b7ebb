"""Word categories, for colour: what the analogy questions of Mikolov et al. (2013) say of their words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files


@cache
def word_categories() -> dict[str, str]:
    """Word in lower case → its category; the bundled file, which ``assets/words/word_categories.py`` writes."""
    lines = (files("relcore") / "data" / "words" / "categories.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


def categorise(words: Sequence[str]) -> list[str]:
    """One category a word, ``""`` where it has none."""
    categories = word_categories()
    return [categories.get(word.lower(), "") for word in words]
