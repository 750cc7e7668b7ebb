"""Pairs that do not pair are refused, and shifts are named; what gives away different preprocessing is
noted.
"""

import re

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.migrate.evaluate import check_pairs
from tests.relcore.migrate.planted import model


def sides(m, seed, noise=0.5):
    topics = np.random.default_rng(seed).normal(size=(m, 10))
    return model(topics, noise, 20, seed + 1), model(topics, noise, 16, seed + 2)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("m", [25, 60, 400])
def test_pairs_pass_and_shuffled_ones_do_not(m, seed):
    new, old = sides(m, 100 * seed, noise=0.2)
    check_pairs(new, old).need()
    shuffled = np.random.default_rng(seed).permutation(m)
    with pytest.raises(SpaceError, match="no better than by chance"):
        check_pairs(new[shuffled], old).need()


@pytest.mark.parametrize("shift", [-5, 1])
@pytest.mark.parametrize("m", [60, 300])
def test_a_shift_is_named(m, shift):
    new, old = sides(m + 10, 7, noise=0.2)
    moved = new[5 : m + 5], old[5 - shift : m + 5 - shift]
    found = check_pairs(*moved)
    assert found.shift == shift
    with pytest.raises(SpaceError, match=re.escape(f"shifted by {shift:+d}")):
        found.need()


def test_series_of_similar_rows_is_not_taken_for_shift():
    """Rows that resemble the rows beside them are found nearly as well at a shift by one."""
    steps = np.cumsum(np.random.default_rng(0).normal(size=(300, 10)), axis=0)
    new, old = model(steps, 0.5, 20, 1), model(steps, 0.5, 16, 2)
    assert check_pairs(new, old).shift == 0


def test_unrelated_pairs_are_rarely_taken_for_pairs():
    rng = np.random.default_rng(0)
    passed = 0
    for _ in range(100):
        found = check_pairs(rng.normal(size=(30, 8)), rng.normal(size=(30, 6)))
        passed += found.shift == 0 and found.is_clear
    assert passed == 0  # expected .02 of 100
