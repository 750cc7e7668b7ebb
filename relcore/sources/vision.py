"""PretrainedVision: pictures through transformers models, any of their layers, several in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from relcore.progress import Report
from relcore.sources.dataset import Dataset
from relcore.sources.encoder import EncodeBatch
from relcore.sources.model_folder import model_folder
from relcore.sources.pixels import eight_bits
from relcore.sources.torch_batches import TorchBatches, best_device
from relcore.sources.transformer import PretrainedEncoder, hidden_states, load_transformer, pooled_output
from relcore.spaces import SpaceError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PretrainedVision(PretrainedEncoder):
    """A transformers vision model, with its image processor; of CLIP and its like the vision tower.

    Pooling "mean" is over the patches, without class and register tokens, or over the feature map; "cls" the class token;
    "pooled" ViT's and DINOv2's pooler, or CLIP's projection into the space that it shares with texts.
    """

    kind: ClassVar = "images"
    other_poolings: ClassVar = "'mean' or 'cls'"

    def prepare(self, dataset: Dataset, report: Report) -> EncodeBatch:
        folder = model_folder(self.model)
        report(0, 1, f"loading {self.title}")
        return _PictureRows(self, folder, dataset.name)


class _PictureRows:
    """Pictures → {output: rows}."""

    def __init__(self, spec: PretrainedVision, folder: Path, where: str) -> None:
        self.spec = spec
        self.where = where
        self.device = best_device()
        self.processor = _image_processor(spec, folder)
        self.model, self.pooled = _vision_model(spec, folder, self.device)
        self.batches = TorchBatches(self._forward, self.device)

    def __call__(self, images: list) -> dict[str, np.ndarray]:
        return self.batches(images)

    def _forward(self, images: list) -> dict[str, torch.Tensor]:
        pictures = [eight_bits(image, "RGB", self.where) for image in images]
        try:
            # With the place of the channels given, the processor does not guess it from a picture three pixels high.
            pixels = self.processor(images=pictures, return_tensors="pt", input_data_format="channels_last")["pixel_values"]
        except (ValueError, RuntimeError, TypeError) as error:
            raise SpaceError(
                f"{self.spec.title}: expected pictures that the model's image processor brings to one size, got an error in "
                f"{self.where!r} ({error}); set do_resize in its preprocessor_config.json, or resize the pictures"
            ) from error
        return self._pool(pixels.to(self.device))

    def _pool(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Pixels (m, 3, height, width) → {output: (m, d)}."""
        if self.spec.pooling == "pooled":
            matrix = pooled_output(self.spec, self.pooled(pixel_values=pixels), self.model)
            return {self.spec.outputs[0]: matrix.flatten(1)}
        found = self.model(pixel_values=pixels, output_hidden_states=True)
        states = hidden_states(self.spec, found)
        if self.spec.pooling == "cls" and any(layer % len(states) == 0 for layer in self.spec.layers):
            raise SpaceError(
                f"{self.spec.title}: expected layers from 1, got the embedding among {self.spec.layers}; its class token is "
                "the same for every picture; choose pooling 'mean' there"
            )
        rows = [self._rows(states[layer], pixels.shape[-2:]) for layer in self.spec.layers]
        return dict(zip(self.spec.outputs, rows, strict=True))

    def _rows(self, state: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        """A hidden state (m, tokens, d) or feature map (m, d, height, width) → (m, d)."""
        special = 0 if state.ndim == 4 else max(0, state.shape[1] - self._patches(size))
        if self.spec.pooling == "cls":
            if not special:
                raise SpaceError(
                    f"{self.spec.title}: expected a model with a class token, got a {type(self.model).__name__} without; "
                    "choose pooling 'mean'"
                )
            return state[:, 0]
        return state.float().mean(dim=(2, 3)) if state.ndim == 4 else state[:, special:].float().mean(dim=1)

    def _patches(self, size: tuple[int, int]) -> int:
        """How many tokens stand for patches; models that merge patches as they go have fewer, and no class token."""
        side = getattr(self.model.config, "patch_size", None) or 1
        height, width = side if isinstance(side, (tuple, list)) else (side, side)
        return (size[0] // height) * (size[1] // width)


def _vision_model(spec: PretrainedVision, folder: Path, device: str) -> tuple[torch.nn.Module, Callable[..., Any]]:
    """The module that gives hidden states, and the function that gives `pooler_output`."""
    model = load_transformer(spec, folder, partial(_need_vision_model, spec))
    model = model.eval().to(device)
    return (model.vision_model, model.get_image_features) if hasattr(model, "get_image_features") else (model, model)


def _need_vision_model(spec: PretrainedVision, model: torch.nn.Module) -> None:
    if not hasattr(model, "get_image_features") and model.main_input_name != "pixel_values":
        raise SpaceError(f"model {spec.model!r}: expected a vision model, got a {type(model).__name__}; choose a text encoder")


def _image_processor(spec: PretrainedVision, folder: Path) -> Any:
    from transformers import AutoImageProcessor

    try:
        return AutoImageProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        raise SpaceError(
            f"model {spec.model!r}: expected an image processor (preprocessor_config.json) beside the weights, got "
            f"{str(error).splitlines()[0]}; save it there with processor.save_pretrained(folder)"
        ) from error
