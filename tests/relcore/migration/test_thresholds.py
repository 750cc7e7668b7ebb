"""Thresholds: a known map of scores is found again, what passes is kept, and scores that tell nothing are refused."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from relcore.migration.thresholds import ScoreMap, ScorePairs, ks_distance, restore_threshold, score_pairs
from relcore.spaces import SpaceError


def drawn(noise, n_queries=200, per_query=20, state=0):
    """Old scores, and new ones that are a monotone function of them, with noise."""
    rng = np.random.default_rng(state)
    old = rng.beta(4, 3, n_queries * per_query)
    new = 0.5 + 0.4 * old**2 + noise * rng.normal(size=len(old))
    return ScorePairs(np.repeat(np.arange(n_queries), per_query), old, new)


def test_a_monotone_change_of_scores_is_undone():
    outcome = restore_threshold(drawn(noise=0), 0.6)
    assert outcome.ks_before > 0.3
    assert outcome.ks_after < 0.073  # fitted and judged on four samples of 2,000 scores: 1.63 · √(4 / 2,000)
    assert outcome.new_threshold == pytest.approx(0.5 + 0.4 * 0.36, abs=0.005)
    assert outcome.error_before > 0.15
    assert outcome.error_after < 0.01
    assert outcome.change.high < 0
    assert outcome.n_fitted == outcome.n_queries == 100


def test_as_many_pass_as_before_though_scores_are_noisy():
    outcome = restore_threshold(drawn(noise=0.05), 0.5)
    assert outcome.accepted_after == pytest.approx(outcome.accepted_old, abs=0.03)  # 2 · √(.25 · 2 / 2,000)
    assert outcome.beats_chance
    assert outcome.error_after < outcome.error_before


def test_scores_paired_at_random_are_no_better_than_chance():
    below = 0
    for state in range(20):
        pairs = drawn(noise=0, n_queries=40, state=state)
        shuffled = np.random.default_rng(state).permutation(pairs.new)
        outcome = restore_threshold(ScorePairs(pairs.query, pairs.old, shuffled), 0.6)
        below += outcome.beats_chance
        assert outcome.ks_after < 0.2  # 2 · √(4 / 400): the distribution is restored all the same
    assert below <= 3  # 2.5 % of 20 draws


def test_unchanged_scores_stay_as_they_are():
    pairs = drawn(noise=0)
    outcome = restore_threshold(ScorePairs(pairs.query, pairs.old, pairs.old), 0.6)
    assert outcome.ks_before == outcome.error_before == 0
    assert outcome.error_after < 0.02


def test_the_distance_of_distributions_is_scipys():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=300), rng.normal(0.3, size=500).round(1)
    assert ks_distance(first, second) == pytest.approx(ks_2samp(first, second).statistic)


def test_the_new_threshold_of_a_mapped_score_is_that_score():
    found = ScoreMap.fit(np.linspace(0.2, 0.9, 50), np.linspace(0, 1, 50) ** 2)
    for old in (0.05, 0.4, 0.93):
        assert found(np.array([found.threshold(old)]))[0] == pytest.approx(old)
    assert found.threshold(1.1) == np.inf
    assert found.threshold(-1) == pytest.approx(0.2)


def test_scores_are_of_the_nearest_rows_of_either_system_and_never_of_the_query_itself():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(30, 5)), rng.normal(size=(30, 7))
    own = np.arange(30)
    pairs = score_pairs((old, old), (new, new), own, k=3)
    assert np.bincount(pairs.query).min() >= 3
    assert np.bincount(pairs.query).max() <= 6
    assert max(pairs.old.max(), pairs.new.max()) < 1 - 1e-6
    cosines = (old / np.linalg.norm(old, axis=1)[:, None]) @ (old / np.linalg.norm(old, axis=1)[:, None]).T
    np.fill_diagonal(cosines, -2)
    best = [pairs.old[pairs.query == query].max() for query in range(30)]
    np.testing.assert_allclose(best, cosines.max(axis=1), atol=1e-6)


@pytest.mark.parametrize(("threshold", "n_queries", "told"), [(1.5, 40, "a cosine"), (0.5, 19, "20 queries or more, got 19")])
def test_what_cannot_be_judged_is_refused(threshold, n_queries, told):
    with pytest.raises(SpaceError, match=told):
        restore_threshold(drawn(0, n_queries), threshold)


def test_a_map_needs_scores_that_differ():
    with pytest.raises(SpaceError, match="two scores or more that differ"):
        ScoreMap.fit(np.ones(5), np.arange(5))
