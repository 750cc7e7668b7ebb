"""InverseRelativeProjection: against pinv and scikit-learn, what it recovers, what it does not see, and
what it refuses.
"""

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.linear_model import Ridge

from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.represent.similarity import RelativeProjection
from relcore.represent.translation import InverseRelativeProjection, pruned_decoders, recovered

N, D, K = 400, 12, 40
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
    return recovered(inverse.transform(X), Y, inverse.target_mean_)["cosine"]


def units(X):
    return unit_rows(X[:K], X[:K].mean(axis=0)).astype(np.float64)


def test_a_full_rank_relative_space_gives_its_directions_back(X):
    relative = RelativeProjection().fit(X, anchors=np.arange(K)).transform(X)
    inverse = InverseRelativeProjection(**ALL_KEPT).fit(
        X[:K], X[:K], source_mean=X.mean(axis=0), target_mean=X.mean(axis=0)
    )
    found = recovered(inverse.inverse_transform(relative), X, X.mean(axis=0))
    assert inverse.rank_ == D
    np.testing.assert_allclose(found["cosine"], 1, atol=1e-6)
    back = unit_rows(inverse.inverse_transform(relative), X.mean(axis=0))
    np.testing.assert_allclose(back, unit_rows(X, X.mean(axis=0)), atol=1e-4)


def test_a_turned_scaled_and_shifted_space_is_reached_but_for_each_rows_length(X):
    target = 2.5 * X @ TURN - 3
    inverse = fitted(X, target, **ALL_KEPT)
    np.testing.assert_allclose(cosines(inverse, X, target), 1, atol=1e-5)
    lengths = np.linalg.norm(inverse.transform(X) - inverse.target_mean_, axis=1)
    np.testing.assert_allclose(
        lengths, np.linalg.norm(target[:K] - target[:K].mean(axis=0), axis=1).mean(), rtol=1e-4
    )


def test_pruned_is_the_mean_over_prunings_of_numpys_pinv(X, Y):
    inverse = fitted(X, Y, omega=3, delta=0.6)
    A, B = units(X), units(Y)
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
    A, B = units(X), units(Y)
    oracle = Ridge(alpha=0.7, fit_intercept=False).fit(B.T, np.eye(2 * D))  # (B Bᵀ + λI)⁻¹ B
    np.testing.assert_allclose(inverse.matrix_, A.T @ oracle.coef_.T, atol=1e-5)


def test_whitened_goes_through_the_whitened_relative_space(X, Y):
    inverse = fitted(X, Y, method="whitened", ridge=0.3)
    projection = RelativeProjection(whiten=True, ridge=0.3)
    whitened = [projection.fit(Z[:K], anchors=np.arange(K)).transform(Z) for Z in (X, Y)]
    np.testing.assert_allclose(inverse.relative(X), whitened[0], atol=1e-5)
    np.testing.assert_allclose(inverse.inverse_transform(whitened[0]), inverse.transform(X), atol=1e-4)
    within = fitted(Y, Y, method="whitened", ridge=1e-6)
    assert cosines(within, Y, Y).min() > 1 - 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_the_source_may_be_turned_scaled_and_shifted(X, Y, method):
    moved = 7 * X @ TURN + 2
    np.testing.assert_allclose(
        fitted(moved, Y, method=method).transform(moved), fitted(X, Y, method=method).transform(X), atol=1e-3
    )


def test_fewer_anchors_than_dimensions_reach_their_span_only(X):
    inverse = InverseRelativeProjection(**ALL_KEPT).fit(X[:6], X[:6])
    assert inverse.rank_ == 5  # six points around their mean
    assert cosines(inverse, X[6:], X[6:]).mean() < 0.8
    np.testing.assert_allclose(cosines(inverse, X[:6], X[:6]), 1, atol=1e-4)


def test_recovered_by_hand():
    found, true = np.array([[2.0, 1], [1, 3], [1, 1]]), np.array([[3.0, 1], [3, 1], [1, 1]])
    table = recovered(found, true, np.array([1, 1]))
    np.testing.assert_allclose(table["cosine"], [1, 0, 0])
    np.testing.assert_allclose(table["error"], [0.5, np.sqrt(2), 0])


def test_the_decoders_of_a_grid_are_those_of_single_inversions(X, Y):
    for pruned in pruned_decoders(unit_rows(Y[:K], Y[:K].mean(axis=0)), (0.4, 0.6), (1, 4), random_state=5):
        inverse = fitted(X, Y, omega=pruned.omega, delta=pruned.delta, random_state=5)
        np.testing.assert_allclose(pruned.matrix, inverse.decoder_, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(pruned.condition_numbers, inverse.condition_numbers_, rtol=1e-4)
        assert [len(kept) for kept in pruned.kept] == [len(kept) for kept in inverse.kept_]


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
        ({}, np.ones((4, 3)), np.ones((5, 3)), r"expected paired anchors .* got \(4, 3\) and \(5, 3\)"),
        ({}, LINE, np.eye(8), "expected several directions in the source space, got 8 anchors on one line"),
        (
            {},
            np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0, 0]]),
            np.eye(5),
            "number 4 lies at the mean of the source space",
        ),
        ({"delta": 1.1}, None, None, "delta: expected a distance 0 … 1, got 1.1"),
        ({"delta": np.nan}, None, None, "delta: expected a distance 0 … 1, got nan"),
        ({"ridge": 0}, None, None, "ridge: expected a number above 0, got 0"),
        ({"delta": 1}, None, None, "delta: expected a distance at which two or more anchors stay"),
    ],
)
def test_fit_refuses(X, Y, settings, source, target, message):
    with pytest.raises(SpaceError, match=message):
        InverseRelativeProjection(**settings).fit(
            X[:K] if source is None else source, Y[:K] if target is None else target
        )
