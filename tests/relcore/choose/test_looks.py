"""When the comparison of models stops, and what it says then."""

import numpy as np
import pytest
from scipy.stats import t

from relcore.choose.looks import LOOKS, lead_of, looks_at, planned_looks


@pytest.mark.parametrize(
    ("n", "planned"),
    [(0, ()), (9, ()), (10, (10,)), (40, (10, 15, 22, 32, 40)), (136, LOOKS), (225, (*LOOKS[:-1], 225))],
)
def test_there_is_no_look_before_ten_queries_and_at_most_eight(n, planned):
    assert planned_looks(n) == planned


def test_the_interval_is_students_with_two_pseudo_differences():
    differences = np.random.default_rng(0).normal(0.02, 0.1, 50)
    found = lead_of(differences, 3)
    values = [*differences, 1, -1]
    half = t.ppf(1 - 0.05 / 8 / 3 / 2, 51) * np.std(values, ddof=1) / np.sqrt(52)
    assert found.value == pytest.approx(differences.mean())
    np.testing.assert_allclose([found.low, found.high], [np.mean(values) - half, np.mean(values) + half])


def test_ten_equal_queries_decide_nothing():
    (look,) = looks_at(np.full((10, 2), 0.5), 0.05, LOOKS)
    assert not look.decided
    assert look.more > 10


@pytest.mark.parametrize("n_models", [2, 3])
def test_equal_models_are_at_most_epsilon_behind_after_many_queries(n_models):
    scores = np.repeat(np.random.default_rng(0).random((136, 1)), n_models, axis=1)
    last = looks_at(scores, 0.05, LOOKS)[-1]
    assert (last.decided, last.is_ahead) == (True, False)
    assert last.n >= 46


def test_a_much_better_model_is_best_at_the_first_look_and_later_queries_do_not_count():
    scores = np.zeros((136, 3))
    scores[:, 1] = 1
    (look,) = looks_at(scores, 0.05, LOOKS)
    assert (look.n, look.best, look.decided, look.is_ahead, look.more) == (10, 1, True, True, 0)
    assert look.leads[1] is None


def test_undecided_says_how_many_more_queries_about():
    rng = np.random.default_rng(0)
    scores = rng.random((600, 2))
    last = looks_at(scores[:136], 0.02, LOOKS)[-1]
    assert not last.decided
    # Differences have a standard deviation of .41. With quantile 2.77, a lead of about 0 needs 3,200 queries.
    assert 300 < last.more < 30_000
    assert len(str(last.more).rstrip("0")) <= 2


def test_no_model_is_chosen_wrongly_more_often_than_the_level_allows():
    """Two models whose scores differ by noise alone, .2 behind the third: neither may be chosen."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(300):
        scores = rng.random((136, 3)) * 0.8
        scores[:, 2] += 0.2
        last = looks_at(scores, 0.05, LOOKS)[-1]
        wrong += last.decided and last.best != 2
    assert wrong <= 300 * 0.05
