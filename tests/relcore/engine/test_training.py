"""Training that repeats, and what it leaves as it was."""

from threading import Barrier, Thread

import numpy as np
import pytest

from relcore.engine.device import resolve, use_device
from relcore.engine.training import model_on, one_thread, reproducible, seeded, train_epoch
from relcore.represent.heads import fit_head
from tests.lazily import Lazily

torch = Lazily("torch")


def test_two_trainings_at_once_leave_the_number_of_threads_as_it_was():
    """The second one begins within the first and ends after it."""
    torch.set_num_threads(2)
    begun, ended, inside, after = Barrier(2), Barrier(2), [], []

    def second():
        begun.wait()
        with one_thread():
            inside.append(torch.get_num_threads())
            begun.wait()
            ended.wait()
        after.append(torch.get_num_threads())

    thread = Thread(target=second)
    thread.start()
    with one_thread():
        begun.wait()
        begun.wait()
        inside.append(torch.get_num_threads())
    ended.wait()
    thread.join()
    assert inside == [1, 1]
    assert [*after, torch.get_num_threads()] == [2, 2]


def test_the_state_of_torch_is_restored():
    before = torch.random.get_rng_state()
    with reproducible(0):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cudnn.allow_tf32
        first = torch.rand(3)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.equal(torch.random.get_rng_state(), before)
    with seeded(0):
        assert torch.equal(torch.rand(3), first)


def test_the_generator_of_the_chosen_gpu_is_seeded_and_forked(monkeypatch):
    forked, seeds = [], []
    monkeypatch.setattr("relcore.engine.training.torch_name", lambda: "cuda:1")
    monkeypatch.setattr(torch.cuda, "manual_seed", seeds.append)
    monkeypatch.setattr(torch.cuda, "device", lambda name: one_thread())
    fork = torch.random.fork_rng
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices: forked.append(devices) or fork(devices=[]))
    with seeded(7):
        pass
    assert (forked, seeds) == ([[torch.device("cuda:1")]], [7])


def test_the_loss_is_summed_over_the_rows_of_all_batches():
    weight = torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=1.0)
    targets = torch.tensor([1.0, 1.0, 4.0])

    def loss_of(batch):
        return (weight - targets[batch]).square().mean()

    total = train_epoch(loss_of, [torch.tensor([0, 1]), torch.tensor([2])], optimiser)
    assert total == 2 * 1 + (2 - 4) ** 2  # the first step brings the weight to 2
    assert weight.item() == 6.0


def test_a_model_that_is_kept_leaves_the_card(monkeypatch):
    """It is copied there for each call; "meta" stands for a card that this machine lacks."""
    model = torch.nn.Linear(2, 2)
    with model_on(model, "meta") as there:
        assert there.weight.is_meta
    assert not model.weight.is_meta
    with model_on(model, "cpu") as here:
        assert here is model


@pytest.mark.parametrize("kind", ["mlp", "paper"])
def test_a_head_on_the_path_of_a_gpu_gives_the_same_numbers(kind):
    rng = np.random.default_rng(0)
    X, classes = rng.normal(size=(200, 6)).astype(np.float32), np.arange(200) % 3
    expected = fit_head(X, classes, 3, kind).probabilities(X)
    with use_device("torch"):
        np.testing.assert_array_equal(fit_head(X, classes, 3, kind).probabilities(X), expected)


def test_the_default_of_public_functions_follows_the_chosen_device():
    with use_device("torch"):
        assert resolve("auto") == resolve() == "torch"
        assert resolve("cpu") == "cpu"
    with use_device("cpu"):
        assert resolve("auto") == "cpu"
