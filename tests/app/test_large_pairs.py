"""Pairs with more rows than the caches are for: a change of anchors is measured on a sample, and no large
matrix is kept.
"""

import numpy as np
import pytest

from app import compute
from relcore.represent.translation import ProjectionSpec
from relcore.spaces.space import LatentSpace, match

N = 900
ANCHORS = tuple(f"r{row}" for row in range(30))


@pytest.fixture
def pair():
    compute.score_differences.clear()
    vectors = np.random.default_rng(0).normal(size=(N, 8)).astype(np.float32)
    ids = [f"r{row}" for row in range(N)]
    return match(LatentSpace(vectors, ids, name="a"), LatentSpace(vectors @ np.eye(8)[::-1], ids, name="b"))


def differences(pair):
    return compute.score_differences(pair, "relative", ANCHORS[:-1], ANCHORS, ProjectionSpec(), 5, "paper")


@pytest.mark.parametrize(("most", "expected"), [(500, 500 + len(ANCHORS)), (N, N)])
def test_a_change_of_anchors_is_measured_on_a_sample_of_many_rows(pair, monkeypatch, most, expected):
    read, measure = [], compute.anchor_differences
    monkeypatch.setattr(
        compute,
        "anchor_differences",
        lambda pair, *rest, **more: read.append(len(pair)) or measure(pair, *rest, **more),
    )
    monkeypatch.setattr(compute, "DIFFERENCE_ROWS", most)
    assert differences(pair)
    assert read == [expected]


@pytest.mark.parametrize(("most", "same"), [(N * len(ANCHORS), True), (N * len(ANCHORS) - 1, False)])
def test_a_matrix_above_the_limit_is_not_kept(pair, monkeypatch, most, same):
    monkeypatch.setattr(compute, "_MOST_KEPT", most)
    first, again = (compute.represent(pair, "relative", ANCHORS, ProjectionSpec())[0] for _ in range(2))
    assert (first is again) == same
    np.testing.assert_array_equal(first, again)
