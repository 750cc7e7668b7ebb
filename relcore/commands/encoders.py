"""Encoders by short names and options: those of the page's choosers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relcore.sources.dataset import Dataset
    from relcore.sources.encoder import Encoder

# Short name → its name in `relcore.sources.encoder.ENCODERS`, what that says of it, and the options that it takes.
_SMALL = ("width", "epochs", "random_state", "image_size")
_GRAPH = ("layers", "width", "epochs", "random_state")
SHORT_NAMES: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    **{name: ("small-vision", {"architecture": name}, _SMALL) for name in ("mlp", "cnn", "residual", "vit")},
    "minilm": ("minilm", {}, ("layers",)),
    "tfidf": ("tfidf-svd", {}, ("dimensions", "random_state")),
    "words": ("pooled-words", {}, ("words", "weighting")),
    **{name: ("graph", {"architecture": name}, _GRAPH) for name in ("gcn2", "gin")},
}
_PRETRAINED = {"images": "pretrained-vision", "texts": "pretrained-text"}
_OPTIONS = ("layers", "pooling", "width", "epochs", "image_size", "dimensions", "words", "weighting", "random_state")
_MINILM_LAYERS = (2, 4, 6)
_MOST_DIMENSIONS = 384


def add_encoders(parser: argparse.ArgumentParser) -> None:
    """--encoder and the settings that encoders have."""
    parser.add_argument(
        "--encoder",
        metavar="NAMES",
        action="append",
        required=True,
        help="between commas, or given again: mlp, cnn, residual, vit (small networks, trained now), minilm, tfidf, words "
        "(pooled word vectors), gcn2, gin, a folder or hub name of a transformers model, timm:NAME, or a .json file",
    )
    parser.add_argument(
        "--layers",
        metavar="N,N",
        help="of a transformer, one space each (-1: the last); of minilm default 2,4,6; of graphs a number",
    )
    parser.add_argument("--pooling", help="of a transformer: mean, cls or pooled; default mean")
    parser.add_argument("--width", type=int, metavar="N", help="dimensions of a network's space; default 64, of graphs 300")
    parser.add_argument("--epochs", type=int, metavar="N", help="of its training; default 12, of graphs 60")
    parser.add_argument("--image-size", type=int, metavar="PIXELS", help="every picture is made so large; default its own size")
    parser.add_argument(
        "--dimensions", type=int, metavar="N", help="of tfidf; default 384, at most a quarter of the number of texts"
    )
    parser.add_argument("--words", metavar="SPACE", help="the word vectors of words; default word2vec-novels")
    parser.add_argument("--weighting", help="of words: plain, idf or sif; default sif")
    parser.add_argument("--random-state", type=int, metavar="N", help="of a training; default 0")


def encoders_of(options: argparse.Namespace, dataset: Dataset) -> list[Encoder]:
    """The encoders that --encoder names, each once.

    Raises
    ------
    SpaceError
        An unknown name, an option that none of them takes, settings that cannot be.
    """
    from relcore.spaces import SpaceError, quote

    names = [name.strip() for given in options.encoder for name in given.split(",") if name.strip()]
    if not names:
        raise SpaceError("--encoder: expected the name of an encoder, got none")
    given = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name) is not None}
    taken: set[str] = set()
    encoders = [_encoder(name, given, dataset, taken) for name in names]
    if unused := [f"--{name.replace('_', '-')}" for name in given if name not in taken]:
        raise SpaceError(f"expected options that {quote(names)} take, got {quote(unused)}; leave them out, or add an encoder")
    return list(dict.fromkeys(encoders))


def _encoder(name: str, given: dict[str, Any], dataset: Dataset, taken: set[str]) -> Encoder:
    from relcore.commands.naming import did_you_mean, read_json
    from relcore.sources.encoder import encoder_from_json
    from relcore.spaces import SpaceError

    path = Path(name).expanduser()
    if path.suffix.lower() == ".json":
        return encoder_from_json(read_json(path, "an encoder"))
    if name in SHORT_NAMES:
        kind, record, allowed = SHORT_NAMES[name]
    elif name.startswith("timm:"):
        kind, record, allowed = "timm", {"model": name.removeprefix("timm:")}, ()
    elif (path.is_dir() or "/" in name) and dataset.kind in _PRETRAINED:
        kind, record, allowed = _PRETRAINED[dataset.kind], {"model": name}, ("layers", "pooling")
    else:
        raise SpaceError(
            f"--encoder: expected {', '.join(SHORT_NAMES)}, timm:NAME, a model's folder or hub name, or a .json file, got "
            f"{name!r}{did_you_mean(name, SHORT_NAMES)}"
        )
    settings = {option: value for option, value in given.items() if option in allowed}
    taken |= set(settings)
    return encoder_from_json({"encoder": kind, **record, **_read(kind, settings, len(dataset))})


def _read(kind: str, settings: dict[str, Any], n: int) -> dict[str, Any]:
    """The settings under the encoder's own names, and the page's defaults where these are others than the encoder's."""
    read = dict(settings)
    if kind == "tfidf-svd":
        read["n_components"] = read.pop("dimensions", min(_MOST_DIMENSIONS, max(n // 4, 1)))
    if kind == "minilm":
        read.setdefault("layers", ",".join(map(str, _MINILM_LAYERS)))
    if "layers" in read:
        layers = _numbers(read["layers"])
        read["layers"] = layers[0] if kind == "graph" and len(layers) == 1 else layers
    return read


def _numbers(text: str) -> tuple[int, ...]:
    from relcore.spaces import SpaceError

    try:
        return tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError as error:
        raise SpaceError(f"--layers: expected whole numbers such as 4,8,12, got {text!r}") from error
