"""The differences of two passes are those of `score_differences` of whole matrices."""

import numpy as np
import pytest

from relcore.represent.representations import REPRESENTATIONS, ProjectionSpec, represent
from relcore.scores.comparison import (
    anchor_differences,
    class_labels,
    held_out,
    score_differences,
    score_representations,
)
from relcore.scores.passes import EXTRA_NEIGHBOURS, RowPair
from tests.relcore.scores.pairs import pair_of

SPEC = ProjectionSpec()


def both(pair, representation, before, now, spec=SPEC, **settings):
    settings = {"labels": class_labels(pair), "n_queries": 30} | settings
    passed = anchor_differences(pair, representation, before, now, spec, **settings)
    split = held_out(pair, tuple(dict.fromkeys((*now, *before))), representation)
    whole = score_differences(
        *(represent(pair, representation, anchors, spec) for anchors in (before, now)), split, **settings
    )
    assert list(passed) == list(whole)
    return [[(one.value, one.low, one.high) for one in found.values()] for found in (passed, whole)]


def ids(pair, *places):
    return tuple(str(pair.ids[place]) for place in places)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize(("before", "now", "convention"), [(12, 13, "paper"), (60, 24, "mutual")])
def test_all_representations_and_metrics(representation, convention, before, now):
    pair = pair_of(labelled=0.8)
    passed, whole = both(
        pair, representation, ids(pair, *range(before)), ids(pair, *range(now)), convention=convention
    )
    np.testing.assert_allclose(passed, whole, atol=1e-6)
    assert np.any(np.abs(whole) > 1e-3) == (representation != "absolute")


@pytest.mark.parametrize("settings", [{"widths": (24, 16)}, {"size": 1e-10}])
def test_two_widths_and_hostile_sizes(settings):
    pair = pair_of(**settings)
    passed, whole = both(pair, "relative", ids(pair, *range(30)), ids(pair, *range(31)))
    np.testing.assert_allclose(passed, whole, atol=1e-5)


def test_same_anchors_change_nothing_and_worse_ones_are_clear():
    pair = pair_of()
    many = ids(pair, *range(40))
    few = ids(pair, *range(2))
    for one in anchor_differences(pair, "relative", many, many, SPEC, n_queries=30).values():
        assert one.value == 0
        assert not one.is_clear
    for name, one in anchor_differences(pair, "relative", few, many, SPEC, n_queries=30).items():
        assert one.is_clear or name == "cosine", name


@pytest.fixture
def passes(monkeypatch):
    made = []
    sums_of = RowPair.sums_of
    monkeypatch.setattr(
        RowPair,
        "sums_of",
        lambda self, parts: made.extend(len(roles.anchors) for _, roles in parts) or sums_of(self, parts),
    )
    return made


@pytest.mark.parametrize(
    ("representation", "convention", "before", "now"),
    [
        ("relative", "paper", 40, 41),
        ("whitened", "mutual", 31, 30),
        ("procrustes", "paper", 30, 30 + EXTRA_NEIGHBOURS),
    ],
)
def test_passes_that_were_kept_are_not_made_again(representation, convention, before, now, passes):
    pair = pair_of(labelled=0.8)
    kept = {}
    forms = ("relative", representation) if representation == "whitened" else (representation,)
    sets = ids(pair, *range(before)), ids(pair, *range(now))
    settings = {"convention": convention, "labels": class_labels(pair), "n_queries": 30}
    again = anchor_differences(pair, representation, *sets, SPEC, **settings)
    for anchors in sets:
        score_representations(
            pair,
            forms,
            anchors,
            SPEC,
            keep=lambda one, seen, ids=anchors: kept.update({(one, ids): seen}),
            **settings,
        )
    kept = {ids: seen for (one, ids), seen in kept.items() if one == representation}
    passes.clear()
    found = anchor_differences(pair, representation, *sets, SPEC, kept=kept, **settings)
    assert passes == []
    assert list(found) == list(again)
    levels = [[(one.value, one.low, one.high) for one in of.values()] for of in (found, again)]
    np.testing.assert_allclose(*levels, atol=1e-6)
    assert any(abs(one.value) > 1e-3 for one in found.values())
