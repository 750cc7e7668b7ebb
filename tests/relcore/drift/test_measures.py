"""The four parts of a change and the churn of neighbours against oracles."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from relcore.base.rows import unit_rows
from relcore.drift import measures
from relcore.drift.measures import SearchedRows, decompose, with_jitter

N = 700
D = 8


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    found = rng.normal(size=(N, D)) @ rng.normal(size=(D, D))
    return found - found.mean(axis=0)


@pytest.fixture(scope="module")
def turn():
    return ortho_group.rvs(D, random_state=1)


def test_shift_scale_and_rotation_are_recovered_to_six_decimals(rows, turn):
    found = decompose(rows + 5, 1.7 * rows @ turn + 3)
    assert (found.scale, found.spread) == pytest.approx((1.7, 1.7), abs=1e-6)
    assert np.abs(found.rotation - turn).max() < 1e-6
    assert found.shift == pytest.approx(2 * np.sqrt(D * N) / np.linalg.norm(rows), abs=1e-6)
    assert found.rho < 1e-12


def test_noise_alone_remains_but_for_what_fits_it_by_chance(rows):
    noise = np.random.default_rng(2).normal(size=rows.shape)
    # Scale and rotation fit D(D − 1)/2 + 1 numbers to N × D of noise, and the mean D.
    by_chance = (D * (D - 1) / 2 + 1 + D) / (N * D)
    assert decompose(rows, rows + 0.1 * noise).shares[3] > 1 - 3 * by_chance


def test_parts_sum_to_squared_change_and_rho_is_that_of_scipy(rows, turn):
    new = 1.3 * rows @ turn + 0.8 * np.random.default_rng(3).normal(size=rows.shape) + 0.4
    found = decompose(rows, new)
    centred = new - new.mean(axis=0)
    rotation, size = orthogonal_procrustes(rows, centred)
    scale = size / np.sum(rows**2)
    residual = np.sum((centred - scale * rows @ rotation) ** 2)
    assert np.abs(found.rotation - rotation).max() < 1e-9
    assert found.scale == pytest.approx(scale, rel=1e-9)
    assert found.rho == pytest.approx(residual / np.sum(centred**2), rel=1e-9)
    assert found.shares.sum() == pytest.approx(1)
    moved = N * np.sum(new.mean(axis=0) ** 2) / np.sum((new - rows) ** 2)
    assert found.shares[0] == pytest.approx(moved, rel=1e-9)


@pytest.mark.parametrize(("wide", "narrow"), [(8, 5), (5, 8)])
def test_widths_may_differ_and_then_smaller_side_of_rotation_is_orthonormal(rows, turn, wide, narrow):
    old = rows[:, :wide]
    new = (rows @ turn)[:, :narrow]
    found = decompose(old, new)
    if wide < narrow:
        few = found.rotation
    else:
        few = found.rotation.T
    assert few @ few.T == pytest.approx(np.eye(min(wide, narrow)), abs=1e-9)
    assert np.isnan(found.shares).all()
    padded = decompose(*(np.pad(side, ((0, 0), (0, 8 - side.shape[1]))) for side in (old, new)))
    assert found.rho == pytest.approx(padded.rho, rel=1e-6)


def test_unrelated_rows_are_not_explained():
    """The sum of the singular values of a Gaussian D × D matrix is about .85 D^1.5 ± .4: σ ≈ .85 √(D / N)."""
    found = decompose(*np.random.default_rng(7).normal(size=(2, N, D)))
    assert found.rho == pytest.approx(1 - 0.85**2 * D / N, abs=0.005)


@pytest.fixture(scope="module")
def few_rows():
    return np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32) + 1


@pytest.fixture(scope="module")
def other_rows(few_rows):
    return few_rows + np.random.default_rng(3).normal(size=few_rows.shape).astype(np.float32)


def plain_neighbours(vectors, k, center):
    unit = unit_rows(vectors - vectors.mean(axis=0) if center else vectors)
    similar = unit @ unit.T
    np.fill_diagonal(similar, -2)
    return [set(row[:k]) for row in np.argsort(-similar, axis=1).tolist()]


def searched(measure, old, new, k, center=False, jitter=0.0):
    return measure(*(SearchedRows.of(one, np.arange(200), k, jitter, center) for one in (old, new)))


@pytest.mark.parametrize("center", [True, False])
def test_churn_is_that_of_a_plain_search(few_rows, other_rows, center):
    pairs = zip(*(plain_neighbours(one, 7, center) for one in (few_rows, other_rows)), strict=True)
    expected = [1 - len(first & second) / 7 for first, second in pairs]
    assert searched(measures.churn, few_rows, other_rows, 7, center) == pytest.approx(expected)
    changed = searched(measures.churn, few_rows, few_rows + np.float32(2), 7, center).mean()
    assert changed < 1e-3 if center else changed > 0.1, "a shift is no churn if rows are centred"


def test_rank_of_own_row_and_neighbours_among_old_rows(few_rows, other_rows):
    similar = unit_rows(other_rows) @ unit_rows(few_rows).T
    rank = 1 + (similar > np.diag(similar)[:, None]).sum(axis=1)
    found = searched(measures.across, few_rows, other_rows, 9)
    assert found.reciprocal_rank == pytest.approx(np.where(rank <= 10, 1 / rank, 0))
    assert found.lost == pytest.approx((rank > 1).astype(float))
    np.fill_diagonal(similar, -2)
    now = np.argsort(-similar, axis=1)[:, :9].tolist()
    before = plain_neighbours(few_rows, 9, False)
    kept = [len(set(one) & two) / 9 for one, two in zip(now, before, strict=True)]
    assert found.churn == pytest.approx(1 - np.array(kept))


def test_duplicates_are_neither_lost_nor_changed_by_noise(few_rows):
    """Each row occurs four times, and k is 2: noise decides which two of a row's three copies are its
    neighbours."""
    twins = np.repeat(few_rows[:50], 4, axis=0)
    rng = np.random.default_rng(9)
    pair = [with_jitter(twins, 1e-3, rng) for _ in range(2)]
    assert searched(measures.across, *pair, 2).lost.mean() > 0.3
    assert searched(measures.churn, *pair, 2, True).mean() > 0.2
    assert searched(measures.across, *pair, 2, jitter=1e-3).lost.sum() == 0
    assert searched(measures.churn, *pair, 2, True, jitter=1e-3).sum() == 0
