"""Layers are read by hooks, and the network is afterwards as it was."""

import random

import numpy as np
import pytest

from relcore import SpaceError

torch = pytest.importorskip("torch")

from relcore.nn.capture import Capture, matching_layers, pooled, undisturbed  # noqa: E402

PICTURES = torch.arange(5 * 64, dtype=torch.float32).reshape(5, 1, 8, 8).sin()


def network():
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Dropout(0.5), torch.nn.Flatten()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(144, 3))


class Restless(torch.nn.Module):
    """Changes a buffer, replaces another one and draws random numbers, also in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("last", torch.zeros(1), persistent=False)
        self.body = network()

    def forward(self, X):
        self.calls += 1
        self.last = X.mean().reshape(1)
        torch.rand(3)
        np.random.rand()  # noqa: NPY002
        random.random()
        return self.body(X)


def states(model):
    hooks = [(*module._forward_hooks, *module._forward_pre_hooks) for module in model.modules()]
    modes = [module.training for module in model.modules()]
    tensors = [(id(one), one.clone()) for one in (*model.parameters(), *model.buffers())]
    draws = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    return hooks, modes, tensors, draws


def assert_same(before, after):
    assert after[:2] == before[:2]
    for (place, old), (now, new) in zip(before[2], after[2], strict=True):
        assert place == now
        assert torch.equal(old, new)
    assert torch.equal(before[3][0], after[3][0])
    assert before[3][1:] == after[3][1:]


@pytest.mark.parametrize("fails", [False, True])
def test_the_network_is_as_before_also_after_an_error(fails):
    model = Restless().train()
    model.body[1].eval()  # frozen by the user
    before = states(model)
    with (
        pytest.raises(KeyboardInterrupt) if fails else undisturbed(model),
        undisturbed(model),
        Capture(model, ["*"]) as capture,
    ):
        capture(PICTURES)
        assert model.calls == 1
        assert not torch.is_grad_enabled()
        assert not any(module.training for module in model.modules())
        if fails:
            raise KeyboardInterrupt
    assert torch.is_grad_enabled()
    assert_same(before, states(model))


def test_all_layers_come_from_one_pass():
    model = Restless().eval()
    with Capture(model, ["body.*", "output"]) as capture:
        rows = capture(PICTURES)
    assert model.calls == 1
    assert list(rows) == ["body.0", "body.1", "body.2", "body.3", "body.4", "output"]
    assert torch.allclose(rows["body.0"], model.body[0](PICTURES).mean(dim=(2, 3)))
    assert torch.equal(rows["output"], model.body(PICTURES))


def test_names_patterns_and_what_is_no_layer():
    model = Restless()
    assert matching_layers(model, "body.?") == tuple(f"body.{place}" for place in range(5))
    assert matching_layers(model, ["output", "body.0"]) == ("body.0", "output")
    assert matching_layers(model, None) == ("output",)
    with pytest.raises(SpaceError, match="got 'bodi'; did you mean 'body'"):
        matching_layers(model, "bodi")
    model.spare = torch.nn.Linear(2, 2)
    with pytest.raises(SpaceError, match="got 'spare', which do not"), Capture(model, "spare") as capture:
        capture(PICTURES)


TOKENS = torch.arange(24.0).reshape(2, 3, 4)
MASK = torch.tensor([[1, 1, 0], [0, 1, 1]])  # padded at the right, and at the left


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("mean", [TOKENS[0, :2].mean(0), TOKENS[1, 1:].mean(0)]),
        ("auto", [TOKENS[0, :2].mean(0), TOKENS[1, 1:].mean(0)]),
        ("first", [TOKENS[0, 0], TOKENS[1, 1]]),
        ("last", [TOKENS[0, 1], TOKENS[1, 2]]),
        ("flat", [TOKENS[0].flatten(), TOKENS[1].flatten()]),
    ],
)
def test_tokens_are_pooled_by_the_mask(pooling, expected):
    assert torch.equal(pooled(TOKENS, pooling, 2, MASK), torch.stack(expected))
    assert torch.equal(pooled(TOKENS.transpose(0, 1), pooling, 2, MASK), torch.stack(expected))


def test_channels_come_before_places_and_recurrent_networks_put_tokens_first():
    assert torch.equal(pooled(TOKENS, "mean", 2, None, torch.nn.Conv1d(1, 1, 1)), TOKENS.mean(2))
    square = TOKENS[:, :2]
    swapped = pooled(square, "mean", 2, None, torch.nn.LSTM(4, 4))
    assert torch.equal(swapped, square.mean(0))
    assert torch.equal(pooled(square, "mean", 2, None, torch.nn.LSTM(4, 4, batch_first=True)), square.mean(1))
    with pytest.raises(SpaceError, match="expected tokens"):
        pooled(PICTURES, "first", 5)
    with pytest.raises(SpaceError, match="expected an output for each of 4 items"):
        pooled(PICTURES, "auto", 4)


def test_a_layer_that_returns_several_tensors_gives_its_first():
    model = torch.nn.LSTM(4, 6, batch_first=True)
    with Capture(model) as capture:
        rows = capture(TOKENS)
    assert torch.allclose(rows["output"], model(TOKENS)[0].mean(1))
