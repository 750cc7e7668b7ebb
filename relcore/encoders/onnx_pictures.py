"""`OnnxPictures`, an encoder of pictures by an ONNX graph."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Encoder
from relcore.encoders.model_files import file_digest
from relcore.encoders.onnx_graph import graph_beside, weight_files
from relcore.encoders.picture_graphs import PictureRows, checked_processor, patch_side
from relcore.encoders.transformers import POOLINGS, preparer
from relcore.runs.work import Progress

_PROCESSOR = "preprocessor_config.json"


@dataclass(frozen=True)
class OnnxPictures(Encoder):
    """A vision model in the form of an ONNX graph, with the preprocessor_config.json of its image processor
    beside it, which sets size, crop and normalisation.

    Attributes
    ----------
    model : str
        The .onnx file, or a folder with one such file. If a folder has several, model.onnx is used, in the
        folder or in its sub-folder onnx.
    pooling : "mean", "cls", "pooled"
        How the hidden states, the graph's first output of floats with more than two axes, are pooled. "mean"
        is the mean over places; class and register tokens are left out if a config.json tells the size of
        patches. "pooled" reads the model's own vectors. If the graph has an output "image_embeds" or gives
        only vectors, these are used and `pooling` is ignored.
    """

    kind: ClassVar = "images"
    short: ClassVar = "onnx"
    by_item: ClassVar = True
    model: str = setting(
        placeholder="a folder",
        help="A folder with an .onnx file and the preprocessor_config.json of its image processor.",
    )
    pooling: Literal["mean", "cls", "pooled"] = setting(
        "mean", choices={"mean": "Mean", "cls": "Class token", "pooled": "The model's own"}
    )

    @property
    def title(self) -> str:
        return f"{Path(self.model).name}{POOLINGS[self.pooling]}"

    def content(self) -> str:
        graph, processor = self._files()
        files = [graph, *weight_files(graph), processor]
        digests = [file_digest(path) for path in files]
        record = [*digests, patch_side(processor.with_name("config.json"))]
        return hashlib.blake2b(repr(record).encode(), digest_size=16).hexdigest()

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        report(0, 1, f"loading {self.title}")
        graph, processor = self._files()
        checked_processor(self.model, processor)
        patch = patch_side(processor.with_name("config.json"))
        process = preparer(self.kind, self.model, processor.parent)
        return PictureRows(self.model, graph, self.pooling, patch, process, dataset.name)

    def _files(self) -> tuple[Path, Path]:
        return graph_beside(self.model, _PROCESSOR)
