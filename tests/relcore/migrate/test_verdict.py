"""The rule on scores made by hand, and the sentence; intervals against the normal ones of the same
differences.
"""

import numpy as np
import pytest

from relcore.migrate.evaluate import Bootstrap
from relcore.migrate.migration import decide, verdict_of
from relcore.scores.score import mean_difference

Q = 400


@pytest.fixture
def base(rng):
    return rng.uniform(0.2, 0.6, Q)


@pytest.fixture
def bootstrap():
    return Bootstrap(Q)


def scores(base, rng, **gains):
    return {"keep": base} | {name: base + gain + rng.normal(0, 0.05, Q) for name, gain in gains.items()}


@pytest.mark.parametrize(
    ("gains", "option"),
    [
        ({"bridge": -0.1, "twice": 0.0, "re-embed": 0.0}, "keep"),
        ({"bridge": 0.1, "twice": 0.1, "re-embed": 0.1}, "bridge"),
        ({"bridge": -0.1, "twice": 0.1, "re-embed": 0.1}, "twice"),
        ({"bridge": 0.1, "twice": 0.15, "re-embed": 0.3}, "re-embed"),
        ({"bridge": -0.1, "twice": -0.1, "re-embed": 0.3}, "re-embed"),
        ({"bridge": 0.1, "twice": 0.1}, "bridge"),
    ],
)
def test_the_next_dearer_option_only_where_it_is_clearly_better(base, rng, bootstrap, gains, option):
    assert decide(scores(base, rng, **gains), bootstrap)[0] == option


def test_a_gain_must_be_worth_it(base, rng, bootstrap):
    found = scores(base, rng, bridge=0.03, twice=0.0)
    assert decide(found, bootstrap, worth=0.02)[0] == "bridge"
    assert decide(found, bootstrap, worth=0.04)[0] == "keep"


def test_equal_options_are_rarely_told_apart(rng):
    """Negative control: four options of one quality; three comparisons with 2.5 % above each."""
    moved = 0
    for _ in range(200):
        shared = rng.uniform(size=100)
        found = {name: shared + rng.normal(0, 0.1, 100) for name in ("keep", "bridge", "twice", "re-embed")}
        moved += decide(found, Bootstrap(100, draws=500))[0] != "keep"
    assert moved / 200 < 0.075 + 3 * np.sqrt(0.075 * 0.925 / 200)


def test_intervals_are_those_of_the_normal_approximation(base, rng, bootstrap):
    now = base + rng.normal(0.02, 0.1, Q)
    found, wanted = bootstrap.difference(now, base), mean_difference(base, now)
    assert found.value == pytest.approx(wanted.value, abs=1e-6)
    # Percentiles of 2,000 draws have a standard error of about .06 standard errors of the mean, which is
    # .005.
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=0.001)
    ratio = bootstrap.ratio(2 * base, base)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2, 2, 2), abs=1e-4)


def test_the_sentence_has_every_number(base, bootstrap):
    found = {"keep": base, "bridge": base - 0.1, "twice": base + 0.05, "re-embed": base + 0.01}
    told = verdict_of(found, bootstrap, k=10, on="400 queries", truth="by the judgements").sentence
    keep, twice = base.mean(), base.mean() + 0.05
    assert told.startswith(
        "Query both models: search the old vectors with both and add the scores: by the judgements,"
        " nDCG@10 is "
    )
    assert f"{keep:.3f}"[1:] in told
    assert f"{twice:.3f}"[1:] + " when both models search (+.050, 95 %: .050 … .050)" in told
    assert told.endswith("; 400 queries.")
