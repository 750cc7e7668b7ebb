"""TimmVision: pictures through the models of timm, an optional library."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Encoder
from relcore.encoders.images import eight_bits
from relcore.encoders.transformers import (
    TorchBatches,
    best_device,
    content_of_model,
    model_folder,
    where_of_model,
)
from relcore.runs.progress import Report

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TimmVision(Encoder):
    """What a timm model's classifier would see: features of the last stage, pooled as the model does it.

    Attributes
    ----------
    model : str
        A folder with config.json and safetensors weights, as timm's `save_for_hf` writes it, or a hub's name
        such as ``"timm/resnet18.a1_in1k"``.
    """

    model: str = setting(placeholder="timm/resnet18.a1_in1k, or a folder", note=where_of_model)

    kind: ClassVar = "images"

    @classmethod
    def offered(cls) -> bool:
        return find_spec("timm") is not None

    @property
    def title(self) -> str:
        return Path(self.model).name

    def content(self) -> str:
        return content_of_model(self.model)

    def prepare(self, dataset: Dataset, report: Report) -> EncodeBatch:
        """
        Raises
        ------
        SpaceError
            timm is not installed or does not fit this PyTorch; no such model, or one with pickled weights
            only.
        """
        _need_timm()
        folder = model_folder(self.model)
        report(0, 1, f"loading {self.title}")
        import timm
        import torch

        try:
            model = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=0)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise SpaceError(
                f"model {self.model!r}: expected a timm model, got one that cannot be loaded ({error})"
            ) from error
        device = best_device()
        model = model.eval().to(device)
        transform = timm.data.create_transform(
            **timm.data.resolve_model_data_config(model), is_training=False
        )

        def forward(images: list) -> dict[str, torch.Tensor]:
            pixels = torch.stack([transform(eight_bits(image, "RGB", dataset.name)) for image in images]).to(
                device
            )
            return {"": model(pixels).flatten(1)}

        return TorchBatches(forward, device)


def _need_timm() -> None:
    if find_spec("timm") is None:
        raise SpaceError(
            "expected timm, which is not installed; pip install timm torchvision, or choose a transformers"
            " model"
        )
    try:
        import timm  # noqa: F401
    except (ImportError, RuntimeError, OSError) as error:  # a torchvision that was built for another PyTorch
        raise SpaceError(
            f"expected timm, which cannot be imported here ({error}); install the torchvision that fits this"
            " PyTorch"
        ) from error
