"""A plane turned onto another: known turns come back, the end is scipy's Procrustes, and the way there is
rigid.
"""

import numpy as np
import pytest
from scipy.linalg import expm, logm
from scipy.spatial import procrustes

from relcore.base.errors import SpaceError
from relcore.stitch.reconstruction import disparities, fit_turn


def rotation(degrees):
    angle = np.radians(degrees)
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


@pytest.fixture
def points(rng):
    return rng.normal(size=(60, 2)) * [3, 1]


@pytest.mark.parametrize("degrees", [-120, -10, 0, 35, 179])
def test_a_known_turn_scale_and_shift_come_back(points, degrees):
    turn = fit_turn(2.5 * points @ rotation(degrees) + [4, -1], points)
    assert not turn.mirrored
    assert turn.degrees == pytest.approx(degrees)
    assert turn.scale == pytest.approx(2.5)
    assert turn.disparity() == pytest.approx(0, abs=1e-12)
    assert turn.describe() == f"turned by {degrees}°, scaled by 2.50"
    np.testing.assert_allclose(turn.at(0), points)
    np.testing.assert_allclose(turn.at(1), turn.reference)


def test_a_mirror_is_told_with_its_axis_and_flattens_half_way(points):
    axis = np.array([np.cos(np.radians(60)), np.sin(np.radians(60))])
    turn = fit_turn(points @ (2 * np.outer(axis, axis) - np.eye(2)), points)
    assert turn.mirrored
    assert turn.degrees == pytest.approx(60)
    assert turn.describe() == "mirrored at an axis of 60°, scaled by 1.00"
    middle = turn.at(0.5) - turn.at(0.5).mean(axis=0)
    assert np.linalg.matrix_rank(middle, tol=1e-9) == 1
    np.testing.assert_allclose(turn.at(1), turn.reference, atol=1e-12)


def test_the_end_is_scipys_disparity_and_the_beginning_that_of_the_points_as_they_are(rng, points):
    reference = points @ rotation(75) + rng.normal(scale=0.4, size=points.shape)
    turn = fit_turn(reference, points)
    assert turn.disparity(1) == pytest.approx(procrustes(reference, points)[2])
    spread = np.square(reference - reference.mean(axis=0)).sum()
    assert turn.disparity(0) == pytest.approx(np.square(reference - points).sum() / spread)
    assert turn.disparity(1) < turn.disparity(0)


@pytest.mark.parametrize("time", [0.25, 0.5, 0.8])
def test_on_its_way_the_matrix_is_the_power_of_the_whole_turn(points, time):
    turn = fit_turn(points @ rotation(100), points)
    expected = expm(time * np.real(logm(turn.rotation)))
    start = points - points.mean(axis=0)
    moved = turn.at(time) - turn.at(time).mean(axis=0)
    np.testing.assert_allclose(moved, start @ expected, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), np.linalg.norm(start, axis=1))


def test_what_has_no_turn_is_refused(points):
    with pytest.raises(
        SpaceError, match=r"expected two paired sets of points \(n, 2\), got shapes \(60, 2\) and \(59, 2\)"
    ):
        fit_turn(points, points[1:])
    with pytest.raises(SpaceError, match="expected points that differ, got all of them in one place"):
        fit_turn(points, np.ones((60, 2)))


def test_disparities_of_many_runs_are_scipys_in_any_width(rng):
    codes = [rng.normal(size=(50, 7)), rng.normal(size=(50, 7)) + 3, 5 * rng.normal(size=(50, 7))]
    found = disparities(codes)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert found[i, j] == found[j, i] == pytest.approx(procrustes(codes[i], codes[j])[2])
    assert not np.diag(found).any()


def test_runs_that_differ_by_a_turn_have_no_disparity_and_unrelated_ones_nearly_one(rng):
    first = rng.normal(size=(400, 2)) * [3, 1]
    turned = -2 * first @ rotation(50) + [7, 1]
    found = disparities([first, turned, rng.normal(size=(400, 2))])
    assert found[0, 1] == pytest.approx(0, abs=1e-12)
    # The overlap is the nuclear norm of a 2 × 2 matrix whose entries have variance 1 / 400 over the product
    # of the spreads: its square is at most twice the squared Frobenius norm, 1 / 400 on average. Eight times
    # that is beyond chance.
    assert 1 - 16 / 400 < found[0, 2] <= 1


def test_runs_without_disparity_are_refused(points):
    with pytest.raises(
        SpaceError, match=r"expected paired codes of equal shape, got shapes \[\(60, 2\), \(59, 2\)\]"
    ):
        disparities([points, points[1:]])
    with pytest.raises(SpaceError, match="expected codes that differ, got all of them in one place"):
        disparities([points, np.ones((60, 2))])
