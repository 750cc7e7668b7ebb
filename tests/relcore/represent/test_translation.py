"""Direct maps against SciPy, NumPy and scikit-learn, and what each can recover."""

from unittest.mock import Mock

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group
from sklearn.linear_model import LinearRegression

from relcore.base.errors import SpaceError
from relcore.represent.translation import Affine, LeastSquares, Procrustes

D = 8
TURN = ortho_group.rvs(D, random_state=4)
MAPS = (Procrustes(), Procrustes(scale=False), LeastSquares(), Affine())
NAMES = ("procrustes", "isometry", "least squares", "affine")


@pytest.fixture
def source(rng):
    return rng.normal(size=(60, D)) + 1


@pytest.fixture
def noisy(source, rng):
    return 2.5 * source @ TURN + rng.normal(size=source.shape) - 3


def translated(mapping, source, target, X=None):
    return mapping.fit(source, target).transform(source if X is None else X)


def test_procrustes_recovers_rotation_scale_and_shift(source):
    target = 2.5 * source @ TURN - 3
    procrustes = Procrustes().fit(source[:20], target[:20])
    np.testing.assert_allclose(procrustes.matrix_, 2.5 * TURN, atol=1e-10)
    np.testing.assert_allclose(procrustes.transform(source), target, atol=1e-5)


def test_procrustes_is_found_where_numpys_svd_does_not_converge(source, monkeypatch):
    """As it does for some products of low rank, such as one of 163 rows in 384 dimensions."""
    monkeypatch.setattr(np.linalg, "svd", Mock(side_effect=np.linalg.LinAlgError))
    np.testing.assert_allclose(Procrustes().fit(source, 2.5 * source @ TURN).matrix_, 2.5 * TURN, atol=1e-10)


def test_procrustes_is_scipys_on_centred_rows(source, noisy):
    A, B = source - source.mean(axis=0), noisy - noisy.mean(axis=0)
    turn, trace = orthogonal_procrustes(A, B)
    np.testing.assert_allclose(Procrustes(scale=False).fit(source, noisy).matrix_, turn, atol=1e-10)
    np.testing.assert_allclose(
        Procrustes().fit(source, noisy).matrix_, turn * trace / np.sum(A**2), atol=1e-10
    )


def test_least_squares_is_numpys(source, noisy):
    solution = np.linalg.lstsq(source, noisy, rcond=None)[0]
    np.testing.assert_allclose(LeastSquares().fit(source, noisy).matrix_, solution, atol=1e-10)
    np.testing.assert_allclose(translated(LeastSquares(), source, noisy), source @ solution, atol=1e-5)


def test_affine_is_scikit_learns_linear_regression(source, noisy):
    expected = LinearRegression().fit(source, noisy).predict(source)
    np.testing.assert_allclose(translated(Affine(), source, noisy), expected, atol=1e-5)


def test_only_the_linear_map_cannot_follow_a_shift(source):
    shifted = source @ TURN + 5
    errors = {type(mapping): np.abs(translated(mapping, source, shifted) - shifted).max() for mapping in MAPS}
    assert errors[LeastSquares] > 0.1
    assert max(errors[Procrustes], errors[Affine]) < 1e-5


@pytest.mark.parametrize("mapping", MAPS, ids=NAMES)
def test_one_pair_or_equal_rows_give_numbers(mapping):
    assert np.isfinite(translated(mapping, np.ones((1, 3)), np.ones((1, 2)))).all()
    assert np.isfinite(translated(mapping, np.ones((4, 3)), np.zeros((4, 2)))).all()


@pytest.mark.parametrize("mapping", MAPS, ids=NAMES)
def test_unpaired_rows_are_refused(mapping):
    with pytest.raises(SpaceError, match="same number of paired rows, 1 or more, got 3 and 2"):
        mapping.fit(np.ones((3, 4)), np.ones((2, 4)))
