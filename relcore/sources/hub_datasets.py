"""Hugging Face datasets by name or folder, read by the library `datasets` itself; without network it says so at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relcore.access import expanded, shared
from relcore.sources.dataset import Dataset, DatasetSpec
from relcore.sources.item_tables import ColumnKind
from relcore.sources.network import hub_answers
from relcore.sources.places import HUB_NAME, hub_folder
from relcore.sources.table_dataset import table_dataset
from relcore.spaces import SpaceError, quote

LISTED = (
    ("ylecun/mnist", "images", "test", 10_000, "handwritten digits, 28 × 28, 10 classes"),
    ("zalando-datasets/fashion_mnist", "images", "test", 10_000, "clothes, 28 × 28, 10 classes"),
    ("uoft-cs/cifar10", "images", "test", 10_000, "photographs, 32 × 32, 10 classes"),
    ("fancyzhx/ag_news", "texts", "test", 7_600, "news, 4 classes"),
    ("fancyzhx/dbpedia_14", "texts", "test", 70_000, "encyclopedia entries, 14 classes"),
    ("stanfordnlp/imdb", "texts", "test", 25_000, "film reviews, 2 classes"),
)


def hub_dataset(spec: DatasetSpec) -> Dataset:
    """One split of a dataset of the hub, of a folder in a layout that `datasets` knows, or of one saved by it.

    Raises
    ------
    SpaceError
        A name that is neither on disk nor, within about two seconds, to be asked for; whatever the library refuses.
    """
    table = hub_table(spec)
    return table_dataset(table, spec, table.name, config=None)


def hub_table(spec: DatasetSpec) -> HubTable:
    """The table behind `hub_dataset`."""
    import datasets

    settings = spec.settings(config=None, empty=None)
    folder = hub_folder(spec.name)
    if folder is not None:
        return HubTable(*_loaded(str(folder), settings["config"], spec.split), folder.name)
    if not HUB_NAME.fullmatch(spec.name):
        raise SpaceError(
            f"expected a folder or the hub's name of a dataset ('owner/name'), got {spec.name!r}, where there is nothing; "
            "check the spelling, or choose the source 'file' for a single file"
        )
    if shared() and not downloaded(spec.name) and spec.name not in (names := [name for name, *_ in LISTED]):
        raise SpaceError(
            f"{spec.name!r:.80}: this app is shared, so it downloads only the datasets of its list, {quote(names)}; ask "
            "whoever runs it to download this one"
        )
    short = spec.name.rsplit("/", 1)[-1]
    if not datasets.config.HF_HUB_OFFLINE and hub_answers():
        return HubTable(*_loaded(spec.name, settings["config"], spec.split), short)
    if not downloaded(spec.name):
        raise SpaceError(
            f"{spec.name}: expected it on this machine, or the network to download it, got neither; where there is one run "
            f"datasets.load_dataset({spec.name!r}).save_to_disk(folder), copy the folder here, and give its path"
        )
    with _offline():
        return HubTable(*_loaded(spec.name, settings["config"], spec.split), short)


def downloaded(name: str) -> bool:
    """Whether the hub's dataset has been loaded on this machine before; needs neither the network nor the library."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    cache = expanded(os.environ.get("HF_DATASETS_CACHE") or home / "datasets")
    return (cache / name.replace("/", "___")).is_dir()


class HubTable:
    """A split as an `ItemTable`; the library maps its rows into memory from its own cache."""

    folder = None

    def __init__(self, rows: Any, split: str, short: str) -> None:
        from datasets import ClassLabel, Image

        self.name = f"{short}/{split}" if split else short
        self.columns = {column: _kind(feature) for column, feature in rows.features.items()}
        self.class_names: dict[str, Sequence[str]] = {
            column: feature.names for column, feature in rows.features.items() if isinstance(feature, ClassLabel)
        }
        rows = rows.with_format(None)
        for column, feature in rows.features.items():
            if isinstance(feature, Image):
                rows = rows.cast_column(column, Image(decode=False))
        self._n = len(rows)
        self._columns = {column: rows.select_columns([column]) for column in self.columns}

    def __len__(self) -> int:
        return self._n

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        return list(self._columns[column][start:stop][column]) if start < stop else []


def _loaded(name: str, config: str | None, split: str) -> tuple[Any, str]:
    """The rows and the split that they are."""
    import datasets

    saved = Path(name, "dataset_dict.json").is_file() or Path(name, "state.json").is_file()
    try:
        if saved:
            found = datasets.load_from_disk(name)
        elif split:
            return datasets.load_dataset(name, config, split=split), split
        else:
            names = datasets.get_dataset_split_names(name, config)
            found = datasets.load_dataset(name, config, split=names[0]) if len(names) == 1 else dict.fromkeys(names)
            if len(names) == 1:
                return found, names[0]
    except Exception as error:  # the library, the hub's client, Arrow, the disk: each has its own
        reason = (str(error) or type(error).__name__).strip().split("\n")[0]
        raise SpaceError(f"{name}: expected a dataset that datasets.load_dataset can load, got {reason[:300]}") from error
    if not isinstance(found, dict):
        return found, ""
    if not split and len(found) == 1:
        split = next(iter(found))
    if split not in found:
        raise SpaceError(f"{name}: split: expected one of {quote(found)}, got {split!r}")
    return found[split], split


def _kind(feature: Any) -> ColumnKind:
    from datasets import ClassLabel, Image, Value

    if isinstance(feature, Image):
        return "image"
    if isinstance(feature, ClassLabel):
        return "number"
    if isinstance(feature, Value):
        if feature.dtype in ("string", "large_string"):
            return "text"
        return "number" if feature.dtype.startswith(("int", "uint", "float", "bool")) else "other"
    return "other"


@contextmanager
def _offline() -> Iterator[None]:
    """What is in the cache is loaded without asking the hub first, which would be tried again and again."""
    from datasets import config
    from huggingface_hub import constants

    before = config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before
