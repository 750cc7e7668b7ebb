"""Inverses and direct maps against pinv, SciPy and scikit-learn."""

from unittest.mock import Mock

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group
from sklearn.linear_model import LinearRegression, Ridge

from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.represent.inverse import InverseRelativeProjection, recovery_errors
from relcore.represent.projection import RelativeProjection
from relcore.represent.translation import Affine, LeastSquares, Procrustes

N = 400
D = 12
K = 40
TURN = ortho_group.rvs(D, random_state=1).astype(np.float32)
METHODS = ("pruned", "ridge", "whitened")
ALL_KEPT = {"method": "pruned", "omega": 1, "delta": 0.0}


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, D)).astype(np.float32) + 0.5


@pytest.fixture
def Y(X, rng):
    turn = np.linalg.qr(rng.normal(size=(2 * D, 2 * D)))[0][:D]
    return (3 * X @ turn + 0.3 * rng.normal(size=(N, 2 * D)) - 1).astype(np.float32)


def fitted(source, target, **settings):
    return InverseRelativeProjection(**settings).fit(source[:K], target[:K])


def cosines(inverse, X, Y):
    return recovery_errors(inverse.transform(X), Y, inverse.target_mean_)["cosine"]


def units(X):
    return unit_rows(X[:K], X[:K].mean(axis=0)).astype(np.float64)


def test_full_rank_relative_space_gives_its_directions_back(X):
    relative = RelativeProjection().fit(X, anchors=np.arange(K)).transform(X)
    inverse = InverseRelativeProjection(**ALL_KEPT).fit(
        X[:K], X[:K], source_mean=X.mean(axis=0), target_mean=X.mean(axis=0)
    )
    found = recovery_errors(inverse.inverse_transform(relative), X, X.mean(axis=0))
    assert inverse.rank_ == D
    np.testing.assert_allclose(found["cosine"], 1, atol=1e-6)
    back = unit_rows(inverse.inverse_transform(relative), X.mean(axis=0))
    np.testing.assert_allclose(back, unit_rows(X, X.mean(axis=0)), atol=1e-4)


def test_pruned_is_mean_over_prunings_of_numpys_pinv(X, Y):
    inverse = fitted(X, Y, omega=3, delta=0.6)
    A = units(X)
    B = units(Y)
    parts = [A[kept].T @ np.linalg.pinv(B[kept].T, rcond=1e-6) for kept in inverse.kept_]
    np.testing.assert_allclose(inverse.matrix_, np.mean(parts, axis=0), atol=1e-5)
    conditions = [np.linalg.cond(B[kept]) for kept in inverse.kept_]
    np.testing.assert_allclose(inverse.condition_numbers_, conditions, rtol=1e-5)
    translated = [unit_rows(X, X[:K].mean(axis=0)) @ part for part in parts]
    found = np.mean(translated, axis=0)  # the paper averages the rows
    np.testing.assert_allclose(inverse.transform(X), found * inverse.scale_ + inverse.target_mean_, atol=1e-3)
    lengthened = fitted(X, Y, omega=3, delta=0.6, lengths="mean")
    np.testing.assert_allclose(
        lengthened.transform(X), unit_rows(found) * inverse.scale_ + inverse.target_mean_, atol=1e-3
    )


def test_ridge_is_scikit_learns_without_offset(X, Y):
    inverse = fitted(X, Y, method="ridge", ridge=0.7)
    A = units(X)
    B = units(Y)
    oracle = Ridge(alpha=0.7, fit_intercept=False).fit(B.T, np.eye(2 * D))  # (B Bᵀ + λI)⁻¹ B
    np.testing.assert_allclose(inverse.matrix_, A.T @ oracle.coef_.T, atol=1e-5)


def test_whitened_goes_through_whitened_relative_space(X, Y):
    inverse = fitted(X, Y, method="whitened", ridge=0.3)
    projection = RelativeProjection(whiten=True, ridge=0.3)
    whitened = [projection.fit(Z[:K], anchors=np.arange(K)).transform(Z) for Z in (X, Y)]
    np.testing.assert_allclose(inverse.relative(X), whitened[0], atol=1e-5)
    np.testing.assert_allclose(inverse.inverse_transform(whitened[0]), inverse.transform(X), atol=1e-4)
    within = fitted(Y, Y, method="whitened", ridge=1e-6)
    assert cosines(within, Y, Y).min() > 1 - 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_source_may_be_turned_scaled_and_shifted(X, Y, method):
    moved = 7 * X @ TURN + 2
    np.testing.assert_allclose(
        fitted(moved, Y, method=method).transform(moved), fitted(X, Y, method=method).transform(X), atol=1e-3
    )


def test_fewer_anchors_than_dimensions_reach_their_span_only(X):
    inverse = InverseRelativeProjection(**ALL_KEPT).fit(X[:6], X[:6])
    assert inverse.rank_ == 5  # six points around their mean
    assert cosines(inverse, X[6:], X[6:]).mean() < 0.8
    np.testing.assert_allclose(cosines(inverse, X[:6], X[:6]), 1, atol=1e-4)


LINE = np.outer(np.linspace(-1, 2, 8), np.ones(D))  # of an odd number one would lie at the mean


@pytest.mark.parametrize(
    ("settings", "source", "target", "message"),
    [
        (
            {},
            np.ones((1, 3)),
            np.ones((1, 3)),
            "two or more \\(the inverse of one spans a single line\\), got 1",
        ),
        ({}, LINE, np.eye(8), "expected several directions in the source space, got 8 anchors on one line"),
        (
            {},
            np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0, 0]]),
            np.eye(5),
            "anchor 4 lies at the mean of the source space",
        ),
        ({"delta": np.nan}, None, None, "delta: expected a number from 0 to 1, got nan"),
        ({"delta": 1}, None, None, "delta: expected a distance at which two or more anchors stay"),
    ],
)
def test_fit_refuses(X, Y, settings, source, target, message):
    with pytest.raises(SpaceError, match=message):
        InverseRelativeProjection(**settings).fit(
            X[:K] if source is None else source, Y[:K] if target is None else target
        )


WIDTH = 8
ROTATION = ortho_group.rvs(WIDTH, random_state=4)
MAPS = (Procrustes(), Procrustes(scale=False), LeastSquares(), Affine())
NAMES = ("procrustes", "isometry", "least squares", "affine")


@pytest.fixture
def source(rng):
    return rng.normal(size=(60, WIDTH)) + 1


@pytest.fixture
def noisy(source, rng):
    return 2.5 * source @ ROTATION + rng.normal(size=source.shape) - 3


def translated(mapping, source, target, X=None):
    return mapping.fit(source, target).transform(source if X is None else X)


def test_procrustes_recovers_rotation_scale_and_shift(source):
    target = 2.5 * source @ ROTATION - 3
    procrustes = Procrustes().fit(source[:20], target[:20])
    np.testing.assert_allclose(procrustes.matrix_, 2.5 * ROTATION, atol=1e-10)
    np.testing.assert_allclose(procrustes.transform(source), target, atol=1e-5)


def test_procrustes_is_found_where_numpys_svd_does_not_converge(source, monkeypatch):
    """NumPy's SVD fails for some products of low rank, such as one of 163 rows in 384 dimensions."""
    monkeypatch.setattr(np.linalg, "svd", Mock(side_effect=np.linalg.LinAlgError))
    np.testing.assert_allclose(
        Procrustes().fit(source, 2.5 * source @ ROTATION).matrix_, 2.5 * ROTATION, atol=1e-10
    )


def test_procrustes_is_scipys_on_centred_rows(source, noisy):
    A = source - source.mean(axis=0)
    B = noisy - noisy.mean(axis=0)
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


@pytest.mark.parametrize("mapping", MAPS, ids=NAMES)
def test_unpaired_rows_are_refused(mapping):
    with pytest.raises(SpaceError, match="expected row-aligned spaces, got 3 and 2 rows"):
        mapping.fit(np.ones((3, 4)), np.ones((2, 4)))
