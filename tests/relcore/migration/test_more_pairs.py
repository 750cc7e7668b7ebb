"""Rows to embed next: never a pair again, and farthest points cover what the pairs do not."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate.partial import CHOICES, rows_to_embed
from relcore.spaces.space import LatentSpace


@pytest.fixture
def old():
    """Five directions with 40 rows each; the last 40 rows lie where no other row does."""
    rng = np.random.default_rng(0)
    centres = np.eye(5, 8) * 5
    vectors = np.repeat(centres, 40, axis=0) + 0.2 * rng.normal(size=(200, 8))
    return LatentSpace(vectors, [f"r{row}" for row in range(200)])


@pytest.mark.parametrize("choice", CHOICES)
def test_rows_are_distinct_and_not_paired_yet(old, choice):
    paired = np.arange(0, 200, 3)
    chosen = rows_to_embed(old, paired, 30, choice)
    assert len(set(chosen)) == 30
    assert not set(chosen) & set(old.ids[paired])


def test_the_first_row_is_in_the_region_without_pairs(old):
    chosen = rows_to_embed(old, np.arange(160), 5)
    assert old.rows(chosen)[0] >= 160


def test_farthest_points_visit_each_region_once(old):
    chosen = old.rows(rows_to_embed(old, np.array([0]), 4))
    assert sorted(chosen // 40) == [1, 2, 3, 4]


def test_rows_beyond_those_left_are_refused(old):
    with pytest.raises(SpaceError, match=r"1 … 10, the rows without a new vector, got 11"):
        rows_to_embed(old, np.arange(190), 11)
