"""The cost of a cascade without a log, against draws of random rows."""

import numpy as np
import pytest

from relcore.migrate.unlogged import CascadeEstimate


def test_the_expectation_is_that_of_random_rows(rng):
    estimate = CascadeEstimate(n_rows=500, rows_now=100, n_candidates=20, queries_a_day=3)
    counts = []
    for _ in range(200):
        embedded = np.zeros(500, bool)
        embedded[:100] = True
        for _ in range(3 * 4):
            embedded[rng.choice(500, 20, replace=False)] = True
        counts.append(embedded.sum())
    tolerance = 4 * float(np.std(counts)) / len(counts) ** 0.5
    assert float(estimate.expected(4)) == pytest.approx(float(np.mean(counts)), abs=tolerance)
    assert max(counts) <= estimate.most(4) == 100 + 3 * 4 * 20


def test_no_more_than_the_corpus_is_embedded():
    estimate = CascadeEstimate(n_rows=1000, rows_now=300, n_candidates=50, queries_a_day=2)
    days = np.array([0, 1, 7, 365])
    assert estimate.most(days).tolist() == [300, 400, 1000, 1000]
    assert (estimate.expected(days) <= estimate.most(days) + 1e-9).all()
    assert estimate.days_until_half() == 2
    assert "within 2 days" in estimate.describe()
    never = CascadeEstimate(n_rows=10, rows_now=0, n_candidates=50, queries_a_day=0)
    assert float(never.most(365)) == 0 == float(never.expected(365))


def test_the_figure_shows_a_year_of_a_large_corpus_and_the_first_days_of_a_small_one():
    large = CascadeEstimate(n_rows=10**6, rows_now=0, n_candidates=50, queries_a_day=10)
    assert large.draw().table().x.max() == 365
    small = CascadeEstimate(n_rows=1000, rows_now=0, n_candidates=50, queries_a_day=10)
    assert small.draw().table().x.max() == 4  # half of it is embedded within a day
