"""Train networks reproducibly on the chosen device, and convert their weights to arrays."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.base.environment import torch_name
from relcore.engine.device import full_precision

if TYPE_CHECKING:
    import torch
    from torch import nn

_lock = Lock()
_threads: list[int] = []  # torch's number of threads before each active `one_thread`
_deterministic: list[tuple[bool, bool]] = []  # torch's settings before each active `reproducible`


@contextmanager
def one_thread() -> Iterator[None]:
    """Within the block, torch uses one thread on the CPU, because sums depend on the number of threads and
    small networks gain nothing from more.
    """
    import torch

    # Each Python thread has its own setting; a new thread starts with the setting that was set last. So each
    # block sets 1 in its thread and restores the setting that the first active block found, because a later
    # block may find the 1 of the first.
    with _lock:
        before = torch.get_num_threads()
        if _threads:
            before = _threads[0]
        _threads.append(before)
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            torch.set_num_threads(_threads.pop())


@contextmanager
def with_seed(random_state: int) -> Iterator[None]:
    """Within the block, torch draws random numbers from `random_state`, on the CPU and on the chosen GPU.
    Afterwards both generators are restored.
    """
    import torch

    name = torch_name()
    devices = []
    if name.startswith("cuda"):
        devices = [torch.device(name)]
    with torch.random.fork_rng(devices=devices):
        torch.random.default_generator.manual_seed(random_state)
        if name.startswith("cuda"):
            with torch.cuda.device(name):
                torch.cuda.manual_seed(random_state)
        yield


@contextmanager
def reproducible(random_state: int, *, strict: bool = True) -> Iterator[None]:
    """Within the block, training is repeatable to the last bit on one kind of device. Other kinds of devices
    round differently.

    It sets one thread, seeded generators, deterministic algorithms, and full float32 in products and
    convolutions. If an operation has no deterministic algorithm on a GPU, it raises a RuntimeError. If
    `strict` is False, there is only a warning.
    """
    import torch

    # The sums of cuBLAS are repeatable only with a workspace of fixed size. cuBLAS reads this setting at its
    # first product.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    precise = full_precision(torch, torch_name().partition(":")[0])
    with one_thread(), _deterministic_algorithms(strict), with_seed(random_state), precise:
        yield


@contextmanager
def _deterministic_algorithms(strict: bool) -> Iterator[None]:
    import torch

    # These settings hold for the process. The last block that ends restores what the first block found.
    # Torch's deterministic mode also fills new memory, which costs a kernel each time. That is not needed,
    # because here all memory is written before it is read.
    filled = torch.utils.deterministic
    with _lock:
        _deterministic.append(
            (torch.are_deterministic_algorithms_enabled(), filled.fill_uninitialized_memory)
        )
        torch.use_deterministic_algorithms(True, warn_only=not strict)
        filled.fill_uninitialized_memory = False
    try:
        yield
    finally:
        with _lock:
            before = _deterministic.pop()
            if not _deterministic:
                torch.use_deterministic_algorithms(before[0])
                filled.fill_uninitialized_memory = before[1]


def _step(
    loss_of: Callable[[torch.Tensor], torch.Tensor], batch: torch.Tensor, optimiser: torch.optim.Optimizer
) -> torch.Tensor:
    loss = loss_of(batch)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss


def train_epoch(
    loss_of: Callable[[torch.Tensor], torch.Tensor],
    batches: Iterable[torch.Tensor],
    optimiser: torch.optim.Optimizer,
    schedule: Any = None,
) -> float:
    """Train on all batches, with one step of the optimiser per batch, and return the loss, summed over all
    rows."""
    total: Any = 0.0
    for batch in batches:
        loss = _step(loss_of, batch, optimiser)
        if schedule is not None:
            schedule.step()
        # The loss stays on the device. If it were read at each step, the CPU would wait for the GPU.
        total = total + loss.detach().double() * len(batch)
    return float(total)


_RUNS_BEFORE_RECORDING = 3  # libraries prepare themselves in these runs, which cannot be recorded


class Steps:
    """A step of training on a batch of row numbers: compute the loss and its gradients, and update the
    weights.

    On a GPU, launching the kernels takes most of the time of a small network's step. So after three runs, the
    step is recorded as a CUDA graph, once for each batch length, and then replayed. This runs the same
    kernels with one launch. Use it within `separate_stream`. A loss that waits for the GPU cannot be
    recorded; then there is a warning, and the step runs without a graph.
    """

    def __init__(
        self,
        loss_of: Callable[[torch.Tensor], torch.Tensor],
        optimiser: torch.optim.Optimizer,
        device: str,
    ) -> None:
        self.loss_of = loss_of
        self.optimiser = optimiser
        self._recording = device.startswith("cuda")
        self._runs: Counter[int] = Counter()
        self._recorded: dict[int, tuple[torch.Tensor, Callable[[], None]]] = {}

    def __call__(self, batch: torch.Tensor) -> None:
        n = len(batch)
        if self._recording and self._runs[n] == _RUNS_BEFORE_RECORDING:
            self._record(batch)
        self._runs[n] += 1
        if n in self._recorded:
            # Copy the batch, because a recorded graph always reads it from the same place in memory.
            place, replay = self._recorded[n]
            place.copy_(batch)
            replay()
        else:
            _step(self.loss_of, batch, self.optimiser)

    def _record(self, batch: torch.Tensor) -> None:
        place = batch.clone()
        # Clear the gradients, so that new ones are allocated in the graph's memory.
        self.optimiser.zero_grad()
        try:
            self._set_capturable(True)
            self._recorded[len(batch)] = (
                place,
                record_kernels(lambda: _step(self.loss_of, place, self.optimiser)),
            )
        except RuntimeError as error:
            self._recording = False
            warnings.warn(f"training without a CUDA graph, which is slower: {error}", stacklevel=4)
        finally:
            self._set_capturable(False)

    def _set_capturable(self, capturable: bool) -> None:
        # torch warns without this flag, although a fused optimiser keeps its state on the GPU anyway.
        for group in self.optimiser.param_groups:
            group["capturable"] = capturable


def record_kernels(work: Callable[[], None]) -> Callable[[], None]:
    """Record the kernels of `work` on the current stream without running them, and return a function that
    replays them.
    """
    import torch

    graph = torch.cuda.CUDAGraph()
    # thread_local: other threads of the app may use the GPU during the recording.
    settings = {"stream": torch.cuda.current_stream(), "capture_error_mode": "thread_local"}
    with torch.cuda.graph(graph, **settings):
        work()
    return graph.replay


@contextmanager
def separate_stream(device: str) -> Iterator[None]:
    """Within the block, the GPU works on a separate stream, because the default stream cannot be recorded."""
    import torch

    if not device.startswith("cuda"):
        yield
        return
    usual = torch.cuda.current_stream(device)
    own = torch.cuda.Stream(device)
    own.wait_stream(usual)
    with torch.cuda.stream(own):
        yield
    usual.wait_stream(own)


def step_settings(device: str) -> dict[str, bool]:
    """The settings of an optimiser for this device. On a GPU, one kernel updates all weights, because
    launches take most of the time."""
    if device.startswith("cuda"):
        return {"fused": True}
    return {}


@contextmanager
def model_on(model: nn.Module, device: str) -> Iterator[nn.Module]:
    """Within the block, the model is on this device. Afterwards it is on the CPU again, so that models that
    are kept for later do not fill a GPU."""
    yield model if device == "cpu" else deepcopy(model).to(device)


def saved_arrays(model: nn.Module) -> dict[str, np.ndarray]:
    """The weights of a model as arrays, by name."""
    return {name: tensor.cpu().numpy().copy() for name, tensor in model.state_dict().items()}


def load_arrays(model: nn.Module, arrays: Mapping[str, np.ndarray]) -> nn.Module:
    """The model with these weights, in evaluation mode."""
    import torch

    model.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
    return model.eval()
