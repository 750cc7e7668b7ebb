"""Heads against scikit-learn, and what their answers depend on."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from relcore.engine.rows import unit_rows
from relcore.represent.heads import fit_head


@pytest.fixture
def iris():
    X, classes = load_iris(return_X_y=True)
    return X.astype(np.float32), classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_is_scikit_learns_on_directions_from_the_mean(iris, n_classes):
    X, classes = (column[iris[1] < n_classes] for column in iris)
    directions = unit_rows(X, X.mean(axis=0))
    expected = LogisticRegression(max_iter=1000).fit(directions, classes).predict_proba(directions)
    np.testing.assert_allclose(fit_head(X, classes, n_classes).probabilities(X), expected, atol=1e-3)


def test_logistic_sees_no_scale_and_no_shift(iris):
    X, classes = iris
    moved = 100 * X - 7
    np.testing.assert_allclose(
        fit_head(moved, classes, 3).probabilities(moved), fit_head(X, classes, 3).probabilities(X), atol=1e-3
    )


@pytest.mark.parametrize("kind", ["logistic", "mlp", "paper"])
def test_every_head_learns(iris, kind):
    X, classes = iris
    probabilities = fit_head(X, classes, 3, kind).probabilities(X)
    assert probabilities.shape == (150, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (probabilities.argmax(axis=1) == classes).mean() > 0.8


def test_only_the_paper_heads_answer_depends_on_the_other_rows(iris):
    X, classes = iris
    for kind in ("logistic", "mlp", "paper"):
        head = fit_head(X, classes, 3, kind)
        difference = np.abs(head.probabilities(X[:5]) - head.probabilities(X)[:5]).max()
        assert (difference > 0.01) == (kind == "paper")


def test_networks_repeat_with_their_random_state(iris):
    import torch

    before = torch.random.get_rng_state()
    first, again, other = (fit_head(*iris, 3, "mlp", state).probabilities(iris[0]) for state in (4, 4, 5))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-4
    assert torch.equal(torch.random.get_rng_state(), before)


def test_rows_without_spread_give_the_classes_shares():
    head = fit_head(np.ones((4, 2)), np.array([0, 1, 1, 1]), 2)
    np.testing.assert_allclose(head.probabilities(np.ones((1, 2))), [[0.25, 0.75]], atol=1e-3)
