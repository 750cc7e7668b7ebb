"""Churn of neighbours against plain loops, its noise level, and searches of new rows among old ones."""

from __future__ import annotations

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.drift import measures
from relcore.drift.measures import SearchedRows, chance_churn, jittered

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


def churn(old, new, k, center, jitter=0.0):
    return measures.churn(*(SearchedRows.of(one, EVERY, k, jitter, center) for one in (old, new)))


def across(old, new, k, jitter=0.0):
    return measures.across(*(SearchedRows.of(one, EVERY, k, jitter, False) for one in (old, new)))


@pytest.mark.parametrize("center", [True, False])
def test_churn_is_that_of_a_plain_search(rows, center):
    other = rows + np.random.default_rng(1).normal(size=rows.shape).astype(np.float32)
    pairs = zip(*(plain_neighbours(one, 7, center) for one in (rows, other)), strict=True)
    expected = [1 - len(first & second) / 7 for first, second in pairs]
    assert churn(rows, other, 7, center) == pytest.approx(expected)


def test_unrelated_rows_have_the_churn_of_chance(rows):
    other = np.random.default_rng(2).normal(size=rows.shape).astype(np.float32)
    # 2,000 neighbours, each kept with .05: a standard error of .005 if they were independent; some rows are
    # neighbours of many.
    assert churn(rows, other, 10, True).mean() == pytest.approx(chance_churn(200, 10), abs=0.03)


def test_a_shift_is_no_churn_once_rows_are_centred(rows):
    moved = rows + np.float32(2)
    assert churn(rows, moved, 7, True).mean() < 1e-3
    assert churn(rows, moved, 7, False).mean() > 0.1


def test_new_rows_search_old_ones(rows):
    found = across(rows, rows, 5)
    assert found.lost.sum() == found.churn.sum() == 0
    assert found.reciprocal_rank.tolist() == [1.0] * 200
    away = across(rows, -rows, 5)
    assert away.lost.sum() == 200
    assert away.reciprocal_rank.sum() == 0


def test_the_rank_of_the_own_row_and_the_neighbours_among_old_rows(rows):
    other = rows + np.random.default_rng(3).normal(size=rows.shape).astype(np.float32)
    similar = unit_rows(other) @ unit_rows(rows).T
    rank = 1 + (similar > np.diag(similar)[:, None]).sum(axis=1)
    found = across(rows, other, 9)
    assert found.reciprocal_rank == pytest.approx(np.where(rank <= 10, 1 / rank, 0))
    assert found.lost == pytest.approx((rank > 1).astype(float))
    np.fill_diagonal(similar, -2)
    now = np.argsort(-similar, axis=1)[:, :9].tolist()
    kept = [
        len(set(one) & before) / 9 for one, before in zip(now, plain_neighbours(rows, 9, False), strict=True)
    ]
    assert found.churn == pytest.approx(1 - np.array(kept))


def test_duplicates_are_neither_lost_nor_changed_by_noise(rows):
    """Each row four times, and two neighbours: which of its three twins they are is left to noise."""
    twins, rng = np.repeat(rows[:50], 4, axis=0), np.random.default_rng(9)
    old, new = (jittered(twins, 1e-3, rng) for _ in range(2))
    assert across(old, new, 2).lost.mean() > 0.3
    assert churn(old, new, 2, True).mean() > 0.2
    assert across(old, new, 2, jitter=1e-3).lost.sum() == 0
    assert churn(old, new, 2, True, jitter=1e-3).sum() == 0
