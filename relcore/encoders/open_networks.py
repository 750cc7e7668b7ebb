"""Networks opened: the layers of an encoder as modules that can be watched or changed while it encodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import Encoder, Trained
from relcore.encoders.images import pixel_array
from relcore.encoders.small_vision import SmallVision
from relcore.encoders.transformers import MiniLM, PretrainedText, PretrainedVision
from relcore.runs.progress import Report

if TYPE_CHECKING:
    from torch import nn

_TRANSFORMERS = (MiniLM, PretrainedText, PretrainedVision)


@dataclass(frozen=True)
class OpenNetwork:
    """Modules that give vectors (…, d), in the order in which they run, and the function that runs all of
    them.

    Attributes
    ----------
    layers : name → module
    encode : list of m items → array (m, d)
    """

    layers: dict[str, nn.Module]
    encode: Callable[[list[Any]], np.ndarray]


def can_open(encoder: Encoder) -> bool:
    """Whether `open_network` knows the encoder's layers."""
    if isinstance(encoder, SmallVision):
        return encoder.architecture in ("vit", "mlp")
    return isinstance(encoder, _TRANSFORMERS) and len(encoder.outputs) == 1


def open_network(
    encoder: Encoder, dataset: Dataset, report: Report, trained: Trained | None = None
) -> OpenNetwork:
    """The encoder with its layers open; a small network needs its `trained` weights.

    Raises
    ------
    SpaceError
        An encoder whose layers give no vectors, or not one output; or as when it is prepared.
    """
    if not can_open(encoder):
        raise SpaceError(
            f"{encoder.title}: expected one output of a transformer, or the small ViT or MLP, got an encoder"
            " whose layers give no vectors; choose another"
        )
    if isinstance(encoder, SmallVision):
        return _small(encoder, dataset, trained)
    return _transformer(encoder, dataset, report)


def _small(encoder: SmallVision, dataset: Dataset, trained: Trained) -> OpenNetwork:
    import torch

    arrays, facts = trained.arrays, trained.metadata
    mode, size = facts["mode"], tuple(facts["size"])
    model = encoder.network(trained)["encoder"]

    def encode(images: list) -> np.ndarray:
        pixels = (pixel_array(images, mode, size, dataset.name) - arrays["pixel_mean"]) / arrays[
            "pixel_deviation"
        ]
        with torch.inference_mode():
            return model(torch.from_numpy(pixels.astype(np.float32))).numpy()

    if encoder.architecture == "mlp":
        return OpenNetwork({"hidden 1": model[2], "hidden 2": model[4], "output": model[5]}, encode)
    blocks = {f"layer {number}": block for number, block in enumerate(model.layers.layers, start=1)}
    return OpenNetwork({**blocks, "final norm": model.layers.norm, "output": model.out}, encode)


def _transformer(encoder: Encoder, dataset: Dataset, report: Report) -> OpenNetwork:
    from torch import nn

    rows = encoder.prepare(dataset, report)
    stacks = [module for module in rows.model.modules() if isinstance(module, nn.ModuleList)]
    if not stacks:
        raise SpaceError(
            f"{encoder.title}: expected a stack of layers, got a {type(rows.model).__name__}; choose another"
            " model"
        )
    layers = {f"layer {number}": block for number, block in enumerate(max(stacks, key=len), start=1)}
    embedding = getattr(rows.model, "embeddings", None)
    if isinstance(embedding, nn.Module):
        layers = {"embedding": embedding, **layers}

    def encode(items: list) -> np.ndarray:
        (found,) = rows(items).values()
        return found

    return OpenNetwork(layers, encode)
