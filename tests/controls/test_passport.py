"""Unrelated vectors are another model, and the same ones never an alarm."""

import warnings
from collections import Counter

import numpy as np

from relcore.passport.passport import Passport, check

N, D, DRAWS = 32, 64, 30


def drawn(state):
    return np.random.default_rng((N, state)).normal(size=(N, D)).astype(np.float32)


def told(change):
    """What is said of each draw's vectors after the change; around a common mean half of the draws."""
    found = Counter()
    for state in range(DRAWS):
        X = drawn(state) + (state % 2) * 1.5  # as real models have one
        passport = Passport(tuple(map(str, range(N))), X)
        found[check(passport, change(X, state), state).kind] += 1
    return found


def test_vectors_of_unrelated_models_are_another_model():
    """p ≤ .001 makes 30 draws say "changed recipe" .03 times."""
    unrelated = told(lambda X, state: drawn(1000 + state) + (state % 2) * 1.5)
    assert unrelated["other model"] >= DRAWS - 1
    assert told(lambda X, state: X[np.random.default_rng(state).permutation(N)])["other model"] >= DRAWS - 1


def test_vectors_without_any_shape_are_another_model_without_a_warning():
    """One-hot rows: all cosines between anchors are zero."""
    passport = Passport(tuple(map(str, range(8))), drawn(0)[:8])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = check(passport, np.eye(8, D) * 2)
    assert (found.kind, found.gram.value) == ("other model", 0)


def test_what_another_batch_changes_is_no_alarm():
    assert told(lambda X, state: X * (1 + np.random.default_rng(state).uniform(-1e-6, 1e-6, X.shape))) == {
        "same": DRAWS
    }
