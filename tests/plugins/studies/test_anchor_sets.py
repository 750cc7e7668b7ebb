"""Strategies by number of anchors, and the influence of each anchor by deletion, which equals computing
everything again without it.
"""

import numpy as np
import pytest
from relscope_studies.anchors import Products, cosine_without

from relcore.scores.cka import linear_cka

N = 90
M = 12


def cka_again(R, S):
    R = R - R.mean(axis=0)
    S = S - S.mean(axis=0)
    return np.linalg.norm(R.T @ S) ** 2 / (np.linalg.norm(R.T @ R) * np.linalg.norm(S.T @ S))


@pytest.fixture
def pair(rng):
    R = rng.uniform(-1, 1, size=(N, M))
    return R, 0.6 * R + 0.4 * rng.uniform(-1, 1, size=(N, M)) + 3


def test_cka_without_and_with_each_anchor_is_that_of_a_new_computation(pair):
    R, S = pair
    products = Products.of(R, S)
    columns = np.arange(M) < 9
    assert products.cka(columns) == pytest.approx(float(linear_cka(R[:, columns], S[:, columns])), abs=1e-5)
    changed = products.cka_changed(columns)
    for j in range(M):
        other = columns.copy()
        other[j] = not other[j]
        assert changed[j] == pytest.approx(cka_again(R[:, other], S[:, other]), abs=1e-8)


def test_greedy_steps_are_the_best_ones_and_stop_where_nothing_helps(pair):
    R, S = pair
    products = Products.of(R, S)
    columns = np.arange(M) < 9
    steps, values = products.greedy(columns, ~columns, 3)
    first = [cka_again(R[:, [*range(9), j]], S[:, [*range(9), j]]) for j in range(9, M)]
    assert steps[0] == 9 + int(np.argmax(first))
    assert values == sorted(values)
    dropped, gains = products.greedy(columns, columns, M)
    kept = np.setdiff1d(np.arange(9), dropped)
    assert gains[-1] == pytest.approx(cka_again(R[:, kept], S[:, kept]), abs=1e-8)
    assert Products.of(R, R).greedy(columns, columns, 5) == ([], [])  # equal spaces: 1 already


def test_cosine_without_each_anchor_is_that_of_a_new_computation(pair):
    R, S = pair
    whole, without = cosine_without(R, S)

    def again(columns):
        A = R[:, columns]
        B = S[:, columns]
        return np.mean(np.sum(A * B, axis=1) / (np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)))

    assert whole == pytest.approx(again(np.arange(M)), abs=1e-12)
    for j in range(M):
        assert without[j] == pytest.approx(again(np.arange(M) != j), abs=1e-8)
