"""Notes beside scores: there where a few rows, or anchors in one place, decide them; nowhere in ordinary
spaces.
"""

import numpy as np
import pytest

from relcore.base.numbers import short
from relcore.encoders.sentences import load_words
from relcore.represent.similarity import coinciding_anchors
from relcore.represent.translation import REPRESENTATIONS, ProjectionSpec, represent
from relcore.scores.cka import linear_cka
from relcore.scores.comparison import held_out, score_notes, score_pair
from relcore.spaces.space import LatentSpace, match

N, D = 400, 20
IDS = [f"w{row}" for row in range(N)]
ANCHORS = IDS[:40]


def spaces(random_state, tail=None):
    rng = np.random.default_rng(random_state)
    hidden = rng.normal(size=(N, 8))
    lengths = 1 if tail is None else rng.lognormal(sigma=tail, size=(N, 1))
    return [
        lengths * (hidden @ rng.normal(size=(8, D)) + 0.3 * rng.normal(size=(N, D)) + rng.normal(size=D))
        for _ in range(2)
    ]


def told(X, Y, anchors=ANCHORS):
    pair = match(LatentSpace(X, IDS, name="A"), LatentSpace(Y, IDS, name="B"))
    scores = {
        form: score_pair(*represent(pair, form, anchors, ProjectionSpec()), held_out(pair, anchors, form))
        for form in REPRESENTATIONS
    }
    return score_notes(scores, pair, anchors)


@pytest.mark.parametrize(
    "tail", [None, 0.5]
)  # rows of similar lengths, and of lengths as unequal as those of words
def test_ordinary_spaces_have_no_note(tail):
    assert [told(*spaces(state, tail)) for state in range(8)] == [[]] * 8


def test_words_have_no_note():
    pair = match(*(load_words(name, limit=2000) for name in ("word2vec-novels", "fasttext-novels")))
    anchors = pair.ids[:200]
    scores = {form: score_pair(*represent(pair, form, anchors, ProjectionSpec()), held_out(pair, anchors, form), n_queries=300)
              for form in REPRESENTATIONS}  # fmt: skip
    assert score_notes(scores, pair, anchors) == []


def test_a_row_that_decides_cka_is_named_with_the_score_without_it():
    X, Y = spaces(0)
    without = linear_cka(np.delete(X, 77, axis=0), np.delete(Y, 77, axis=0))
    X[77] *= 1000
    assert linear_cka(X, Y) < 0.05 < 0.5 < without
    score = linear_cka(X, Y, ids=np.array(IDS))
    assert (
        score.note == f"One long row, 'w77', decides this score; CKA of the other rows is {short(without)}."
    )
    notes = told(X, Y)
    assert any(note.startswith("linear CKA (absolute)") and score.note in note for note in notes)
    assert any(note.startswith("One long row, 'w77', moves the mean of 'A'") for note in notes)


def test_a_long_row_that_changes_nothing_has_no_note():
    X, _ = spaces(2)
    X[77] *= 1000
    assert linear_cka(X, 2 * X).note == ""  # 1 with the row and without it


@pytest.mark.parametrize(("n_same", "is_told"), [(20, True), (2, False)])
def test_anchors_in_one_place_are_counted(n_same, is_told):
    X, Y = spaces(3)
    X[1 : n_same + 1] = X[1]
    notes = told(X, Y)
    assert len(notes) == is_told
    expected = "19 of 40 anchors coincide with another anchor in 'A' ('w2', 'w3', 'w4', …)"
    assert not is_told or notes[0].startswith(expected)


def test_anchors_of_equal_rows_count_from_a_twentieth_on():
    X, _ = spaces(4)
    X[1:4] = X[0]
    space = LatentSpace(X, IDS)
    assert "3 of 60 anchors" in coinciding_anchors(space, IDS[:60])
    assert coinciding_anchors(space, IDS[:61]) == ""
