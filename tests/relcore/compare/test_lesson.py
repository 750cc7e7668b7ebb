"""The data of the story: what a rotation keeps, and comparisons that must fail."""

import numpy as np
import pytest

from relcore.compare.scene import moved_plane, plane_similarities, with_unrelated_target, with_wrong_pairs
from relcore.represent.representations import ProjectionSpec, represent
from relcore.scores.comparison import held_out, score_pair
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

ANCHORS = tuple(f"r{row}" for row in range(60))


@pytest.fixture
def pair():
    """180 rows in 12 dimensions, and the same rotated."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(180, 12))
    ids = [f"r{row}" for row in range(180)]
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    return match(LatentSpace(rows, ids, name="a"), LatentSpace(rows @ rotation, ids, name="b"))


def mrr(pair):
    rows = represent(pair, "relative", ANCHORS, ProjectionSpec())
    return score_pair(*rows, held_out(pair, ANCHORS), k=5, metrics=("mrr",))["mrr"]


@pytest.mark.parametrize(
    ("degrees", "mirrored", "scale"), [(0, False, 1), (130, True, 0.8), (271, False, 1.3)]
)
def test_plane_that_is_moved_keeps_its_similarities_and_nothing_else(degrees, mirrored, scale):
    pair = moved_plane(degrees, mirrored, scale)
    before, after = plane_similarities(pair)
    assert np.allclose(before, after, atol=1e-6)
    assert before.shape == (9, 3)
    moved = not np.allclose(pair.source.vectors, pair.target.vectors)
    assert moved == ((degrees, mirrored, scale) != (0, False, 1))
    turn = np.deg2rad(degrees)
    x, y = pair.source.vectors[0] * ([-1, 1] if mirrored else [1, 1])
    expected = [x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)]
    assert pair.target.vectors[0] == pytest.approx(scale * np.array(expected), abs=1e-5)


@pytest.mark.parametrize(
    "fail", [lambda pair, state: with_wrong_pairs(pair, ANCHORS, state), with_unrelated_target]
)
def test_comparison_that_must_fail_scores_at_chance_level(pair, fail):
    assert mrr(pair) == pytest.approx(1)
    scores = [mrr(fail(pair, state)) for state in range(100, 140)]
    null = scores[0].null
    error = (null.high - null.low) / 4 / np.sqrt(len(scores))  # of their mean, from the band of ± 2
    assert np.mean(scores) == pytest.approx(null.mean, abs=4 * error)


def test_wrong_pairs_change_targets_anchors_alone(pair):
    wrong = with_wrong_pairs(pair, ANCHORS)
    kept = (wrong.target.vectors == pair.target.vectors).all(axis=1)
    assert not kept[:60].any()
    assert kept[60:].all()
    assert sorted(map(tuple, wrong.target.vectors[:60])) == sorted(map(tuple, pair.target.vectors[:60]))
    assert wrong.source is pair.source
