"""The datasets that can be encoded. `load_dataset` reads one of them, and `available_datasets` lists them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, extra, need_one_of, quote
from relcore.base.numbers import percent
from relcore.encoders.bundled_data import (
    LANGUAGES,
    N_SENTENCES,
    TASK,
    digits_dataset,
    load_parallel,
    wikipedia_dataset,
)
from relcore.encoders.dataset import (
    HUB_NAME,
    SAMPLE,
    Dataset,
    DatasetEntry,
    DatasetOptions,
    DatasetSpec,
    dataset_place,
    evenly,
    hub_answers,
    hub_folder,
)
from relcore.encoders.item_tables import item_columns, label_columns, table_dataset, typical_id_column
from relcore.encoders.pictures import SUFFIXES as IMAGE_SUFFIXES
from relcore.encoders.pictures import decode_image, image_file
from relcore.files.item_rows import SUFFIXES as TABLE_SUFFIXES
from relcore.files.item_rows import ItemTable, first_kinds, open_table
from relcore.files.tables import ColumnKind
from relcore.runs.store import Store
from relcore.spaces.split import row_keys


@extra()
def load_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """The dataset that the spec names. Raises a SpaceError if its files cannot be read or its options are
    invalid. Datasets that are slow to parse are kept in `store`, by default `Store()`."""
    options = dict(spec.options)
    share = options.pop(SAMPLE, 1.0)
    whole = _whole_dataset(replace(spec, options=DatasetOptions(options.items())), store)
    if share == 1:
        return whole
    return whole.take(sample_rows(whole.ids, share), f"{whole.name}, {percent(share)}")


def sample_rows(ids: np.ndarray, share: Any) -> np.ndarray:
    """The numbers of the rows of a sample, in ascending order. They are drawn by a hash of the ids, so a
    larger sample contains each smaller one. Raises a SpaceError unless 0 < share ≤ 1."""
    if not isinstance(share, int | float) or not 0 < share <= 1:
        raise SpaceError(f"{SAMPLE}: expected a share of the rows, above 0 and at most 1, got {share!r:.80}")
    order = np.argsort(row_keys(ids, "sample of a dataset"), kind="stable")
    return np.sort(order[: max(1, round(share * len(ids)))])


def _whole_dataset(spec: DatasetSpec, store: Store | None) -> Dataset:
    if spec.source == "digits":
        return digits_dataset(spec)
    if spec.source == "wikipedia":
        return wikipedia_dataset(spec, store)
    if spec.source == "parallel":
        spec.settings()  # raises an error, because datasets of this source have no options
        need_one_of("language", spec.name, LANGUAGES)
        (ids, sentences) = load_parallel(("id", spec.name)).values()
        ids = ids[: spec.limit]
        sentences = sentences[: spec.limit]
        return Dataset(
            lambda start, stop: list(sentences[start:stop]), ids, name=f"everyday/{spec.name}", kind="texts"
        )
    if spec.source == "huggingface":
        table = hub_table(spec)
        return table_dataset(table, spec, table.name, config=None)
    path = dataset_place(spec)
    if spec.source == "folder":
        if not path.is_dir():
            raise SpaceError(f"expected a folder, got {spec.name!r}, where there is none; check the spelling")
        tables = _table_splits(path)
        if not tables:
            return _image_dataset(path, spec)
        paths = tables[_chosen(path, spec.split, list(tables))]
    else:
        paths = [path]
    encoding = dict(spec.options).get("encoding", "")
    return table_dataset(open_table(paths, encoding), spec, _table_name(paths[0]), encoding="")


# Folders. A folder of pictures has a sub-folder for each class. In a folder of tables, each table is a split.

_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_SPLIT = re.compile(r"(train|test|val|valid|validation|dev)(?![a-z])", re.IGNORECASE)


def _is_file(path: Path, suffixes: Sequence[str]) -> bool:
    return path.suffix.lower() in suffixes and access.may_read(path) and path.is_file()


def _table_splits(folder: Path) -> dict[str, list[Path]]:
    """A dictionary from the name of each split to the files of its table. A table in shards has several files
    (`train-00000-of-00002.parquet`)."""
    splits: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if _is_file(path, TABLE_SUFFIXES):
            splits.setdefault(_SHARD.sub("", path.stem), []).append(path)
    return splits


def _table_name(path: Path) -> str:
    """The name of a table: the file's name without suffix. If that is the name of a split, the folder's name
    is put before it: ``"mnist/test"``."""
    stem = _SHARD.sub("", path.stem)
    folder = path.absolute().parent.name
    if _SPLIT.match(stem) and folder:
        return f"{folder}/{stem}"
    return stem


def _sub_folders(folder: Path) -> list[Path]:
    children = (child for child in sorted(folder.iterdir()) if not child.name.startswith("."))
    return [child for child in children if access.may_read(child) and child.is_dir()]


def splits_of(folder: Path) -> list[str]:
    """The splits from which a user can choose. The list is empty if the folder has none, or if
    `datasets.save_to_disk` wrote it."""
    return list(_table_splits(folder)) or _image_splits(folder)


def _image_splits(folder: Path) -> list[str]:
    children = [child.name for child in _sub_folders(folder)]
    if all(_SPLIT.fullmatch(name) for name in children):
        return children
    return []


def _class_of(path: Path, root: Path) -> str:
    """The class of a picture: its sub-folder of `root`, or "" if it is in none."""
    folder, *rest = path.relative_to(root).parts
    if rest:
        return folder
    return ""


def _image_dataset(folder: Path, spec: DatasetSpec) -> Dataset:
    """The pictures in a folder. Their ids are paths below the folder, and their labels are the names of
    sub-folders."""
    spec.settings()
    splits = _image_splits(folder)
    root = folder
    if splits or spec.split:
        root = folder / _chosen(folder, spec.split, splits)
    name = folder.name
    if splits:
        name = f"{folder.name}/{root.name}"
    images = sorted(path for path in root.rglob("*") if _is_file(path, IMAGE_SUFFIXES))
    if not images:
        raise SpaceError(
            f"{root}: expected tables ({', '.join(TABLE_SUFFIXES)}) or pictures"
            f" ({', '.join(IMAGE_SUFFIXES)}), got none; choose the folder that holds them"
        )
    classes = [_class_of(path, root) for path in images]
    rows = evenly(classes, spec.limit)
    paths = [images[row] for row in rows]
    labels = [classes[row] for row in rows]

    def read(start: int, stop: int) -> list[Any]:
        numbered = enumerate(paths[start:stop], start)
        return [decode_image(_file_bytes(path), f"row {row}, {path}") for row, path in numbered]

    return Dataset(
        read,
        [path.relative_to(folder).as_posix() for path in paths],
        name=name,
        kind="images",
        labels=labels if any(labels) else None,
        content=lambda: map(_file_bytes, paths),
    )


def _file_bytes(path: Path) -> bytes:
    try:
        return image_file(path)
    except OSError as error:
        raise SpaceError(
            f"{path}: expected an image that can be read, got {error.strerror}; load the folder again"
        ) from error


def _chosen(place: Path | str, split: str, splits: Sequence[str]) -> str:
    if not split and len(splits) == 1:
        return next(iter(splits))
    if split not in splits:
        raise SpaceError(f"{place}: split: expected one of {quote(splits) or 'none'}, got {split!r}")
    return split


def hub_table(spec: DatasetSpec) -> HubTable:
    """One split of a dataset, on the hub or in a folder that the library `datasets` can load.

    Raises a SpaceError if the download fails or the library refuses the data.
    """
    import datasets
    from huggingface_hub import constants

    config = spec.settings(config=None, empty=None, id_column=None)["config"]
    folder = hub_folder(spec.name)
    here = is_downloaded(spec.name)
    if folder is not None:
        return _loaded(str(folder), config, spec.split, folder.name)
    if not HUB_NAME.fullmatch(spec.name):
        raise SpaceError(
            f"expected a folder or the hub's name of a dataset ('owner/name'), got {spec.name!r}, where there"
            " is nothing; check the spelling, or choose the source 'file' for a single file"
        )
    if access.is_shared() and not here:
        raise SpaceError(
            f"{spec.name!r:.80}: this app is shared, so it downloads no datasets; ask whoever runs it to"
            " download this one"
        )
    short = spec.name.rsplit("/", 1)[-1]
    if not datasets.config.HF_HUB_OFFLINE and hub_answers():
        return _loaded(spec.name, config, spec.split, short)
    if not here:
        raise SpaceError(
            f"{spec.name}: expected it on this machine, or the network to download it, got neither; on a"
            f" machine with a network run datasets.load_dataset({spec.name!r}).save_to_disk(folder), copy the"
            " folder here, and give its path"
        )
    from unittest.mock import patch  # imports asyncio

    # Without a request to the hub, datasets are loaded from the cache.
    with (
        patch.object(datasets.config, "HF_HUB_OFFLINE", True),
        patch.object(constants, "HF_HUB_OFFLINE", True),
    ):
        return _loaded(spec.name, config, spec.split, short)


def is_downloaded(name: str) -> bool:
    """Whether this dataset of the hub was loaded on this machine before."""
    home = Path(
        os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    )
    cache = access.expand_home(os.environ.get("HF_DATASETS_CACHE") or home / "datasets")
    return (cache / name.replace("/", "___")).is_dir()


class HubTable:
    """One split of a dataset that the library `datasets` has loaded, with the interface of an `ItemTable`."""

    folder = None

    def __init__(self, rows: Any, name: str) -> None:
        from datasets import ClassLabel, Image

        self.name = name
        features = rows.features
        self.columns = {column: _hub_kind(feature) for column, feature in features.items()}
        self.class_names = {
            name: part.names for name, part in features.items() if isinstance(part, ClassLabel)
        }
        rows = rows.with_format(None)
        for column, kind in self.columns.items():
            if kind == "image":
                rows = rows.cast_column(column, Image(decode=False))
        self._n = len(rows)
        self._columns = {column: rows.select_columns([column]) for column in self.columns}

    def __len__(self) -> int:
        return self._n

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        if start < stop:
            return list(self._columns[column][start:stop][column])
        return []


def _hub_kind(feature: Any) -> ColumnKind:
    from datasets import ClassLabel, Image

    kind = getattr(feature, "dtype", "")
    if isinstance(feature, Image):
        return "image"
    if kind in ("string", "large_string"):
        return "text"
    number = isinstance(feature, ClassLabel) or kind.startswith(("int", "uint", "float", "bool"))
    return "number" if number else "other"


def _loaded(name: str, config: str | None, split: str, short: str) -> HubTable:
    import datasets

    try:
        if any(Path(name, file).is_file() for file in ("dataset_dict.json", "state.json")):
            splits = datasets.load_from_disk(name)
        else:
            if split:
                names = [split]
            else:
                names = datasets.get_dataset_split_names(name, config)
            splits = dict.fromkeys(names)
            if len(names) == 1:
                splits[names[0]] = datasets.load_dataset(name, config, split=names[0])
    except Exception as error:  # the library, the hub's client, Arrow and the disk raise many kinds of errors
        reason = (str(error) or type(error).__name__).strip().split("\n")[0]
        raise SpaceError(
            f"{name}: expected a dataset that datasets.load_dataset can load, got {reason[:300]}"
        ) from error
    if not isinstance(splits, dict):
        return HubTable(splits, short)
    split = _chosen(name, split, splits)
    return HubTable(splits[split], f"{short}/{split}")


_MOST_ENTRIES = 200
_MOST_NUMBERS = 16  # number of columns of numbers in a table of items; with more, it holds vectors
_LOOK_AT = 200  # maximum number of files and sub-folders that are looked at


@dataclass(frozen=True)
class ColumnNames:
    """The columns of a table. `items` and `labels` are those that a user can choose as items and as labels.
    `ids`, `item` and `label` are the most likely ones, "" if there is none. `encoding` is the text
    encoding."""

    items: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    ids: str = ""
    item: str = ""
    label: str = ""
    encoding: str = ""


def with_options(spec: DatasetSpec, **options: str | float) -> DatasetSpec:
    """The spec with these options added. Options without a value are left out."""
    added = {name: value for name, value in options.items() if value}
    return replace(spec, options=DatasetOptions(sorted((dict(spec.options) | added).items())))


def columns_of(spec: DatasetSpec) -> ColumnNames:
    """The columns from which a user can choose."""
    table = None
    ids = ""
    found = ("", "", "")
    if spec.source == "huggingface":
        table = hub_table(spec)
    elif spec.source == "file":
        table = open_table([dataset_place(spec)], dict(spec.options).get("encoding", ""))
    elif spec.source == "folder" and (folder := dataset_place(spec)).is_dir():
        tables = _table_splits(folder)
        paths = tables.get(spec.split) or next(iter(tables.values()), None)
        table = open_table(paths) if paths else None
    if isinstance(table, ItemTable):
        ids = typical_id_column(table)
        roles = table.roles()
        named = [roles.place(role) for role in ("pictures", "text", "labels")]
        pictures, text, label = ("" if at is None else list(table.columns)[at] for at in named)
        item = next((name for name in (pictures, text) if name in item_columns(table.columns)), "")
        found = (item, label, table.encoding)
    columns = {} if table is None else table.columns
    return ColumnNames(tuple(item_columns(columns)), tuple(label_columns(columns)), ids, *found)


def available_datasets(data_folder: str | Path | None = None) -> list[DatasetEntry]:
    """The bundled datasets, then those in the data folder (by default RELSCOPE_DATA), up to two folders deep.

    Only names and headers of files are read. At most 200 datasets of the data folder are listed.
    """
    if data_folder:
        folder = access.readable_path(data_folder)
    else:
        folder = access.data_folder()
    entries = []
    if folder and folder.is_dir():
        entries = list(islice(_under(folder), _MOST_ENTRIES))
    return [*_bundled(), *entries]


def _bundled() -> Iterator[DatasetEntry]:
    articles = "sentences of {} Wikipedia articles, which are the labels"
    languages = f"the same sentences in {len(LANGUAGES)} languages, for parallel anchors"
    digits = "scikit-learn's handwritten digits, 8 × 8, 10 classes"
    yield DatasetEntry("digits", "images", DatasetSpec("digits"), 1797, digits)
    yield DatasetEntry("wikipedia, 16 articles", "texts", TASK, 5482, articles.format(16))
    yield DatasetEntry("wikipedia", "texts", DatasetSpec("wikipedia"), 18214, articles.format(103))
    for code, language in LANGUAGES.items():
        spec = DatasetSpec("parallel", code)
        yield DatasetEntry(f"everyday sentences, {language}", "texts", spec, N_SENTENCES, languages)


def _under(folder: Path, depth: int = 2) -> Iterator[DatasetEntry]:
    with suppress(OSError):
        tables = _table_splits(folder)
        if depth < 2 and not tables and holds_images(folder):
            for split in _image_splits(folder) or [""]:
                spec = DatasetSpec("folder", str(folder), split)
                if split:
                    name = f"{folder.name}/{split}"
                else:
                    name = folder.name
                yield DatasetEntry(name, "images", spec, None, "folder of pictures")
            return  # the sub-folders are classes
        for split, paths in tables.items():
            with suppress(SpaceError):
                yield from _table_entry(folder, split, paths)
        if depth:
            for child in _sub_folders(folder):
                yield from _under(child, depth - 1)


def holds_images(folder: Path) -> bool:
    """Whether there are pictures among the first files of a folder, or of its sub-folders for classes and
    splits."""
    if any(_is_file(path, IMAGE_SUFFIXES) for path in islice(folder.iterdir(), _LOOK_AT)):
        return True
    if splits := _image_splits(folder):
        return any(holds_images(folder / split) for split in splits)
    paths = (path for child in _sub_folders(folder)[:_LOOK_AT] for path in islice(child.iterdir(), 5))
    return any(_is_file(path, IMAGE_SUFFIXES) for path in paths)


def _table_entry(folder: Path, split: str, paths: list[Path]) -> Iterator[DatasetEntry]:
    """Yield the entry of a table in the list of datasets, if its header shows that it has images or texts."""
    first = paths[0]
    suffix = paths[0].suffix.lower()
    table = None
    if suffix == ".parquet":
        table = open_table(paths)
    if table is None:
        columns = first_kinds(first)
    else:
        columns = table.columns
    kinds = list(columns.values())
    kind = "texts"
    if "image" in kinds:
        kind = "images"
    if kind == "images" or ("text" in kinds and kinds.count("number") <= _MOST_NUMBERS):
        spec = DatasetSpec("file", str(first))
        if len(paths) > 1:
            spec = DatasetSpec("folder", str(folder), split)
        description = f"{suffix} file; columns {', '.join(columns)}"
        yield DatasetEntry(_table_name(first), kind, spec, None if table is None else len(table), description)
