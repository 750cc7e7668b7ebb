"""The same numbers from the same random state: torch with one thread, and its generator set and given back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def seeded(random_state: int) -> Iterator[None]:
    """Within this, torch draws from `random_state`; what others draw after it is as if this had not been."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(random_state)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums over threads end differently with their number, and small networks wait for each other more than they gain."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def reproducible(random_state: int) -> Iterator[None]:
    """Both, as a training of a small network needs them; on a GPU those of its kernels that give the same sum each time."""
    import torch

    settings = {"enabled": True, "benchmark": False, "deterministic": True}
    with one_thread(), seeded(random_state), torch.backends.cudnn.flags(**settings):
        yield
