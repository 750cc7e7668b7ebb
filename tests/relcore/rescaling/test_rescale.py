"""Rescale injection against networks whose dependence on length is known."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.invert.rescale import fit_plain_mlp, injected, rescale_curve, rescale_layers


@pytest.fixture
def rows(rng):
    """Three classes in three directions, lengths 1 to 3."""
    classes = np.arange(300) % 3
    X = np.eye(3)[classes] * rng.uniform(1, 3, size=(300, 1)) + 0.1 * rng.normal(size=(300, 3))
    return X.astype(np.float32), classes


def test_an_answer_by_direction_does_not_change_and_one_by_length_does(rows):
    X, classes = rows
    alphas = (0.1, 1.0, 10.0)
    by_direction = rescale_curve(lambda Z: Z.argmax(axis=1), X, classes, alphas)
    assert np.isnan(by_direction["alpha"][0])
    assert by_direction["alpha"][1:].tolist() == list(alphas)
    assert by_direction["accuracy"].nunique() == 1
    by_length = rescale_curve(
        lambda Z: np.where(np.linalg.norm(Z, axis=1) > 5, classes, -1), X, classes, alphas
    )
    assert by_length["accuracy"].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("activation", ["relu", "tanh", "cosine"])
def test_monotone_networks_keep_their_answers_where_a_cosine_does_not(rows, activation):
    X, classes = rows
    curve = rescale_curve(fit_plain_mlp(X, classes, activation), X, classes, (2.0, 40.0, 41.0, 43.0, 47.0))
    assert curve["accuracy"][:2].min() > 0.95  # as it is, and at the rows' mean length
    assert (curve["accuracy"][2:].min() > 0.9) == (activation != "cosine")


def test_a_layer_is_rescaled_alone_and_only_meanwhile():
    import torch
    from torch import nn

    layers = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Linear(4, 2, bias=False))
    inputs = torch.randn(5, 3)
    with torch.inference_mode():
        before = layers(inputs)
        with injected(layers[0], 7.0):
            assert torch.allclose(layers[0](inputs).norm(dim=1), torch.full((5,), 7.0))
            assert not torch.allclose(layers(inputs), before)
        assert torch.equal(layers(inputs), before)


def test_layers_that_give_tuples_are_rescaled_in_their_first():
    import torch
    from torch import nn

    class Pair(nn.Module):
        def forward(self, rows):
            return rows, "attention"

    module = Pair()
    with injected(module, 2.0):
        vectors, rest = module(torch.ones(1, 6, 4))
    assert torch.allclose(vectors.norm(dim=-1), torch.full((1, 6), 2.0))
    assert rest == "attention"


def test_each_layer_at_each_length_in_one_table(rows):
    import torch
    from torch import nn

    X, classes = rows
    model = nn.Sequential(nn.Identity(), nn.Identity())
    table = rescale_layers(
        {"first": model[0], "second": model[1]},
        lambda: model(torch.from_numpy(X)).numpy(),
        lambda Z: np.where(np.linalg.norm(Z, axis=1) < 3.5, classes, -1),
        classes,
        (3.0, 4.0),
    )
    assert table["layer"].tolist() == ["", "first", "first", "second", "second"]
    assert table["accuracy"].tolist() == [1, 1, 0, 1, 0]
    assert table["changed"].tolist() == [0, 0, 1, 0, 1]


def test_what_cannot_be_is_refused(rows):
    X, classes = rows
    with pytest.raises(SpaceError, match="activation: expected one of relu, tanh, cosine, got 'sine'"):
        fit_plain_mlp(X, classes, "sine")
    with pytest.raises(SpaceError, match="classes: expected two or more, got 1"):
        fit_plain_mlp(X, classes * 0)
    for alphas in ((), (1.0, 0.0), (-1.0,)):
        with pytest.raises(SpaceError, match="alphas: expected lengths above 0, got"):
            rescale_curve(lambda Z: Z, X, classes, alphas)
