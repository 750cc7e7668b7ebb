"""Run a network on batches, on the right device and in the right precision, and read its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from relcore.base.environment import torch_name
from relcore.encode.batches import InputBatch, is_sentence_transformer
from relcore.engine.batches import items_at_once, run_in_batches
from relcore.engine.device import full_precision
from relcore.nn.capture import Capture, Pooling, undisturbed

if TYPE_CHECKING:
    import torch
    from torch import nn


class LayerRows:
    """A function from an `InputBatch` to the rows (m, d) of each layer, as arrays, within a ``with`` block.

    The network runs where it is, if that is a GPU and `device` is "auto", or else on the chosen device. For
    another device than its own, a copy of it runs. If memory runs out, batches are halved.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: str | Sequence[str] | None = None,
        pooling: Pooling = "auto",
        device: str = "auto",
        half: bool = False,
    ) -> None:
        import torch

        wanted = torch_name(device)
        tensors = [*model.parameters(), *model.buffers()]
        own = {one.device for one in tensors}
        elsewhere = any(one.type != wanted.partition(":")[0] for one in own)
        if device == "auto" and any(one.type != "cpu" for one in own):
            elsewhere = False
        if ":" in wanted and own and own != {torch.device(wanted)}:
            elsewhere = True
        if elsewhere:
            model = deepcopy(model).to(wanted)
            tensors = [*model.parameters()]
        self.model = model
        self.device = tensors[0].device if tensors else torch.device(wanted)
        self.dtype = next((one.dtype for one in tensors if one.is_floating_point()), torch.float32)
        self.size = items_at_once(self.device.type)
        self.capture = Capture(model, layers, pooling)
        self._half = half
        self._by_name = not is_sentence_transformer(model)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        import torch

        with ExitStack() as stack:
            stack.enter_context(undisturbed(self.model))
            kind = self.device.type
            if self._half:
                lower = torch.bfloat16 if kind == "cpu" else torch.float16
                stack.enter_context(torch.autocast(kind, lower))
            else:
                stack.enter_context(full_precision(torch, kind))
            stack.enter_context(self.capture)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def __call__(self, batch: InputBatch) -> dict[str, np.ndarray]:
        def rows(start: int, stop: int) -> dict[str, np.ndarray]:
            if stop - start == len(batch):
                return self._rows(batch)
            return self._rows(batch.part(start, stop))

        parts, _ = run_in_batches(rows, len(batch), len(batch), self.device.type)
        if len(parts) == 1:
            return parts[0]
        return {layer: np.concatenate([part[layer] for part in parts]) for layer in parts[0]}

    def outputs(self, batch: InputBatch) -> dict[str, Any]:
        """What each layer that runs returns for a batch, as it is."""
        inputs, named = self._inputs(batch)
        return self.capture.run(*inputs, **named)

    def _rows(self, batch: InputBatch) -> dict[str, np.ndarray]:
        inputs, named = self._inputs(batch)
        tensors = batch.inputs if isinstance(batch.inputs, Mapping) else {}
        rows = self.capture(
            *inputs,
            n=len(batch),
            mask=tensors.get("attention_mask"),
            n_places=self._patches(tensors.get("pixel_values")),
            **named,
        )
        return {layer: one.float().cpu().numpy() for layer, one in rows.items()}

    def _inputs(self, batch: InputBatch) -> tuple[tuple[Any, ...], dict[str, Any]]:
        inputs = _moved(batch.inputs, self.device, self.dtype)
        if isinstance(inputs, dict) and self._by_name:
            return (), inputs
        return (inputs,), {}

    def _patches(self, pixels: Any) -> int | None:
        """The number of patches of pictures (m, channels, height, width); None if the network has none."""
        config = getattr(self.model, "config", None)
        side = getattr(config, "patch_size", None) or getattr(
            getattr(config, "vision_config", None), "patch_size", None
        )
        if pixels is None or not side:
            return None
        if isinstance(side, int):
            side = (side, side)
        height, width = side
        return int((pixels.shape[-2] // height) * (pixels.shape[-1] // width))


def _moved(inputs: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """The inputs on a device. Floating numbers get the type of the network's weights."""
    import torch

    if isinstance(inputs, torch.Tensor):
        if inputs.is_floating_point():
            return inputs.to(device, dtype)
        return inputs.to(device)
    if isinstance(inputs, Mapping):
        return {name: _moved(one, device, dtype) for name, one in inputs.items()}
    if isinstance(inputs, tuple | list):
        return type(inputs)(_moved(one, device, dtype) for one in inputs)
    return inputs
