"""Score is a number with circumstances; intervals and bands by their formulas."""

import copy
import json
import pickle

import numpy as np
import pytest

from relcore.scores.score import ChanceLevel, Score, sampling_interval

NULL = ChanceLevel(0.01, 0.0, 0.02, 50)
FACTS = {"metric": "jaccard", "k": 10, "convention": "paper", "n_queries": 4000, "interval": (0.29, 0.31)}
SCORE = Score(0.301, n=20_000, null=NULL, **FACTS)


def circumstances(score):
    names = ("metric", "convention", "k", "n", "n_queries", "interval", "null")
    return [float(score), *(getattr(score, name) for name in names)]


@pytest.mark.parametrize("score", [SCORE, Score(1, metric="cka", n=7)], ids=["full", "bare"])
@pytest.mark.parametrize(
    "travel",
    [
        lambda score: Score.from_record(json.loads(json.dumps(score.to_record()))),
        lambda score: pickle.loads(pickle.dumps(score)),  # as between the processes of a job
        copy.deepcopy,
    ],
    ids=["json", "process", "copy"],
)
def test_circumstances_travel_with_the_number(score, travel):
    assert circumstances(travel(score)) == circumstances(score)


@pytest.mark.parametrize(
    ("score", "text"),
    [
        (SCORE, "jaccard .301 (k = 10, 4,000 of n = 20,000; chance .000 … .020)"),
        (
            Score(0.9, metric="mrr", n=50, k=1, null=ChanceLevel(0.0001, 0, 0.0004)),
            "mrr .900 (k = 1, n = 50; chance .00000 … .00040)",
        ),
    ],
)
def test_it_describes_itself(score, text):
    assert score.describe() == text


def test_the_band_is_1_96_deviations_wide():
    null = ChanceLevel.from_moments(0.2, 0.01**2, 7)
    assert (null.mean, null.n_permutations) == (0.2, 7)
    assert (null.low, null.high) == pytest.approx((0.2 - 0.0196, 0.2 + 0.0196), abs=1e-6)


def test_the_interval_shrinks_with_the_rows_that_are_left():
    values = np.array([0.0, 1.0, 1.0, 0.0])
    reach = 1.959964 * 0.5 * np.sqrt((1 - 4 / 16) / 8)
    assert sampling_interval(values, 16) == pytest.approx((0.5 - reach, 0.5 + reach))
    assert sampling_interval(values, 4) is None
    assert sampling_interval(values[:1], 16) is None


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5, 0.9, 0.99])
def test_the_interval_holds_the_mean_in_95_of_100_samples_also_near_the_ends(rng, share):
    population = (rng.random(20_000) < share) * rng.random(20_000) ** 0.2
    held = 0
    for _ in range(1000):
        low, high = sampling_interval(rng.choice(population, 300, replace=False), 20_000)
        held += low <= population.mean() <= high
    assert held > 950 - 28  # four standard errors
