"""Heads against scikit-learn, and what their answers depend on."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from relcore.base.rows import unit_rows
from relcore.represent import heads
from relcore.represent.heads import fit_head


@pytest.fixture
def iris():
    X, classes = load_iris(return_X_y=True)
    return X.astype(np.float32), classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_is_scikit_learns_on_directions_from_mean(iris, n_classes):
    X, classes = (column[iris[1] < n_classes] for column in iris)
    directions = unit_rows(X, X.mean(axis=0))
    expected = LogisticRegression(max_iter=1000).fit(directions, classes).predict_proba(directions)
    np.testing.assert_allclose(fit_head(X, classes, n_classes).probabilities(X), expected, atol=1e-3)


@pytest.mark.parametrize("kind", ["logistic", "mlp", "paper"])
def test_every_head_learns(iris, kind):
    X, classes = iris
    probabilities = fit_head(X, classes, 3, kind).probabilities(X)
    assert probabilities.shape == (150, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (probabilities.argmax(axis=1) == classes).mean() > 0.8


def test_only_paper_heads_answer_depends_on_other_rows(iris):
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


@pytest.mark.parametrize("kind", ["mlp", "paper"])
def test_networks_for_rows_of_one_shape_are_trained_at_once(kind, monkeypatch):
    """Each gets the weights that it gets by itself, up to rounding, with classes of its own."""
    rng = np.random.default_rng(0)
    trained = []
    train = heads._train
    sides = [rng.normal(size=shape).astype(np.float32) for shape in ((90, 5), (90, 4), (90, 5), (70, 5))]
    classes = [rng.permutation(np.arange(len(X)) % 3) for X in sides]

    def counted(rows, *settings):
        trained.append([X.shape for X in rows])
        return train(rows, *settings)

    monkeypatch.setattr(heads, "_train", counted)
    monkeypatch.setattr(heads, "_EPOCHS", 3)
    together = heads.fit_heads(sides, classes, 3, kind, 1)
    assert trained == [[(90, 5)] * 2, [(90, 4)], [(70, 5)]]
    for head, X, each in zip(together, sides, classes, strict=True):
        alone = fit_head(X, each, 3, kind, 1).probabilities(X)
        np.testing.assert_allclose(head.probabilities(X), alone, atol=1e-4)
    again = heads.fit_heads(sides, classes, 3, kind, 1)
    for head, other in zip(together, again, strict=True):
        assert all(map(np.array_equal, head.weights, other.weights))


def test_the_network_is_the_one_of_the_papers_code(iris, monkeypatch):
    """Against the same layers of torch with the head's weights."""
    from torch import from_numpy, nn

    X, classes = iris
    monkeypatch.setattr(heads, "_EPOCHS", 3)
    for kind in ("mlp", "paper"):
        head = fit_head(X, classes, 3, kind)
        norms = [nn.LayerNorm(256) if kind == "mlp" else nn.BatchNorm1d(256, affine=False) for _ in "ab"]
        linear = [nn.Linear(4, 256), nn.Linear(256, 256), nn.Linear(256, 3)]
        first = nn.LayerNorm(4)
        factor, shift, *rest = (weight.squeeze(0) for weight in head.weights)
        affine = [first, *(norms if kind == "mlp" else [])]
        for layer, (a, b) in zip(
            affine, [(factor, shift), *zip(rest[6::2], rest[7::2], strict=True)], strict=True
        ):
            layer.weight.data = a
            layer.bias.data = b
        for layer, matrix, bias in zip(linear, rest[0:6:2], rest[1:6:2], strict=True):
            layer.weight.data = matrix.T
            layer.bias.data = bias
        hidden = (
            part for layer, norm in zip(linear, norms, strict=False) for part in (layer, nn.SiLU(), norm)
        )
        answers = nn.Sequential(first, *hidden, linear[2])(from_numpy(X)).softmax(dim=1).detach()
        np.testing.assert_allclose(head.probabilities(X), answers, atol=1e-5)
