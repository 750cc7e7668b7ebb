"""Encoders and their settings on the command line, by the names of `relcore.base.names` and the fields of
the encoders.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from relcore.base.names import ENCODERS
from relcore.commands.naming import whole

if TYPE_CHECKING:
    from relcore.base.settings import Setting
    from relcore.encoders.dataset import Dataset, DatasetSpec
    from relcore.encoders.encoder import Encoder


def add_encoders(parser: argparse.ArgumentParser) -> None:
    """--encoder, without loading any."""
    named = ", ".join(f"{name} ({entry.help})" if entry.help else name for name, entry in ENCODERS.items())
    parser.add_argument(
        "--encoder",
        metavar="NAMES",
        action="append",
        required=True,
        help=(
            f"encoders, separated by commas or given several times: {named}; or a .json file with an encoder."
            " For the settings of an encoder: --encoder NAME --help"
        ),
    )


def add_settings(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """An option for each setting of an encoder; for --help of the encoders named only, and of none without
    importing them.
    """
    helping = bool({"-h", "--help"} & set(arguments))
    named = [name for flag, value in pairwise(arguments) if flag == "--encoder" for name in value.split(",")]
    if helping and not named:
        return
    group = parser.add_argument_group("settings of encoders")
    for option, owners in _options(_registered(named) if helping else ()).items():
        told = "; ".join(f"{name}: {_described(one)}" for name, one in owners.items())
        group.add_argument(_flag(option), dest=option, metavar="VALUE", help=told.replace("%", "%%"))


def _registered(names: Sequence[str]) -> set[str]:
    """The registered names of encoders that a user names; what names none is left out."""
    from relcore.base.errors import SpaceError

    found = set()
    for name, kind in product(names, ("images", "texts")):
        with suppress(SpaceError):
            found.add(_named(name, kind)[0])
    return found


def _described(one: Setting) -> str:
    """What the setting does, its choices and its default."""
    usual = (
        one.default
        if one.several or one.usual is ...
        else "depends on the data"
        if callable(one.usual)
        else one.usual
    )
    usual = ",".join(map(str, usual)) if isinstance(usual, tuple) else usual
    parts = [one.help.rstrip(".") or one.label, f"one of {', '.join(one.choices)}" if one.choices else ""]
    parts.append("" if usual is ... else f"default: {usual}")
    return "; ".join(part for part in parts if part)


def encoders_of(options: argparse.Namespace, dataset: Dataset) -> list[Encoder]:
    """The encoders that --encoder names, each once.

    Raises
    ------
    SpaceError
        An unknown name, an option that none of them takes, settings that cannot be.
    """
    from relcore.base.errors import SpaceError, quote

    names = [name.strip() for given in options.encoder for name in given.split(",") if name.strip()]
    if not names:
        raise SpaceError("--encoder: expected the name of an encoder, got none")
    given = {name: value for name in _options() if (value := getattr(options, name, None)) is not None}
    taken: set[str] = set()
    encoders = [_encoder(name, given, dataset, taken) for name in names]
    if unused := [_flag(name) for name in given if name not in taken]:
        raise SpaceError(
            f"expected options of {quote(names)}, got {quote(unused)}; remove them, or add the encoder that"
            " they belong to"
        )
    return list(dict.fromkeys(encoders))


def _encoder(name: str, given: dict[str, Any], dataset: Dataset, taken: set[str]) -> Encoder:
    from types import SimpleNamespace

    from relcore.base.access import expanded
    from relcore.base.settings import UNSET, settings_of
    from relcore.commands.naming import read_json
    from relcore.encoders.encoder import encoder_class, encoder_from_json

    path = expanded(name)
    if path.suffix.lower() == ".json":
        return encoder_from_json(read_json(path, "an encoder"))
    kind, values = _named(name, dataset.kind)
    data = SimpleNamespace(n=len(dataset), classes=(), sizes=())
    for one in settings_of(encoder_class(kind)).values():
        if one.option in given and one.name not in values:
            values[one.name] = _read(one, given[one.option])
            taken.add(one.option)
        elif one.usual is not UNSET and not one.several:
            values.setdefault(one.name, one.start(data))
    return encoder_from_json({"encoder": kind, **values})


def _named(name: str, kind: str) -> tuple[str, dict[str, Any]]:
    """The registered name that the user means, and the setting that the name tells: its first one."""
    from relcore.base.access import expanded
    from relcore.base.errors import SpaceError
    from relcore.base.settings import UNSET, settings_of
    from relcore.commands.naming import did_you_mean

    classes = {one: entry.load() for one, entry in ENCODERS.items()}
    firsts = {one: next(iter(settings_of(found).values())) for one, found in classes.items()}
    known = {one: (one, {}) for one in classes} | {
        found.short: (one, {}) for one, found in classes.items() if found.short
    }
    for one, first in firsts.items():
        if first.several:
            known = {choice: (one, {first.name: choice}) for choice in first.choices} | known
    head, _, value = name.partition(":")
    if name in known:
        return known[name]
    if value and head in known:
        return known[head][0], {firsts[known[head][0]].name: value}
    if "/" in name or expanded(name).is_dir():
        for one, found in classes.items():
            if found.kind == kind and firsts[one].default is UNSET:
                return one, {firsts[one].name: name}
    raise SpaceError(
        f"--encoder: expected {', '.join(known)}, timm:NAME, a model's folder or hub name, or a .json file,"
        f" got {name!r}{did_you_mean(name, known)}"
    )


def _options(names: Collection[str] = ()) -> dict[str, dict[str, Setting]]:
    """Option → the encoders that have it, each with its setting; of these encoders, or of all."""
    from relcore.base.settings import settings_of

    options: dict[str, dict[str, Setting]] = {}
    for name in (one for one in ENCODERS if not names or one in names):
        for one in settings_of(ENCODERS[name].load()).values():
            options.setdefault(one.option, {})[name] = one
    return options


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _read(one: Setting, text: Any) -> Any:
    from relcore.base.errors import SpaceError

    try:
        return one.read(text)
    except SpaceError as error:
        raise SpaceError(f"{_flag(one.option)}{str(error).removeprefix(one.name)}") from error


# Names of datasets on the command line.

DATASET_HELP = (
    "digits, wikipedia, wikipedia:16 (sentences of 16 articles), parallel:en (everyday sentences in English),"
    " a table (.parquet, .csv, .tsv), a folder of pictures or tables, a Hugging Face dataset (owner/name), a"
    " dataset that the app lists, or a .json file with the spec of a dataset"
)
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """DATASET, and which part of it."""
    parser.add_argument("dataset", metavar="DATASET", help=DATASET_HELP)
    parser.add_argument(
        "--limit",
        type=whole,
        metavar="N",
        help="use at most N items: the first ones, or equally many of each class",
    )
    parser.add_argument(
        "--split", default="", help="the split to use, such as train or test, if there are several"
    )
    parser.add_argument(
        "--config",
        default="",
        metavar="NAME",
        help="the configuration of a Hugging Face dataset, if it has several",
    )
    parser.add_argument(
        "--column",
        default="",
        metavar="NAME",
        help="the column of a table to encode; default: found automatically",
    )
    parser.add_argument(
        "--label-column",
        default="",
        metavar="NAME",
        help="the column of its labels; default: found automatically",
    )


def dataset_spec(options: argparse.Namespace) -> DatasetSpec:
    """The spec of the dataset that a user names.

    Raises
    ------
    SpaceError
        An unknown name, with similar ones.
    """
    spec = _named_of_datasets(options.dataset, options.config)
    given = {
        "split": options.split,
        "column": options.column,
        "label_column": options.label_column,
        "limit": options.limit,
    }
    return replace(spec, **{name: value for name, value in given.items() if value not in ("", None)})


def _named_of_datasets(text: str, config: str) -> DatasetSpec:
    from relcore.base.access import expanded
    from relcore.base.errors import SpaceError
    from relcore.commands.naming import did_you_mean, read_json
    from relcore.encoders.dataset import DatasetSpec
    from relcore.encoders.datasets import available_datasets, downloaded
    from relcore.encoders.wikipedia import TASK

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
    options = (("config", config),) if config else ()
    if path.is_file():
        return DatasetSpec("file", str(path))
    if path.is_dir():
        saved = (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()
        return DatasetSpec("huggingface" if saved else "folder", str(path), options=options if saved else ())
    if _HUB_NAME.fullmatch(text) or downloaded(text):
        return DatasetSpec("huggingface", text, options=options)
    raise SpaceError(f"{text!r}: expected {DATASET_HELP}; nothing matches{did_you_mean(text, listed)}")
