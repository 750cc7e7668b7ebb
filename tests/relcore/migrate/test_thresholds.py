"""Thresholds: a known map of scores is found again, what passes is kept, and scores that tell nothing are
refused.
"""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from relcore.migrate.measurements import ScorePairs, ks_distance, restore_threshold


def drawn(noise, n_queries=200, per_query=20, state=0):
    rng = np.random.default_rng(state)
    old = rng.beta(4, 3, (n_queries, per_query))
    return ScorePairs(old, 0.5 + 0.4 * old**2 + noise * rng.normal(size=old.shape))


def test_a_monotone_change_of_scores_is_undone():
    outcome = restore_threshold(drawn(noise=0), 0.6)
    assert outcome.ks_before > 0.3
    assert outcome.ks_after < 0.073  # fitted and judged on four samples of 2,000 scores: 1.63 · √(4 / 2,000)
    assert outcome.new_threshold == pytest.approx(
        0.5 + 0.4 * 0.36, abs=0.01
    )  # 2 standard errors of a median of 2,000
    assert outcome.error_before > 0.15
    assert outcome.error_after < 0.05
    assert outcome.change.high < 0
    assert outcome.change.value == pytest.approx(outcome.error_after - outcome.error_before)
    assert outcome.n_fitted == outcome.n_queries == 100


def test_the_distance_of_distributions_is_scipys():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=300), rng.normal(0.3, size=500).round(1)
    assert ks_distance(first, second) == pytest.approx(ks_2samp(first, second).statistic)
