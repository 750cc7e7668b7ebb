"""TorchBatches: a forward pass over a list in batches that fit the device, in half precision where that is safe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.spaces import SpaceError

if TYPE_CHECKING:
    import torch

_ON_CPU = 32  # larger batches do not fit the caches


def best_device() -> str:
    """ "cuda" where torch finds a device, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


class TorchBatches:
    """Calls `forward` on parts of a list and joins the rows, without gradients, as float32 NumPy.

    On a GPU it starts with the whole list and halves the batch each time that the memory runs out, which it remembers;
    matrix products run in float16, and a batch whose result is not finite is computed again in float32. On a processor:
    float32, batches of 32 and the same halving.

    Parameters
    ----------
    forward : function
        m items → {output: tensor (m, d)}; it moves its inputs to the device itself.
    device : "cuda" or "cpu"
    half : bool
        False for models that are known to need float32.
    """

    def __init__(self, forward: Callable[[list[Any]], dict[str, torch.Tensor]], device: str, *, half: bool = True) -> None:
        self.forward = forward
        self.device = device
        self.half = half and device == "cuda"
        self.size: int | None = None if device == "cuda" else _ON_CPU

    def __call__(self, items: list[Any]) -> dict[str, np.ndarray]:
        import torch

        parts: list[dict[str, np.ndarray]] = []
        start = 0
        while start < len(items):
            size = min(self.size or len(items), len(items) - start)
            try:
                parts.append(self._rows(items[start : start + size]))
                start += size
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
                if size == 1:
                    raise SpaceError(
                        f"a single item does not fit the memory of this {self.device}; choose a smaller model"
                    ) from error
                self.size = size // 2
            if self.size and self.size < size and self.device == "cuda":
                torch.cuda.empty_cache()  # outside of the except clause, whose traceback keeps the tensors alive
        return {output: np.concatenate([part[output] for part in parts]) for output in parts[0]}

    def _rows(self, items: list[Any]) -> dict[str, np.ndarray]:
        rows = self._forward(items, self.half)
        if self.half and not all(np.isfinite(matrix).all() for matrix in rows.values()):
            rows = self._forward(items, half=False)
        return rows

    def _forward(self, items: list[Any], half: bool) -> dict[str, np.ndarray]:
        import torch

        precision = torch.autocast(self.device, dtype=torch.float16) if half else nullcontext()
        with torch.inference_mode(), precision:
            found = self.forward(items)
        return {output: tensor.float().cpu().numpy() for output, tensor in found.items()}


def _out_of_memory(error: RuntimeError) -> bool:
    import torch

    return isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error)
