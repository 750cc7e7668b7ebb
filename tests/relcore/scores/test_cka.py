"""CKA and mean cosine against their definitions, their nulls against all permutations there are."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import betaprime, invgamma, pearson3, skew
from sklearn.metrics.pairwise import cosine_similarity

from relcore.scores.cka import _low_end, linear_cka, mean_cosine

Z95 = 1.959963984540054


def sd(null):
    return (null.high - null.mean) / Z95


def all_scores(X, Y):
    K = gram(X)
    L = gram(Y)
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
    K = gram(X)
    L = gram(Y)
    return np.sum(K * L) / np.sqrt(np.sum(K * K) * np.sum(L * L))


def unbiased_hsic(K, L):
    n = len(K)
    K = K - np.diag(np.diag(K))
    L = L - np.diag(np.diag(L))
    return (
        np.sum(K * L) + K.sum() * L.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * K.sum(axis=0) @ L.sum(axis=0)
    ) / (n * (n - 3))


def debiased_by_grams(X, Y):
    # uncentred: the U-statistic needs no centring
    K = X @ X.T
    L = Y @ Y.T
    return unbiased_hsic(K, L) / np.sqrt(unbiased_hsic(K, K) * unbiased_hsic(L, L))


def test_it_is_the_alignment_of_the_gram_matrices(pair):
    assert linear_cka(*pair) == pytest.approx(cka_by_grams(*pair), rel=1e-6)


def test_debiased_is_u_statistic_of_gram_matrices(pair):
    assert linear_cka(*pair, debiased=True) == pytest.approx(debiased_by_grams(*pair), rel=1e-5)


def test_many_features_look_alike_by_chance_and_debiasing_takes_that_away(rng):
    X, Y = rng.normal(size=(2, 100, 200))
    biased = linear_cka(X, Y)
    debiased = linear_cka(X, Y, debiased=True)
    assert biased > 0.6
    assert biased.null.low < biased < biased.null.high
    assert abs(debiased) < 0.05
    assert debiased.null.low < debiased < debiased.null.high


@pytest.mark.parametrize(("n", "widths"), [(6, (2, 3)), (7, (1, 4)), (8, (1, 1))])
def test_null_of_cka_has_moments_of_all_permutations(rng, n, widths):
    X, Y = (rng.normal(size=(n, width)) ** 3 for width in widths)  # skewed: the third moments count
    scores = all_scores(X, Y)
    null = linear_cka(X, Y).null
    pearson = pearson3(skew(scores), loc=scores.mean(), scale=scores.std())
    assert null.n_permutations == 0
    assert null.mean == pytest.approx(scores.mean(), abs=1e-6)
    assert null.high == pytest.approx(pearson.ppf(0.975), rel=1e-3, abs=1e-5)
    assert 0 <= null.low <= np.quantile(scores, 0.03) + 1e-9


@pytest.mark.parametrize("law", [betaprime(0.7, 9, scale=2), betaprime(8, 5, scale=0.1), invgamma(9)])
def test_low_end_is_that_of_distribution_from_zero_with_these_moments(law):
    mean, variance, skewness = law.stats("mvs")
    above = 1.0 + (law.dist.name == "invgamma")  # beyond the F distributions
    assert _low_end(mean, variance, above * skewness) == pytest.approx(law.ppf(0.025), rel=1e-5)


KINDS = {
    "normal": lambda rng, n: rng.normal(size=(n, 5)),
    "one dimension": lambda rng, n: rng.normal(size=(n, 1)),
    "log-normal": lambda rng, n: np.exp(rng.normal(size=(n, 5))),
    "heavy tails": lambda rng, n: rng.standard_t(3, size=(n, 5)),
    "clusters": lambda rng, n: np.eye(5)[rng.integers(5, size=n)] + 0.1 * rng.normal(size=(n, 5)),
    "few long axes": lambda rng, n: rng.normal(size=(n, 9)) / np.arange(1, 10),
}


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_few_permutations_lie_beyond_either_end_of_band(rng, kind, n):
    outside = np.zeros(2)
    for _ in range(8):
        X = KINDS[kind](rng, n)
        Y = KINDS[kind](rng, n)
        null = linear_cka(X, Y).null
        X = X - X.mean(axis=0)
        Y = Y - Y.mean(axis=0)
        scale = np.linalg.norm(X.T @ X) * np.linalg.norm(Y.T @ Y)
        scores = np.array([np.sum((X.T @ Y[rng.permutation(n)]) ** 2) for _ in range(200)]) / scale
        outside += np.mean(scores < null.low), np.mean(scores > null.high)
    # .025 has a standard error of .004; with Pearson III at both ends .07 to .4 lay below where rows are skewed
    assert (outside / 8 < 0.045).all()
    assert outside[1] / 8 > 0.008


def test_null_of_debiased_cka_is_close_to_that_of_permutations(rng):
    X = rng.normal(size=(60, 5))
    Y = rng.normal(size=(60, 8))
    orders = [rng.permutation(60) for _ in range(400)]
    scores = np.array([debiased_by_grams(X, Y[order]) for order in orders])
    null = linear_cka(X, Y, debiased=True).null
    assert null.mean == 0
    assert abs(scores.mean()) < 4 * scores.std() / 20
    assert null.high - null.low == pytest.approx(2 * Z95 * scores.std(), rel=0.15)


def test_mean_cosine_is_diagonal_of_scikit_learns(rng):
    X, Y = rng.normal(size=(2, 50, 4)) + 0.3
    assert mean_cosine(X, Y) == pytest.approx(np.diag(cosine_similarity(X, Y)).mean(), abs=1e-6)
    assert mean_cosine(X, 3 * X) == pytest.approx(1, abs=1e-6)
    assert mean_cosine(X, -X) == pytest.approx(-1, abs=1e-6)


@pytest.mark.parametrize(("n", "width"), [(6, 3), (2, 5)])
def test_null_of_mean_cosine_is_that_of_all_permutations(rng, n, width):
    X, Y = rng.normal(size=(2, n, width)) + 0.4
    cosines = cosine_similarity(X, Y)
    scores = np.array([cosines[np.arange(n), list(order)].mean() for order in permutations(range(n))])
    null = mean_cosine(X, Y).null
    assert null.mean == pytest.approx(scores.mean(), abs=1e-6)
    assert sd(null) == pytest.approx(scores.std(), rel=1e-4)
