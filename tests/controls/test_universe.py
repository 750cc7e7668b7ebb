"""A universe of unrelated spaces, of permuted pairs, and of few rows in many dimensions is at chance."""

import numpy as np
import pytest

from relcore import LatentSpace, Universe
from tests.controls.spaces import unrelated


@pytest.mark.parametrize(("n", "width"), [(1000, 50), (300, 280), (120, 8)])
def test_unrelated_spaces_are_at_chance(n, width):
    universes = [Universe.fit(unrelated(n, width, state, "abcde")) for state in range(3)]
    tops = np.array([universe.accuracy[~np.isnan(universe.accuracy)].mean() for universe in universes])
    chance = np.mean([1 / len(universe.test_ids) for universe in universes])
    tested = sum(len(universe.test_ids) for universe in universes)
    # Pairs that share a space go together: at least the five spaces are independent.
    assert abs(tops.mean() - chance) < 4 * np.sqrt(chance / (5 * tested))
    above = [np.nanmax(universe.accuracy) > universe.best_chance.high for universe in universes]
    assert sum(above) <= 1
    agreed = np.array([member.score.top1 for universe in universes for member in universe.members])
    assert agreed.mean() < 4 * chance


def test_permuted_pairs_of_one_space_alone_are_at_chance():
    rng = np.random.default_rng(0)
    n = 800
    true = rng.normal(size=(n, 12))
    ids = [f"row {i}" for i in range(n)]
    spaces = [LatentSpace(true + 0.2 * rng.normal(size=true.shape), ids, name=f"{i}") for i in range(4)]
    spaces[0] = LatentSpace(spaces[0].vectors[rng.permutation(n)], ids, name="permuted")
    universe = Universe.fit(spaces)
    assert np.nanmax(universe.accuracy[0]) <= universe.best_chance.high
    assert np.nanmin(universe.accuracy[1:, 1:]) > 0.9


def test_hubs_that_are_unrelated_link_nothing():
    rng = np.random.default_rng(1)
    n = 900
    order = rng.permutation(n)
    ids = np.array([f"row {i}" for i in range(n)])
    first = np.r_[order[:25], order[25::2]]
    second = np.r_[order[:25], order[26::2]]
    rows = [np.sort(one) for one in (first, second)] + [np.arange(n)] * 4
    spaces = [
        LatentSpace(rng.normal(size=(len(own), 16)), ids[own].tolist(), name=f"{number}")
        for number, own in enumerate(rows)
    ]
    universe = Universe.fit(spaces)
    assert np.nanmax(universe.accuracy) <= universe.best_chance.high
    assert universe.scores[0][1] is None  # 25 shared rows, of which a fifth is held out
