"""CKA and mean cosine against their definitions, their nulls against all permutations there are."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import beta, pearson3, skew
from sklearn.metrics.pairwise import cosine_similarity

from relcore.base.errors import SpaceError
from relcore.scores.cka import SAMPLED_ROWS, linear_cka, mean_cosine

Z95 = 1.959963984540054


def sd(null):
    """Of a normal band."""
    return (null.high - null.mean) / Z95


def all_scores(X, Y):
    """CKA of X with every permutation of the rows of Y."""
    K, L = gram(X), gram(Y)
    scale = np.sqrt(np.sum(K * K) * np.sum(L * L))
    orders = map(list, permutations(range(len(X))))
    return np.array([np.sum(K * L[np.ix_(order, order)]) for order in orders]) / scale


@pytest.fixture
def pair(rng):
    X = rng.normal(size=(120, 6))
    return X + 2, X @ rng.normal(size=(6, 9)) + rng.normal(size=(120, 9)) - 1


def gram(X):
    X = X - X.mean(axis=0)
    return X @ X.T


def cka_by_grams(X, Y):
    K, L = gram(X), gram(Y)
    return np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L))


def unbiased_hsic(K, L):
    """Song et al. 2012, eq. 5."""
    n = len(K)
    K, L = K - np.diag(np.diag(K)), L - np.diag(np.diag(L))
    return (
        np.sum(K * L) + K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * K.sum(axis=0) @ L.sum(axis=0)
    ) / (n * (n - 3))


def debiased_by_grams(X, Y):
    K, L = X @ X.T, Y @ Y.T  # uncentred: the U-statistic needs no centring
    return unbiased_hsic(K, L) / np.sqrt(unbiased_hsic(K, K) * unbiased_hsic(L, L))


def test_it_is_the_alignment_of_the_gram_matrices(pair):
    assert linear_cka(*pair) == pytest.approx(cka_by_grams(*pair), rel=1e-6)


def test_debiased_is_the_u_statistic_of_the_gram_matrices(pair):
    assert linear_cka(*pair, debiased=True) == pytest.approx(debiased_by_grams(*pair), rel=1e-5)


def test_scores_know_what_they_are(pair):
    biased, debiased = linear_cka(*pair), linear_cka(*pair, debiased=True)
    assert (biased.metric, biased.convention, biased.n, biased.k) == ("cka", "linear", 120, None)
    assert debiased.convention == "debiased"
    cosine = mean_cosine(pair[0], pair[0])
    assert (cosine.metric, cosine.n) == ("cosine", 120)


@pytest.mark.parametrize("debiased", [False, True])
def test_rotation_scale_and_shift_change_nothing_and_other_linear_maps_do(pair, rng, debiased):
    X, Y = pair
    turn = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    assert linear_cka(X, 5 * Y @ turn + 3, debiased=debiased) == pytest.approx(
        linear_cka(X, Y, debiased=debiased), abs=1e-5
    )
    assert linear_cka(X, X @ np.diag([9, 1, 1, 1, 1, 1]), debiased=debiased) < 0.9


@pytest.mark.parametrize("debiased", [False, True])
def test_a_space_against_itself_is_one_and_the_order_of_spaces_is_nothing(pair, debiased):
    X, Y = pair
    assert linear_cka(X, X, debiased=debiased) == pytest.approx(1)
    assert linear_cka(X, Y, debiased=debiased) == pytest.approx(linear_cka(Y, X, debiased=debiased))


def test_blocks_leave_no_seam(rng):
    X = rng.normal(size=(9000, 5)).astype(np.float32)
    Y = (X + rng.normal(size=(9000, 5))).astype(np.float32)
    A, B = (Z - Z.mean(axis=0, dtype=np.float64) for Z in (X, Y))
    expected = np.sum((A.T @ B) ** 2) / np.sqrt(np.sum((A.T @ A) ** 2) * np.sum((B.T @ B) ** 2))
    assert linear_cka(X, Y) == pytest.approx(expected, rel=1e-5)


def test_many_features_look_alike_by_chance_and_debiasing_takes_that_away(rng):
    X, Y = rng.normal(size=(2, 100, 200))
    biased, debiased = linear_cka(X, Y), linear_cka(X, Y, debiased=True)
    assert biased > 0.6
    assert biased.null.low < biased < biased.null.high
    assert abs(debiased) < 0.05
    assert debiased.null.low < debiased < debiased.null.high


@pytest.mark.parametrize(("n", "widths"), [(6, (2, 3)), (7, (3, 2)), (7, (1, 4)), (7, (5, 5)), (8, (1, 1))])
def test_the_null_of_cka_has_the_moments_of_all_permutations(rng, n, widths):
    X, Y = (rng.normal(size=(n, width)) ** 3 for width in widths)  # skewed: the third moments count
    scores, null = all_scores(X, Y), linear_cka(X, Y).null
    gamma = pearson3(skew(scores), loc=scores.mean(), scale=scores.std())
    assert null.n_permutations == 0
    assert null.mean == pytest.approx(scores.mean(), abs=1e-6)
    assert (null.low, null.high) == pytest.approx(gamma.ppf([0.025, 0.975]), rel=1e-3, abs=1e-5)


def test_the_null_of_four_rows_has_mean_and_variance(rng):
    X, Y = rng.normal(size=(2, 4, 2))
    scores, null = all_scores(X, Y), linear_cka(X, Y).null
    assert (null.mean, sd(null)) == pytest.approx((scores.mean(), scores.std()), abs=1e-5)


def test_one_dimension_is_a_squared_correlation_whose_chance_is_beta(rng):
    # r² of unrelated normal samples is Beta(1/2, (n − 2)/2); a symmetric band would end at 1.96 √2 / n + 1 /
    # n = .0377.
    null = linear_cka(rng.normal(size=(100, 1)), rng.normal(size=(100, 1))).null
    assert null.high == pytest.approx(beta(0.5, 49).ppf(0.975), rel=0.03)
    assert null.low == pytest.approx(0, abs=1e-3)


def test_sums_over_a_sample_give_the_skewness_of_all_rows(rng):
    # n > SAMPLED_ROWS: the skewness of unrelated normal spaces of d dimensions is that of χ²(d²), √8 / d.
    X, Y = rng.normal(size=(2, 3 * SAMPLED_ROWS, 4)).astype(np.float32)
    null = linear_cka(X, Y).null
    shape = pearson3(
        np.sqrt(8) / 4,
        loc=null.mean,
        scale=(null.high - null.low) / np.ptp(pearson3(np.sqrt(8) / 4).ppf([0.025, 0.975])),
    )
    assert (null.low, null.high) == pytest.approx(shape.ppf([0.025, 0.975]), rel=0.02)


def test_a_simplex_is_the_same_in_every_order():
    null = linear_cka(np.eye(5), np.random.default_rng(0).normal(size=(5, 3))).null
    assert sd(null) == pytest.approx(0, abs=1e-4)


def test_the_null_of_debiased_cka_is_close_to_that_of_permutations(rng):
    X, Y = rng.normal(size=(60, 5)), rng.normal(size=(60, 8))
    orders = [rng.permutation(60) for _ in range(400)]
    scores = np.array([debiased_by_grams(X, Y[order]) for order in orders])
    null = linear_cka(X, Y, debiased=True).null
    assert null.mean == 0
    assert abs(scores.mean()) < 4 * scores.std() / 20
    assert null.high - null.low == pytest.approx(2 * Z95 * scores.std(), rel=0.15)


def test_mean_cosine_is_the_diagonal_of_scikit_learns(rng):
    X, Y = rng.normal(size=(2, 50, 4)) + 0.3
    assert mean_cosine(X, Y) == pytest.approx(np.diag(cosine_similarity(X, Y)).mean(), abs=1e-6)
    assert mean_cosine(X, 3 * X) == pytest.approx(1, abs=1e-6)
    assert mean_cosine(X, -X) == pytest.approx(-1, abs=1e-6)


def test_mean_cosine_sees_a_rotation_of_one_space_but_not_of_both(rng):
    X, Y = rng.normal(size=(2, 50, 4)) + 0.3
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    assert mean_cosine(X @ turn, Y @ turn) == pytest.approx(mean_cosine(X, Y), abs=1e-6)
    assert abs(mean_cosine(X @ turn, Y) - mean_cosine(X, Y)) > 0.01


@pytest.mark.parametrize(("n", "width"), [(6, 3), (7, 2), (2, 5)])
def test_the_null_of_mean_cosine_is_that_of_all_permutations(rng, n, width):
    X, Y = rng.normal(size=(2, n, width)) + 0.4
    cosines = cosine_similarity(X, Y)
    scores = np.array([cosines[np.arange(n), list(order)].mean() for order in permutations(range(n))])
    null = mean_cosine(X, Y).null
    assert null.mean == pytest.approx(scores.mean(), abs=1e-6)
    assert sd(null) == pytest.approx(scores.std(), rel=1e-4)


def test_one_row_has_a_cosine_but_no_null():
    score = mean_cosine(np.array([[1.0, 0]]), np.array([[1.0, 1]]))
    assert score == pytest.approx(0.5**0.5)
    assert score.null is None


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.eye(5), np.eye(6), r"row-aligned spaces, got 5 and 6 rows; pair them with match\(\)"),
        (np.eye(3), np.eye(3), "expected at least 4 rows, got 3"),
        (np.eye(5), np.ones((5, 2)), "expected spaces with different rows, got one whose rows are all equal"),
    ],
)
def test_cka_refuses(X, Y, message):
    with pytest.raises(SpaceError, match=message):
        linear_cka(X, Y)


def test_cosine_refuses_other_widths():
    with pytest.raises(SpaceError, match=r"row-aligned spaces of one width, got \(5, 2\) and \(5, 3\)"):
        mean_cosine(np.ones((5, 2)), np.ones((5, 3)))
