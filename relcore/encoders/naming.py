"""Encoders and datasets as users name them on the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from relcore.base.access import expanded
from relcore.base.errors import SpaceError, did_you_mean
from relcore.base.names import ENCODERS
from relcore.base.portable import read_json
from relcore.base.settings import UNSET, settings_of
from relcore.encoders.bundled import TASK
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import available_datasets, downloaded
from relcore.encoders.encoder import Encoder, encoder_class, encoder_from_json

DATASET_HELP = (
    "digits, wikipedia, wikipedia:16 (sentences of 16 articles), parallel:en (everyday sentences in English),"
    " a table (.parquet, .csv, .tsv), a folder of pictures or tables, a Hugging Face dataset (owner/name), a"
    " dataset that the app lists, or a .json file with the spec of a dataset"
)
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def encoder_named(name: str, given: dict[str, str], dataset: Dataset, taken: set[str]) -> Encoder:
    path = expanded(name)
    if path.suffix.lower() == ".json":
        return encoder_from_json(read_json(path, "an encoder"))
    kind, values = _named(name, dataset.kind)
    data = SimpleNamespace(n=len(dataset), classes=(), sizes=())
    for one in settings_of(encoder_class(kind)).values():
        if one.option in given and one.name not in values:
            values[one.name] = replace(one, name=f"--{one.option.replace('_', '-')}").read(given[one.option])
            taken.add(one.option)
        elif one.usual is not UNSET and not one.several:
            values.setdefault(one.name, one.start(data))
    return encoder_from_json({"encoder": kind, **values})


def _named(name: str, kind: str) -> tuple[str, dict[str, Any]]:
    """The registered encoder that the user names, and its first setting, which follows the colon."""
    known, firsts, choices = {}, {}, {}
    for registered, encoder in ENCODERS.loaded():
        first = firsts[registered] = next(iter(settings_of(encoder).values()), None)
        names = {known_name: (registered, {}) for known_name in (registered, encoder.short) if known_name}
        if first and first.several:
            choices = {choice: (registered, {first.name: choice}) for choice in first.choices} | choices
        known = names | choices | known if ENCODERS[registered].plugin else known | names
    known = choices | known
    head, _, value = name.partition(":")
    if name in known:
        return known[name]
    if value and head in known and firsts[known[head][0]]:
        return known[head][0], {firsts[known[head][0]].name: value}
    if "/" in name or expanded(name).is_dir():
        for registered, first in firsts.items():
            if first and encoder_class(registered).kind == kind and first.default is UNSET:
                return registered, {first.name: name}
    raise SpaceError(
        f"--encoder: expected {', '.join(known)}, timm:NAME, a model's folder or hub name, or a .json file,"
        f" got {name!r}{did_you_mean(name, known)}"
    )


def dataset_named(text: str, options: tuple[tuple[str, str], ...]) -> DatasetSpec:
    listed = {entry.name: entry.spec for entry in available_datasets()}
    head, _, tail = text.partition(":")
    path = expanded(text)
    if text in listed and not path.exists():
        return listed[text]
    if head == "wikipedia" and tail.isdecimal():
        return DatasetSpec("wikipedia", options=tuple((dict(TASK.options) | {"articles": int(tail)}).items()))
    if head == "parallel":
        return DatasetSpec("parallel", tail)
    if path.suffix.lower() == ".json":
        return DatasetSpec.from_json(read_json(path, "a dataset's spec"))
    if path.is_file():
        return DatasetSpec("file", str(path))
    if path.is_dir():
        saved = (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()
        return DatasetSpec("huggingface" if saved else "folder", str(path), options=options if saved else ())
    if _HUB_NAME.fullmatch(text) or downloaded(text):
        return DatasetSpec("huggingface", text, options=options)
    raise SpaceError(f"{text!r}: expected {DATASET_HELP}; nothing matches{did_you_mean(text, listed)}")
