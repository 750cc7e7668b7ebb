"""Heads against scikit-learn, and what their answers depend on."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from relcore.base.errors import SpaceError
from relcore.represent.similarity import unit_rows
from relcore.stitch.heads import fit_head


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


def test_logistic_sees_no_length(iris):
    head = fit_head(*iris, 3)
    longer = head.mean + 3 * (iris[0] - head.mean)
    np.testing.assert_allclose(head.probabilities(longer), head.probabilities(iris[0]), atol=1e-4)


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


def test_the_paper_head_refuses_a_single_row(iris):
    with pytest.raises(SpaceError, match=r"expected two or more, got 1; choose the head 'mlp' or 'logistic'"):
        fit_head(*iris, 3, "paper").probabilities(iris[0][:1])


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


@pytest.mark.parametrize(
    ("classes", "n_classes", "kind", "message"),
    [
        ([0, 0, 2], 3, "logistic", "expected rows of each of 3 classes, got 2"),
        ([0, 0, 0], 1, "logistic", "expected rows of each of 2 classes, got 1"),
        ([0, 1, 1], 2, "svm", "head: expected one of logistic, mlp, paper, got 'svm'"),
    ],
)
def test_fit_refuses(classes, n_classes, kind, message):
    with pytest.raises(SpaceError, match=message):
        fit_head(np.ones((3, 2)), np.array(classes), n_classes, kind)
