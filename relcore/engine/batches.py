"""Forward passes of a network in batches that fit the memory of its device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from relcore.base.errors import SpaceError
from relcore.engine.device import is_out_of_memory

T = TypeVar("T")
_AT_ONCE = 32  # number of items per batch; larger batches exceed a CPU's cache
_AT_ONCE_ON_GPU = 256


def items_at_once(device: str) -> int:
    """The usual number of items of a batch on a device."""
    if device == "cpu":
        return _AT_ONCE
    return _AT_ONCE_ON_GPU


def run_in_batches(run: Callable[[int, int], T], n: int, size: int, device: str) -> tuple[list[T], int]:
    """Call ``run(start, stop)`` for n items, at most `size` at a time. If memory runs out, the size is
    halved. Returns the results, and the last size.

    Raises
    ------
    SpaceError
        A single item exceeds the memory.
    """
    results: list[T] = []
    start = 0
    while start < n:
        stop = min(start + size, n)
        try:
            results.append(run(start, stop))
            start = stop
            continue
        except RuntimeError as error:
            if not is_out_of_memory(error) and "not enough memory" not in str(error):
                raise
            if stop - start == 1:
                raise SpaceError(
                    f"a single item does not fit the memory of this {device}; choose a smaller model"
                ) from error
        # Retry outside the except clause, because inside it the traceback keeps the tensors alive.
        size = (stop - start) // 2
        if device != "cpu":
            import torch

            torch.cuda.empty_cache()
    return results, size
