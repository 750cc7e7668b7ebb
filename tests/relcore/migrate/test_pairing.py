"""Pairs that do not belong together are refused, and shifts are named."""

import re

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate.pairing import check_pairs
from tests.relcore.migrate.planted import model


def sides(topics, noise=0.2):
    return model(topics, noise, 20, 1), model(topics, noise, 16, 2)


@pytest.mark.parametrize("m", [25, 60, 400])
def test_pairs_pass_and_shuffled_ones_do_not(m, rng):
    new, old = sides(rng.normal(size=(m, 10)))
    check_pairs(new, old).need()
    with pytest.raises(SpaceError, match="no better than by chance"):
        check_pairs(rng.permutation(new), old).need()


@pytest.mark.parametrize(("m", "shift"), [(60, -5), (300, 1)])
def test_a_shift_is_named(m, shift, rng):
    new, old = sides(rng.normal(size=(m + 10, 10)))
    found = check_pairs(new[5 : m + 5], old[5 - shift : m + 5 - shift])
    assert found.shift == shift
    with pytest.raises(SpaceError, match=re.escape(f"shifted by {shift:+d}")):
        found.need()


def test_series_of_similar_rows_is_not_taken_for_shift(rng):
    """Rows that resemble the rows beside them are found nearly as well at a shift by one."""
    assert check_pairs(*sides(np.cumsum(rng.normal(size=(300, 10)), axis=0), 0.5)).shift == 0


def test_unrelated_pairs_are_rarely_taken_for_pairs(rng):
    tried = [check_pairs(rng.normal(size=(30, 8)), rng.normal(size=(30, 6))) for _ in range(100)]
    assert not any(one.shift == 0 and one.is_clear for one in tried)  # expected .02 of 100
