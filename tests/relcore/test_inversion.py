"""InverseRelativeProjection: against pinv and scikit-learn, what it recovers, what it does not see, and
what it refuses.
"""

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.linear_model import Ridge

from relcore.base.errors import SpaceError
from relcore.represent.inversion import (
    InverseRelativeProjection,
    farthest_order,
    first_anchors,
    inversion_grid,
    invert,
    recovered,
)
from relcore.represent.projection import RelativeProjection
from relcore.represent.similarity import unit_rows
from relcore.spaces.split import Split

N, D, K = 400, 12, 40
TURN = ortho_group.rvs(D, random_state=1).astype(np.float32)
METHODS = ("pruned", "ridge", "whitened")
ALL_KEPT = {"method": "pruned", "omega": 1, "delta": 0.0}


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, D)).astype(np.float32) + 0.5


@pytest.fixture
def Y(X, rng):
    """A noisy turn of X in twice its width."""
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


def test_the_relative_side_of_the_others_is_the_plain_one(X, Y):
    relative = RelativeProjection().fit(X[:K], anchors=np.arange(K)).transform(X)
    np.testing.assert_allclose(fitted(X, Y).relative(X), relative, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_the_two_parts_make_the_matrix(X, Y, method):
    inverse = fitted(X, Y, method=method)
    np.testing.assert_allclose(inverse.encoder_ @ inverse.decoder_, inverse.matrix_, atol=1e-5)
    np.testing.assert_allclose(
        inverse.inverse_transform(inverse.relative(X)), inverse.transform(X), atol=1e-4
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_source_may_be_turned_scaled_and_shifted(X, Y, method):
    moved = 7 * X @ TURN + 2
    np.testing.assert_allclose(
        fitted(moved, Y, method=method).transform(moved), fitted(X, Y, method=method).transform(X), atol=1e-3
    )


def test_the_anchors_own_means_are_the_default(X, Y):
    named = InverseRelativeProjection().fit(
        X[:K], Y[:K], source_mean=X[:K].mean(axis=0), target_mean=Y[:K].mean(axis=0)
    )
    np.testing.assert_allclose(named.transform(X), fitted(X, Y).transform(X), atol=1e-5)
    other = InverseRelativeProjection().fit(X[:K], Y[:K], source_mean=np.zeros(D))
    assert np.abs(other.transform(X) - named.transform(X)).max() > 0.1


def test_pruning_steadies_what_noise_upsets(rng):
    source, turn = rng.normal(size=(600, 60)), ortho_group.rvs(60, random_state=2)
    source *= np.linspace(3, 0.02, 60)  # few directions carry the space, as real ones have it
    target = source @ turn + 0.3 * rng.normal(size=source.shape)
    source, target = source.astype(np.float32), target.astype(np.float32)
    quality = {
        settings: (
            InverseRelativeProjection(omega=settings[0], delta=settings[1])
            .fit(source[:60], target[:60])
            .transform(source)
        )
        for settings in ((1, 0.0), (1, 0.6), (8, 0.6))
    }
    mean = target[:60].mean(axis=0)
    quality = [recovered(found, target, mean)["cosine"].mean() for found in quality.values()]
    assert quality == sorted(quality)
    assert quality[1] > quality[0] + 0.1


def test_prunings_are_far_apart_and_nothing_left_out_is_as_far(X):
    inverse = fitted(X, X, omega=8, delta=0.55)
    similarity = np.abs(units(X) @ units(X).T)
    assert len({kept[0] for kept in inverse.kept_}) == 8
    for kept in inverse.kept_:
        assert 1 < len(kept) < K
        assert 1 - similarity[np.ix_(kept, kept)][~np.eye(len(kept), dtype=bool)].max() >= 0.55 - 1e-6
        assert (1 - similarity[kept].max(axis=0)).max() < 0.55


def test_a_larger_delta_keeps_the_beginning_of_the_same_order(X):
    similarity = np.abs(units(X) @ units(X).T).astype(np.float32)
    whole, distances = farthest_order(similarity, 3)
    assert sorted(whole) == list(range(K))
    assert (np.diff(distances) <= 0).all()
    for delta in (0.3, 0.6, 0.8):
        kept, _ = farthest_order(similarity, 3, delta)
        np.testing.assert_array_equal(kept, whole[distances >= delta])


def test_opposite_anchors_are_as_near_as_equal_ones():
    anchors = np.array([[1, 0], [-1, 0], [0, 1]], dtype=np.float32)
    order, distances = farthest_order(np.abs(anchors @ anchors.T), 0, 0.5)
    np.testing.assert_array_equal(order, [0, 2])
    np.testing.assert_array_equal(distances, [1, 1])


def test_repeated_anchors_are_all_taken_at_delta_zero_and_once_above(X):
    twice = np.concatenate([X[:K], X[:K]])
    inverse = InverseRelativeProjection(**ALL_KEPT).fit(twice, twice)
    assert sorted(inverse.kept_[0]) == list(range(2 * K))
    np.testing.assert_allclose(cosines(inverse, X, X), 1, atol=1e-5)
    (kept,) = InverseRelativeProjection(omega=1, delta=1e-3).fit(twice, twice).kept_
    assert sorted(kept % K) == list(range(K))


def test_the_first_anchors_of_few_prunings_begin_those_of_many():
    many = first_anchors(10, 25, random_state=3)
    np.testing.assert_array_equal(first_anchors(10, 4, random_state=3), many[:4])
    np.testing.assert_array_equal(np.bincount(many[:20]), 2)


def test_what_float32_cannot_tell_from_zero_is_not_inverted():
    anchors = np.array([[1, 0, 0], [0, 1, 0], [1, 1e-9, 0]])
    inverse, condition = invert(anchors)
    assert condition == np.inf
    np.testing.assert_allclose(inverse, np.linalg.pinv(anchors.T, rcond=1e-6), atol=1e-6)


def test_fewer_anchors_than_dimensions_reach_their_span_only(X):
    inverse = InverseRelativeProjection(**ALL_KEPT).fit(X[:6], X[:6])
    assert inverse.rank_ == 5  # six points around their mean
    assert cosines(inverse, X[6:], X[6:]).mean() < 0.8
    np.testing.assert_allclose(cosines(inverse, X[:6], X[:6]), 1, atol=1e-4)


def test_a_row_at_the_mean_becomes_the_mean(X, Y):
    inverse = fitted(X, Y)
    np.testing.assert_array_equal(inverse.transform(inverse.source_mean_[None]), inverse.target_mean_[None])


def test_recovered_by_hand():
    found, true = np.array([[2.0, 1], [1, 3], [1, 1]]), np.array([[3.0, 1], [3, 1], [1, 1]])
    table = recovered(found, true, np.array([1, 1]))
    np.testing.assert_allclose(table["cosine"], [1, 0, 0])
    np.testing.assert_allclose(table["error"], [0.5, np.sqrt(2), 0])


def test_the_grid_is_what_single_inversions_give(X, Y):
    split = Split.held_out([f"r{row}" for row in range(N)], np.arange(K))
    grid = inversion_grid(X, Y, split, deltas=(0.4, 0.6), omegas=(1, 4), random_state=5)
    assert list(zip(grid["delta"], grid["omega"], strict=True)) == [(0.4, 1), (0.4, 4), (0.6, 1), (0.6, 4)]
    for cell in grid.itertuples():
        inverse = InverseRelativeProjection(omega=cell.omega, delta=cell.delta, random_state=5)
        inverse.fit(X[:K], Y[:K], source_mean=X.mean(axis=0), target_mean=Y.mean(axis=0))
        assert cell.cosine == pytest.approx(cosines(inverse, X, Y)[K:].mean(), abs=1e-5)
        assert cell.condition == pytest.approx(inverse.condition_numbers_.mean(), rel=1e-4)
        assert cell.kept == np.mean([len(kept) for kept in inverse.kept_])


def test_the_grid_leaves_a_gap_where_one_anchor_is_left(X, Y):
    split = Split.held_out([f"r{row}" for row in range(N)], np.arange(K))
    grid = inversion_grid(X, Y, split, deltas=(0.5, 1.0), omegas=(2,))
    assert grid["cosine"].isna().tolist() == [False, True]
    assert grid["kept"].tolist()[1] == 1


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
        ({}, np.ones(4), np.ones(4), r"source_anchors: expected a matrix \(n, d\) .* got shape \(4,\)"),
        (
            {},
            np.ones((4, 3)),
            np.eye(4),
            "expected points that differ in the source space, got 4 times the same one",
        ),
        ({}, LINE, np.eye(8), "expected several directions in the source space, got 8 anchors on one line"),
        ({}, np.eye(8), LINE, "expected several directions in the target space, got 8 anchors on one line"),
        (
            {},
            np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0, 0]]),
            np.eye(5),
            "number 4 lies at the mean of the source space",
        ),
        ({"delta": 1.0}, None, None, "two or more anchors stay, got 1; lower it"),
        ({"delta": 1.1}, None, None, "delta: expected a distance 0 … 1, got 1.1"),
        ({"delta": np.nan}, None, None, "delta: expected a distance 0 … 1, got nan"),
        ({"omega": 0}, None, None, "omega: expected a whole number of prunings, 1 or more, got 0"),
        ({"omega": 2.5}, None, None, "omega: expected a whole number of prunings, 1 or more, got 2.5"),
        ({"ridge": 0}, None, None, "ridge: expected a number above 0, got 0"),
        ({"method": "exact"}, None, None, "method: expected one of pruned, ridge, whitened, got 'exact'"),
    ],
)
def test_fit_refuses(X, Y, settings, source, target, message):
    with pytest.raises(SpaceError, match=message):
        InverseRelativeProjection(**settings).fit(
            X[:K] if source is None else source, Y[:K] if target is None else target
        )


def test_widths_are_checked(X, Y):
    inverse = fitted(X, Y)
    with pytest.raises(SpaceError, match=f"expected rows of width {D} as in fit, got {Y.shape[1]}"):
        inverse.transform(Y)
    with pytest.raises(SpaceError, match=f"expected rows of width {K} as in fit"):
        inverse.inverse_transform(X)
    with pytest.raises(SpaceError, match=f"source_mean: expected a vector of width {D}"):
        inverse.fit(X, Y, source_mean=np.zeros(3))
    with pytest.raises(SpaceError, match="expected recovered and true rows of one shape"):
        recovered(X, Y, 0)
