"""Churn of neighbours against plain loops, its noise level, and searches of new rows among old ones."""

from __future__ import annotations

import numpy as np
import pytest

from relcore.drift.neighbour_churn import Across, chance_churn, churn_rows, jittered, own_neighbours
from relcore.similarity import unit_rows

EVERY = np.arange(200)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32) + 1


def plain_neighbours(vectors, k, center):
    moved = vectors - vectors.mean(axis=0) if center else vectors
    unit = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    similar = unit @ unit.T
    np.fill_diagonal(similar, -2)
    return [set(row[:k]) for row in np.argsort(-similar, axis=1).tolist()]


@pytest.mark.parametrize("center", [True, False])
def test_churn_is_that_of_a_plain_search(rows, center):
    other = rows + np.random.default_rng(1).normal(size=rows.shape).astype(np.float32)
    found = churn_rows(*(own_neighbours(one, EVERY, 7, center) for one in (rows, other)))
    pairs = zip(*(plain_neighbours(one, 7, center) for one in (rows, other)), strict=True)
    assert found == pytest.approx([1 - len(first & second) / 7 for first, second in pairs])


def test_unrelated_rows_have_the_churn_of_chance(rows):
    other = np.random.default_rng(2).normal(size=rows.shape).astype(np.float32)
    found = churn_rows(*(own_neighbours(one, EVERY, 10, True) for one in (rows, other)))
    # 2,000 neighbours, each kept with .05: a standard error of .005 if they were independent; some rows are neighbours of many.
    reach = 0.03
    assert found.mean() == pytest.approx(chance_churn(200, 10), abs=reach)


def test_a_shift_is_no_churn_once_rows_are_centred(rows):
    moved = rows + np.float32(2)
    lists = [[own_neighbours(one, EVERY, 7, center) for one in (rows, moved)] for center in (True, False)]
    assert churn_rows(*lists[0]).mean() < 1e-3
    assert churn_rows(*lists[1]).mean() > 0.1


def test_new_rows_search_old_ones(rows):
    unit = unit_rows(rows)
    found = Across.search(unit, unit, EVERY, 5)
    assert found.lost.sum() == 0
    assert found.reciprocal_rank.tolist() == [1.0] * 200
    assert [set(one) for one in found.lists.tolist()] == plain_neighbours(rows, 5, False)
    away = Across.search(-unit, unit, EVERY, 5)
    assert away.lost.sum() == 200
    assert away.reciprocal_rank.sum() == 0
    assert not np.any(away.lists == EVERY[:, None])


def test_the_rank_of_the_own_row(rows):
    unit = unit_rows(rows)
    other = unit_rows(rows + np.random.default_rng(3).normal(size=rows.shape).astype(np.float32))
    found = Across.search(other, unit, EVERY, 9)
    similar = other @ unit.T
    rank = 1 + (similar > np.diag(similar)[:, None]).sum(axis=1)
    assert found.reciprocal_rank == pytest.approx(np.where(rank <= 10, 1 / rank, 0))
    assert found.lost == pytest.approx((rank > 1).astype(float))


def test_duplicates_lose_their_own_row_half_of_the_time(rows):
    twice = np.repeat(rows[:100], 2, axis=0)
    found = Across.search(unit_rows(twice), unit_rows(twice), EVERY, 5)
    assert 0.3 < found.lost.mean() < 0.7  # a fair coin for 100 pairs: 4 standard errors are .2


def test_noise_has_the_length_that_was_chosen(rows):
    moved = jittered(rows, 0.01, np.random.default_rng(4)) - rows
    shares = np.linalg.norm(moved, axis=1) / np.linalg.norm(rows, axis=1)
    assert shares.mean() == pytest.approx(0.01, rel=0.1)  # the length of 6 normal numbers varies by .28, the mean of 200 by .02
    assert jittered(rows, 0.0, np.random.default_rng(4)).tolist() == rows.tolist()


def test_noise_beyond_rounding_to_float16_is_the_default(rows):
    from relcore.drift.neighbour_churn import JITTER

    rounded = np.linalg.norm(rows.astype(np.float16).astype(np.float32) - rows, axis=1) / np.linalg.norm(rows, axis=1)
    assert rounded.max() < JITTER
