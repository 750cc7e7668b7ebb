"""Training that repeats, and what it leaves as it was."""

from contextlib import contextmanager
from inspect import signature
from threading import Barrier, Thread

import numpy as np
import pytest

from relcore.base.environment import use_device
from relcore.engine import training
from relcore.engine.training import model_on, one_thread, reproducible, train_epoch, with_seed
from relcore.represent.heads import fit_head
from tests.lazily import Lazily

torch = Lazily("torch")


def test_two_trainings_at_once_leave_number_of_threads_as_it_was():
    """The second one begins within the first and ends after it."""
    torch.set_num_threads(2)
    begun = Barrier(2)
    ended = Barrier(2)
    inside = []
    after = []

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
        assert not torch.utils.deterministic.fill_uninitialized_memory
        first = torch.rand(3)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory
    assert torch.equal(torch.random.get_rng_state(), before)
    with with_seed(0):
        assert torch.equal(torch.rand(3), first)


def test_loss_is_summed_over_rows_of_all_batches():
    weight = torch.zeros(1, requires_grad=True)
    optimiser = torch.optim.SGD([weight], lr=1.0)
    targets = torch.tensor([1.0, 1.0, 4.0])

    def loss_of(batch):
        return (weight - targets[batch]).square().mean()

    total = train_epoch(loss_of, [torch.tensor([0, 1]), torch.tensor([2])], optimiser)
    assert total == 2 * 1 + (2 - 4) ** 2  # the first step brings the weight to 2
    assert weight.item() == 6.0


def trained(steps_of, n=10, batch=4):
    """Weights after three epochs of a small regression, and the optimiser."""
    torch.manual_seed(0)
    X = torch.randn(n, 3)
    weight = torch.zeros(3, requires_grad=True)
    optimiser = torch.optim.AdamW([weight], 0.1, fused=True)

    def loss_of(rows):
        return (X[rows] @ weight - 1).square().mean()

    step = steps_of(loss_of, optimiser)
    for _ in range(6):
        for rows in torch.randperm(n).split(batch):
            step(rows)
    return weight.detach()


def test_on_gpu_each_length_of_batch_is_recorded_after_three_steps_and_replayed(monkeypatch):
    """A replay of the recorded work gives what the work itself gives, with batches from one place."""
    recordings = []
    replays = []

    def recorded(work):
        recordings.append(work)
        return lambda: replays.append(work) or work()

    monkeypatch.setattr(training, "record_kernels", recorded)
    expected = trained(lambda *of: training.Steps(*of, "cpu"))
    assert not recordings
    assert torch.equal(trained(lambda *of: training.Steps(*of, "cuda:0")), expected)
    assert len(recordings) == 2  # 4 rows, and the 2 that remain of 10
    assert [replays.count(one) for one in recordings] == [2 * 6 - 3, 6 - 3]


def test_step_that_cannot_be_recorded_goes_on_without(monkeypatch):
    def refuse(work):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(training, "record_kernels", refuse)
    expected = trained(lambda *of: training.Steps(*of, "cpu"))
    with pytest.warns(UserWarning, match="without a CUDA graph.*not permitted"):
        assert torch.equal(trained(lambda *of: training.Steps(*of, "cuda")), expected)


def test_recording_is_on_current_stream_and_lets_other_threads_use_gpu(monkeypatch):
    done = []

    class Graph:
        def replay(self):
            done.append("replayed")

    @contextmanager
    def graph(*given, **settings):
        signature(real.__init__).bind(None, *given, **settings)
        assert settings == {"stream": "ours", "capture_error_mode": "thread_local"}
        yield

    real = torch.cuda.graph
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "ours")
    replay = training.record_kernels(lambda: done.append("recorded"))
    replay()
    assert done == ["recorded", "replayed"]


def test_a_model_that_is_kept_leaves_the_card(monkeypatch):
    """It is copied there for each call; "meta" stands for a card that this machine lacks."""
    model = torch.nn.Linear(2, 2)
    with model_on(model, "meta") as there:
        assert there.weight.is_meta
    assert not model.weight.is_meta
    with model_on(model, "cpu") as here:
        assert here is model


@pytest.mark.parametrize("kind", ["mlp", "paper"])
def test_head_on_path_of_gpu_gives_same_numbers(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)).astype(np.float32)
    classes = np.arange(200) % 3
    with use_device("cpu"):
        expected = fit_head(X, classes, 3, kind).probabilities(X)
    with use_device("torch"):
        np.testing.assert_array_equal(fit_head(X, classes, 3, kind).probabilities(X), expected)
