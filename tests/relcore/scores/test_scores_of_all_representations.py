"""The scores of one pass are those of `score_pair` on whole matrices: values, chance levels, intervals,
notes.
"""

import numpy as np
import pytest

from relcore.base.names import SIMILARITIES
from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec, represent
from relcore.scores.comparison import class_labels, held_out, score_pair, score_representations
from relcore.spaces.ids import GuessedIds, mark_unscored
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from tests.relcore.scores.pairs import pair_of

SPEC = ProjectionSpec()
ROUNDING = 2e-6
# one query of 300, one of whose ten neighbours is another: rows as near as float32 can tell
SWAPPED = 1 / 300 / 9


def both(pair, anchors, spec=SPEC, representations=REPRESENTATIONS, **settings):
    settings = {"labels": class_labels(pair)} | settings
    passed = score_representations(pair, representations, anchors, spec, **settings)
    found = {}
    for representation in representations:
        whole = score_pair(
            *represent(pair, representation, anchors, spec),
            held_out(pair, anchors, representation),
            **settings,
        )
        assert list(passed[representation]) == list(whole)
        found |= {
            (representation, name): (passed[representation][name], score) for name, score in whole.items()
        }
    return found


def assert_equal(passed, whole, tolerance=ROUNDING):
    for fact in ("metric", "n", "k", "convention", "n_queries", "note"):
        assert getattr(passed, fact) == getattr(whole, fact)
    assert passed == pytest.approx(whole, abs=tolerance)
    assert (passed.interval is None, passed.null is None) == (whole.interval is None, whole.null is None)
    if whole.interval:
        assert passed.interval == pytest.approx(whole.interval, abs=tolerance)
    if whole.null:
        levels = [(null.mean, null.low, null.high, null.n_permutations) for null in (passed.null, whole.null)]
        assert levels[0] == pytest.approx(levels[1], abs=tolerance)


@pytest.mark.parametrize(
    ("n_anchors", "convention", "labelled"),  # fewer anchors than dimensions, as many, more
    [(12, "paper", None), (24, "mutual", 1.0), (60, "paper", 0.8)],
)
def test_all_representations_and_metrics(n_anchors, convention, labelled):
    pair = pair_of(labelled=labelled)
    found = both(pair, tuple(pair.ids[3 : 3 + n_anchors]), convention=convention, n_queries=150)
    assert len(found) == 4 * (4 + (labelled is not None))
    for passed, whole in found.values():
        assert_equal(passed, whole)


@pytest.mark.parametrize("mark", [GuessedIds.of, mark_unscored])
def test_rows_that_are_not_scored_are_no_neighbours_either(mark):
    pair = pair_of(labelled=0.8)
    source = pair.source.with_columns(ids=mark(pair.ids, pair.ids[20:400]))
    for (representation, _), (passed, whole) in both(
        match(source, pair.target), tuple(pair.ids[:30])
    ).items():
        confirmed = 380 if representation == "absolute" else 370
        assert mark == mark_unscored or passed.n <= confirmed
        assert_equal(passed, whole)


@pytest.mark.parametrize("similarity", [name for name in SIMILARITIES if name != "quantised"])
def test_other_similarities(similarity):
    pair = pair_of()
    spec = ProjectionSpec(similarity, center=False, ridge=2.0)
    found = both(pair, tuple(pair.ids[:30]), spec, ("relative", "whitened"))
    for passed, whole in found.values():
        assert_equal(passed, whole, SWAPPED)


@pytest.mark.parametrize("offset", [30.0, 1e6])
def test_spaces_far_from_zero_have_the_same_notes(offset):
    pair = pair_of(moved=(offset, -offset))
    for (representation, _), (passed, whole) in both(pair, tuple(pair.ids[:30]), n_queries=300).items():
        assert passed.note == whole.note
        # whole matrices go through rows of that offset, the pass does not
        rounds = representation == "procrustes" and offset > 100
        if not whole.note:
            assert_equal(passed, whole, 0.01 if rounds else 5e-4)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(("rows", "number"), [([500], 1e10), ([500, 5], -3e11)])  # no anchor; an anchor, too
def test_one_number_of_any_size_is_scored_as_in_whole_matrices(number, rows):
    pair = pair_of()
    vectors = np.array(pair.source.vectors)
    vectors[rows, 3] = number
    long = LatentSpace(vectors, pair.ids)
    for spaces in ((long, pair.target), (pair.target, long)):
        for (_, name), (passed, whole) in both(match(*spaces), tuple(pair.ids[:30]), n_queries=300).items():
            assert np.isfinite([passed, passed.null.mean if passed.null else 0]).all()
            if name == "cka":
                levels = [(score, score.null.low, score.null.high) for score in (passed, whole)]
                assert levels[0] == pytest.approx(levels[1], abs=1e-3)  # whole matrices lose digits
