"""Scores that a few rows, or anchors in one place, decide have a note. Scores of ordinary spaces have none."""

import numpy as np
import pytest

from relcore.base.numbers import short
from relcore.encoders.words import load_words
from relcore.represent.diagnostics import coinciding_anchors
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec, represent
from relcore.scores.cka import linear_cka
from relcore.scores.comparison import held_out, score_pair
from relcore.scores.score_report import score_notes
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 400
D = 20
IDS = [f"w{row}" for row in range(N)]


def spaces(random_state, tail=0.0):
    rng = np.random.default_rng(random_state)
    hidden = rng.normal(size=(N, 8))
    lengths = rng.lognormal(sigma=tail, size=(N, 1))
    return [
        lengths * (hidden @ rng.normal(size=(8, D)) + 0.3 * rng.normal(size=(N, D)) + rng.normal(size=D))
        for _ in range(2)
    ]


def notes(pair, n_anchors=40):
    anchors = pair.ids[:n_anchors]
    scores = {
        form: score_pair(
            *represent(pair, form, anchors, ProjectionSpec()), held_out(pair, anchors, form), n_queries=300
        )
        for form in REPRESENTATIONS
    }
    return score_notes(scores, pair, anchors)


def told(X, Y):
    return notes(match(LatentSpace(X, IDS, name="A"), LatentSpace(Y, IDS, name="B")))


def test_words_and_ordinary_spaces_have_no_note():
    """Rows of similar lengths, and of lengths as unequal as those of words."""
    assert [told(*spaces(state, tail)) for state in range(8) for tail in (0, 0.5)] == [[]] * 16
    words = match(*(load_words(name, limit=2000) for name in ("word2vec-novels", "fasttext-novels")))
    assert notes(words, 200) == []


def test_a_long_row_is_named_where_it_decides_cka():
    X, Y = spaces(0)
    without = linear_cka(np.delete(X, 77, axis=0), np.delete(Y, 77, axis=0))
    X[77] *= 1000
    assert linear_cka(X, 2 * X).note == ""  # 1 with the row and without it
    score = linear_cka(X, Y, ids=np.array(IDS))
    assert score < 0.05 < 0.5 < without
    assert all(word in score.note for word in ("'w77'", short(without)))
    found = told(X, Y)
    assert any(note.startswith("linear CKA (absolute)") and score.note in note for note in found)
    assert any("'w77', moves the mean of 'A'" in note for note in found)


@pytest.mark.parametrize(("n_same", "expected"), [(20, ["19 of 40 anchors"]), (2, [])])
def test_anchors_in_one_place_are_counted(n_same, expected):
    X, Y = spaces(3)
    X[1 : n_same + 1] = X[1]
    assert [note[:16] for note in told(X, Y)] == expected


def test_anchors_of_equal_rows_count_from_a_twentieth_on():
    space = LatentSpace(spaces(4)[0][[0, 0, 0, 0, *range(4, N)]], IDS)
    assert "3 of 60 anchors" in coinciding_anchors(space, IDS[:60])
    assert coinciding_anchors(space, IDS[:61]) == ""
