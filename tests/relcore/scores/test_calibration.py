"""Score, its interval and band by their formulas; groups; class agreement against votes counted one by one."""

import json
import pickle
from collections import Counter

import numpy as np
import pytest

from relcore.base.rows import unit_rows
from relcore.scores.comparison import AlignedPair
from relcore.scores.metrics import ClassAgreement
from relcore.scores.score import Z95, ChanceLevel, Score, lowest_groups, sampling_interval
from relcore.spaces.split import Split

NULL = ChanceLevel(0.01, 0.0, 0.02, 50)
FACTS = {"metric": "jaccard", "k": 10, "convention": "paper", "n_queries": 4000, "interval": (0.29, 0.31)}
SCORE = Score(0.301, n=20_000, null=NULL, **FACTS)


def circumstances(score):
    names = ("metric", "convention", "k", "n", "n_queries", "interval", "null")
    return [float(score), *(getattr(score, name) for name in names)]


@pytest.mark.parametrize("score", [SCORE, Score(1, metric="cka", n=7)], ids=["full", "bare"])
def test_circumstances_travel_with_the_number(score):
    json_copy = Score.from_record(json.loads(json.dumps(score.to_record())))
    for one in (json_copy, pickle.loads(pickle.dumps(score))):  # as between the processes of a job
        assert circumstances(one) == circumstances(score)


def test_it_describes_itself_with_decimals_that_tell_its_chance_level_from_zero():
    assert SCORE.describe() == "jaccard .301 (k = 10, 4,000 of n = 20,000; chance .000 … .020)"
    low = Score(0.9, metric="mrr", n=50, k=1, null=ChanceLevel(0.0001, 0, 0.0004))
    assert low.describe().endswith("chance .00000 … .00040)")


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_interval_holds_mean_in_95_of_100_samples_also_near_ends(rng, share):
    population = (rng.random(20_000) < share) * rng.random(20_000) ** 0.2
    held = 0
    for _ in range(1000):
        low, high = sampling_interval(rng.choice(population, 300, replace=False), 20_000)
        held += low <= population.mean() <= high
    assert held > 950 - 28  # four standard errors
    assert sampling_interval(population, 20_000) is None  # all rows
    assert sampling_interval(population[:1], 20_000) is None


def test_z_is_that_of_a_sample_without_replacement():
    values = np.arange(6.0)
    groups = np.array([0, 0, 1, 1, 1, -1])
    found = lowest_groups(values, groups, n_permutations=9)
    # σ² of 0 … 5 is 35/12; two of six rows: σ²/2 · 4/5, three: σ²/3 · 3/5
    errors = np.sqrt(35 / 12 * np.array([4 / 10, 3 / 15]))
    np.testing.assert_allclose(found.mean, [0.5, 3])
    np.testing.assert_allclose(found.z, [-2 / errors[0], 0.5 / errors[1]])
    np.testing.assert_allclose(found.half_width, Z95 * errors)


def test_one_group_in_twenty_draws_is_low_by_chance():
    groups = np.concatenate([np.full(size, number) for number, size in enumerate((5, 20, 80, 200))])
    lowest = []
    for draw in range(300):
        values = np.random.default_rng(draw).random(len(groups))
        lowest.append(lowest_groups(values, groups, n_permutations=199).p.min())
    # 15 of 300 are expected, standard error 3.8; without the correction for four groups it would be 41 or more
    assert 2 <= np.count_nonzero(np.array(lowest) < 0.05) <= 30


def agreement(source, target, labels, k=5, convention="paper"):
    split = Split.held_out([f"r{row}" for row in range(len(source))])
    pair = AlignedPair.of(source, target, split, np.asarray(labels, dtype=object), k=k, convention=convention)
    return ClassAgreement().score(pair)


def voted(source, target, labels, k):
    """The share, by a loop: every other row of the target sorted by its cosine to the source's vector."""
    hits = []
    for row, near in enumerate(unit_rows(source) @ unit_rows(target).T):
        others = [other for other in np.argsort(-near) if other != row][:k]
        (first, most), *rest = Counter(labels[others]).most_common()
        hits.append(first == labels[row] and (not rest or rest[0][1] < most))
    return np.mean(hits)


@pytest.fixture
def classes(rng):
    numbers = np.arange(120) % 4
    source = rng.normal(size=(4, 6))[numbers] + 0.8 * rng.normal(size=(120, 6))
    noisy = source + 0.3 * rng.normal(size=source.shape)
    return source.astype(np.float32), noisy.astype(np.float32), np.array(list("abcd"), dtype=object)[numbers]


@pytest.mark.parametrize("k", [1, 5])
def test_share_is_that_of_votes_counted_one_by_one(classes, k):
    source, noisy, labels = classes
    assert float(agreement(source, noisy, labels, k)) == voted(source, noisy, labels, k)
    both = (voted(source, noisy, labels, k) + voted(noisy, source, labels, k)) / 2
    assert float(agreement(source, noisy, labels, k, "mutual")) == pytest.approx(both)


def test_a_tie_does_not_count():
    space = np.array([[1, 0], [1, 0.01], [1, 0.03], [-1, 0], [-1, 0.01], [-1, 0.03]])
    assert agreement(space, space, list("aabccc"), k=2) == pytest.approx(3 / 6)
    assert agreement(space, space, list("aabccc"), k=1) == pytest.approx(5 / 6)


def test_the_chance_level_is_that_of_permuted_rows(classes, rng):
    source, noisy, labels = classes
    score = agreement(source, noisy, labels)
    drawn = [float(agreement(source[rng.permutation(120)], noisy, labels)) for _ in range(12)]
    assert score.null.mean == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(12))
    assert score > score.null.high


def test_rows_without_a_label_are_left_out(classes):
    source, noisy, labels = classes
    some = labels.copy()
    some[::3] = ""
    kept = some != ""
    score = agreement(source, noisy, some)
    assert (score, score.n) == (agreement(source[kept], noisy[kept], labels[kept]), 80)


@pytest.mark.parametrize(
    "labels", [["a"] * 30, [f"c{row}" for row in range(30)], list(map(str, range(15))) * 2, [""] * 30]
)
def test_one_class_or_as_many_as_rows_tell_nothing(rng, labels):
    assert agreement(rng.normal(size=(30, 4)), rng.normal(size=(30, 4)), labels) is None
