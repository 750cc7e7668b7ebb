"""What the project promises of its two bundled word spaces, through the names that a script uses."""

import numpy as np
import pytest

from relcore.encoders.words import load_words
from relcore.represent.projection import RelativeProjection
from relcore.represent.strategies import select_anchors
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.matching import match

QUERIES = 500


@pytest.fixture(scope="module")
def pair():
    return match(load_words("word2vec-novels"), load_words("fasttext-novels"))


@pytest.fixture(scope="module")
def forms(pair):
    rows = pair.source.rows(select_anchors(pair.source, 300, random_state=0))
    spaces = (pair.source.vectors, pair.target.vectors)
    plain, whitened = (
        [RelativeProjection(whiten=whiten).fit(X, anchors=rows).transform(X) for X in spaces]
        for whiten in (False, True)
    )
    made = {"absolute": spaces, "relative": plain, "whitened": whitened}
    held_out = np.delete(np.arange(len(pair)), rows)
    return {form: [X[held_out] for X in spaces] for form, spaces in made.items()}


def both_ways(forms, form):
    source, target = forms[form]
    return [
        find_neighbours(*spaces, k=10, n_queries=QUERIES) for spaces in ((source, target), (target, source))
    ]


def test_absolute_spaces_have_nothing_in_common(forms):
    for found in both_ways(forms, "absolute"):
        assert found.overlap.mean() <= 0.01


def test_relative_spaces_find_most_words_again(forms):
    for found in both_ways(forms, "relative"):
        assert found.reciprocal_rank.mean() >= 0.75


def test_whitened_spaces_find_nearly_all(forms):
    for found in both_ways(forms, "whitened"):
        assert found.reciprocal_rank.mean() >= 0.90
        assert found.overlap.mean() >= 0.28
