"""Find the recipe (prompt, pooling and layer) by which an available model makes the vectors of a passport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from relcore.base.records import read_file
from relcore.base.rows import unit_rows
from relcore.runs.work import silent

if TYPE_CHECKING:
    from relcore.encoders.api import ApiText
    from relcore.encoders.dataset import Dataset
    from relcore.encoders.onnx_texts import OnnxText
    from relcore.encoders.transformers import PretrainedText

    TextEncoder = PretrainedText | OnnxText | ApiText


# Test whether a collection holds vectors of two models. The test compares the short axes of the two parts
# that differ most.
#
# Topics, languages and duplicates move the long axes of a space. The axes that a model hardly uses are the
# same for all its texts. So the rows are split by the two Gaussians that fit them best, and the variances
# of both parts are compared along the axes of one part. Within a model, the log variances rise together
# (slope 1). If the two parts have different coordinates, they do not (slope 0). The split uses every other
# dimension, and the comparison uses the remaining ones, because an axis that was used to choose rows is no
# evidence about them.
#
# The rows are shuffled once. Each sample of a part, and the first half of a part, consists of its first
# rows in this order. So equal parts have equal slopes, however they were found.

# limits of `Slope.high`, as measured in benchmarks/check_rates.md
MIXED = 0.25
ANCHORS = Path(__file__).parents[1] / "data" / "anchors" / "anchors.txt"
UNCHANGED = ("same", "rounded", "rescaled")  # changes that hardly affect search by cosine
# The recipe of vectors: if their model is available, try the likely prompts, poolings and layers.
PROMPTS = (
    "",
    "query: ",
    "passage: ",
    "search_query: ",
    "search_document: ",
    "Represent this sentence for searching relevant passages: ",
)
Pooling = Literal["mean", "cls"]
POOLINGS: tuple[Pooling, ...] = ("mean", "cls")
NAMED = 0.999  # minimum mean cosine of vectors with those that the recipe makes


def encode_texts(encoder: TextEncoder, texts: Sequence[str], *prompts: str) -> dict[str, np.ndarray]:
    """Encode texts by several recipes: with each prompt, which is put before each text, and by each layer of
    the encoder. Returns vectors (n, d) by the name of the recipe (“prompt, pooling, output”).
    """
    encode = encoder.prepare(as_dataset(texts, *prompts), silent)
    pooling = ""
    if hasattr(encoder, "pooling"):
        pooling = f"pooling {encoder.pooling}"
    return {
        ", ".join(filter(None, [f"the prompt {prompt!r}", pooling, output])): rows
        for prompt in prompts
        for output, rows in encode([f"{prompt}{text}" for text in texts]).items()
    }


def as_dataset(texts: Sequence[str], *prompts: str) -> Dataset:
    """The texts with each prompt as a dataset."""
    from relcore.encoders.dataset import Dataset

    items = [f"{prompt}{text}" for prompt in prompts for text in texts]
    numbers = list(map(str, range(len(items))))
    return Dataset(lambda start, stop: items[start:stop], numbers, name="anchors", kind="texts")


def model_at_hand(name: str, last: bool = False, service: Mapping[str, Any] | None = None) -> TextEncoder:
    """Load the text encoder that outputs all layers of a model, or only its `last` one. The name is "minilm",
    the path of a transformers folder, "onnx" for the bundled graph, which has one output, "onnx:FOLDER", or
    "api:MODEL" for a model of a provider, whose other settings are in `service`.
    """
    from relcore.encoders.api import ApiText
    from relcore.encoders.model_files import model_folder
    from relcore.encoders.onnx_texts import OnnxText
    from relcore.encoders.transformers import PretrainedText, minilm_folder

    kind, _, graph = name.partition(":")
    if kind in ("api", "api-text"):
        if graph:
            return ApiText(graph, **(service or {}))
        return ApiText(**(service or {}))
    if kind in ("onnx", "onnx-text"):
        if graph:
            return OnnxText(graph)
        return OnnxText()
    if name == "minilm":
        folder = minilm_folder()
    else:
        folder = model_folder(name)
    n_layers = read_file(Path(folder) / "config.json", "a model").get("num_hidden_layers", 0)
    layers: tuple[int, ...] = (-1,)
    if n_layers:
        layers = tuple(range(n_layers + 1))
    if last:
        layers = layers[-1:]
    return PretrainedText(str(folder), layers)


def with_pooling(encoder: TextEncoder, pooling: str) -> TextEncoder:
    """The same model with another pooling, if it has a choice. It refuses a pooling that it does not have."""
    from relcore.encoders.api import ApiText

    if isinstance(encoder, ApiText):
        return encoder
    return replace(encoder, pooling=cast(Pooling, pooling))


def name_recipe(
    encoder: TextEncoder,
    texts: Sequence[str],
    new: np.ndarray,
    prompts: Sequence[str] = PROMPTS,
) -> str:
    """The recipe (prompt, pooling and layer) with which this model encodes the texts as the vectors `new` (n,
    e); "" if there is none."""
    return fitting(recipes_of(encoder, texts, prompts), new)


def recipes_of(
    encoder: TextEncoder, texts: Sequence[str], prompts: Sequence[str] = PROMPTS
) -> dict[str, np.ndarray]:
    """The result of `encode_texts` with both poolings, if the encoder has a choice."""
    from relcore.encoders.api import ApiText
    from relcore.encoders.transformers import PretrainedText

    if isinstance(encoder, ApiText):
        return encode_texts(encoder, texts, *prompts)
    tried: dict[str, np.ndarray] = {}
    for pooling in POOLINGS:
        variant = with_pooling(encoder, pooling)
        if isinstance(variant, PretrainedText) and pooling != "mean":
            # Layer 0 needs the mean, because its class token is the same for every text.
            variant = replace(variant, layers=tuple(layer for layer in variant.layers if layer))
        tried |= encode_texts(variant, texts, *prompts)
    return tried


def fitting(tried: Mapping[str, np.ndarray], new: np.ndarray) -> str:
    """The name of the recipe in `tried` whose vectors (n, d) have the highest mean cosine with `new`; "" if
    this is below .999.
    """
    units = unit_rows(new)
    near = {
        told: float(np.vecdot(unit_rows(rows), units).mean())
        for told, rows in tried.items()
        if rows.shape[1] == new.shape[1]
    }
    best = max(near, key=near.__getitem__, default="")
    if near.get(best, 0) >= NAMED:
        return best
    return ""
