"""The four steps of a change: planted ones are recovered, oracles agree, unrelated rows are not explained."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from relcore.base.errors import SpaceError
from relcore.drift.measures import decompose

N, D = 700, 8


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
    assert found.scale == pytest.approx(1.7, abs=1e-6)
    assert found.spread == pytest.approx(1.7, abs=1e-6)
    assert np.abs(found.rotation - turn).max() < 1e-6
    assert found.shift == pytest.approx(2 * np.sqrt(D * N) / np.linalg.norm(rows), abs=1e-6)
    assert found.rho < 1e-12


@pytest.mark.parametrize(
    ("step", "changed"),
    [(0, lambda X, R: X + 0.5), (1, lambda X, R: 2 * X), (2, lambda X, R: X @ R)],
    ids=["shift", "scale", "rotation"],
)
def test_one_step_alone_has_the_whole_share(rows, turn, step, changed):
    shares = decompose(rows, changed(rows, turn)).shares
    assert shares == pytest.approx(np.eye(4)[step], abs=1e-9)


def test_noise_alone_remains_but_for_what_fits_it_by_chance(rows):
    noise = np.random.default_rng(2).normal(size=rows.shape)
    found = decompose(rows, rows + 0.1 * noise)
    # Scale and rotation fit D(D − 1)/2 + 1 numbers to N × D of noise, and the mean D.
    by_chance = (D * (D - 1) / 2 + 1 + D) / (N * D)
    assert found.shares[3] > 1 - 3 * by_chance


def test_the_parts_sum_to_the_squared_change_and_rho_is_that_of_scipy(rows, turn):
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
def test_widths_may_differ_and_then_the_smaller_side_of_the_rotation_is_orthonormal(rows, turn, wide, narrow):
    old, new = rows[:, :wide], (rows @ turn)[:, :narrow]
    found = decompose(old, new)
    few = found.rotation if wide < narrow else found.rotation.T
    assert few @ few.T == pytest.approx(np.eye(min(wide, narrow)), abs=1e-9)
    assert np.isnan(found.shares).all()
    padded = decompose(*(np.pad(side, ((0, 0), (0, 8 - side.shape[1]))) for side in (old, new)))
    assert found.rho == pytest.approx(padded.rho, rel=1e-6)


def test_unrelated_rows_are_not_explained():
    """The sum of the singular values of a Gaussian D × D matrix is about .85 D^1.5, its error here .4: σ ≈
    .85 √(D / N).
    """
    rng = np.random.default_rng(7)
    found = decompose(rng.normal(size=(N, D)), rng.normal(size=(N, D)))
    assert found.rho == pytest.approx(1 - 0.85**2 * D / N, abs=0.005)


def test_rows_in_one_point():
    """Such new rows are a shift and a scale of 0, and nothing of them is explained."""
    with pytest.raises(SpaceError, match="the same vector in every row of the old version"):
        decompose(np.ones((5, 3)), np.eye(5, 3))
    found = decompose(np.eye(5, 3), np.full((5, 3), 7.1))
    assert (found.rho, found.scale, found.shares[2:].tolist()) == (1, 0, [0, 0])
    assert found.shares.sum() == pytest.approx(1)
