"""Influence by deletion equals computing everything again without the anchor, to 1e-8."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.compare.influence import RIDGE, Products, RidgeHead, cosine_without
from relcore.scores.cka import linear_cka

N, M = 90, 12


def cka_again(R, S):
    R, S = R - R.mean(axis=0), S - S.mean(axis=0)
    return np.linalg.norm(R.T @ S) ** 2 / (np.linalg.norm(R.T @ R) * np.linalg.norm(S.T @ S))


@pytest.fixture
def pair(rng):
    R = rng.uniform(-1, 1, size=(N, M))
    return R, 0.6 * R + 0.4 * rng.uniform(-1, 1, size=(N, M)) + 3


def test_cka_without_and_with_each_anchor_is_that_of_a_new_computation(pair):
    R, S = pair
    products, columns = Products.of(R, S), np.arange(M) < 9
    assert products.cka(columns) == pytest.approx(cka_again(R[:, columns], S[:, columns]), abs=1e-12)
    assert products.cka(columns) == pytest.approx(float(linear_cka(R[:, columns], S[:, columns])), abs=1e-5)
    found = products.cka_changed(columns)
    for j in range(M):
        changed = columns.copy()
        changed[j] = not changed[j]
        assert found[j] == pytest.approx(cka_again(R[:, changed], S[:, changed]), abs=1e-8)


def test_greedy_steps_are_the_best_ones_and_stop_where_nothing_helps(pair):
    R, S = pair
    products, columns = Products.of(R, S), np.arange(M) < 9
    steps, values = products.greedy(columns, ~columns, 3)
    first = [cka_again(R[:, [*range(9), j]], S[:, [*range(9), j]]) for j in range(9, M)]
    assert steps[0] == 9 + int(np.argmax(first))
    assert values == sorted(values)
    assert values[0] > products.cka(columns)
    dropped, gains = products.greedy(columns, columns, M)
    assert len(dropped) <= 7
    kept = np.setdiff1d(np.arange(9), dropped)
    assert gains[-1] == pytest.approx(cka_again(R[:, kept], S[:, kept]), abs=1e-8)
    assert Products.of(R, R).greedy(columns, columns, 5) == ([], [])  # equal spaces: 1 already


def test_cosine_without_each_anchor_is_that_of_a_new_computation(pair):
    R, S = pair
    whole, without = cosine_without(R, S)

    def again(columns):
        A, B = R[:, columns], S[:, columns]
        return np.mean(np.sum(A * B, axis=1) / (np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)))

    assert whole == pytest.approx(again(np.arange(M)), abs=1e-12)
    for j in range(M):
        assert without[j] == pytest.approx(again(np.arange(M) != j), abs=1e-8)


def test_a_head_without_each_anchor_is_that_of_a_new_fit(pair, rng):
    R, S = pair
    classes = rng.integers(0, 3, N)
    head = RidgeHead.fit(R, classes, 3)
    answers = head.answers_without(S)
    for j in range(M):
        others = np.arange(M) != j
        again = RidgeHead.fit(R[:, others], classes, 3).scores(S[:, others])
        np.testing.assert_allclose(head.scores_without(S, j), again, atol=1e-8)
        np.testing.assert_array_equal(answers[j], np.argmax(again, axis=1))


def test_the_head_is_scikit_learns_ridge(pair, rng):
    from sklearn.linear_model import Ridge

    R, S = pair
    classes = rng.integers(0, 3, N)
    expected = Ridge(alpha=RIDGE).fit(R, np.eye(3)[classes]).predict(S)
    np.testing.assert_allclose(RidgeHead.fit(R, classes, 3).scores(S), expected, atol=1e-8)


def test_influence_on_cka_does_not_find_wrong_pairs_that_the_audit_finds(rng):
    from relcore.represent.audit import audit_pairs

    X = rng.normal(size=(400, 20))
    anchors = X[:60] / np.linalg.norm(X[:60], axis=1, keepdims=True)
    other = anchors.copy()
    other[[3, 8, 21, 40, 44, 50]] = other[[8, 21, 40, 44, 50, 3]]
    R, S = X[60:] @ anchors.T, X[60:] @ other.T
    lowest = np.argsort(-Products.of(R, S).cka_changed(np.ones(60, dtype=bool)))[:6]
    assert len({3, 8, 21, 40, 44, 50} & set(lowest.tolist())) <= 3
    assert {3, 8, 21, 40, 44, 50} == set(audit_pairs(anchors, other).ranking[:6].tolist())


def test_other_shapes_are_refused(pair):
    with pytest.raises(SpaceError, match=r"got \(90, 12\) and \(90, 11\)"):
        Products.of(pair[0], pair[1][:, 1:])
