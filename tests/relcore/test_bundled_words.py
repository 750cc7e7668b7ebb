"""What the project promises of its two bundled word spaces, through the names that a script uses."""

import numpy as np
import pytest

from relcore.encoders.words import load_words
from relcore.represent.anchors import select_anchors
from relcore.represent.projection import RelativeProjection
from relcore.scores.neighbours import find_neighbours
from relcore.spaces.space import match

QUERIES = 4000


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


def test_twenty_thousand_words_are_in_both(pair):
    assert len(pair) == 20_000
    assert pair.n_zero == pair.n_source_only == pair.n_target_only == 0
    assert pair.source.dimension == pair.target.dimension == 100


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


@pytest.mark.parametrize("form", ["absolute", "relative", "whitened"])
def test_a_space_against_itself_is_one(forms, form):
    for space in forms[form]:
        found = find_neighbours(space, space, k=10, n_queries=500)
        assert found.overlap.mean() == 1
        assert found.reciprocal_rank.mean() == 1


def test_chance_is_far_below(forms):
    source, target = forms["relative"]
    found = find_neighbours(source, target, k=10, n_queries=500)
    assert found.jaccard().null.high < 0.01
    assert found.mrr().null.high < 0.01


def test_turning_mirroring_and_scaling_leave_the_relative_form(pair, forms, rng):
    rows = pair.source.rows(select_anchors(pair.source, 300, random_state=0))
    turn = np.linalg.qr(rng.normal(size=(100, 100)))[0].astype(np.float32)
    turn[:, 0] *= -1
    changed = 0.3 * pair.source.vectors @ turn
    centred = RelativeProjection().fit(changed, anchors=rows).transform(changed)
    held_out = np.delete(np.arange(len(pair)), rows)
    np.testing.assert_allclose(centred[held_out], forms["relative"][0], atol=1e-5)
    shifted = pair.source.vectors + np.float32(0.5)
    np.testing.assert_allclose(
        RelativeProjection().fit(shifted, anchors=rows).transform(shifted), centred, atol=1e-5
    )
    uncentred = RelativeProjection(center=False)
    before, after = (uncentred.fit(X, anchors=rows).transform(X) for X in (pair.source.vectors, shifted))
    assert np.abs(before - after).max() > 0.1
