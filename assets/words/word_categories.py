"""Make the bundled word categories from the analogy questions of Mikolov et al. (2013), which gensim ships.

python assets/words/word_categories.py > relcore/data/words/categories.tsv
"""

from __future__ import annotations

import pandas as pd
from gensim.test.utils import datapath

from relcore.base.report import delimited_text

# Each section has questions "a b c d", where b is to a as d is to c. The values are the categories of its
# first and its second column.
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
# A word of several sections takes the first of these: "man" is family, "possibly" an adverb, "slow" an
# adjective.
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


def word_categories() -> dict[str, str]:
    """Word in lower case → one of CATEGORIES."""
    rank = {category: i for i, category in enumerate(CATEGORIES)}
    categories: dict[str, str] = {}
    columns: tuple[str | None, str | None] = (None, None)
    with open(datapath("questions-words.txt"), encoding="utf-8") as questions:
        for line in questions.read().lower().splitlines():
            if line.startswith(":"):
                columns = _COLUMNS[line[1:].strip()]
                continue
            for word, category in zip(line.split(), columns * 2, strict=True):
                if category and rank[category] < rank.get(categories.get(word, ""), len(rank)):
                    categories[word] = category
    return categories


if __name__ == "__main__":
    rows = pd.DataFrame(sorted(word_categories().items()), columns=["word", "category"])
    print(delimited_text(rows, "\t"), end="")
