import numpy as np
import pytest
import scipy.stats

from relcore.scores.estimate import correlation
from relcore.studies.estimates import mean, mean_score, share, slope


@pytest.fixture
def pairs(rng):
    x = rng.normal(size=40)
    return x, 0.7 * x + rng.normal(size=40)


def test_pearson_and_its_interval_are_scipys(pairs):
    found = correlation(*pairs)
    expected = scipy.stats.pearsonr(*pairs)
    numbers = expected.statistic, *expected.confidence_interval()
    assert (found.value, found.low, found.high) == pytest.approx(numbers)
    assert found.n == 40


def test_spearman_is_scipys_and_its_interval_holds_truth_as_often_as_it_says(pairs, rng):
    assert correlation(*pairs, "spearman").value == pytest.approx(scipy.stats.spearmanr(*pairs).statistic)
    draws = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=(400, 50))
    truth = 6 / np.pi * np.arcsin(0.3)
    held = [(found := correlation(*one.T, "spearman")).low <= truth <= found.high for one in draws]
    assert np.mean(held) == pytest.approx(0.95, abs=0.03)


def test_too_little_has_no_interval_and_constant_no_correlation():
    assert np.isnan(correlation([1, 2, 3], [1, 2, 4]).low)
    assert np.isnan(correlation([1, 1, 1, 1, 1], [1, 2, 3, 4, 5]).value)
    assert correlation([1, 2, 3, np.nan], [1, 2, 3, 4]).n == 3


def test_mean_has_students_interval(pairs):
    x = pairs[0]
    low, high = scipy.stats.t.interval(0.95, 39, x.mean(), scipy.stats.sem(x))
    assert (mean(x).low, mean(x).high) == pytest.approx((low, high))
    assert mean([*x, np.nan]) == mean(x)
    assert np.isnan(mean([1.0]).low)
    reach = scipy.stats.t.ppf(1 - 0.025 / 6, 39) * scipy.stats.sem(x)
    assert mean(x, among=6).high == pytest.approx(x.mean() + reach), "Bonferroni's for six"


def test_a_mean_score_stays_where_scores_are():
    scores = [0.8, 1.0, 1.0]
    assert (mean_score(scores).low, mean_score(scores).high) == (mean(scores).low, 1.0)
    assert mean_score([0.0, 0.1]).low == 0
    assert mean_score([-0.9, 0.1]).low == -1
    assert mean_score([5, 9]) == mean([5, 9])


def test_slope_and_its_interval_are_those_of_least_squares(rng):
    x = rng.normal(size=30)
    y = 2 * x + rng.normal(size=30)
    found = slope(x, y)
    design = np.column_stack([np.ones(30), x])
    (_, expected), residual, *_ = np.linalg.lstsq(design, y, rcond=None)
    error = np.sqrt(residual[0] / 28 * np.linalg.inv(design.T @ design)[1, 1])
    assert found.value == pytest.approx(expected)
    student = scipy.stats.t.ppf(0.975, 28)
    assert found.high - found.value == pytest.approx(student * error, rel=1e-4)
    assert not slope([1, 2], [1, 2]).has_interval
    assert not slope([1, 1, 1], [1, 2, 3]).has_interval
    assert slope([0, 1, 2, np.nan], [0, 3, 6, 1]).value == pytest.approx(3)


def test_share_has_wilsons_interval():
    for successes, n in ((0, 12), (6, 12), (12, 12), (3, 40)):
        found = share(np.arange(n) < successes)
        oracle = scipy.stats.binomtest(successes, n).proportion_ci(method="wilson")
        assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=1e-9)
    assert not share([]).has_interval
