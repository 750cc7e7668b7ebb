"""The bundled words, and their categories."""

import numpy as np
import pytest

from relcore.encoders.words import BUNDLED, categorise, load_words


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_words_are_whole(name):
    space = load_words(name)
    assert (len(space), space.dimension, space.name) == (20_000, 100, name)
    assert (np.diff(space.counts) <= 0).all()  # by falling frequency
    assert not len(space.zero_rows)
    assert BUNDLED[name].stat().st_size <= 5_000_000


@pytest.mark.parametrize(
    ("word", "category"),
    [
        ("chicago", "city"),
        ("france", "country or state"),
        ("french", "nationality"),
        ("bigger", "comparative"),
        ("read", "verb"),
        ("danced", "past tense"),
        ("won", ""),
        ("zyzzyva", ""),
    ],
)
def test_categories(word, category):
    assert categorise([word]) == [category]
