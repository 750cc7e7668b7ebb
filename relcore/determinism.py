"""Reproducible torch: one thread, and its generator seeded and restored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def seeded(random_state: int) -> Iterator[None]:
    """Inside, torch draws from `random_state`; afterwards its generator is restored."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(random_state)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums over threads depend on the number of threads, and small networks gain nothing from more."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def reproducible(random_state: int) -> Iterator[None]:
    """Both, for the training of a small network; on a GPU also deterministic kernels."""
    import torch

    settings = {"enabled": True, "benchmark": False, "deterministic": True}
    with one_thread(), seeded(random_state), torch.backends.cudnn.flags(**settings):
        yield
