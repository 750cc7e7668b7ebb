"""The audit finds planted wrong pairs, calls no right pair wrong, and admits where it cannot tell."""

import numpy as np
import pytest

from relcore.base.rows import mean_row, unit_rows
from relcore.encoders.words import load_words
from relcore.represent.pair_audit import audit_pairs
from relcore.represent.strategies import select_anchors
from relcore.spaces.matching import match


@pytest.fixture(scope="module")
def words():
    return match(*(load_words(name) for name in ("word2vec-novels", "fasttext-novels")))


def directions(pair, state, n_wrong, k=300):
    """Unit rows of k anchors, and which of them were given another one's partner."""
    rows = pair.source.rows(select_anchors(pair.source, k, random_state=state))
    X, Y = (unit_rows(space.vectors[rows], mean_row(space.vectors)) for space in (pair.source, pair.target))
    wrong = np.random.default_rng([state, n_wrong]).choice(k, n_wrong, replace=False)
    Y[wrong] = Y[np.roll(wrong, 1)]
    return X, Y, set(wrong.tolist())


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_planted_wrong_pairs_of_words_come_first(words):
    X, Y, wrong = directions(words, 0, 30)
    found = audit_pairs(X, Y)
    assert len(wrong & set(found.ranking[:30].tolist())) >= 29  # five draws: 1.00, .99, 1.00 on average
    assert found.n_wrong == pytest.approx(30, abs=3.5 * np.sqrt(30 * 0.1 / 0.9))  # binomial: 90 % lie below
    suspects = set(found.suspects.tolist())
    assert len(suspects & wrong) >= 24
    # of 105, a share of .05 with its standard error of 2.2
    assert len(suspects - wrong) <= 0.05 * len(suspects) + 3


@pytest.mark.parametrize("n_wrong", [0, 20])
def test_number_of_wrong_pairs_of_words_is_within_its_interval(words, n_wrong):
    """Intervals have 95 %, so two of 4 draws are outside once in 70 times; at most one may be. No audit of a
    draw with wrong pairs says that there are none."""
    within = 0
    for state in range(4):
        found = audit_pairs(*directions(words, 50 + state, n_wrong, 200)[:2])
        low, high = found.wrong_interval
        within += low <= n_wrong <= high
        assert low <= found.n_wrong <= high
        assert high >= n_wrong / 2
    assert within >= 3


@pytest.mark.parametrize("k", [40, 300])
def test_right_pairs_of_words_are_no_suspects(words, k):
    """On average, .5 of 10 draws have suspects by chance. Three or more have once in 70 times."""
    found = [len(audit_pairs(*directions(words, state, 0, k)[:2]).suspects) > 0 for state in range(10)]
    assert sum(found) <= 2


def test_where_right_pairs_agree_little_it_cannot_tell(rng):
    """Before, it named a third of such pairs."""
    X = rng.normal(size=(300, 100))
    found = audit_pairs(unit(X), unit(X + 3 * rng.normal(size=X.shape)))
    assert np.median(found.of_pairs) > np.quantile(found.mismatched, 0.9)
    assert not found.decided


@pytest.mark.parametrize("widths", [(20, 50), (50, 20)])
def test_rotations_into_any_width_leave_only_swapped_pairs(rng, widths):
    X = rng.normal(size=(60, min(widths)))
    bases = [np.linalg.qr(rng.normal(size=(width, width)))[0][: min(widths)] for width in widths]
    X, Y = (unit(X @ basis) for basis in bases)
    Y[[5, 17, 40]] = Y[[17, 40, 5]]
    found = audit_pairs(X, Y)
    assert set(found.suspects.tolist()) <= {5, 17, 40}
    assert len(found.suspects) == 3
    assert set(found.ranking[:2].tolist()) <= {5, 17, 40}  # one of three may agree by chance
    right = np.setdiff1d(np.arange(60), [5, 17, 40])
    np.testing.assert_allclose(found.of_pairs[right], 1, atol=1e-6)


@pytest.mark.parametrize(("k", "d"), [(30, 5), (60, 50)])
def test_of_noisy_right_pairs_few_are_suspect_and_of_unrelated_ones_it_cannot_tell(k, d):
    suspects = 0
    undecided = 0
    for state in range(10):
        rng = np.random.default_rng([k, d, state])
        X = rng.normal(size=(k, d))
        noisy = X + 0.4 * rng.normal(size=(k, d))
        unrelated = rng.normal(size=(k, d))
        suspects += len(audit_pairs(unit(X), unit(noisy)).suspects)
        found = audit_pairs(unit(X), unit(unrelated))
        undecided += not found.decided
        assert found.decided or not len(found.suspects)
    assert undecided == 10
    assert suspects <= 10 * k * (
        0.05 if d == 5 else 0.002
    )  # in 5 dimensions mismatched pairs often agree by .5 and more
