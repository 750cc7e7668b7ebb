"""Networks on the chosen device: training that repeats, and their weights as arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.engine.device import full_precision, torch_name

if TYPE_CHECKING:
    import torch
    from torch import nn

_lock = Lock()
_threads: list[int] = []  # torch's number of threads before, once for each user of `one_thread`
_deterministic: list[bool] = []  # whether algorithms were deterministic before, in the same way


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch in one thread on the CPU: sums over threads depend on their number, and small networks gain
    nothing from more.
    """
    import torch

    # Each thread of Python has its own number, and new ones take the last that was set. So each user sets 1
    # for its thread and puts back what the first one found: what a later one finds may be the first one's 1.
    with _lock:
        _threads.append(_threads[0] if _threads else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            torch.set_num_threads(_threads.pop())


@contextmanager
def seeded(random_state: int) -> Iterator[None]:
    """Draw torch's random numbers from `random_state`, on the CPU and on the chosen GPU; afterwards both
    generators are as they were.
    """
    import torch

    name = torch_name()
    with torch.random.fork_rng(devices=[torch.device(name)] if name.startswith("cuda") else []):
        torch.random.default_generator.manual_seed(random_state)
        if name.startswith("cuda"):
            with torch.cuda.device(name):
                torch.cuda.manual_seed(random_state)
        yield


@contextmanager
def reproducible(random_state: int) -> Iterator[None]:
    """Training inside repeats to the last bit on one kind of device; on another kind it rounds differently.

    One thread, seeded generators, deterministic algorithms, and all digits of float32 in products and
    convolutions. An operation without a deterministic algorithm on a GPU raises a RuntimeError.
    """
    import torch

    # cuBLAS repeats its sums only with a workspace of fixed size, which it reads at its first product.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    precise = full_precision(torch, torch_name().partition(":")[0])
    with one_thread(), _deterministic_algorithms(), seeded(random_state), precise:
        yield


@contextmanager
def _deterministic_algorithms() -> Iterator[None]:
    import torch

    # The setting belongs to the process: the last one that leaves restores what the first one found.
    with _lock:
        _deterministic.append(torch.are_deterministic_algorithms_enabled())
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        with _lock:
            before = _deterministic.pop()
            if not _deterministic:
                torch.use_deterministic_algorithms(before)


def train_epoch(
    loss_of: Callable[[torch.Tensor], torch.Tensor],
    batches: Iterable[torch.Tensor],
    optimiser: torch.optim.Optimizer,
    schedule: Any = None,
) -> float:
    """The loss summed over all rows of the batches of row numbers, after a step of the optimiser for each."""
    total: Any = 0.0
    for batch in batches:
        loss = loss_of(batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if schedule is not None:
            schedule.step()
        # It stays on the device: reading it would make the processor wait for the GPU at each step.
        total = total + loss.detach().double() * len(batch)
    return float(total)


def step_settings(device: str) -> dict[str, bool]:
    """Settings of an optimiser on this device: on a GPU one kernel for all weights, as launches cost most."""
    return {"fused": True} if device.startswith("cuda") else {}


@contextmanager
def model_on(model: nn.Module, device: str) -> Iterator[nn.Module]:
    """A model that is kept on the CPU, on this device: what an app keeps for later must not fill a card."""
    yield model if device == "cpu" else deepcopy(model).to(device)


def saved_arrays(model: nn.Module) -> dict[str, np.ndarray]:
    """The weights of a model by name."""
    return {name: tensor.cpu().numpy().copy() for name, tensor in model.state_dict().items()}


def load_arrays(model: nn.Module, arrays: Mapping[str, np.ndarray]) -> nn.Module:
    """The model with these weights, in evaluation mode."""
    import torch

    model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
    return model.eval()
