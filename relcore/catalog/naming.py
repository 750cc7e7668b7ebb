"""Find the spaces, encoders and datasets that users name on the command line. List the bundled labelled
tasks."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, did_you_mean, quote
from relcore.base.kinds import takes_kinds
from relcore.base.names import ENCODERS
from relcore.base.records import read_json
from relcore.base.settings import UNSET, settings_of
from relcore.catalog.catalog import SpaceSpec, stored_encoding_spec
from relcore.encoders.bundled_data import TASK
from relcore.encoders.dataset import HUB_NAME, Dataset, DatasetSpec
from relcore.encoders.datasets import available_datasets, is_downloaded
from relcore.encoders.encoder import Encoder, encoder_class, encoder_from_json
from relcore.encoders.words import BUNDLED, MODELS
from relcore.files.formats import suffix_of
from relcore.files.parts import parts_of, series_of
from relcore.files.reading import shape_of
from relcore.files.saving import FILE_OPTIONS
from relcore.runs.entries import BundledResults, FinishedGroup
from relcore.runs.store import Store
from relcore.stores.index import parse_place

SPACE_HELP = (
    "a bundled space, a vector file (of a table also FILE#id_column=NAME#ignore=NAME,NAME, of a file with"
    " several matrices FILE#matrix=NAME; see relscope available --help), the folder of a saved dataset, a"
    " gensim-data model, the name or key of an encoding in the store (the first 8 digits are enough), a"
    " vector index (as lancedb:FOLDER#TABLE), or a .json file with the spec of a space"
)
_KEY = re.compile(r"[0-9a-f]{8,128}")


def space_spec(text: str) -> SpaceSpec:
    """The spec of the space that a user names.

    Raises
    ------
    SpaceError
        The name is unknown (the message suggests similar names), several encodings have the name, or a .json
        file does not describe a space.
    """
    if os.path.isfile(text) and suffix_of(Path(text)):
        return SpaceSpec("file", text)
    if text in BUNDLED or text in MODELS:
        return SpaceSpec("bundled" if text in BUNDLED else "gensim-data", text)
    if (place := parse_place(text)) and place.where != text:
        return SpaceSpec("index", place.where, options=(("kind", place.kind), ("table", place.table)))
    path, options = _file_and_options(text)
    if path.suffix.lower() == ".json":
        return SpaceSpec.from_json(read_json(path, "a space's spec"))
    is_one_folder = path.is_dir() and ("parts" in dict(options) or parts_of(path))
    if path.is_file() or suffix_of(path) or is_one_folder:
        return SpaceSpec("file", str(path), options=options)
    stored = [entry for entry in Store().summaries() if "encoder" in entry.metadata]
    chosen = [entry for entry in stored if _KEY.fullmatch(text) and entry.key.startswith(text)]
    chosen = chosen or [entry for entry in stored if entry.metadata.get("name") == text]
    if len(chosen) > 1:
        keys = quote(entry.key for entry in chosen)
        raise SpaceError(
            f"{text!r}: expected one encoding, got {len(chosen)} with this name; use a key: {keys}"
        )
    if chosen:
        if (spec := stored_encoding_spec(chosen[0])) is None:
            expected = "expected an encoding of a dataset that can be loaded, got one made by a script"
            raise SpaceError(f"{chosen[0].metadata['name']!r}: {expected}")
        return spec
    if path.is_dir():
        raise SpaceError(
            f"{text!r}: expected one space, got a folder that may hold several; name one of its files, or"
            " open them all with relscope app FOLDER"
        )
    names = [*BUNDLED, *MODELS, *(entry.metadata["name"] for entry in stored)]
    if path.parent.is_dir():
        names += [str(file) for file in path.parent.iterdir() if file.is_file()]
    if near := did_you_mean(text, names):
        raise SpaceError(f"{text!r}: expected the name of a space, got one that nothing matches{near}")
    raise SpaceError(f"{text!r}: expected {SPACE_HELP}; nothing matches")


def space_specs(text: str) -> list[SpaceSpec]:
    """The specs of the spaces that a user names. A folder may contain several spaces, such as checkpoints,
    which are listed in natural order. Any other name has the one spec that `space_spec` returns."""
    path, options = _file_and_options(text)
    if text in BUNDLED or text in MODELS or not path.is_dir() or parts_of(path):
        return [space_spec(text)]
    files = series_of(path, lambda file: shape_of(file) is not None)
    return [SpaceSpec("file", str(file), options=options) for file in files]


def _file_and_options(text: str) -> tuple[Path, tuple[tuple[str, str], ...]]:
    """Split ``FILE#OPTION=VALUE#OPTION=VALUE`` into the path and the options of its spec. Commas separate the
    names of columns to ignore.

    Raises
    ------
    SpaceError
        An unknown option.
    """
    path = expand_home(text)
    (name, *settings) = text.split("#")
    if path.exists() or not any("=" in option for option in settings):
        return path, ()
    options = dict(option.partition("=")[::2] for option in settings)
    if unknown := options.keys() - set(FILE_OPTIONS):
        raise SpaceError(
            f"{text!r:.80}: expected some of {quote(FILE_OPTIONS)} after '#', got {quote(sorted(unknown))}"
        )
    if "ignore" in options:
        options["ignore"] = json.dumps(options["ignore"].split(","), ensure_ascii=False)
    return expand_home(name), tuple(options.items())


SEND_TO_HELP = (
    "For api: the host of the provider to which the texts may be sent, such as api.openai.com or"
    " 127.0.0.1:11434; http://HOST if the host is another machine without encryption. Without this option no"
    " text leaves this machine."
)
DATASET_HELP = (
    "digits, wikipedia, wikipedia:16 (sentences of 16 articles), parallel:en (everyday sentences in English),"
    " a table (.parquet, .csv, .tsv), a folder of pictures or tables, a Hugging Face dataset (owner/name), a"
    " dataset that the app lists, or a .json file with the spec of a dataset"
)


def encoder_named(name: str, options: dict[str, str], dataset: Dataset, taken: set[str]) -> Encoder:
    path = expand_home(name)
    if path.suffix.lower() == ".json":
        return encoder_from_json(read_json(path, "an encoder"))
    kind, values = _encoder_of_name(name, dataset.kind)
    data = SimpleNamespace(n=len(dataset), classes=(), sizes=())
    for one in settings_of(encoder_class(kind)).values():
        if one.option in options and one.name not in values:
            setting = replace(one, name=f"--{one.option.replace('_', '-')}")
            values[one.name] = setting.read(options[one.option])
            taken.add(one.option)
        elif one.usual is not UNSET and not one.several:
            values.setdefault(one.name, one.start(data))
    return encoder_from_json({"encoder": kind, **values})


def _encoder_of_name(name: str, kind: str) -> tuple[str, dict[str, Any]]:
    """Return the registered name of the encoder that the user names, and the value of its first setting,
    which follows the colon."""
    known: dict[str, tuple[str, dict[str, Any]]] = {}
    firsts = {}
    choices: dict[str, tuple[str, dict[str, Any]]] = {}
    for registered, encoder in ENCODERS.loaded():
        first = next(iter(settings_of(encoder).values()), None)
        firsts[registered] = first
        if first and first.several:
            choices = {choice: (registered, {first.name: choice}) for choice in first.choices} | choices
        names = {registered: (registered, {})}
        # A short name that encoders of texts and of pictures share means the one for this dataset.
        if encoder.short and (encoder.kind == kind or encoder.short not in known):
            names[encoder.short] = (registered, {})
        # Our names hide equal choices of a setting, which hide equal names of plugins.
        if ENCODERS[registered].plugin:
            known = names | choices | known
        else:
            known = known | names
    known = choices | known
    head, _, value = name.partition(":")
    if name in known:
        return known[name]
    if value and head in known and firsts[known[head][0]]:
        return known[head][0], {firsts[known[head][0]].name: value}
    if "/" in name or expand_home(name).is_dir():
        for registered, first in firsts.items():
            if first and encoder_class(registered).kind == kind and first.default is UNSET:
                return registered, {first.name: name}
    raise SpaceError(
        f"--encoder: expected {', '.join(known)}, a model's folder or hub name, or a .json file,"
        f" got {name!r}{did_you_mean(name, known)}"
    )


def dataset_named(text: str, options: tuple[tuple[str, str], ...]) -> DatasetSpec:
    listed = {entry.name: entry.spec for entry in available_datasets()}
    head, _, tail = text.partition(":")
    path = expand_home(text)
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
    if ("/" in text and HUB_NAME.fullmatch(text)) or is_downloaded(text):
        return DatasetSpec("huggingface", text, options=options)
    raise SpaceError(f"{text!r}: expected {DATASET_HELP}; nothing matches{did_you_mean(text, listed)}")


# Labelled tasks whose encodings are bundled with Relscope.


@dataclass(frozen=True)
class Example:
    """A bundled example: a dataset of `n` rows, and its encoders as JSON (`described`)."""

    title: str
    explanation: str
    n: int
    dataset: DatasetSpec
    described: tuple[dict[str, str], ...]

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return tuple(map(encoder_from_json, self.described))


EXAMPLES = {
    "digits": Example(
        "Digits, four networks",
        "1,797 scans of digits; four networks learned to read them, each from its own random start.",
        1797,
        DatasetSpec("digits"),
        tuple(
            {"encoder": "distorted-vision", "architecture": name}
            for name in ("mlp", "cnn", "residual", "vit")
        ),
    ),
    "sentences": Example(
        "Wikipedia sentences, three encoders",
        "960 sentences of 16 articles. The label is the article. Encoders: weighted means of Word2Vec and of"
        " FastText vectors, and MiniLM.",
        960,
        DatasetSpec("wikipedia", limit=960, options=TASK.options),
        (
            {"encoder": "pooled-words", "words": "word2vec-novels"},
            {"encoder": "pooled-words", "words": "fasttext-novels"},
            {"encoder": "minilm"},
        ),
    ),
}


@takes_kinds
def example_spaces(
    name: str, finished: BundledResults | None
) -> tuple[list[SpaceSpec], FinishedGroup | None]:
    """Return the specs of an example's encodings, and the group of bundled results that holds them. Without
    bundled results, there are no specs and no group.

    Examples
    --------
    >>> from relcore import bundled_results, example_spaces
    >>> specs, _ = example_spaces("digits", bundled_results())
    >>> len(specs)
    4
    """
    group = None
    if finished:
        group = finished.groups.get(name)
    if group is None:
        return [], None
    specs = [
        spec
        for key in group.files
        if (summary := finished.summary(key)) and (spec := stored_encoding_spec(summary))
    ]
    return specs, finished.bundled_group(group.files[0])
