"""The chance level of the best of several cells: against permuting by hand, and its limits."""

import numpy as np
import pytest

from relcore.invert import sweep
from relcore.invert.sweep import BestCellChance
from relcore.represent.similarity import unit_rows

M, D = 60, 8


@pytest.fixture
def true(rng):
    return unit_rows(rng.normal(size=(M, D)).astype(np.float32))


def cells(rng, n):
    return [unit_rows(rng.normal(size=(M, D)).astype(np.float32)) for _ in range(n)]


def chance_of(true, found, **settings):
    chance = BestCellChance(true, **settings)
    for cell in found:
        chance.add(cell)
    return chance.null()


def test_it_is_the_best_mean_cosine_over_random_partners(true, rng):
    found = cells(rng, 5)
    null = chance_of(true, found, n_permutations=2000)
    orders = [rng.permutation(M) for _ in range(2000)]
    best = [max(np.mean(np.sum(cell * true[order], axis=1)) for cell in found) for order in orders]
    # Two means of 2,000 draws with this deviation differ by a normal of √2 standard errors; quantiles by
    # about three.
    error = np.std(best) / np.sqrt(2000)
    assert null.mean == pytest.approx(np.mean(best), abs=4 * np.sqrt(2) * error)
    assert [null.low, null.high] == pytest.approx(
        np.quantile(best, [0.025, 0.975]), abs=12 * np.sqrt(2) * error
    )
    assert null.n_permutations == 2000


def test_cells_that_agree_count_as_one(true, rng):
    (one,) = cells(rng, 1)
    seven, single = chance_of(true, [one] * 7), chance_of(true, [one])
    assert [seven.low, seven.mean, seven.high] == pytest.approx(
        [single.low, single.mean, single.high], abs=1e-6
    )


def test_no_row_keeps_its_own_partner(true):
    # Of the true rows themselves a permutation with fixed points would have a cosine of 1 for each of these.
    chance = BestCellChance(true, n_permutations=50)
    assert all((partners != np.arange(M)).all() for partners in chance._partners)
    assert all(sorted(partners) == list(range(M)) for partners in chance._partners)


def test_cells_in_several_parts_give_the_same(true, rng, monkeypatch):
    found = cells(rng, 6)
    whole = chance_of(true, found)
    monkeypatch.setattr(sweep, "_MOST_BYTES", 2 * found[0].nbytes)
    parts = chance_of(true, found)
    assert [parts.low, parts.mean, parts.high] == pytest.approx([whole.low, whole.mean, whole.high], abs=1e-6)


def test_without_cells_there_is_none(true):
    assert chance_of(true, []) is None
