"""The differences of two passes are those of `score_differences` of whole matrices."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import SIMILARITIES
from relcore.scores import cka
from relcore.scores.comparison import (
    REPRESENTATIONS,
    ProjectionSpec,
    class_labels,
    held_out,
    represent,
    score_differences,
)
from relcore.scores.scoring import SPARE, Passes, anchor_differences, score_forms
from relcore.spaces.space import LatentSpace, match

N, HIDDEN = 700, 8
SPEC = ProjectionSpec()


def pair_of(widths=(24, 24), labelled=None, moved=(0.5, -1.0), size=1.0):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N, HIDDEN))
    spaces = [
        size * (hidden @ rng.normal(size=(HIDDEN, width)) + 0.5 * rng.normal(size=(N, width)) + offset)
        for width, offset in zip(widths, moved, strict=True)
    ]
    ids = [f"w{row}" for row in range(N)]
    labels = None
    if labelled is not None:
        classes = (hidden[:, 0] > 0).astype(int) + (hidden[:, 1] > 0)
        labels = [f"c{number}" if rng.random() < labelled else "" for number in classes]
    return match(LatentSpace(spaces[0], ids, labels=labels), LatentSpace(spaces[1], ids))


def both(pair, form, before, now, spec=SPEC, **settings):
    settings = {"labels": class_labels(pair), "n_queries": 30} | settings
    passed = anchor_differences(pair, form, before, now, spec, **settings)
    split = held_out(pair, tuple(dict.fromkeys((*now, *before))), form)
    whole = score_differences(
        *(represent(pair, form, anchors, spec) for anchors in (before, now)), split, **settings
    )
    assert list(passed) == list(whole)
    return [[(one.value, one.low, one.high) for one in found.values()] for found in (passed, whole)]


def ids(pair, *places):
    return tuple(str(pair.ids[place]) for place in places)


@pytest.mark.parametrize("form", REPRESENTATIONS)
@pytest.mark.parametrize("convention", ["paper", "mutual"])
@pytest.mark.parametrize(("before", "now"), [(12, 13), (41, 40), (60, 24)])
def test_all_representations_and_metrics(form, convention, before, now):
    pair = pair_of(labelled=0.8)
    passed, whole = both(pair, form, ids(pair, *range(before)), ids(pair, *range(now)), convention=convention)
    np.testing.assert_allclose(passed, whole, atol=1e-6)
    assert np.any(np.abs(whole) > 1e-3) == (form != "absolute")


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("center", [True, False])
def test_all_similarities_with_sets_that_overlap_in_part(similarity, center):
    pair = pair_of()
    sets = ids(pair, *range(30)), ids(pair, *range(20, 45))
    passed, whole = both(pair, "relative", *sets, ProjectionSpec(similarity, center))
    told = (
        slice(2, None) if similarity == "quantised" else slice(None)
    )  # many rows are equal there, and neighbours by lot
    np.testing.assert_allclose(passed[told], whole[told], atol=3e-6)


@pytest.mark.parametrize(
    "settings", [{"widths": (24, 16)}, {"size": 1e-25}, {"size": 1e18}, {"moved": (300.0, 0.0)}]
)
def test_two_widths_and_hostile_sizes(settings):
    pair = pair_of(**settings)
    passed, whole = both(pair, "relative", ids(pair, *range(30)), ids(pair, *range(31)))
    np.testing.assert_allclose(passed, whole, atol=1e-5)


def test_the_same_anchors_change_nothing_and_worse_ones_are_clear():
    pair = pair_of()
    many, few = ids(pair, *range(40)), ids(pair, *range(2))
    for one in anchor_differences(pair, "relative", many, many, SPEC, n_queries=30).values():
        assert one.value == 0
        assert not one.is_clear
    for name, one in anchor_differences(pair, "relative", few, many, SPEC, n_queries=30).items():
        assert one.is_clear or name == "cosine", name


def test_few_rows_have_the_errors_of_whole_matrices():
    pair = pair_of(labelled=1.0)
    passed, whole = both(pair, "relative", ids(pair, *range(30)), ids(pair, *range(31)), n_queries=300)
    assert passed == whole


@pytest.fixture
def passes(monkeypatch):
    """The anchors of each pass over the rows."""
    made, seen = [], Passes.seen
    monkeypatch.setattr(
        Passes,
        "seen",
        lambda self, parts: made.extend(len(roles.anchors) for _, roles in parts) or seen(self, parts),
    )
    return made


def kept_passes(pair, form, *sets, spec=SPEC, **settings):
    """By anchors what `score_forms` keeps of one representation, beside another where there is one of the
    same rows.
    """
    kept, forms = {}, ("relative", "whitened") if form == "whitened" else (form,)
    for anchors in sets:
        settings = {"labels": class_labels(pair), "n_queries": 30} | settings
        score_forms(
            pair,
            forms,
            anchors,
            spec,
            keep=lambda one, passed, ids=anchors: kept.update({(one, ids): passed}),
            **settings,
        )
    return {ids: passed for (one, ids), passed in kept.items() if one == form}


@pytest.mark.parametrize("form", ["relative", "whitened", "procrustes"])
@pytest.mark.parametrize("convention", ["paper", "mutual"])
@pytest.mark.parametrize(("before", "now"), [(40, 41), (41, 40), (30, 30 + SPARE)])
@pytest.mark.parametrize("labelled", [0.8, 1.0])
def test_passes_that_were_kept_are_not_made_again(form, convention, before, now, labelled, passes):
    pair = pair_of(labelled=labelled)
    sets = ids(pair, *range(before)), ids(pair, *range(now))
    settings = {"convention": convention, "labels": class_labels(pair), "n_queries": 30}
    again = anchor_differences(pair, form, *sets, SPEC, **settings)
    kept = kept_passes(pair, form, *sets, convention=convention)
    passes.clear()
    found = anchor_differences(pair, form, *sets, SPEC, kept=kept, **settings)
    assert passes == []
    assert list(found) == list(again)
    for name, one in found.items():
        np.testing.assert_allclose(
            [one.value, one.low, one.high], [again[name].value, again[name].low, again[name].high], atol=1e-6
        )
    assert any(abs(one.value) > 1e-3 for one in found.values())


def test_a_kept_pass_that_does_not_answer_the_question_is_made_again(passes):
    pair = pair_of()
    few, many = ids(pair, *range(40)), ids(pair, *range(41 + SPARE))
    kept = kept_passes(pair, "relative", few, many)
    passes.clear()
    anchor_differences(pair, "relative", few, many, SPEC, n_queries=30, kept=kept)
    assert passes == [len(few)], "more rows are left out than spare neighbours are known"
    one_more = ids(pair, *range(41))
    for other in ({"k": 5}, {"convention": "mutual"}, {"n_queries": 31}):
        passes.clear()
        anchor_differences(pair, "relative", few, one_more, SPEC, kept=kept, **{"n_queries": 30} | other)
        assert passes == [len(few), len(one_more)], other
    passes.clear()
    anchor_differences(pair, "relative", few, one_more, ProjectionSpec(center=False), n_queries=30, kept=kept)
    assert passes == [len(few), len(one_more)]


@pytest.mark.parametrize(("sampled", "expected"), [(False, 1), (True, 2)])
def test_a_sample_of_a_kept_pass_is_scored_again_only_where_it_loses_a_row(sampled, expected, monkeypatch):
    scored, influence = [], cka.cka_influence
    monkeypatch.setattr(cka, "cka_influence", lambda X, Y: scored.append(len(X)) or influence(X, Y))
    monkeypatch.setattr(cka, "_INFLUENCE_ROWS", 100)
    pair = pair_of()
    two = ids(pair, *range(40)), ids(pair, *range(41))
    split = held_out(pair, two[1])
    sample = np.isin(split.test, split.queries(100))
    three = (*two[1], str(pair.ids[split.test[sample == sampled][0]]))
    kept = kept_passes(pair, "relative", *two, three)
    anchor_differences(pair, "relative", *two, SPEC, n_queries=30, kept=kept)
    scored.clear()
    found = anchor_differences(pair, "relative", two[1], three, SPEC, n_queries=30, kept=kept)["cka"]
    assert scored == [100] * expected
    again = anchor_differences(pair, "relative", two[1], three, SPEC, n_queries=30)["cka"]
    assert [found.value, found.low, found.high] == pytest.approx(
        [again.value, again.low, again.high], abs=1e-6
    )


def test_a_query_that_becomes_an_anchor_takes_a_pass(passes):
    pair = pair_of()
    few = ids(pair, *range(40))
    query = int(held_out(pair, few).queries(30)[3])
    sets = few, (*few, str(pair.ids[query]))
    kept = kept_passes(pair, "relative", *sets)
    passes.clear()
    found = anchor_differences(pair, "relative", *sets, SPEC, n_queries=30, kept=kept)
    assert passes == [40]
    again = anchor_differences(pair, "relative", *sets, SPEC, n_queries=30)
    assert [one.value for one in found.values()] == pytest.approx(
        [one.value for one in again.values()], abs=1e-6
    )


def test_settings_that_are_not_possible():
    pair = pair_of()
    with pytest.raises(SpaceError, match="convention: expected one of"):
        anchor_differences(pair, "relative", ids(pair, 0), ids(pair, 1), SPEC, convention="other")
    with pytest.raises(SpaceError, match="k: expected 1 … 698 for 698 rows, got 699"):
        anchor_differences(pair, "relative", ids(pair, 0), ids(pair, 1), SPEC, k=699)
    with pytest.raises(SpaceError, match="unknown: 'qzx'"):
        anchor_differences(pair, "relative", ("qzx",), ids(pair, 1), SPEC)
