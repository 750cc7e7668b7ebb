"""Disparity: nothing for an exact rotation, 1 for noise; a training against another one; costs in a cell."""

import numpy as np
import pytest
from relscope_studies.isometry import compared, disparity, with_residual

from relcore.represent.translation import Affine
from relcore.spaces.space import LatentSpace

N = 400
D = 6


@pytest.fixture
def parts(rng):
    order = rng.permutation(N)
    return np.sort(order[:300]), np.sort(order[300:])


def labelled(vectors, classes):
    return LatentSpace(vectors, [f"r{i}" for i in range(len(vectors))], labels=[f"c{one}" for one in classes])


def test_an_exact_isometry_has_no_disparity_and_a_stretch_only_an_affine_one(rng, parts):
    X = rng.normal(size=(N, D))
    rotation, _ = np.linalg.qr(rng.normal(size=(D, D)))
    assert disparity(X, 3 * X @ rotation + 7, *parts) == pytest.approx(0, abs=1e-9)
    stretched = X * np.geomspace(1, 30, D)
    assert disparity(X, stretched, *parts) > 0.1
    assert disparity(X, stretched, *parts, Affine()) == pytest.approx(0, abs=1e-9)


def test_the_squared_error_that_noise_adds_is_the_disparity(rng, parts):
    """y = x R + e: with variances 1 and s² the best map explains 1 / (1 + s²) of the spread."""
    X = rng.normal(size=(N, D))
    rotation, _ = np.linalg.qr(rng.normal(size=(D, D)))
    s = 0.5
    first, second = (labelled(rows, range(N)) for rows in (X, X @ rotation + s * rng.normal(size=(N, D))))
    for times in (0, 1, 2):
        found = disparity(X, with_residual(first, second, parts[1], times).vectors, *parts)
        # The mean of 600 squares has a relative standard error of √(2 / 600) = .06; the fit on 300 rows adds
        # less than .02.
        squared = (times * s) ** 2
        assert found == pytest.approx(squared / (1 + squared), rel=4 * 0.06 + 0.02, abs=1e-6)


def test_comparing_a_rotated_copy_loses_nothing_and_shuffled_rows_are_at_chance(rng, parts):
    classes = np.repeat(np.arange(4), N // 4)
    X = rng.normal(size=(N, D)) + 4 * np.eye(D)[classes]
    rotation, _ = np.linalg.qr(rng.normal(size=(D, D)))
    found = compared(labelled(X, classes), labelled(2 * X @ rotation, classes), parts[1])
    assert found["disparity"] == pytest.approx(0, abs=1e-6)
    assert found["relative loss"] == pytest.approx(0, abs=0.011), "at most one of the 100 test rows"
    assert found["procrustes loss"] == pytest.approx(0, abs=0.011)
    assert found["accuracy"] > 0.95
    assert found["chance"] == pytest.approx(1, abs=0.1)
    assert found["chance of accuracy"] < 0.5
