"""The rule that recommends an option, its sentences, and the intervals behind it."""

import numpy as np
import pytest

from relcore.base.numbers import short
from relcore.migrate.cross_fitting import QueryScores, Resampling
from relcore.migrate.price import Need, Price
from relcore.migrate.verdict import contradicts, decide, verdict_of

Q = 400
SETTINGS = {"k": 10, "on": "400 queries", "weight": 0.5}


@pytest.fixture
def base(rng):
    return rng.uniform(0.2, 0.6, Q)


@pytest.fixture
def resampling():
    return Resampling(Q)


def after(base, gain, spread):
    """Scores with exactly this mean gain, which varies by `spread` between queries."""
    noise = np.random.default_rng(int(1000 * spread)).normal(0, spread, Q)
    return QueryScores(base + gain + noise - noise.mean())


@pytest.mark.parametrize(
    ("gains", "option"),
    [
        ({"bridge": -0.1, "twice": 0.0, "re-embed": 0.0}, "keep"),
        ({"bridge": 0.1, "twice": 0.1, "re-embed": 0.1}, "bridge"),
        ({"bridge": -0.1, "twice": 0.1, "re-embed": 0.1}, "twice"),
        ({"bridge": 0.1, "twice": 0.15, "re-embed": 0.3}, "re-embed"),
    ],
)
def test_a_more_expensive_option_is_chosen_only_if_it_is_clearly_better(base, rng, resampling, gains, option):
    scores = {name: QueryScores(base + gain + rng.normal(0, 0.05, Q)) for name, gain in gains.items()}
    assert decide({"keep": QueryScores(base)} | scores, resampling)[0] == option


def test_keep_is_clear_where_no_more_expensive_option_can_gain_a_hundredth(base, resampling):
    found = {"keep": QueryScores(base), "bridge": after(base, -0.008, 0.066)}
    found |= {"twice": after(base, 0, 0.01), "re-embed": after(base, -0.017, 0.09)}
    assert decide(found, resampling) == ("keep", ())
    told = verdict_of(found, resampling, **SETTINGS, relevance="judgements").sentence
    assert told.startswith("Keep the old model, nothing is better by .01 or more: ")
    # With an interval of ± .02, another option may be better.
    assert decide(found | {"twice": after(base, 0, 0.2)}, resampling) == ("keep", ("twice",))


def test_equal_options_are_rarely_told_apart(rng):
    """Negative control: four options of one quality; three comparisons with 2.5 % above each."""
    moved = 0
    for _ in range(100):
        shared = rng.uniform(size=100)
        names = ("keep", "bridge", "twice", "re-embed")
        found = {name: QueryScores(shared + rng.normal(0, 0.1, 100)) for name in names}
        moved += decide(found, Resampling(100, draws=500))[0] != "keep"
    assert moved / 100 < 0.075 + 3 * np.sqrt(0.075 * 0.925 / 100)


@pytest.mark.parametrize(
    ("option", "other", "gain", "refuted"),
    [
        ("keep", "re-embed", 0.005, False),  # the verdict says that nothing gains .01
        ("keep", "re-embed", 0.05, True),
        ("re-embed", "keep", 0.005, True),  # the cheaper option is better
        ("re-embed", "keep", -0.05, False),
    ],
)
def test_other_queries_refute_a_verdict_by_what_it_promised(base, resampling, option, other, gain, refuted):
    scores = {option: QueryScores(base), other: after(base, gain, 0.001)}
    assert contradicts(option, scores, resampling) == refuted


def test_draws_of_the_pairs_add_their_variance(base, rng):
    """The percentiles of 2,000 draws have an error of 2 to 3 % of the interval's width."""
    resampling = Resampling(Q, splits=10)
    moved = rng.normal(0, 0.01, 10)
    found = resampling.mean(QueryScores(base, moved))
    error = np.sqrt(base.var() / Q + np.mean(moved**2))
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.06)
    same = resampling.difference(QueryScores(base + 0.1, moved), QueryScores(base, moved))
    assert same.low > 0.08, "what moves both options alike does not move their difference"


def test_what_a_resample_chooses_belongs_to_that_resample(base, rng):
    """If a choice adds other scores, the interval is that of the sums, not of independent deviations."""
    resampling = Resampling(Q)
    others = base + rng.normal(0, 0.05, Q)
    chosen = resampling.counts @ (others - others.mean()) / Q
    found = resampling.mean(QueryScores(base / 4, chosen=chosen / 4))
    sums = resampling.mean(QueryScores((base + others) / 4))
    assert found.high - found.value == pytest.approx(sums.high - sums.value, abs=1e-6)
    assert found.value - found.low == pytest.approx(sums.value - sums.low, abs=1e-6)


def test_intervals_of_few_queries_cover_the_mean(rng):
    """Student's t for means of ten: 95 %, three standard errors of 400 draws below."""
    draws = [Resampling(10, draws=500).mean(QueryScores(rng.uniform(size=10))) for _ in range(400)]
    assert np.mean([one.low <= 0.5 <= one.high for one in draws]) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 400)


def test_no_interval_is_without_width():
    all_found = QueryScores(np.ones(100))
    resampling = Resampling(100)
    sure = resampling.mean(all_found)
    equal = resampling.difference(all_found, all_found)
    # None of 100: the exact interval of a share ends at 1 − .025^(1/100).
    assert (sure.low, sure.high) == pytest.approx((0.9638, 1), abs=1e-4)
    assert (equal.low, equal.high) == pytest.approx((-0.0362, 0.0362), abs=1e-4)


def test_the_sentence_has_the_recommendation_and_every_number(base, resampling):
    gains = {"keep": 0, "bridge": -0.1, "twice": 0.05, "re-embed": 0.01}
    samples = {name: QueryScores(base + gain) for name, gain in gains.items()}
    told = verdict_of(samples, resampling, **SETTINGS, relevance="judgements").sentence
    keep, twice = (short(base.mean() + gain) for gain in (0, 0.05))
    assert told.startswith(f"Query both models: by the judgements, nDCG@10 is {keep} with the old model")
    assert f"{twice} when both models search, with the new model's score counted .50 × (+.050, 95 %" in told
    even = {"keep": QueryScores(base), "bridge": after(base, 0, 0.3)}
    undecided = verdict_of(even, resampling, **SETTINGS, relevance="labels")
    assert undecided.sentence.startswith(
        "Undecided, keep the old model for now (bridging is too close to call): "
    )
    assert undecided.headline.endswith(": on 400 queries, not clearly different from keeping the old model.")
    same = dict.fromkeys(samples, QueryScores(np.full(Q, 0.996)))
    for scores, reason in ((samples, "pairs alone cannot tell"), (same, "both models find the same rows")):
        unjudged = verdict_of(scores, resampling, **SETTINGS, relevance="neighbours")
        assert (unjudged.option, unjudged.is_clear) == ("", False)
        assert unjudged.sentence.startswith(f"No verdict: {reason}")


def test_the_headline_says_what_to_do_and_that_the_new_model_alone_finds_less(base, resampling):
    """Both models gain .05, a bridge .025 ± .03, and the new model alone loses .1."""
    samples = {"keep": QueryScores(base), "bridge": after(base, 0.025, 0.3)}
    samples |= {"twice": after(base, 0.05, 0.05), "re-embed": after(base, -0.1, 0.05)}
    told = verdict_of(samples, resampling, **SETTINGS, relevance="judgements")
    assert (told.option, told.is_clear) == ("twice", False)
    answer, quality, harm, close = told.headline.split(". ")
    assert answer == "Query both models, do not re-embed"
    keep, twice, new, bridge = (short(base.mean() + gain) for gain in (0, 0.05, -0.1, 0.025))
    assert f"rises from {keep} to {twice} (" in quality
    assert f"finds less: {new} (−" in harm
    assert close.startswith(f"Bridging reaches {bridge}:")


def test_a_cascade_is_recommended_with_its_cost_and_only_where_it_saves(base, resampling):
    found = {"keep": QueryScores(base), "cascade": QueryScores(base + 0.1)}
    settings = SETTINGS | {"relevance": "labels", "n_candidates": 20}
    price = Price(60, 5000, Need(20, 900, 800, 1000), (), 7.0, ())
    for more, option, told in (
        ({}, "cascade", "; a cascade embeds at most 20 rows per query;"),
        ({"order": SIMPLE_FIRST, "small_saving": "it saves little"}, "cascade", "; it saves little;"),
        ({"price": price}, "cascade", "60 queries need 900 of 5,000 rows embedded (18 %; another log of"),
    ):
        verdict = verdict_of(found, resampling, **settings, **more)
        assert verdict.option == option
        assert told in verdict.sentence
    assert verdict.headline.endswith(". For 60 queries a cascade embeds 18 % of the rows.")


SIMPLE_FIRST = ("keep", "re-embed", "bridge", "twice", "cascade")


def test_simple_wins_where_a_cascade_saves_little_and_is_not_clearly_better(base, resampling):
    """As in a corpus of 20,000 rows: a cascade gains .003 ± .006 over re-embedding."""
    found = {
        "keep": QueryScores(base - 0.1),
        "re-embed": QueryScores(base),
        "cascade": after(base, 0.003, 0.06),
    }
    assert decide(found, resampling, SIMPLE_FIRST) == ("re-embed", ())
    assert decide(found, resampling) == ("cascade", ())
    assert decide(found | {"cascade": after(base, 0.02, 0.06)}, resampling, SIMPLE_FIRST)[0] == "cascade"


def test_no_clear_advice_costs_more_than_an_option_that_may_be_as_good(rng, resampling):
    """The advice is never a dearer option if a cheaper one is as good but for a hundredth; if it is clear, all
    cheaper options are clearly worse."""
    resampling = Resampling(60, draws=500)
    for _ in range(60):
        order = ("keep", *rng.permutation(SIMPLE_FIRST[1:]).tolist())
        shared = rng.uniform(size=60)
        found = {
            name: QueryScores(shared + rng.normal(0, 0.1, 60) + rng.choice([0, 0.02, 0.1])) for name in order
        }
        option, close = decide(found, resampling, order)
        for cheaper in order[: order.index(option)]:
            gain = resampling.difference(found[option], found[cheaper])
            assert close or gain.low > 0
            assert gain.low > 0 or gain.value >= 0.01 or cheaper == "keep"


def test_an_index_that_changes_no_query_has_not_the_widest_interval(base):
    """Eight queries: none changes, or each changes by .05 or so. Before, the first interval was ± .369."""
    resampling = Resampling(8)
    before = QueryScores(base[:8])
    still = resampling.difference(before, before, usual=0.05)
    moving = resampling.difference(QueryScores(base[:8] + 0.05 * np.array([1, -1] * 4)), before)
    assert 0 < still.high < moving.high
    assert still.high == pytest.approx(-still.low, rel=0.1)
    # Without a usual change, a query may change as much as two queries differ.
    assert still.high < resampling.difference(before, before).high < 0.369


def test_intervals_of_rare_changes_cover_their_mean(rng):
    """Two of 100 queries change by .2. Half of a log of 40 queries agrees with the other half: 95 %, three
    standard errors of 300 draws below."""
    resampling = Resampling(20, draws=400)
    held = 0
    for _ in range(300):
        gains = []
        for _ in range(2):
            before = rng.uniform(size=20)
            after = before - 0.2 * (rng.uniform(size=20) < 0.02)
            gains.append(resampling.difference(QueryScores(after), QueryScores(before), usual=0.2))
        high, low = sorted(gains, key=lambda gain: -gain.value)
        gap = high.value - low.value
        held += gap**2 <= (high.value - high.low) ** 2 + (low.high - low.value) ** 2 + 1e-12
    assert held / 300 > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)
