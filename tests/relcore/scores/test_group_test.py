"""The test of groups against closed forms, a planted group, and its stated rate where no group differs."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.scores.score import Z95, lowest_groups


def test_z_is_that_of_a_sample_without_replacement():
    values, groups = np.arange(6.0), np.array([0, 0, 1, 1, 1, -1])
    found = lowest_groups(values, groups, n_permutations=9)
    # σ² of 0 … 5 is 35/12; two of six rows: σ²/2 · 4/5, three: σ²/3 · 3/5
    errors = np.sqrt(35 / 12 * np.array([4 / 10, 3 / 15]))
    np.testing.assert_allclose(found.mean, [0.5, 3])
    np.testing.assert_allclose(found.z, [-2 / errors[0], 0.5 / errors[1]])
    np.testing.assert_allclose(found.half_width, Z95 * errors)


def test_one_group_in_twenty_draws_is_low_by_chance():
    groups = np.concatenate([np.full(size, number) for number, size in enumerate((5, 20, 80, 200))])
    lowest = []
    for draw in range(200):
        values = np.random.default_rng(draw).random(len(groups))
        lowest.append(lowest_groups(values, groups, n_permutations=199).p.min())
    # 10 of 200 are expected, standard error 3.1; without the correction for four groups it would be 37
    assert 1 <= np.count_nonzero(np.array(lowest) < 0.05) <= 22


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (np.zeros(3, int), "expected 5 numbers"),
        (np.full(5, -1), "one group or more"),
        (np.array([0, 0, 2, 2, 2]), "empty groups"),
    ],
)
def test_what_is_no_grouping_is_refused(groups, told):
    with pytest.raises(SpaceError, match=told):
        lowest_groups(np.arange(5.0), groups)
