"""Partners found through parallel anchors: rotations are found whole, strangers at chance, and wrong lists
say so.
"""

from __future__ import annotations

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.spaces.space import LatentSpace
from relcore.stitch.languages import RetrievalSpec, pair_up, retrieve

SPEC = RetrievalSpec(n_anchors=40, k=5)


@pytest.fixture
def rotated(rng, make_space):
    vectors = rng.normal(size=(120, 12))
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    return make_space(vectors, name="one"), make_space(3 * vectors @ rotation + 2, name="other")


def test_through_anchors_every_partner_of_a_rotated_space_is_found(rotated):
    result = retrieve(pair_up(*rotated), SPEC)
    assert len(result.ids) == 80
    for method in ("relative", "whitened", "procrustes"):
        assert result.scores[method]["first"] == 1
        assert result.scores[method]["mrr"] == 1
        assert result.scores[method]["jaccard"] == pytest.approx(1)
        np.testing.assert_array_equal(result.found[method][:, 0], np.arange(80))
    assert result.scores["absolute"]["first"] < 0.1


def test_chance_of_being_found_first_is_one_in_n_and_strangers_are_at_chance(rng, make_space):
    spaces = [make_space(rng.normal(size=(400, 10))) for _ in range(2)]
    result = retrieve(pair_up(*spaces), RetrievalSpec(methods=("relative",), n_anchors=100))
    for score in result.scores["relative"].values():
        assert abs(score - score.null.mean) < 0.02
    assert result.scores["relative"]["first"].null.mean == pytest.approx(1 / 300)


def test_a_list_pairs_ids_that_differ(rotated):
    one, other = rotated
    renamed = LatentSpace(other.vectors[::-1], [f"q{row}" for row in range(119, -1, -1)], name="other")
    pairs = [(f"r{row}", f"q{row}") for row in range(120)]
    listed = retrieve(pair_up(one, renamed, [("nobody", "q1"), *pairs, ("r0", "q5")]), SPEC)
    assert (
        listed.scores["whitened"]["mrr"] == retrieve(pair_up(one, other), SPEC).scores["whitened"]["mrr"] == 1
    )
    with pytest.raises(SpaceError, match=r"expected ids of 'other' in the first column .* swap the columns"):
        pair_up(renamed, one, pairs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"n_anchors": 115},
            r"expected more than n_anchors \+ k = 120 pairs.* got 120; lower the number of anchors",
        ),
        ({"methods": ("magic",)}, "methods: expected one of absolute, relative"),
    ],
)
def test_what_cannot_be_says_what_to_do(rotated, change, message):
    with pytest.raises(SpaceError, match=message):
        retrieve(pair_up(*rotated), RetrievalSpec(**{"n_anchors": 40, "k": 5, **change}))


def test_settings_travel_as_json():
    spec = RetrievalSpec(methods=("relative",), n_anchors=7)
    assert records.from_json(RetrievalSpec, records.to_json(spec)) == spec
    with pytest.raises(SpaceError, match=r"settings: expected settings among 'methods', .*, got 'colour'"):
        records.from_json(RetrievalSpec, {"colour": 1})
