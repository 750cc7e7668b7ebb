"""The scores of one pass are those of `score_pair` on whole matrices: values, chance levels, intervals,
notes.
"""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import METRICS, SIMILARITIES
from relcore.base.names import MetricName as MetricEntry
from relcore.scores.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    class_labels,
    held_out,
    represent,
    score_pair,
)
from relcore.scores.metric import Metric
from relcore.scores.scoring import score_forms
from relcore.spaces.space import LatentSpace, match

N, HIDDEN = 700, 8
SPEC = ProjectionSpec()
ROUNDING = 2e-6
SWAPPED = (
    1 / 300 / 9
)  # one query of 300, one of whose ten neighbours is another: rows as near as float32 can tell


def pair_of(widths=(24, 24), n=N, labelled=None, seed=0, moved=(0.5, -1.0)):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, HIDDEN))
    spaces = [
        hidden @ rng.normal(size=(HIDDEN, width)) + 0.5 * rng.normal(size=(n, width)) + offset
        for width, offset in zip(widths, moved, strict=True)
    ]
    labels = None
    if labelled is not None:
        classes = (hidden[:, 0] > 0).astype(int) + (hidden[:, 1] > 0)
        labels = [f"c{number}" if rng.random() < labelled else "" for number in classes]
    ids = [f"w{row}" for row in range(n)]
    return match(LatentSpace(spaces[0], ids, labels=labels), LatentSpace(spaces[1], ids))


def both(pair, anchors, spec=SPEC, forms=REPRESENTATIONS, **settings):
    """Representation and metric → scores of the pass and of whole matrices."""
    settings = {"labels": class_labels(pair)} | settings
    passed, found = score_forms(pair, forms, anchors, spec, **settings), {}
    for form in forms:
        whole = score_pair(*represent(pair, form, anchors, spec), held_out(pair, anchors, form), **settings)
        assert list(passed[form]) == list(whole)
        found |= {(form, name): (passed[form][name], score) for name, score in whole.items()}
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


@pytest.mark.parametrize("n_anchors", [12, 24, 60])  # fewer than dimensions, as many, more
@pytest.mark.parametrize("convention", ["paper", "mutual"])
@pytest.mark.parametrize("labelled", [None, 1.0, 0.8])
def test_all_representations_and_metrics(n_anchors, convention, labelled):
    pair = pair_of(labelled=labelled)
    found = both(pair, tuple(pair.ids[3 : 3 + n_anchors]), convention=convention, n_queries=300)
    assert len(found) == 4 * (4 + (labelled is not None))
    for passed, whole in found.values():
        assert_equal(passed, whole)


@pytest.mark.parametrize("similarity", [name for name in SIMILARITIES if name != "quantised"])
@pytest.mark.parametrize("center", [True, False])
def test_other_similarities(similarity, center):
    pair = pair_of()
    found = both(
        pair, tuple(pair.ids[:30]), ProjectionSpec(similarity, center, ridge=2.0), ("relative", "whitened")
    )
    for passed, whole in found.values():
        assert_equal(passed, whole, SWAPPED)


def test_quantised_rows_are_equal_in_large_groups_so_their_lists_are_any_of_them():
    pair = pair_of()
    found = both(pair, tuple(pair.ids[:30]), ProjectionSpec("quantised"), ("relative",), convention="mutual")
    for (_, name), (passed, whole) in found.items():
        assert_equal(passed, whole, ROUNDING if name in ("cka", "cosine") else 0.03)


def test_spaces_of_two_widths():
    pair = pair_of((24, 10))
    for convention in ("paper", "mutual"):
        for passed, whole in both(pair, tuple(pair.ids[:40]), convention=convention, n_queries=300).values():
            assert_equal(passed, whole)


@pytest.mark.parametrize("power", [-75, 63])
def test_spaces_of_extreme_size(power):
    pair = pair_of()
    scaled = [np.ldexp(space.vectors, sign * power) for space, sign in ((pair.source, 1), (pair.target, -1))]
    extreme = match(*(LatentSpace(vectors, pair.ids) for vectors in scaled))
    for similarity in ("cosine", "euclidean"):
        for passed, whole in both(extreme, tuple(pair.ids[:30]), ProjectionSpec(similarity)).values():
            assert_equal(passed, whole, SWAPPED)


@pytest.mark.parametrize("offset", [30.0, 1e6])
def test_spaces_far_from_zero_have_the_same_notes(offset):
    pair = pair_of(moved=(offset, -offset))
    for (form, _), (passed, whole) in both(pair, tuple(pair.ids[:30]), n_queries=300).items():
        assert passed.note == whole.note
        rounds = (
            form == "procrustes" and offset > 100
        )  # whole matrices go through rows of that offset, the pass does not
        if not whole.note:
            assert_equal(passed, whole, 0.01 if rounds else 5e-4)


def test_long_rows_that_decide_are_named_and_left_out_in_a_further_pass():
    pair = pair_of()
    vectors = pair.source.vectors.copy()
    vectors[[50, 51]] *= 3000
    pair = match(LatentSpace(vectors, pair.ids), pair.target)
    found = both(pair, tuple(pair.ids[:30]), n_queries=300)
    assert "2 long rows, 'w50', 'w51', decide this score" in found["absolute", "cka"][0].note
    for passed, whole in found.values():
        assert_equal(passed, whole, 1e-4)


def test_all_queries_take_several_passes():
    pair = pair_of((6, 6), n=2500)
    for passed, whole in both(pair, tuple(pair.ids[:20]), n_queries=None).values():
        assert_equal(passed, whole, SWAPPED)


def test_absolute_alone_needs_no_anchors():
    for passed, whole in both(pair_of(), (), forms=("absolute",), n_queries=100).values():
        assert_equal(passed, whole)


def test_a_metric_that_reads_rows_gets_them(monkeypatch):
    class Shape(Metric):
        def score(self, pair):
            return pair.source.shape, pair.target.shape

    monkeypatch.setitem(METRICS, "shape", MetricEntry("Shape", f"{__name__}:Shape"))
    monkeypatch.setitem(globals(), "Shape", Shape)
    pair = pair_of()
    found = score_forms(
        pair, ("relative", "absolute"), tuple(pair.ids[:30]), ProjectionSpec(), metrics=("shape",)
    )
    assert found["relative"]["shape"] == ((N - 30, 30), (N - 30, 30))
    assert found["absolute"]["shape"] == ((N, 24), (N, 24))


def test_unrelated_spaces_score_at_their_chance_level():
    rng = np.random.default_rng(5)
    ids = [f"w{row}" for row in range(400)]
    labels = [f"c{number}" for number in rng.integers(0, 3, 400)]
    pair = match(
        LatentSpace(rng.normal(size=(400, 30)), ids, labels=labels),
        LatentSpace(rng.normal(size=(400, 30)), ids),
    )
    found = score_forms(pair, REPRESENTATIONS, tuple(ids[:130]), ProjectionSpec(), labels=class_labels(pair))
    for form in ("relative", "whitened", "absolute"):
        for score in found[form].values():
            width = (
                score.null.high - score.null.low
            )  # two bands wide: 20 scores, each outside its band once in 20
            assert score.null.low - width / 2 <= score <= score.null.high + width / 2, (
                form,
                score.describe(),
            )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k: expected 1 …"),
        ({"k": N}, "k: expected 1 …"),
        ({"convention": "loud"}, "convention: expected one of paper, mutual"),
        ({"n_queries": 0}, "n_queries: expected 1 or more"),
        ({"device": "abacus"}, "device: expected 'auto', 'cpu'"),
    ],
)
def test_settings_out_of_range(settings, message):
    pair = pair_of()
    with pytest.raises(SpaceError, match=message):
        score_forms(pair, ("relative",), tuple(pair.ids[:30]), ProjectionSpec(), **settings)


@pytest.mark.parametrize(
    ("forms", "anchors", "message"),
    [
        (("relative",), (), "anchors: expected at least one"),
        (("relative",), ("w1", "w1"), "more than once"),
        (("relative",), ("w1", "qzx"), "unknown"),
        (("loud",), ("w1",), "representation: expected one of"),
    ],
)
def test_forms_and_anchors_that_cannot_be(forms, anchors, message):
    with pytest.raises(SpaceError, match=message):
        score_forms(pair_of(), forms, anchors, ProjectionSpec())


def test_equal_rows_are_an_error_as_they_are_for_whole_matrices():
    ids = [f"w{row}" for row in range(50)]
    pair = match(
        LatentSpace(np.ones((50, 4)), ids), LatentSpace(np.random.default_rng(0).normal(size=(50, 4)), ids)
    )
    with pytest.raises(SpaceError, match="whose rows are all equal"):
        score_forms(pair, ("absolute",), (), ProjectionSpec())
