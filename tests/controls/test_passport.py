"""Unrelated vectors are another model; the same ones, and rows of one model, are never an alarm."""

import warnings
from collections import Counter

import numpy as np
import pytest

from relcore.passport.passport import Passport, check
from relcore.passport.recipes import MIXED
from relcore.passport.two_parts import between, parts_of

N = 32
D = 64
DRAWS = 30


def drawn(state):
    """Vectors; around a common mean, as real models have one, for half of the states."""
    rows = np.random.default_rng((N, state)).normal(size=(N, D))
    return rows.astype(np.float32) + (state % 2) * 1.5


def told(change):
    """The finding on each draw's vectors after the change."""
    found = Counter()
    for state in range(DRAWS):
        passport = Passport(tuple(map(str, range(N))), X := drawn(state))
        found[check(passport, change(X, state, np.random.default_rng(state)), state).kind] += 1
    return found


@pytest.mark.parametrize(
    "change", [lambda X, state, rng: drawn(1000 + state), lambda X, state, rng: X[rng.permutation(N)]]
)
def test_unrelated_or_permuted_vectors_are_another_model(change):
    """With p ≤ .001, .03 of 30 draws are expected to say "changed recipe"."""
    assert told(change)["other model"] >= DRAWS - 1


def test_vectors_without_any_shape_are_another_model_without_a_warning():
    """One-hot rows: all cosines between anchors are zero."""
    passport = Passport(tuple(map(str, range(8))), drawn(0)[:8])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = check(passport, np.eye(8, D) * 2)
    assert (found.kind, found.gram.value) == ("other model", 0)


def test_what_another_batch_changes_is_no_alarm():
    assert told(lambda X, state, rng: X * (1 + rng.uniform(-1e-6, 1e-6, X.shape))) == {"same": DRAWS}


def rows_of(state, topics, n=1500, d=96):
    """A model with unequal axes; topics move its eight longest ones, and rows have lengths of their own."""
    rng = np.random.default_rng((state, topics))
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.geomspace(1, 0.05, d)[:, None]
    middles = 3 * rng.normal(size=(topics, 8)) @ basis[:8]
    X = rng.normal(size=(n, d)) @ basis + middles[rng.choice(topics, n, p=rng.dirichlet(np.ones(topics)))]
    return (X * rng.lognormal(sigma=0.5, size=(n, 1))).astype(np.float32)


@pytest.mark.parametrize("topics", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_one_model_is_no_alarm(topics):
    found = [parts_of(rows_of(state, topics), state).slope.high for state in range(6)]
    assert min(found) > 2 * MIXED


def test_unrelated_parts_have_a_slope_of_zero():
    """The intervals of 48 axes hold 0 in 95 % of draws: 20 draws miss it 6 times once in 1,000."""
    held = 0
    for state in range(20):
        parts = np.r_[rows_of(state, 1), rows_of(state + 100, 1)]
        slope = between(parts[:, ::2], np.arange(len(parts)) >= len(parts) // 2)
        held += abs(slope.value) <= slope.high - slope.value
    assert held >= 15
